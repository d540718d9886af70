"""Few long-lived connections to a server with two threads: how the kernel spreads them over a listener for each thread
(SO_REUSEPORT), and how one listener does that gives each connection to the thread with the fewest.

The server is examples/threads_echo.c. bench/run_io.py has this as a case; alone, in bench/:

    python3 -m harness.threads_balance SERVER [ROUNDS]
"""
import contextlib
import socket
import statistics
import sys
from pathlib import Path

from .goals import print_goals
from .io_running import Case, Goal
from .io_servers import Server, cpu_by_thread, started

EACH, ONE = 'a listener for each thread', 'one listener, connections given away'
MODES = {EACH: [], ONE: ['one']}
COLUMNS = {'connections': 'connections of the busier thread, share', 'cpu': 'its processor time, share'}
THREADS, SERVERS, TRIES, REQUESTS, LIMIT_S = 2, 8, 20, 200, 10


def spent(pid, before):
    """What each thread has run for since then, the most first."""
    return sorted(((ns - before.get(thread, 0), thread) for thread, ns in cpu_by_thread(pid).items()), reverse=True)


def ask(connections):
    for connection in connections:
        connection.sendall(b'a line that comes back\n')
    for connection in connections:
        connection.recv(100)


def thread_of(pid, connection):
    """The thread that serves it: the one that works when only this connection asks."""
    before = cpu_by_thread(pid)
    for _ in range(TRIES):
        ask([connection])
    return spent(pid, before)[0][1]


def spread(server, mode, number):
    """The share of the thread with the most connections, and that of the thread with the most processor time."""
    with started(server, str(THREADS), '0', *MODES[mode]) as (pid, port), contextlib.ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(('127.0.0.1', int(port)), LIMIT_S))
                       for _ in range(number)]
        ask(connections)  # all have been accepted
        threads = [thread_of(pid, connection) for connection in connections]
        before = cpu_by_thread(pid)
        for _ in range(REQUESTS):
            ask(connections)
        times = [ns for ns, _ in spent(pid, before)]
        return max(map(threads.count, threads)) / number, times[0] / sum(times)


def cases_of(server, numbers):
    for number in numbers:
        def measure(mode, number=number):
            shares = [spread(server, mode, number) for _ in range(SERVERS)]
            return {column: statistics.mean(values) for column, values in zip(COLUMNS, zip(*shares))}

        yield Case(f'balance.{number}', f'{number} connections to {THREADS} threads, mean of {SERVERS} servers',
                   list(MODES), measure, COLUMNS, 'connections', ONE, [Goal('connections', ONE, 1 / THREADS)])


def cases(bench):
    return cases_of(Server(bench.directory / 'bench' / 'io-server-threads'), [4, 16] if bench.is_quick else [4, 16, 64])


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    goals = []
    for case in cases_of(Server(Path(sys.argv[1])), [4, 16, 64]):
        case.run(rounds)
        case.print()
        goals += case.goal_rows()
    print_goals(goals)


if __name__ == '__main__':
    main()
