#!/usr/bin/env python3
"""echo_client.py SERVER [CONNECTIONS]: starts the echo server SERVER on a free port of this machine, has `CONNECTIONS`
connections open at once by asyncio, each of which gets back what it sends, twice, and ends by half-closing; half of
them vanish with a reset. Then it checks that the server closed all its descriptors, and that socat (if it is here)
gets its bytes back. The server is ended by its process id. Exit 77: this machine allows too few descriptors."""
import asyncio
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time

LIMIT_S = 100
RESET = struct.pack('ii', 1, 0)  # SO_LINGER: close() resets


async def talk(port, number, start, all_are_open):
    message = f'connection {number}\n'.encode() * (1 + number % 7)
    async with start:
        reader, writer = await asyncio.open_connection('127.0.0.1', port)
    await all_are_open()
    for _ in range(2):
        writer.write(message)
        assert await reader.readexactly(len(message)) == message, number
    if number % 2:
        writer.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    else:
        writer.write_eof()
        assert await reader.read() == b'', number
    writer.close()
    return 1


async def talk_all(port, count):
    opened, event = 0, asyncio.Event()

    async def all_are_open():
        nonlocal opened
        opened += 1
        if opened == count:
            event.set()
        await event.wait()

    start = asyncio.Semaphore(500)
    done = await asyncio.gather(*(talk(port, n, start, all_are_open) for n in range(count)))
    return sum(done)


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def wait_for(what, condition):
    until = time.monotonic() + 20
    while not condition():
        if time.monotonic() > until:
            sys.exit(f'echo_client: {what}: not within 20 s')
        time.sleep(0.01)


def by_socat(port):
    if not shutil.which('socat'):
        print('echo_client: socat is not here')
        return
    data = bytes(range(256)) * 4000  # more than both sockets buffer
    ended = subprocess.run(['socat', '-t10', '-', f'TCP:127.0.0.1:{port}'], input=data, capture_output=True, timeout=30,
                           check=False)
    assert ended.returncode == 0 and ended.stdout == data, \
        f'socat: {ended.returncode}, {ended.stderr}, {len(ended.stdout)} of {len(data)} bytes came back'


def main():
    command, count = sys.argv[1:-1], int(sys.argv[-1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < count + 100:
        print(f'echo_client: skipped: {most} descriptors are allowed')
        return 77
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with subprocess.Popen([*command, '0'], stderr=subprocess.PIPE, text=True) as server:
        try:
            line = server.stderr.readline()
            port = int(re.fullmatch(r'listening on 127\.0\.0\.1:(\d+)\n', line)[1])
            before = descriptors(server.pid)
            talked = asyncio.run(asyncio.wait_for(talk_all(port, count), LIMIT_S))
            assert talked == count
            wait_for('the server closes its descriptors', lambda: descriptors(server.pid) == before)
            by_socat(port)
            wait_for('the server closes its descriptors', lambda: descriptors(server.pid) == before)
            assert server.poll() is None, 'the server has ended'
            with open(f'/proc/{server.pid}/status', encoding='ascii') as status:
                peak = re.search(r'VmHWM:\s*(\d+)', status.read())[1]
            print(f'echo_client: {count} connections at once, {int(peak)} kB at most: passed')
        finally:
            server.terminate()
    return 0


if __name__ == '__main__':
    sys.exit(main())
