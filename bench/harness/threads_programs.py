"""The programs that bench/run_threads.py compares: PROGRAM THREADS CASE N prints "CASE nanoseconds" for each round."""
import statistics
import subprocess

from . import building
from .io_running import Missing

ACORN, GO, TOKIO, BOOST = 'acorn', 'Go', 'tokio', 'Boost.Fiber'
TBB, ASYNC = 'oneTBB', 'std::async'
AWAIT = 'aco::await'
SOURCES = building.BENCH / 'threads'
TARGETS = ('threads-acorn', 'threads-echo', 'threads-await', 'threads-async', 'threads-tbb', 'threads-boost',
           'io-client')
LIMIT_S = 300


def with_threads(name, threads):
    """A contender's name in the tables."""
    return f'{name}, {threads} thread{"s" if threads > 1 else ""}'


class Programs:
    """Those by CMake were built in `directory`; cargo and go build now. `part`: of the full amount of work."""
    def __init__(self, directory, part):
        self.part, self.directory = part, directory
        cargo, go = directory.parent / 'cargo-threads', directory.parent / 'threads-go'
        built = directory / 'bench'
        self.paths = {ACORN: (built / 'threads-acorn', None),
                      GO: (go, building.build_with_go(go, '.', SOURCES / 'go')),
                      TOKIO: (cargo / 'release' / 'threads-tokio',
                              building.build_with_cargo('tokio', cargo, SOURCES)),
                      BOOST: (built / 'threads-boost', None), TBB: (built / 'threads-tbb', None),
                      ASYNC: (built / 'threads-async', None), AWAIT: (built / 'threads-await', None)}

    def ns(self, name, threads, case, n):
        """Nanoseconds for each of n: the median of the program's rounds but the first."""
        path, missing = self.paths[name]
        if missing or not path.exists():
            raise Missing(missing or 'was not built')
        try:
            done = subprocess.run([path, str(threads), case, str(n)], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise Missing(f'took more than {LIMIT_S} s') from late
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise Missing(said[-1] if said else f'ended with status {done.returncode}')
        return statistics.median(float(line.split()[1]) for line in done.stdout.splitlines()[1:])
