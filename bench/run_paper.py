#!/usr/bin/python3
"""The experiments of "Stackful Coroutine Made Fast" (its figures 1, 5, 6 and 12 to 16), for docs/paper.md.

Programs, order and medians are as in bench/run.py. Valgrind's cachegrind also counts L1 misses of write_fully()
and the clients' instructions.

    bench/run_paper.py [--quick] [--only CASE] [--json FILE] [--svg DIR] [--build DIR]
"""
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import building, command, paper_plots, programs, running, tables, targets
from harness.cases import GO, TOKIO
from harness.paper_cases import CASES, CSHARP, PYTHON
from harness.paper_tables import print_counted, print_hanoi
from harness.plots import write_plots

COUNTED = {"write_fully": (10000, 110000), "http": (400, 2400), "rpc": (400, 2400)}  # case -> shorter and longer round
CACHEGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64", "--LL=8388608,16,64",
              "--cachegrind-out-file=/dev/null")
FIELDS = {"instructions": r"I\s+refs:\s+([\d,]+)", "reads": r"D\s+refs:.*?\(\s*([\d,]+) rd",
          "read_misses": r"D1\s+misses:.*?\(\s*([\d,]+) rd"}


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
    others["python"] = programs.Program(PYTHON, f"python {sys.version.split()[0]}",
                                        building.BENCH / "peers" / "generators.py")
    programs.find_native(CASES, builds, others)


# ---- Counting ----

def counted(program, path, number):
    """The counts of one round with `number` sends or requests, or None."""
    done = subprocess.run([*CACHEGRIND, path, program.line.arguments[0], str(number), "-", "0", "1", "1"],
                          capture_output=True, text=True, timeout=running.RUN_LIMIT)
    found = {field: re.search(pattern, done.stderr) for field, pattern in FIELDS.items()}
    if done.returncode != 0 or not all(found.values()):
        return None
    return {field: int(match.group(1).replace(",", "")) for field, match in found.items()}


def count_program(case, program):
    """The counts of the longer round less those of the shorter one, for each send or request."""
    numbers = COUNTED[case.name]
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / program.path.name  # valgrind 3.19 cannot read clang 19's debug information
        subprocess.run(["strip", "-o", bare, program.path], check=True)
        less, more = (counted(program, bare, number) for number in numbers)
    if not (less and more):
        return {"missing": "valgrind could not run it"}
    return {field: max(0, round((more[field] - less[field]) / (numbers[1] - numbers[0]), 4)) for field in FIELDS}


def count(cases):
    """A JSON object for each program: instructions, reads, and reads that missed."""
    if not shutil.which("valgrind"):
        print("missing: what cachegrind counts: valgrind is not installed")
        return []
    items = []
    for case in cases:
        for program in case.programs if case.name in COUNTED else ():
            if not program.missing and program.impl not in (GO, TOKIO, CSHARP):
                running.progress(f"counting: {case.name}, {program.label}, {program.compiler}")
                items.append({"case": f"{case.name}_counted", "impl": program.impl,
                              "params": {**program.params, "compiler": program.compiler},
                              **count_program(case, program)})
    running.progress("")
    return items


# ---- The command ----

def chosen_cases(args):
    cases = [case for case in CASES if not args.only or any(case.name.startswith(name) for name in args.only)]
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
    print_counted(results.others)


def main():
    parser = command.options("The experiments of the paper", "fewer repetitions, and only six of Hanoi's twenty")
    parser.add_argument("--only", metavar="CASE", action="append",
                        help="only the cases whose name begins so; repeatable")
    args = command.parsed(parser)
    cases = chosen_cases(args)
    running.progress("building")
    build(args.build.resolve())
    started = time.monotonic()
    about = {**command.machine(), "quick": args.quick}
    results = running.run_cases([], cases, rounds=1 if args.quick else 5, many_rounds=1, samples=2, milliseconds=20)
    results.others = count(cases)

    command.print_heading("Acorn: the paper's experiments", about)
    towers = [case for case in cases if case.name == "hanoi"]
    print_results(results, cases, towers)
    everyone = [program for case in cases for program in case.programs]
    command.write_json(args.json, [{"machine": about}, *command.sample_objects(results, everyone, cases),
                                   *results.others])
    write_plots(args.svg, paper_plots.drawings(results, cases, towers))
    command.print_end(started, targets.native_rows(results, cases))


if __name__ == "__main__":
    main()
