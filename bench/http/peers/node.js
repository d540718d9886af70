#!/usr/bin/env node
// The server of bench-http by Node, without files: node.js PORT ROOT [CHAIN KEY]; see ../server_acorn.c.
const cluster = require('cluster'), fs = require('fs'), http = require('http'), https = require('https');

const replies = {
    '/hello': ['text/plain', Buffer.from('Hello, world')],
    '/4k': ['application/octet-stream', Buffer.alloc(4096)],
    '/1m': ['application/octet-stream', Buffer.alloc(1 << 20)],
};

function answer(request, response) {
    const [type, body] = replies[request.url] ?? ['text/plain', Buffer.from('not found')];
    response.writeHead(request.url in replies ? 200 : 404, {'Content-Type': type, 'Content-Length': body.length});
    response.end(body);
}

const [port, , chain, key] = process.argv.slice(2);
const threads = Number(process.env.THREADS ?? 1);

if (threads > 1 && cluster.isPrimary) {
    let told = false;
    for (let i = 0; i < threads; i++)
        cluster.fork();
    cluster.on('listening', (worker, address) => {
        if (!told)
            console.error(`listening on 127.0.0.1:${address.port}`);
        told = true;
    });
} else {
    const server = chain
        ? https.createServer({cert: fs.readFileSync(chain), key: fs.readFileSync(key)}, answer)
        : http.createServer(answer);
    server.listen(Number(port), '127.0.0.1', 65535, () => {
        if (cluster.isPrimary)
            console.error(`listening on 127.0.0.1:${server.address().port}`);
    });
}
