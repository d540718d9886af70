#!/usr/bin/env python3
"""Stops servers under load, and counts the requests that are lost: those on a connection that the system had made.

A run: http-server-acorn gets SIGTERM while a client, wrk or http/stop/main.go, asks all the time, on connections that
are kept or on a new one for each request. Half of the runs have a successor, which listens on the same port from just
before the signal on, as the next version of a service would: then no connection may even be refused. (wrk cannot tell
a refused connection from a lost request. It always has a successor.)

    bench/http_stop.py SERVER [--runs N] [--seed N]

SERVER is the program http-server-acorn. Exit 1: requests were lost.
"""
import argparse
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent
CONNECTIONS = 32
LIMIT_S = 60


def start(server, threads):
    environment = {**os.environ, 'THREADS': str(threads), 'STOPS': '1'}
    process = subprocess.Popen([server, '0'], stderr=subprocess.PIPE, text=True, env=environment)
    return process, re.fullmatch(r'listening on 127\.0\.0\.1:(\d+)\n', process.stderr.readline())[1]


def client(stop, which, how, port):
    if which == 'go':
        return [stop, 'load', port, str(CONNECTIONS), '1000', how]
    return ['wrk', '-t1', f'-c{CONNECTIONS}', '-d1s', *(['-H', 'Connection: close'] if how == 'new' else []),
            f'http://127.0.0.1:{port}/hello']


def counts(which, text):
    """(answered, lost, refused)"""
    if which == 'go':
        return tuple(int(word) for word in text.split())
    answered = int(re.search(r'(\d+) requests in', text)[1])
    errors = re.search(r'connect (\d+), read (\d+), write (\d+), timeout (\d+)', text)
    refused, *lost = [int(n) for n in errors.groups()] if errors else [0] * 4
    strange = re.search(r'Non-2xx or 3xx responses: (\d+)', text)
    return answered, sum(lost) + (int(strange[1]) if strange else 0), refused


def run(server, stop, which, how, threads, has_successor, when):
    process, port = start(server, threads)
    successor = None
    try:
        if has_successor:
            successor = subprocess.Popen([stop, 'successor', port], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True)
        load = subprocess.Popen(client(stop, which, how, port), stdout=subprocess.PIPE, text=True)
        try:
            load.communicate(timeout=when)
        except subprocess.TimeoutExpired:
            pass
        if successor:
            successor.stdin.write('\n')
            successor.stdin.flush()
            assert successor.stdout.readline() == 'serves\n'
        process.send_signal(signal.SIGTERM)
        text = load.communicate(timeout=LIMIT_S)[0]
        assert process.wait(LIMIT_S) == 0, process.returncode
        return counts(which, text)
    finally:
        for each in (process, successor):
            if each:
                each.kill()
                each.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('server')
    parser.add_argument('--runs', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    kinds = [(which, how, threads, successor)
             for which, how, threads, successor in itertools.product(('go', 'wrk'), ('keep', 'new'), (1, 2), (1, 0))
             if successor or which == 'go']
    sums = {kind: [0, 0, 0, 0] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        stop = f'{folder}/stop'
        subprocess.run(['go', 'build', '-o', stop, '.'], cwd=BENCH / 'http' / 'stop', check=True)
        for n in range(args.runs):
            kind = kinds[n % len(kinds)]
            result = run(args.server, stop, *kind, chance.uniform(0.1, 0.7))
            sums[kind] = [a + b for a, b in zip(sums[kind], (1, *result))]
    print('client, connections, threads, successor: runs, answered, lost, refused')
    for (which, how, threads, successor), counted in sums.items():
        print(f'{which} {how} {threads} {"yes" if successor else "no"}: {" ".join(str(n) for n in counted)}')
    lost = sum(counted[2] for counted in sums.values())
    refused = sum(counted[3] for kind, counted in sums.items() if kind[3])
    print(f'{lost} lost, {refused} refused beside a successor')
    return lost + refused > 0


if __name__ == '__main__':
    sys.exit(main())
