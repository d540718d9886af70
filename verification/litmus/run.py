#!/usr/bin/env python3
"""Runs the litmus tests (README.md): each structure's own source, in every order of its threads' operations and with
every value that the C11 memory model lets them read. Then the same with seeded faults, each of which must be found.

    verification/litmus/run.py [--only TEXT] [--no-faults] [--limit SECONDS] [--chance SECONDS] [--seed N] [-v]
    verification/litmus/run.py --build-only
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / 'build' / 'litmus'
FLAGS = ['-std=gnu11', '-D_GNU_SOURCE', '-O1', '-g', '-w', '-fno-strict-aliasing', '-ffunction-sections',
         '-Wl,--gc-sections']

# How many outcomes the checker's own tests have; None: they must fail.
CLASSIC = {'sb.relaxed': 4, 'sb.acquire': 4, 'sb.one': 4, 'sb.sc': 3, 'mp.relaxed': 4, 'mp.half': 4, 'mp.acquire': 3,
           'iriw.acquire': 16, 'iriw.mixed': 15, 'iriw.sc': 15, 'lb': 3, 'corr': 6, 'wrc': 7, 'sequence': 6,
           'adds': 24, 'swaps': 3, 'locks': 6, 'spins': 1, 'race': None, 'lost': None}
CHANCES = 15  # programs by chance, which must have the same outcomes with and without reduction

# Changes that all builds of a test have, as regular expressions: smaller sizes, fewer spins.
SEARCH_SIZES = [
    ('threads/search.c', r'ATTEMPTS = \d+', 'ATTEMPTS = 2'),
    ('threads/search.c', r'ITEMS_EACH = \d+', 'ITEMS_EACH = 1'),
    # it spins while another thread is between two steps of claim_sleeper(): twice is enough
    ('threads/search.c', r'while (\(__atomic_load_n\(&threads->sleeping, .*\)) {',
     r'while (\1) {\n        if (spins == 2)\n            litmus_give_up();')]
SIZES = {'deque': [('threads/deque.c', r'FIRST_COUNT = 64', 'FIRST_COUNT = 2')],
         'search': SEARCH_SIZES, 'set': SEARCH_SIZES,
         'mt': [('threads/mt_sync.h', r'(?s)(static inline void aco__mt_lock\(aco__mt_t \*mt\)\n){.*?\n}\n',
                 r'\1{\n    litmus_lock(&mt->lock);\n}\n')]}


class Fault:
    """`old`, which `file` has once behind `after`, becomes `new`; one of the cases must fail then."""
    def __init__(self, name, test, cases, file, after, old, new):
        self.name, self.test, self.cases, self.file, self.after = name, test, cases.split(), file, after
        self.old, self.new = old, new

    def applied(self, text):
        at = text.find(self.after)
        assert at >= 0, f'{self.file}: no {self.after!r}'
        at = text.find(self.old, at)
        assert at >= 0, f'{self.file}: no {self.old!r} behind {self.after!r}'
        return text[:at] + self.new + text[at + len(self.old):]


def weaker(name, test, cases, file, after, access, order):
    """An access with another order."""
    pattern = re.search(r'ATOMIC_(\w+)', access)
    return Fault(name, test, cases, file, after, access, access.replace(pattern[0], f'ATOMIC_{order}'))


def unordered(name, test, cases, file, after, place, value, order='RELEASE'):
    """A store that later loads overtake."""
    return Fault(name, test, cases, file, after, f'aco__store_then_load({place}, {value})',
                 f'__atomic_store_n({place}, {value}, __ATOMIC_{order})')


DEQUE, SEARCH, SET, GROUP = 'threads/deque.c', 'threads/search.c', 'threads/set.c', 'threads/submit.c'
INBOX, MT = 'scheduler/inbox.c', 'threads/mt_sync.c'
FAULTS = [
    unordered('deque: pop stores bottom with release', 'deque', 'deque.last deque.two', DEQUE, 'int aco__deque_pop',
              '&deque->bottom', 'bottom'),
    weaker('deque: pop loads top with acquire', 'deque', 'deque.two', DEQUE, 'int aco__deque_pop',
           'load_n(&deque->top, __ATOMIC_SEQ_CST', 'ACQUIRE'),
    weaker('deque: steal loads bottom with acquire', 'deque', 'deque.two', DEQUE, 'int aco__deque_steal',
           'load_n(&deque->bottom, __ATOMIC_SEQ_CST', 'ACQUIRE'),
    unordered('deque: push stores bottom relaxed', 'deque', 'deque.last', DEQUE, 'int aco__deque_push',
              '&deque->bottom', 'bottom + 1', 'RELAXED'),
    weaker('deque: the larger array is stored relaxed', 'deque', 'deque.grows deque.again', DEQUE, '*grow(',
           'store_n(&deque->items, items, __ATOMIC_RELEASE', 'RELAXED'),
    weaker('deque: steal loads the array relaxed', 'deque', 'deque.grows deque.again', DEQUE, 'int aco__deque_steal',
           'load_n(&deque->items, __ATOMIC_ACQUIRE', 'RELAXED'),
    Fault('deque: pop takes the last item without asking', 'deque', 'deque.last', DEQUE, 'int aco__deque_pop',
          '__atomic_compare_exchange_n(&deque->top, &top, top + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);', '1;'),
    unordered('inbox: the thread says with release that it sleeps', 'inbox', 'inbox.own', INBOX,
              'int aco__inbox_sleeps', '&s->is_asleep', '1'),
    weaker('inbox: the thread looks with acquire before it sleeps', 'inbox', 'inbox.own', INBOX,
           'int aco__inbox_sleeps', 'load_n(&s->inbox, __ATOMIC_SEQ_CST', 'ACQUIRE'),
    weaker('inbox: the poster looks with acquire whether the thread sleeps', 'inbox', 'inbox.own', INBOX,
           'static int wake_sleeper', 'load_n(&s->is_asleep, __ATOMIC_SEQ_CST', 'ACQUIRE'),
    weaker('inbox: the inbox is emptied relaxed', 'inbox', 'inbox.own', INBOX, 'static void collect',
           'exchange_n(&s->inbox, NULL, __ATOMIC_SEQ_CST', 'RELAXED'),
    unordered('inbox: a post is released with release', 'inbox', 'inbox.same', INBOX, 'static void release',
              '&post->next', 'NULL'),
    weaker('inbox: the poster leaves relaxed', 'inbox', 'inbox.closes', INBOX, 'static void add_post',
           'fetch_sub(&s->posting, 1, __ATOMIC_RELEASE', 'RELAXED'),
    Fault('inbox: the thread does not look again', 'inbox', 'inbox.own', INBOX, 'int aco__inbox_sleeps',
          'if (!__atomic_load_n(&s->inbox, __ATOMIC_SEQ_CST) &&', 'if ('),
    Fault('search: no look before sleep', 'search', 'search.one', SEARCH, 'int aco__threads_may_sleep',
          'if (!is_anything_left(threads) && !aco__threads_has_sent(worker))', 'if (1)'),
    Fault('search: the last item is left for ever', 'search', 'search.one', SEARCH, 'int aco__threads_find',
          'attempt ? 1 : LEAST_AT_FIRST', 'LEAST_AT_FIRST'),
    unordered('search: push stores bottom with release', 'search', 'search.one', DEQUE, 'int aco__deque_push',
              '&deque->bottom', 'bottom + 1'),
    weaker('search: a submitter looks with acquire for sleepers', 'search', 'search.one', SEARCH,
           'void aco__threads_wake_one', 'load_n(&threads->sleeping, __ATOMIC_SEQ_CST', 'ACQUIRE'),
    Fault('search: one more searcher is counted, but not woken', 'search', 'search.two', SEARCH,
          'static void wake_more', 'wake_a_sleeper(threads, worker, ',
          '__atomic_fetch_add(&threads->searching, 1, __ATOMIC_SEQ_CST), (void)('),
    weaker('set: a member ends relaxed', 'set', 'set.one', GROUP, 'static void finish',
           'fetch_sub(&group->aco__pending, count, __ATOMIC_ACQ_REL', 'RELAXED'),
    Fault('set: the end wakes nobody', 'set', 'set.one', SET, 'static void set_is_done',
          'aco__threads_each(threads, aco__threads_wake);', ';'),
    Fault('mt: a wait that fails gives nothing back', 'mt', 'mt.mutex mt.semaphore', MT,
          'int aco__mt_waiter_wait(', 'if (!aco__answer_claim(&waiter->answer))', 'if (0)'),
    Fault('mt: a mutex that is handed over is free', 'mt', 'mt.mutex', MT,
          'static void pass_mutex', 'mutex->aco__is_locked = place != NULL;', 'mutex->aco__is_locked = 0;'),
    weaker('lock: it is left relaxed', 'lock', 'lock.two', 'threads/mt_sync.h', 'void aco__mt_unlock',
           'store_n(&mt->lock, 0, __ATOMIC_RELEASE', 'RELAXED'),
    weaker('lock: it is taken relaxed', 'lock', 'lock.two', 'threads/mt_sync.h', 'int aco__mt_lock_now',
           'exchange_n(&mt->lock, 1, __ATOMIC_ACQUIRE', 'RELAXED')]
TESTS = ('deque', 'inbox', 'lock', 'mt', 'search', 'set')
BY_CHANCE = ('set.one', 'set.sent', 'set.two', 'set.three', 'search.two')  # they have too many executions


# ---- Builds and runs ----

def build(test, fault=None):
    """The program's path."""
    name = test if not fault else f'{test}-{re.sub("[^a-z0-9]+", "-", fault.name.lower())}'
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)  # files that were changed for an earlier run
    folder.mkdir(parents=True)
    changed = {}
    for file, old, new in SIZES.get(test, ()):
        text = changed.get(file, (ROOT / 'src' / file).read_text())
        changed[file], number = re.subn(old, new, text)
        if number != 1:
            raise RuntimeError(f'{file}: {old!r} is there {number} times')
    if fault:
        changed[fault.file] = fault.applied(changed.get(fault.file, (ROOT / 'src' / fault.file).read_text()))
    for file, text in changed.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    program = folder / 'program'
    checker = BUILD / 'litmus.o'
    done = subprocess.run(['gcc', *FLAGS, '-include', HERE / 'litmus.h', '-I', folder, '-I', HERE, '-I', ROOT / 'src',
                           '-I', ROOT / 'include', HERE / f'{test}.c', checker, '-o', program, '-lpthread'],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'{name} does not build\n{done.stderr}')
    return program


def run(program, *arguments, seed=1):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, 'LITMUS_SEED': str(seed)})
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f'{program} ended with {done.returncode}: {done.stderr}')
    return done.returncode, done.stdout


def cases_of(test):
    text = (HERE / f'{test}.c').read_text()
    return re.findall(r'^ *\{"([\w.]+)",', text, re.MULTILINE)


def limits(chance, options):
    return ('-r', options.seed, '-l', options.chance) if chance else ('-l', options.limit)


def check_test(test, options):
    """Errors. All cases of a structure must hold."""
    names = [name for name in cases_of(test) if options.only in name]
    errors = []
    for chance in (False, True):
        some = [name for name in names if (name in BY_CHANCE) == chance]
        if some:
            status, output = run(build(test), *limits(chance, options), *some)
            print(output, end='')
            errors += [f'{test}: not all cases hold'] if status else []
    return errors


def check_fault(fault, options):
    """Errors. One of the fault's cases must fail."""
    _, output = run(build(fault.test, fault), *limits(fault.cases[0] in BY_CHANCE, options), *fault.cases)
    is_found = 'FAILED' in output
    print(f'fault: {fault.name}: {"found" if is_found else "NOT FOUND"}')
    if options.verbose or not is_found:
        print(output, end='')
    return [] if is_found else [f'not found: {fault.name}']


def check_classic(options):
    """Errors. The checker's own tests, with and without reduction: the same outcomes, and the right number."""
    program, errors, found = build('classic'), [], {}
    for flags in ((), ('-a',)):
        _, output = run(program, *flags, '-v', '-l', options.limit)
        for seed in range(1, CHANCES + 1):
            output += run(program, *flags, '-v', '-l', options.limit, 'chance', seed=seed)[1].replace('chance:',
                                                                                                  f'chance.{seed}:')
        for block in re.split(r'^(?=\S)', output, flags=re.MULTILINE)[1:]:
            name = block.split(':')[0]
            verdict = None if 'FAILED' in block else set(re.findall(r'outcome (\w+)', block))
            if 'not finished' in block:
                continue  # without reduction some take too long
            if flags and verdict != found[name]:
                errors.append(f'{name}: other outcomes without reduction')
            found.setdefault(name, verdict)
    for name, wanted in CLASSIC.items():
        number = None if found[name] is None else len(found[name])
        if number != wanted:
            errors.append(f'{name}: {number} outcomes instead of {wanted}')
    print(f'the checker itself: {len(CLASSIC)} programs, {len(errors)} wrong')
    return errors


def build_only():
    global BUILD
    with tempfile.TemporaryDirectory() as folder:
        BUILD = Path(folder)
        subprocess.run(['gcc', *FLAGS[:-1], '-c', HERE / 'litmus.c', '-o', BUILD / 'litmus.o'], check=True)
        for test in TESTS:
            build(test)
    for fault in FAULTS:
        fault.applied((ROOT / 'src' / fault.file).read_text())
    print(f'litmus: {len(TESTS)} tests build, {len(FAULTS)} faults have their places')


def main():
    started = time.monotonic()
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', metavar='TEXT', default='', help='the cases and faults whose names contain it')
    parser.add_argument('--no-faults', action='store_true')
    parser.add_argument('--limit', type=float, default=60, help='the most seconds of processor time for a case')
    parser.add_argument('--chance', type=float, default=2, help='seconds for a case that runs by chance')
    parser.add_argument('--build-only', action='store_true', help='each test builds, and each fault has its place')
    parser.add_argument('--seed', type=int, default=1, help='of these')
    parser.add_argument('-v', '--verbose', action='store_true', help='prints the executions that show the faults')
    options = parser.parse_args()
    if options.build_only:
        build_only()
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(['gcc', *FLAGS[:-1], '-O2', '-c', HERE / 'litmus.c', '-o', BUILD / 'litmus.o'], check=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check_test, test, options) for test in TESTS]
        if options.only in 'classic':
            jobs.append(pool.submit(check_classic, options))
        jobs += [pool.submit(check_fault, fault, options) for fault in FAULTS
                 if not options.no_faults and options.only in fault.name]
        errors = [error for job in jobs for error in job.result()]
    for error in errors:
        print(f'FAILED: {error}')
    print(f'litmus: {len(jobs)} checks, {len(errors)} errors ({time.monotonic() - started:.0f} s)')
    sys.exit(1 if errors or not jobs else 0)


if __name__ == '__main__':
    main()
