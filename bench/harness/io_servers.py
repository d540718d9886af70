"""The servers that bench/run_io.py compares, and the client that loads them. A server is PROGRAM 0 MODE; it says on
stderr where it listens. It has one thread that serves, and runs on the first core of this machine, the client on the
last."""
import contextlib
import os
import re
import subprocess

from . import building
from .io_running import Missing

CORES = sorted(os.sched_getaffinity(0))
ACORN, ACORN_RING = 'acorn', 'acorn, io_uring'
LOOP, GO, TOKIO, UV = 'epoll loop', 'Go', 'tokio', 'libuv'
ASIO, ASIO_COROUTINES = 'Asio, callbacks', 'Asio, C++20 coroutines'
PEERS = (GO, TOKIO, UV, ASIO, ASIO_COROUTINES)
SOURCES = building.BENCH / 'io' / 'peers'


class Server:
    """`missing`: why there is none. `needs`: what its build needs."""
    def __init__(self, path, missing=None, needs=None, environment=None):
        self.path, self.environment = path, {**os.environ, **(environment or {})}
        self.missing = missing
        if not missing and not path.exists():
            self.missing = f'{needs} is not installed' if needs else 'was not built'


def cpu_by_thread(pid):
    """Nanoseconds that each of a process' threads has run for, of those that have not ended."""
    found = {}
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(FileNotFoundError), open(f'/proc/{pid}/task/{thread}/schedstat', 'rb') as file:
            found[thread] = int(file.read().split()[0])
    return found


def with_children(pid):
    """A process and its children, and theirs."""
    yield pid
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        for child in file.read().split():
            yield from with_children(child)


def cpu_ns(pid):
    return sum(sum(cpu_by_thread(process).values()) for process in with_children(pid))


def anonymous_bytes(pid):
    """The user memory of a process and its children that is their own."""
    total = 0
    for process in with_children(pid):
        with open(f'/proc/{process}/smaps_rollup', encoding='ascii') as file:
            total += int(re.search(r'^Anonymous: *(\d+) kB', file.read(), re.MULTILINE)[1]) * 1024
    return total


@contextlib.contextmanager
def started(server, *arguments, on=()):
    """The process and its port. `on`: a command that it runs under."""
    if server.missing:
        raise Missing(server.missing)
    command = [*on, server.path, '0', *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=server.environment) as process:
        try:
            said = process.stderr.readline().strip()
            port = re.search(r':(\d+)$', said)
            if not port:
                raise Missing(said or 'did not start')
            yield process.pid, port[1]
        finally:
            process.terminate()  # by which those with children end these, too


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
    on_first = ['taskset', '-c', str(CORES[0])]
    with started(server, mode, on=on_first) as (pid, port), Client(client_program, port, connections, load) as client:
        yield pid, client


def find_servers(directory):
    """The servers by name. CMake has built in `directory`; cargo and go build now."""
    def by_cmake(name, needs=None):
        return Server(directory / 'bench' / f'io-server-{name}', None, needs)

    cargo, go = directory.parent / 'cargo-io', directory.parent / 'io-server-go'
    return {
        ACORN: by_cmake('acorn'),
        ACORN_RING: Server(directory / 'bench' / 'io-server-acorn', environment={'ACO_POLLER': 'uring'}),
        LOOP: by_cmake('loop'),
        GO: Server(go, building.build_with_go(go, '.', SOURCES / 'go'), environment={'GOMAXPROCS': '1'}),
        TOKIO: Server(cargo / 'release' / 'io-server-tokio', building.build_with_cargo('tokio', cargo, SOURCES)),
        UV: by_cmake('uv', 'libuv1-dev'),
        ASIO: by_cmake('asio', 'libasio-dev'),
        ASIO_COROUTINES: by_cmake('asio-coroutines', 'libasio-dev'),
        'Photon': Server(None, 'its package is in no registry here'),
    }
