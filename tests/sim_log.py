#!/usr/bin/env python3
"""sim_log.py PROGRAM [OPTION]... [FAULT...]: in how many seeds does a simulation find the faults of a replicated log?

PROGRAM is examples/sim_log, built. Each fault, or each of those that are named by numbers, is searched for from several
first seeds. Prints a table: of how many starts it was found, the median and the largest number of seeds, and what the
runs failed by. Exit 1 if the log fails without a fault, or if a fault is not found from each start.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import sys

import sim_search

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../examples/sim_log/log.h')


def faults():
    """What each fault is, from 1 on, by the comments of the header."""
    with open(SOURCE, encoding='utf-8') as file:
        listed = re.search(r'NO_FAULT,\n(.*?)\} fault_t;', file.read(), re.S)[1]
    return [' '.join(text.split()) for text in re.findall(r'/\* (.*?) \*/', listed, re.S)]


def search(program, fault, start, runs):
    command = [program, '--seed', str(start), '--runs', str(runs), '--events', '0', '--', str(fault)]
    return sim_search.search(command, start)


def row(args, fault, what):
    """The table's row, and whether the fault was found from each start."""
    starts = [1 + i * args.runs for i in range(args.starts)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda start: search(args.program, fault, start, args.runs), starts))
    found = [result.seeds for result in results if result.seeds]
    late = sum(result.is_late for result in results)
    reasons = collections.Counter(result.why for result in results if result.why)
    print(f'| {fault} {what} | {sim_search.found_in(found, len(starts), late)} '
          + '; '.join(why for why, _ in reasons.most_common()) + ' |', flush=True)
    return len(found) == len(starts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--starts', type=int, default=21, help='how many first seeds (21)')
    parser.add_argument('--runs', type=int, default=10000, help='the most seeds from each (10000)')
    parser.add_argument('--good', type=int, default=1000, help='so many seeds must pass without a fault (1000)')
    parser.add_argument('faults', nargs='*', type=int, metavar='FAULT')
    args = parser.parse_args()
    good = search(args.program, 0, 1, args.good)
    print('without a fault: ' + (f'seed {good.seeds} FAILS: {good.why}' if good.why else
          'FAILS: not finished' if good.is_late else f'{args.good} seeds pass'), flush=True)
    print('\n| fault | found in | median of seeds | most seeds | by |\n| --- | --- | --- | --- | --- |', flush=True)
    wanted = [(i, what) for i, what in enumerate(faults(), 1) if not args.faults or i in args.faults]
    missed = sum(not row(args, fault, what) for fault, what in wanted)
    print(f'\n{len(wanted) - missed} of {len(wanted)} faults are found in each of {args.starts} searches')
    return bool(good.why or good.is_late or missed)


if __name__ == '__main__':
    sys.exit(main())
