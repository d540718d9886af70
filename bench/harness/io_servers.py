"""The servers that bench/run_io.py compares, and the client that loads them. A server is PROGRAM 0 MODE; it says on
stderr where it listens. It runs on the first core of this machine, the client on the last."""
import contextlib
import os
import re
import subprocess

from .io_running import Missing

LIMIT_S = 60
CORES = sorted(os.sched_getaffinity(0))
ACORN, LOOP = 'acorn', 'epoll loop'


class Server:
    def __init__(self, path, missing=None, environment=None):
        self.path, self.environment = path, {**os.environ, **(environment or {})}
        self.missing = missing or (None if path.exists() else 'was not built')


def cpu_ns(pid):
    """The processor time of a process' threads, of those that have not ended."""
    total = 0
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(FileNotFoundError), open(f'/proc/{pid}/task/{thread}/schedstat', 'rb') as file:
            total += int(file.read().split()[0])
    return total


def anonymous_bytes(pid):
    """The user memory of a process that is its own."""
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as file:
        return int(re.search(r'^Anonymous: *(\d+) kB', file.read(), re.MULTILINE)[1]) * 1024


@contextlib.contextmanager
def started(server, mode):
    """The process and its port."""
    if server.missing:
        raise Missing(server.missing)
    command = ['taskset', '-c', str(CORES[0]), server.path, '0', mode]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=server.environment) as process:
        try:
            said = process.stderr.readline().strip()
            port = re.search(r':(\d+)$', said)
            if not port:
                raise Missing(said or 'did not start')
            yield process.pid, port[1]
        finally:
            process.kill()


class Client:
    """The load, bench/io/client.c: connected, and each connection has been served once."""
    def __init__(self, program, port, connections, mode):
        self.process = subprocess.Popen(
            ['taskset', '-c', str(CORES[-1]), program, port, str(connections), mode], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Missing(self.process.stderr.read().strip() or 'the client ended')
        return line

    def run(self, amount):
        """So many requests, or bytes: what the client measured."""
        self.process.stdin.write(f'{amount}\n')
        self.process.stdin.flush()
        return {key: float(value) for key, value in (pair.split('=') for pair in self.answer().split())}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def loaded(server, mode, client_program, connections, load):
    """A server with a client: the server's process id and the client."""
    with started(server, mode) as (pid, port), Client(client_program, port, connections, load) as client:
        yield pid, client


def find_servers(directory):
    """The servers by name, of which `directory` has those that CMake builds."""
    return {
        ACORN: Server(directory / 'bench' / 'io-server-acorn'),
        LOOP: Server(directory / 'bench' / 'io-server-loop'),
    }
