#!/usr/bin/env python3
"""examples.py NAME PROGRAM: runs the example examples/io_NAME.c on this machine, uses it as its first comment says, and
ends it by its process id. Exit 77: a program that the test needs is not here."""
import asyncio
import contextlib
import datetime
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


async def chat_with(port, count):
    async def enter(name):
        reader, writer = await asyncio.open_connection('127.0.0.1', port)
        writer.write(name + b'\n')
        return reader, writer

    async def until(reader, text):
        while await reader.readline() != text:
            assert not reader.at_eof()

    ann = await enter(b'ann')
    crowd = []
    for n in range(count):
        crowd.append(await enter(b'%d' % n))
        await until(ann[0], b'%d: is here\n' % n)
    ann[1].write(b'hello\nall\n')
    for reader, _ in crowd:
        await until(reader, b'ann: hello\n')
        assert await reader.readline() == b'ann: all\n'
    crowd[7][1].write(b'bye\n')
    crowd[7][1].close()
    await until(ann[0], b'7: bye\n')
    assert await ann[0].readline() == b'7: is gone\n'
    await until(crowd[8][0], b'7: is gone\n')


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
        asyncio.run(asyncio.wait_for(chat_with(port, 100), LIMIT_S))
        end_by_signal(process)
        deaf.close()


def forward(command):
    data = bytes(range(256)) * 20000
    with socket.create_server(('127.0.0.1', 0)) as server:
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


if __name__ == '__main__':
    globals()[sys.argv[1]](sys.argv[2:])
    print(f'examples: {sys.argv[1]}: passed')
