"""What cachegrind counts in the paper's programs: instructions, misses of the L1 data cache, mispredictions.

A count is that of more rounds less that of fewer, for each operation, so that starting and preparing cancel out. The
caches and predictors are valgrind's, not the processor's, so counts mean the same on every machine, loaded or not.
Its predictors take every return for predicted."""
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import running
from .cases import GO, TOKIO
from .paper_cases import CSHARP, PYTHON
from .tables import print_columns

DISCS = 16
ROUNDS = {  # case -> elements, tasks, sends or requests of a round; fewer and more rounds
    "breakdown": (100000, 1, 3), "hanoi": (2 ** DISCS - 1, 1, 3), "write_fully": (50000, 1, 3),
    "yield": (10, 1000, 11000), "http": (400, 1, 4),
    "rpc": (400, 1, 4)}
LIMIT_S = 600  # of one program
UNCOUNTED = (GO, TOKIO, CSHARP, PYTHON)  # valgrind would count their runtimes' threads and compilers too
CACHEGRIND = ("--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64",
              "--LL=8388608,16,64", "--cachegrind-out-file=/dev/null")
FIELDS = {"instructions": r"I\s+refs:\s+([\d,]+)", "reads": r"D\s+refs:.*?\(\s*([\d,]+) rd",
          "read_misses": r"D1\s+misses:.*?\(\s*([\d,]+) rd", "misses": r"D1\s+misses:\s+([\d,]+)",
          "mispredictions": r"Mispredicts:\s+([\d,]+)"}


def counted(program, path, number, rounds):
    """The counts of so many rounds, and the number of their operations; or None."""
    name, _, order = program.line.arguments
    command = [shutil.which("valgrind"), *CACHEGRIND, path, name, str(number), order, "0", str(rounds), "1"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env={})
    except subprocess.TimeoutExpired:
        return None
    found = {field: re.search(pattern, done.stderr) for field, pattern in FIELDS.items()}
    if done.returncode != 0 or not all(found.values()) or not done.stdout.strip().isdigit():
        return None
    return {"operations": int(done.stdout),
            **{field: int(match[1].replace(",", "")) for field, match in found.items()}}


def count_program(case, program):
    """The counts for each operation, for the JSON file."""
    number, *rounds = ROUNDS[case.name]
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "program"  # valgrind 3.19 cannot read clang 19's debug information
        subprocess.run(["strip", "-o", bare, program.path], check=True)
        less, more = (counted(program, bare, number, of) for of in rounds)
    if not (less and more):
        return {"missing": "valgrind could not run it"}
    operations = more["operations"] - less["operations"]
    return {field: max(0, round((more[field] - less[field]) / operations, 4)) for field in FIELDS}


def counted_cases(cases):
    return [case for case in cases if case.name in ROUNDS and case.params.get("discs", DISCS) == DISCS]


def count(cases):
    """A JSON object for each program of counted_cases()."""
    items = []
    for case in counted_cases(cases):
        for program in case.programs:
            if program.impl in UNCOUNTED or program.line in (case.loop, case.cycle):
                continue
            running.progress(f"counting: {case.name}, {program.label}, {program.compiler}")
            found = {"missing": program.missing} if program.missing else count_program(case, program)
            items.append({"case": f"{case.name}_counted", "impl": program.impl,
                          "params": {**program.params, "compiler": program.compiler}, **found})
    running.progress("")
    return items


def print_counts(items):
    for name in dict.fromkeys(item["case"] for item in items):
        print(f"\n{name}: for each move, send, yield or request, by cachegrind; L1 of 32 KiB, 8 ways")
        rows = [("implementation", "", "compiler", "instructions", "reads", "read misses", "misses", "mispredictions")]
        rows += [(item["impl"], item["params"]["what"], item["params"]["compiler"], f"{item['instructions']:.1f}",
                  f"{item['reads']:.1f}", *(f"{item[field]:.3f}" for field in ("read_misses", "misses",
                                                                              "mispredictions")))
                 for item in items if item["case"] == name and "missing" not in item]
        print_columns(rows, 3)
    for item in items:
        if "missing" in item:
            print(f"  missing: {item['case']}: {item['impl']}, {item['params']['what']} "
                  f"({item['params']['compiler']}): {item['missing']}")
