"""What bench/run_io.py and bench/run_threads.py share: the command line, rounds, tables with ratios, goals, JSON."""
import os
import resource
import statistics
import sys
import time

from . import building, command
from .goals import judged
from .running import progress
from .tables import print_columns


class Missing(Exception):
    """Why a contender cannot be measured here."""


class Goal:
    """`of`'s column is at most (at least, if `is_least`) `bound` times that of `to`, or `bound` itself if `to` is
    None."""
    def __init__(self, column, of, bound, to=None, is_least=False):
        self.column, self.of, self.bound, self.to, self.is_least = column, of, bound, to, is_least

    def value(self, samples):
        """The median over the rounds, or None."""
        mine, theirs = samples.get(self.of), samples.get(self.to)
        if not mine or (self.to and not theirs):
            return None
        own = [sample[self.column] for sample in mine]
        if self.to:
            own = [a / b[self.column] for a, b in zip(own, theirs) if b[self.column]]
        return statistics.median(own) if own else None


class Case:
    """One table. measure(contender) returns {column: number} of one round, or raises Missing. `columns` maps a column
    to its heading. The last column of the table is the ratio of the column `ratio` to the contender `base`'s."""
    def __init__(self, name, title, contenders, measure, columns, ratio, base, goals=()):
        self.name, self.title, self.contenders, self.measure = name, title, contenders, measure
        self.columns, self.ratio, self.base, self.goals = columns, ratio, base, goals
        self.samples = {}  # contender -> one dictionary for each round
        self.missing = {}  # contender -> reason

    def run(self, rounds):
        """Each round measures all contenders, in alternating order."""
        for turn in range(rounds):
            for contender in self.contenders[::-1 if turn % 2 else 1]:
                if contender in self.missing:
                    continue
                progress(f'round {turn + 1} of {rounds}: {self.title}, {contender}')
                try:
                    self.samples.setdefault(contender, []).append(self.measure(contender))
                except Missing as reason:
                    self.missing[contender] = str(reason)
                    self.samples.pop(contender, None)
        progress('')

    def print(self):
        print(f'\n{self.title}')
        rows = [['', *self.columns.values(), f'to {self.base}']]
        for contender in self.contenders:
            if contender in self.samples:
                values = [f'{self.median(contender, column):.2f}' for column in self.columns]
                ratio = Goal(self.ratio, contender, 1, self.base).value(self.samples)
                rows.append([contender, *values, f'{ratio:.2f}' if ratio else ''])
        print_columns(rows, 1)
        for contender, reason in self.missing.items():
            print(f'  {contender}: not measured: {reason}')

    def goal_rows(self):
        return [judged(self.title, f'{goal.of}, {self.columns[goal.column]}', goal.value(self.samples), goal.bound,
                       goal.to or '', is_least=goal.is_least) for goal in self.goals]

    def median(self, contender, column):
        return statistics.median(sample[column] for sample in self.samples[contender])

    def objects(self):
        """For the JSON file."""
        for contender in self.contenders:
            head = {'case': self.name, 'impl': contender}
            if contender in self.missing:
                yield {**head, 'missing': self.missing[contender]}
            elif contender in self.samples:
                rounds = self.samples[contender]
                yield {**head, **{column: round(self.median(contender, column), 4) for column in self.columns},
                       'rounds': [{column: round(sample[column], 4) for column in self.columns} for sample in rounds]}


# ---- The command ----

def build(directory, targets, name):
    failure = building.configure('gcc', directory)
    if not failure:
        known = building.known_targets(directory)
        failure = building.build_targets(directory, *(target for target in targets if target in known))
    if failure:
        sys.exit(f'{name}: {failure}')


def run_cases(name, title, quick, targets, modules, about):
    """The command `make NAME`: builds the CMake targets that there are, and runs the cases of the modules. `about`
    makes from the command line what the cases need to know; `quick`: what --quick does."""
    started = time.monotonic()
    sys.stdout.reconfigure(line_buffering=True)
    parser = command.options(title, quick)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--only', metavar='TEXT', default='', help='the cases whose names contain it')
    args = command.parsed(parser, svg=False)
    rounds = 1 if args.quick else args.rounds
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    build(args.build / 'gcc', targets, name)
    bench = about(args)
    machine = command.machine()
    command.print_heading(f'{title} (make {name})', machine)
    print(f'  load before    {os.getloadavg()[0]:.1f}\n  rounds         {rounds}')
    chosen = [case for module in modules for case in module.cases(bench) if args.only in case.name]
    for case in chosen:
        case.run(rounds)
        case.print()
    command.write_json(args.json, [{'machine': machine}, *(item for case in chosen for item in case.objects())])
    command.print_end(started, [row for case in chosen for row in case.goal_rows()])
