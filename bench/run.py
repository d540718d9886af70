#!/usr/bin/python3
"""Builds and runs the benchmarks: Acorn and every contender, in the same run of this script.

Every case runs all its programs one after the other, in random order, and this whole sequence is repeated: what the machine
does meanwhile meets all of them. A number is the median of all samples of all rounds; each round is a new process with
another address space, stack colour and code placement.

    bench/run.py [--quick] [--only TEXT] [--json FILE] [--svg DIR] [--build DIR]
"""
import argparse
import datetime
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang-19", "clang++-19")}
RUN_LIMIT = 120  # seconds for one run of one program
COPYING_LIMIT = 300
MANY = 10000     # coroutines from which on making them takes longer than measuring: fewer rounds


# ---- What is measured ----

class Case:
    """One row group: a command line of the matrix programs (bench/matrix.h)."""
    programs = None  # who takes part: the matrix's

    def __init__(self, name, number, order="-"):
        self.name, self.number, self.order = name, number, order

    @property
    def arguments(self):
        return [self.name, str(self.number), self.order]

    @property
    def params(self):
        if self.name == "flat":
            return {"coroutines": self.number, "order": {"rr": "round robin", "random": "random order"}[self.order]}
        return {"depth": self.number} if self.name == "nested" else {}

    @property
    def title(self):
        if self.name == "flat":
            return f"flat loop, {self.number} coroutines, {self.params['order']}" if self.number > 1 else "flat loop, 1 coroutine"
        if self.name == "nested":
            return f"yield nested {self.number} call{'s' if self.number > 1 else ''} deep"
        return "passing a value each way"


ONE = Case("flat", 1, "rr")
SIXTY_FOUR = Case("flat", 64, "rr")
NESTED = {depth: Case("nested", depth) for depth in (1, 4, 16)}
NUMBERS = (8, 64, 1000, 100000)
CASES = [ONE] + [SIXTY_FOUR if (n, order) == (64, "rr") else Case("flat", n, order) for order in ("rr", "random") for n in NUMBERS] \
    + list(NESTED.values()) + [Case("value", 1)]


class Line:
    """What a native case compares: a measurement of one of the programs that use bench/native.h."""

    def __init__(self, what, program, name, number=1, limit=None, impl="acorn"):
        self.what, self.program, self.arguments = what, program, [name, str(number), "-"]
        self.limit = limit  # of its ratio to the case's base, if there is a number to reach; or such limits by compiler
        self.impl = impl

    def limit_for(self, compiler):
        return self.limit.get(compiler.split()[0]) if isinstance(self.limit, dict) else self.limit


class NativeCase:
    """Some measurements, all set beside the base: the first, or the fastest of the first `bases`. Where `loop` and `cycle` are
    given, measurements of an empty loop and of one cycle, times are shown in cycles without the loop, too."""
    number = 1

    def __init__(self, name, title, *lines, params=None, bases=1, loop=None, cycle=None):
        self.name, self.title, self.params = name, title, params or {}
        self.lines = [*lines, *(line for line in (loop, cycle) if line)]
        self.bases, self.loop, self.cycle = lines[:bases], loop, cycle
        self.programs = []  # build() knows them


ROUND_TRIP = "resume and yield"
NATIVE = [
    NativeCase("native_send", "native: a value each way", Line(ROUND_TRIP, "acorn", "resume"),
               Line("aco_send and aco_yield_value", "acorn", "send", limit=1.10)),
    NativeCase("native_nested", "native: resume from inside a coroutine", Line(ROUND_TRIP, "acorn", "resume"),
               Line("resume and yield, nested", "acorn", "nested", limit=1.60)),
    NativeCase("native_transfer", "native: transfer, 2 coroutines", Line(ROUND_TRIP, "acorn", "resume"),
               Line("aco_yield_to", "acorn", "transfer", 2, limit=0.70), params={"coroutines": 2}),
    *(NativeCase("native_transfer", f"native: transfer, ring of {n} coroutines", Line(f"resume and yield, {n} in turn", "acorn", "resume_several", n),
                 Line("aco_yield_to", "acorn", "transfer", n, limit=0.70), params={"coroutines": n}) for n in (10, 64)),
    NativeCase("native_call", "native: call, a coroutine's whole life", Line("with_stack, resume, return", "corosensei", "call", impl="corosensei"),
               Line("new, send, return, destroy", "acorn", "call", limit=1.00), Line("restart, send, return", "acorn", "restart"),
               Line("made on a pooled stack, resume, return", "boost", "call", impl="Boost.Context fiber")),
    NativeCase("native_own_exceptions", "native: own exceptions (ACO_OWN_EXCEPTIONS)", Line(ROUND_TRIP, "cpp", "resume"),
               Line("resume and yield, own exceptions", "cpp", "own_exceptions")),
    NativeCase("native_coroutine", "native: C++ coroutine", Line(ROUND_TRIP, "cpp", "resume"),
               Line("aco::coroutine<>", "cpp", "coroutine", limit=1.30),
               Line("aco::coroutine, a value each way", "cpp", "coroutine_value", limit=1.30)),
    NativeCase("native_generator", "native: C++ generator, a tree of 1000000 nodes", Line("visit with a callback", "cpp", "visit", 1000000),
               Line("aco::generator, recursive function", "cpp", "generator", 1000000, limit=2.00),
               Line("aco::generator for each node, yield_from", "cpp", "generators", 1000000), params={"nodes": 1000000}),
]
ELEMENTS = 100000
DISCS = 20
MOVES = 2 ** DISCS - 1
NATIVE += [
    NativeCase("generator_sum", "generator: sum of sequence",
               Line("for loop", "generators", "sequence_for", ELEMENTS, impl="C++20 generator"),
               Line("while loop", "generators", "sequence_while", ELEMENTS, impl="C++20 generator"),
               Line("own-stack generator", "generator", "sequence", ELEMENTS, limit={"gcc": 0.95, "clang": 1.20}),
               Line("in-stack generator", "generator", "sequence_in_stack", ELEMENTS),
               Line("aco_send and aco_yield_value", "generator", "sequence_yield", ELEMENTS),
               Line("function that calls back", "generator", "sequence_call", ELEMENTS, impl="callback"),
               Line("Coroutine", "corosensei", "sequence", ELEMENTS, impl="corosensei"),
               Line("pull_type", "boost_generators", "sequence", ELEMENTS, impl="Boost.Coroutine2"),
               params={"elements": ELEMENTS}, bases=2),
    NativeCase("generator_hanoi", f"generator: Hanoi({DISCS})",
               Line("recursion and callback", "generator", "hanoi_call", MOVES, impl="callback"),
               Line("own-stack generator", "generator", "hanoi", MOVES, limit=1.80),
               Line("in-stack generator", "generator", "hanoi_in_stack", MOVES, limit=1.80),
               Line("aco_send and aco_yield_value", "generator", "hanoi_yield", MOVES),
               Line("Coroutine", "corosensei", "hanoi", MOVES, impl="corosensei"),
               Line("pull_type", "boost_generators", "hanoi", MOVES, impl="Boost.Coroutine2"),
               Line("a generator for each call", "generators", "hanoi", MOVES, impl="C++20 generator"), params={"discs": DISCS}),
    NativeCase("generator_hanoi_boost", f"generator: Hanoi({DISCS}) beside Boost",
               Line("pull_type", "boost_generators", "hanoi", MOVES, impl="Boost.Coroutine2"),
               Line("own-stack generator", "generator", "hanoi", MOVES, limit=0.50),
               Line("in-stack generator", "generator", "hanoi_in_stack", MOVES, limit=0.50), params={"discs": DISCS}),
    *(NativeCase("scheduler_ring", f"scheduler: ring of {n}",
                 Line("next of the ring", "classic_ring", "ring", n, impl="classic switch"),
                 Line("aco_task_yield", "scheduler", "ring", n, limit=limit),
                 Line("aco_task_yield_call, preserve_none", "scheduler", "ring_preserve_none", n),
                 Line("aco_task_yield_call", "scheduler-plain", "ring_call", n),
                 Line("this_fiber::yield", "boost_scheduler", "ring", n, impl="Boost.Fiber"),
                 Line("runtime.Gosched", "go", "ring", n, impl="Go"),
                 Line("task::yield_now", "tokio", "ring", n, impl="tokio"), params={"tasks": n},
                 loop=Line("an empty loop", "scheduler", "empty_loop", impl="processor"),
                 cycle=Line("one cycle", "scheduler", "cycle", 100, impl="processor"))
      for n, limit in ((10, 0.70), (100, 0.70), (10000, 0.90))),
    *(NativeCase("scheduler_ring_live", f"scheduler: ring of {n}, four values live across the yield",
                 Line("next of the ring", "classic_ring", "ring_live", n, impl="classic switch"),
                 Line("aco_task_yield", "scheduler", "ring_live", n),
                 Line("aco_task_yield_call, preserve_none", "scheduler", "ring_preserve_none_live", n),
                 Line("aco_task_yield_call", "scheduler-plain", "ring_call_live", n), params={"tasks": n})
      for n in (10, 100, 10000)),
    NativeCase("scheduler_ping_pong", "scheduler: channel ping-pong",
               Line("unbuffered channels", "go", "ping_pong", impl="Go"),
               Line("unbuffered channels", "scheduler", "ping_pong", limit=0.10),
               Line("unbuffered_channel", "boost_scheduler", "ping_pong", impl="Boost.Fiber"),
               Line("mpsc::channel(1)", "tokio", "ping_pong", impl="tokio")),
    *(NativeCase("scheduler_spawn", f"scheduler: spawn + run + join{text}",
                 Line("go, WaitGroup", "go", "spawn", n, impl="Go"),
                 Line("aco_spawn, aco_join", "scheduler", "spawn", n, limit=limit),
                 Line("fiber, join", "boost_scheduler", "spawn", n, impl="Boost.Fiber"),
                 Line("spawn, await", "tokio", "spawn", n, impl="tokio"), params={"tasks": n})
      for n, text, limit in ((1, "", 0.10), (50, ", 50 at once", None), (1000, ", 1000 at once", None))),
]
PAPER = "the paper reports 3.34 for its yield in a ring of 10, on a Xeon of 2.2 GHz"


class Program:
    """One contender, or one form of Acorn, as built by one compiler; in a native case one of its lines."""
    line = None

    def __init__(self, impl, compiler, path, params=None, missing=None, skip=None):
        self.impl, self.compiler, self.path = impl, compiler, path
        self.params = params or {}
        self.missing = missing  # why there is none
        self.skip = skip        # case -> why this contender does not take part, or None

    @property
    def label(self):
        return self.impl + "".join(f", {value}" for value in self.params.values())


INLINE, EXPORTED, LIBRARY = "inline", "exported", "exported from .so"
SHARED, OWN = "shared FP", "own FP"
ACORN = {  # program -> form, floating-point environment
    "acorn-shared": (INLINE, SHARED),
    "acorn-own": (INLINE, OWN),
    "acorn-exported-shared": (EXPORTED, SHARED),
    "acorn-exported-own": (EXPORTED, OWN),
    "acorn-so-own": (LIBRARY, OWN),
}
PEERS = {  # program -> name, compilers that build it
    "call": ("empty call", ("gcc", "clang")),
    "classic": ("classic switch", ("gcc", "clang")),
    "generator": ("C++20 generator", ("gcc", "clang")),
    "ucontext": ("ucontext", ("gcc",)),
    "boost_fiber": ("Boost.Context fiber", ("gcc",)),
    "boost_coroutine2": ("Boost.Coroutine2", ("gcc",)),
}
CALL, CLASSIC, ACORN_NAME, COROSENSEI = "empty call", "classic switch", "acorn", "corosensei"
FP_FORMS = {"-shared": {"fp": SHARED}, "-own": {"fp": OWN}}
NATIVE_PROGRAMS = {  # program -> its forms, the compilers that build it, what it needs beside them
    "acorn": (FP_FORMS, ("gcc", "clang"), None),
    "cpp": (FP_FORMS, ("gcc", "clang"), None),
    "generator": ({"": {}}, ("gcc", "clang"), None),
    "generators": ({"": {}}, ("gcc", "clang"), None),
    "scheduler": ({"": {}}, ("gcc", "clang"), None),
    "scheduler-plain": ({"": {}}, ("gcc", "clang"), None),
    "classic_ring": ({"": {}}, ("gcc", "clang"), None),
    "boost": ({"": {}}, ("gcc",), "libboost-context-dev"),
    "boost_generators": ({"": {}}, ("gcc",), "libboost-context-dev"),
    "boost_scheduler": ({"": {}}, ("gcc",), "libboost-fiber-dev"),
}
TABLE = "libaco_table-*"
COPYING = {"memory-*": 2, TABLE: 1}  # programs that print their own JSON lines -> rounds of a full run


# ---- Building ----

def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def version(compiler):
    number = output_of(compiler, "-dumpfullversion" if compiler == "gcc" else "-dumpversion")
    return f"{compiler.split('-')[0]} {number}" if number else ""


def run_logged(command, log, **options):
    """None, or the reason of the failure."""
    with open(log, "ab") as out:
        try:
            code = subprocess.run(command, stdout=out, stderr=out, **options).returncode
        except OSError as error:
            return str(error)
    if code == 0:
        return None
    lines = [line.strip() for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror:|undefined reference", line)), max(len(lines) - 1, 0))
    return f"{' '.join(lines[first:first + 2]) or 'failed'} (see {log})"


def build_with_cmake(name, directory, *options):
    cc, cxx = COMPILERS[name]
    for tool in (cc, cxx, "cmake"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "build.log"
    log.unlink(missing_ok=True)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    return run_logged(["cmake", "-S", ROOT, "-B", directory, *generator, f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}",
                       "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DACORN_BENCH=ON", "-DACORN_TESTS=OFF", *options], log) \
        or run_logged(["cmake", "--build", directory, "--parallel", str(os.cpu_count())], log)


def build_with_cargo(crate, directory):
    if not shutil.which("cargo"):
        return "cargo is not installed"
    log = directory.parent / f"cargo-{crate}.log"
    log.unlink(missing_ok=True)
    return run_logged(["cargo", "build", "--release", "--locked"], log, cwd=BENCH / "peers" / crate,
                      env={**os.environ, "CARGO_TARGET_DIR": str(directory)})


def build_with_go(program, package):
    if not shutil.which("go"):
        return "go is not installed"
    log = program.with_suffix(".log")
    log.unlink(missing_ok=True)
    return run_logged(["go", "build", "-buildvcs=false", "-o", program, package], log, cwd=BENCH / "peers" / "go")


def rust_version():
    return " ".join(output_of("rustc", "--version").split()[:2])


def go_version():
    return " ".join(output_of("go", "version").split()[2:3]).replace("go", "go ", 1)


def takes_part_exported(case):
    return "not run with this many coroutines" if case.number >= MANY else None


def takes_part_call(case):
    return None if case is ONE or case.name in ("nested", "value") else "there is no coroutine"


def takes_part_generator(case):
    return "a stackless coroutine cannot yield from a function that it calls" if case.name == "nested" else None


def native_programs(line, builds, others):
    """(compiler, path, params, missing) of what measures `line`. `builds`: compiler's name -> (version, directory, failure).
    `others`: programs of other languages, by name."""
    if line.program in others:
        return [(others[line.program].compiler, others[line.program].path, {}, others[line.program].missing)]
    found = []
    forms, builders, needs = NATIVE_PROGRAMS[line.program]
    for name, (compiler, directory, failure) in builds.items():
        for form, params in forms.items() if name in builders else ():
            path = directory / "bench" / f"native-{line.program}{form}"
            why = failure or (None if path.exists() else f"{needs} is not installed" if needs else "was not built")
            found.append((compiler, path, params, why))
    return found


def find_native(cases, builds, others):
    """Gives each native case its programs."""
    for case in cases:
        case.programs = []
        for line in case.lines:
            for compiler, path, params, missing in native_programs(line, builds, others):
                program = Program(line.impl, compiler, path, {"what": line.what, **params}, missing)
                program.line = line
                case.programs.append(program)


def build_others(directory):
    """The programs of other languages, by name."""
    cargo, go, rustc = directory / "cargo", directory / "scheduler-go", rust_version() or "rustc"
    return {
        "corosensei": Program(COROSENSEI, rustc, cargo / "release" / "switch-corosensei", None, build_with_cargo("corosensei", cargo)),
        "tokio": Program("tokio", rustc, cargo / "release" / "scheduler-tokio", None, build_with_cargo("tokio", cargo)),
        "go": Program("Go", go_version() or "go", go, None, build_with_go(go, ".")),
    }


def build(directory):
    """The matrix's programs, built or missing, and the directories by compiler. Finds the native cases' programs too."""
    programs, directories, builds = [], {}, {}
    skips = {"call": takes_part_call, "generator": takes_part_generator}
    for name, (cc, _) in COMPILERS.items():
        directories[name] = directory / name
        failure = build_with_cmake(name, directories[name])
        compiler = version(cc) or name
        builds[name] = compiler, directories[name], failure

        def add(program, impl, params=None, skip=None):
            path = directories[name] / "bench" / f"switch-{program}"
            why = failure
            if not why and not path.exists():
                why = "libboost-context-dev is not installed" if program.startswith("boost") else "was not built"
            programs.append(Program(impl, compiler, path, params, why, skip))

        for program, (form, fp) in ACORN.items():
            add(program, ACORN_NAME, {"form": form, "fp": fp}, None if form == INLINE else takes_part_exported)
        for program, (impl, builders) in PEERS.items():
            if name in builders:
                add(program, impl, None, skips.get(program))
    others = build_others(directory)
    programs.append(others["corosensei"])
    find_native(NATIVE, builds, others)
    order = [impl for impl, *_ in ((ACORN_NAME,), *PEERS.values(), (COROSENSEI,))]
    return sorted(programs, key=lambda program: (order.index(program.impl), [*ACORN.values()].index(tuple(program.params.values()))
                                                 if program.params else 0)), directories


# ---- Running ----

class Results:
    def __init__(self):
        self.samples = {}  # (case, program) -> nanoseconds
        self.missing = {}  # (case, program) -> reason
        self.others = []   # JSON objects that other programs printed

    def pooled(self, case, wanted):
        """The median over all programs that `wanted` chooses, or None."""
        found = [ns for (c, program), samples in self.samples.items() if c is case and wanted(program) for ns in samples]
        return statistics.median(found) if found else None


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


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def run_matrix(programs, cases, rounds, many_rounds, samples, milliseconds):
    results = Results()
    pairs = {case: [] for case in cases}
    for case in cases:
        for program in case.programs or programs:
            why = program.missing or (program.skip(case) if program.skip else None)
            if why:
                results.missing[case, program] = why
            else:
                pairs[case].append(program)
    for turn in range(rounds):
        for case in cases:
            if case.number >= MANY and turn >= many_rounds:
                continue
            progress(f"round {turn + 1} of {rounds}: {case.title}")
            seed = turn * 7 + 1
            for program in random.sample(pairs[case], len(pairs[case])):
                if (case, program) in results.missing:
                    continue
                got = run_once(program, case, samples, milliseconds, seed)
                if isinstance(got, str):
                    results.missing[case, program] = got
                    results.samples.pop((case, program), None)
                else:
                    results.samples.setdefault((case, program), []).extend(got)
    progress("")
    return results


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
        items.append({"case": path.name, "impl": ACORN_NAME, "params": {"compiler": compiler}, "missing": failure})
    return items


def merged(items):
    """One object for the repetitions of one measurement: medians, smallest and largest."""
    first = items[0]
    if len(items) == 1 or any("missing" in item for item in items):
        return next((item for item in items if "missing" in item), first)
    return {**first, "ns": statistics.median(item["ns"] for item in items), "min": min(item["min"] for item in items),
            "max": max(item["max"] for item in items),
            "bytes": None if first["bytes"] is None else statistics.median(item["bytes"] for item in items)}


def run_copying(results, directories, quick):
    """Copying and memory. A quick run has one round, one compiler, and not libaco's table."""
    groups = {}
    names = list(directories)[:1] if quick else list(directories)
    for pattern, rounds in COPYING.items():
        paths = [(path, name) for name in names for path in sorted((directories[name] / "bench").glob(pattern)) if os.access(path, os.X_OK)]
        if quick and pattern == TABLE:
            item = {"case": "libaco_table", "impl": ACORN_NAME, "params": {}, "missing": "left out of a quick run"}
            groups["libaco_table", "", "", ""] = [item]
            continue
        for turn in range(1 if quick else rounds):
            for path, name in random.sample(paths, len(paths)):
                progress(f"{path.name}, {name}, round {turn + 1}")
                for item in run_json_program(path, version(COMPILERS[name][0])):
                    groups.setdefault((item["case"], item["params"]["compiler"], item["impl"], json.dumps(item["params"])), []).append(item)
    results.others = [merged(items) for _, items in sorted(groups.items())]
    progress("")


# ---- Text ----

def machine():
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    family = re.search(r"cpu family\s*: (.*)", Path("/proc/cpuinfo").read_text())
    model = re.search(r"^model\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    virtual = " hypervisor " in Path("/proc/cpuinfo").read_text()
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "family, model": f"{family.group(1)}, {model.group(1)}" if family and model else "",
        "cpus": os.cpu_count(),
        "virtual": virtual,
        "memory": f"{int(memory.group(1)) >> 20} GiB" if memory else "",
        "kernel": f"{platform.system()} {platform.release()}",
        "compilers": [v for v in (*(version(cc) for cc, _ in COMPILERS.values()), rust_version(), go_version()) if v],
        "flags": "-O2",
        "commit": output_of("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
        "date": datetime.date.today().isoformat(),
    }


def number(ns):
    return f"{ns:.2f}" if ns < 100 else f"{ns:.0f}"


def print_columns(rows, left):
    """`rows` of texts; the first `left` columns flush left, the others flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) if i < left else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def reference(results, case, program, impl):
    """What `program` is compared with: `impl`'s best-known form by the same compiler, else by all."""
    def fits(other, same):
        return other.impl == impl and (not same or other.compiler == program.compiler) \
            and (impl != ACORN_NAME or other.params == {"form": INLINE, "fp": SHARED})
    return results.pooled(case, lambda other: fits(other, True)) or results.pooled(case, lambda other: fits(other, False))


def ratio(results, case, program, impl):
    base = reference(results, case, program, impl)
    return f"{statistics.median(results.samples[case, program]) / base:.2f}" if base else "-"


def reasons(missing):
    """(program, reason) pairs as lines: the reason and whom it keeps away."""
    compilers = {}
    for program, reason in missing:
        compilers.setdefault(reason, {}).setdefault(program.label, []).append(program.compiler)
    return [f"missing: {'; '.join(label + ' (' + ', '.join(by) + ')' for label, by in labels.items())}: {reason}"
            for reason, labels in compilers.items()]


def print_missing(programs):
    for line in reasons((program, program.missing) for program in programs if program.missing):
        print(f"\n{line}")


def print_case(results, case, programs):
    print(f"\n{case.title}")
    rows = [("implementation", "compiler", "ns", "min ns", "max ns", "x classic", "x acorn")]
    for program in programs:
        ns = results.samples.get((case, program))
        if ns:
            rows.append((program.label, program.compiler, number(statistics.median(ns)), number(min(ns)), number(max(ns)),
                         ratio(results, case, program, CLASSIC), ratio(results, case, program, ACORN_NAME)))
    rows[1:] = sorted(rows[1:], key=lambda row: float(row[2]))
    print_columns(rows, 2)
    for line in reasons((program, results.missing[case, program]) for program in programs
                        if not program.missing and (case, program) in results.missing):
        print(f"  {line}")


def native_median(results, case, program, lines):
    """Of those `lines` the fastest: by the same compiler as `program`, with the same floating-point environment, where that is there."""
    def fits(other, line, same):
        return other.line is line and (not same or (other.compiler == program.compiler and other.params.get("fp") == program.params.get("fp")))

    for same in (True, False):
        found = [results.pooled(case, lambda other, line=line: fits(other, line, same)) for line in lines]
        if any(found):
            return min(ns for ns in found if ns)
    return None


def native_ratio(results, case, program):
    """What it takes to the case's base."""
    ns = results.samples.get((case, program))
    base = native_median(results, case, program, case.bases)
    return statistics.median(ns) / base if ns and base else None


def native_cycles(results, case, program):
    """What it takes in cycles, without the loop around it; None where the case does not tell."""
    ns = results.samples.get((case, program))
    if not case.cycle or not ns or program.line in (case.loop, case.cycle):
        return None
    loop, cycle = (native_median(results, case, program, [line]) for line in (case.loop, case.cycle))
    return (statistics.median(ns) - loop) / cycle if loop and cycle else None


def print_native(results, case):
    print(f"\n{case.title}")
    rows = [("implementation", "compiler", "ns", "min ns", "max ns", "x base", *(["cycles"] if case.cycle else []))]
    for program in case.programs:
        ns = results.samples.get((case, program))
        value, cycles = native_ratio(results, case, program), native_cycles(results, case, program)
        if ns:
            rows.append((program.label, program.compiler, number(statistics.median(ns)), number(min(ns)), number(max(ns)),
                         f"{value:.2f}" if value else "-", *([number(cycles) if cycles else "-"] if case.cycle else [])))
    print_columns(rows, 2)
    if case.cycle:
        print(f"  cycles: without the empty loop, one cycle being what an addition takes that waits for another; {PAPER}")
    for line in reasons((program, results.missing[case, program]) for program in case.programs if (case, program) in results.missing):
        print(f"  {line}")


def native_rows(results, cases):
    rows = []
    for case in cases:
        for program in case.programs or ():
            limit = program.line.limit_for(program.compiler)
            if limit is None:
                continue
            value, base = native_ratio(results, case, program), case.bases[0]
            head = (case.title, ", ".join(program.params.values()), base.what if base.impl == ACORN_NAME else base.impl, program.compiler)
            rows.append((*head, f"{value:.2f}", f"{limit:.2f}", verdict(value, limit)) if value else (*head, "-", f"{limit:.2f}", "not measured"))
    return rows


def print_others(results):
    groups = {}
    for item in results.others:
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
            rows.append((item["impl"], params, *values, f"{item['bytes']:.0f}" if item.get("bytes") is not None else "-"))
        print_columns(rows, 2)


TARGETS = [  # case, form, fp, yardstick, at most
    (ONE, INLINE, SHARED, CLASSIC, 0.75),
    (SIXTY_FOUR, INLINE, SHARED, CLASSIC, 0.90),
    (ONE, INLINE, SHARED, COROSENSEI, 0.80),
    (ONE, INLINE, OWN, CLASSIC, 1.30),
    (SIXTY_FOUR, INLINE, OWN, CLASSIC, 1.30),
    (ONE, EXPORTED, OWN, CLASSIC, 1.30),
    (ONE, EXPORTED, SHARED, CLASSIC, 1.30),
    (NESTED[4], EXPORTED, OWN, CLASSIC, 1.00),
    (NESTED[4], EXPORTED, SHARED, CLASSIC, 1.00),
]
COPY_CASE, MEMORY_CASE, SCATTERED = "copy_100_bytes_1M", "rss_96_live_bytes_1M", "malloc_blocks"
COPY_LIMIT, MOST_BYTES = 0.60, 280


def print_targets(results, programs, cases, matrix):
    """`matrix`: those of switching and copying too."""
    print("\nNumbers to reach: acorn's time / the yardstick's, medians of this run")
    rows = [("case", "form", "yardstick", "compiler", "ratio", "at most", "")]
    for case, form, fp, yardstick, limit in TARGETS if matrix else ():
        for program in programs:
            if case not in cases or program.params != {"form": form, "fp": fp} or program.impl != ACORN_NAME:
                continue
            head = (case.title, f"{form}, {fp}", yardstick, program.compiler)
            base = reference(results, case, program, yardstick)
            ns = results.samples.get((case, program))
            if not ns or not base:
                rows.append((*head, "-", f"{limit:.2f}", "not measured"))
                continue
            value = statistics.median(ns) / base
            rows.append((*head, f"{value:.2f}", f"{limit:.2f}", verdict(value, limit)))
    print_columns(rows + copying_rows(results) + native_rows(results, cases), 4)


def verdict(value, limit):
    return "met" if value <= limit else "MISSED"


def copying_rows(results):
    """The two numbers that bench/memory.h measures."""
    def key(item):  # the same work; how many bytes that takes is the contender's own affair
        return json.dumps({name: value for name, value in item["params"].items() if name != "copied"}, sort_keys=True)

    rows = []
    scattered = {key(item): item["ns"] for item in results.others if item["case"] == COPY_CASE and item["impl"] == SCATTERED and "ns" in item}
    for item in results.others:
        if item["impl"] != ACORN_NAME or "missing" in item or item["case"] not in (COPY_CASE, MEMORY_CASE):
            continue
        params = item["params"]
        form = ", ".join(f"{name} {params[name]}" for name in ("live", "save", "order", "fp") if name in params)
        if item["case"] == MEMORY_CASE:
            rows.append((item["case"], form, "bytes per coroutine", params["compiler"], f"{item['bytes']:.0f}", str(MOST_BYTES),
                         verdict(item["bytes"], MOST_BYTES)))
        elif key(item) in scattered:
            value = item["ns"] / scattered[key(item)]
            rows.append((item["case"], form, SCATTERED, params["compiler"], f"{value:.2f}", f"{COPY_LIMIT:.2f}", verdict(value, COPY_LIMIT)))
    return rows


# ---- JSON ----

def write_json(file, about, results, programs, cases):
    with open(file, "w") as out:
        print(json.dumps({"machine": about}), file=out)
        for (case, program), ns in sorted(results.samples.items(), key=lambda item: (cases.index(item[0][0]), programs.index(item[0][1]))):
            cycles = native_cycles(results, case, program) if program.line else None
            print(json.dumps({"case": case.name, "impl": program.impl, "params": {**case.params, **program.params, "compiler": program.compiler},
                              "ns": round(statistics.median(ns), 4), "min": min(ns), "max": max(ns), "bytes": None, "samples": len(ns),
                              **({"cycles": round(cycles, 2)} if cycles else {})}), file=out)
        for (case, program), reason in results.missing.items():
            print(json.dumps({"case": case.name, "impl": program.impl,
                              "params": {**case.params, **program.params, "compiler": program.compiler}, "missing": reason}), file=out)
        for item in results.others:
            print(json.dumps(item), file=out)


# ---- SVG ----

def contenders(results, case, programs):
    """(label, is acorn, ns) of what has a bar in `case`, by gcc where two compilers built it."""
    chosen = {}
    for program in programs:
        if (case, program) in results.samples and program.params.get("form") != LIBRARY:
            chosen.setdefault(program.label, program)
    return [(label, program.impl == ACORN_NAME, statistics.median(results.samples[case, program])) for label, program in chosen.items()]


def pyplot():
    """matplotlib.pyplot, set up to draw the same numbers as the same file; None, having said so, where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("\nno plots: matplotlib is not installed for this Python (Debian: apt-get install python3-matplotlib, then /usr/bin/python3)")
        return None
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "acorn", "font.family": "sans-serif", "font.size": 10})
    import matplotlib.pyplot
    return matplotlib.pyplot


def set_logarithmic(axes, xlabel, title):
    axes.set(xscale="log", yscale="log", xlabel=xlabel, title=title)
    axes.grid(True, which="major", color="#e3e6ea")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def plot_bars(plt, results, programs, file):
    bars = sorted(contenders(results, ONE, programs), key=lambda bar: bar[2], reverse=True)
    if not bars:
        return False
    values = sorted(ns for _, _, ns in bars)
    edge = values[-1] * 1.15
    if len(values) > 2 and values[-1] > 4 * values[-2]:
        edge = values[-2] * 1.25  # one far outlier, which would make all others invisible
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(bars) + 1.2))
    axes.barh([label for label, _, _ in bars], [min(ns, edge) for _, _, ns in bars],
              color=["#2a7f4f" if ours else "#9aa5b1" for _, ours, _ in bars], height=0.7)
    for i, (_, _, ns) in enumerate(bars):
        if ns > edge:
            axes.text(edge * 0.99, i, f"{number(ns)}, beyond the axis", va="center", ha="right", color="white")
        else:
            axes.text(ns + edge * 0.008, i, number(ns), va="center")
    axes.set_xlim(0, edge)
    axes.set_xlabel("nanoseconds for one resume and yield (median), one coroutine in a flat loop, -O2, gcc where it builds it")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return True


LINES = {  # label -> colour, dashes
    f"acorn, {INLINE}, {SHARED}": ("#2a7f4f", "-"),
    f"acorn, {INLINE}, {OWN}": ("#2a7f4f", "--"),
    CLASSIC: ("#444444", "-"),
    COROSENSEI: ("#c7522a", "-"),
    "Boost.Context fiber": ("#3b6fb6", "-"),
    "Boost.Coroutine2": ("#3b6fb6", "--"),
    "ucontext": ("#9aa5b1", "-"),
    "C++20 generator": ("#8a63a8", "-"),
}


def plot_lines(plt, results, programs, file):
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True)
    drawn = False
    for axes, order in zip(panels, ("rr", "random")):
        cases = [case for case in CASES if case.name == "flat" and (case is ONE or case.order == order)]
        for label, (colour, dashes) in LINES.items():
            points = [(case.number, ns) for case in cases for name, _, ns in contenders(results, case, programs) if name == label]
            if len(points) > 1:
                axes.plot(*zip(*points), color=colour, linestyle=dashes, marker="o", markersize=4, label=label)
                drawn = True
        set_logarithmic(axes, "coroutines", {"rr": "round robin", "random": "random order"}[order])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace(",", " "))
    if drawn:
        panels[0].set_ylabel("nanoseconds for one resume and yield (median)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=9)
        figure.tight_layout(rect=(0, 0.12, 1, 1))
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return drawn


def plot(results, programs, directory):
    plt = pyplot()
    if not plt:
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name, draw in (("switch.svg", plot_bars), ("switch-coroutines.svg", plot_lines)):
        if draw(plt, results, programs, directory / name):
            print(f"\nplot: {directory / name}")


# ---- The command ----

def parsed(parser):
    """The command line, with the options that bench/run_memory.py has too."""
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all results, one JSON object per line")
    parser.add_argument("--svg", metavar="DIR", type=Path, help="write the plots")
    parser.add_argument("--build", metavar="DIR", type=Path, default=ROOT / "build" / "bench", help="where to build")
    return parser.parse_args()


def options():
    parser = argparse.ArgumentParser(description="Acorn's benchmarks", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", metavar="TEXT", action="append", help="only the cases whose title contains TEXT, nothing else; repeatable")
    return parsed(parser)


def main():
    args = options()
    cases = [case for case in CASES + NATIVE if not args.only or any(text in case.title for text in args.only)]
    if not cases:
        sys.exit("no case has such a title; there are:\n" + "\n".join(f"  {case.title}" for case in CASES + NATIVE))
    progress("building")
    programs, directories = build(args.build.resolve())
    started = time.monotonic()
    about = {**machine(), "quick": args.quick}
    if args.quick:
        cases = [case for case in cases if case.number < MANY or case.order != "random"]
        results = run_matrix(programs, cases, rounds=3, many_rounds=1, samples=1, milliseconds=20)
    else:
        results = run_matrix(programs, cases, rounds=7, many_rounds=2, samples=2, milliseconds=20)
    if not args.only:
        run_copying(results, directories, args.quick)

    print("Acorn: benchmarks")
    for key, value in about.items():
        print(f"  {key:14} {', '.join(value) if isinstance(value, list) else value}")
    native = [case for case in cases if case in NATIVE]
    if len(native) < len(cases):
        print("\nSwitching: nanoseconds for one resume and yield, medians, fastest first. Beside them the ratios to the classic switch and\n"
              "to acorn (inline, shared FP) of the same compiler; of all compilers together where a contender has another.\n"
              "  own FP     each coroutine keeps its own rounding mode and exception masks: acorn's default, as libaco's. Of the others\n"
              "             Boost and ucontext do so too\n"
              "  shared FP  all have them in common (ACO_CONFIG_SHARE_FPU_MXCSR_ENV), as with the classic switch and corosensei\n"
              "  exported   acorn's out-of-line functions, for other languages\n"
              "  classic    the least that a full-save switch does: six pushes, six pops, a jump; no checks, no FP environment")
    everything = programs + [program for case in native for program in case.programs]
    print_missing(programs)
    for case in cases:
        if case not in native:
            print_case(results, case, programs)
    if native:
        print("\nThe native API: nanoseconds for one of what the line names; the ratio is to the case's first line (of the C++20 generators\n"
              "to the faster one), by the same compiler and with the same kind of floating-point environment, where there is such a one.")
    for case in native:
        print_native(results, case)
    if results.others:
        print_others(results)
    if not args.only or any(line.limit for case in native for line in case.lines):
        print_targets(results, programs, cases, matrix=not args.only)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        write_json(args.json, about, results, everything, cases)
        print(f"\nJSON: {args.json}")
    if args.svg:
        plot(results, programs, args.svg)
    print(f"\nmeasured in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
