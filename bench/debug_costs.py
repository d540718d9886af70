#!/usr/bin/env python3
"""What a look inside costs (docs/see-inside.md, "Costs"), in instructions and processor time, which other programs on
the machine change little.

    bench/debug_costs.py PROGRAM [--requests N]

PROGRAM is debug-costs; debug-yields and debug-yields-without lie beside it. Instructions are counted by callgrind, if
it is here."""
import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

from harness.command import print_end
from harness.goals import judged

TASKS, LOOKS, ROUNDS, PAIRS, PROFILE_S, SPINNERS = 100000, 10, 5, 11, 2, 4
SHARES_S, SHARES_HZ, SHARES_SAMPLES, SHARES_TIMES = 20, 250, 3000, 8  # a share is then right within 1 point or two
PERF = f'{os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}/tools/acorn_perf.py'
MOST_LOOK_MS, MOST_SLICE_MS, MOST_PROFILE, MOST_METRICS, MOST_OFF, MOST_POINTS, MOST_ANSWER_S = (
    100, 1, 0.01, 0.005, 0, 3, 1)  # goals


def instructions(program, what, count):
    with subprocess.Popen(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', program, *what,
                           str(count)], stderr=subprocess.PIPE, text=True) as run:
        said = run.communicate()[1]
    if run.returncode:
        raise SystemExit(said)
    return int(re.search(r'Collected : (\d+)', said)[1])


def of_each(program, what, count):
    """Twice as many take away what the beginning costs."""
    return (instructions(program, what, 2 * count) - instructions(program, what, count)) / count


def of_requests(program, requests):
    """What a request has more than without anybody who looks; the goals, as all functions of_... return them."""
    each = {how: of_each(program, ('requests', how), requests) for how in ('none', 'metrics', 'unsampled', 'sampled')}
    print(f"a request and its reply, client and server: {each['none']:.0f} instructions")
    for how in ('metrics', 'unsampled', 'sampled'):
        more = each[how] - each['none']
        print(f"  {how}: {more:+.0f} ({100 * more / each['none']:+.2f} %)")
    return [judged('a request', 'metrics, share of its instructions', each['metrics'] / each['none'] - 1, MOST_METRICS,
                   form='{:.4f}'.format)]


def processor_ms(process):
    with open(f'/proc/{process.pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf('SC_CLK_TCK')


def get(port, path):
    with urllib.request.urlopen(f'http://127.0.0.1:{port}{path}', timeout=60) as page:
        return page.read().decode(errors='replace')


@contextlib.contextmanager
def running(program, *what):
    """A program that serves its pages, and its port; what is left of it is ended."""
    with subprocess.Popen([program, *what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        try:
            yield run, int(run.stdout.readline())
        finally:
            run.kill()


def tell(run):
    print('', file=run.stdin, flush=True)


def of_yields(programs, count):
    """With the library in the program, and without."""
    each = [of_each(program, (), count) / 3 for program in programs]
    print(f'a yield: {each[0]:.1f} instructions; in a program without the library {each[1]:.1f}')
    return [judged('a yield', 'the library is there and off, more instructions', each[0] - each[1], MOST_OFF,
                   form='{:.1f}'.format)]


def of_path(run, port, path, what):
    """Looks with nothing beside; then, for the times of turns, with a task that wants turns. Of these each look's
    longest counts, and of all looks the median: who shares the machine lengthens some."""
    before, began = processor_ms(run), time.monotonic()
    for _ in range(LOOKS):
        page = get(port, path)
    in_all, processor = (time.monotonic() - began) * 1000 / LOOKS, (processor_ms(run) - before) / LOOKS
    slices = []
    for _ in range(LOOKS):
        tell(run)
        get(port, path)
        tell(run)
        slices.append(int(run.stdout.readline()) / 1e6)
    longest = statistics.median(slices)
    print(f'{path} of {TASKS} tasks, {what}: {processor:.0f} ms of processor time, {in_all:.0f} ms in all, the longest '
          f'slice {longest:.2f} ms (of all looks {max(slices):.2f})')
    if 'had no time' in page or '"unfinished":1' in page:
        in_all = float('inf')
    case = f'a look at {TASKS} tasks, {what}'
    return [judged(case, f'{path}, ms in all', in_all, MOST_LOOK_MS, form='{:.1f}'.format),
            judged(case, f'{path}, ms of a slice', longest, MOST_SLICE_MS, form='{:.2f}'.format)]


def of_crowd(program, what):
    with running(program, 'many', what, str(TASKS)) as (run, port):
        for _ in range(600):
            if int(get(port, '/debug/pprof/tasks?debug=1').split('\n', 1)[0].rsplit(' ', 1)[1]) > TASKS:
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f'it never had {TASKS} tasks')
        return [goal for path in ('/debug/pprof/tasks?debug=1', '/debug/state', '/debug/pprof/tasks')
                for goal in of_path(run, port, path, what)]


def of_looks(program):
    return [goal for what in ('few', 'shared', 'named') for goal in of_crowd(program, what)]


def time_of(run):
    """How much of its thread's time a work takes, in ns."""
    tell(run)
    return int(run.stdout.readline())


def with_profile(run, port, hertz):
    """What it takes more with a profile than before and after, as a share."""
    before = time_of(run)
    profile = threading.Thread(target=get, args=(port, f'/debug/pprof/profile?seconds={PROFILE_S}&hz={hertz}'))
    profile.start()
    time.sleep(0.2)
    meanwhile = time_of(run)
    profile.join()
    return 2 * meanwhile / (before + time_of(run)) - 1


def of_profile(program, what):
    """Medians, as others on the machine change each time by some percent."""
    with running(program, what) as (run, port):
        time_of(run)
        more = {hertz: statistics.median(with_profile(run, port, hertz) for _ in range(PAIRS)) for hertz in (100, 1000)}
    for hertz, share in more.items():
        print(f'{what} with {hertz} samples a second: {100 * share:+.1f} % of its time')
    return [judged(f'a profile, {what}', '100 samples a second, share of the time', more[100], MOST_PROFILE,
                   form='{:.4f}'.format)]


# ---- Shares of processor time ----

def shares_of(amounts):
    """In percent: of each task, and of each function."""
    shares = collections.Counter()
    for (task, function), amount in amounts.items():
        shares[task] += 100 * amount / sum(amounts.values())
        shares[function] += 100 * amount / sum(amounts.values())
    return shares


def truth_of(run):
    """What each task has had in each function until now, in ns."""
    tell(run)
    lines = iter(run.stdout.readline, '\n')
    return collections.Counter({(task, function): int(ns) for task, function, ns in map(str.split, lines)})


def profile_of(port):
    """How many samples each task has had in each function."""
    path = f'/debug/pprof/profile?seconds={SHARES_S}&hz={SHARES_HZ}&json=1'
    amounts = collections.Counter()
    for stack in json.loads(get(port, path))['stacks']:
        if stack['task'] and stack['frames']:
            name = get(port, f"/debug/pprof/symbol?{stack['frames'][0]:#x}").split()[-1]
            amounts[stack['task'], name] += stack['n']
    return amounts


def perf_of(pid):
    """The same by tools/acorn_perf.py; nothing: perf is not here, or may not record."""
    command = [sys.executable, PERF, '--seconds', str(SHARES_S), '--hz', str(SHARES_HZ), str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which('perf') else None
    if not done or done.returncode:
        print('perf:', done.stderr.strip() if done else 'is not here')
        return collections.Counter()
    lines = re.findall(r'^ *([0-9.]+)%  (\S+) +(\S+)$', done.stdout, re.MULTILINE)
    samples = int(done.stdout.split()[0])
    return collections.Counter({(task, function): float(share) / 100 * samples
                                for share, task, function in lines if '(' not in task})


def enough(take):
    """Adds up what `take` returns until there are enough samples: a busy machine gives the program few."""
    taken = collections.Counter()
    for _ in range(SHARES_TIMES):
        more = take()
        taken += more
        if not more or taken.total() >= SHARES_SAMPLES:
            break
    return taken


def farthest(shares, others):
    return max(abs(shares[name] - others[name]) for name in {*shares, *others})


def of_shares(program):
    with running(program, 'shares') as (run, port):
        before = truth_of(run)
        profile = enough(lambda: profile_of(port))
        true = shares_of(truth_of(run) - before)
        perf = enough(lambda: perf_of(run.pid))
    profiled, by_perf = shares_of(profile), shares_of(perf) if perf else None
    print(f'shares of time, by {profile.total()} samples, {perf.total():.0f} of perf:')
    for name, share in sorted(true.items()):
        print(f'  {name}: {share:.1f} %; in the profile {profiled[name]:.1f}'
              + (f', by perf {by_perf[name]:.1f}' if by_perf else ''))
    return [judged('shares of time', f'the profile and {what}, points', other and farthest(profiled, other),
                   MOST_POINTS, form='{:.1f}'.format) for what, other in (('the truth', true), ('perf', by_perf))]


def are_named(page):
    named = [page.count(f'task "{name}" [does not give way') for name in ('spins', 'wants the lock')]
    return named == [SPINNERS, 1] and 'spins_for_ever(' in page and 'wants_the_lock(' in page


def of_stuck(program):
    """All threads spin, but one that waits for a lock of libc. The first looks may come before they do."""
    path, times = '/debug/pprof/tasks?debug=2', []
    with running(program, 'stuck', str(SPINNERS)) as (_, port):
        if not any(are_named(get(port, path)) for _ in range(20)):
            raise SystemExit(f'not all threads are named:\n{get(port, path)}')
        for _ in range(ROUNDS):
            began = time.monotonic()
            is_right = are_named(get(port, path))
            times.append(time.monotonic() - began if is_right else float('inf'))
    print(f'{SPINNERS + 1} threads that do not answer are named in {max(times):.2f} s')
    return [judged('threads do not answer', 'all are named, s', max(times), MOST_ANSWER_S, form='{:.2f}'.format)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--requests', type=int, default=2000)
    options = parser.parse_args()
    started = time.monotonic()
    goals = (of_looks(options.program) + of_stuck(options.program) + of_shares(options.program)
             + of_profile(options.program, 'work') + of_profile(options.program, 'load'))
    if shutil.which('valgrind'):
        print(f"an echo, both sides: {of_each(options.program, ('echo',), options.requests):.0f} instructions")
        beside = os.path.dirname(options.program)
        goals += of_yields((f'{beside}/debug-yields', f'{beside}/debug-yields-without'), 10 * options.requests)
        goals += of_requests(options.program, options.requests)
    print_end(started, goals)


if __name__ == '__main__':
    main()
