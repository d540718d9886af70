"""Random 4 KiB reads of a file past the cache, 128 in flight, beside fio's io_uring engine. One core."""
import json
import os
import shutil
import subprocess

from .io_running import Case, Goal, Missing

RING, POOL, FIO = 'acorn, io_uring', 'acorn, pool', 'fio, io_uring'
IN_FLIGHT = 128
COLUMNS = {'kiops': 'reads, 1000/s', 'cpu_us': 'CPU for a read, us'}
GOALS = [Goal('kiops', RING, 0.95, FIO, is_least=True), Goal('cpu_us', RING, 1.1, FIO)]


def make_file(path, size):
    if not path.exists() or path.stat().st_size != size:
        with open(path, 'wb') as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())


def output_of(command, **environment):
    core = min(os.sched_getaffinity(0))
    ended = subprocess.run(['taskset', '-c', str(core), *map(str, command)], env={**os.environ, **environment},
                           capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Missing(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f'exit {ended.returncode}')
    return ended.stdout


def run_acorn(program, path, seconds, way):
    if not program.exists():
        raise Missing('not built')
    reads, cpu = map(float, output_of([program, path, IN_FLIGHT, seconds], ACO_FILES=way).split())
    return {'kiops': reads / 1e3, 'cpu_us': cpu}


def run_fio(path, seconds):
    if not shutil.which('fio'):
        raise Missing('fio is not installed')
    output = output_of(['fio', '--name=reads', f'--filename={path}', '--rw=randread', '--bs=4k', '--direct=1',
                        '--ioengine=io_uring', f'--iodepth={IN_FLIGHT}', f'--runtime={seconds}', '--time_based',
                        '--norandommap', '--output-format=json'])
    job = json.loads(output[output.index('{'):])['jobs'][0]
    cpu = (job['usr_cpu'] + job['sys_cpu']) / 100 * job['job_runtime'] * 1e3
    return {'kiops': job['read']['iops'] / 1e3, 'cpu_us': cpu / job['read']['total_ios']}


def cases(bench):
    program, path = bench.directory / 'bench' / 'io-file-reads', bench.directory / 'io-files.data'
    seconds = 1 if bench.is_quick else 5

    def measure(name):
        make_file(path, (64 if bench.is_quick else 512) << 20)
        return run_fio(path, seconds) if name == FIO else \
            run_acorn(program, path, seconds, 'uring' if name == RING else 'pool')

    yield Case('files', f'Random reads of 4 KiB, {IN_FLIGHT} in flight', [RING, POOL, FIO], measure, COLUMNS, 'cpu_us',
               FIO, GOALS)
