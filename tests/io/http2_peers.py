#!/usr/bin/env python3
"""http2_peers.py SERVER FOLDER: HTTP/2 of acorn_http with other implementations: curl, nghttp and h2load ask SERVER
(tests/http2_server.c), and h2spec tests it, if Go can get it: the module is kept in FOLDER. Exit 77: there is none of
them."""
import contextlib
import os
import re
import shutil
import subprocess
import sys

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
    told = subprocess.run([h2spec, '-h', '127.0.0.1', '-p', str(port), '--timeout', '2'], capture_output=True,
                          text=True, timeout=LIMIT_S, check=False).stdout
    failed = set(re.findall(r'× \d+: (.*)', told))
    count = re.search(r'(\d+) tests, (\d+) passed', told)
    assert count and int(count[1]) >= 145, told
    assert failed <= set(KNOWN), told
    return f'{count[2]} of {count[1]} cases'


def main():
    server, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
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
    print(f'http2: passed: {told}' + ''.join(f', without {name}' for name in missing))
    return 0


if __name__ == '__main__':
    sys.exit(main())
