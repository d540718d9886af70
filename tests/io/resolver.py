#!/usr/bin/env python3
"""resolver.py PROGRAM...: runs tests/io_resolver.c where the system's resolver asks the name server below. A mount
namespace has its own /etc/hosts, /etc/nsswitch.conf and /etc/resolv.conf, a network namespace nothing but the loopback.
Exit 77: this user may not make namespaces here."""
import fcntl
import os
import pathlib
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading

SERVER = '127.0.0.53'
FILES = {'hosts': '127.0.0.9 hosts.test\n', 'nsswitch.conf': 'hosts: files dns\n',
         'resolv.conf': f'nameserver {SERVER}\nsearch test\noptions timeout:1 attempts:1\n'}
A, CNAME, PTR, AAAA = 1, 5, 12, 28
SERVFAIL, NXDOMAIN = 2, 3
TRUNCATED = 0x200
LARGE = [(A, bytes([127, 1, 0, i])) for i in range(1, 101)]
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def encoded(name):
    return b''.join(bytes([len(label)]) + label.encode() for label in name.split('.')) + b'\0'


NAMES = {
    'both.test': [(A, bytes([127, 0, 0, 1])), (AAAA, bytes(15) + b'\1')],
    'four.test': [(A, bytes([127, 0, 0, 2]))],
    'alias.test': [(CNAME, encoded('four.test')), (A, bytes([127, 0, 0, 2]))],
    'large.test': LARGE,
    '2.0.0.127.in-addr.arpa': [(PTR, encoded('four.test'))],
}


def answer(query, is_datagram):
    """The answer to a query with one question; None: there is none."""
    end, labels = 12, []
    while query[end]:
        labels.append(query[end + 1:end + 1 + query[end]].decode())
        end += 1 + query[end]
    name, question = '.'.join(labels).lower(), query[12:end + 5]
    kind, = struct.unpack('!H', query[end + 1:end + 3])
    if name in ('silent.test', 'never.test'):
        return None
    flags = 0x8180 | (SERVFAIL if name == 'refused.test' else NXDOMAIN if name not in NAMES else 0)
    records = [record for record in NAMES.get(name, ()) if record[0] in (kind, CNAME)]
    if is_datagram and len(records) > 20:
        flags, records = flags | TRUNCATED, []
    owner = encoded('four.test') if len(records) > 1 and records[0][0] == CNAME else b'\xc0\x0c'
    body = b''.join((b'\xc0\x0c' if what == CNAME else owner) + struct.pack('!HHIH', what, 1, 60, len(data)) + data
                    for what, data in records)
    return query[:2] + struct.pack('!HHHHH', flags, 1, len(records), 0, 0) + question + body


class Datagrams(socketserver.BaseRequestHandler):
    def handle(self):
        query, server = self.request
        reply = answer(query, True)
        if reply:
            server.sendto(reply, self.client_address)


class Streams(socketserver.StreamRequestHandler):
    def handle(self):
        while len(head := self.rfile.read(2)) == 2:
            reply = answer(self.rfile.read(*struct.unpack('!H', head)), False)
            if reply:
                self.wfile.write(struct.pack('!H', len(reply)) + reply)


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack('16sh14x', b'lo', 0)
        name, flags = struct.unpack('16sh14x', fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack('16sh14x', name, flags | IFF_UP))


def replace_files(directory):
    for name, text in FILES.items():
        path = pathlib.Path(directory, name)
        path.write_text(text, 'ascii')
        if pathlib.Path('/etc', name).exists():  # musl has no nsswitch.conf
            subprocess.run(['mount', '--bind', path, f'/etc/{name}'], check=True)
    if os.path.isdir('/var/run/nscd'):  # its cache would answer
        subprocess.run(['mount', '-t', 'tmpfs', 'none', '/var/run/nscd'], check=True)


def inside(command):
    raise_loopback()
    socketserver.TCPServer.allow_reuse_address = True
    servers = [socketserver.ThreadingUDPServer((SERVER, 53), Datagrams),
               socketserver.ThreadingTCPServer((SERVER, 53), Streams)]
    for server in servers:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        replace_files(directory)
        return subprocess.run(command, check=False).returncode


def main(command):
    if command[0] == '--inside':
        return inside(command[1:])
    as_root = [] if os.geteuid() == 0 else ['--map-root-user']
    unshare = ['unshare', *as_root, '--mount', '--net']
    if not shutil.which('unshare') or subprocess.run([*unshare, 'true'], capture_output=True, check=False).returncode:
        print('skipped: no namespaces for this user')
        return 77
    return subprocess.run([*unshare, sys.executable, __file__, '--inside', *command], check=False).returncode


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
