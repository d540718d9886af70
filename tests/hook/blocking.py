#!/usr/bin/env python3
"""blocking.py PROGRAM...: runs the tests of hooks (tests/hook_*.c) that must not block, under strace: no system call of
the tasks' thread could block but the poller's. The first program without hooks shows calls that could. Exit 77: no
strace, or it may not trace here."""
import re
import sys

import trace


def main(programs):
    if not trace.available():
        print('skipped: no strace, or it may not trace here')
        return 77
    polls = 0
    for program in programs:
        status, lines = trace.run([program, 'watched'], 150)
        assert status == 0, (program, status)
        found, its_polls = trace.blocking(lines)
        # sched_yield(), flock() with LOCK_NB and the like do not wait.
        assert not found, f'{program}: {len(found)} calls could block: {found[:10]}'
        polls += its_polls
    assert polls > 100, polls
    _, lines = trace.run([programs[0], 'unhooked'], 150)
    found, _ = trace.blocking(lines)
    assert any(re.match('read', line) for line in found), 'the watchdog finds nothing without hooks'
    print(f'hook_blocking: passed ({polls} polls)')
    return 0


sys.exit(main(sys.argv[1:]))
