#!/usr/bin/env python3
"""examples.py NAME PROGRAM: runs the example examples/io_NAME.c on this machine, uses it as its first comment says, and
ends it by its process id. Exit 77: a program that the test needs is not here."""
import contextlib
import datetime
import re
import socket
import subprocess
import sys

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


if __name__ == '__main__':
    globals()[sys.argv[1]](sys.argv[2:])
    print(f'examples: {sys.argv[1]}: passed')
