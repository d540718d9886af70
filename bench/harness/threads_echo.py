"""Echo servers on both cores, with the client beside them: it takes its part of the same two cores. So requests per
second say how both together use the machine, and only the CPU time of a request is the server's own. Then with the
server's threads on the first core, and the client alone on the last."""
import contextlib
import os
import re

from . import building
from .io_echo import echoed
from .io_running import Case, Goal
from .io_servers import CORES, Client, Server, SOURCES, started
from .threads_programs import ACORN, GO, TOKIO

THREADS = 2
COLUMNS = {'cpu_us': 'CPU of the server for a request, us', 'us': 'time for a request, us', 'p99_us': 'p99, us',
           'sleeps': 'sleeps of its threads for 1000 requests'}


def sleeps(pid):
    """How often its threads, of those that have not ended, have slept."""
    times = 0
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(FileNotFoundError), open(f'/proc/{pid}/task/{thread}/status', 'rb') as file:
            times += int(re.search(rb'^voluntary_ctxt_switches:\s*(\d+)', file.read(), re.MULTILINE)[1])
    return times


def cases(programs):
    cargo, go = programs.directory.parent / 'cargo-io', programs.directory.parent / 'io-server-go'
    servers = {  # and what follows its port on the command line
        ACORN: (Server(programs.directory / 'bench' / 'threads-echo'), str(THREADS)),
        GO: (Server(go, building.build_with_go(go, '.', SOURCES / 'go'), environment={'GOMAXPROCS': str(THREADS)}),
             'echo'),
        TOKIO: (Server(cargo / 'release' / 'io-server-tokio', building.build_with_cargo('tokio', cargo, SOURCES),
                       environment={'THREADS': str(THREADS)}), 'echo')}
    requests = int(200000 * programs.part)

    def measure(name, on):
        with started(*servers[name], on=on) as (pid, port), \
                Client(programs.directory / 'bench' / 'io-client', port, 100, 'echo') as client:
            before = sleeps(pid)
            found = echoed(pid, client, requests)
            return {**found, 'sleeps': (sleeps(pid) - before) * 1000 / found['requests']}

    title = f'Echo of 64 bytes, 100 connections, {THREADS} threads'
    yield Case('echo', f'{title}, the client on the last core', list(servers), lambda name: measure(name, ()), COLUMNS,
               'cpu_us', GO, [Goal('cpu_us', ACORN, 0.75, GO), Goal('cpu_us', ACORN, 1.0, TOKIO)])
    yield Case('echo-apart', f'{title} on the first core, the client on the last', list(servers),
               lambda name: measure(name, ('taskset', '-c', str(CORES[0]))), COLUMNS, 'cpu_us', GO)
