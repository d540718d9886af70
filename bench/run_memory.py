#!/usr/bin/python3
"""Builds and runs the benchmarks of memory at scale: coroutines by the million, copying, private stacks, churn.

Each measurement is a process of its own (bench/memory_scale.h, bench/memory_private.c); a number is the median of three
processes. Each round runs all contenders of a case one after the other, in random order, as bench/run.py does.

    bench/run_memory.py [--quick] [--max N] [--only GROUP] [--impl TEXT] [--json FILE] [--svg DIR] [--build DIR]
"""
import json
import random
import subprocess
import sys
import time

from harness import command, memory_cases, memory_plots, running
from harness.memory_cases import ACORN, ENTRY, GLIBC, GO, GROUPS, PROGRAMS
from harness.memory_tables import PRINTERS, Table, goal_rows, print_absent
from harness.plots import write_plots

SAMPLES = 3
LIMIT = 600  # seconds for one measurement
MANY = 2_000_000
NUMBERED = (ACORN, ENTRY, GLIBC)  # beyond MANY coroutines only these run SAMPLES times: the numbers to reach need them


def samples_for(program, number, quick):
    return 1 if quick or (number > MANY and program.impl not in NUMBERED) else SAMPLES


def measure(program, arguments):
    """The JSON objects that one process prints."""
    failure = None
    try:
        done = subprocess.run([program.path, *arguments], capture_output=True, text=True, timeout=LIMIT)
        items = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode:
            failure = f"{' '.join(arguments)}: status {done.returncode} {done.stderr.strip()}".strip()
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        items, failure = [], f"{' '.join(arguments)}: {error}"
    if failure:
        items = [{"case": arguments[0], "impl": program.impl, "params": {}, "missing": failure}]
    for item in items:
        item["params"] = {**item["params"], "compiler": program.compiler}
    return items


def merged(items):
    return running.merged(items) if all("ns" in item or "missing" in item for item in items) else items[0]


def run_groups(chosen, quick):
    """The JSON objects, merged, in the order of the cases."""
    found, absent = {}, set()
    for group in chosen:
        for arguments, number, programs in group.cases:
            for turn in range(SAMPLES):
                for program in random.sample(programs, len(programs)):
                    if program.missing or program in absent or turn >= samples_for(program, number, quick):
                        continue
                    running.progress(f"{group.name}: {' '.join(arguments)}, {program.impl}, {program.compiler}, "
                                     f"{turn + 1}")
                    for item in measure(program, arguments):
                        found.setdefault((item["case"], item["impl"], json.dumps(item["params"])), []).append(item)
                        if item.get("missing", "").startswith("ACO_ENTRY"):
                            absent.add(program)
    running.progress("")
    return [merged(items) for items in found.values()]


def options():
    parser = command.options("Acorn's benchmarks of memory at scale", "one process for each number")
    parser.add_argument("--max", metavar="N", type=int, default=10_000_000, help="the most coroutines, at least 1000")
    parser.add_argument("--only", metavar="GROUP", action="append", choices=GROUPS, help="repeatable")
    parser.add_argument("--impl", metavar="NAME", action="append",
                        help="only contenders of exactly this name; repeatable")
    args = command.parsed(parser)
    if args.max < 1000:
        sys.exit("--max: at least 1000")
    return args


def main():
    args = options()
    running.progress("building")
    programs = memory_cases.build(args.build.resolve())
    if args.impl:
        programs = [program for program in programs if program.impl in args.impl]
        if not programs:
            names = "\n".join(f"  {impl}" for impl in (*PROGRAMS, GO))
            sys.exit(f"no contender has such a name; there are:\n{names}")
    started = time.monotonic()
    about = {**command.machine(), "quick": args.quick}
    chosen = [group for group in memory_cases.groups(programs, args.max, args.quick)
              if not args.only or group.name in args.only]
    items = run_groups(chosen, args.quick)
    table = Table(items)

    command.print_heading("Acorn: benchmarks of memory at scale", about)
    print_absent(programs, items)
    for group in chosen:
        if any(not program.missing for _, _, takers in group.cases for program in takers):
            PRINTERS[group.name](table)
    command.write_json(args.json, [{"machine": about}, *items])
    write_plots(args.svg, memory_plots.drawings(table))
    command.print_end(started, goal_rows(table))


if __name__ == "__main__":
    main()
