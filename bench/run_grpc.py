#!/usr/bin/env python3
"""Builds and runs the benchmarks of gRPC servers: acorn_grpc beside grpc-go, tonic and gRPC's own C++
library.

The server has one core, the client, h2load or ghz, another. A round measures all contenders of a case one after the
other; numbers are medians of the rounds, and ratios are medians of each round's ratio.

    bench/run_grpc.py [--quick] [--rounds N] [--only TEXT] [--json FILE] [--build DIR]
"""
from harness import grpc_cases, grpc_servers, io_running

TARGETS = ('grpc-server-acorn', 'grpc-server-grpcpp')


class Bench:
    """What a case needs to know."""
    def __init__(self, args):
        self.servers = grpc_servers.Servers(args.build / 'gcc')
        self.calls = 20000 if args.quick else 100000
        self.idle = 200 if args.quick else 1000


if __name__ == '__main__':
    io_running.run_cases('bench-grpc', 'gRPC', 'short runs, 1 round', TARGETS, (grpc_cases,), Bench)
