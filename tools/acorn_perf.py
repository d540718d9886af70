#!/usr/bin/env python3
"""acorn_perf.py [--seconds N] [--hz N] [--event EVENT] [--call-graph HOW] [--folded] PID: perf's samples by task.

The program uses acorn_debug (docs/see-inside.md), whose trace tells which task had which thread when. perf records the
process meanwhile, on the same clock. Prints how the samples are shared by tasks and functions; with --folded a line for
each stack, the task's name first, for flame graphs. Needs perf, and no privileges for a process of one's own."""
import argparse
import bisect
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from acorn_top import base_of, get

HEAD = re.compile(r'^\s*(\d+)\s+(\d+)\.(\d+):')
FRAME = re.compile(r'^\s+[0-9a-f]+ (.+)$')


def turns_of(trace):
    """For each thread, its turns in order: (begin, end, task)."""
    first, turns = trace['otherData']['monotonic_ns'], collections.defaultdict(list)
    for event in trace['traceEvents']:
        if event['ph'] == 'X':
            begin = first + event['ts'] * 1000
            turns[event['tid']].append((begin, begin + event['dur'] * 1000, event['name']))
    for one in turns.values():
        one.sort()
    return turns


def task_at(turns, thread, ns):
    """The name of the task whose turn it was; "(no task)"; None: not known, as only whole turns are in the trace."""
    one = turns.get(thread)
    if not one:
        return '(no task)'
    if ns < one[0][0] or ns > one[-1][1]:
        return None
    i = bisect.bisect(one, (ns, float('inf'), '')) - 1
    return one[i][2] if ns <= one[i][1] else '(no task)'


def samples_of(text):
    """(thread, ns, frames from the innermost) for each sample of `perf script`."""
    head, frames = None, []
    for line in text.splitlines() + ['']:
        match = HEAD.match(line)
        if match:
            head, frames = (int(match[1]), int(match[2]) * 10**9 + int(match[3].ljust(9, '0'))), []
        elif FRAME.match(line):
            frames.append(FRAME.match(line)[1])
        elif not line.strip() and head:
            yield (*head, frames or ['?'])
            head = None


def record(args, base, path):
    """Records, and returns the trace of that time."""
    command = ['perf', 'record', '-q', '-k', 'CLOCK_MONOTONIC', '-e', args.event, '-F', str(args.hz),
               '--call-graph', args.call_graph, '-o', path, '-p', str(args.pid)]
    with subprocess.Popen(command + ['--', 'sleep', str(args.seconds + 3)], stderr=subprocess.PIPE) as perf:
        try:
            trace = json.loads(get(f'{base}/debug/pprof/trace?seconds={args.seconds}', limit=args.seconds + 10))
            ended = perf.poll()
        finally:
            if perf.poll() is None:
                perf.send_signal(2)
            message = perf.communicate()[1].decode()
    if ended:
        sys.exit(f'perf: {message.strip()}')
    return trace


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=int, default=5)
    parser.add_argument('--hz', type=int, default=99)
    parser.add_argument('--event', default='cpu-clock:u')
    parser.add_argument('--call-graph', default='fp')
    parser.add_argument('--folded', action='store_true')
    parser.add_argument('pid', type=int)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'perf.data')
        trace = record(args, base_of(str(args.pid)), path)
        text = subprocess.run(['perf', 'script', '-i', path, '--ns', '-F', 'tid,time,ip,sym'], check=True,
                              capture_output=True, text=True).stdout
    turns = turns_of(trace)
    counts = collections.Counter()
    for thread, ns, frames in samples_of(text):
        task = task_at(turns, thread, ns)
        if task:
            counts[(task, *reversed(frames)) if args.folded else (task, frames[0])] += 1
    if args.folded:
        for stack, n in sorted(counts.items()):
            print(';'.join(part.replace(';', ':') for part in stack), n)
        return
    print(f'{sum(counts.values())} samples, {trace["otherData"]["lost"]} turns lost')
    for (task, function), n in counts.most_common():
        print(f'{100 * n / counts.total():6.2f}%  {task:<32} {function}')


if __name__ == '__main__':
    main()
