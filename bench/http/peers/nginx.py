#!/usr/bin/env python3
"""The server of bench-http by nginx: nginx.py PORT ROOT [CHAIN KEY]; see ../server_acorn.c. With HTTP2 it speaks
that alone. It listens, writes a
configuration into ROOT, and becomes nginx, which takes the listener over (its variable NGINX, meant for upgrades). What
nginx cannot reply from memory, it replies from files of ROOT."""
import os
import shutil
import socket
import sys

CONFIGURATION = '''
daemon off; worker_processes {threads}; pid {root}/nginx.pid; error_log stderr crit; worker_rlimit_nofile 65536;
events {{ worker_connections 20000; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; keepalive_timeout 600s;
    default_type application/octet-stream; {temporary} {certificate}
    server {{
        listen 127.0.0.1:{port} {ssl} {http2};
        location = /hello {{ default_type text/plain; return 200 "Hello, world"; }}
        location /files/ {{ alias {root}/; }}
        location / {{ root {root}; }}
    }}
}}
'''
TEMPORARY = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')  # folders that it makes

port, root, *pem = sys.argv[1:]
root = os.path.abspath(root)
program = shutil.which('nginx', path=f'{os.environ["PATH"]}:/usr/sbin')
if not program:
    sys.exit('nginx is not installed')
door = socket.socket()
door.bind(('127.0.0.1', int(port)))
door.listen(65535)
door.set_inheritable(True)
port = door.getsockname()[1]
path = os.path.join(root, 'nginx.conf')
with open(path, 'w', encoding='ascii') as file:
    file.write(CONFIGURATION.format(
        threads=os.environ.get('THREADS', 1), root=root, port=port, ssl='ssl' if pem else '',
        http2='http2' if 'HTTP2' in os.environ else '',
        certificate='ssl_protocols TLSv1.3; ssl_certificate {}; ssl_certificate_key {};'.format(*pem) if pem else '',
        temporary=' '.join(f'{name}_temp_path {root}/temporary;' for name in TEMPORARY)))
print(f'listening on 127.0.0.1:{port}', file=sys.stderr, flush=True)
os.execve(program, [program, '-c', path], {**os.environ, 'NGINX': f'{door.fileno()};'})
