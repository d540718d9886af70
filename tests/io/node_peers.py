#!/usr/bin/env python3
"""node_peers.py TRAILERS [WEBSOCKET]: acorn_http with Node. TRAILERS is the program of tests/http_trailers.c, WEBSOCKET
that of tests/http2_websocket.c, where HTTP/2 is: trailers of HTTP/1.1, and WebSockets over HTTP/2 (RFC 8441), both
ways. Exit 77: node is not here."""
import contextlib
import os
import shutil
import subprocess
import sys

LIMIT_S = 60

TRAILERS_CLIENT = '''
const http = require('http');
const request = http.request({port: +process.argv[1], method: 'POST'}, (response) => {
    let body = '';
    response.on('data', (part) => body += part);
    response.on('end', () => console.log(`${body}|${response.trailers['x-sum']}|${response.trailers['x-early']}`));
});
request.write('hello');
request.addTrailers({'X-Sum': '17', 'Cookie': 'a=b'});
request.end();
'''

TRAILERS_SERVER = '''
const http = require('http');
const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (part) => body += part);
    request.on('end', () => {
        response.writeHead(200, {Trailer: 'X-Sum, X-Got'});
        response.write(body);
        response.addTrailers({'X-Sum': String(body.length), 'X-Got': request.trailers['x-sum'] || ''});
        response.end();
    });
});
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));
'''

# So that no module is needed.
FRAMES = '''
function frame(opcode, payload, mask) {
    const n = payload.length, head = Buffer.alloc(n < 126 ? 2 : n < 65536 ? 4 : 10);
    head[0] = 0x80 | opcode;
    head[1] = (mask ? 0x80 : 0) | (n < 126 ? n : n < 65536 ? 126 : 127);
    if (head.length == 4)
        head.writeUInt16BE(n, 2);
    if (head.length == 10)
        head.writeBigUInt64BE(BigInt(n), 2);
    const key = Buffer.from([1, 2, 3, 4]);
    return Buffer.concat(mask ? [head, key, payload.map((byte, i) => byte ^ key[i & 3])] : [head, payload]);
}
function parse(buffer) {
    if (buffer.length < 2)
        return null;
    let n = buffer[1] & 127, at = n == 126 ? 4 : n == 127 ? 10 : 2;
    const masked = buffer[1] & 0x80;
    if (buffer.length < at + (masked ? 4 : 0))
        return null;
    n = n == 126 ? buffer.readUInt16BE(2) : n == 127 ? Number(buffer.readBigUInt64BE(2)) : n;
    const key = masked ? buffer.subarray(at, at + 4) : Buffer.alloc(4);
    at += masked ? 4 : 0;
    if (buffer.length < at + n)
        return null;
    const payload = buffer.subarray(at, at + n).map((byte, i) => byte ^ key[i & 3]);
    return {opcode: buffer[0] & 15, payload, rest: buffer.subarray(at + n)};
}
'''

WEBSOCKET_CLIENT = FRAMES + '''
const http2 = require('http2'), assert = require('assert');
const session = http2.connect(`http://127.0.0.1:${process.argv[1]}`);
session.on('remoteSettings', (settings) => {
    assert(settings.enableConnectProtocol);
    const stream = session.request({':method': 'CONNECT', ':protocol': 'websocket', ':path': '/ws',
                                    'sec-websocket-version': '13', 'sec-websocket-protocol': 'a, echo'},
                                   {endStream: false});
    const sizes = [0, 5, 125, 65536, 1000000];
    let came = Buffer.alloc(0), at = 0;
    stream.on('response', (headers) => {
        assert.equal(headers[':status'], 200);
        assert.equal(headers['sec-websocket-protocol'], 'echo');
        stream.write(frame(2, Buffer.alloc(sizes[0], 'x'), true));
    });
    stream.on('data', (part) => {
        came = Buffer.concat([came, part]);
        for (let got; (got = parse(came)); came = got.rest)
            if (got.opcode == 8) {
                assert.equal(got.payload.readUInt16BE(0), 1000);
                console.log('closed');
            } else {
                assert.equal(got.opcode, 2);
                assert(got.payload.equals(Buffer.alloc(sizes[at], 'x')));
                if (++at < sizes.length)
                    stream.write(frame(2, Buffer.alloc(sizes[at], 'x'), true));
                else
                    stream.end(frame(8, Buffer.from([3, 232]), true));
            }
    });
    stream.on('close', () => {
        assert.equal(stream.rstCode, 0);
        session.close();
    });
});
'''

WEBSOCKET_SERVER = FRAMES + '''
const http2 = require('http2');
const server = http2.createServer({settings: {enableConnectProtocol: true}});
server.on('stream', (stream, headers) => {
    if (headers[':method'] != 'CONNECT') {
        stream.respond({':status': 200});
        stream.end('hello');
        return;
    }
    if (headers[':protocol'] != 'websocket' || headers['sec-websocket-key'] || headers['upgrade']) {
        stream.respond({':status': 400}, {endStream: true});
        return;
    }
    stream.respond({':status': 200, 'sec-websocket-protocol': 'echo'});
    let came = Buffer.alloc(0);
    stream.on('data', (part) => {
        came = Buffer.concat([came, part]);
        for (let got; (got = parse(came)); came = got.rest)
            if (got.opcode == 8)
                stream.end(frame(8, got.payload, false));
            else
                stream.write(frame(got.opcode, got.payload, false));
    });
});
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));
'''


@contextlib.contextmanager
def serving(*words):
    """The address that it says it listens on."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def run(*words):
    result = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert result.returncode == 0, (words[0], result.stdout, result.stderr)
    return result.stdout


def port_of(address):
    return address.rsplit(':', 1)[1]


def main():
    node = shutil.which('node')
    if not node:
        print('node: skipped: it is not here')
        sys.exit(77)
    trailers = os.path.abspath(sys.argv[1])
    with serving(trailers, 'serve') as address:
        assert run(node, '-e', TRAILERS_CLIENT, port_of(address)) == 'hello|17|e\n'
    with serving(node, '-e', TRAILERS_SERVER) as address:
        assert run(trailers, f'http://{address}/').startswith('hello|5|17\n' * 2)
    if len(sys.argv) > 2:
        websocket = os.path.abspath(sys.argv[2])
        with serving(websocket, 'serve') as address:
            assert run(node, '-e', WEBSOCKET_CLIENT, port_of(address)) == 'closed\n'
        with serving(node, '-e', WEBSOCKET_SERVER) as address:
            run(websocket, port_of(address))
    print('node: passed')


if __name__ == '__main__':
    main()
