#!/usr/bin/python3
"""The experiments of "Stackful Coroutine Made Fast" (its figures 1, 5, 6 and 12 to 16), and what docs/paper.md says of them.

Programs, order and medians as in bench/run.py. Beside times, what valgrind's cachegrind counts: L1 misses of write_fully() and
the clients' instructions.

    bench/run_paper.py [--quick] [--only CASE] [--json FILE] [--svg DIR] [--build DIR]
"""
import argparse
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import run  # noqa: E402: bench/run.py, beside this file
from run import Line, NativeCase  # noqa: E402

BOTH = ("gcc", "clang")
LLHTTP = "node-llhttp as cmake/llhttp.cmake names it"
run.NATIVE_PROGRAMS.update({
    "write_fully": ({"": {}}, BOTH, None),
    "write_fully_classic": ({"": {}}, BOTH, None),
    "write_fully_classic_ret": ({"": {}}, BOTH, None),
    "write_fully_cpp20": ({"": {}}, BOTH, None),
    "write_fully_boost": ({"": {}}, BOTH, "libboost-context-dev"),
    "paper_yield": ({"": {}}, BOTH, None),
    "scheduler-uncoloured": ({"": {}}, BOTH, None),
    "scheduler-small": ({"": {}}, BOTH, None),
    "clients": ({"": {}}, BOTH, LLHTTP),
    "clients_classic": ({"": {}}, BOTH, LLHTTP),
    "clients_classic_ret": ({"": {}}, BOTH, LLHTTP),
    "clients_boost": ({"": {}}, BOTH, f"{LLHTTP}, or libboost-context-dev,"),
    "clients_corosensei": ({"": {}}, BOTH, f"{LLHTTP}, or cargo,"),
    "clients-apn": ({"": {}}, ("clang",), f"{LLHTTP}, or the compiler helper (make apn),"),
    "clients-lto": ({"": {}}, ("clang",), f"{LLHTTP}, the compiler helper (make apn), or lld"),
    "clients-apn-lto": ({"": {}}, ("clang",), f"{LLHTTP}, the compiler helper (make apn), or lld"),
})
ACORN, CLASSIC, CPP20, CPP23, BOOST, COROSENSEI = "acorn", "classic switch", "C++20 generator", "C++23 generator", "Boost.Coroutine2", "corosensei"
PULL, PYTHON, CSHARP, CALLBACK = "Go", "Python", "C#", "callback"


# ---- The experiments. A limit is of the ratio to the case's first line ----

def sum_of_sequence():
    n = run.ELEMENTS
    return NativeCase("sum", "sum of a sequence (fig. 1, 12)",
                      Line("for loop", "generators", "sequence_for", n, impl=CPP20),
                      Line("while loop", "generators", "sequence_while", n, impl=CPP20),
                      Line("std::generator, for loop", "generators", "sequence23_for", n, impl=CPP23),
                      Line("std::generator, while loop", "generators", "sequence23_while", n, impl=CPP23),
                      Line("in-stack generator", "generator", "sequence_in_stack", n),
                      Line("own-stack generator", "generator", "sequence", n),
                      Line("function that calls back", "generator", "sequence_call", n, impl=CALLBACK),
                      Line("pull_type", "boost_generators", "sequence", n, impl=BOOST),
                      Line("Coroutine", "corosensei", "sequence", n, impl=COROSENSEI),
                      Line("iter.Pull", "pull", "sequence", n, impl=PULL),
                      Line("generator", "python", "sequence", n, impl=PYTHON),
                      Line("iterator", "csharp", "sequence", n, impl=CSHARP), params={"elements": n})


def hanoi(discs):
    n = 2 ** discs - 1
    case = NativeCase("hanoi", f"Hanoi({discs}) (fig. 5, 13)",
                      Line("recursion and callback", "generator", "hanoi_call", n, impl=CALLBACK),
                      Line("in-stack generator", "generator", "hanoi_in_stack", n),
                      Line("own-stack generator", "generator", "hanoi", n),
                      Line("pull_type", "boost_generators", "hanoi", n, impl=BOOST),
                      Line("a generator for each call", "generators", "hanoi", n, impl=CPP20),
                      Line("std::generator, elements_of", "generators", "hanoi23", n, impl=CPP23),
                      Line("Coroutine", "corosensei", "hanoi", n, impl=COROSENSEI),
                      Line("iter.Pull", "pull", "hanoi", n, impl=PULL),
                      Line("generator, yield from", "python", "hanoi", n, impl=PYTHON),
                      Line("an iterator for each call", "csharp", "hanoi", n, impl=CSHARP),
                      Line("recursion and callback, Go", "pull", "hanoi_call", n, impl=PULL),
                      Line("recursion and callback, Python", "python", "hanoi_call", n, impl=PYTHON),
                      Line("recursion and callback, C#", "csharp", "hanoi_call", n, impl=CSHARP), params={"discs": discs})
    case.language_bases = {line.program: line for line in case.lines[-3:]}
    return case


SENDS = 10 * 125000  # ten tasks, 100 MB each, 800 bytes at once
DISCS = range(1, 21)
WRITE_FULLY_BOOST = NativeCase("write_fully_boost", "write_fully() beside Boost (fig. 14)",
                               Line("fiber", "write_fully_boost", "write_fully", SENDS, impl="Boost.Context"),
                               Line("scheduler", "write_fully", "write_fully", SENDS, limit=0.60))
WRITE_FULLY = NativeCase("write_fully", "write_fully(): ten tasks send 100 MB each, 800 bytes at once (fig. 6, 14); ns for each send",
                         Line("a task for each call, operator new", "write_fully_cpp20", "write_fully", SENDS, impl="C++20 coroutine"),
                         Line("a task for each call, pooled frames", "write_fully_cpp20", "write_fully_pool", SENDS, impl="C++20 coroutine"),
                         Line("scheduler", "write_fully", "write_fully", SENDS, limit=0.50),
                         Line("next of the ring", "write_fully_classic", "write_fully", SENDS, impl=CLASSIC),
                         Line("next of the ring, by ret", "write_fully_classic_ret", "write_fully", SENDS, impl=CLASSIC),
                         Line("fiber", "write_fully_boost", "write_fully", SENDS, impl="Boost.Context"),
                         Line("Coroutine, resumed in turn", "corosensei", "write_fully", SENDS, impl=COROSENSEI),
                         Line("yield_now", "tokio", "write_fully", SENDS, impl="tokio"),
                         Line("Gosched", "go", "write_fully", SENDS, impl="Go"),
                         Line("async, a Task for each call", "csharp", "write_fully", SENDS, impl=CSHARP), params={"tasks": 10})
WRITE_FULLY_MIXED = NativeCase("write_fully_mixed", "write_fully() with tasks on two ways through the program; ns for each send",
                               Line("a task for each call, operator new", "write_fully_cpp20", "write_fully_mixed", SENDS, impl="C++20 coroutine"),
                               Line("scheduler", "write_fully", "write_fully_mixed", SENDS),
                               Line("next of the ring", "write_fully_classic", "write_fully_mixed", SENDS, impl=CLASSIC),
                               Line("next of the ring, by ret", "write_fully_classic_ret", "write_fully_mixed", SENDS, impl=CLASSIC),
                               Line("fiber", "write_fully_boost", "write_fully_mixed", SENDS, impl="Boost.Context"),
                               Line("Coroutine, resumed in turn", "corosensei", "write_fully_mixed", SENDS, impl=COROSENSEI), params={"tasks": 10})
STEPS = ("classic", "inline", "tail", "preserve_none", "coloured", "small")
YIELD = NativeCase("yield", "yield(), ten coroutines (fig. 15)",
                   *(Line(step, "paper_yield", step, 10, impl="plain ring") for step in STEPS),
                   Line("aco_task_yield_call, preserve_none, uncoloured", "scheduler-uncoloured", "ring_preserve_none", 10),
                   Line("aco_task_yield_call, preserve_none", "scheduler", "ring_preserve_none", 10),
                   Line("aco_task_yield, uncoloured", "scheduler-uncoloured", "ring", 10),
                   Line("aco_task_yield", "scheduler", "ring", 10),
                   Line("aco_task_yield, 4 KiB stacks", "scheduler-small", "ring", 10),
                   Line("this_fiber::yield", "boost_scheduler", "ring", 10, impl="Boost.Fiber"),
                   Line("Coroutine, resumed in turn", "corosensei", "flat", 10, impl=COROSENSEI),
                   Line("yield_now", "tokio", "ring", 10, impl="tokio"),
                   Line("Gosched", "go", "ring", 10, impl="Go"), params={"tasks": 10},
                   loop=Line("an empty loop", "scheduler", "empty_loop", impl="processor"),
                   cycle=Line("one cycle", "scheduler", "cycle", 100, impl="processor"))
REQUESTS = 400


def client(name, title, limit):
    return NativeCase(name, f"{title} (fig. 16); ns for each request",
                      Line("next of the ring", "clients_classic", name, REQUESTS, impl=CLASSIC),
                      Line("next of the ring, by ret", "clients_classic_ret", name, REQUESTS, impl=CLASSIC),
                      Line("inline switch", "clients", name, REQUESTS),
                      Line("inline switch and helper", "clients-apn", name, REQUESTS, limit=limit),
                      Line("inline switch, LTO", "clients-lto", name, REQUESTS),
                      Line("inline switch and helper, LTO", "clients-apn-lto", name, REQUESTS),
                      Line("fiber", "clients_boost", name, REQUESTS, impl="Boost.Context"),
                      Line("Coroutine, resumed in turn", "clients_corosensei", name, REQUESTS, impl=COROSENSEI), params={"clients": 10})


# The paper's gains are of throughput: 18.8 % and 45.2 %.
HTTP, RPC = client("http", "HTTP client, responses of 1 MB", 1 / 1.188), client("rpc", "RPC client, responses of 1 MB", 1 / 1.452)
CASES = [sum_of_sequence(), *map(hanoi, DISCS), WRITE_FULLY, WRITE_FULLY_BOOST, WRITE_FULLY_MIXED, YIELD, HTTP, RPC]

# What the paper's text says of its figures, as time relative to the first line: (case, impl, what) -> ratio. The figures' other values
# are not in the text.
PAPER = {
    ("sum", CPP20, "for loop"): 1.0,
    ("sum", CPP20, "while loop"): 1.5,
    ("sum", ACORN, "in-stack generator"): 1.0,
    ("sum", BOOST, "pull_type"): 20.0,  # not tuned, as here; 4 after the paper's tuning
    ("hanoi", CPP20, "a generator for each call"): 50.0,
    ("yield", "plain ring", "classic"): 1.0,
    ("yield", "plain ring", "small"): 1.52 / 8.97,
    ("http", CLASSIC, "next of the ring"): 1.0,
    ("http", ACORN, "inline switch"): 1 / 1.112,
    ("http", ACORN, "inline switch and helper"): 1 / 1.188,
    ("rpc", CLASSIC, "next of the ring"): 1.0,
    ("rpc", ACORN, "inline switch"): 1 / 1.262,
    ("rpc", ACORN, "inline switch and helper"): 1 / 1.452,
}


# ---- Building ----

def build_with_mono(program):
    """`program` is a script, which runs what was compiled."""
    for tool in ("mcs", "mono"):
        if not shutil.which(tool):
            return f"{tool} is not installed (mono-mcs, mono-runtime)"
    log, compiled = program.with_suffix(".log"), program.with_suffix(".exe")
    log.unlink(missing_ok=True)
    program.write_text(f'#!/bin/sh\nexec mono {shlex.quote(str(compiled))} "$@"\n')
    program.chmod(0o755)
    return run.run_logged(["mcs", "-optimize+", f"-out:{compiled}", run.BENCH / "peers" / "csharp" / "main.cs"], log)


def mono_version():
    return " ".join(run.output_of("mcs", "--version").split()[-1:])


def build(directory):
    """Gives each case its programs."""
    others = run.build_others(directory)
    options = "-DACORN_BENCH_PAPER=ON", f"-DACORN_COROSENSEI={others['corosensei'].path.parent / 'libcorosensei_tasks.a'}"
    builds = {name: (run.version(cc) or name, directory / name, run.build_with_cmake(name, directory / name, *options))
              for name, (cc, _) in run.COMPILERS.items()}
    pull = directory / "generators-go"
    others["pull"] = run.Program(PULL, run.go_version() or "go", pull, None, run.build_with_go(pull, "./pull"))
    csharp = directory / "csharp"
    others["csharp"] = run.Program(CSHARP, f"mono {mono_version()}".strip(), csharp, None, build_with_mono(csharp))
    others["python"] = run.Program(PYTHON, f"python {sys.version.split()[0]}", run.BENCH / "peers" / "generators.py")
    run.find_native(CASES, builds, others)


# ---- Counting ----

COUNTED = ("cachegrind", "--cache-sim=yes", "--D1=32768,8,64", "--LL=8388608,16,64", "--cachegrind-out-file=/dev/null")
FIELDS = {"instructions": r"I\s+refs:\s+([\d,]+)", "reads": r"D\s+refs:.*?\(\s*([\d,]+) rd", "read_misses": r"D1\s+misses:.*?\(\s*([\d,]+) rd"}


def counted(program, path, number):
    """What one round of so many does, or None."""
    command = ["valgrind", f"--tool={COUNTED[0]}", *COUNTED[1:], path, program.line.arguments[0], str(number), "-", "0", "1", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=run.RUN_LIMIT)
    found = {field: re.search(pattern, done.stderr) for field, pattern in FIELDS.items()}
    return {field: int(match.group(1).replace(",", "")) for field, match in found.items()} if done.returncode == 0 and all(found.values()) else None


def count(cases):
    """JSON objects: for each send or request of a longer round, less a shorter one, the instructions, the reads, and those that missed."""
    items = []
    numbers = {"write_fully": (10000, 110000), "http": (400, 2400), "rpc": (400, 2400)}
    for case in cases:
        for program in case.programs if case.name in numbers else ():
            if program.missing or program.impl in ("Go", "tokio", CSHARP):
                continue
            run.progress(f"counting: {case.name}, {program.label}, {program.compiler}")
            with tempfile.TemporaryDirectory() as folder:
                bare = Path(folder) / program.path.name  # valgrind 3.19 gives up on clang 19's debug information
                subprocess.run(["strip", "-o", bare, program.path], check=True)
                less, more = (counted(program, bare, number) for number in numbers[case.name])
            item = {"case": f"{case.name}_counted", "impl": program.impl, "params": {**program.params, "compiler": program.compiler}}
            if less and more:
                span = numbers[case.name][1] - numbers[case.name][0]
                item |= {field: max(0, round((more[field] - less[field]) / span, 4)) for field in FIELDS}
            else:
                item["missing"] = "valgrind could not run it"
            items.append(item)
    run.progress("")
    return items


# ---- Text ----

def normalised(results, case, program):
    """Hanoi: by recursion and callback in the same language."""
    ns = results.samples.get((case, program))
    own = case.language_bases.get(program.line.program)
    base = run.native_median(results, case, program, [own] if own else case.bases)
    return statistics.median(ns) / base if ns and base else None


def hanoi_rows(results, cases):
    """(impl, what, compiler, ratio for each of `cases`)."""
    rows = []
    for i, first in enumerate(cases[0].programs if cases else ()):
        if first.line in cases[0].language_bases.values():
            continue
        ratios = [normalised(results, case, case.programs[i]) for case in cases]
        if any(ratios):
            rows.append((first.impl, first.params["what"], first.compiler, ratios))
    return rows


def print_hanoi(results, cases):
    print("\nHanoi (fig. 5, 13): time relative to recursion and callback in the same language (corosensei: in C)")
    rows = [("implementation", "", "compiler", *(str(case.params["discs"]) for case in cases))]
    rows += [(impl, what, compiler, *(f"{ratio:.1f}" if ratio else "-" for ratio in ratios)) for impl, what, compiler, ratios in hanoi_rows(results, cases)]
    run.print_columns(rows, 3)
    missing = {(program, reason) for (case, program), reason in results.missing.items() if case is cases[0]}
    for line in run.reasons(sorted(missing, key=lambda pair: pair[0].label)):
        print(f"  {line}")


def print_counted(items):
    for name in dict.fromkeys(item["case"] for item in items):
        print(f"\n{name}: for each send or request, by cachegrind; L1 of 32 KiB, 8 ways")
        rows = [("implementation", "", "compiler", "instructions", "reads", "read misses", "%")]
        for item in items:
            if item["case"] == name and "missing" not in item:
                rows.append((item["impl"], item["params"]["what"], item["params"]["compiler"], f"{item['instructions']:.1f}", f"{item['reads']:.1f}",
                             f"{item['read_misses']:.3f}", f"{100 * item['read_misses'] / item['reads']:.2f}"))
        run.print_columns(rows, 3)
    for item in items:
        if "missing" in item:
            print(f"  missing: {item['case']}: {item['impl']}, {item['params']['what']} ({item['params']['compiler']}): {item['missing']}")


# ---- SVG ----

def bars(results, case):
    """[(label, ratio to the first line, the paper's or None, is acorn)] by clang, which has preserve_none, where it builds it."""
    chosen = {}
    for program in case.programs:
        if (case, program) in results.samples and program.line not in (case.loop, case.cycle):
            if program.params["what"] not in chosen or program.compiler.startswith("clang"):
                chosen[program.impl, program.params["what"]] = program
    found = []
    for (impl, what), program in chosen.items():
        ratio = run.native_ratio(results, case, program)
        if case.loop:
            ns, base, loop = (statistics.median(results.samples[case, program]), run.native_median(results, case, program, case.bases),
                              run.native_median(results, case, program, [case.loop]))
            ratio = (ns - loop) / (base - loop)
        found.append((f"{impl}: {what}", ratio, PAPER.get((case.name, impl, what)), impl == ACORN))
    return found


def plot_bars(plt, results, case, file):
    found = bars(results, case)[::-1]
    if not found:
        return False
    edge = 8  # ratios beyond are written
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(found) + 1.5))
    for y, (_, ratio, paper, ours) in enumerate(found):
        axes.barh(y + 0.18, min(ratio, edge), color="#2a7f4f" if ours else "#9aa5b1", height=0.36)
        axes.text(min(ratio, edge) + 0.03, y + 0.18, f"{ratio:.2f}{', beyond the axis' if ratio > edge else ''}", va="center", fontsize=8)
        if paper:
            axes.barh(y - 0.18, min(paper, edge), color="white", edgecolor="#c7522a", height=0.3)
            beyond = ", beyond the axis" if paper > edge else ""
            axes.text(min(paper, edge) + 0.03, y - 0.18, f"{paper:.2f} in the paper{beyond}", va="center", fontsize=8, color="#c7522a")
    axes.set_yticks(range(len(found)), [label for label, *_ in found])
    axes.set_xlim(0, 1.25 * min(edge, max(max(ratio, paper or 0) for _, ratio, paper, _ in found)))
    axes.set_title(case.title, fontsize=10)
    axes.set_xlabel("time relative to the first; clang where it builds it", loc="right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return True


COLOURS = {ACORN: "#2a7f4f", BOOST: "#3b6fb6", CPP20: "#8a63a8", CPP23: "#b58fce", COROSENSEI: "#c7522a", PULL: "#d9a400", PYTHON: "#9aa5b1", CSHARP: "#5f6b76"}


def plot_hanoi(plt, results, cases, file):
    figure, axes = plt.subplots(figsize=(9, 4.6))
    drawn = set()
    for impl, what, _, ratios in hanoi_rows(results, cases):
        points = [(case.params["discs"], ratio) for case, ratio in zip(cases, ratios) if ratio]
        if impl in COLOURS and (impl, what) not in drawn and len(points) > 1:
            axes.plot(*zip(*points), color=COLOURS[impl], linestyle="--" if what == "own-stack generator" else "-", marker="o", markersize=3, label=f"{impl}: {what}")
            drawn.add((impl, what))
    if drawn:
        axes.plot([20], [PAPER["hanoi", CPP20, "a generator for each call"]], marker="D", color="white", markeredgecolor=COLOURS[CPP20], linestyle="none",
                  label="C++20 in the paper's text")
        axes.set(yscale="log", xlabel="discs", ylabel="time, relative to recursion and callback", xticks=list(DISCS))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(True, color="#e3e6ea")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, ncols=2)
        figure.tight_layout()
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return bool(drawn)


def plot(results, cases, towers, directory):
    plt = run.pyplot()
    if not plt:
        return
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / f"paper-{case.name}.svg" for case in cases if case not in towers and case is not WRITE_FULLY_BOOST
             and plot_bars(plt, results, case, directory / f"paper-{case.name}.svg")]
    if towers and plot_hanoi(plt, results, towers, directory / "paper-hanoi.svg"):
        files.append(directory / "paper-hanoi.svg")
    for file in files:
        print(f"\nplot: {file}")


# ---- The command ----

def main():
    parser = argparse.ArgumentParser(description="The experiments of the paper", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, and only six of Hanoi's twenty")
    parser.add_argument("--only", metavar="CASE", action="append", help="only the cases whose name begins so; repeatable")
    args = run.parsed(parser)
    cases = [case for case in CASES if not args.only or any(case.name.startswith(name) for name in args.only)]
    if args.quick:
        cases = [case for case in cases if case.params.get("discs", 1) in (1, 4, 8, 12, 16, 20)]
    if not cases:
        sys.exit(f"no case begins so; there are: {' '.join(dict.fromkeys(case.name for case in CASES))}")
    run.progress("building")
    build(args.build.resolve())
    started = time.monotonic()
    about = {**run.machine(), "quick": args.quick}
    results = run.run_matrix([], cases, rounds=1 if args.quick else 5, many_rounds=1, samples=2, milliseconds=20)
    if shutil.which("valgrind"):
        results.others = count(cases)
    else:
        print("missing: what cachegrind counts: valgrind is not installed")

    print("Acorn: the paper's experiments")
    for key, value in about.items():
        print(f"  {key:14} {', '.join(value) if isinstance(value, list) else value}")
    towers = [case for case in cases if case.name == "hanoi"]
    for case in cases:
        if case in towers:
            if case is towers[0]:
                print_hanoi(results, towers)
        else:
            run.print_native(results, case)
    print_counted(results.others)
    rows = run.native_rows(results, cases)
    if rows:
        print("\nNumbers to reach: acorn's time / the first line's, medians of this run")
        run.print_columns([("case", "form", "yardstick", "compiler", "ratio", "at most", ""), *rows], 4)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        run.write_json(args.json, about, results, [program for case in cases for program in case.programs], cases)
        print(f"\nJSON: {args.json}")
    if args.svg:
        plot(results, cases, towers, args.svg)
    print(f"\nmeasured in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
