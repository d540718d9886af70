#!/usr/bin/env python3
"""The commands of bench/ print at their end, once, which goals they missed. Their mains run; what they would build and
measure is made up here."""
import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'bench'))

import debug_costs  # noqa: E402
import run  # noqa: E402
import run_memory  # noqa: E402
import run_paper  # noqa: E402
from harness import cases, goals, io_running, memory_cases, paper_cases, programs, running  # noqa: E402

GCC = 'gcc 12'


def printed(main, *options, about=None):
    out = io.StringIO()
    out.reconfigure = lambda **_: None
    with mock.patch.object(sys, 'argv', ['PROGRAM', *options]), contextlib.redirect_stdout(out), \
            mock.patch('harness.command.machine', return_value=about or {}), mock.patch('resource.setrlimit'):
        main()
    return out.getvalue()


def measured(case, times):
    """Results with `times` for the first lines of the case."""
    results = running.Results()
    programs.find_native([case], {'gcc': (GCC, Path('/nowhere'), None)}, {})
    for program, ns in zip(case.programs, times):
        results.samples[case, program] = [ns]
    return results


class Goals(unittest.TestCase):
    def check(self, text, missed, counts):
        """The output ends with the table of goals and their counts, and no line of it stands anywhere else."""
        before, table = text.split('\nGoals: ratios or values, medians of this run\n')
        *lines, last = table.splitlines()
        self.assertEqual(last, f'Goals: {counts}')
        self.assertEqual([line for line in lines if line.endswith(goals.MISSED)], lines[-len(missed):])
        for line, words in zip(lines[-len(missed):], missed):
            for word in words:
                self.assertIn(word, line)
        self.assertIsNone(re.search(r'\bmet\b|MISSED|not measured$', before, re.M), before)

    def test_verdicts(self):
        def verdict(*numbers, **how):
            return goals.judged('case', 'what', *numbers, **how).verdict
        self.assertEqual(verdict(1.0, 1.0), goals.MET)
        self.assertEqual(verdict(1.0001, 1.0), goals.MISSED)
        self.assertEqual(verdict(1.0001, 1.0, is_least=True), goals.MET)
        self.assertEqual(verdict(0.9999, 1.0, is_least=True), goals.MISSED)
        self.assertEqual(verdict(None, 1.0, is_judged=False), goals.UNMEASURED)
        self.assertEqual(verdict(2.0, 1.0, is_judged=False), goals.UNJUDGED)

    def test_without_goals(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            goals.print_goals([])
        self.assertEqual(out.getvalue(), '')

    def test_bench(self):
        case = next(case for case in cases.SWITCHES if case.name == 'native_call')
        results = measured(case, (10, 12.9, 13.1))
        with mock.patch('harness.programs.build', return_value=([], {})), \
                mock.patch('harness.running.run_cases', return_value=results):
            text = printed(run.main, '--only', case.title)
        self.check(text, [('restart', cases.COROSENSEI, GCC, '1.310', '<= 1.300')], '1 MISSED, 1 met')

    def test_bench_copying_is_added(self):
        """--part copying measures no case, and --add keeps the file's cases."""
        machine, item = {'cpu': 'EPYC', 'quick': False}, {'case': 'rss', 'impl': cases.ACORN, 'params': {}, 'ns': 2,
                                                         'min': 1, 'max': 3, 'bytes': 4}
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch('harness.programs.build', return_value=([], {})), \
                mock.patch('harness.running.run_cases', return_value=running.Results()) as run_cases, \
                mock.patch('harness.running.run_copying', return_value=[item]):
            file = Path(folder) / 'file.json'
            rows = [{'machine': machine}, {'case': 'flat', 'params': {}}, {**item, 'ns': 1}]
            file.write_text('\n'.join(map(json.dumps, rows)))
            printed(run.main, '--part', 'copying', '--add', '--json', str(file), about=machine)
            self.assertEqual(run_cases.call_args[0][1], [])
            self.assertEqual([json.loads(line) for line in file.read_text().splitlines()][1:], [rows[1], item])

    def test_bench_paper(self):
        results = measured(paper_cases.WRITE_FULLY, (10, 9, 5.1))
        with mock.patch('run_paper.build'), mock.patch('harness.running.run_cases', return_value=results):
            text = printed(run_paper.main, '--only', 'write_fully')
        self.check(text, [('write_fully()', 'scheduler', '0.510', '<= 0.500')], '1 MISSED')

    def test_bench_memory(self):
        n = memory_cases.FALLBACK_NUMBER
        items = [{'case': 'scale_create', 'impl': impl, 'params': {'n': 10_000_000, 'live': memory_cases.LIVE,
                                                                   'compiler': GCC}, 'ns': ns, 'bytes': size}
                 for impl, ns, size in ((memory_cases.ACORN, 26, 276), (memory_cases.GLIBC, 100, 1000))]
        items.append({'case': 'private_fallback', 'impl': memory_cases.PRIVATE, 'made': 9, 'guarded': 9, 'ns': 1,
                      'errno': 'EAGAIN', 'message': 'vm.max_map_count',
                      'params': {'n': n, 'flags': '-', 'compiler': GCC}})
        with mock.patch('harness.memory_cases.build', return_value=[]), \
                mock.patch('run_memory.run_groups', return_value=items):
            text = printed(run_memory.main)
        self.check(text, [('10M', 'acorn, create', 'glibc', '0.260', '<= 0.250')], '1 MISSED, 2 met, 4 not measured')

    def test_servers(self):
        """bench-io, bench-threads, bench-http and bench-grpc are io_running.run_cases()."""
        case = io_running.Case('echo', 'Echo', ['acorn', 'Go', 'none'], None, {'us': 'CPU, us'}, 'us', 'Go', [
            io_running.Goal('us', 'acorn', 1.05, 'Go'), io_running.Goal('us', 'acorn', 3, is_least=True),
            io_running.Goal('us', 'none', 1, 'Go')])

        def measure(name):
            if name == 'none':
                raise io_running.Missing('is not installed')
            return {'us': {'acorn': 2.2, 'Go': 2.0}[name]}

        case.measure = measure
        module = mock.Mock(cases=lambda _: [case])
        with mock.patch('harness.io_running.build'):
            text = printed(lambda: io_running.run_cases('bench-x', 'X', '', (), [module], mock.Mock()), '--rounds', '3')
        self.check(text, [('Echo', 'acorn, CPU, us', 'Go', '1.100', '<= 1.050'), ('Echo', '2.200', '>= 3.000')],
                   '2 MISSED, 1 not measured')

    def test_bench_debug(self):
        instructions = {'none': 1000, 'metrics': 1006, 'unsampled': 1100, 'sampled': 1200}
        with mock.patch('debug_costs.of_looks', return_value=[]), \
                mock.patch('debug_costs.of_profile', return_value=[]), \
                mock.patch('debug_costs.of_stuck', return_value=[]), \
                mock.patch('debug_costs.of_shares', return_value=[]), \
                mock.patch('shutil.which', return_value='valgrind'), \
                mock.patch('debug_costs.of_each', lambda _, what, count: instructions.get((what or ('',))[-1], 1)):
            text = printed(debug_costs.main, 'debug-costs')
        self.check(text, [('a request', 'metrics', '0.0060', '<= 0.0050')], '1 MISSED, 1 met')

    def test_bench_paper_counts(self):
        """Counts are differences for each operation; they have no goals, and what valgrind cannot run is missing."""
        programs.find_native([paper_cases.YIELD], {'gcc': (GCC, Path('/nowhere'), None)}, {})
        for program in paper_cases.YIELD.programs:
            program.missing = None if program.params['what'] in ('classic', 'aco_task_yield') else 'was not built'
        said = ('I refs: 1,{0}00\nD refs: 900 (7{0}0 rd + 9 wr)\nD1 misses: 1{0} (1{0} rd + 0 wr)\n'
                'Mispredicts: 5 (4 cond)')

        def valgrind(command, **_):
            more = command[-2] == '11000'
            return mock.Mock(returncode=0 if 'ring' in command else 1, stdout=f'{300 if more else 100}\n',
                             stderr=said.format(8 if more else 2))

        with mock.patch('run_paper.build'), mock.patch('shutil.which', return_value='valgrind'), \
                mock.patch('subprocess.run', valgrind), mock.patch('harness.building.output_of', return_value='3'):
            text = printed(run_paper.main, '--counts', '--only', 'yield')
        self.assertRegex(text, r'acorn +aco_task_yield +gcc 12 +3.0 +0.3 +0.030 +0.030 +0.000\n')
        self.assertIn('plain ring, classic (gcc 12): valgrind could not run it', text)
        self.assertNotIn('Goals', text)


if __name__ == '__main__':
    unittest.main()
