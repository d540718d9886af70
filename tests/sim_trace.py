#!/usr/bin/env python3
"""sim_trace.py PROGRAM: traces of runs (--trace) are valid, complete, and show what the runs did. PROGRAM is
tests/sim_failing.c."""
import collections
import json
import os
import subprocess
import sys
import tempfile


def traced(*args, status=1):
    """The events of a trace, and what the program wrote to stderr. ThreadSanitizer allows no child process, and
    there is no trace then: []."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'trace.json')
        run = subprocess.run([sys.argv[1], '--trace', path, *args], capture_output=True, text=True,
                             errors='replace', check=False)
        assert run.returncode == status, (args, run)
        if 'there is no trace' in run.stderr or 'it is not shortened' in run.stderr:
            return [], run.stderr
        with open(path, encoding='utf-8') as file:
            return json.load(file)['traceEvents'], run.stderr


def check_shape(events, is_whole=True):
    """Slices are closed in order, times go forward, arrows lead from an event to a later one, tracks have names."""
    last, depth, sent, named = 0, collections.Counter(), {}, {0}
    for event in events:
        phase, track = event['ph'], event.get('tid')
        if phase == 'M':
            named.add(track)
            continue
        assert track in named, event
        assert event['ts'] >= last, event
        last = event['ts']
        if phase in 'BE':
            depth[track] += 1 if phase == 'B' else -1
            assert depth[track] in (0, 1), event
        elif phase == 's':
            sent[event['id']] = event
        elif phase == 'f':
            assert sent[event['id']]['ts'] < event['ts'] and event['bp'] == 'e', event
        else:
            assert phase in 'Xi', event
    assert not is_whole or not any(depth.values()), depth


def names_of(events, phase):
    return [event.get('name') for event in events if event['ph'] == phase]


def main():
    found, stderr = traced('--', 'net')  # of a thousand runs, the one that fails
    seed = stderr.split('seed ')[1].split(':')[0]
    events, stderr = traced('--seed', seed, '--', 'net')  # in the process itself, the same
    assert found in ([], events)
    check_shape(events)
    assert 'the answer is short' in stderr
    assert 'the run fails: the answer is short' in names_of(events, 'i')
    assert any(name.startswith('waits for readable socket ') for name in names_of(events, 'B'))
    arrivals = [event for event in events if event['ph'] == 'f']
    assert len(arrivals) >= 4 and {event['tid'] for event in arrivals} >= {1}, arrivals
    assert 'task 2 (server)' in [event['args']['name'] for event in events if event['ph'] == 'M']

    events, _ = traced('--seed', '1', '--', 'late')
    check_shape(events)
    assert 'deadline' in names_of(events, 'i')
    names = [event['args']['name'] for event in events if event['ph'] == 'M']
    assert 'task 2 ("la\\te"\n\ufffd)' in names, names
    assert max(event['ts'] for event in events if 'ts' in event) >= 3e6  # microseconds

    seed = 1
    while subprocess.run([sys.argv[1], '--seed', str(seed), '--', 'death'], capture_output=True, check=False) \
            .returncode != -6:
        seed += 1
    events, stderr = traced('--seed', str(seed), '--', 'death', status=-6)  # what there is before the death
    check_shape(events, is_whole=False)
    assert 'the process dies by signal 6' in stderr
    assert 'turn' in names_of(events, 'B')

    with tempfile.TemporaryDirectory() as folder:
        short = os.path.join(folder, 'short')
        events, _ = traced('--shrink', short, '--', 'money')  # the shorter run
        if events:
            check_shape(events)
            assert len(names_of(events, 'B')) < 2 * 60, len(events)
            assert traced('--replay', short, '--', 'money')[0] == events
    run = subprocess.run([sys.argv[1], '--seed', '1', '--trace', '/nowhere/at/all', '--', 'net'], capture_output=True,
                         text=True, check=False)
    assert run.returncode == 1 and 'the trace cannot be written' in run.stderr, run
    print('sim_trace: passed')


main()
