"""Runs programs in random order and collects what they measure."""
import json
import os
import random
import statistics
import subprocess
import sys
import time

from .building import COMPILERS, version
from .cases import ACORN, MANY

RUN_LIMIT = 120  # seconds for one run of one program
COPYING_LIMIT = 300
TABLE = "libaco_table-*"
COPYING = {"memory-*": 2, TABLE: 1}  # programs that print JSON lines -> rounds of a full run


class Results:
    def __init__(self):
        self.samples = {}  # (case, program) -> nanoseconds
        self.missing = {}  # (case, program) -> reason
        self.others = []   # JSON objects that other programs printed

    def pooled(self, case, wanted):
        """The median over all programs that `wanted` chooses, or None."""
        found = [ns for (of, program), samples in self.samples.items() if of is case and wanted(program)
                 for ns in samples]
        return statistics.median(found) if found else None


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


# ---- Programs of bench/matrix.h and bench/native.h: they print one number for each sample ----

def run_once(program, case, samples, milliseconds, seed):
    """A list of nanoseconds, or the reason why there is none."""
    arguments = program.line.arguments if program.line else case.arguments
    command = [program.path, *arguments, str(samples), str(milliseconds), str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT)
    except subprocess.TimeoutExpired:
        return f"took more than {RUN_LIMIT} s"
    except OSError as error:
        return str(error)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        return said[-1] if said else f"ended with status {done.returncode}"
    return [float(line) for line in done.stdout.split()]


def run_round(results, case, programs, samples, milliseconds, seed):
    for program in random.sample(programs, len(programs)):
        if (case, program) in results.missing:
            continue
        got = run_once(program, case, samples, milliseconds, seed)
        if isinstance(got, str):
            results.missing[case, program] = got
            results.samples.pop((case, program), None)
        else:
            results.samples.setdefault((case, program), []).extend(got)


def is_time_for_another(started, done, seconds):
    """Whether one more round, as long as the `done` ones, ends within `seconds` of `started`; None: no limit."""
    return not (seconds and done) or (time.monotonic() - started) * (done + 1) / done <= seconds


def run_cases(programs, cases, rounds, many_rounds, samples, milliseconds, seconds=None):
    """Runs native cases with their own programs and cases of the matrix with `programs`. `seconds` bounds the rounds
    after the first: all of them are whole."""
    started = time.monotonic()
    results = Results()
    present = {case: [] for case in cases}
    for case in cases:
        for program in case.programs or programs:
            why = program.missing or (program.skip(case) if program.skip else None)
            if why:
                results.missing[case, program] = why
            else:
                present[case].append(program)
    for turn in range(rounds):
        if not is_time_for_another(started, turn, seconds):
            break
        for case in cases:
            if case.number < MANY or turn < many_rounds:
                progress(f"round {turn + 1} of {rounds}: {case.title}")
                run_round(results, case, present[case], samples, milliseconds, seed=turn * 7 + 1)
    progress("")
    return results


# ---- Programs that print JSON lines ----

def run_json_program(path, compiler):
    """The JSON objects that a program prints, with the compiler among their parameters."""
    try:
        done = subprocess.run([path, "--json", "--quick"], capture_output=True, text=True, timeout=COPYING_LIMIT)
        out, failure = done.stdout, done.returncode and f"status {done.returncode} {done.stderr.strip()}".strip()
    except subprocess.TimeoutExpired as late:
        out, failure = (late.stdout or b"").decode(), f"took more than {COPYING_LIMIT} s"
    items = [json.loads(line) for line in out.splitlines()]
    for item in items:
        item["params"] = {**item.get("params", {}), "compiler": compiler}
    if failure:
        items.append({"case": path.name, "impl": ACORN, "params": {"compiler": compiler}, "missing": failure})
    return items


def merged(items):
    """One object for the repetitions of one measurement: medians, smallest and largest."""
    first = items[0]
    if len(items) == 1 or any("missing" in item for item in items):
        return next((item for item in items if "missing" in item), first)
    return {**first, "ns": statistics.median(item["ns"] for item in items), "min": min(item["min"] for item in items),
            "max": max(item["max"] for item in items),
            "bytes": None if first["bytes"] is None else statistics.median(item["bytes"] for item in items)}


def programs_like(pattern, directories):
    """(path, compiler's name) of each program that matches."""
    return [(path, name) for name, directory in directories.items()
            for path in sorted((directory / "bench").glob(pattern)) if os.access(path, os.X_OK)]


def run_copying(directories, quick, end=None):
    """Copying and memory, as JSON objects. A quick run has one round, one compiler, and not libaco's table. Nothing
    but the first round begins after `end`, a time of time.monotonic()."""
    def is_late():
        return end is not None and time.monotonic() > end

    groups = {}
    if quick:
        directories = dict(list(directories.items())[:1])
    for pattern, rounds in COPYING.items():
        if pattern == TABLE and (quick or is_late()):
            groups["libaco_table", "", "", ""] = [
                {"case": "libaco_table", "impl": ACORN, "params": {}, "missing": "left out of a short run"}]
            continue
        found = programs_like(pattern, directories)
        for turn in range(1 if quick else rounds):
            if turn and is_late():
                break
            for path, name in random.sample(found, len(found)):
                progress(f"{path.name}, {name}, round {turn + 1}")
                for item in run_json_program(path, version(COMPILERS[name][0])):
                    key = item["case"], item["params"]["compiler"], item["impl"], json.dumps(item["params"])
                    groups.setdefault(key, []).append(item)
    progress("")
    return [merged(items) for _, items in sorted(groups.items())]
