"""Echo: each connection sends 64 bytes, waits for them to come back, and sends again."""
from .io_running import Case, Goal
from .io_servers import ACORN, GO, LOOP, PEERS, cpu_ns, loaded

SCOPES = 'acorn, a scope for each request'
COLUMNS = {'cpu_us': 'CPU of the server for a request, us', 'us': 'time for a request, us', 'p50_us': 'p50, us',
           'p99_us': 'p99, us'}
GOALS = [Goal('cpu_us', ACORN, 1.05, LOOP),
         *(Goal('cpu_us', ACORN, 0.75 if peer == GO else 1.0, peer) for peer in PEERS),
         Goal('cpu_us', SCOPES, 1.02, ACORN), Goal('p99_us', ACORN, 1.2, LOOP)]


def echoed(pid, client, requests):
    """What so many requests to a server, whose process this is, have cost."""
    before = cpu_ns(pid)
    times = client.run(requests)
    return {'requests': times['requests'], 'cpu_us': (cpu_ns(pid) - before) / times['requests'] / 1e3,
            'us': times['seconds'] / times['requests'] * 1e6, 'p50_us': times['p50'] * 1e6,
            'p99_us': times['p99'] * 1e6}


def cases(bench):
    for connections in bench.connections:
        def measure(name, connections=connections):
            server, mode = (bench.servers[ACORN], 'scope') if name == SCOPES else (bench.servers[name], 'echo')
            with loaded(server, mode, bench.client, connections, 'echo') as (pid, client):
                return echoed(pid, client, bench.requests)

        yield Case(f'echo.{connections}', f'Echo of 64 bytes, connections: {connections}', [SCOPES, *bench.servers],
                   measure, COLUMNS, 'cpu_us', LOOP, GOALS)
