#!/usr/bin/python3
"""Builds and runs the benchmarks: Acorn and every contender, in the same run of this script.

Each round runs all programs of a case one after the other, in random order, so that changes of the machine's speed meet
all of them. A number is the median of all samples of all rounds. Every run of a program is a new process, with another
address space, stack colour and code placement.

    bench/run.py [--quick] [--only TEXT] [--part PART] [--json FILE [--add]] [--svg DIR] [--build DIR]
"""
import sys
import time

from harness import command, programs, running, switch_plots, tables, targets
from harness.cases import CASES, MANY, NATIVE
from harness.plots import write_plots

FULL = {"rounds": 7, "many_rounds": 2, "samples": 2, "milliseconds": 20}
PARTS = ("cases", "copying")
QUICK = {"rounds": 3, "many_rounds": 1, "samples": 1, "milliseconds": 20}


def options():
    parser = command.options("Acorn's benchmarks", "fewer repetitions")
    parser.add_argument("--only", metavar="TEXT", action="append",
                        help="only the cases whose title contains TEXT, nothing else; repeatable")
    parser.add_argument("--part", choices=PARTS, help="only the switches, generators and tasks, or only the copying")
    parser.add_argument("--add", action="store_true", help="keep the JSON file's rows of other cases")
    command.add_seconds(parser)
    return command.parsed(parser)


def print_results(results, matrix, native, contenders):
    if matrix:
        print(tables.MATRIX_HEADING)
    tables.print_missing(contenders)
    for case in matrix:
        tables.print_case(results, case, contenders)
    if native:
        print(tables.NATIVE_HEADING)
    for case in native:
        tables.print_native(results, case)
    tables.print_others(results.others)


def goal_rows(results, cases, contenders, everything):
    """The switches' goals only where everything was measured: `make demo` is a look, and judges nothing."""
    return ((targets.matrix_rows(results, contenders, cases) if everything else [])
            + targets.copying_rows(results.others) + targets.native_rows(results, cases))


def main():
    args = options()
    cases = [case for case in CASES + NATIVE if not args.only or any(text in case.title for text in args.only)]
    if not cases:
        sys.exit("no case has such a title; there are:\n" + "\n".join(f"  {case.title}" for case in CASES + NATIVE))
    running.progress("building")
    contenders, directories = programs.build(args.build.resolve(), NATIVE)
    started = time.monotonic()
    about = {**command.machine(), "quick": args.quick}
    if args.quick:
        cases = [case for case in cases if case.number < MANY or case.order != "random"]
    if args.part == "copying":
        cases = []
    results = running.run_cases(contenders, cases, **(QUICK if args.quick else FULL), seconds=args.seconds)
    if not args.only and args.part != "cases":
        results.others = running.run_copying(directories, args.quick, args.seconds and started + args.seconds)

    about["load"] = command.load()
    command.print_heading("Acorn: benchmarks", about)
    native = [case for case in cases if case in NATIVE]
    print_results(results, [case for case in cases if case not in native], native, contenders)
    everyone = contenders + [program for case in native for program in case.programs]
    items = [*command.sample_objects(results, everyone, cases), *results.others]
    if args.add:
        items = command.added_to(args.json, about, items)
    command.write_json(args.json, [{"machine": about}, *items])
    write_plots(args.svg, switch_plots.drawings(results, contenders))
    command.print_end(started, goal_rows(results, cases, contenders, everything=not args.only))


if __name__ == "__main__":
    main()
