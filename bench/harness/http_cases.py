"""HTTP: what a request costs the server, beside other servers."""
from . import http_clients
from .http_servers import (ACORN, ALL, BALANCED, GO, HYPER, NGHTTPD, NGINX, SHARED, WITH_FILES, WITH_HTTP2,
                           WITH_HTTP2_TLS, WITH_TLS)
from .io_running import Case, Goal
from .io_servers import CORES, anonymous_bytes, cpu_ns, started

COLUMNS = {'cpu_us': 'CPU of the server for a request, us', 'kreq': 'requests, 1000/s', 'p99_us': 'p99, us'}
GOALS = [Goal('cpu_us', ACORN, 1.0, NGINX), Goal('cpu_us', ACORN, 0.45, GO)]
PLAIN, NEW, TLS, NEW_TLS = 'keep-alive', 'a connection for each request', 'TLS, keep-alive', \
    'TLS, a connection for each request'
TABLES = (  # case, title, path, connections, how, contenders, goals
    ('hello.1', 'hello', '/hello', 1, PLAIN, ALL, ()),
    ('hello.64', 'hello', '/hello', 64, PLAIN, ALL, GOALS),
    ('hello.1000', 'hello', '/hello', 1000, PLAIN, ALL, GOALS),
    ('new.1', 'hello', '/hello', 1, NEW, ALL, ()),
    ('new.64', 'hello', '/hello', 64, NEW, ALL, ()),
    ('4k.64', '4 kB of memory (nginx: a file)', '/4k', 64, PLAIN, ALL, ()),
    ('1m.64', '1 MB of memory (nginx: a file)', '/1m', 64, PLAIN, ALL, ()),
    ('file-4k.64', 'a file of 4 kB', '/files/4k', 64, PLAIN, WITH_FILES, ()),
    ('file-1m.64', 'a file of 1 MB', '/files/1m', 64, PLAIN, WITH_FILES, ()),
    ('tls.64', 'hello', '/hello', 64, TLS, WITH_TLS, ()),
    ('tls-1m.64', '1 MB of memory (nginx: a file)', '/1m', 64, TLS, WITH_TLS, ()),
    ('tls-new.64', 'hello', '/hello', 64, NEW_TLS, WITH_TLS, ()))
TWO = 2  # threads
HTTP2_GOALS = [Goal('cpu_us', ACORN, 1.0, NGHTTPD), Goal('cpu_us', ACORN, 0.5, HYPER), Goal('cpu_us', ACORN, 0.3, GO)]
HTTP2_TLS_GOALS = [Goal('cpu_us', ACORN, 1.0, NGINX)]
HTTP2 = [(streams, connections) for connections in (1, 64) for streams in (1, 10, 100)]


def cases(bench):
    servers = bench.servers

    def loaded(name, load, with_tls=False, threads=1, is_http2=False):
        """What a client's `load(url)` has cost the server, on the first core; or on two, one of them the client's."""
        on = [] if threads > 1 else ['taskset', '-c', str(CORES[0])]
        with started(servers.server(name, threads, is_http2), *servers.arguments(with_tls), on=on) as (pid, port):
            url = f'http{"s" if with_tls else ""}://127.0.0.1:{port}'
            if is_http2:
                http_clients.h2load(f'{url}/hello', 1, bench.requests // 4, 10)
            else:
                http_clients.wrk(f'{url}/hello', 1, bench.warm_s, False)
            before = cpu_ns(pid)
            times = load(url)
            return {'cpu_us': (cpu_ns(pid) - before) / times['requests'] / 1e3,
                    'kreq': times['requests'] / times['seconds'] / 1e3, 'p99_us': times['p99'] * 1e6}

    for case, title, path, connections, how, contenders, goals in TABLES:
        def measure(name, path=path, connections=connections, how=how):
            seconds = bench.seconds * (2 if connections == 1000 else 1)  # the first of which connects
            return loaded(name, lambda url: http_clients.wrk(url + path, connections, seconds, how in (NEW, NEW_TLS)),
                          how in (TLS, NEW_TLS))

        yield Case(case, f'{title}, {how}, connections: {connections}', list(contenders), measure, COLUMNS, 'cpu_us',
                   NGINX, goals)

    yield Case('h2load.64', 'hello, keep-alive, connections: 64, by h2load', list(ALL),
               lambda name: loaded(name, lambda url: http_clients.h2load(f'{url}/hello', 64, bench.requests)),
               COLUMNS, 'cpu_us', NGINX, GOALS)
    def by_http2(name, connections, streams, with_tls=False):
        return loaded(name, lambda url: http_clients.h2load(f'{url}/hello', connections, bench.requests, streams),
                      with_tls, is_http2=True)

    for streams, connections in HTTP2:
        yield Case(f'h2.{streams}.{connections}',
                   f'hello, HTTP/2, streams on each connection: {streams}, connections: {connections}',
                   list(WITH_HTTP2),
                   lambda name, streams=streams, connections=connections: by_http2(name, connections, streams), COLUMNS,
                   'cpu_us', NGHTTPD, HTTP2_GOALS)
    for streams in 1, 100:
        yield Case(f'h2-tls.{streams}.64',
                   f'hello, HTTP/2 by TLS, streams on each connection: {streams}, connections: 64',
                   list(WITH_HTTP2_TLS),
                   lambda name, streams=streams: by_http2(name, 64, streams, True), COLUMNS, 'cpu_us', NGINX,
                   HTTP2_TLS_GOALS)
    yield Case('cores.64', f'hello, keep-alive, connections: 64, {TWO} threads, the client on the last core', list(ALL),
               lambda name: loaded(name, lambda url: http_clients.wrk(f'{url}/hello', 64, bench.seconds, False),
                                   threads=TWO), COLUMNS, 'cpu_us', NGINX, GOALS)

    def beside(name, path):
        """Long enough for wrk's p99 to be more than the first stall: it adds the requests that a client, while it
        waited, would have sent."""
        def load(url):
            with http_clients.asking(url + path):
                return http_clients.wrk(f'{url}/hello', 32, 4 * bench.seconds, False)

        return loaded(name, load, threads=TWO)

    for path, does, goals in (('stall', 'computes for 100 ms', [Goal('p99_us', BALANCED, 1.0, GO)]),
                              ('late', 'waits for 1 ms and computes for 100 ms', [Goal('p99_us', BALANCED, 1.0, GO)]),
                              ('offload', 'has another thread compute for 100 ms', [Goal('p99_us', ACORN, 5000)])):
        yield Case(f'{path}.32', f'hello, keep-alive, connections: 32, beside one whose handler {does}, {TWO} '
                   'threads, the client on the last core', [ACORN, BALANCED, GO],
                   lambda name, path=path: beside(name, f'/{path}'), COLUMNS, 'p99_us', GO, goals)

    def anonymous_with(name, connections):
        with started(servers.server(name), *servers.arguments()) as (pid, port), http_clients.idle(port, connections):
            return anonymous_bytes(pid)

    yield Case('idle', f'Idle connections, {bench.idle}', [SHARED, *ALL],
               lambda name: {'bytes': (anonymous_with(name, bench.idle) - anonymous_with(name, 1)) / (bench.idle - 1)},
               {'bytes': 'user memory of the server for a connection, bytes'}, 'bytes', NGINX,
               [Goal('bytes', ACORN, 4700), Goal('bytes', SHARED, 1000), Goal('bytes', ACORN, 0.3, GO)])
