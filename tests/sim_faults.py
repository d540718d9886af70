#!/usr/bin/env python3
"""sim_faults.py [OPTION]... [TEXT...]: in how many seeds does a simulation find mended faults of orders of events?

Puts each fault of sim_faults.txt back into a copy of the tree, builds tests/sim_faults.c, tests/sim_thread_faults.c or
tests/sim_service.c with it, and runs its scenario from several first seeds until a run fails. With --mix it runs
tests/sim_mix.c instead of the first, which is made for none of them.
Prints a table, of the faults with one of the TEXTs in their names, or of all: of how many starts the fault was found,
and the median and the largest number of seeds. A search has found it when a run fails by itself; one that its time
limit ends has not. Exit 1 if a scenario fails without the fault, or if a fault is not found in each start.
"""
import argparse
import os
import sys

import reverted
import sim_search

SECONDS, SECONDS_WITH_FAULT, OF_PROCESSOR = 300, 100, 20
PROGRAMS = {'threads': 'sim_thread_faults', 'service': 'sim_service'}


def program_of(scenario, args):
    return PROGRAMS.get(scenario.partition('.')[0], args.program)


def search(folder, scenario, args, start, seconds, of_processor=None):
    """One that is found, is_late, or neither: sim_search.search()."""
    program, own = program_of(scenario, args), []
    if program in PROGRAMS.values():
        own = ['--', scenario.partition('.')[2]]
    elif program == 'sim_faults':
        own = ['--', scenario + ('.order' if args.order else '')]
    command = [os.path.join(folder, f'tests/test_{program}_release'), '--seed', str(start), '--runs', str(args.runs),
               '--schedule', args.schedule, '--max-turns', '100000', *own]
    return sim_search.search(command, start, seconds, of_processor)


def build(folder, scenario, args):
    target = f'test_{program_of(scenario, args)}_release'
    output, good = reverted.run(['cmake', '--build', folder, '--target', target], folder)
    if not good:
        sys.exit(output[-4000:])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', default=os.path.join(reverted.ROOT, 'build/sim_faults'))
    parser.add_argument('--starts', type=int, default=21, help='how many first seeds (21)')
    parser.add_argument('--runs', type=int, default=10000, help='the most seeds from each (10000)')
    parser.add_argument('--schedule', default='mixed', help='mixed, random, pct or fifo (mixed)')
    parser.add_argument('--order', action='store_true', help='vary the order of turns only')
    parser.add_argument('--mix', dest='program', action='store_const', const='sim_mix', default='sim_faults',
                        help='run tests/sim_mix.c')
    parser.add_argument('texts', nargs='*', metavar='TEXT')
    return parser.parse_args()


def main():
    args = parse_arguments()
    tree, folder = os.path.join(args.folder, 'tree'), os.path.join(args.folder, 'build')
    starts = [1 + i * args.runs for i in range(args.starts)]
    reverted.copy_tree(tree)
    output, good = reverted.run(['cmake', '-S', tree, '-B', folder, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=None',
                                 '-DCMAKE_C_FLAGS=-O1 -g', '-DACORN_TESTS_ONCE=OFF', '-DACORN_STANDARDS=20',
                                 '-DACORN_VARIANTS=release'], args.folder)
    if not good:
        sys.exit(output)
    wanted = [f for f in reverted.faults('sim_faults.txt')
              if not args.texts or any(text in f[0] for text in args.texts)]
    failed = missed = 0
    for scenario in sorted({fault[1][0] for fault in wanted}):
        build(folder, scenario, args)
        result = search(folder, scenario, args, 1, SECONDS)
        failed += bool(result.why or result.is_late)
        print(f'without a fault, {scenario}: ' + (f'FAILS: seed {result.seeds}: {result.why}' if result.why else
              f'FAILS: not finished in {SECONDS} s' if result.is_late else f'{args.runs} seeds pass'), flush=True)
    print('\n| fault | found in | median of seeds | most seeds |\n| --- | --- | --- | --- |', flush=True)
    for name, test, pieces in wanted:
        changed = [reverted.replace(tree, before, after) for before, after in pieces]
        build(folder, test[0], args)
        results = []
        while len(results) < len(starts) and not (results and results[-1].is_late):  # the others would be late, too
            results.append(search(folder, test[0], args, starts[len(results)], SECONDS_WITH_FAULT, OF_PROCESSOR))
        for path, text in reversed(changed):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
        found = [result.seeds for result in results if result.seeds]
        missed += len(found) < len(starts)
        late = sum(result.is_late for result in results)
        print(f'| {name} | {sim_search.found_in(found, len(starts), late)}', flush=True)
    print(f'\n{len(wanted) - missed} of {len(wanted)} faults are found in each of {len(starts)} searches')
    return bool(failed or missed)


if __name__ == '__main__':
    sys.exit(main())
