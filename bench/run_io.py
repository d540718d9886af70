#!/usr/bin/env python3
"""run_io.py [--requests N] [--rounds N] BUILD: the echo server of examples/io_echo.c beside a hand-written epoll loop.
Server on one core, client on the other. CPU of the server for each request (user and system), by its own time in
/proc; rounds alternate between the servers, and the median counts."""
import argparse
import os
import re
import resource
import statistics
import subprocess

TICK_S = 1e-9


def cpu_seconds(pid):
    """The processor time of a process, from its scheduler statistics, in nanoseconds there."""
    with open(f'/proc/{pid}/schedstat', encoding='ascii') as file:
        return int(file.read().split()[0]) * TICK_S


def measure(server, client, connections, requests, cores):
    with subprocess.Popen(['taskset', '-c', str(cores[0]), server, '0'], stderr=subprocess.PIPE, text=True) as process:
        try:
            port = re.search(r':(\d+)$', process.stderr.readline().strip())[1]
            command = ['taskset', '-c', str(cores[-1]), client, port, str(connections)]
            began = cpu_seconds(process.pid)
            subprocess.run([*command, str(connections)], check=True, capture_output=True)  # what connecting costs
            between = cpu_seconds(process.pid)
            ended = subprocess.run([*command, str(requests + connections)], check=True, capture_output=True, text=True)
            cpu = (cpu_seconds(process.pid) - between) - (between - began)
            return cpu / requests * 1e6, float(ended.stdout) / requests * 1e6
        finally:
            process.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--requests', type=int, default=100000)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--connections', type=int, nargs='*', default=[1, 100, 10000])
    args = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    cores = sorted(os.sched_getaffinity(0))
    servers = {'tasks': f'{args.build}/bench/io-echo-acorn', 'epoll loop': f'{args.build}/bench/io-echo-loop'}
    print(f'load before: {os.getloadavg()[0]:.1f}')
    print('connections  server       CPU for a request, us   time for a request, us   ratio of CPU')
    for connections in args.connections:
        rounds = [{name: measure(server, f'{args.build}/bench/io-client', connections, args.requests, cores)
                   for name, server in servers.items()} for _ in range(args.rounds)]
        for name in servers:
            cpu = statistics.median(r[name][0] for r in rounds)
            time = statistics.median(r[name][1] for r in rounds)
            ratio = statistics.median(r[name][0] / r['epoll loop'][0] for r in rounds)
            print(f'{connections:11}  {name:11}  {cpu:21.2f}   {time:22.2f}   {ratio:12.2f}')


if __name__ == '__main__':
    main()
