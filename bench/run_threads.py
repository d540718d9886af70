#!/usr/bin/env python3
"""Builds and runs the benchmarks of several threads: acorn_threads beside other ways to use every core.

A round measures all contenders of a case one after the other; numbers are medians of the rounds, and ratios are medians
of each round's ratio. A machine with two quiet cores is enough, and only with these do the numbers mean something.

    bench/run_threads.py [--quick] [--rounds N] [--only TEXT] [--json FILE] [--build DIR]
"""
from harness import io_running, threads_cases, threads_echo, threads_programs

MODULES = (threads_cases, threads_echo)


def programs(args):
    return threads_programs.Programs(args.build / 'gcc', 0.1 if args.quick else 1)


if __name__ == '__main__':
    io_running.run_cases('bench-threads', 'Every core', 'a tenth of the work, 1 round', threads_programs.TARGETS,
                         MODULES, programs)
