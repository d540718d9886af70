#!/usr/bin/env python3
"""bench/record.py puts what a command of bench/ measured into the tree; the command is made up here, and so is the
tree."""
import argparse
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'bench'))

import history  # noqa: E402
import readme  # noqa: E402
import record  # noqa: E402
from harness import command, paper_markdown, running  # noqa: E402
from harness.cases import ACORN, CPP20  # noqa: E402
from harness.paper_cases import BOOST, OUT_OF_LINE  # noqa: E402

ZEN3 = {'cpu': 'EPYC', 'family, model': '25, 1', 'compilers': ['gcc 12'], 'quick': False}


def row(case, impl, what, ns, compiler='gcc 12', **more):
    return {'case': case, 'impl': impl, 'params': {'what': what, 'compiler': compiler}, 'ns': ns, **more}


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.results = self.root / 'bench' / 'results'
        for path, text in {'bench/results/zen5-paper.json': 'old', 'bench/results/zen5.json': 'other table',
                           'bench/results/zen5-paper-sum.svg': 'old', 'bench/results/history.svg': 'all runs',
                           'docs/paper.md': '![sum](../bench/results/zen5-paper-sum.svg)',
                           'README.md': '[all](bench/results/zen5.json)'}.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def record(self, name, status=0, writes=('paper-sum.svg', 'paper-both.svg')):
        """Runs the record with a command that writes these pictures; returns the command's words."""
        said = []

        def run(words):
            said.extend(map(str, words))
            if status == 0:
                Path(words[words.index('--json') + 1]).write_text('new')
                for picture in writes:
                    Path(words[words.index('--svg') + 1], picture).write_text('new')
            return mock.Mock(returncode=status)

        args = argparse.Namespace(build=self.root / 'build', seconds=7)
        with mock.patch('harness.command.machine', return_value=ZEN3), mock.patch('subprocess.run', run):
            record.record_table(record.RECORDS[name], self.root, args)
        return said

    def names(self):
        return sorted(path.name for path in self.results.iterdir())

    def test_another_processor(self):
        """Its file and the pictures that are shown take the places of the old ones, also in documents."""
        said = self.record('paper')
        self.assertEqual(said[said.index('--seconds') + 1], '7')
        self.assertEqual(self.names(), ['history.svg', 'zen3-paper-sum.svg', 'zen3-paper.json', 'zen5.json'])
        self.assertEqual((self.root / 'docs' / 'paper.md').read_text(),
                         '![sum](../bench/results/zen3-paper-sum.svg)')
        self.assertEqual((self.root / 'README.md').read_text(), '[all](bench/results/zen5.json)')

    def test_first_table(self):
        self.record('bench', writes=())
        self.assertEqual(self.names(), ['history.svg', 'zen3.json', 'zen5-paper-sum.svg', 'zen5-paper.json'])

    def test_counts(self):
        self.assertNotIn('--seconds', self.record('paper-counts', writes=()))
        self.assertIn('paper-counts.json', self.names())
        self.assertIn('zen5-paper.json', self.names())

    def test_servers(self):
        """Rounds in place of a time, and no pictures; the other tables stay."""
        (self.results / 'zen5-http.json').write_text('old')
        said = self.record('http', writes=())
        self.assertEqual(said[said.index('--rounds') + 1], '3')
        self.assertFalse({'--seconds', '--svg'} & set(said))
        self.assertEqual(self.names(), ['history.svg', 'zen3-http.json', 'zen5-paper-sum.svg', 'zen5-paper.json',
                                        'zen5.json'])

    def test_failure_changes_nothing(self):
        before = self.names()
        with self.assertRaises(SystemExit):
            self.record('paper', status=1)
        self.assertEqual(self.names(), before)

    def test_nothing_to_add_to(self):
        with self.assertRaises(SystemExit):
            self.record('paper-hanoi')


class Rows(unittest.TestCase):
    def test_added_to(self):
        """Rows of other cases stay, and other numbers of discs are other cases."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / 'file.json'

            def tower(discs, ns):
                return {'case': 'hanoi', 'params': {'discs': discs}, 'ns': ns}

            old = [{'case': 'sum', 'params': {}, 'ns': 1}, tower(1, 2), tower(2, 3)]
            command.write_json(file, [{'machine': ZEN3}, *old])
            self.assertEqual(command.added_to(file, ZEN3, [tower(2, 4)]), [*old[:2], tower(2, 4)])
            with self.assertRaises(SystemExit):
                command.added_to(file, {**ZEN3, 'compilers': ['gcc 13']}, [])

    def test_seconds(self):
        with mock.patch('time.monotonic', return_value=30):
            self.assertTrue(running.is_time_for_another(0, 0, 1))
            self.assertTrue(running.is_time_for_another(0, 1, 60))
            self.assertFalse(running.is_time_for_another(0, 1, 59))
            self.assertTrue(running.is_time_for_another(0, 9, None))

    def test_copying_ends(self):
        """A late run has one round of each program, and says that libaco's table is left out."""
        runs = []
        with mock.patch.object(running, 'programs_like', lambda pattern, _: [(Path(pattern), 'gcc')]), \
                mock.patch.object(running, 'run_json_program', lambda path, _: runs.append(path.name) or []), \
                mock.patch.object(running, 'version', return_value='gcc 12'), \
                mock.patch('time.monotonic', return_value=10):
            late = running.run_copying({}, False, end=9)
            self.assertEqual([item['case'] for item in late], ['libaco_table'])
            self.assertEqual(runs, ['memory-*'])
            running.run_copying({}, False, end=11)
            self.assertEqual(runs[1:], ['memory-*', 'memory-*', running.TABLE])

    def test_loaded_machine(self):
        about = {**ZEN3, 'cpus': 2, 'date': '2026-11-29'}
        file = readme.ROOT / 'bench' / 'results' / 'file.json'
        for load, said in ((1.0, False), (8.5, True)):
            text = readme.heading({**about, 'load': load}, file, readme.ROOT / 'docs' / 'paper.md')
            self.assertEqual('beside other programs (load average 8.5)' in text, said)


class History(unittest.TestCase):
    def test_every_recorded_table(self):
        """Every recorded file has at least one ratio in the picture of all runs, and every panel finds a ratio."""
        files = [list(map(json.loads, file.read_text().splitlines()))
                 for file in (readme.ROOT / 'bench' / 'results').glob('*.json')]
        runs = [(first['machine'], rows) for first, *rows in files]
        for run in runs:
            self.assertTrue(any(list(history.points([run], *what)) for _, *what in history.PANELS), run[0])
        for title, *what in history.PANELS:
            self.assertTrue(list(history.points(runs, *what)), title)


class Tables(unittest.TestCase):
    def test_yield_is_less_the_loop(self):
        rows = [row('yield', 'plain ring', 'classic', 4.5), row('yield', 'plain ring', 'classic', 3.5, 'clang 19'),
                row('yield', ACORN, f'aco_task_yield, {OUT_OF_LINE}', 2.5, cycles=6.04),
                row('yield', 'processor', 'an empty loop', 0.5), row('yield', 'processor', 'one cycle', 0.3)]
        self.assertEqual(list(paper_markdown.yield_table(rows))[2:], [
            '| a function that calls the classic switch | 4.00 / 3.00 | – / – | 1.00 / 1.00 | 8.97 ns |',
            '| **acorn**, `aco_task_yield()` out of line | 2.00 | 6.0 | 0.50 | – |'])

    def test_breakdown(self):
        rows = [row('breakdown', CPP20, 'for loop', 2), row('breakdown', BOOST, 'fiber, without Boost.Coroutine2', 9)]
        self.assertEqual(list(paper_markdown.breakdown_table(rows))[2:], [
            '| C++20, `for` | 2.0 | 1.00 | 1.00 |', '| Boost.Context itself | 9.0 | 4.50 | 4.00 |'])

    def test_before_and_after(self):
        rows = [row('http', 'classic switch', 'next of the ring', 8), row('http', ACORN, 'inline switch', 4),
                row('http', ACORN, OUT_OF_LINE, 5)]
        self.assertIn('| HTTP | Acorn | Acorn out of line | 0.80 | 0.90 |', paper_markdown.claims_table(rows))


if __name__ == '__main__':
    with contextlib.redirect_stdout(io.StringIO()):
        unittest.main()
