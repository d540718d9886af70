#!/usr/bin/env python3
"""http2_peers.py SERVER FOLDER [ASKS]: HTTP/2 of acorn_http with other implementations: curl, nghttp and h2load ask
SERVER (tests/http2_server.c), and h2spec tests it, if Go can get it: the module is kept in FOLDER. The client asks
nghttpd and nginx, by the program ASKS (tests/http2_asks.c). Exit 77: there is none of them."""
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

LIMIT_S = 120
MODULE = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible'
DATA = bytes(i * 7 + i // 1000 & 255 for i in range(900000))

# What h2spec wants and the server does otherwise, and why.
KNOWN = {
    'Sends invalid connection preface': 'who does not begin by the preface speaks HTTP/1.1, and is answered so',
    'Sends stream identifier that is numerically smaller than previous':
        'nghttp2 ignores it: it may be the trailers of a stream that was reset',
}


@contextlib.contextmanager
def serving(server):
    """The port that it says it listens on."""
    with subprocess.Popen([server, 'serve'], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline().strip().rsplit(':', 1)[1])
        finally:
            process.kill()


def run(*words, given=None):
    result = subprocess.run(words, input=given, capture_output=True, timeout=LIMIT_S, check=False)
    assert result.returncode == 0, (words, result)
    return result.stdout


def test_curl(site):
    curl = ['curl', '--silent', '--show-error', '--noproxy', '*', '--http2-prior-knowledge']
    assert run(*curl, f'{site}/') == b'hello\n'
    assert run(*curl, f'{site}/parts', '-w', '%{http_version}') == b'part part part 2'
    assert run(*curl, '--data-binary', '@-', f'{site}/stream', given=DATA) == DATA
    assert run(*curl, '--data-binary', '@-', '-o', '/dev/null', '-w', '%{http_code}', f'{site}/echo',
               given=DATA * 3) == b'413'
    assert run(*curl, '--head', f'{site}/').startswith(b'HTTP/2 200')
    assert run(*curl[:-1], f'{site}/', '-w', '%{http_version}') == b'hello\n1.1'


def test_nghttp(site):
    told = run('nghttp', '--null-out', '--verbose', f'{site}/', f'{site}/big', f'{site}/empty').decode()
    assert len(re.findall(r':status: 20[04]', told)) == 3, told
    assert run('nghttp', '--no-dep', '--trailer=x-sum: 7', '--data=/dev/null', '-H:method: POST',
               f'{site}/trailers') == b'7|0'


def test_load(site):
    for streams in '1', '10', '100':
        told = run('h2load', '-n', '2000', '-c', '4', '-m', streams, f'{site}/').decode()
        assert '2000 succeeded' in told and '2000 2xx' in told, told


def get_h2spec(folder):
    """Its path; None: it cannot be had."""
    path = os.path.join(folder, 'h2spec')
    if not os.path.exists(path) and shutil.which('go'):
        environment = {**os.environ, 'GOBIN': folder, 'GOFLAGS': '-mod=mod'}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(['go', 'install', MODULE], env=environment, capture_output=True, timeout=LIMIT_S,
                           check=False)
    return path if os.path.exists(path) else None


def test_h2spec(h2spec, port):
    told = subprocess.run([h2spec, '-h', '127.0.0.1', '-p', str(port), '--timeout', '5'], capture_output=True,
                          text=True, timeout=LIMIT_S, check=False).stdout
    failed = set(re.findall(r'× \d+: (.*)', told))
    count = re.search(r'(\d+) tests, (\d+) passed', told)
    assert count and int(count[1]) >= 145, told
    assert failed <= set(KNOWN), told
    return f'{count[2]} of {count[1]} cases'


# ---- The client ----

NGINX = """daemon off; master_process off; pid nginx.pid; error_log stderr;
events {{ worker_connections 100; }}
http {{
    access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi; http2_max_concurrent_streams 7;
    server {{
        listen 127.0.0.1:{port} ssl http2; ssl_certificate own.pem; ssl_certificate_key own.key; root {folder};
        keepalive_requests 30; client_max_body_size 2m;
        location /upload {{ return 200 "uploaded"; }}
    }}
}}
"""


@contextlib.contextmanager
def running(port, *words):
    """Another server, once it listens."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        try:
            limit = time.monotonic() + LIMIT_S
            while True:
                try:
                    socket.create_connection(('127.0.0.1', port)).close()
                    break
                except ConnectionRefusedError:
                    assert process.poll() is None and time.monotonic() < limit, words
                    time.sleep(0.02)
            yield
        finally:
            process.kill()


def check(asks, method, site, count, sent, answer):
    """All responses are of HTTP/2 and have this answer."""
    ca = 'own.pem' if site.startswith('https') else '-'
    told = run(asks, ca, method, site, str(count), str(sent)).decode().splitlines()
    assert told == [f'2 200 {len(answer)} {sum(answer)}'] * (count + 1) + ['http2_asks: passed'], (site, told)


def test_nghttpd(asks, program):
    for scheme, words in ('http', ['--no-tls']), ('https', ['own.key', 'own.pem']):
        port = kept_port()
        site = f'{scheme}://localhost:{port}'
        with running(port, program, '--address=127.0.0.1', '--echo-upload', '--htdocs=.', '--max-concurrent-streams=9',
                     str(port), *words):
            check(asks, 'GET', f'{site}/data', 50, 0, DATA)
            check(asks, 'POST', f'{site}/', 20, len(DATA), DATA)


def test_nginx(asks, program):
    port = kept_port()
    site = f'https://localhost:{port}'
    with open('nginx.conf', 'w', encoding='ascii') as file:
        file.write(NGINX.format(port=port, folder=os.getcwd()))
    with running(port, program, '-p', os.getcwd(), '-c', 'nginx.conf'):
        check(asks, 'GET', f'{site}/data', 100, 0, DATA)
        check(asks, 'POST', f'{site}/upload', 40, len(DATA), b'uploaded')


def test_client(asks):
    """Which servers were not here."""
    servers = {'nghttpd': test_nghttpd, 'nginx': test_nginx}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.chmod(folder, 0o755)
        with open('data', 'wb') as file:
            file.write(DATA)
        run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1',
            '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', 'own.key', '-out',
            'own.pem')
        for name, test in servers.items():
            if shutil.which(name):
                test(asks, shutil.which(name))
        os.chdir('/')
    return [name for name in servers if not shutil.which(name)]


def main():
    server, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    asks = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 and shutil.which('openssl') else None
    tests = {'curl': test_curl, 'nghttp': test_nghttp, 'h2load': test_load}
    missing = [name for name in tests if not shutil.which(name)]
    h2spec = get_h2spec(folder)
    if len(missing) == len(tests) and not h2spec:
        print('skipped: http.peers2: no client of HTTP/2 is here')
        return 77
    with serving(server) as port:
        for name, test in tests.items():
            if name not in missing:
                test(f'http://127.0.0.1:{port}')
        told = test_h2spec(h2spec, port) if h2spec else 'no h2spec'
    missing += test_client(asks) if asks else ['a client']
    print(f'http2: passed: {told}' + ''.join(f', without {name}' for name in missing))
    return 0


if __name__ == '__main__':
    sys.exit(main())
