#!/usr/bin/env python3
"""Builds and runs the benchmarks of descriptors: acorn_io beside other ways to write the same server.

The server has one core, the client another. A round measures all contenders of a case one after the other; numbers are
medians of the rounds, and ratios are medians of each round's ratio.

    bench/run_io.py [--quick] [--rounds N] [--only TEXT] [--json FILE] [--build DIR]

A case is a module of harness/ with a function cases(bench), which yields io_running.Case objects.
"""
import os
import resource
import sys
import time

from harness import (building, command, io_echo, io_files, io_idle, io_servers, io_stream, io_timers,
                     threads_balance)

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


def build(directory):
    wanted = building.configure('gcc', directory)
    if not wanted:
        known = building.known_targets(directory)
        wanted = building.build_targets(directory, *(target for target in TARGETS if target in known))
    if wanted:
        sys.exit(f'bench-io: {wanted}')


def main():
    started = time.monotonic()
    sys.stdout.reconfigure(line_buffering=True)
    parser = command.options(__doc__.splitlines()[0], '1 and 100 connections, 1 round')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--only', metavar='TEXT', default='', help='the cases whose names contain it')
    args = command.parsed(parser, svg=False)
    rounds = 1 if args.quick else args.rounds
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    build(args.build / 'gcc')
    bench = Bench(args)
    machine = command.machine()
    command.print_heading('Descriptors (make bench-io)', machine)
    print(f'  load before    {os.getloadavg()[0]:.1f}\n  rounds         {rounds}')
    chosen = [case for module in MODULES for case in module.cases(bench) if args.only in case.name]
    for case in chosen:
        case.run(rounds)
        case.print()
    command.write_json(args.json, [{'machine': machine}, *(item for case in chosen for item in case.objects())])
    command.print_end(started)


if __name__ == '__main__':
    main()
