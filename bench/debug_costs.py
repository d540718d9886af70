#!/usr/bin/env python3
"""What a look inside costs (docs/see-inside.md, "Costs"), in instructions and processor time, which other programs on
the machine change little.

    bench/debug_costs.py PROGRAM [--requests N]

PROGRAM is debug-costs. Instructions are counted by callgrind, if it is here."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import threading
import time
import urllib.request

from harness.command import print_end
from harness.goals import judged

TASKS, LOOKS, ROUNDS, PROFILE_S = 100000, 10, 5, 3
MOST_LOOK_MS, MOST_PROFILE, MOST_METRICS = 100, 0.01, 0.005  # goals


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


def of_looks(program):
    goals = []
    with subprocess.Popen([program, 'many', str(TASKS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as run:
        port = int(run.stdout.readline())
        for _ in range(600):
            if int(get(port, '/debug/pprof/tasks?debug=1').split('\n', 1)[0].rsplit(' ', 1)[1]) > TASKS:
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f'it never had {TASKS} tasks')
        for path in ('/debug/pprof/tasks?debug=1', '/debug/state', '/debug/pprof/tasks'):
            before, began = processor_ms(run), time.monotonic()
            for _ in range(LOOKS):
                get(port, path)
            in_all = (time.monotonic() - began) * 1000 / LOOKS
            print(f'{path} of {TASKS} tasks: {(processor_ms(run) - before) / LOOKS:.0f} ms of processor time, '
                  f'{in_all:.0f} ms in all')
            if 'tasks' in path:
                goals.append(judged(f'a look at {TASKS} tasks', f'{path}, ms in all', in_all, MOST_LOOK_MS,
                                    form='{:.1f}'.format))
        run.communicate('\n')
    return goals


def of_profile(program):
    times = {0: [], 100: [], 1000: []}
    with subprocess.Popen([program, 'work'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        port = int(run.stdout.readline())
        for _ in range(ROUNDS):
            for hertz, of in times.items():
                path = f'/debug/pprof/profile?seconds={PROFILE_S}&hz={hertz}'
                profile = threading.Thread(target=get, args=(port, path))
                if hertz:
                    profile.start()
                    time.sleep(0.2)
                print('', file=run.stdin, flush=True)
                of.append(int(run.stdout.readline()))
                if hertz:
                    profile.join()
        run.communicate()
    plain = min(times[0])
    print(f'work without a profile: {plain / 1e6:.0f} ms (the least of {ROUNDS}; median '
          f'{statistics.median(times[0]) / 1e6:.0f})')
    for hertz in (100, 1000):
        print(f'  {hertz} samples a second: {100 * (min(times[hertz]) / plain - 1):+.1f} %')
    return [judged('a profile', '100 samples a second, share of the time', min(times[100]) / plain - 1, MOST_PROFILE,
                   form='{:.4f}'.format)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--requests', type=int, default=2000)
    options = parser.parse_args()
    started = time.monotonic()
    goals = of_looks(options.program) + of_profile(options.program)
    if shutil.which('valgrind'):
        print(f"an echo, both sides: {of_each(options.program, ('echo',), options.requests):.0f} instructions")
        goals += of_requests(options.program, options.requests)
    print_end(started, goals)


if __name__ == '__main__':
    main()
