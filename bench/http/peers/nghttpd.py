#!/usr/bin/env python3
"""The server of bench-http by nghttpd: nghttpd.py PORT ROOT [CHAIN KEY]; see ../server_acorn.c. HTTP/2 alone; what it
replies are files of ROOT. It cannot take a listener over, so a child waits until it listens, and says so."""
import os
import socket
import sys
import time

LIMIT_S = 10

wanted, root, *pem = sys.argv[1:]
with open(os.path.join(root, 'hello'), 'w', encoding='ascii') as file:
    file.write('Hello, world')
door = socket.socket()  # the child keeps it, so that nobody else gets the port before nghttpd listens
door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
door.bind(('127.0.0.1', int(wanted)))
port = door.getsockname()[1]
command = ['nghttpd', '-a', '127.0.0.1', '-d', root, '-n', os.environ.get('THREADS', '1'),
           *(() if pem else ('--no-tls',)), str(port), *reversed(pem)]
if os.fork():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execvp(command[0], command)
until = time.monotonic() + LIMIT_S
while time.monotonic() < until:
    with socket.socket() as peer:
        if peer.connect_ex(('127.0.0.1', port)) == 0:
            break
    time.sleep(0.01)
print(f'listening on 127.0.0.1:{port}', file=sys.stderr, flush=True)
