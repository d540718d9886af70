#!/usr/bin/env python3
"""Builds and runs the benchmarks of descriptors: acorn_io beside other ways to write the same server.

The server has one core, the client another. A round measures all contenders of a case one after the other; numbers are
medians of the rounds, and ratios are medians of each round's ratio.

    bench/run_io.py [--quick] [--rounds N] [--only TEXT] [--json FILE] [--build DIR]

A case is a module of harness/ with a function cases(bench), which yields io_running.Case objects.
"""
from harness import io_echo, io_files, io_idle, io_running, io_servers, io_stream, io_timers, threads_balance

MODULES = (io_echo, io_stream, io_idle, io_timers, io_files, threads_balance)
TARGETS = ('io-server-acorn', 'io-server-loop', 'io-server-uv', 'io-server-asio', 'io-server-asio-coroutines',
           'io-client', 'io-timers', 'io-file-reads', 'io-server-threads')


class Bench:
    """What a case needs to know."""
    cpu_ns = staticmethod(io_servers.cpu_ns)

    def __init__(self, args):
        self.directory = args.build / 'gcc'
        self.is_quick = args.quick
        self.servers = io_servers.find_servers(self.directory)
        self.client = self.directory / 'bench' / 'io-client'
        self.connections = [1, 100] if args.quick else [1, 100, 10000]
        self.requests = 20000 if args.quick else 50000
        self.stream_mib = 256 if args.quick else 512
        self.idle = 1000 if args.quick else 4000
        self.armed = 100000


if __name__ == '__main__':
    io_running.run_cases('bench-io', 'Descriptors', '1 and 100 connections, 1 round', TARGETS, MODULES, Bench)
