"""Idle connections: the user memory of the server for each, when all have been served once."""
from .io_running import Case, Goal
from .io_servers import ACORN, LOOP, anonymous_bytes, loaded

LENT, SHARED = 'acorn, lent buffers', 'acorn, share stack'
MODES = {LENT: 'lent', SHARED: 'shared'}


def cases(bench):
    number = bench.idle

    def anonymous_with(name, connections):
        server = bench.servers[ACORN if name in MODES else name]
        with loaded(server, MODES.get(name, 'echo'), bench.client, connections, 'echo') as (pid, _):
            return anonymous_bytes(pid)

    def measure(name):
        return {'bytes': (anonymous_with(name, number) - anonymous_with(name, 1)) / (number - 1)}

    yield Case('idle', f'Idle connections, {number}', [LENT, SHARED, *bench.servers], measure,
               {'bytes': 'user memory of the server for a connection, bytes'}, 'bytes', LOOP,
               [Goal('bytes', LENT, 4700), Goal('bytes', SHARED, 1000)])
