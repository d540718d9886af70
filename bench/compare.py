#!/usr/bin/python3
"""Compares the speed of two checkouts of Acorn: builds Acorn's own benchmark programs and runs them alternately.

A pair is one run of each checkout's program with the same arguments, and thus with the same code placement; the next
pair runs in the other order. A number is the median of all pairs. Where two numbers differ by more than LIMIT, the
program runs as many pairs again, and all of them count. To see the machine's noise, compare a checkout with itself.

    bench/compare.py BEFORE [AFTER] [--quick] [--suite NAME] [--only TEXT] [--pairs N] [--json FILE] [--build DIR]

Fails if AFTER is slower than BEFORE by more than LIMIT anywhere, or if something could not be measured in AFTER alone.
"""
import argparse
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

from harness import building, cases, command, memory_cases, paper_cases, programs
from harness.running import progress
from harness.tables import number, print_columns

LIMIT = 0.03
PAIRS, QUICK_PAIRS = 7, 2
RUN_LIMIT = 600  # seconds for one run of one program
SUITES = ("bench", "memory", "paper")
SIDES = ("before", "after")


class Measurement:
    """A program, named relative to a checkout's build directory, and its arguments."""

    def __init__(self, suite, title, program, compiler, path, arguments, prints_json=False):
        self.suite, self.title, self.program, self.compiler = suite, title, program, compiler
        self.path, self.arguments, self.prints_json = path, arguments, prints_json
        self.rows = {}      # title of a row -> {side: numbers}
        self.failures = {}  # side -> reason


# ---- What is measured ----

def matrix(builds):
    for name, built in builds.items():
        for program in programs.matrix_programs(name, *built):
            for case in cases.CASES if program.impl == cases.ACORN else ():
                if not (program.skip and program.skip(case)):
                    yield Measurement("bench", case.title, program.label, program.compiler, program.path,
                                      case.arguments)


def native(suite, chosen, builds):
    for case in chosen:
        for line in case.lines:
            for compiler, path, _ in programs.native_programs(line, builds, {}) if line.impl == cases.ACORN else ():
                yield Measurement(suite, case.title, line.what, compiler, path, line.arguments)


def copying(builds, quick):
    """Programs that run.py gives no arguments but these."""
    size = ["10000"] if quick else []
    for compiler, directory, _ in builds.values():
        for fp in ("shared", "own"):
            yield Measurement("bench", "copying", f"memory-acorn-{fp}", compiler,
                              directory / "bench" / f"memory-acorn-{fp}", ["--json", "--quick", *size], True)
        if not quick:
            yield Measurement("bench", "libaco's table", "libaco_table-own", compiler,
                              directory / "bench" / "libaco_table-own", ["--json", "--quick"], True)


def memory(builds, quick):
    ours = (memory_cases.ACORN, memory_cases.ENTRY, memory_cases.PRIVATE)
    found = memory_cases.found_programs(ours, builds)
    for group in memory_cases.groups(found, 1000 if quick else 100_000, quick):
        for arguments, _, takers in group.cases:
            for program in takers:
                yield Measurement("memory", group.name, program.impl, program.compiler, program.path, arguments, True)


def measurements(args):
    """Each command line once, under the first title that it has."""
    builds = {name: (building.version(cc) or name, Path(name), None)
              for name, (cc, _) in building.COMPILERS.items()}
    found = {}
    for suite, some in (("bench", matrix(builds)), ("bench", native("bench", cases.NATIVE, builds)),
                        ("bench", copying(builds, args.quick)), ("memory", memory(builds, args.quick)),
                        ("paper", native("paper", paper_cases.CASES, builds))):
        for one in some if suite in args.suite else ():
            if not args.only or any(text in one.title for text in args.only):
                found.setdefault((one.path, *one.arguments), one)
    return list(found.values())


# ---- Building ----

def build(checkout, directory, chosen):
    """Builds what `chosen` needs and the checkout has: compiler's name -> reason of a failure, or None."""
    failures = {}
    for name in building.COMPILERS:
        place = directory / name
        failures[name] = building.configure(name, place, "-DACORN_BENCH_PAPER=ON", source=checkout)
        wanted = {one.path.name for one in chosen if one.path.parts[0] == name}
        if not failures[name] and wanted:
            targets = wanted & building.known_targets(place)
            failures[name] = building.build_targets(place, *sorted(targets)) if targets else "nothing to build"
    return failures


def note_missing(one, side, directory, failures):
    if failures[one.path.parts[0]]:
        one.failures[side] = failures[one.path.parts[0]]
    elif not (directory / one.path).exists():
        one.failures[side] = "was not built"


# ---- Running ----

def printed_numbers(output):
    """Row -> number, of JSON lines: the nanoseconds of each case, and the bytes of each set of parameters."""
    found = {}
    for item in map(json.loads, output.splitlines()):
        params = ", ".join(f"{key} {value}" for key, value in item["params"].items() if key != "copied")
        if item.get("ns") is not None:
            found[f"{item['case']}: {params}"] = item["ns"]
        if item.get("bytes") is not None:
            found.setdefault(f"bytes: {params}", item["bytes"])
    return found


def run_once(one, side, path, milliseconds, seed):
    sampled = [] if one.prints_json else ["1", str(milliseconds), str(seed)]
    try:
        done = subprocess.run([path, *one.arguments, *sampled], capture_output=True, text=True, timeout=RUN_LIMIT)
        if done.returncode == 0:
            found = printed_numbers(done.stdout) if one.prints_json else {one.title: float(done.stdout)}
            for row, value in found.items():
                one.rows.setdefault(row, {name: [] for name in SIDES})[side].append(value)
            return
        reason = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    one.failures[side] = reason


def run_pairs(chosen, directories, pairs, milliseconds):
    for turn in range(pairs):
        for i, one in enumerate(random.sample(chosen, len(chosen))):
            progress(f"pair {turn + 1} of {pairs}, {i + 1} of {len(chosen)}: {one.title}, {one.program}")
            for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
                if not one.failures:
                    run_once(one, side, directories[side] / one.path, milliseconds, seed=turn * 7 + 1)
    progress("")


# ---- Results ----

def medians(values):
    """(before, after, ratio), or None where a side has none."""
    before, after = (statistics.median(values[side]) if values[side] else None for side in SIDES)
    return (before, after, after / before) if before and after is not None else None


def flag(ratio):
    return "slower" if ratio > 1 + LIMIT else "faster" if ratio < 1 - LIMIT else ""


def differs(one):
    return any(flag(found[2]) for found in map(medians, one.rows.values()) if found)


def results(chosen):
    """A dictionary for each row."""
    for one in chosen:
        for row, values in one.rows.items():
            found = medians(values)
            if found:
                before, after, ratio = found
                yield {"suite": one.suite, "case": row, "program": one.program, "compiler": one.compiler,
                       "before": before, "after": after, "ratio": round(ratio, 4), "flag": flag(ratio),
                       "pairs": len(values["before"])}


def print_results(rows, chosen):
    for suite in SUITES:
        some = [row for row in rows if row["suite"] == suite]
        if some:
            print(f"\n{suite}: nanoseconds, or bytes where the case says so")
            print_columns([("case", "program", "compiler", "before", "after", "ratio", ""),
                           *((row["case"], row["program"], row["compiler"], number(row["before"]),
                              number(row["after"]), f"{row['ratio']:.3f}", row["flag"]) for row in some)], 3)
    missing = {}
    for one in chosen:
        for side, reason in one.failures.items():
            missing.setdefault((side, reason), []).append(f"{one.title}, {one.program} ({one.compiler})")
    for (side, reason), names in missing.items():
        print(f"\nmissing {side}: {reason}:\n" + "\n".join(f"  {name}" for name in names))
    flags = [row["flag"] for row in rows]
    print(f"\n{len(rows)} rows; beyond {100 * LIMIT:.0f} %: {flags.count('slower')} slower, "
          f"{flags.count('faster')} faster")


def options():
    parser = argparse.ArgumentParser(description="Compares the speed of two checkouts",
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("before", metavar="BEFORE", type=Path, help="a checkout")
    parser.add_argument("after", metavar="AFTER", type=Path, nargs="?", default=building.ROOT, help="a checkout")
    parser.add_argument("--quick", action="store_true", help="two pairs of short runs: to see that it works")
    parser.add_argument("--suite", choices=SUITES, action="append", help="repeatable; all without it")
    parser.add_argument("--only", metavar="TEXT", action="append",
                        help="only the cases whose title contains TEXT; repeatable")
    parser.add_argument("--pairs", metavar="N", type=int, help=f"{PAIRS} without it")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all rows, one JSON object per line")
    parser.add_argument("--build", metavar="DIR", type=Path, default=building.ROOT / "build" / "compare",
                        help="where to build")
    args = parser.parse_args()
    args.suite = args.suite or SUITES
    args.pairs = args.pairs or (QUICK_PAIRS if args.quick else PAIRS)
    for side in (args.before, args.after):
        if not (side / "bench" / "CMakeLists.txt").exists():
            sys.exit(f"{side}: no checkout of Acorn")
    return args


def main():
    args = options()
    checkouts = dict(zip(SIDES, (args.before.resolve(), args.after.resolve())))
    directories = {side: args.build.resolve() / side for side in SIDES}
    chosen = measurements(args)
    if not chosen:
        sys.exit("no case has such a title")
    for side in SIDES:
        progress(f"building {checkouts[side]}")
        failures = build(checkouts[side], directories[side], chosen)
        for one in chosen:
            note_missing(one, side, directories[side], failures)
    milliseconds = 2 if args.quick else 20
    run_pairs(chosen, directories, args.pairs, milliseconds)
    run_pairs([one for one in chosen if differs(one)], directories, args.pairs, milliseconds)
    about = {**command.machine(), "quick": args.quick}
    del about["commit"]
    about |= {side: f"{checkout}, commit {command.commit(checkout)}" for side, checkout in checkouts.items()}
    rows = list(results(chosen))
    command.print_heading("Acorn: two checkouts", about)
    print_results(rows, chosen)
    command.write_json(args.json, [{"machine": about}, *rows])
    lost = [one for one in chosen if list(one.failures) == ["after"]]
    sys.exit(1 if lost or any(row["flag"] == "slower" for row in rows) else 0)


if __name__ == "__main__":
    main()
