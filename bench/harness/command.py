"""What the commands of bench/ share: options, the description of the machine, and the JSON file."""
import argparse
import datetime
import json
import os
import platform
import re
import statistics
import sys
import time
from pathlib import Path

from .building import COMPILERS, ROOT, go_version, output_of, rust_version, version
from .goals import print_goals
from .ratios import native_cycles


def options(description, quick):
    """A parser with the options that all commands have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def add_seconds(parser):
    parser.add_argument("--seconds", metavar="S", type=int,
                        help="begin no round that would end later; the first is always made")


def parsed(parser, svg=True):
    """The command line; these options come last in the help."""
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all results, one JSON object per line")
    if svg:
        parser.add_argument("--svg", metavar="DIR", type=Path, help="write the plots")
    parser.add_argument("--build", metavar="DIR", type=Path, default=ROOT / "build" / "bench", help="where to build")
    return parser.parse_args()


# ---- The machine ----

def commit(checkout):
    return output_of("git", "-C", str(checkout), "rev-parse", "--short", "HEAD")


def machine():
    info = Path("/proc/cpuinfo").read_text()
    cpu = re.search(r"model name\s*: (.*)", info)
    family = re.search(r"cpu family\s*: (.*)", info)
    model = re.search(r"^model\s*: (.*)", info, re.MULTILINE)
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    versions = (*(version(cc) for cc, _ in COMPILERS.values()), rust_version(), go_version())
    return {
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "family, model": f"{family.group(1)}, {model.group(1)}" if family and model else "",
        "cpus": os.cpu_count(),
        "virtual": " hypervisor " in info,
        "memory": f"{int(memory.group(1)) >> 20} GiB" if memory else "",
        "kernel": f"{platform.system()} {platform.release()}",
        "compilers": [found for found in versions if found],
        "flags": "-O2",
        "commit": commit(ROOT),
        "date": datetime.date.today().isoformat(),
    }


def load():
    """Programs that wanted to run in the last minute. A run on a quiet machine is one of them."""
    return round(os.getloadavg()[0], 1)


def print_heading(title, about):
    print(title)
    for key, value in about.items():
        print(f"  {key:14} {', '.join(value) if isinstance(value, list) else value}")


# ---- JSON ----

def sample_objects(results, programs, cases):
    """The samples as objects, in the order of `cases` and `programs`; then what is missing."""
    def head(case, program):
        return {"case": case.name, "impl": program.impl,
                "params": {**case.params, **program.params, "compiler": program.compiler}}

    def order(item):
        case, program = item[0]
        return cases.index(case), programs.index(program)

    for (case, program), ns in sorted(results.samples.items(), key=order):
        cycles = native_cycles(results, case, program) if program.line else None
        yield {**head(case, program), "ns": round(statistics.median(ns), 4), "min": min(ns), "max": max(ns),
               "bytes": None, "samples": len(ns), **({"cycles": round(cycles, 2)} if cycles else {})}
    for (case, program), reason in results.missing.items():
        yield {**head(case, program), "missing": reason}


def added_to(file, about, items):
    """`items`, and before them the file's rows of other cases. Those must be of the same processor and compilers."""
    first, *rows = map(json.loads, file.read_text().splitlines())
    for key in ("cpu", "family, model", "compilers", "quick"):
        if first["machine"].get(key) != about.get(key):
            sys.exit(f"--add: {file} is of another {key}: {first['machine'].get(key)}")

    def case_of(item):
        return item["case"], item["params"].get("discs")

    measured = {case_of(item) for item in items}
    return [*(row for row in rows if case_of(row) not in measured), *items]


def write_json(file, objects):
    """One object per line; returns without a file where none is wanted."""
    if not file:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w") as out:
        for item in objects:
            print(json.dumps(item), file=out)
    print(f"\nJSON: {file}")


def print_end(started, goals):
    """The last that a command prints; `goals`: of harness/goals.py."""
    print(f"\nmeasured in {time.monotonic() - started:.0f} s")
    print_goals(goals)
