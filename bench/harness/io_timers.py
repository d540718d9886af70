"""Timers: what a deadline for a wait adds, while other tasks sleep. bench/io/timers.c."""
import subprocess

from .io_running import Case, Goal, Missing

WAITS = {'until': 'a wait with a deadline', 'early': 'the same, before all others',
         'scope': 'a wait in a scope with a deadline', 'after': 'the same, by aco_after()'}
BEGIN = 'a scope that waits for nothing'
LIMIT_S = 60


def cases(bench):
    program = bench.directory / 'bench' / 'io-timers'

    def took(operation):
        try:
            done = subprocess.run([program, operation, str(bench.armed)], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise Missing(str(error)) from error
        return float(done.stdout)

    def measure(name):
        if name == BEGIN:
            return {'ns': took('begin')}
        operation = next(operation for operation, text in WAITS.items() if text == name)
        return {'ns': took(operation) - took('wait')}

    yield Case('timers', f'Timers, with {bench.armed} armed', [*WAITS.values(), BEGIN], measure,
               {'ns': 'ns more than without'}, 'ns', WAITS['until'],
               [Goal('ns', name, 60) for name in (*WAITS.values(), BEGIN)])
