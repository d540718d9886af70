#!/usr/bin/env python3
"""websocket_peers.py ECHO CHAT CLIENT [EMULATOR...]: aco/websocket.h with clients and a server that others wrote: the
Python modules websockets and websocket (Debian: python3-websockets, python3-websocket). ECHO is the program of
tests/http_websocket.c, CHAT that of examples/websocket_chat.c, CLIENT that of tests/http_websocket_client.c. Exit 77: a
module is not here."""
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import urllib.request

LIMIT_S = 60
sys.path.append('/usr/lib/python3/dist-packages')  # Debian's, for another python3 than Debian's


@contextlib.contextmanager
def serving(command, *arguments):
    """The port that it says it listens on."""
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield int(re.fullmatch(r'listening on 127\.0\.0\.1:(\d+)\n', process.stderr.readline())[1])
            assert process.poll() is None, 'the server has ended'
        finally:
            process.kill()


async def echo(url):
    async with websockets.connect(f'{url}/echo', max_size=None, subprotocols=['superchat', 'other']) as client:
        assert client.subprotocol == 'superchat'
        for message in ('', 'hällo \U0001f333', b'', bytes(range(256)), 'x' * 65535, b'y' * 65536, b'z' * 1000000):
            await client.send(message)
            assert await client.recv() == message, message[:20]
        await client.send(['a', 'bc', 'd' * 5000])  # fragments
        assert await client.recv() == 'abc' + 'd' * 5000
        for payload in (b'', b'p' * 125):
            await asyncio.wait_for(await client.ping(payload), LIMIT_S)
        await client.close(3001, 'enough')
        assert client.close_code == 3001, client.close_code
    for bad, code in ((b'x' * (1 << 20) + b'x', 1009),):
        async with websockets.connect(f'{url}/echo') as client:
            with contextlib.suppress(websockets.exceptions.ConnectionClosed):
                await client.send(bad)
            await asyncio.wait_for(client.wait_closed(), LIMIT_S)
            assert client.close_code == code, client.close_code
    async with websockets.connect(f'{url}/ask') as client:
        await client.send('4000')
        await asyncio.wait_for(client.wait_closed(), LIMIT_S)
        assert (client.close_code, client.close_reason) == (4000, 'because')
    try:
        async with websockets.connect(f'{url}/echo', origin='http://evil.test'):
            assert False, 'a foreign page was let in'
    except websockets.exceptions.InvalidStatusCode as refusal:
        assert refusal.status_code == 403


async def echo_compressed(url):
    """By all that two sides may agree on."""
    from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
    text = ''.join(f'{i * i % 977} ' for i in range(30000))
    for path in 'deflate', 'windows':
        for offer in ({}, {'server_no_context_takeover': True}, {'client_no_context_takeover': True},
                      {'server_max_window_bits': 9}, {'client_max_window_bits': 10}):
            async with websockets.connect(f'{url}/{path}', compression=None,
                                          extensions=[ClientPerMessageDeflateFactory(**offer)]) as client:
                assert client.extensions, 'the library was built without zlib'
                for message in ('', 'x', 'y' * 70, text, text.encode(), text[:5000]) * 2:
                    await client.send(message)
                    assert await client.recv() == message
                await client.send([text[:1000], text[1000:2000]])
                assert await client.recv() == text[:2000]


async def serve_client(program):
    """The library's client, with a server that compresses, and one that does not."""
    async def handler(client):
        async for message in client:
            await client.send(message)
    for compression in 'deflate', None:
        async with websockets.serve(handler, '127.0.0.1', 0, max_size=None, subprotocols=['echo'],
                                    compression=compression) as server:
            port = server.sockets[0].getsockname()[1]
            process = await asyncio.create_subprocess_exec(*program, f'ws://127.0.0.1:{port}/')
            assert await process.wait() == 0


async def echo_many(url):
    async def one(number):
        async with websockets.connect(f'{url}/echo') as client:
            for i in range(50):
                await client.send(f'{number} {i}')
                assert await client.recv() == f'{number} {i}'
    await asyncio.gather(*(one(number) for number in range(100)))


def echo_frames(url):
    """By a client that sends single frames."""
    client = websocket.create_connection(f'{url}/echo', timeout=LIMIT_S)
    client.send_frame(websocket.ABNF.create_frame('he', websocket.ABNF.OPCODE_TEXT, 0))
    client.ping('between')
    client.send_frame(websocket.ABNF.create_frame('llo', websocket.ABNF.OPCODE_CONT, 1))
    assert client.recv_frame().opcode == websocket.ABNF.OPCODE_PONG
    assert client.recv() == 'hello'
    client.send_frame(websocket.ABNF.create_frame(b'\xff', websocket.ABNF.OPCODE_TEXT, 1))
    opcode, data = client.recv_data()
    assert opcode == websocket.ABNF.OPCODE_CLOSE and int.from_bytes(data[:2], 'big') == 1007, data
    client.close()


async def chat(url, page):
    assert b'new WebSocket' in page
    async with websockets.connect(f'{url}/chat', origin=url.replace('ws', 'http')) as first:
        await first.send('alone')
        assert await first.recv() == 'alone'
        async with websockets.connect(f'{url}/chat') as second:
            await second.send('both')
            assert await asyncio.gather(first.recv(), second.recv()) == ['both', 'both']
        await first.send('again')
        assert await first.recv() == 'again'


def main():
    echo_program, chat_program, client = ([*sys.argv[4:], os.path.abspath(path)] for path in sys.argv[1:4])
    with serving(echo_program, 'serve') as port:
        asyncio.run(asyncio.wait_for(echo(f'ws://127.0.0.1:{port}'), LIMIT_S))
        asyncio.run(asyncio.wait_for(echo_many(f'ws://127.0.0.1:{port}'), LIMIT_S))
        echo_frames(f'ws://127.0.0.1:{port}')
        asyncio.run(asyncio.wait_for(echo_compressed(f'ws://127.0.0.1:{port}'), LIMIT_S))
    asyncio.run(asyncio.wait_for(serve_client(client), LIMIT_S))
    with serving(chat_program, '0') as port:
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/', timeout=LIMIT_S) as answer:
            page = answer.read()
        asyncio.run(asyncio.wait_for(chat(f'ws://127.0.0.1:{port}', page), LIMIT_S))
    print('websocket: passed')


if __name__ == '__main__':
    try:
        import websocket
        import websockets
    except ImportError as missing:
        print(f'websocket: skipped: {missing}')
        sys.exit(77)
    main()
