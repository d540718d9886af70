#!/usr/bin/env python3
"""readers.py PROGRAM [GO]: what other programs make of acorn_debug's pages, which PROGRAM serves.

Prometheus' parser (prometheus_client, if it is installed) reads the metrics, and `go tool pprof`, if GO is given, the
profiles. Exits with 77, "skipped", if there is neither."""
import os
import subprocess
import sys
import tempfile
import urllib.request

FAILED = []


def check(what, text, *wanted):
    for one in wanted:
        if one not in text:
            FAILED.append(f'{what}: no "{one}" in:\n{text}')


def metrics(base):
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError:
        return False
    with urllib.request.urlopen(f'{base}/metrics') as page:
        families = {family.name: family for family in text_string_to_metric_families(page.read().decode())}
    check('metrics', ' '.join(families), 'acorn_tasks', 'acorn_stacks_reserved_bytes', 'process_cpu_seconds',
          'acorn_http_request_duration_seconds')
    if len(families['acorn_tasks'].samples) < 3:
        FAILED.append('acorn_tasks: not a line for each thread')
    return True


def pprof(go, base, folder, arguments, profile):
    environment = dict(os.environ, PPROF_TMPDIR=folder)
    done = subprocess.run([go, 'tool', 'pprof', *arguments, f'{base}/debug/pprof/{profile}'], env=environment,
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        FAILED.append(f'pprof {profile}: {done.stderr}')
    return done.stdout


def profiles(go, base):
    with tempfile.TemporaryDirectory() as folder:
        top = pprof(go, base, folder, ['-top'], 'profile?seconds=2')
        check('profile', top, 'Type: cpu', 'spins')
        share = [line.split() for line in top.splitlines() if line.endswith(' spins')]
        if not share or float(share[0][1].rstrip('%')) < 90:
            FAILED.append(f'profile: spins() has all the time:\n{top}')
        check('labels', pprof(go, base, folder, ['-tags'], 'profile?seconds=1'), 'task:', 'hog')
        check('tasks', pprof(go, base, folder, ['-traces'], 'tasks'), 'Type: tasks', 'task:  sleeper 3',
              'state:  waits', 'waits_for_end', 'private_task', 'task_on_share_stack')
        check('block', pprof(go, base, folder, ['-top'], 'block?seconds=1'), 'Type: delay', 'waits_for_end')
        check('stacks', pprof(go, base, folder, ['-top'], 'stacks'), 'Type: touched', 'private_task')
        check('goroutine', pprof(go, base, folder, ['-top'], 'goroutine'), 'waits_for_end')
        check('threads', pprof(go, base, folder, ['-tags'], 'threadcreate'), 'thread:')


def main():
    program, go = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    with subprocess.Popen([program, 'serve'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as served:
        base = f'http://127.0.0.1:{int(served.stdout.readline())}'
        urllib.request.urlopen(f'{base}/debug/pprof/tasks').read()
        any_reader = metrics(base)
        if go:
            profiles(go, base)
        served.communicate('\n')
    if served.returncode:
        FAILED.append(f'{program}: {served.returncode}')
    if not any_reader and not go:
        print('skipped: neither prometheus_client nor go is here')
        return 77
    print('\n'.join(FAILED) or 'passed')
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
