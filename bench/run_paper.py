#!/usr/bin/python3
"""The experiments of "Stackful Coroutine Made Fast" (its figures 1, 5, 6 and 12 to 16), for docs/paper.md.

Programs, order and medians are as in bench/run.py. With --counts nothing is timed: cachegrind counts instead.

    bench/run_paper.py [--quick] [--counts] [--only CASE] [--json FILE [--add]] [--svg DIR] [--build DIR]
"""
import shutil
import sys
import time

from harness import building, command, paper_counts, paper_plots, programs, running, tables, targets
from harness.paper_cases import CASES, CSHARP, PYTHON
from harness.paper_tables import print_hanoi
from harness.plots import write_plots


def build(directory):
    """Gives each case its programs."""
    others = programs.build_others(directory)
    builds = programs.build_compilers(
        directory, "-DACORN_BENCH_PAPER=ON",
        f"-DACORN_COROSENSEI={others['corosensei'].path.parent / 'libcorosensei_tasks.a'}")
    others["pull"] = programs.go_program(directory / "generators-go", "./pull")
    csharp = directory / "csharp"
    others["csharp"] = programs.Program(CSHARP, f"mono {building.mono_version()}".strip(), csharp, None,
                                        building.build_with_mono(csharp))
    dotnet = directory / "csharp-dotnet"
    others["dotnet"] = programs.Program(CSHARP, f".NET {building.DOTNET}", dotnet, None,
                                        building.build_with_dotnet(dotnet))
    others["python"] = programs.Program(PYTHON, f"python {sys.version.split()[0]}",
                                        building.BENCH / "peers" / "generators.py")
    programs.find_native(CASES, builds, others)


def chosen_cases(args):
    cases = [case for case in CASES
             if not args.only or any(text.startswith(name) for name in args.only for text in (case.name, case.title))]
    if args.quick:
        cases = [case for case in cases if case.params.get("discs", 1) in (1, 4, 8, 12, 16, 20)]
    if not cases:
        sys.exit(f"no case begins so; there are: {' '.join(dict.fromkeys(case.name for case in CASES))}")
    return cases


def print_results(results, cases, towers):
    for case in cases:
        if case not in towers:
            tables.print_native(results, case)
        elif case is towers[0]:
            print_hanoi(results, towers)


def write_json(args, about, items):
    items = command.added_to(args.json, about, list(items)) if args.add else items
    command.write_json(args.json, [{"machine": about}, *items])


def run_counts(args, about, cases):
    items = paper_counts.count(cases)
    about["valgrind"] = building.output_of("valgrind", "--version").replace("valgrind-", "")
    command.print_heading("Acorn: the paper's programs, counted", about)
    paper_counts.print_counts(items)
    write_json(args, about, items)
    return []


def run_times(args, about, cases):
    results = running.run_cases([], cases, rounds=1 if args.quick else 5, many_rounds=1, samples=2, milliseconds=20,
                                seconds=args.seconds)
    about["load"] = command.load()
    command.print_heading("Acorn: the paper's experiments", about)
    towers = [case for case in cases if case.name == "hanoi"]
    print_results(results, cases, towers)
    everyone = [program for case in cases for program in case.programs]
    write_json(args, about, command.sample_objects(results, everyone, cases))
    write_plots(args.svg, paper_plots.drawings(results, cases, towers))
    return targets.native_rows(results, cases)


def main():
    parser = command.options("The experiments of the paper", "fewer repetitions, and only six of Hanoi's twenty")
    parser.add_argument("--only", metavar="CASE", action="append",
                        help="only the cases whose name or title begins so; repeatable")
    command.add_seconds(parser)
    parser.add_argument("--add", action="store_true", help="keep the JSON file's rows of other cases")
    parser.add_argument("--counts", action="store_true",
                        help="count instructions, cache misses and mispredictions by cachegrind; no times, no plots")
    args = command.parsed(parser)
    if args.add and not (args.json and args.json.exists()):
        sys.exit("--add: there is no JSON file to add to")
    if args.counts and not shutil.which("valgrind"):
        sys.exit("--counts: valgrind is not installed")
    cases = chosen_cases(args)
    running.progress("building")
    build(args.build.resolve())
    started = time.monotonic()
    about = {**command.machine(), "quick": args.quick}
    command.print_end(started, (run_counts if args.counts else run_times)(args, about, cases))


if __name__ == "__main__":
    main()
