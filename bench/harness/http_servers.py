"""The servers that bench/run_http.py compares: PROGRAM 0 ROOT [CHAIN KEY], with the number of threads in the variable
THREADS. They answer /hello, /4k, /1m and, some of them, /files/NAME of ROOT; acorn and Go also /stall, which computes
for 100 ms, /late, which waits before, and /offload, which has another thread compute."""
import os
import shutil
import subprocess

from . import building
from .io_servers import Server

ACORN, ACORN_RING, SHARED, BALANCED = 'acorn', 'acorn, io_uring', 'acorn, share stack', 'acorn, balance'
NGINX, GO, HYPER, BEAST, NODE, NGHTTPD = 'nginx', 'Go', 'hyper', 'Boost.Beast', 'Node', 'nghttpd'
WITH_FILES = (ACORN, ACORN_RING, NGINX, GO, BEAST)
WITH_TLS = (ACORN, ACORN_RING, NGINX, GO, NODE)
WITH_HTTP2 = (ACORN, ACORN_RING, NGHTTPD, NGINX, GO, HYPER)
WITH_HTTP2_TLS = (ACORN, NGHTTPD, NGINX)
SOURCES = building.BENCH / 'http' / 'peers'


class Servers:
    """CMake has built in `directory`; cargo and go build now. `root` has the files that are served."""
    def __init__(self, directory):
        self.directory, self.root = directory, directory / 'http-root'
        self.failures = {GO: building.build_with_go(self.go(), '.', SOURCES / 'go'),
                         HYPER: building.build_with_cargo('hyper', self.cargo(), SOURCES),
                         NGHTTPD: None if shutil.which('nghttpd') else 'nghttpd is not installed',
                         NODE: None if shutil.which('node') else 'node is not installed'}
        self.root.mkdir(exist_ok=True)
        for name, size in (('4k', 4096), ('1m', 1 << 20)):
            (self.root / name).write_bytes(os.urandom(size))
        self.pem = self.directory / 'http-chain.pem', self.directory / 'http-key.pem'
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
                        '-nodes', '-days', '30', '-subj', '/CN=localhost', '-out', self.pem[0], '-keyout', self.pem[1]],
                       check=True, capture_output=True)

    def go(self):
        return self.directory.parent / 'http-server-go'

    def cargo(self):
        return self.directory.parent / 'cargo-http'

    def server(self, name, threads=1, is_http2=False):
        built = self.directory / 'bench'
        environment = {'THREADS': str(threads), 'GOMAXPROCS': str(threads), **({'HTTP2': '1'} if is_http2 else {})}
        environment.update({ACORN_RING: {'ACO_POLLER': 'uring'}, SHARED: {'SHARED': '1'},
                            BALANCED: {'BALANCED': '1'}}.get(name, {}))
        path = {NGINX: SOURCES / 'nginx.py', NGHTTPD: SOURCES / 'nghttpd.py', NODE: SOURCES / 'node.js', GO: self.go(),
                BEAST: built / 'http-server-beast',
                HYPER: self.cargo() / 'release' / 'http-server-hyper'}.get(name, built / 'http-server-acorn')
        return Server(path, self.failures.get(name), 'libboost-dev' if name == BEAST else None, environment)

    def arguments(self, with_tls=False):
        return [self.root, *(self.pem if with_tls else ())]


ALL = (ACORN, ACORN_RING, NGINX, GO, HYPER, BEAST, NODE)
