#!/usr/bin/python3
"""Builds and runs the benchmarks of memory at scale: coroutines by the million, copying, private stacks, churn.

Each measurement is a process of its own (bench/memory_scale.h, bench/memory_private.c); a number is the median of three of
them. All contenders of a case run one after the other, in random order, and this whole sequence is repeated, as in bench/run.py.

    bench/run_memory.py [--quick] [--max N] [--only GROUP] [--impl TEXT] [--json FILE] [--svg DIR] [--build DIR]
"""
import argparse
import json
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import run  # noqa: E402: bench/run.py, beside this file

SAMPLES = 3
LIMIT = 600  # seconds for one measurement
ACORN, ENTRY, PRIVATE, BARE, GLIBC = "acorn", "acorn, ACO_ENTRY", "acorn, private", "bare pages", "malloc blocks, glibc"
TCMALLOC, JEMALLOC, CPP20, BOOST, GO = "malloc blocks, tcmalloc", "malloc blocks, jemalloc", "C++20 coroutine", "Boost.Context fiber", "Go"
BOTH = ("gcc", "clang")
PROGRAMS = {  # impl -> program, compilers that build it, what it needs beside them, the most coroutines
    ACORN: ("scale-acorn", BOTH, None, None),
    ENTRY: ("scale-acorn-entry", BOTH, None, None),
    PRIVATE: ("scale-private", ("gcc",), None, None),
    GLIBC: ("scale-malloc-glibc", BOTH, None, None),
    TCMALLOC: ("scale-malloc-tcmalloc", ("gcc",), "libgoogle-perftools-dev", None),
    JEMALLOC: ("scale-malloc-jemalloc", ("gcc",), "libjemalloc-dev", None),
    CPP20: ("scale-cpp20", BOTH, None, None),
    BOOST: ("scale-boost", ("gcc",), "libboost-context-dev", 100_000),
}
MOST_GO = 1_000_000
NUMBERED = (ACORN, ENTRY, GLIBC)  # the numbers to reach compare these: they alone run three times beyond MANY
MANY = 2_000_000
COUNTED = (ACORN, ENTRY, GLIBC, TCMALLOC, JEMALLOC, CPP20, BOOST, GO)
COPIED = (ACORN, ENTRY, GLIBC, CPP20, GO)
CHURNED = (ACORN, ENTRY, GLIBC, TCMALLOC, JEMALLOC, CPP20)
LIVE, LIVES, COPY_NUMBER = 96, (8, 40, 104, 232, 488, 1000, 4000), 100_000
KIB = 1024
PRIVATES = ((1_000, 64 * KIB), (100_000, 64 * KIB), (1_000_000, 64 * KIB), (100_000, 16 * KIB), (100_000, 256 * KIB))
FALLBACK_NUMBER, TRIM_NUMBER = 100_000, 10_000
CHURN_NUMBER, CHURN_PRIVATE = 1_000_000, 100_000


# ---- Building ----

def build(directory):
    """Programs (run.Program), built or missing."""
    programs = []
    for name, (cc, _) in run.COMPILERS.items():
        failure = run.build_with_cmake(name, directory / name)
        for impl, (program, builders, needs, _) in PROGRAMS.items():
            if name in builders:
                path = directory / name / "bench" / program
                why = failure or (None if path.exists() else f"{needs} is not installed" if needs else "was not built")
                programs.append(run.Program(impl, run.version(cc) or name, path, None, why))
    go = directory / "memory-go"
    programs.append(run.Program(GO, run.go_version() or "go", go, None, run.build_with_go(go, "./memory")))
    return programs


# ---- What is measured ----

def counts(most):
    powers = [10 ** k for k in range(3, 9) if 10 ** k <= most]
    return powers if most in powers else [*powers, most]


def most_of(program):
    return MOST_GO if program.impl == GO else PROGRAMS[program.impl][3]


class Group:
    """Command lines, each with those who take part."""

    def __init__(self, name):
        self.name, self.cases = name, []

    def add(self, programs, impls, *arguments, number=0):
        chosen = [program for program in programs if program.impl in impls and number <= (most_of(program) or number)]
        self.cases.append(([str(argument) for argument in arguments], number, chosen))


def groups(programs, most, quick):
    count, copying, private, churn = (Group(name) for name in ("count", "copying", "private", "churn"))
    for n in counts(most):
        count.add(programs, COUNTED, "count", n, LIVE, number=n)
    n = min(COPY_NUMBER, most)
    for live in LIVES:
        copying.add(programs, [impl for impl in COPIED if not (quick and impl == GO)], "count", n, live, number=n)
    for n, sz in PRIVATES:
        if n <= most:
            private.add(programs, (PRIVATE,), "count", n, sz, number=n)
            private.add(programs, (PRIVATE,), "bare", n, sz, number=n)
    for flags in ("mprotect", "must_guard"):
        private.add(programs, (PRIVATE,), "fallback", FALLBACK_NUMBER, flags)
    for pages in (1, 16):
        for flags in ("now", "lazy"):
            private.add(programs, (PRIVATE,), "trim", TRIM_NUMBER, pages, flags)
    churn.add(programs, CHURNED, "churn", min(CHURN_NUMBER, most))
    churn.add(programs, (PRIVATE,), "churn", min(CHURN_PRIVATE, most))
    return [count, copying, private, churn]


def samples_for(program, number, quick):
    return 1 if quick or (number > MANY and program.impl not in NUMBERED) else SAMPLES


# ---- Running ----

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
    return run.merged(items) if all("ns" in item or "missing" in item for item in items) else items[0]


def run_groups(chosen, quick):
    """The JSON objects, merged, in the order of the cases."""
    found, absent = {}, set()
    for group in chosen:
        for arguments, number, programs in group.cases:
            for turn in range(SAMPLES):
                for program in random.sample(programs, len(programs)):
                    if program.missing or program in absent or turn >= samples_for(program, number, quick):
                        continue
                    run.progress(f"{group.name}: {' '.join(arguments)}, {program.impl}, {program.compiler}, {turn + 1}")
                    for item in measure(program, arguments):
                        found.setdefault((item["case"], item["impl"], json.dumps(item["params"])), []).append(item)
                        if item.get("missing", "").startswith("ACO_ENTRY"):
                            absent.add(program)
    run.progress("")
    return [merged(items) for items in found.values()]


# ---- Text ----

class Table:
    """Looks numbers up among the merged objects."""

    def __init__(self, items):
        self.items = items

    def get(self, case, impl, compiler=None, field="ns", **params):
        for item in self.items:
            if item["case"] == case and item["impl"] == impl and compiler in (None, item["params"]["compiler"]) \
                    and all(item["params"].get(key) == value for key, value in params.items()):
                return item.get(field)
        return None

    def contenders(self, *cases):
        """(impl, compiler) of those measured, in the order of COUNTED."""
        pairs = {(item["impl"], item["params"]["compiler"]) for item in self.items if item["case"] in cases and "missing" not in item}
        order = [*COUNTED, PRIVATE, BARE]
        return sorted(pairs, key=lambda pair: (order.index(pair[0]), pair[1].startswith("clang"), pair[1]))

    def values(self, case, param, **fixed):
        return sorted({item["params"][param] for item in self.items if item["case"] == case and "missing" not in item
                       and all(item["params"].get(key) == value for key, value in fixed.items())})


def shown(value):
    return "-" if value is None else run.number(value)


def thousands(n):
    return f"{n // 1_000_000}M" if n and n % 1_000_000 == 0 else f"{n // 1000}k" if n and n % 1000 == 0 else str(n)


STEPS = (("create", "create"), ("first_resume", "first resume"), ("round_robin", "resume, round robin"), ("random", "resume, random order"),
         ("random_prefetch", "resume, random order, aco_prefetch() 8 ahead"), ("destroy", "destroy"))


def print_by(table, title, case, field, param, values, form, **fixed):
    """One row for each contender, one column for each of `values`."""
    rows = [("implementation", "compiler", *map(form, values))]
    for impl, compiler in table.contenders(case):
        numbers = [table.get(case, impl, compiler, field, **{param: value}, **fixed) for value in values]
        if any(n is not None for n in numbers):
            rows.append((impl, compiler, *map(shown, numbers)))
    if len(rows) > 1:
        print(f"\n{title}")
        run.print_columns(rows, 2)


def print_count(table):
    ns = table.values("scale_create", "n", live=LIVE)
    print(f"\nBy the number of coroutines, {LIVE} live bytes in the entry function of each")
    print_by(table, "bytes per coroutine, resident", "scale_create", "bytes", "n", ns, thousands, live=LIVE)
    for step, title in STEPS:
        print_by(table, f"ns, {title}", f"scale_{step}", "ns", "n", ns, thousands, live=LIVE)


def print_copying(table):
    lives = [live for live in table.values("scale_create", "live") if live in LIVES]
    if not lives:
        return
    n = max(table.values("scale_create", "n", live=lives[0]))
    print(f"\nBy live bytes, {n} coroutines; those of C++20 and Go stay where they are")
    print_by(table, "bytes per coroutine, resident", "scale_create", "bytes", "live", lives, str, n=n)
    for step, title in STEPS:
        if step in ("round_robin", "random", "random_prefetch"):
            more = "; from 200 bytes on aco_prefetch_stack() 4 ahead" if step == "random_prefetch" else ""
            print_by(table, f"ns, {title}{more}", f"scale_{step}", "ns", "live", lives, str, n=n)


def print_private(table):
    rows = [("implementation", "stacks", "KiB", "create", "first", "in turn", "random", "prefetched", "destroy", "RSS", "tables", "maps/region")]
    for impl, _ in table.contenders("private_create"):
        for n, sz in PRIVATES:
            times = [table.get(f"private_{step}", impl, n=n, stack=sz) for step, _ in STEPS]
            if times[0] is None:
                continue
            rows.append((impl, thousands(n), str(sz // KIB), *map(shown, times), shown(table.get("private_create", impl, field="bytes", n=n, stack=sz)),
                         shown(table.get("private_kernel", impl, field="bytes", n=n, stack=sz)),
                         shown(table.get("private_kernel", impl, field="mappings", n=n, stack=sz))))
    print("\nPrivate stacks, each suspended one call deep: ns by step; bytes resident and in page tables, of each; mappings by the region.\n"
          "Prefetched: random order, aco_prefetch() 8 and aco_prefetch_stack() 4 ahead. Bare pages: no coroutines; create is the guard, first the touch,\n"
          "destroy the unmapping")
    run.print_columns(rows, 1)
    print(f"\nWithout guards in page tables, {FALLBACK_NUMBER} stacks asked for")
    rows = [("flags", "made", "guarded", "ns each", "errno", "message")]
    rows += [(item["params"]["flags"], str(item["made"]), str(item["guarded"]), shown(item["ns"]), item["errno"] or "-", item["message"] or "-")
             for item in table.items if item["case"] == "private_fallback" and "made" in item]
    run.print_columns(rows, 1)
    print(f"\nReclaim, {TRIM_NUMBER} idle stacks of 256 KiB: ns each; a use is: new, run, touch the pages, return, destroy")
    rows = [("touched pages", "reclaimed", "use, still warm", "aco_pool_trim()", "resident after, bytes", "first use after")]
    for pages in (1, 16):
        for how in ("at once", "lazy"):
            fixed = {"pages": pages, "reclaim": how}
            rows.append((str(pages), how, shown(table.get("private_use_warm", PRIVATE, **fixed)), shown(table.get("private_trim", PRIVATE, **fixed)),
                         shown(table.get("private_trim", PRIVATE, field="bytes", **fixed)), shown(table.get("private_use_again", PRIVATE, **fixed))))
    run.print_columns(rows, 2)


def print_churn(table):
    print("\nChurn: a random one is destroyed, another one made, with one of three numbers of live bytes (40, 104, 488), and resumed")
    rows = [("implementation", "compiler", "alive", "steps", "ns to make", "bytes then", "ns a step", "bytes at the end")]
    for impl, compiler in table.contenders("churn"):
        for n in table.values("churn", "n"):
            if table.get("churn", impl, compiler, n=n) is not None:
                rows.append((impl, compiler, thousands(n), thousands(5 * n), *(shown(table.get(case, impl, compiler, field, n=n)) for case, field in
                             (("churn_fill", "ns"), ("churn_fill", "bytes"), ("churn", "ns"), ("churn", "bytes")))))
    run.print_columns(rows, 2)


def print_missing(programs, items):
    for line in run.reasons((program, program.missing) for program in programs if program.missing):
        print(f"\n{line}")
    said = {}
    for item in items:
        if "missing" in item:
            said.setdefault(item["missing"], []).append(f"{item['impl']} ({item['params']['compiler']})")
    for reason, who in said.items():
        print(f"\nmissing: {'; '.join(dict.fromkeys(who))}: {reason}")


# ---- Numbers to reach: issue 5 ----

GOAL, GOAL_PRIVATE = 10_000_000, 1_000_000
MOST_BYTES = {ACORN: 276, ENTRY: 228}
RATIOS = (("round_robin", "round robin", 0.50), ("random", "random", 0.30), ("random_prefetch", "random, aco_prefetch 8 ahead", 0.15),
          ("create", "create", 0.25), ("destroy", "destroy", 0.25))
MOST_PRIVATE = (("private_kernel", "mappings", "mappings by the region", 1), ("private_create", "bytes", "bytes resident each", 4.3 * KIB),
                ("private_create", "ns", "ns to create each", 3000))


def judged(head, value, limit, form, at_goal):
    """A number is only reached, or missed, with as many as it is for."""
    if value is None:
        return (*head, "-", form(limit), "not measured")
    return (*head, form(value), form(limit), run.verdict(value, limit) if at_goal else "not judged")


def count_rows(table):
    ns = table.values("scale_create", "n", live=LIVE)
    if not ns:
        return []
    n, rows = max(ns), []
    note = thousands(n) if n == GOAL else f"{thousands(n)} (the number is for {thousands(GOAL)})"
    for impl, compiler in table.contenders("scale_create"):
        at_most = MOST_BYTES.get(impl)
        if at_most:
            rows.append(judged((note, f"{impl}, bytes each", "", compiler), table.get("scale_create", impl, compiler, "bytes", n=n, live=LIVE), at_most,
                               "{:.0f}".format, n == GOAL))
    for step, what, limit in RATIOS:
        base_step = "random" if step == "random_prefetch" else step
        for impl, compiler in table.contenders("scale_create"):
            ours, base = table.get(f"scale_{step}", impl, compiler, n=n, live=LIVE), table.get(f"scale_{base_step}", GLIBC, compiler, n=n, live=LIVE)
            if impl in MOST_BYTES:
                rows.append(judged((note, f"{impl}, {what}", GLIBC, compiler), ours / base if ours and base else None, limit, "{:.2f}".format,
                                   n == GOAL))
    return rows


def private_rows(table):
    rows = []
    ns = [n for n, sz in PRIVATES if sz == 64 * KIB and table.get("private_create", PRIVATE, n=n, stack=sz) is not None]
    if ns:
        n = max(ns)
        note = f"{thousands(n)} private stacks" + ("" if n == GOAL_PRIVATE else f" (the number is for {thousands(GOAL_PRIVATE)})")
        compiler = table.contenders("private_kernel")[0][1]
        rows += [judged((note, what, "", compiler), table.get(case, PRIVATE, field=field, n=n, stack=64 * KIB), limit, shown,
                        n == GOAL_PRIVATE)
                 for case, field, what, limit in MOST_PRIVATE]
    for item in table.items:
        if item["case"] == "private_fallback" and "made" in item:
            works = item["made"] == item["params"]["n"]
            refuses = item["errno"] == "EAGAIN" and "vm.max_map_count" in item["message"]
            rows.append((f"{thousands(item['params']['n'])} private stacks, {item['params']['flags']}", "works, or refuses and says why", "",
                         item["params"]["compiler"], "works" if works else f"refuses at {item['made']}", "-", "met" if works or refuses else "MISSED"))
    return rows


def print_numbers(table):
    rows = count_rows(table) + private_rows(table)
    if rows:
        print("\nNumbers to reach: bytes, or the ratio of acorn's time to the yardstick's, medians of this run")
        run.print_columns([("case", "what", "yardstick", "compiler", "value", "at most", "")] + rows, 4)


# ---- SVG ----

LINES = {  # impl -> colour, dashes
    ACORN: ("#2a7f4f", "-"), ENTRY: ("#2a7f4f", "--"), GLIBC: ("#444444", "-"), TCMALLOC: ("#444444", "--"), JEMALLOC: ("#444444", ":"),
    CPP20: ("#8a63a8", "-"), BOOST: ("#3b6fb6", "-"), GO: ("#c7522a", "-"), PRIVATE: ("#2a7f4f", ":"),
}
PREFETCHED = "acorn, aco_prefetch 8 ahead"


def points(table, impl, case, field, param, **fixed):
    """By gcc where two compilers built it."""
    for name, compiler in table.contenders(case):
        if name == impl:
            values = LIVES if param == "live" else table.values(case, param, **fixed)
            found = [(value, table.get(case, impl, compiler, field, **{param: value}, **fixed)) for value in values]
            return [(x, y) for x, y in found if y is not None]
    return []


def private_points(table, case, field):
    return [(n, value) for n, value in ((n, table.get(case, PRIVATE, field=field, n=n, stack=sz)) for n, sz in PRIVATES if sz == 64 * KIB)
            if value is not None]


def curves(table, step, field, param, **fixed):
    """(label, colour, dashes, points) of everyone who was measured."""
    found = []
    for impl, (colour, dashes) in LINES.items():
        if impl != PRIVATE:
            line = points(table, impl, f"scale_{step}", field, param, **fixed)
        else:
            line = private_points(table, f"private_{step}", field) if param == "n" else []
        found.append((f"{PRIVATE} 64 KiB stack" if impl == PRIVATE else impl, colour, dashes, line))
    if step == "random":
        found.append((PREFETCHED, "#7cc29a", "-", points(table, ACORN, "scale_random_prefetch", field, param, **fixed)))
    return [curve for curve in found if len(curve[3]) > 1]


def draw(plt, panels, file, xlabel, ylabel):
    """`panels`: (title, curves). Both axes are logarithmic."""
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * max(len(panels), 1.4), 4.8), sharey=True, squeeze=False)
    labels = {}
    for place, (title, lines) in zip(axes[0], panels):
        for label, colour, dashes, line in lines:
            labels[label], = place.plot(*zip(*line), color=colour, linestyle=dashes, marker="o", markersize=4, label=label)
        run.set_logarithmic(place, xlabel, title)
        for axis in (place.xaxis, place.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace(",", " ") if value >= 1 else f"{value:g}")
    axes[0][0].set_ylabel(ylabel)
    if labels:
        figure.legend(labels.values(), labels, loc="lower center", ncols=4 if len(panels) > 1 else 3, frameon=False, fontsize=9)
        figure.tight_layout(rect=(0, 0.16, 1, 1))
        figure.savefig(file, metadata={"Date": None})
        print(f"\nplot: {file}")
    plt.close(figure)


def plot(table, directory):
    plt = run.pyplot()
    if not plt:
        return
    directory.mkdir(parents=True, exist_ok=True)
    orders = (("round_robin", "round robin"), ("random", "random order"))
    draw(plt, [("", curves(table, "create", "bytes", "n", live=LIVE))], directory / "memory-bytes.svg", "coroutines", "resident bytes each")
    draw(plt, [(title, curves(table, step, "ns", "n", live=LIVE)) for step, title in orders], directory / "memory-ns.svg", "coroutines",
         "nanoseconds for one resume and yield")
    numbers = table.values("scale_create", "n", live=LIVES[0])
    if numbers:
        draw(plt, [(title, curves(table, step, "ns", "live", n=max(numbers))) for step, title in orders], directory / "memory-live.svg",
             f"live bytes, {max(numbers)} coroutines", "nanoseconds for one resume and yield")


# ---- The command ----

def options():
    parser = argparse.ArgumentParser(description="Acorn's benchmarks of memory at scale", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one process for each number")
    parser.add_argument("--max", metavar="N", type=int, default=10_000_000, help="the most coroutines, at least 1000")
    parser.add_argument("--only", metavar="GROUP", action="append", choices=("count", "copying", "private", "churn"), help="repeatable")
    parser.add_argument("--impl", metavar="NAME", action="append", help="only contenders of exactly this name; repeatable")
    return run.parsed(parser)


def main():
    args = options()
    if args.max < 1000:
        sys.exit("--max: at least 1000")
    run.progress("building")
    programs = build(args.build.resolve())
    if args.impl:
        programs = [program for program in programs if program.impl in args.impl]
        if not programs:
            sys.exit("no contender has such a name; there are:\n" + "\n".join(f"  {impl}" for impl in (*PROGRAMS, GO)))
    started = time.monotonic()
    about = {**run.machine(), "quick": args.quick}
    chosen = [group for group in groups(programs, args.max, args.quick) if not args.only or group.name in args.only]
    results = run.Results()
    results.others = run_groups(chosen, args.quick)
    table = Table(results.others)

    print("Acorn: benchmarks of memory at scale")
    for key, value in about.items():
        print(f"  {key:14} {', '.join(value) if isinstance(value, list) else value}")
    print_missing(programs, results.others)
    printers = {"count": print_count, "copying": print_copying, "private": print_private, "churn": print_churn}
    for group in chosen:
        if any(program for _, _, takers in group.cases for program in takers if not program.missing):
            printers[group.name](table)
    print_numbers(table)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        run.write_json(args.json, about, results, [], [])
        print(f"\nJSON: {args.json}")
    if args.svg:
        plot(table, args.svg)
    print(f"\nmeasured in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
