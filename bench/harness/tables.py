"""Prints results as tables of text."""
import statistics

from .cases import ACORN, CLASSIC
from .ratios import matrix_ratio, native_cycles, native_ratio

PAPER = "the paper reports 3.34 for its yield in a ring of 10, on a Xeon of 2.2 GHz"
MATRIX_HEADING = (
    "\nSwitching: nanoseconds for one resume and yield, medians, fastest first. Beside them the ratios to the classic "
    "switch and\n"
    "to acorn (inline, shared FP) of the same compiler; of all compilers together where a contender has another.\n"
    "  shared FP  coroutines have rounding mode and exception masks in common: what aco_new() makes; also the classic\n"
    "             switch and corosensei\n"
    "  own FP     each keeps its own (ACO_OWN_FP), as libaco's, Boost's and ucontext's do\n"
    "  exported   acorn's out-of-line functions, for other languages\n"
    "  classic    the least that a full-save switch does: six pushes, six pops, a jump; no checks, no FP environment")
NATIVE_HEADING = (
    "\nThe native API: nanoseconds for one of what the line names; the ratio is to the case's first line "
    "(of the C++20 generators\nto the faster one), by the same compiler where there is such a one.")


# ---- What all tables use ----

def number(ns):
    return f"{ns:.2f}" if ns < 100 else f"{ns:.0f}"


def print_columns(rows, left):
    """`rows` of texts; the first `left` columns flush left, the others flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) if i < left else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def reasons(missing):
    """(program, reason) pairs as lines: each reason, and the programs that it keeps away."""
    compilers = {}
    for program, reason in missing:
        compilers.setdefault(reason, {}).setdefault(program.label, []).append(program.compiler)
    return [f"missing: {'; '.join(label + ' (' + ', '.join(by) + ')' for label, by in labels.items())}: {reason}"
            for reason, labels in compilers.items()]


def print_missing(programs):
    for line in reasons((program, program.missing) for program in programs if program.missing):
        print(f"\n{line}")


def print_reasons(missing):
    for line in reasons(missing):
        print(f"  {line}")


# ---- Cases of the matrix, native cases, and JSON objects ----

def time_cells(program, ns):
    return program.label, program.compiler, number(statistics.median(ns)), number(min(ns)), number(max(ns))


def ratio_cell(value):
    return f"{value:.2f}" if value else "-"


def print_case(results, case, programs):
    print(f"\n{case.title}")
    rows = [("implementation", "compiler", "ns", "min ns", "max ns", "x classic", "x acorn")]
    for program in programs:
        ns = results.samples.get((case, program))
        if ns:
            rows.append((*time_cells(program, ns), *(ratio_cell(matrix_ratio(results, case, program, impl))
                                                     for impl in (CLASSIC, ACORN))))
    rows[1:] = sorted(rows[1:], key=lambda row: float(row[2]))
    print_columns(rows, 2)
    print_reasons((program, results.missing[case, program]) for program in programs
                  if not program.missing and (case, program) in results.missing)


def print_native(results, case):
    print(f"\n{case.title}")
    rows = [("implementation", "compiler", "ns", "min ns", "max ns", "x base", *(["cycles"] if case.cycle else []))]
    for program in case.programs:
        ns = results.samples.get((case, program))
        if ns:
            cycles = native_cycles(results, case, program)
            rows.append((*time_cells(program, ns), ratio_cell(native_ratio(results, case, program)),
                         *([number(cycles) if cycles else "-"] if case.cycle else [])))
    print_columns(rows, 2)
    if case.cycle:
        print("  cycles: without the empty loop, one cycle being what an addition takes that waits for another; "
              f"{PAPER}")
    print_reasons((program, results.missing[case, program]) for program in case.programs
                  if (case, program) in results.missing)


def print_others(items):
    """JSON objects, a table for each case."""
    groups = {}
    for item in items:
        groups.setdefault(item["case"], []).append(item)
    for name, items in groups.items():
        print(f"\n{name}")
        rows = [("implementation", "parameters", "ns", "min", "max", "bytes")]
        for item in items:
            params = ", ".join(f"{key} {value}" for key, value in item["params"].items())
            if "missing" in item:
                rows.append((item["impl"], params, "missing: " + item["missing"], "", "", ""))
                continue
            values = [number(item[key]) if item.get(key) is not None else "-" for key in ("ns", "min", "max")]
            size = f"{item['bytes']:.0f}" if item.get("bytes") is not None else "-"
            rows.append((item["impl"], params, *values, size))
        print_columns(rows, 2)
