"""The servers that bench/run_grpc.py compares: PROGRAM 0. They serve bench/grpc/echo.proto."""
from . import building
from .io_servers import Server

ACORN, SHARED, GO, CPP, TONIC = 'acorn', 'acorn, share stack', 'grpc-go', 'grpc++, callbacks', 'tonic'
ALL = (ACORN, GO, CPP, TONIC)
SOURCES = building.BENCH / 'grpc'


class Servers:
    """CMake has built in `directory`; go and cargo build now."""
    def __init__(self, directory):
        self.directory = directory
        self.go, self.ghz = directory.parent / 'grpc-server-go', directory.parent / 'ghz'
        go_failure = building.build_with_go(self.go, '.', SOURCES / 'peers' / 'go')
        self.crates = directory.parent / 'cargo-grpc'
        self.failures = {GO: go_failure,
                         TONIC: building.build_with_cargo('tonic', self.crates, SOURCES / 'peers')}
        self.ghz_failure = building.build_with_go(self.ghz, 'github.com/bojand/ghz/cmd/ghz', SOURCES / 'ghz')

    def server(self, name):
        built = self.directory / 'bench' / 'grpc'
        path = {GO: self.go, CPP: built / 'grpc-server-grpcpp',
                TONIC: self.crates / 'release' / 'grpc-server-tonic'}.get(name, built / 'grpc-server-acorn')
        needs = {CPP: 'libgrpc++-dev', GO: None, TONIC: None}.get(name, 'libprotoc-dev')
        return Server(path, self.failures.get(name), needs,
                      {'GOMAXPROCS': '1', **({'SHARED': '1'} if name == SHARED else {})})
