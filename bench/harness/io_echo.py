"""Echo: each connection sends 64 bytes, waits for them to come back, and sends again."""
from .io_running import Case, Goal
from .io_servers import ACORN, LOOP, loaded

COLUMNS = {'cpu_us': 'CPU of the server for a request, us', 'us': 'time for a request, us', 'p50_us': 'p50, us',
           'p99_us': 'p99, us'}


def cases(bench):
    for connections in bench.connections:
        def measure(name, connections=connections):
            with loaded(bench.servers[name], 'echo', bench.client, connections, 'echo') as (pid, client):
                before = bench.cpu_ns(pid)
                times = client.run(bench.requests)
                return {'cpu_us': (bench.cpu_ns(pid) - before) / bench.requests / 1e3,
                        'us': times['seconds'] / bench.requests * 1e6, 'p50_us': times['p50'] * 1e6,
                        'p99_us': times['p99'] * 1e6}

        yield Case(f'echo.{connections}', f'Echo of 64 bytes, connections: {connections}', list(bench.servers), measure,
                   COLUMNS, 'cpu_us', LOOP, [Goal('cpu_us', ACORN, 1.05, LOOP), Goal('p99_us', ACORN, 1.2, LOOP)])
