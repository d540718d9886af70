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
import statistics
import subprocess
import sys

SEED = re.compile(r'^acorn: simulation: seed (\d+): (.*)', re.M)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../examples/sim_log/log.h')


def faults():
    """What each fault is, from 1 on, by the comments of the header."""
    with open(SOURCE, encoding='utf-8') as file:
        listed = re.search(r'NO_FAULT,\n(.*?)\} fault_t;', file.read(), re.S)[1]
    return [' '.join(text.split()) for text in re.findall(r'/\* (.*?) \*/', listed, re.S)]


def search(program, fault, start, runs):
    """How many seeds from `start` on a run has failed in, and why; (None, None): none has."""
    done = subprocess.run([program, '--seed', str(start), '--runs', str(runs), '--events', '0', '--', str(fault)],
                          capture_output=True, text=True, errors='replace', check=False)
    found = SEED.search(done.stderr)
    if done.returncode and not found:
        sys.exit(f'fault {fault} from seed {start} ends with {done.returncode}:\n{done.stderr[-2000:]}')
    return (int(found[1]) - start + 1, found[2]) if found else (None, None)


def row(args, fault, what):
    """The table's row, and whether the fault was found from each start."""
    starts = [1 + i * args.runs for i in range(args.starts)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda start: search(args.program, fault, start, args.runs), starts))
    found = [n for n, _ in results if n]
    reasons = collections.Counter(why for _, why in results if why)
    numbers = f'{statistics.median(found):g} | {max(found)}' if found else '- | -'
    print(f'| {fault} {what} | {len(found)} of {len(starts)} starts | {numbers} | '
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
    n, why = search(args.program, 0, 1, args.good)
    print('without a fault: ' + (f'seed {n} FAILS: {why}' if n else f'{args.good} seeds pass'), flush=True)
    print('\n| fault | found in | median of seeds | most seeds | by |\n| --- | --- | --- | --- | --- |', flush=True)
    wanted = [(i, what) for i, what in enumerate(faults(), 1) if not args.faults or i in args.faults]
    missed = sum(not row(args, fault, what) for fault, what in wanted)
    print(f'\n{len(wanted) - missed} of {len(wanted)} faults are found in each of {args.starts} searches')
    return bool(n or missed)


if __name__ == '__main__':
    sys.exit(main())
