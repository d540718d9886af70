#!/usr/bin/env python3
"""tls.py HELLO GET [EMULATOR...]: acorn_tls with other implementations. examples/tls_hello.c serves curl, openssl
s_client and Python, and reloads its certificates; examples/tls_get.c asks openssl s_server and Python. Certificates are
made by openssl. Exit 77: a program that the test needs is not here."""
import contextlib
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

LIMIT_S = 60
ANSWER = re.compile(r'hello (.*): (TLSv1\.[23]), (\S+), (new|resumed)\n')


def openssl(*words, given=b''):
    return subprocess.run(['openssl', *words], input=given, capture_output=True, timeout=LIMIT_S, check=True).stdout


def make_certificate(name, *options, of=None, key=('ec', '-pkeyopt', 'ec_paramgen_curve:P-256')):
    """NAME.pem and NAME.key, by the authority `of` or itself."""
    signer = ['-CA', f'{of}.pem', '-CAkey', f'{of}.key'] if of else []
    openssl('req', '-x509', '-newkey', *key, '-nodes', '-days', '1', '-subj', f'/CN={name}', '-keyout',
            f'{name}.key', '-out', f'{name}.pem', *options, *signer)


@contextlib.contextmanager
def serving(command, *arguments):
    """The port that it says it listens on, and the process."""
    with subprocess.Popen([*command, '0', *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield int(re.fullmatch(r'listening on 127\.0\.0\.1:(\d+)\n', process.stderr.readline())[1]), process
        finally:
            process.kill()


def curl(port, *options):
    result = subprocess.run(['curl', '--silent', '--show-error', '--http1.1', '--max-time', str(LIMIT_S), '--cacert',
                             'root.pem', *options, f'https://localhost:{port}/', f'https://localhost:{port}/'],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


def s_client(port, *options, given=b'GET / HTTP/1.1\r\n\r\n'):
    return openssl('s_client', '-connect', f'localhost:{port}', '-servername', 'localhost', '-CAfile', 'root.pem',
                   '-verify_return_error', '-verify_hostname', 'localhost', '-ign_eof', *options, given=given).decode()


def test_server(hello):
    with serving(hello, 'good.pem', 'good.key') as (port, process):
        for version in ('1.2', '1.3'):
            status, page, problem = curl(port, f'--tlsv{version}', '--tls-max', version)
            answers = ANSWER.findall(page)
            assert status == 0 and [a[:2] for a in answers] == [('somebody', f'TLSv{version}')] * 2, (page, problem)
            second = 'resumed' if version == '1.3' else 'new'  # curl wants no tickets in TLS 1.2
            assert [a[3] for a in answers] == ['new', second], page
            told = s_client(port, f'-tls{version.replace(".", "_")}', '-alpn', 'h2,http/1.1')
            assert ANSWER.search(told)[2] == f'TLSv{version}' and 'ALPN protocol: http/1.1' in told, told
            assert 'Verification: OK' in told and 'Compression: NONE' in told, told
            options = [f'-tls{version.replace(".", "_")}']
            told = s_client(port, *options, '-sess_out', 'session')
            assert ANSWER.search(told)[4] == 'new', told
            told = s_client(port, *options, '-sess_in', 'session')
            assert ANSWER.search(told)[4] == 'resumed' and 'Reused, TLSv' in told, told
        for cipher in ('AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-SHA'):  # without forward secrecy; CBC
            status, _, problem = curl(port, '--tls-max', '1.2', '--ciphers', cipher)
            assert status == 35 and 'alert handshake failure' in problem, (status, problem)
            assert process.stderr.readline().endswith('protocol: no shared cipher\n')
            assert process.stderr.readline().endswith('protocol: no shared cipher\n')
        with_python_client(port)
        reloads(port, process)
    with serving(hello, 'good.pem', 'good.key', 'root.pem') as (port, process):
        status, page, problem = curl(port, '--cert', 'worker.pem', '--key', 'worker.key')
        assert status == 0 and ANSWER.findall(page)[0][0] == 'CN=worker', (page, problem)
        status, page, _ = curl(port)
        assert status != 0 and page == ''
        assert process.stderr.readline().endswith('the peer has no certificate\n')


def shown_to(port, path='good.pem'):
    """Whether the server shows this certificate."""
    context = ssl.create_default_context(cafile='root.pem')
    with socket.create_connection(('127.0.0.1', port), LIMIT_S) as plain:
        with context.wrap_socket(plain, server_hostname='localhost') as client:
            shown = client.getpeercert(binary_form=True)
    with open(path, encoding='ascii') as file:
        return ssl.PEM_cert_to_DER_cert(file.read()) == shown


def reloads(port, process):
    """SIGHUP: once with new files, once with a file that is none."""
    context = ssl.create_default_context(cafile='root.pem')
    assert shown_to(port)
    with socket.create_connection(('127.0.0.1', port), LIMIT_S) as plain:
        with context.wrap_socket(plain, server_hostname='localhost') as client:
            for name in ('good.pem', 'good.key'):
                shutil.copy(name.replace('good', 'renewed'), name)
            process.send_signal(signal.SIGHUP)
            while (told := process.stderr.readline()) != 'reloaded\n':
                assert told
            client.sendall(b'GET / HTTP/1.1\r\n\r\n')
            assert ANSWER.search(client.recv(1000).decode())
    assert shown_to(port, 'renewed.pem')
    shutil.copy('good.pem', 'good.key')
    process.send_signal(signal.SIGHUP)
    while not (told := process.stderr.readline()).startswith('the certificates stay: '):
        assert told
    assert shown_to(port, 'renewed.pem')
    shutil.copy('renewed.key', 'good.key')


def with_python_client(port):
    context = ssl.create_default_context(cafile='root.pem')
    for at_end in (True, False):
        with socket.create_connection(('127.0.0.1', port), LIMIT_S) as plain:
            with context.wrap_socket(plain, server_hostname='localhost') as client:
                client.sendall(b'GET / HTTP/1.1\r\n')
                client.sendall(b'Host: localhost\r\n\r\n')
                got = b''
                while piece := client.recv(7):
                    got += piece
                assert ANSWER.search(got.decode()), got
                if at_end:
                    client.unwrap()  # the server sent close_notify and waits for it


def get(command, *arguments):
    result = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return result.returncode, result.stdout, result.stderr


@contextlib.contextmanager
def s_server(*options):
    with subprocess.Popen(['openssl', 's_server', '-accept', '127.0.0.1:0', '-www', *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            while not (told := re.fullmatch(r'ACCEPT .*:(\d+)\n', line := process.stdout.readline())):
                assert line, 'openssl s_server ended'
            yield told[1]
        finally:
            process.kill()


def test_client(command):
    for options, protocol in ((('-tls1_2',), 'TLSv1.2'), (('-tls1_3',), 'TLSv1.3')):
        with s_server('-cert', 'good.pem', '-key', 'good.key', *options) as port:
            for host in ('localhost', '127.0.0.1'):
                status, page, problem = get(command, host, port, '/', 'root.pem')
                assert status == 0 and f'{protocol}, Cipher is' in page and problem == '', (page, problem)
            assert get(command, 'localhost', port, '/')[2].startswith(
                'aco_tls_connect: localhost: certificate refused, untrusted: ')
    for name, word in (('elsewhere', 'wrong host'), ('alone', 'self-signed'), ('thin', 'weak')):
        with s_server('-cert', f'{name}.pem', '-key', f'{name}.key', '-cipher', 'ALL:@SECLEVEL=0') as port:
            status, page, problem = get(command, 'localhost', port, '/', 'root.pem')
            assert status == 1 and page == '', page
            assert problem.startswith(f'aco_tls_connect: localhost: certificate refused, {word}: '), problem
    with_python_server(command)


def with_python_server(command):
    """An answer of many records; then one that is cut, and what is no TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain('good.pem', 'good.key')
    page = bytes(range(32, 127)) * 10000

    def serve(server):
        for is_whole in (True, False):
            with server.accept()[0] as plain, context.wrap_socket(plain, server_side=True) as tls:
                tls.recv(10000)
                tls.sendall(page)
                if is_whole:
                    tls.unwrap().close()  # else without close_notify
        with server.accept()[0] as plain:
            plain.recv(10000)
            plain.sendall(b'+OK ready\r\n')

    with socket.create_server(('127.0.0.1', 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        port = str(server.getsockname()[1])
        assert get(command, 'localhost', port, '/', 'root.pem') == (0, page.decode(), '')
        status, got, problem = get(command, 'localhost', port, '/', 'root.pem')
        assert status == 1 and got == page.decode(), len(got)
        assert problem == 'aco_tls_read: localhost: the stream ended without close_notify\n', problem
        status, _, problem = get(command, 'localhost', port, '/', 'root.pem')
        assert status == 1 and problem == 'aco_tls_connect: localhost: protocol: wrong version number\n', problem
        thread.join(LIMIT_S)


def main():
    for tool in ('openssl', 'curl'):
        if not shutil.which(tool):
            print(f'tls: skipped: {tool} is not here')
            sys.exit(77)
    hello, client = ([*sys.argv[3:], os.path.abspath(path)] for path in sys.argv[1:3])
    os.environ['OPENSSL_CONF'] = '/dev/null'  # what a system forbids is not the subject
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        names = ('-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1')
        leaf = ('-addext', 'basicConstraints=critical,CA:FALSE')
        make_certificate('root')
        make_certificate('good', *names, *leaf, of='root')
        make_certificate('renewed', *names, *leaf, of='root')
        make_certificate('worker', *leaf, of='root')
        make_certificate('elsewhere', '-addext', 'subjectAltName=DNS:example.org', *leaf, of='root')
        make_certificate('alone', *names, *leaf)
        make_certificate('thin', *names, *leaf, of='root', key=['rsa:1024'])
        test_server(hello)
        test_client(client)
        os.chdir('/')
    print('tls: passed')


if __name__ == '__main__':
    main()
