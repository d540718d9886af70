"""The table of bench/run_paper.py that has one row for several cases: Hanoi by the number of discs."""
import statistics

from .ratios import native_median
from .tables import print_columns, print_reasons


def normalised(results, case, program):
    """Hanoi's time relative to recursion and callback in the same language, or None."""
    ns = results.samples.get((case, program))
    own = case.language_bases.get(program.line.program)
    base = native_median(results, case, program, [own] if own else case.bases)
    return statistics.median(ns) / base if ns and base else None


def hanoi_rows(results, cases):
    """(impl, what, compiler, ratio for each of `cases`)."""
    rows = []
    for i, first in enumerate(cases[0].programs if cases else ()):
        if first.line in cases[0].language_bases.values():
            continue
        ratios = [normalised(results, case, case.programs[i]) for case in cases]
        if any(ratios):
            rows.append((first.impl, first.params["what"], first.compiler, ratios))
    return rows


def print_hanoi(results, cases):
    print("\nHanoi (fig. 5, 13): time relative to recursion and callback in the same language (corosensei: in C)")
    rows = [("implementation", "", "compiler", *(str(case.params["discs"]) for case in cases))]
    rows += [(impl, what, compiler, *(f"{ratio:.1f}" if ratio else "-" for ratio in ratios))
             for impl, what, compiler, ratios in hanoi_rows(results, cases)]
    print_columns(rows, 3)
    missing = {(program, reason) for (case, program), reason in results.missing.items() if case is cases[0]}
    print_reasons(sorted(missing, key=lambda pair: pair[0].label))
