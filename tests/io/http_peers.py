#!/usr/bin/env python3
"""http_peers.py FILES HELLO_CPP ONE_PORT TUNNEL [EMULATOR...]: acorn_http with other implementations. curl asks
examples/http_files.c, plain and by TLS, for what curl can do, and examples/http_one_port.c with and without the line of
a proxy; h2load asks the first many times; tests/http_tunnel.c, the
program TUNNEL, if there is one, asks it by TLS through tinyproxy. Where one of the last two is not installed, the test
says so. Exit 77: curl is not here."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ports import kept_port

LIMIT_S = 60
LENGTH = 3000000
DATA = bytes(i * 7 + i // 1000 & 255 for i in range(LENGTH))


@contextlib.contextmanager
def serving(command, *arguments):
    """The port that it says it listens on."""
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield int(re.fullmatch(r'listening on 127\.0\.0\.1:(\d+)\n', process.stderr.readline())[1])
        finally:
            process.kill()


def curl(*words, given=None):
    """curl's status, what it got, and what it tells with --verbose."""
    result = subprocess.run(['curl', '--silent', '--show-error', '--verbose', '--noproxy', '*' if '-x' not in words else
                             '', '--max-time', str(LIMIT_S), '--cacert', 'root.pem', *words], input=given,
                            capture_output=True, check=False)
    return result.returncode, result.stdout, result.stderr.decode(errors='replace')


def has(pattern, told):
    assert re.search(pattern, told, re.I), (pattern, told)


def ask(*words, given=None, status=0):
    code, got, told = curl(*words, given=given)
    assert code == status, (words, code, got[:200], told)
    return got, told


def test_files(site):
    got, told = ask(f'{site}/files/data', f'{site}/files/data')
    assert got == DATA + DATA
    has(r're-?using existing', told)
    got, told = ask('--http1.0', f'{site}/files/data')
    assert got == DATA
    has(r'< connection: close', told)
    got, told = ask('--http1.0', '-H', 'Connection: keep-alive', f'{site}/files/small', f'{site}/files/small')
    assert got == b'smallsmall'
    has(r're-?using existing', told)
    got, told = ask('--head', f'{site}/files/data')
    has(rf'content-length: {LENGTH}\r', got.decode())
    assert ask('--location', f'{site}/')[0] == b'index'
    assert ask('--path-as-is', f'{site}/files/../files/small', '-o', '-', '-w', '%{http_code}')[0].endswith(b'400')
    assert ask(f'{site}/files/missing', '-o', '/dev/null', '-w', '%{http_code}')[0] == b'404'


def test_ranges(site):
    assert ask('--range', '5-9', f'{site}/files/data')[0] == DATA[5:10]
    assert ask('--range', '-7', f'{site}/files/data')[0] == DATA[-7:]
    assert ask('--range', '0-1,5-6', f'{site}/files/data')[0] == DATA
    with open('part', 'wb') as part:
        part.write(DATA[:1000000])
    ask('-C', '-', '-o', 'part', f'{site}/files/data')
    with open('part', 'rb') as part:
        assert part.read() == DATA
    code, _, _ = curl('-C', '-', '-o', 'part', f'{site}/files/data')  # it is complete: 416
    assert code in (0, 22, 33), code
    got, told = ask('--time-cond', 'Thu, 01 Jan 2099 00:00:00 GMT', f'{site}/files/data')
    has(r'< HTTP/1.1 304', told)
    ask('--etag-save', 'etag', '-o', '/dev/null', f'{site}/files/data')
    assert ask('--etag-compare', 'etag', '-o', '/dev/null', '-w', '%{http_code}', f'{site}/files/data')[0] == b'304'
    got, _ = ask('--compressed', f'{site}/files/small')  # the server does not compress: the bytes are as they are
    assert got == b'small'


def test_uploads(site):
    answer = f'{LENGTH} bytes\n'.encode()
    got, told = ask('--upload-file', 'folder/data', f'{site}/uploads/')
    assert got == answer, got
    has(r'< HTTP/1.1 100 Continue', told)
    got, told = ask('--upload-file', '-', f'{site}/uploads/x', given=DATA)
    assert got == answer, got
    has(r'> transfer-encoding: chunked', told)
    got, _ = ask('-H', 'Expect:', '--data-binary', '@folder/data', f'{site}/uploads/x', f'{site}/uploads/x')
    assert got == 2 * answer, got
    assert ask('-F', 'a=b', f'{site}/uploads/x')[0].endswith(b'bytes\n')
    got, told = ask('-H', 'Expect: 100-continue', '--data', 'x', f'{site}/files/data', '-o', '/dev/null', '-w',
                    '%{http_code}')
    assert got == b'405'
    # A refused body of 2 GB, of which nothing needs to be sent; the answer comes through.
    got, told = ask('-H', 'Content-Length: 2000000000', '--data-binary', '@folder/data', f'{site}/uploads/x', '-o',
                    '/dev/null', '-w', '%{http_code}')
    assert got == b'413', got


def test_load(site, folder_of_h2load):
    told = subprocess.run([folder_of_h2load, '--h1', '-n', '2000', '-c', '20', '-t', '1', f'{site}/files/small'],
                          capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
    has(r'2000 succeeded, 0 failed, 0 errored', told)


def test_tunnel(program, port, tinyproxy):
    """By a proxy that makes tunnels, by one that wants a password, and by one that cannot reach the server."""
    url = f'https://localhost:{port}/files/small'
    for more, url_of_all, answer in (
            ('', url, 'small'),
            ('BasicAuth user word', url, 'aco_http_call: the proxy makes no tunnel: status 407'),
            (f'ConnectPort {port + 1}', url, 'aco_http_call: the proxy makes no tunnel: status 403'),
            ('', f'https://127.0.0.1:{port}/files/small',
             'aco_tls_connect: 127.0.0.1: certificate refused, wrong host'),
            ('', 'https://localhost:1/', 'aco_http_call: the proxy makes no tunnel: status 50')):
        proxy_port = kept_port()
        with open('tinyproxy.conf', 'w', encoding='ascii') as file:
            file.write(f'Port {proxy_port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout {LIMIT_S}\n{more}\n')
        with subprocess.Popen([tinyproxy, '-d', '-c', 'tinyproxy.conf'], stdout=subprocess.DEVNULL) as proxy:
            try:
                wait_for_port(proxy_port)
                told = subprocess.run([*program, '127.0.0.1', str(proxy_port), 'root.pem', url_of_all, url_of_all],
                                      capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout.splitlines()
            finally:
                proxy.kill()
        assert len(told) == 2 and all(line.startswith(answer) for line in told), (more, told)


def wait_for_port(port):
    limit = time.monotonic() + LIMIT_S
    while True:
        try:
            socket.create_connection(('127.0.0.1', port)).close()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < limit, 'tinyproxy does not listen'
            time.sleep(0.02)


def talk(port, *pieces):
    """What comes back on one connection, until it ends."""
    with socket.create_connection(('127.0.0.1', port), LIMIT_S) as peer:
        for piece in pieces:
            peer.sendall(piece)
        peer.shutdown(socket.SHUT_WR)
        return b''.join(iter(lambda: peer.recv(65536), b''))


def is_refused(port, request):
    try:
        return talk(port, request) == b''
    except OSError:  # a reset, because the server has not read all
        return True


GET = b'GET %b HTTP/1.1\r\nHost: a\r\n\r\n'


def test_one_port(port):
    assert re.fullmatch(rb'hello 127\.0\.0\.1:\d+\n', ask(f'http://127.0.0.1:{port}/')[0])
    assert talk(port, GET % b'/shout' + b'loud').endswith(b'Upgrade: shout\r\n\r\nLOUD')


def test_behind_proxy(port):
    """Only headers of the proxy's."""
    site = f'http://127.0.0.1:{port}'
    got, told = ask('--haproxy-protocol', f'{site}/', f'{site}/')  # the line only once
    assert re.fullmatch(rb'(hello 127\.0\.0\.1:\d+\n)\1', got), got
    has(r're-?using existing', told)
    line = b'PROXY TCP6 2001:db8::1 ::1 1234 80\r\n'
    binary = (b'\r\n\r\n\0\r\nQUIT\n' + bytes.fromhex('2121002420010db8') + bytes(11) + b'\1' + bytes(16) +
              bytes.fromhex('04d20050'))
    for header in line, binary:
        whole = header + GET % b'/'
        for pieces in ((whole,), (whole[:9], whole[9:]), (bytes([c]) for c in whole)):
            got = talk(port, *pieces)
            assert got.endswith(b'hello [2001:db8::1]:1234\n'), got
    assert is_refused(port, b'PROXY nonsense\r\n' + GET % b'/')
    assert is_refused(port, GET % b'/')


def main():
    if not shutil.which('curl') or not shutil.which('openssl'):
        print('http: skipped: curl or openssl is not here')
        sys.exit(77)
    files, hello, one_port, tunnel = ([*sys.argv[5:], os.path.abspath(path)] for path in sys.argv[1:5])
    h2load, tinyproxy = shutil.which('h2load'), shutil.which('tinyproxy')
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir('folder')
        for name, content in (('data', DATA), ('small', b'small'), ('index.html', b'index')):
            with open(f'folder/{name}', 'wb') as file:
                file.write(content)
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                        '-days', '1', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout',
                        'root.key', '-out', 'root.pem'], capture_output=True, check=True)
        for scheme, words in (('http', ()), ('https', ('root.pem', 'root.key'))):
            with serving(files, 'folder', '0', *words) as port:
                site = f'{scheme}://localhost:{port}'
                if words and curl(f'{site}/files/small')[0] == 35:  # built without OpenSSL
                    continue
                test_files(site)
                test_ranges(site)
                test_uploads(site)
                if h2load:
                    test_load(f'{scheme}://127.0.0.1:{port}', h2load)
                if words and tinyproxy and os.path.exists(tunnel[-1]):
                    test_tunnel(tunnel, port, tinyproxy)
                if not words:
                    assert ask('-x', f'127.0.0.1:{port}', 'http://example.org/files/small')[0] == b'small'
        with serving(hello, '0') as port:
            assert ask(f'http://127.0.0.1:{port}/hello/you')[0] == b'hello you\n'
        with serving(one_port, '0') as port:
            test_one_port(port)
        with serving(one_port, '0', '127.0.0.1') as port:
            test_behind_proxy(port)
        os.chdir('/')
    print('http: passed' + ('' if h2load else ', without h2load') + ('' if tinyproxy else ', without tinyproxy'))


if __name__ == '__main__':
    main()
