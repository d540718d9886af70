#!/usr/bin/env python3
"""readers.py FOLDER PROGRAM [GO] [PROMETHEUS]: what other programs make of acorn_debug's pages, which PROGRAM serves.

Prometheus' parser (prometheus_client, from PyPI into FOLDER if it is not here) and PROMETHEUS, if given, read the
metrics, and `go tool pprof`, if GO is given, the profiles. Exits with 77, "skipped", if there is none."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import from_pypi
from ports import kept_port

FAILED = []

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    from_pypi.enter(sys.argv[1], 'prometheus-client==0.21.1')
    text_string_to_metric_families = None


def check(what, text, *wanted):
    for one in wanted:
        if one not in text:
            FAILED.append(f'{what}: no "{one}" in:\n{text}')


def metrics(base):
    if not text_string_to_metric_families:
        print('prometheus_client is not to be had')
        return False
    with urllib.request.urlopen(f'{base}/metrics') as page:
        families = {family.name: family for family in text_string_to_metric_families(page.read().decode())}
    check('metrics', ' '.join(families), 'acorn_tasks', 'acorn_stacks_reserved_bytes', 'process_cpu_seconds',
          'acorn_http_request_duration_seconds', 'acorn_http_requests_in_flight', 'acorn_io_read_bytes',
          'acorn_offload_jobs', 'acorn_name_lookups', 'acorn_spans')
    if len(families['acorn_tasks'].samples) < 3:
        FAILED.append('acorn_tasks: not a line for each thread')
    return True


def answers_of(base, served):
    """What it knows, once it has asked the target; None: it never has."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(f'{base}/api/v1/targets', timeout=10) as page:
                target = json.load(page)['data']['activeTargets'][0]
            if target['health'] != 'unknown':
                break
        except (OSError, IndexError):
            pass
        if served.poll() is not None:
            return None
        time.sleep(0.1)
    else:
        return None
    with urllib.request.urlopen(f'{base}/api/v1/query?query=acorn_tasks', timeout=10) as page:
        return target, json.load(page)['data']['result']


def scrape(prometheus, target):
    """A real Prometheus asks for the metrics once a second."""
    port = kept_port()
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, 'prometheus.yml')
        with open(config, 'w', encoding='utf-8') as file:
            file.write('scrape_configs:\n  - job_name: acorn\n    scrape_interval: 1s\n    static_configs:\n'
                       f"      - targets: ['{target.removeprefix('http://')}']\n")
        with subprocess.Popen([prometheus, f'--config.file={config}', f'--storage.tsdb.path={folder}/data',
                               f'--web.listen-address=127.0.0.1:{port}'], stderr=subprocess.DEVNULL) as served:
            known = answers_of(f'http://127.0.0.1:{port}', served)
            served.terminate()
    if not known:
        FAILED.append('Prometheus does not begin')
    elif known[0]['health'] != 'up' or len(known[1]) < 3:
        FAILED.append(f'Prometheus: {known}')


def pprof(go, base, folder, arguments, profile, fails=False):
    environment = dict(os.environ, PPROF_TMPDIR=folder)
    done = subprocess.run([go, 'tool', 'pprof', *arguments, f'{base}/debug/pprof/{profile}'], env=environment,
                          capture_output=True, text=True, timeout=300)
    if bool(done.returncode) != fails:
        FAILED.append(f'pprof {profile}: {done.stderr}')
    return done.stderr if fails else done.stdout


def status(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as page:
            return page.status
    except urllib.error.HTTPError as error:
        return error.code


def profiles(go, base):
    with tempfile.TemporaryDirectory() as folder:
        top = pprof(go, base, folder, ['-top'], 'profile?seconds=2')
        check('profile', top, 'Type: cpu', 'spins')
        share = [line.split() for line in top.splitlines() if line.endswith(' spins')]
        if not share or float(share[0][1].rstrip('%')) < 90:
            FAILED.append(f'profile: spins() has all the time:\n{top}')
        check('labels', pprof(go, base, folder, ['-tags'], 'profile?seconds=1'), 'task:', 'hog')
        check('tasks', pprof(go, base, folder, ['-traces'], 'tasks'), 'Type: tasks', 'task:  sleeper 3',
              'created_by:  ', 'at:', 'debug_pages.c:',
              'state:  waits', 'waits_for_end', 'private_task', 'task_on_share_stack')
        check('block', pprof(go, base, folder, ['-top'], 'block?seconds=1'), 'Type: delay', 'waits_for_end',
              'delay: how long tasks waited')
        check('mutex', pprof(go, base, folder, ['-tags'], 'mutex?seconds=1'), 'holder_at:', 'debug_pages.c:')
        check('stacks', pprof(go, base, folder, ['-top'], 'stacks'), 'Type: touched', 'private_task')
        check('late', pprof(go, base, folder, ['-traces'], 'late?seconds=1'), 'Type: held', 'state:  ran long',
              'task:  hog', 'spins', 'held: ')
        check('leaked', pprof(go, base, folder, ['-top'], 'leaked'), 'Type: leaked', 'embraces')
        check('route', pprof(go, base, folder, ['-tags'], 'tasks'), 'route:', '/debug/pprof/tasks')
        check('goroutine', pprof(go, base, folder, ['-top'], 'goroutine'), 'waits_for_end')
        check('threads', pprof(go, base, folder, ['-tags'], 'threadcreate'), 'thread:')
        with socket.create_connection(base.removeprefix('http://').split(':')) as first:
            first.sendall(b'GET /debug/pprof/profile?seconds=15 HTTP/1.1\r\nHost: localhost\r\n'
                          b'Connection: close\r\n\r\n')
            while status(f'{base}/debug/pprof/tasks') != 429:  # until it is being made
                pass
            check('one at a time', pprof(go, base, folder, ['-top'], 'tasks', fails=True),
                  'one profile at a time: /debug/pprof/profile is being made, for some')
            while first.recv(65536):
                pass


def main():
    program, go, prometheus = (sys.argv[2:] + ['', ''])[:3]
    with subprocess.Popen([program, 'serve'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as served:
        base = f'http://127.0.0.1:{int(served.stdout.readline())}'
        urllib.request.urlopen(f'{base}/debug/pprof/tasks').read()
        any_reader = metrics(base)
        if prometheus:
            scrape(prometheus, base)
        if go:
            profiles(go, base)
        served.communicate('\n')
    if served.returncode:
        FAILED.append(f'{program}: {served.returncode}')
    if not any_reader and not go and not prometheus:
        print('skipped: neither prometheus_client nor go nor Prometheus is here')
        return 77
    print('\n'.join(FAILED) or 'passed')
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
