#!/usr/bin/env python3
"""Builds and runs the benchmarks of several threads: acorn_threads beside other ways to use every core.

A round measures all contenders of a case one after the other; numbers are medians of the rounds, and ratios are medians
of each round's ratio. A machine with two quiet cores is enough, and only with these do the numbers mean something.

    bench/run_threads.py [--quick] [--rounds N] [--only TEXT] [--json FILE] [--build DIR]
"""
import os
import resource
import sys
import time

from harness import building, command, threads_cases, threads_echo, threads_programs

MODULES = (threads_cases, threads_echo)


def build(directory):
    wanted = building.configure('gcc', directory)
    if not wanted:
        known = building.known_targets(directory)
        wanted = building.build_targets(directory, *(each for each in threads_programs.TARGETS if each in known))
    if wanted:
        sys.exit(f'bench-threads: {wanted}')


def main():
    started = time.monotonic()
    sys.stdout.reconfigure(line_buffering=True)
    parser = command.options(__doc__.splitlines()[0], 'a tenth of the work, 1 round')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--only', metavar='TEXT', default='', help='the cases whose names contain it')
    args = command.parsed(parser, svg=False)
    rounds = 1 if args.quick else args.rounds
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    build(args.build / 'gcc')
    programs = threads_programs.Programs(args.build / 'gcc', 0.1 if args.quick else 1)
    machine = command.machine()
    command.print_heading('Every core (make bench-threads)', machine)
    print(f'  load before    {os.getloadavg()[0]:.1f}\n  rounds         {rounds}')
    chosen = [case for module in MODULES for case in module.cases(programs) if args.only in case.name]
    for case in chosen:
        case.run(rounds)
        case.print()
    command.write_json(args.json, [machine, *(item for case in chosen for item in case.objects())])
    command.print_end(started)


if __name__ == '__main__':
    main()
