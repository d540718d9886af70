"""The clients of bench/run_http.py, on the last core: wrk, h2load, and connections that stay idle. What they measure:
requests, seconds, p99 (seconds)."""
import contextlib
import http.client
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.parse

from .io_running import Missing
from .io_servers import CORES

LIMIT_S = 30
UNITS = {'us': 1e-6, 'ms': 1e-3, 's': 1, 'm': 60}


def output_of(tool, *arguments):
    if not shutil.which(tool):
        raise Missing(f'{tool} is not installed')
    command = ['taskset', '-c', str(CORES[-1]), tool, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Missing((ended.stderr or ended.stdout).strip().splitlines()[-1])
    return ended.stdout


def wrk(url, connections, seconds, closes):
    """`closes`: a connection for each request."""
    said = output_of('wrk', '-t1', '-c', connections, '-d', f'{seconds}s', '--latency', '--timeout', f'{LIMIT_S}s',
                     *(('-H', 'Connection: close') if closes else ()), url)
    wrong = re.search(r'Non-2xx.*|Socket errors:.*', said)
    requests, took, unit = re.search(r'(\d+) requests in ([\d.]+)(\w+),', said).groups()
    if int(requests) == 0 or (wrong and not closes):
        raise Missing(f'wrk: {wrong[0] if wrong else "no request was answered"}')
    p99, p99_unit = re.search(r'99%\s+([\d.]+)(\w+)', said).groups()
    return {'requests': int(requests), 'seconds': float(took) * UNITS[unit], 'p99': float(p99) * UNITS[p99_unit]}


@contextlib.contextmanager
def asking(url):
    """Meanwhile a thread asks for `url` again and again, by one connection."""
    ends = threading.Event()
    address = urllib.parse.urlsplit(url)

    def ask():
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=LIMIT_S)
        with contextlib.closing(connection):
            while not ends.is_set():
                connection.request('GET', address.path)
                connection.getresponse().read()

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield
    finally:
        ends.set()
        asker.join()


def h2load(url, connections, requests, streams=None):
    """By HTTP/2, with so many `streams` on each connection; None: by HTTP/1.1."""
    how = ('-m', streams) if streams else ('--h1',)
    with tempfile.NamedTemporaryFile('r') as log:
        said = output_of('h2load', *how, '-t1', '-c', connections, '-n', requests, f'--log-file={log.name}', url)
        took = sorted(int(line.split('\t')[2]) for line in log)
    if len(took) != requests or f'{requests} succeeded' not in said:
        raise Missing(f'h2load: {re.search("requests: .*", said)[0]}')
    seconds, unit = re.search(r'finished in ([\d.]+)(\w+),', said).groups()
    return {'requests': requests, 'seconds': float(seconds) * UNITS[unit], 'p99': took[requests * 99 // 100] * 1e-6}


@contextlib.contextmanager
def idle(port, number):
    """So many connections, each of which has been served once."""
    with contextlib.ExitStack() as stack:
        for _ in range(number):
            peer = stack.enter_context(socket.create_connection(('127.0.0.1', int(port)), LIMIT_S))
            peer.sendall(b'GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n')
            answer = b''
            while not answer.endswith(b'Hello, world'):
                part = peer.recv(4096)
                if not part:
                    raise Missing(f'the server said {answer!r}')
                answer += part
        yield
