#!/usr/bin/env python3
"""Puts the README's table of measurements, taken from a JSON file of bench/run.py, between its markers.

    python3 bench/readme.py bench/results/FILE.json
"""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"

SWITCH_ROWS = [  # label, impl, form, FP environment
    ("**acorn**, inline, shared FP environment", "acorn", "inline", "shared FP"),
    ("**acorn**, inline, each its own FP environment (default)", "acorn", "inline", "own FP"),
    ("**acorn**, exported functions, shared FP environment", "acorn", "exported", "shared FP"),
    ("an empty call", "empty call", None, None),
    ("C++20 generator (cannot yield from a nested call)", "C++20 generator", None, None),
    ("corosensei (Rust)", "corosensei", None, None),
    ("classic full-save switch", "classic switch", None, None),
    ("Boost.Context fiber", "Boost.Context fiber", None, None),
    ("Boost.Coroutine2", "Boost.Coroutine2", None, None),
    ("ucontext", "ucontext", None, None),
]
SWITCH_COLUMNS = [  # heading, case, parameters
    ("1 coroutine", "flat", {"coroutines": 1, "order": "round robin"}),
    ("64", "flat", {"coroutines": 64, "order": "round robin"}),
    ("1000, random order", "flat", {"coroutines": 1000, "order": "random order"}),
    ("yield 4 calls deep", "nested", {"depth": 4}),
]


def matching(rows, case, impl, wanted):
    """The medians of the rows with these parameters, by compiler, in a fixed order."""
    found = {row["params"]["compiler"].split()[0]: row["ns"] for row in rows
             if row.get("case") == case and row.get("impl") == impl and "ns" in row
             and all(row["params"].get(key) == value for key, value in wanted.items() if value is not None)}
    return [found[name] for name in ("gcc", "clang", "rustc") if name in found]


def cell(values):
    return " / ".join(f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in values) or "–"


def switch_table(rows):
    yield "| nanoseconds for one resume and yield, gcc / clang | " + " | ".join(heading for heading, _, _ in SWITCH_COLUMNS) + " |"
    yield "| --- |" + " --- |" * len(SWITCH_COLUMNS)
    for label, impl, form, fp in SWITCH_ROWS:
        cells = [cell(matching(rows, case, impl, {**wanted, "form": form, "fp": fp})) for _, case, wanted in SWITCH_COLUMNS]
        yield f"| {label} | " + " | ".join(cells) + " |"


GENERATOR_ROWS = [  # label, impl, what is said in the case's line
    ("**acorn**, own-stack generator", "acorn", ("own-stack generator",)),
    ("**acorn**, in-stack generator", "acorn", ("in-stack generator",)),
    ("a function that calls back", "callback", ("function that calls back", "recursion and callback")),
    ("C++20 generator", "C++20 generator", ("for loop", "a generator for each call")),
    ("corosensei (Rust)", "corosensei", ("Coroutine",)),
    ("Boost.Coroutine2", "Boost.Coroutine2", ("pull_type",)),
]
TASK_ROWS = [
    ("**acorn**", "acorn", ("aco_task_yield", "unbuffered channels", "aco_spawn, aco_join")),
    ("classic full-save switch, next of the ring", "classic switch", ("next of the ring",)),
    ("Boost.Fiber", "Boost.Fiber", ("this_fiber::yield", "unbuffered_channel", "fiber, join")),
    ("Go, GOMAXPROCS=1", "Go", ("runtime.Gosched", "unbuffered channels", "go, WaitGroup")),
    ("tokio, current_thread", "tokio", ("task::yield_now", "mpsc::channel(1)", "spawn, await")),
]
COMPILERS = ("gcc", "clang", "rustc", "go")


def by_line(rows, case, impl, lines, wanted):
    """The medians of a case's line, by compiler."""
    found = {row["params"]["compiler"].split()[0]: row["ns"] for row in rows
             if row.get("case") == case and row.get("impl") == impl and "ns" in row and row["params"].get("what") in lines
             and all(row["params"].get(key) == value for key, value in wanted.items())}
    return cell([found[name] for name in COMPILERS if name in found])


def line_table(rows, title, table, columns):
    yield f"| {title} | " + " | ".join(heading for heading, _, _ in columns) + " |"
    yield "| --- |" + " --- |" * len(columns)
    for label, impl, lines in table:
        yield f"| {label} | " + " | ".join(by_line(rows, case, impl, lines, wanted) for _, case, wanted in columns) + " |"


def generator_table(rows):
    return line_table(rows, "nanoseconds per element, gcc / clang", GENERATOR_ROWS,
                      [("sum of a sequence", "generator_sum", {}), ("Hanoi(20), recursive", "generator_hanoi", {})])


def task_table(rows):
    return line_table(rows, "nanoseconds, gcc / clang", TASK_ROWS,
                      [(f"yield, ring of {n}", "scheduler_ring", {"tasks": int(n.replace(" ", ""))}) for n in ("10", "100", "10 000")]
                      + [("yield, ring of 10 000, four live values", "scheduler_ring_live", {"tasks": 10000}),
                         ("channel ping-pong", "scheduler_ping_pong", {}), ("spawn, run and join", "scheduler_spawn", {"tasks": 1})])


def memory_table(rows):
    yield "| a million coroutines on one share stack, 96 live bytes each, round robin | ns per resume | bytes per coroutine |"
    yield "| --- | --- | --- |"
    for label, impl, save in (("**acorn**, save area of the size needed", "acorn", "fit"), ("**acorn**, default save area", "acorn", "default"),
                              ("block and save area from malloc, classic switch", "malloc_blocks", "fit")):
        wanted = {"live": 96, "save": save, "order": "made", "fp": "shared"}
        some = [row for row in rows if row.get("case") == "rss_96_live_bytes_1M" and row.get("impl") == impl
                and all(row["params"].get(key) == value for key, value in wanted.items())]
        some.sort(key=lambda row: row["params"]["compiler"], reverse=True)
        yield f"| {label} | {cell([row['ns'] for row in some])} | {' / '.join(f'''{row['bytes']:.0f}''' for row in some)} |"


def main():
    file = Path(sys.argv[1]).resolve()
    first, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    about = first["machine"]
    family, model = about["family, model"].split(", ")
    lines = [f"{about['cpu']} (family {family}, model {model}), a virtual machine with {about['cpus']} processors; "
             f"{', '.join(about['compilers'])}; `-O2`; {about['date']}. Medians of one run; all of it in "
             f"[{file.relative_to(ROOT)}]({file.relative_to(ROOT)}).", "", *switch_table(rows), "", *generator_table(rows), "", *task_table(rows), "", *memory_table(rows)]
    readme = ROOT / "README.md"
    text = readme.read_text()
    block = BEGIN + "\n" + "\n".join(lines) + "\n" + END
    readme.write_text(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: block, text, flags=re.S))


if __name__ == "__main__":
    main()
