"""Echo servers on both cores, with the client beside them: it takes its part of the same two cores. So requests per
second say how both together use the machine, and only the CPU time of a request is the server's own."""
import contextlib
import os
import re
import subprocess

from . import building
from .io_running import Case, Goal, Missing
from .io_servers import Client, SOURCES, cpu_ns
from .threads_programs import ACORN, GO, TOKIO

THREADS = 2
COLUMNS = {'cpu_us': 'CPU of the server for a request, us', 'us': 'time for a request, us', 'p99_us': 'p99, us'}


@contextlib.contextmanager
def started(command, environment):
    """The process and its port."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        try:
            said = process.stderr.readline().strip()
            port = re.search(r':(\d+)$', said)
            if not port:
                raise Missing(said or 'did not start')
            yield process.pid, port[1]
        finally:
            process.kill()


def cases(programs):
    cargo, go = programs.directory.parent / 'cargo-io', programs.directory.parent / 'io-server-go'
    acorn = programs.directory / 'bench' / 'threads-echo'
    servers = {  # command, environment, why there is none
        ACORN: ([acorn, '0', str(THREADS)], {}, None if acorn.exists() else 'was not built'),
        GO: ([go, '0', 'echo'], {'GOMAXPROCS': str(THREADS)}, building.build_with_go(go, '.', SOURCES / 'go')),
        TOKIO: ([cargo / 'release' / 'io-server-tokio', '0', 'echo'], {'THREADS': str(THREADS)},
                building.build_with_cargo('tokio', cargo, SOURCES))}
    requests = int(200000 * programs.part)

    def measure(name):
        command, environment, missing = servers[name]
        if missing:
            raise Missing(missing)
        with started(command, environment) as (pid, port), \
                Client(programs.directory / 'bench' / 'io-client', port, 100, 'echo') as client:
            before = cpu_ns(pid)
            times = client.run(requests)
            return {'cpu_us': (cpu_ns(pid) - before) / times['requests'] / 1e3,
                    'us': times['seconds'] / times['requests'] * 1e6, 'p99_us': times['p99'] * 1e6}

    yield Case('echo', f'Echo of 64 bytes, 100 connections, {THREADS} threads, the client on the last core',
               list(servers), measure, COLUMNS, 'cpu_us', GO, [Goal('cpu_us', ACORN, 0.75, GO),
                                                                Goal('cpu_us', ACORN, 1.0, TOKIO)])
