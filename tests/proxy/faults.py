#!/usr/bin/env python3
"""faults.py PROXY BACKEND [REQUESTS [SECONDS]]: the proxy of examples/proxy before three backends, two of which fail in
every way that backend.c knows, are killed and started again, while clients send so many requests, or for so many
seconds. Then it checks:
  - an answer that is complete is the right one, and a backend has logged its request;
  - no POST was logged twice: it is repeated only if it was not sent;
  - a GET is always answered, unless its answer breaks off in the middle, as the third backend is well;
  - the proxy has counted the same, has nothing left in flight, and finds all backends up in the end;
  - its memory has not grown, if there were enough requests.
Other steps: backends that stall, the status page, and a shutdown with requests under way."""
import asyncio
import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_S = 120
CLIENTS, EACH = 32, 150  # a fault each so many requests
ENOUGH = 5000  # requests
SAMPLES, GROWTH_MIB = 3, 2  # of the memory, in a quarter; what it may grow from the second quarter to the last one
MANY, EACH_LONG, EACH_CHUNKED = 20000, 64, 7  # as backend.c
KINDS = ('die', 'garbage', 'close', 'cut', 'cut_chunked', 'die_late', 'sick')
ALWAYS_WELL = 2  # this backend


class Broken(Exception):
    """The connection ended before the answer was complete. `has_begun`: after its head."""
    def __init__(self, has_begun):
        super().__init__('has begun' if has_begun else 'nothing came')
        self.has_begun = has_begun


class Connection:
    """A client's, kept open as long as the server wants."""
    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def ask(self, method, target, body=b''):
        """The status, the headers in small letters, and the body."""
        if not self.writer:
            self.reader, self.writer = await asyncio.open_connection('127.0.0.1', self.port)
        self.writer.write(b'%s %s HTTP/1.1\r\nHost: test\r\n%s\r\n%s' % (
            method.encode(), target.encode(), b'Content-Length: %d\r\n' % len(body) if method == 'POST' else b'', body))
        head = b''
        try:
            head = await self.reader.readuntil(b'\r\n\r\n')
            return await self.finish(*head.decode().split('\r\n'))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            self.close()
            raise Broken(bool(head)) from error

    async def finish(self, line, *lines):
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(':') for line in lines if line)}
        if 'content-length' in headers:
            body = await self.reader.readexactly(int(headers['content-length']))
        else:
            assert headers['transfer-encoding'] == 'chunked', headers
            body = b''
            while size := int(await self.reader.readuntil(b'\r\n'), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readexactly(2)
        if headers.get('connection') == 'close':
            self.close()
        return int(line.split()[1]), headers, body

    def close(self):
        if self.writer:
            self.writer.close()
        self.writer = None


async def ask_once(port, target):
    connection = Connection(port)
    try:
        return await connection.ask('GET', target)
    finally:
        connection.close()


class Process:
    """A program that says on stderr where it listens."""
    def __init__(self, command, lines=1):
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = [self.process.stderr.readline() for _ in range(lines)]
        self.ports = [int(re.search(r' on 127\.0\.0\.1:(\d+)\n', line)[1]) for line in said]
        self.port, self.said = self.ports[0], []
        self.reading = threading.Thread(target=self.read, daemon=True)  # else it waits once the pipe is full
        self.reading.start()

    def read(self):
        for line in self.process.stderr:
            self.said = [*self.said[-9:], line]

    def wait(self):
        """Its exit status and its last words."""
        status = self.process.wait(LIMIT_S)
        self.reading.join()
        self.process.stderr.close()
        return status, self.said

    def kill(self):
        self.process.kill()
        self.wait()


class Backend:
    def __init__(self, program, log):
        self.program, self.log = program, log
        self.process = Process([program, '0', log])
        self.port = self.process.port

    def start_again(self):
        """kill -9, if it still runs."""
        self.process.kill()
        self.process = Process([self.program, str(self.port), self.log])

    async def fail(self, kind, number):
        """Has the next requests fail; it may have died of a fault before."""
        while True:
            try:
                status, *_ = await ask_once(self.port, f'/fault?kind={kind}&count={number}')
                assert status == 200, (kind, status)
                return
            except (ConnectionError, Broken):
                self.start_again()


async def wait_for(what, condition):
    until = time.monotonic() + LIMIT_S
    while not await condition():
        assert time.monotonic() < until, f'{what}: not within {LIMIT_S} s'
        await asyncio.sleep(0.01)


async def metrics(proxy):
    _, headers, body = await ask_once(proxy.ports[1], '/metrics')
    assert headers['content-type'].startswith('text/plain'), headers
    found = {}
    for line in body.decode().splitlines():
        if not line.startswith('# '):
            name, number = re.fullmatch(r'([a-z_]+(?:\{[a-z]+="[^"]*"\})?) ([\d.]+)', line).groups()
            found[name] = float(number)
    return found


def total(found, name):
    return sum(number for key, number in found.items() if key.partition('{')[0] == name)


# ---- Many requests ----

class Load:
    def __init__(self, proxy, backends, requests, seconds):
        self.proxy, self.backends, self.requests = proxy, backends, requests
        self.until = time.monotonic() + seconds if seconds else None
        self.next_id, self.counts = 1, collections.Counter()
        self.acknowledged, self.memory = {'GET': set(), 'POST': set()}, []

    def is_over(self):
        return time.monotonic() > self.until if self.until else self.next_id > self.requests

    async def client(self):
        connection = Connection(self.proxy.port)
        while not self.is_over():
            number, self.next_id = self.next_id, self.next_id + 1
            method = 'POST' if number % 3 == 0 else 'GET'
            try:
                answer = await connection.ask(method, f'/count?id={number}',
                                              str(number).encode() if method == 'POST' else b'')
            except Broken as broken:
                assert broken.has_begun, (method, number)
                self.counts['broken'] += 1
                continue
            self.check(method, number, *answer)
        connection.close()

    def check(self, method, number, status, headers, body):
        self.counts[status] += 1
        if status == 200:
            times = MANY if number % EACH_LONG == 0 else 1
            assert body == b'%d:' % number * times, (method, number, headers, body[:100])
            self.acknowledged[method].add(number)
        else:
            assert method == 'POST' and status == 502, (method, number, status, body)

    async def injure(self):
        """One fault after the other, each after some requests; each backend is well again before its next one."""
        turn = 0
        while not self.is_over():
            after = self.next_id + EACH
            while self.next_id < after and not self.is_over():
                await asyncio.sleep(0.005)
            backend, kind = self.backends[turn % ALWAYS_WELL], KINDS[turn % len(KINDS)]
            if turn % 5 == 4:
                backend.start_again()
            await backend.fail(kind, 1 + turn % 4)
            turn += 1
            if turn % 20 == 0:
                self.memory.append((await metrics(self.proxy))['proxy_resident_bytes'])

    async def run(self):
        await asyncio.gather(self.injure(), *(self.client() for _ in range(CLIENTS)))
        self.requests = self.next_id - 1
        for backend in self.backends[:ALWAYS_WELL]:
            backend.start_again()

    def check_logs(self):
        logged = collections.Counter()
        for backend in self.backends:
            with open(backend.log, encoding='ascii') as log:
                logged.update(log.read().splitlines())
        for method, numbers in self.acknowledged.items():
            lost = [number for number in numbers if f'{method} {number}' not in logged]
            assert not lost, f'{len(lost)} of {method} were acknowledged and lost: {lost[:10]}'
        twice = [line for line, times in logged.items() if times > 1 and line.startswith('POST')]
        assert not twice, f'repeated: {twice[:10]}'

    def check_memory(self):
        """The last quarter of the run beside the second one."""
        quarter = len(self.memory) // 4
        mib = [round(number / 2 ** 20, 1) for number in self.memory]
        print(f'faults: memory of the proxy, MiB: {mib[:3]} ... {mib[-3:]}')
        if quarter >= SAMPLES:
            early, late = mib[quarter:2 * quarter], mib[-quarter:]
            assert max(late) <= max(early) + GROWTH_MIB, (early, late)

    async def check_numbers(self):
        async def all_is_well():
            found = await metrics(self.proxy)
            return total(found, 'proxy_backend_up') == len(self.backends) and found['proxy_in_flight'] == 0

        await wait_for('all backends are up', all_is_well)
        found = await metrics(self.proxy)
        assert total(found, 'proxy_answers_total') == self.requests, (found, self.requests)
        assert found['proxy_request_seconds_count'] == self.requests, found
        assert found['proxy_aborted_total'] == self.counts['broken'], (found, self.counts)
        assert total(found, 'proxy_backend_in_flight') == 0, found
        assert self.counts[200] + self.counts[502] + self.counts['broken'] == self.requests, self.counts
        if self.requests >= ENOUGH:  # to meet every kind of fault
            assert found['proxy_retries_total'] > 0 and found['proxy_aborted_total'] > 0, found
        print(f'faults: {self.requests} requests: {dict(self.counts)}, retries: {found["proxy_retries_total"]:.0f}')


# ---- The other steps ----

async def asks_all(proxy, backends):
    """Two backends fail one after the other, and a GET goes to the third."""
    for backend in backends[:ALWAYS_WELL]:
        await backend.fail('close', 1000)
    for _ in range(10):
        status, _, body = await ask_once(proxy.port, '/count?id=1')
        assert (status, body) == (200, b'1:'), (status, body)
    for backend in backends[:ALWAYS_WELL]:
        await backend.fail('close', 0)


async def stalls(program, backends):
    """A backend that does not answer costs its time, and a GET goes to the other one then."""
    stalled, well = backends[0], backends[ALWAYS_WELL]
    await stalled.fail('stall', 1000)
    proxy = Process([program, '-l', '0', '-s', '0', '-T', '500', '-c', '60000', f'127.0.0.1:{stalled.port}'], 2)
    assert (await ask_once(proxy.port, '/count?id=1'))[0] == 504
    proxy.kill()
    proxy = Process([program, '-l', '0', '-s', '0', '-T', '500', '-c', '60000', f'127.0.0.1:{stalled.port}',
                     f'127.0.0.1:{well.port}'], 2)

    async def both_were_asked():
        status, *_ = await ask_once(proxy.port, '/count?id=1')
        assert status in (200, 504), status  # 504: the other one was slow, too
        found = await metrics(proxy)
        return status == 200 and found['proxy_retries_total'] > 0

    await wait_for('an answer by the other backend', both_were_asked)
    proxy.kill()


async def shows_itself(proxy, backends):
    async def has_all():
        status, headers, body = await ask_once(proxy.ports[1], '/')
        assert status == 200 and headers['content-type'] == 'text/html; charset=utf-8', headers
        return all(f'<td>127.0.0.1:{backend.port}<td class=up>up'.encode() in body for backend in backends)

    await wait_for('all backends are up on the page', has_all)
    assert (await ask_once(proxy.ports[1], '/else'))[0] == 404


async def notices_sickness(proxy, backend):
    """Health checks that fail take a backend out, and one that succeeds puts it back."""
    name = f'proxy_backend_up{{backend="127.0.0.1:{backend.port}"}}'

    async def is_up():
        return (await metrics(proxy))[name] == 1

    async def is_down():
        return not await is_up()

    await backend.fail('sick', 2)
    assert (await ask_once(backend.port, '/count?id=0'))[0] == 200
    await wait_for('a sick backend is down', is_down)
    await backend.fail('sick', 0)
    await wait_for('it is up again', is_up)


async def shuts_down(proxy, backends):
    """SIGTERM: no connection is accepted any more, and the requests under way are answered."""
    waiting = [asyncio.ensure_future(ask_once(proxy.port, '/hold')) for _ in range(8)]

    async def all_wait():
        return sum([int((await ask_once(backend.port, '/held'))[2]) for backend in backends]) == len(waiting)

    async def is_refused():
        try:
            _, writer = await asyncio.open_connection('127.0.0.1', proxy.port)
        except ConnectionError:
            return True
        writer.close()
        return False

    await wait_for('the requests wait', all_wait)
    proxy.process.send_signal(signal.SIGTERM)
    await wait_for('connections are refused', is_refused)
    for backend in backends:
        await ask_once(backend.port, '/release')
    for status, headers, body in await asyncio.gather(*waiting):
        assert (status, headers['connection'], body) == (200, 'close', b'released'), (status, headers, body)
    status, said = proxy.wait()
    assert status == 0 and said[-1] == 'ended\n', (status, said)


async def passes_fields_on(program):
    """No field that is empty or comes twice hides a later one, in requests and in answers."""
    async def answer(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b'\r\n\r\n'):
                writer.write(b'HTTP/1.1 200 OK\r\nConnection:\r\nConnection: X-Drop\r\nX-Drop: 1\r\n'
                             b'Content-Length: %d\r\n\r\n%s' % (len(head), head))
        writer.close()

    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    proxy = Process([program, '-l', '0', '-s', '0', '-T', '5000', '-c', '60000', f'127.0.0.1:{port}'], 2)
    try:
        for fields, addresses in (('X-Forwarded-For:\r\nX-Forwarded-For: 203.0.113.9\r\n', '203.0.113.9, 127.0.0.1'),
                                  ('X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 203.0.113.9\r\n',
                                   '198.51.100.1, 203.0.113.9, 127.0.0.1'),
                                  ('X:\r\nX-Forwarded-For: 203.0.113.9\r\n', '203.0.113.9, 127.0.0.1'),
                                  ('Connection:\r\nConnection: X-Hop\r\nX-Hop: secret\r\n', '127.0.0.1'),
                                  ('Connection: keep-alive\r\nConnection: X-Hop\r\nX-Hop: secret\r\n', '127.0.0.1')):
            connection = Connection(proxy.port)
            _, headers, body = await connection.ask('GET', '/ HTTP/1.1\r\n' + fields + 'X-Rest:')
            connection.close()
            assert f'\r\nX-Forwarded-For: {addresses}\r\n' in body.decode(), (fields, body)
            assert b'X-Hop' not in body and 'x-drop' not in headers, (fields, body, headers)
    finally:
        proxy.kill()
        server.close()


async def test(program, backend_program, requests, seconds, directory):
    with contextlib.ExitStack() as stack:
        backends = []
        for number in range(ALWAYS_WELL + 1):
            backends.append(Backend(backend_program, os.path.join(directory, f'log{number}')))
            stack.callback(lambda backend: backend.process.kill(), backends[-1])
        proxy = Process([program, '-l', '0', '-s', '0', '-t', '2', '-c', '50', '-T', '60000', '-d', '60000',
                         *(f'127.0.0.1:{backend.port}' for backend in backends)], 2)
        stack.callback(proxy.kill)
        load = Load(proxy, backends, requests, seconds)
        await load.run()
        load.check_logs()
        load.check_memory()
        await load.check_numbers()
        await asks_all(proxy, backends)
        await notices_sickness(proxy, backends[0])
        await shows_itself(proxy, backends)
        await stalls(program, backends)
        await passes_fields_on(program)
        backends[0].start_again()
        await shuts_down(proxy, backends)


def main(program, backend_program, requests='20000', seconds='0'):
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(test(program, backend_program, int(requests), float(seconds), directory))
    print('faults: passed')


main(*sys.argv[1:])
