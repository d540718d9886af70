"""Streaming: each connection asks for its part of the bytes, and the server sends them."""
from .io_running import Case, Goal
from .io_servers import ACORN, LOOP, loaded

COLUMNS = {'cpu_us': 'CPU of the server for a MiB, us', 'mib_s': 'MiB in a second'}


def cases(bench):
    for connections in bench.connections:
        def measure(name, connections=connections):
            with loaded(bench.servers[name], 'stream', bench.client, connections, 'stream') as (pid, client):
                before = bench.cpu_ns(pid)
                seconds = client.run(bench.stream_mib << 20)['seconds']
                return {'cpu_us': (bench.cpu_ns(pid) - before) / bench.stream_mib / 1e3,
                        'mib_s': bench.stream_mib / seconds}

        yield Case(f'stream.{connections}', f'Streaming {bench.stream_mib} MiB, connections: {connections}',
                   list(bench.servers), measure, COLUMNS, 'cpu_us', LOOP, [Goal('cpu_us', ACORN, 1.05, LOOP)])
