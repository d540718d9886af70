#!/usr/bin/env python3
"""perf.py PROGRAM: tools/acorn_perf.py gives perf's samples of debug/problems.c to the task that they are of. Exit 77:
perf is not here, or may not record."""
import pathlib
import shutil
import subprocess
import sys

TOOL = pathlib.Path(__file__).parents[2] / 'tools/acorn_perf.py'


def main():
    if not shutil.which('perf'):
        print('debug.perf: skipped: no perf (Debian: apt-get install linux-perf)')
        sys.exit(77)
    with subprocess.Popen([sys.argv[1], 'hog'], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        done = subprocess.run([sys.executable, TOOL, '--seconds', '2', '--hz', '500', str(program.pid)], text=True,
                              capture_output=True, check=False)
        program.stdin.close()
    if done.stderr.startswith('perf: '):
        print('debug.perf: skipped: ' + done.stderr)
        sys.exit(77)
    print(done.stdout + done.stderr)
    tasks = {line.split('%')[1].strip().rsplit(' ', 1)[0].strip() for line in done.stdout.splitlines()
             if line.endswith(' pack_report')}
    if done.returncode or tasks != {'reports'}:
        sys.exit(f'debug.perf: pack_report() ran in {tasks}')
    print('debug.perf: passed')


if __name__ == '__main__':
    main()
