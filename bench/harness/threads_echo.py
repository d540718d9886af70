"""Echo servers on both cores, with the client beside them: it takes its part of the same two cores. So requests per
second say how both together use the machine, and only the CPU time of a request is the server's own."""
from . import building
from .io_echo import echoed
from .io_running import Case, Goal
from .io_servers import Client, Server, SOURCES, started
from .threads_programs import ACORN, GO, TOKIO

THREADS = 2
COLUMNS = {'cpu_us': 'CPU of the server for a request, us', 'us': 'time for a request, us', 'p99_us': 'p99, us'}


def cases(programs):
    cargo, go = programs.directory.parent / 'cargo-io', programs.directory.parent / 'io-server-go'
    servers = {  # and what follows its port on the command line
        ACORN: (Server(programs.directory / 'bench' / 'threads-echo'), str(THREADS)),
        GO: (Server(go, building.build_with_go(go, '.', SOURCES / 'go'), environment={'GOMAXPROCS': str(THREADS)}),
             'echo'),
        TOKIO: (Server(cargo / 'release' / 'io-server-tokio', building.build_with_cargo('tokio', cargo, SOURCES),
                       environment={'THREADS': str(THREADS)}), 'echo')}
    requests = int(200000 * programs.part)

    def measure(name):
        with started(*servers[name]) as (pid, port), \
                Client(programs.directory / 'bench' / 'io-client', port, 100, 'echo') as client:
            return echoed(pid, client, requests)

    yield Case('echo', f'Echo of 64 bytes, 100 connections, {THREADS} threads, the client on the last core',
               list(servers), measure, COLUMNS, 'cpu_us', GO, [Goal('cpu_us', ACORN, 0.75, GO),
                                                                Goal('cpu_us', ACORN, 1.0, TOKIO)])
