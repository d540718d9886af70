#!/usr/bin/env python3
"""Builds and runs the benchmarks of HTTP servers: acorn_http beside other ones.

The server has one core, the client, wrk or h2load, another. A round measures all contenders of a case one after the
other; numbers are medians of the rounds, and ratios are medians of each round's ratio.

    bench/run_http.py [--quick] [--rounds N] [--only TEXT] [--json FILE] [--build DIR]
"""
from harness import http_cases, http_servers, io_running

TARGETS = ('http-server-acorn', 'http-server-beast')


class Bench:
    """What a case needs to know."""
    def __init__(self, args):
        self.servers = http_servers.Servers(args.build / 'gcc')
        self.seconds = 1 if args.quick else 3
        self.warm_s = 1
        self.requests = 20000 if args.quick else 100000
        self.idle = 500 if args.quick else 4000


if __name__ == '__main__':
    io_running.run_cases('bench-http', 'HTTP', 'short runs, 1 round', TARGETS, (http_cases,), Bench)
