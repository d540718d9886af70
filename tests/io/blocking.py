#!/usr/bin/env python3
"""blocking.py SERVER: runs the echo server SERVER under strace. A hundred clients send a byte and stall (slow-loris)
while another one gets all its answers. Then the trace must show that no system call could block the scheduler's thread
but the poller's: sockets are non-blocking from the first, and nothing else waits. Another thread, such as the
watchdog's, may wait. The server is ended by its process id. Exit 77: no strace, or it may not trace here."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

LIMIT_S = 60
STALLING, ROUNDS = 100, 200
# What may wait besides calls for descriptors.
WAITS = re.compile(r'(clock_nanosleep|nanosleep|select|pselect6|pause|rt_sigtimedwait|wait4|waitid|flock|'
                   r'futex\([^)]*FUTEX_WAIT)\b')
POLL = re.compile(r'(poll|ppoll)\(.*, (-?\d+|NULL|\{[^}]*\})(, NULL, \d+)?\) ')
NEW_SOCKET = re.compile(r'(socket|accept4?)\(.* = \d+$')


def use(port):
    stalled = [socket.create_connection(('127.0.0.1', port), LIMIT_S) for _ in range(STALLING)]
    for connection in stalled:
        connection.sendall(b's')
    with socket.create_connection(('127.0.0.1', port), LIMIT_S) as fast, fast.makefile('rb') as answers:
        for i in range(ROUNDS):
            message = b'request %d\n' % i
            fast.sendall(message)
            assert answers.readline() == message, i
    for connection in stalled:
        assert connection.recv(1) == b's'
        connection.close()


def check(lines):
    polls = sockets = 0
    for line in lines:
        assert not WAITS.match(line), f'waits: {line}'
        poll = POLL.match(line)
        assert not poll or poll[2] == '0', f'waits: {line}'
        if NEW_SOCKET.match(line):
            sockets += 1
            assert 'SOCK_NONBLOCK' in line, f'can block: {line}'
        polls += line.startswith('epoll_')
    assert polls > 0 and sockets >= STALLING + 2, (polls, sockets)


def main(command):
    if not shutil.which('strace'):
        print('skipped: strace is not installed')
        return 77
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, 'trace')
        with subprocess.Popen(['strace', '-ff', '-o', trace, *command, '0'], stderr=subprocess.PIPE,
                              text=True) as strace:
            first = strace.stderr.readline()
            found = re.fullmatch(r'listening on 127\.0\.0\.1:(\d+)\n', first)
            if not found:
                strace.kill()
                print(f'skipped: {first}')
                return 77
            try:
                use(int(found[1]))
            finally:
                with open(f'/proc/{strace.pid}/task/{strace.pid}/children', encoding='ascii') as children:
                    for child in children.read().split():
                        os.kill(int(child), signal.SIGKILL)
                strace.wait()
        # -ff: a file for each thread, so that no call is cut in two by another thread's.
        threads = [path.read_text('utf-8', 'replace') for path in pathlib.Path(directory).iterdir()]
    [calls] = [text[text.index('\nsocket('):] for text in threads if '\nsocket(' in text]
    check(calls.split('\n')[1:])
    print('io_blocking: passed')
    return 0


sys.exit(main(sys.argv[1:]))
