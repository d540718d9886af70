"""The servers that bench/run_grpc.py compares: PROGRAM 0. They serve bench/grpc/echo.proto."""
from . import building
from .io_servers import Server

ACORN, SHARED, GO, CPP = 'acorn', 'acorn, share stack', 'grpc-go', 'grpc++, callbacks'
ALL = (ACORN, GO, CPP)
SOURCES = building.BENCH / 'grpc'


class Servers:
    """CMake has built in `directory`; go builds now."""
    def __init__(self, directory):
        self.directory = directory
        self.go, self.ghz = directory.parent / 'grpc-server-go', directory.parent / 'ghz'
        self.go_failure = building.build_with_go(self.go, '.', SOURCES / 'peers' / 'go')
        self.ghz_failure = building.build_with_go(self.ghz, 'github.com/bojand/ghz/cmd/ghz', SOURCES / 'ghz')

    def server(self, name):
        built = self.directory / 'bench' / 'grpc'
        path = {GO: self.go, CPP: built / 'grpc-server-grpcpp'}.get(name, built / 'grpc-server-acorn')
        needs = {CPP: 'libgrpc++-dev', GO: None}.get(name, 'libprotoc-dev')
        return Server(path, self.go_failure if name == GO else None, needs,
                      {'GOMAXPROCS': '1', **({'SHARED': '1'} if name == SHARED else {})})
