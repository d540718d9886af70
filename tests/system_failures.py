#!/usr/bin/env python3
"""system_failures.py: each entry of the system's table (src/system/system.h) is made to fail by a test, or it stands in
UNTESTED with the reason. So a new entry without either fails here."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = 'src/system/system.h'
# Where a wrapper in the table fails: these and *_failure.c.
TESTS = {'io_process.c', 'io_names.c', 'retry.c'}

ELSEWHERE = 'only on macOS or FreeBSD, where no test runs'
HARDWARE = 'called on a processor with shadow stacks only: tests/hardening/check.py runs out of them on a model of one'
HOOKED = 'only hooked tasks of simulations call it, by its libc name: its failure is theirs'
NEVER = 'cannot fail as it is called'
UNTESTED = {
    'kqueue': ELSEWHERE,
    'kevent': ELSEWHERE,
    'accept': ELSEWHERE,
    'nanosleep': ELSEWHERE,
    'pthread_cond_timedwait_relative_np': ELSEWHERE,
    'map_shadow_stack': HARDWARE,
    'pthread_join': NEVER + ': each thread is joined once, by another one',
    'pthread_mutex_lock': NEVER + ': the mutexes check nothing',
    'pthread_mutex_unlock': NEVER + ': its caller has the lock',
    'pthread_mutex_trylock': 'fails when another thread holds the lock only, which each caller expects',
    'pthread_cond_wait': NEVER + ', and each caller looks again when it returns',
    'pthread_cond_timedwait': 'ETIMEDOUT is its ordinary result; nothing else can come',
    'pthread_cond_signal': NEVER,
    'pthread_cond_broadcast': NEVER,
    'sched_yield': NEVER,
    'futex_wake': NEVER + ': the word is one of the process',
    'gettid': NEVER,
    'getpid': NEVER,
    'ioctl': 'asks a descriptor for a mark; it fails for what has none (a file, a pipe), which is the answer',
    'freeaddrinfo': NEVER,
    'pthread_sigmask': NEVER + ': what is wanted is a constant',
    'raise': 'called by handlers for their own signal only: a valid one, which needs no memory',
    'socketpair': HOOKED,
    'mkfifo': HOOKED,
    'sigpending': NEVER + ': the set is one of the caller',
}


def entries_of(header):
    struct = header[header.index('typedef struct aco__system {'):header.index('} aco__system_t;')]
    struct = re.sub(r'/\*.*?\*/', '', struct, flags=re.S)
    return set(re.findall(r'^    \w[\w ]*?\*?\(\*(\w+)\)\(', struct, re.M))


def replaced_in(text):
    """The entries in whose place the test has a function that may fail."""
    return set(re.findall(r'\b(?:[FX]|REPLACE)\((\w+)', text)) | set(re.findall(r'\baco__system\.(\w+) = ', text))


def problems(header, tests):
    entries = entries_of(header)
    for name in sorted(entries - UNTESTED.keys() - set().union(*map(replaced_in, tests))):
        yield f'{name}: no test makes it fail, and UNTESTED has no reason'
    for name in sorted(UNTESTED.keys() - entries):
        yield f'{name}: UNTESTED has it, the table does not'


def main():
    header = (ROOT / TABLE).read_text()
    folder = ROOT / 'tests'
    tests = [f.read_text() for f in sorted(folder.glob('*.c')) if f.name in TESTS or f.name.endswith('_failure.c')]
    new = header.replace('} aco__system_t;', '    int (*new_entry)(void);\n} aco__system_t;')
    wrong = list(problems(header, tests))
    if 'new_entry' not in ' '.join(problems(new, tests)):
        wrong.append('a new entry is not noticed')
    if wrong:
        sys.exit('\n'.join(wrong))
    count = len(entries_of(header))
    print(f'{count} entries: tests make {count - len(UNTESTED)} of them fail, {len(UNTESTED)} have a reason')


if __name__ == '__main__':
    main()
