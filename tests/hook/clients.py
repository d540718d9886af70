#!/usr/bin/env python3
"""clients.py PROGRAM TASKS CLIENT [EXAMPLE...]: starts the server of a client library on this machine, has TASKS tasks
of one thread use it (clients.c), and looks at the system calls of fewer: none may block but the poller's. Without hooks
some do.
CLIENT: redis, postgres, mariadb, curl (whose server is the first EXAMPLE) or sqlite. The other EXAMPLEs must use the
server, too, and print "answer: hello". Servers are ended by their process ids. Exit 77: a server, strace or library is
missing."""
import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import trace

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ports import kept_port

LIMIT_S, WATCHED_TASKS = 150, 20


class Missing(Exception):
    pass


def find(name, *folders):
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ['PATH'], '/usr/sbin', '/usr/local/sbin']))
    if not found:
        raise Missing(f'{name} is not installed')
    return found


def as_user(name, folder):
    """What runs a server under another name, as some refuse to run as root."""
    if os.getuid() != 0:
        return []
    try:
        user = pwd.getpwnam(name)
    except KeyError as error:
        raise Missing(f'there is no user {name}') from error
    os.chown(folder, user.pw_uid, user.pw_gid)
    return [find('setpriv'), f'--reuid={name}', f'--regid={user.pw_gid}', '--clear-groups']


def redis(folder, port):
    return [find('redis-server'), '--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', folder]


def postgres(folder, port):
    programs = sorted(glob.glob('/usr/lib/postgresql/*/bin'))
    initdb, server, prefix = find('initdb', *programs), find('postgres', *programs), as_user('postgres', folder)
    subprocess.run([*prefix, initdb, '-D', folder + '/data', '-A', 'trust', '-U', 'postgres', '--no-sync'], check=True,
                   stdout=subprocess.DEVNULL, cwd=folder)
    return [*prefix, server, '-D', folder + '/data', '-p', port, '-h', '127.0.0.1', '-k', folder, '-F',
            '-c', 'max_connections=1100', '-c', 'log_min_messages=fatal']


def mariadb(folder, port):
    install, server, prefix = find('mariadb-install-db'), find('mariadbd'), as_user('mysql', folder)
    subprocess.run([*prefix, install, '--no-defaults', '--datadir=' + folder + '/data', '--skip-test-db'], check=True,
                   stdout=subprocess.DEVNULL, cwd=folder)
    return [*prefix, server, '--no-defaults', '--datadir=' + folder + '/data', '--port=' + port,
            '--bind-address=127.0.0.1', '--socket=' + folder + '/socket', '--skip-grant-tables', '--skip-networking=0',
            '--max-connections=1100', '--back-log=1100', '--skip-name-resolve',
            '--log-error=' + folder + '/log']


# PostgreSQL listens before it takes sessions: it replies an error (E) to the begin of one until then.
HELLOS = {'postgres': b'\0\0\0\x17\0\3\0\0user\0postgres\0\0'}


def serves(port, hello):
    with socket.create_connection(('127.0.0.1', int(port)), LIMIT_S) as peer:
        peer.sendall(hello)
        return not hello or peer.recv(1) == b'R'


def await_server(server, port, client):
    for _ in range(600):
        if server.poll() is not None:
            raise AssertionError(f'the server has ended with {server.returncode}')
        with contextlib.suppress(OSError):
            if serves(port, HELLOS.get(client, b'')):
                return
        time.sleep(0.1)
    raise AssertionError('the server does not answer')


def use(program, tasks, client, address, examples, folder):
    status = subprocess.run([program, client, address, tasks], check=False, timeout=LIMIT_S).returncode
    if status == 77:
        raise Missing(f'the library for {client} was not there when this was built')
    assert status == 0, status
    if not trace.available():
        raise Missing('strace is not installed, or may not trace here')
    for watched_tasks, unhooked in (WATCHED_TASKS, []), (1, ['unhooked']):
        used = address + ''.join(['-watched', *unhooked]) if client == 'sqlite' else address
        status, lines = trace.run([program, client, used, str(watched_tasks), *unhooked], LIMIT_S)
        found, _ = trace.blocking(lines, folder if client == 'sqlite' else None)
        assert status == 0, status
        assert bool(found) == bool(unhooked), f'{len(found)} calls could block: {found[:10]}'
    for example in examples:
        answer = subprocess.run([example, address], check=False, timeout=LIMIT_S, capture_output=True, text=True)
        assert answer.returncode == 0 and 'answer: hello' in answer.stdout, answer


def main(program, tasks, client, *examples):
    with tempfile.TemporaryDirectory() as folder:
        if client == 'sqlite':
            use(program, tasks, client, folder + '/database', examples, folder)
            return
        port = str(kept_port())
        make = {'redis': redis, 'postgres': postgres, 'mariadb': mariadb}
        command = [examples[0], port] if client == 'curl' else make[client](folder, port)
        address = f'http://127.0.0.1:{port}/' if client == 'curl' else port
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as server:
            try:
                await_server(server, port, client)
                use(program, tasks, client, address, examples[client == 'curl':], folder)
            finally:
                server.send_signal(signal.SIGINT if client == 'postgres' else signal.SIGTERM)
                try:
                    server.wait(30)
                except subprocess.TimeoutExpired:
                    server.kill()


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
        print(f'{sys.argv[3]}: passed')
    except Missing as missing:
        print(f'skipped: {missing}')
        sys.exit(77)
