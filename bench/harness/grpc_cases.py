"""gRPC: what a call, or a message of a stream, costs the server, beside other servers."""
from . import grpc_clients
from .grpc_servers import ACORN, ALL, CPP, GO, SHARED
from .io_running import Case, Goal, Missing
from .io_servers import CORES, anonymous_bytes, cpu_ns, started

COLUMNS = {'cpu_us': 'CPU of the server, us', 'kcalls': '1000/s', 'p99_us': 'p99, us'}
GOALS = [Goal('cpu_us', ACORN, 0.35, GO), Goal('cpu_us', ACORN, 0.6, CPP)]
UNARY, STREAM = 'UnaryEcho', 'BidirectionalStreamingEcho'
MESSAGES = 100  # of a stream, 1 kB each
HELLO = grpc_clients.message(b'Hello, world')
STREAMED = MESSAGES * grpc_clients.message(b'x' * 1000)
CASES = (  # case, title, method, body, connections, streams of each, goals
    ('unary.1', 'unary hello, 1 connection, 1 call at once', UNARY, HELLO, 1, 1, ()),
    ('unary.100', 'unary hello, 1 connection, 100 calls at once', UNARY, HELLO, 1, 100, GOALS),
    ('unary.640', 'unary hello, 64 connections, 10 calls at once on each', UNARY, HELLO, 64, 10, GOALS),
    ('stream.1', 'a message of 1 kB and its echo in a stream, 1 connection, 1 call', STREAM, STREAMED, 1, 1, ()),
    ('stream.80', 'a message of 1 kB and its echo in a stream, 8 connections, 10 calls on each', STREAM, STREAMED, 8,
     10, GOALS))


def cases(bench):
    servers = bench.servers

    def loaded(name, load, per_call=1):
        """What a client's load(port, calls) has cost the server for a call, or one of `per_call` messages of it."""
        with started(servers.server(name), on=['taskset', '-c', str(CORES[0])]) as (pid, port):
            calls = max(bench.calls // per_call, 100)
            load(port, max(calls // 20, 100))
            before = cpu_ns(pid)
            times = load(port, calls)
            done = times['calls'] * per_call
            return {'cpu_us': (cpu_ns(pid) - before) / done / 1e3, 'kcalls': done / times['seconds'] / 1e3,
                    'p99_us': times['p99'] * 1e6}

    for case, title, method, body, connections, streams, goals in CASES:
        def measure(name, method=method, body=body, connections=connections, streams=streams):
            return loaded(name, lambda port, calls: grpc_clients.h2load(port, method, body, connections, streams,
                                                                        max(calls, connections * streams)),
                          MESSAGES if method == STREAM else 1)

        yield Case(case, f'{title}, by h2load', list(ALL), measure, COLUMNS, 'cpu_us', GO, goals)

    def by_ghz(name):
        if servers.ghz_failure:
            raise Missing(f'ghz: {servers.ghz_failure}')
        return loaded(name, lambda port, calls: grpc_clients.ghz(servers.ghz, port, 4, 100, calls))

    yield Case('ghz.100', 'unary hello, 4 connections, 100 calls at once, by ghz', list(ALL), by_ghz, COLUMNS, 'cpu_us',
               GO, ())

    def anonymous_with(name, streams):
        with started(servers.server(name)) as (pid, port), grpc_clients.idle(port, streams):
            return anonymous_bytes(pid)

    yield Case('idle', f'idle streams, {bench.idle}, 100 on each connection', [SHARED, *ALL],
               lambda name: {'bytes': (anonymous_with(name, bench.idle) - anonymous_with(name, 1)) / (bench.idle - 1)},
               {'bytes': 'user memory of the server for a stream, bytes'}, 'bytes', GO,
               [Goal('bytes', ACORN, 5000), Goal('bytes', SHARED, 5000)])
