#!/usr/bin/env python3
"""services.py NAME PROGRAM: starts a service of this folder, uses it, and ends it by SIGTERM: it must exit with 0. Exit
77: a server, a program or a module that it needs is not here. PROGRAM may be another implementation (go/)."""
import asyncio
import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '../../tests/hook'))
sys.path.append('/usr/lib/python3/dist-packages')  # Debian's, for another python3 than Debian's
import clients  # noqa: E402

LIMIT_S = 60


def end(process):
    process.send_signal(signal.SIGTERM)
    process.is_told = True  # a second signal would cancel what is under way


@contextlib.contextmanager
def serving(program, *arguments):
    """The process, and the port that it says it listens on. At the end SIGTERM, and its exit."""
    with subprocess.Popen([program, *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            found = re.fullmatch(r'listening on .*:(\d+)\n|working\n', line)
            assert found, line
            yield process, int(found[1]) if found[1] else None
            if not getattr(process, 'is_told', False):
                end(process)
            rest = process.stderr.read()
            assert process.wait(LIMIT_S) == 0, (process.returncode, rest)
        except BaseException:
            ended = process.poll()
            process.kill()
            print(f'the service ended with {ended} and had said: {process.stderr.read()}', file=sys.stderr)
            raise


@contextlib.contextmanager
def in_thread(server):
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


# ---- chat ----

async def talk(url, process):
    import websockets
    one = await websockets.connect(f'{url}/chat/a?name=one')
    assert await one.recv() == 'one has come'
    two = await websockets.connect(f'{url}/chat/a?name=two%20of')
    assert [await two.recv(), await two.recv()] == ['one has come', 'two of has come']
    assert await one.recv() == 'two of has come'
    other = await websockets.connect(f'{url}/chat/b')
    await two.send('hällo')
    assert await one.recv() == await two.recv() == 'two of: hällo'
    await two.close()
    assert await one.recv() == 'two of has left'
    assert await other.recv() == 'somebody has come'
    await one.send('x' * 4097)
    with contextlib.suppress(websockets.exceptions.ConnectionClosed):
        await one.recv()
    assert one.close_code == 1009, one.close_code
    end(process)
    with contextlib.suppress(websockets.exceptions.ConnectionClosed):
        await other.recv()
    assert other.close_code == 1001, other.close_code


def chat(program):
    with serving(program, '0') as (process, port):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=LIMIT_S)
        connection.request('GET', '/')
        assert b'new WebSocket' in connection.getresponse().read()
        asyncio.run(asyncio.wait_for(talk(f'ws://127.0.0.1:{port}', process), LIMIT_S))


# ---- hang ----

def begin_transfer(port, path):
    """Its head: once the service asks for the body, it has the first lock."""
    peer = socket.create_connection(('127.0.0.1', port), LIMIT_S)
    peer.sendall(f'POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n'.encode())
    assert peer.recv(1000).startswith(b'HTTP/1.1 100 '), path
    return peer


def read_until(process, text):
    """The lines of reports up to one that has this text."""
    lines = []
    while not lines or text not in lines[-1]:
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    return lines


def hang(program):
    with serving(program, '0', '10') as (process, port):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=LIMIT_S)

        def ask(method, path, body=None):
            connection.request(method, path, body)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

        assert ask('POST', '/transfer/ann/bob', 'rent') == (200, 'done\n')
        assert ask('POST', '/transfer/ann/joe', 'rent')[0] == 404
        both = [begin_transfer(port, '/transfer/ann/bob'), begin_transfer(port, '/transfer/bob/ann')]
        for peer in both:
            peer.sendall(b'note')
        stuck = []
        while len(stuck) < 2:  # until both have read their notes
            process.send_signal(signal.SIGUSR1)
            stuck = [line for line in read_until(process, 'of this thread') if 'hang.cpp' in line and 'held by' in line]
        answers = sorted(peer.recv(1000)[9:12] for peer in both)
        assert b'503' in answers, answers  # when one gives up, the other may go on
        for peer in both:
            peer.close()
        assert ask('POST', '/transfer/eve/ann', 'rent') == (200, 'done\n')
        total = sum(int(line.split()[1]) for line in ask('GET', '/accounts')[1].splitlines())
        assert total == 30, total
        assert ask('GET', '/interest/1000') == (200, 'done\n')
        read_until(process, 'has run for')


# ---- crawler ----

class Site(http.server.BaseHTTPRequestHandler):
    failures = 0

    def do_GET(self):  # noqa: N802
        pages = {'/': '<a href="a">a</a> <A class=x HREF=\'/b#part\'>b</A> <a href="http://else.test/">else</a>',
                 '/a': '<a href="/">home</a> <a href="c/d">d</a>', '/b': 'text', '/c/d': '<a href="../gone">gone</a>'}
        if self.path == '/b' and Site.failures < 2:
            Site.failures += 1
            self.send_error(503)
        elif self.path in pages:
            body = pages[self.path].encode()
            self.send_response(200)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_error(404)

    def log_message(self, *_):
        pass


def crawler(program):
    with in_thread(http.server.ThreadingHTTPServer(('127.0.0.1', 0), Site)) as port:
        site = f'http://127.0.0.1:{port}'
        done = subprocess.run([program, f'{site}/'], capture_output=True, text=True, timeout=LIMIT_S, check=True)
        lines = sorted((line.split()[0], line.split()[2]) for line in done.stdout.splitlines())
        assert lines == [('200', f'{site}/'), ('200', f'{site}/a'), ('200', f'{site}/b'), ('200', f'{site}/c/d'),
                         ('404', f'{site}/gone')], lines
        done = subprocess.run([program, f'{site}/', '0'], capture_output=True, text=True, timeout=LIMIT_S, check=True)
        assert len(done.stdout.splitlines()) == 1, done.stdout
    with socket.create_server(('127.0.0.1', 0)) as silent:  # which never answers
        url = f'http://127.0.0.1:{silent.getsockname()[1]}/'
        with subprocess.Popen([program, url], stdout=subprocess.DEVNULL) as process:
            try:
                silent.settimeout(LIMIT_S)
                silent.accept()
                process.send_signal(signal.SIGTERM)
                assert process.wait(LIMIT_S) == 0, process.returncode
            finally:
                process.kill()


# ---- balancer ----

def certificate(folder, name):
    if not shutil.which('openssl'):
        raise clients.Missing('openssl is not installed')
    files = [f'{folder}/certificate.pem', f'{folder}/key.pem']
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                    '-days', '2', '-subj', f'/CN={name}', '-addext', f'subjectAltName=DNS:{name}', '-out', files[0],
                    '-keyout', files[1]], check=True, stderr=subprocess.DEVNULL)
    return files


def echo_server(name):
    """A backend: it tells its name, and echoes until the end. Its sockets: to listen, and all that it has accepted."""
    door, accepted = socket.create_server(('127.0.0.1', 0)), []

    def serve_one(peer):
        with peer:
            peer.sendall(name)
            while data := peer.recv(65536):
                peer.sendall(data)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                accepted.append(door.accept()[0])
                threading.Thread(target=serve_one, args=(accepted[-1],), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return door


def through(port, trusted, name='a.test'):
    context = ssl.create_default_context(cafile=trusted)
    return context.wrap_socket(socket.create_connection(('127.0.0.1', port), LIMIT_S), server_hostname=name)


def read_n(peer, n):
    got = b''
    while len(got) < n:
        part = peer.recv(n - len(got))
        assert part, got
        got += part
    return got


def balancer(program):
    with tempfile.TemporaryDirectory() as folder:
        files = certificate(folder, 'a.test')
        doors = [echo_server(b'1'), echo_server(b'2')]
        ports = [clients.kept_port(), *(door.getsockname()[1] for door in doors)]  # at the first one nobody listens
        addresses = [f'127.0.0.1:{port}' for port in ports]
        with serving(program, '0', *files, *addresses) as (process, port):
            peers = [through(port, files[0]) for _ in range(8)]
            names = sorted(read_n(peer, 1) for peer in peers)
            assert names == [b'1'] * 4 + [b'2'] * 4, names
            for peer in peers:
                peer.sendall(b'x' * 100000)
                assert read_n(peer, 100000) == b'x' * 100000
            certificate(folder, 'b.test')
            process.send_signal(signal.SIGHUP)
            while True:  # a reload takes its time
                with contextlib.suppress(ssl.SSLError), through(port, files[0], 'b.test') as peer:
                    assert read_n(peer, 1) in b'12'
                    break
            for peer in peers[1:]:
                peer.close()
            end(process)
            peers[0].sendall(b'still served')  # connections are drained
            assert read_n(peers[0], 12) == b'still served'
            peers[0].close()


# ---- prices ----

def framed(*messages):
    return b''.join(b'\0' + len(m).to_bytes(4, 'big') + m for m in messages)


def price(symbol, cents):
    return bytes([10, len(symbol)]) + symbol.encode() + bytes([16, cents])


def curl(port, method, *options):
    if b'HTTP2' not in subprocess.run(['curl', '--version'], capture_output=True, check=True).stdout:
        raise clients.Missing('curl has no HTTP/2')
    return subprocess.Popen(['curl', '-sN', '--max-time', str(LIMIT_S), '--http2-prior-knowledge', '-H', 'TE: trailers',
                             '-H', 'Content-Type: application/grpc', '--data-binary', '@-', *options,
                             f'http://127.0.0.1:{port}/market.Prices/{method}'],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def prices(program):
    if not shutil.which('curl'):
        raise clients.Missing('curl is not installed')
    with serving(program, '0') as (process, port):
        def call(method, *messages):
            # the status stands in the trailers, or in the head; both come before and behind the body
            got = curl(port, method, '-i').communicate(framed(*messages), LIMIT_S)[0]
            head, body = got.split(b'\r\n\r\n', 1)
            assert head.startswith(b'HTTP/2 200'), got
            return int(re.search(rb'grpc-status: (\d+)', head + body)[1]), body.partition(b'grpc-')[0]

        assert call('Get', b'\n\1a')[0] == 5, 'NOT_FOUND'
        assert call('Put', price('a', 7), price('b', 8), price('a', 9)) == (0, framed(b'\10\3'))
        assert call('Get', b'\n\1a') == (0, framed(price('a', 9)))
        assert call('Put', price('', 7))[0] == 3, 'INVALID_ARGUMENT'
        watch = [curl(port, 'Watch') for _ in range(2)]
        for each in watch:
            each.stdin.write(framed(b'\n\1b'))
            each.stdin.close()
            assert each.stdout.read(len(framed(price('b', 8)))) == framed(price('b', 8))
        assert call('Put', price('b', 10))[0] == 0
        for each in watch:
            assert each.stdout.read(len(framed(price('b', 10)))) == framed(price('b', 10))
        watch[0].kill()  # its handler must not hold the server
        end(process)
        assert watch[1].stdout.read() == b'' and watch[1].wait(LIMIT_S) == 0
        watch[0].wait(LIMIT_S)


# ---- worker, rest ----

@contextlib.contextmanager
def database(make):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        port = str(clients.kept_port())
        with subprocess.Popen(make(folder, port), cwd=folder, stdout=subprocess.DEVNULL) as server:
            try:
                clients.await_server(server, port, make.__name__)
                yield port
            finally:
                server.send_signal(signal.SIGINT)
                try:
                    server.wait(30)
                except subprocess.TimeoutExpired:
                    server.kill()


class Redis:
    def __init__(self, port):
        self.file = socket.create_connection(('127.0.0.1', int(port)), LIMIT_S).makefile('rwb')

    def read(self):
        kind, rest = (line := self.file.readline().strip())[:1], line[1:]
        if kind == b'$':
            return None if rest == b'-1' else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b'*':
            return None if rest == b'-1' else [self.read() for _ in range(int(rest))]
        assert kind != b'-', line
        return rest.decode()

    def __call__(self, *words):
        self.file.write(b'*%d\r\n' % len(words))
        for word in map(str, words):
            self.file.write(b'$%d\r\n%s\r\n' % (len(word.encode()), word.encode()))
        self.file.flush()
        return self.read()


def worker(program):
    with database(clients.redis) as port:
        redis = Redis(port)
        redis('RPUSH', 'running', 'left 1 square 5')  # by a crash
        with serving(program, port, '4') as (process, _):
            for i in range(100):
                redis('RPUSH', 'jobs', f'{i} 1 square {i}')
            redis('RPUSH', 'jobs', 'bad 1 sing')
            assert redis('BLMOVE', 'dead', 'seen', 'LEFT', 'RIGHT', LIMIT_S) == 'bad 3 sing'
            redis('RPUSH', 'jobs', 'long 1 sleep 500')
            while redis('LRANGE', 'running', 0, -1) != ['long 1 sleep 500']:
                pass
            end(process)
        assert redis('GET', 'result:long') == 'slept', 'what is under way is finished'
        assert redis('GET', 'result:left') == '25'
        assert [redis('GET', f'result:{i}') for i in range(100)] == [str(i * i) for i in range(100)]
        assert redis('LLEN', 'running') == redis('LLEN', 'jobs') == '0'


def rest(program):
    with database(clients.postgres) as database_port:
        with serving(program, '0', f'host=127.0.0.1 port={database_port} user=postgres dbname=postgres') as (_, port):
            connection = http.client.HTTPConnection('127.0.0.1', port, timeout=LIMIT_S)

            def ask(method, path, body=None):
                connection.request(method, path, json.dumps(body) if body else None)
                reply = connection.getresponse()
                text = reply.read().decode()
                return reply.status, json.loads(text) if reply.getheader('Content-Type') == 'application/json' and \
                    text else text

            assert ask('GET', '/items') == (200, [])
            assert ask('POST', '/items', {'name': 'bolt "M5"', 'price': 12}) == (201, {'id': 1})
            assert ask('POST', '/items', {'name': 'nut', 'price': 3}) == (201, {'id': 2})
            assert ask('GET', '/items/1') == (200, {'id': 1, 'name': 'bolt "M5"', 'price': 12})
            assert ask('PUT', '/items/2', {'name': 'nut', 'price': 4})[0] == 204
            assert ask('GET', '/items?after=1&limit=5') == (200, [{'id': 2, 'name': 'nut', 'price': 4}])
            for wrong in ({'name': 'x', 'price': -1}, {'name': 'x', 'price': 'much'}, {'price': 1}):
                assert ask('POST', '/items', wrong)[0] == 400, wrong
            assert ask('GET', '/items/x')[0] == 400
            assert ask('GET', "/items/1'%20or%201=1")[0] == 400
            assert ask('DELETE', '/items/1')[0] == 204
            assert ask('GET', '/items/1')[0] == ask('DELETE', '/items/1')[0] == 404
            assert ask('PATCH', '/items/1')[0] == 405
            assert ask('GET', '/health') == (200, 'ok\n')


if __name__ == '__main__':
    try:
        tests = {f.__name__: f for f in (chat, hang, crawler, balancer, prices, worker, rest)}
        tests[sys.argv[1]](os.path.abspath(sys.argv[2]))
    except (clients.Missing, ImportError) as missing:
        print(f'skipped: {missing}')
        sys.exit(77)
    print(f'{sys.argv[1]}: passed')
