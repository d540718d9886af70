"""The clients of bench/run_grpc.py, on the last core: h2load, ghz, and streams that stay idle. What they measure:
calls, seconds, p99 (seconds)."""
import contextlib
import json
import re
import socket
import subprocess
import tempfile

from .grpc_servers import SOURCES
from .http_clients import LIMIT_S, UNITS, output_of
from .io_running import Missing
from .io_servers import CORES

SERVICE = '/grpc.examples.echo.Echo'
HEADERS = {'content-type': 'application/grpc', 'te': 'trailers'}


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def message(text):
    """An EchoRequest, with its prefix."""
    body = b'\x0a' + varint(len(text)) + text
    return b'\0' + len(body).to_bytes(4, 'big') + body


def check(port, method, body):
    """Whether the server answers with OK."""
    said = output_of('nghttp', '-nv', '-d', body, *(f'-H{name}: {value}' for name, value in HEADERS.items()),
                     f'http://127.0.0.1:{port}{SERVICE}/{method}')
    if 'grpc-status: 0' not in said:
        raise Missing(f'{method} was not answered with OK')


def h2load(port, method, body, connections, streams, calls):
    """`body`: all bytes that a call sends."""
    with tempfile.NamedTemporaryFile() as sent, tempfile.NamedTemporaryFile('r') as log:
        sent.write(body)
        sent.flush()
        check(port, method, sent.name)
        said = output_of('h2load', '-t1', '-c', connections, '-m', streams, '-n', calls, '-d', sent.name,
                         f'--log-file={log.name}', *(f'-H{name}: {value}' for name, value in HEADERS.items()),
                         f'http://127.0.0.1:{port}{SERVICE}/{method}')
        took = sorted(int(line.split('\t')[2]) for line in log)
    if len(took) != calls or f'{calls} succeeded' not in said:
        raise Missing(f'h2load: {re.search("requests: .*", said)[0]}')
    seconds, unit = re.search(r'finished in ([\d.]+)(\w+),', said).groups()
    return {'calls': calls, 'seconds': float(seconds) * UNITS[unit], 'p99': took[calls * 99 // 100] * 1e-6}


def ghz(program, port, connections, at_once, calls):
    command = ['taskset', '-c', str(CORES[-1]), program, '--insecure', '--format', 'json', '--proto',
               SOURCES / 'echo.proto', '--call', f'{SERVICE[1:]}.UnaryEcho', '--data', '{"message": "Hello, world"}',
               '--connections', connections, '--concurrency', at_once, '--total', calls, f'127.0.0.1:{port}']
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Missing(f'ghz: {(ended.stderr or ended.stdout).strip().splitlines()[-1]}')
    report = json.loads(ended.stdout)
    if report['statusCodeDistribution'] != {'OK': calls}:
        raise Missing(f'ghz: {report["statusCodeDistribution"]}')
    p99 = next(each['latency'] for each in report['latencyDistribution'] if each['percentage'] == 99)
    return {'calls': calls, 'seconds': report['total'] * 1e-9, 'p99': p99 * 1e-9}


# ---- Idle streams ----

STREAMS = 100  # of a connection
DATA, HEADERS_FRAME, SETTINGS, PING = 0, 1, 4, 6
END_OF_HEADERS, ACK = 4, 1


def frame(kind, flags, stream, payload=b''):
    return len(payload).to_bytes(3, 'big') + bytes([kind, flags]) + stream.to_bytes(4, 'big') + payload


def field(name, value):
    """A header that no table keeps, without Huffman's code."""
    return b'\0' + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def frames_of(peer):
    file = peer.makefile('rb')
    while head := file.read(9):
        yield head[3], head[4], int.from_bytes(head[5:9], 'big'), file.read(int.from_bytes(head[:3], 'big'))
    raise Missing('the server ended a connection')


def open_streams(peer, number):
    """So many calls on a connection, each of which has been answered once and goes on."""
    fields = {':method': 'POST', ':scheme': 'http', ':path': f'{SERVICE}/BidirectionalStreamingEcho',
              ':authority': 'localhost', **HEADERS}
    block = b''.join(field(name, value) for name, value in fields.items())
    sent = message(b'Hello, world')
    peer.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(SETTINGS, 0, 0))
    for i in range(number):
        peer.sendall(frame(HEADERS_FRAME, END_OF_HEADERS, 2 * i + 1, block) + frame(DATA, 0, 2 * i + 1, sent))
    answers = {}
    for kind, flags, stream, payload in frames_of(peer):
        if kind in (SETTINGS, PING) and not flags & ACK:
            peer.sendall(frame(kind, ACK, 0, payload if kind == PING else b''))
        if kind == DATA:
            answers[stream] = answers.get(stream, b'') + payload
            if len(answers) == number and all(answer == sent for answer in answers.values()):
                return


@contextlib.contextmanager
def idle(port, number):
    with contextlib.ExitStack() as stack:
        while number > 0:
            peer = stack.enter_context(socket.create_connection(('127.0.0.1', int(port)), LIMIT_S))
            open_streams(peer, min(number, STREAMS))
            number -= STREAMS
        yield
