#!/usr/bin/env python3
"""examples.py NAME PROGRAM: runs the example examples/io_NAME.c on this machine, uses it as its first comment says, and
ends it by its process id. Exit 77: a program that the test needs is not here."""
import contextlib
import datetime
import http.server
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ports import kept_port

LIMIT_S = 30


@contextlib.contextmanager
def started(command, *arguments):
    """The process and the port that it says it listens on."""
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            yield process, int(re.fullmatch(r'listening on 127\.0\.0\.1:(\d+)\n', line)[1])
        finally:
            process.kill()


def time(command):
    with started(command, '0') as (_, port), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(LIMIT_S)
        for request in (b'?', b'', b'x' * 1000):
            client.sendto(request, ('127.0.0.1', port))
            answer, source = client.recvfrom(100)
            told = datetime.datetime.strptime(answer.decode(), '%Y-%m-%dT%H:%M:%SZ\n')
            now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
            assert source == ('127.0.0.1', port) and abs((now - told).total_seconds()) < LIMIT_S, answer


def end_by_signal(process):
    """Ctrl-C: it ends by itself, with everything closed."""
    process.send_signal(signal.SIGINT)
    assert process.stderr.read() == 'ended\n'
    assert process.wait(LIMIT_S) == 0


class Peer:
    """A connection whose lines come back."""
    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), LIMIT_S)
        self.file = self.socket.makefile('rb')

    def ask(self, sent, wanted):
        self.socket.sendall(sent)
        assert self.file.readline() == wanted

    def is_closed(self):
        return self.file.read() == b''


def wait_until_refused(port):
    """Until no connection is accepted: those that came a moment before have an end."""
    with contextlib.suppress(ConnectionRefusedError):
        while True:
            with contextlib.suppress(ConnectionResetError):
                assert Peer(port).is_closed()


def threads_echo_with(command, drain_ms, *mode):
    with started(command, '0', '4', drain_ms, *mode) as (process, port):
        peers = [Peer(port) for _ in range(40)]
        for round_ in range(3):
            for number, peer in enumerate(peers):
                peer.socket.sendall(b'%d %d\n' % (round_, number))
            for number, peer in enumerate(peers):
                assert peer.file.readline() == b'%d %d\n' % (round_, number)
        listeners = subprocess.run(['ss', '-Hltn', f'sport = :{port}'], capture_output=True, text=True,
                                   check=False).stdout if shutil.which('ss') else ''
        assert not listeners or len(listeners.splitlines()) == (1 if mode else 4), listeners
        finishes, stalls = Peer(port), Peer(port)
        finishes.ask(b'one\ntw', b'one\n')  # the next line has come in part, too
        stalls.ask(b'one\ntw', b'one\n')
        process.send_signal(signal.SIGINT)
        assert all(peer.is_closed() for peer in peers)
        wait_until_refused(port)
        if int(drain_ms) > 1000:
            finishes.ask(b'o\n', b'two\n')
            assert finishes.is_closed()
            process.send_signal(signal.SIGINT)  # without it, the other is waited for
        assert stalls.is_closed()
        assert process.stderr.read() == 'ended\n' and process.wait(LIMIT_S) == 0


def threads_echo(command):
    threads_echo_with(command, '100000')
    threads_echo_with(command, '300', 'one')
    threads_echo_with(command, '100000', 'one')


def kv(command):
    if not shutil.which('redis-cli'):
        print('examples: skipped: redis-cli is not here')
        sys.exit(77)
    with started(command, '0') as (process, port):
        def ask(*words, given=''):
            return subprocess.run(['redis-cli', '-p', str(port), *words], input=given, capture_output=True, text=True,
                                  timeout=LIMIT_S, check=True).stdout

        assert ask('PING') == 'PONG\n'
        assert ask('SET', 'key', 'a value with spaces\nand lines') == 'OK\n'
        assert ask('GET', 'key') == 'a value with spaces\nand lines\n'
        assert ask('GET', 'none') == '\n'
        assert ask('SET', 'key', 'x' * 10000) == 'OK\n' and ask('GET', 'key') == 'x' * 10000 + '\n'
        assert ask('DEL', 'key') == '1\n' and ask('DEL', 'key') == '0\n' and ask('GET', 'key') == '\n'
        assert 'ERR' in ask('FLUSHALL')
        many = ''.join(f'SET key{n} {n}\n' for n in range(3000))
        assert ask(given=many) == 'OK\n' * 3000  # some share a bucket
        assert ask(given='GET key7\nGET key2999\n') == '7\n2999\n'
        with socket.create_connection(('127.0.0.1', port)) as person:
            person.sendall(b'*2\r\n$3\r\nGET\r\n$4\r\nkey7\r\nget key8\nPING\n' + b'*9\r\n')
            assert person.makefile('rb').read() == b'$1\r\n7\r\n$1\r\n8\r\n+PONG\r\n-ERR protocol\r\n'
        idle = socket.create_connection(('127.0.0.1', port))
        end_by_signal(process)
        idle.close()


def chat_with(port, count):
    def enter(name):
        client = socket.create_connection(('127.0.0.1', port), timeout=LIMIT_S)
        client.sendall(name + b'\n')
        return client

    def read_until(client, *wanted):
        got = b'\n'
        while not all(b'\n' + line in got for line in wanted):
            piece = client.recv(65536)
            assert piece, (got[-200:], wanted)
            got += piece
        return got

    ann = enter(b'ann')
    crowd = []
    while len(crowd) < count:  # fewer at a time than lines wait for a client
        some = range(len(crowd), min(len(crowd) + 40, count))
        crowd += [enter(b'%d' % n) for n in some]
        read_until(ann, *(b'%d: is here\n' % n for n in some))
    ann.sendall(b'hello\nall\n')
    for n, client in enumerate(crowd):
        got = read_until(client, b'ann: all\n')
        assert got.endswith(b'\nann: hello\nann: all\n') and got.count(b'is here') >= count - 1 - n, got[-200:]
    crowd[7].sendall(b'bye\n')
    crowd[7].close()
    assert read_until(ann, b'7: is gone\n').endswith(b'\n7: bye\n7: is gone\n')
    read_until(crowd[8], b'7: is gone\n')
    return ann, crowd


def chat(command):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with started(command, '0') as (process, port):
        deaf = socket.create_connection(('127.0.0.1', port))  # it never reads
        deaf.sendall(b'deaf\n')
        with socket.create_connection(('127.0.0.1', port), timeout=LIMIT_S) as loud:
            loud.sendall(b'loud\n' + (b'x' * 500 + b'\n') * 40000)  # more than all buffers; nobody waits for it
            loud.shutdown(socket.SHUT_WR)
            assert loud.makefile('rb').read() in (b'', b'deaf: is here\n')
        clients = chat_with(port, 1000 if len(command) == 1 else 100)  # an emulator is slow
        end_by_signal(process)
        deaf.close()
        del clients


def forward(command):
    data = bytes(range(256)) * 20000
    with socket.create_server(('127.0.0.1', kept_port())) as server:  # so nobody listens there after it
        def echo_then_end():
            while True:
                peer, _ = server.accept()
                with peer:
                    got = b''
                    while piece := peer.recv(65536):
                        got += piece
                        if got.startswith(b'reset'):
                            return
                    peer.sendall(got[::-1])

        thread = threading.Thread(target=echo_then_end)
        thread.start()
        with started(command, '127.0.0.1', str(server.getsockname()[1]), '0') as (process, port):
            for part in (data, b'', data[:7]):
                with socket.create_connection(('127.0.0.1', port), timeout=LIMIT_S) as client:
                    client.sendall(part)
                    client.shutdown(socket.SHUT_WR)
                    assert client.makefile('rb').read() == part[::-1]
            with socket.create_connection(('127.0.0.1', port), timeout=LIMIT_S) as client:
                client.sendall(b'reset')
                thread.join(LIMIT_S)
                with contextlib.suppress(ConnectionError):  # the server has gone with bytes unread, or none
                    assert client.recv(1) == b''
            server.close()
            with socket.create_connection(('127.0.0.1', port), timeout=LIMIT_S) as client:
                assert client.recv(1) == b''  # nobody to dial
            assert 'aco_io_dial: tcp 127.0.0.1:' in process.stderr.readline()
            assert process.poll() is None


def supervise(command):
    ended = subprocess.run([*command, 'echo one; echo two >&2', 'echo try; exit 3', 'kill -9 $$'], timeout=LIMIT_S,
                           capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in ended if line.startswith('[1]')] == ['[1] one', '[1] two', '[1] exit 0']
    assert [line for line in ended if line.startswith('[2]')] == ['[2] try', '[2] exit 3'] * 5 + ['[2] gave up']
    assert ended.count('[3] killed by signal 9') == 5 and ended[-1] == 'all have ended'
    polite = 'trap "echo bye; exit 5" TERM; echo up; while :; do sleep 0.01; done'
    with subprocess.Popen([*command, 'echo up; sleep 1000', polite], stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(2)]
        assert sorted(lines) == ['[1] up\n', '[2] up\n'], lines
        process.terminate()
        rest = process.stdout.read().splitlines()
        assert process.wait(LIMIT_S) == 0
        assert '[1] killed by signal 15' in rest and '[2] exit 5' in rest and rest[-1] == 'all have ended', rest


def tail(command):
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, str(n)) for n in range(50)]
        for name in names:
            with open(name, 'w', encoding='ascii') as file:
                file.write('old\n')
        with subprocess.Popen([*command, *names, os.path.join(folder, 'none')], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            begun = sorted(process.stdout.readline() for _ in names)
            assert begun == sorted(f'following {name}\n' for name in names)
            for n, name in enumerate(names):
                with open(name, 'a', encoding='ascii') as file:
                    file.write(f'new {n}\n')
                assert process.stdout.readline() == f'{name}: new {n}\n'
            with open(names[0], 'w', encoding='ascii') as file:
                file.write('')
                file.flush()
            with open(names[1], 'a', encoding='ascii') as file:  # told after the file has become shorter
                file.write('between\n')
            assert process.stdout.readline() == f'{names[1]}: between\n'
            with open(names[0], 'a', encoding='ascii') as file:
                file.write('short\n')
            assert process.stdout.readline() == f'{names[0]}: short\n'
            process.send_signal(signal.SIGINT)
            assert process.stdout.read() == 'ended\n' and process.wait(LIMIT_S) == 0
            assert 'none: No such file' in process.stderr.read()


class Files(http.server.BaseHTTPRequestHandler):
    """/N has N bytes, /none does not exist, /cut ends early, /never has no end. The first answers wait until `wanted`
    requests are here at once, and a moment for more."""
    wanted = at_once = most = answered = 0
    full = threading.Condition()

    def do_GET(self):  # pylint: disable=invalid-name
        with self.full:
            Files.at_once += 1
            Files.most = max(Files.most, Files.at_once)
            self.full.notify_all()
            self.full.wait_for(lambda: Files.most >= Files.wanted, LIMIT_S)
            self.full.wait_for(lambda: Files.answered or Files.most > Files.wanted, 0.1)
            Files.answered += 1
        with contextlib.suppress(ConnectionError):
            self.answer(self.path[1:])
        with self.full:
            Files.at_once -= 1

    def answer(self, name):
        if name == 'none':
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header('Content-Length', name if name.isdigit() else '1000000')
        self.end_headers()
        self.wfile.write(bytes(n % 251 for n in range(int(name))) if name.isdigit() else b'part')
        self.wfile.flush()
        if name == 'never':
            self.connection.settimeout(LIMIT_S)
            self.connection.recv(1)  # until the client goes

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def download(command):
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Files) as server, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=server.serve_forever).start()
        site = f'http://127.0.0.1:{server.server_port}'

        def get(seconds, at_once, names, wanted):
            Files.most, Files.answered, Files.wanted = 0, 0, wanted
            ended = subprocess.run([*command, seconds, str(at_once), *(f'{site}/{name}' for name in names)], cwd=folder,
                                   capture_output=True, text=True, timeout=LIMIT_S, check=True)
            return sorted(ended.stdout.splitlines()), ended.stderr.replace(site, '')

        try:
            sizes = [0, 1, 100000, *range(1000, 1040)]
            printed, problems = get('100', 7, sizes, 7)
            assert printed == sorted([f'{n}: {n} bytes' for n in sizes] + [f'{len(sizes)} files']), printed
            assert problems == '' and Files.most == 7, (problems, Files.most)
            for n in sizes:
                with open(os.path.join(folder, str(n)), 'rb') as file:
                    assert file.read() == bytes(i % 251 for i in range(n))
            printed, problems = get('100', 2, ['none', 'cut', '5'], 2)
            assert printed == ['1 files', '5: 5 bytes']
            assert '/none: No such file' in problems and '/cut: Broken pipe' in problems, problems
            printed, problems = get('0.2', 2, ['never'] * 3, 0)
            assert printed == ['0 files'] and problems == '/never: no time left\n' * 3, problems
            assert sorted(os.listdir(folder)) == sorted(map(str, [*sizes, 5]))
        finally:
            server.shutdown()
        problems = subprocess.run([*command, '100', '1', 'ftp://x/y', 'http://127.0.0.1:1/z'], cwd=folder, check=True,
                                  capture_output=True, text=True, timeout=LIMIT_S).stderr
        assert problems == 'ftp://x/y: no such URL\nhttp://127.0.0.1:1/z: Connection refused\n', problems


def shutdown(command):
    def client_of(port):
        client = socket.create_connection(('127.0.0.1', port), timeout=LIMIT_S)
        return client, client.makefile('rb')

    def ask(client, ms):
        client[0].sendall(b'%d\n' % ms)

    with started(command, '0', '100000', '1500') as (process, port):
        idle, slow, late = (client_of(port) for _ in range(3))
        ask(slow, 100)
        ask(late, 90000)
        ask(idle, 0)
        assert idle[1].readline() == b'0 done\n'  # so the two were read before
        process.send_signal(signal.SIGINT)
        assert idle[1].read() == b''
        with contextlib.suppress(ConnectionError), socket.create_connection(('127.0.0.1', port)) as refused:
            assert refused.recv(1) == b''
        assert slow[1].read() == b'100 done\n'  # within the time to drain
        assert late[1].read() == b'90000 shut down\n'  # after it
        assert process.stderr.read() == 'ended\n' and process.wait(LIMIT_S) == 0
    with started(command, '0', '1000', '100000') as (process, port):
        idle, busy = client_of(port), client_of(port)
        ask(idle, 90000)
        assert idle[1].readline() == b'90000 too long\n'  # the request's limit
        ask(busy, 20)
        ask(idle, 0)
        assert idle[1].readline() == b'0 done\n'
        process.terminate()
        assert busy[1].read() == b'20 done\n'
        assert process.stderr.read() == 'ended\n' and process.wait(LIMIT_S) == 0  # it does not wait longer


if __name__ == '__main__':
    globals()[sys.argv[1]](sys.argv[2:])
    print(f'examples: {sys.argv[1]}: passed')
