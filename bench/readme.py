#!/usr/bin/env python3
"""Puts tables of measurements between their markers: those of a JSON file of bench/run.py into the README, those of
bench/run_memory.py into docs/memory.md, those of bench/run_paper.py into docs/paper.md.

    python3 bench/readme.py bench/results/FILE.json
"""
import json
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import run_paper  # noqa: E402: bench/run_paper.py, beside this file

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"

SWITCH_ROWS = [  # label, impl, form, FP environment
    ("**acorn**, inline, shared FP environment", "acorn", "inline", "shared FP"),
    ("**acorn**, inline, each its own FP environment (default)", "acorn", "inline", "own FP"),
    ("**acorn**, exported functions, shared FP environment", "acorn", "exported", "shared FP"),
    ("an empty call", "empty call", None, None),
    ("C++20 generator (cannot yield from a nested call)", "C++20 generator", None, None),
    ("corosensei (Rust)", "corosensei", None, None),
    ("classic full-save switch", "classic switch", None, None),
    ("Boost.Context fiber", "Boost.Context fiber", None, None),
    ("Boost.Coroutine2", "Boost.Coroutine2", None, None),
    ("ucontext", "ucontext", None, None),
]
SWITCH_COLUMNS = [  # heading, case, parameters
    ("1 coroutine", "flat", {"coroutines": 1, "order": "round robin"}),
    ("64", "flat", {"coroutines": 64, "order": "round robin"}),
    ("1000, random order", "flat", {"coroutines": 1000, "order": "random order"}),
    ("yield 4 calls deep", "nested", {"depth": 4}),
]


def matching(rows, case, impl, wanted):
    """The medians of the rows with these parameters, by compiler, in a fixed order."""
    found = {row["params"]["compiler"].split()[0]: row["ns"] for row in rows
             if row.get("case") == case and row.get("impl") == impl and "ns" in row
             and all(row["params"].get(key) == value for key, value in wanted.items() if value is not None)}
    return [found[name] for name in ("gcc", "clang", "rustc") if name in found]


def cell(values):
    return " / ".join(f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in values) or "–"


def switch_table(rows):
    yield "| nanoseconds for one resume and yield, gcc / clang | " + " | ".join(heading for heading, _, _ in SWITCH_COLUMNS) + " |"
    yield "| --- |" + " --- |" * len(SWITCH_COLUMNS)
    for label, impl, form, fp in SWITCH_ROWS:
        cells = [cell(matching(rows, case, impl, {**wanted, "form": form, "fp": fp})) for _, case, wanted in SWITCH_COLUMNS]
        yield f"| {label} | " + " | ".join(cells) + " |"


GENERATOR_ROWS = [  # label, impl, what is said in the case's line
    ("**acorn**, own-stack generator", "acorn", ("own-stack generator",)),
    ("**acorn**, in-stack generator", "acorn", ("in-stack generator",)),
    ("a function that calls back", "callback", ("function that calls back", "recursion and callback")),
    ("C++20 generator", "C++20 generator", ("for loop", "a generator for each call")),
    ("corosensei (Rust)", "corosensei", ("Coroutine",)),
    ("Boost.Coroutine2", "Boost.Coroutine2", ("pull_type",)),
]
TASK_ROWS = [
    ("**acorn**", "acorn", ("aco_task_yield", "unbuffered channels", "aco_spawn, aco_join")),
    ("classic full-save switch, next of the ring", "classic switch", ("next of the ring",)),
    ("Boost.Fiber", "Boost.Fiber", ("this_fiber::yield", "unbuffered_channel", "fiber, join")),
    ("Go, GOMAXPROCS=1", "Go", ("runtime.Gosched", "unbuffered channels", "go, WaitGroup")),
    ("tokio, current_thread", "tokio", ("task::yield_now", "mpsc::channel(1)", "spawn, await")),
]
COMPILERS = ("gcc", "clang", "rustc", "go")


def by_line(rows, case, impl, lines, wanted):
    """The medians of a case's line, by compiler."""
    found = {row["params"]["compiler"].split()[0]: row["ns"] for row in rows
             if row.get("case") == case and row.get("impl") == impl and "ns" in row and row["params"].get("what") in lines
             and all(row["params"].get(key) == value for key, value in wanted.items())}
    return cell([found[name] for name in COMPILERS if name in found])


def line_table(rows, title, table, columns):
    yield f"| {title} | " + " | ".join(heading for heading, _, _ in columns) + " |"
    yield "| --- |" + " --- |" * len(columns)
    for label, impl, lines in table:
        yield f"| {label} | " + " | ".join(by_line(rows, case, impl, lines, wanted) for _, case, wanted in columns) + " |"


def generator_table(rows):
    return line_table(rows, "nanoseconds per element, gcc / clang", GENERATOR_ROWS,
                      [("sum of a sequence", "generator_sum", {}), ("Hanoi(20), recursive", "generator_hanoi", {})])


def task_table(rows):
    return line_table(rows, "nanoseconds, gcc / clang", TASK_ROWS,
                      [(f"yield, ring of {n}", "scheduler_ring", {"tasks": int(n.replace(" ", ""))}) for n in ("10", "100", "10 000")]
                      + [("yield, ring of 10 000, four live values", "scheduler_ring_live", {"tasks": 10000}),
                         ("channel ping-pong", "scheduler_ping_pong", {}), ("spawn, run and join", "scheduler_spawn", {"tasks": 1})])


def memory_table(rows):
    yield "| a million coroutines on one share stack, 96 live bytes each, round robin | ns per resume | bytes per coroutine |"
    yield "| --- | --- | --- |"
    for label, impl, save in (("**acorn**, save area of the size needed", "acorn", "fit"), ("**acorn**, default save area", "acorn", "default"),
                              ("block and save area from malloc, classic switch", "malloc_blocks", "fit")):
        wanted = {"live": 96, "save": save, "order": "made", "fp": "shared"}
        some = [row for row in rows if row.get("case") == "rss_96_live_bytes_1M" and row.get("impl") == impl
                and all(row["params"].get(key) == value for key, value in wanted.items())]
        some.sort(key=lambda row: row["params"]["compiler"], reverse=True)
        yield f"| {label} | {cell([row['ns'] for row in some])} | {' / '.join(f'''{row['bytes']:.0f}''' for row in some)} |"


SCALE_ROWS = [
    ("**acorn**", "acorn"),
    ("**acorn**, entry function marked `ACO_ENTRY`", "acorn, ACO_ENTRY"),
    ("block and save area from malloc: glibc", "malloc blocks, glibc"),
    ("the same from tcmalloc", "malloc blocks, tcmalloc"),
    ("the same from jemalloc", "malloc blocks, jemalloc"),
    ("C++20 coroutine", "C++20 coroutine"),
    ("Boost.Context fiber, pooled stacks", "Boost.Context fiber"),
    ("Go, a goroutine on a channel", "Go"),
]
SCALE_COLUMNS = [("create", "scale_create"), ("first resume", "scale_first_resume"), ("round robin", "scale_round_robin"), ("random order", "scale_random"),
                 ("random, prefetched", "scale_random_prefetch"), ("destroy", "scale_destroy")]


def each(rows, case, impl, wanted, field="ns"):
    """What the compilers' programs measured, in a fixed order."""
    found = {row["params"]["compiler"].split()[0]: row[field] for row in rows
             if row.get("case") == case and row.get("impl") == impl and row.get(field) is not None
             and all(row["params"].get(key) == value for key, value in wanted.items())}
    return cell([found[name] for name in COMPILERS if name in found])


def scale_table(rows, n):
    yield f"| {f'{n:,}'.replace(',', ' ')} coroutines, 96 live bytes; nanoseconds, gcc / clang | " + " | ".join(heading for heading, _ in SCALE_COLUMNS) + " | bytes each |"
    yield "| --- |" + " --- |" * (len(SCALE_COLUMNS) + 1)
    for label, impl in SCALE_ROWS:
        wanted = {"n": n, "live": 96}
        if each(rows, "scale_create", impl, wanted) != "–":
            yield f"| {label} | " + " | ".join(each(rows, case, impl, wanted) for _, case in SCALE_COLUMNS) + f" | {each(rows, 'scale_create', impl, wanted, 'bytes')} |"


def live_table(rows):
    impls = [("acorn", "**acorn**"), ("malloc blocks, glibc", "blocks from malloc"), ("C++20 coroutine", "C++20 coroutine")]
    yield "| live bytes, 100 000 coroutines; nanoseconds per resume, gcc / clang | " + " | ".join(f"{label}, {order}" for _, label in impls for order in ("round robin", "random")) + " |"
    yield "| --- |" + " --- |" * 6
    for live in (8, 40, 104, 232, 488, 1000, 4000):
        yield f"| {live} | " + " | ".join(each(rows, case, impl, {"n": 100000, "live": live})
                                          for impl, _ in impls for case in ("scale_round_robin", "scale_random")) + " |"


def private_table(rows):
    yield ("| private stacks, suspended one call deep; nanoseconds | create | the kernel's part | first resume | round robin | random order | prefetched | destroy "
           "| resident bytes | page tables | mappings per region |")
    yield "| --- |" + " --- |" * 10
    some = sorted({(row["params"]["n"], row["params"]["stack"]) for row in rows if row.get("case") == "private_create"})
    for n, stack in some:
        wanted = {"n": n, "stack": stack}
        kernel = [row["ns"] for row in rows if row.get("case") in ("private_create", "private_first_resume") and row["impl"] == "bare pages"
                  and row["params"]["n"] == n and row["params"]["stack"] == stack]
        tables = next(row for row in rows if row.get("case") == "private_kernel" and row["impl"] == "acorn, private"
                      and row["params"]["n"] == n and row["params"]["stack"] == stack)
        cells = [each(rows, case, "acorn, private", wanted) for case in ("private_create", "private_first_resume", "private_round_robin", "private_random",
                                                                         "private_random_prefetch", "private_destroy")]
        cells.insert(1, cell([sum(kernel)]))
        yield f"| {n} of {stack >> 10} KiB | " + " | ".join(cells) + \
            f" | {each(rows, 'private_create', 'acorn, private', wanted, 'bytes')} | {tables['bytes']:.0f} | {tables['mappings']:.1f} |"


def reclaim_table(rows):
    yield "| reclaim, 10 000 idle stacks; nanoseconds per stack | use while warm | `aco_pool_trim()` | use after that |"
    yield "| --- | --- | --- | --- |"
    for pages in (1, 16):
        for how, label in (("at once", "at once"), ("lazy", "`ACO_POOL_LAZY`")):
            yield f"| {pages} page{'s' if pages > 1 else ''} touched, {label} | " + " | ".join(
                each(rows, case, "acorn, private", {"pages": pages, "reclaim": how}) for case in ("private_use_warm", "private_trim", "private_use_again")) + " |"


def churn_table(rows):
    n = max((row["params"]["n"] for row in rows if row.get("case") == "churn" and row["impl"] == "acorn"), default=0)
    yield f"| churn, {n} coroutines with 40, 104 or 488 live bytes | ns per destroy, create and resume | bytes each at the end |"
    yield "| --- | --- | --- |"
    for label, impl in [*SCALE_ROWS, ("**acorn**, private stacks (100 000)", "acorn, private")]:
        wanted = {} if impl == "acorn, private" else {"n": n}
        if each(rows, "churn", impl, wanted) != "–":
            yield f"| {label} | {each(rows, 'churn', impl, wanted)} | {each(rows, 'churn', impl, wanted, 'bytes')} |"


PAPER_CASES = [  # heading, case
    ("sum of a sequence, nanoseconds per element", "sum"),
    ("`write_fully()`, nanoseconds per send", "write_fully"),
    ("`write_fully()`, tasks on two ways, nanoseconds per send", "write_fully_mixed"),
    ("`yield()` of ten coroutines, nanoseconds, the empty loop not subtracted", "yield"),
    ("HTTP client, nanoseconds per request", "http"),
    ("RPC client, nanoseconds per request", "rpc"),
]


def paper_rows(rows, case):
    """(impl, what) -> {compiler: row}, in the order of the file."""
    found = {}
    for row in rows:
        if row.get("case") == case and "missing" not in row:
            found.setdefault((row["impl"], row["params"]["what"]), {})[row["params"]["compiler"].split()[0]] = row
    return found


def by_compiler(found, value):
    return " / ".join(value(found[name]) for name in dict.fromkeys([*COMPILERS, *found]) if name in found) or "–"


def paper_name(impl, what):
    return f"**{impl}**, {what}" if impl == "acorn" else f"{impl}, {what}"


def paper_table(rows, heading, case):
    found = paper_rows(rows, case)
    base = next(iter(found.values()), {})

    def ratio(row):
        return format(row["ns"] / of_same_compiler(base, row)["ns"], ".2f")

    yield f"| {heading}, gcc / clang where both are | | ratio to the first row | the paper's |"
    yield "| --- | --- | --- | --- |"
    for (impl, what), compilers in found.items():
        said = run_paper.PAPER.get((case, impl, what))
        if what != "one cycle":
            ns = by_compiler(compilers, lambda row: cell([row["ns"]]))
            yield f"| {paper_name(impl, what)} | {ns} | {by_compiler(compilers, ratio)} | {format(said, '.2f') if said else '–'} |"


CPP20_FOR, CALL_BACK = ("C++20 generator", "for loop"), ("callback", "recursion and callback")
PULL_TYPE, OWN_STACK, RECURSIVE = ("Boost.Coroutine2", "pull_type"), ("acorn", "own-stack generator"), ("C++20 generator", "a generator for each call")
SCHEDULER, RING, RING_RET = ("acorn", "scheduler"), ("classic switch", "next of the ring"), ("classic switch", "next of the ring, by ret")
INLINE, HELPED = ("acorn", "inline switch"), ("acorn", "inline switch and helper")
CPP20_NEW, CPP20_POOL = (("C++20 coroutine", f"a task for each call, {frames}") for frames in ("operator new", "pooled frames"))
PAPER_CLAIMS = [  # case, what it tells of, what it compares that with, the paper's ratio where run_paper.PAPER has none
    ("sum", ("acorn", "in-stack generator"), CPP20_FOR, None),
    ("sum", ("C++20 generator", "while loop"), CPP20_FOR, None),
    ("sum", PULL_TYPE, CPP20_FOR, None),
    ("hanoi", RECURSIVE, CALL_BACK, None),
    ("hanoi", ("C++23 generator", "std::generator, elements_of"), CALL_BACK, None),
    ("hanoi", PULL_TYPE, CALL_BACK, None),
    ("hanoi", OWN_STACK, CALL_BACK, None),
    ("hanoi", OWN_STACK, PULL_TYPE, 0.5),
    *(("write_fully", SCHEDULER, other, None)
      for other in (CPP20_NEW, CPP20_POOL, ("Boost.Context", "fiber"), ("corosensei", "Coroutine, resumed in turn"), RING, RING_RET)),
    *(("write_fully_mixed", SCHEDULER, other, None) for other in (CPP20_NEW, RING, RING_RET)),
    ("yield", ("acorn", "aco_task_yield"), ("plain ring", "classic"), None),
    ("yield", ("plain ring", "small"), ("plain ring", "classic"), None),
    *((case, of, to, said) for case, helped in (("http", 1.112 / 1.188), ("rpc", 1.262 / 1.452)) for of, to, said in (
        (INLINE, RING, None), (HELPED, RING, None), (INLINE, RING_RET, None), (HELPED, INLINE, helped),
        (("acorn", "inline switch and helper, LTO"), ("acorn", "inline switch, LTO"), None))),
    *((f"{case}_counted", HELPED, INLINE, None) for case in ("http", "rpc")),
]
CASE_NAMES = {"hanoi": "Hanoi(20)", "write_fully": "`write_fully()`", "write_fully_mixed": "`write_fully()`, two ways", "yield": "`yield()`",
              "http": "HTTP", "rpc": "RPC", "http_counted": "HTTP, instructions", "rpc_counted": "RPC, instructions"}


def of_same_compiler(found, row):
    """What `row` is compared with: by its compiler, where that has any."""
    return found.get(row["params"]["compiler"].split()[0]) or next(iter(found.values()))


def paper_claims_table(rows):
    yield "| ratio, gcc / clang where both are | medians | minima | the paper's |"
    yield "| --- | --- | --- | --- |"
    for case, of, to, said in PAPER_CLAIMS:
        found = paper_rows([row for row in rows if row.get("params", {}).get("discs", 20) == 20], case)
        if of not in found or to not in found:
            continue
        fields = ("instructions",) if case.endswith("_counted") else ("ns", "min")
        cells = [by_compiler({name: row for name, row in found[of].items() if name in found[to] or len(found[to]) == 1},
                             lambda row, field=field: format(row[field] / of_same_compiler(found[to], row)[field], ".2f")) for field in fields]
        said = said or (run_paper.PAPER.get((case, *of)) if to == next(iter(found)) else None)
        yield (f"| {CASE_NAMES.get(case, case)}: {paper_name(*of)}, to: {paper_name(*to)} | {cells[0]} | {cells[1] if len(cells) > 1 else '–'} "
               f"| {format(said, '.2f') if said else '–'} |")


def paper_hanoi_table(rows):
    towers = {}
    for row in rows:
        if row.get("case") == "hanoi" and "missing" not in row:
            key = row["impl"], row["params"]["what"], row["params"]["compiler"].split()[0]
            towers.setdefault(row["params"]["discs"], {})[key] = row["ns"]
    discs = [n for n in (1, 4, 8, 12, 16, 20) if n in towers]
    yield "| Hanoi, time relative to recursion and callback in the same language (Rust: in C) | compiler | " + " | ".join(map(str, discs)) + " |"
    yield "| --- | --- |" + " --- |" * len(discs)
    for key in towers[discs[-1]] if discs else ():
        impl, what, compiler = key
        base = {"go": ("Go", "recursion and callback, Go", "go"), "python": ("Python", "recursion and callback, Python", "python"),
                "mono": ("C#", "recursion and callback, C#", "mono"),
                "rustc": ("callback", "recursion and callback", "gcc")}.get(compiler, ("callback", "recursion and callback", compiler))
        if not what.startswith("recursion and callback"):
            yield f"| {paper_name(impl, what)} | {compiler} | " + " | ".join(
                format(towers[n][key] / towers[n][base], ".1f") if key in towers[n] and base in towers[n] else "–" for n in discs) + " |"


def paper_counted_table(rows):
    yield "| counted by cachegrind, gcc / clang | instructions | reads | of them L1 misses, % |"
    yield "| --- | --- | --- | --- |"
    for case, unit in (("write_fully", "send"), ("http", "HTTP request"), ("rpc", "RPC request")):
        for (impl, what), found in paper_rows(rows, f"{case}_counted").items():
            cells = [by_compiler(found, lambda row, field=field: format(row[field], ".0f")) for field in ("instructions", "reads")]
            cells.append(by_compiler(found, lambda row: format(100 * row["read_misses"] / row["reads"], ".1f")))
            yield f"| each {unit}: {paper_name(impl, what)} | " + " | ".join(cells) + " |"


def put(path, begin, end, lines):
    text = path.read_text()
    block = begin + "\n" + "\n".join(lines) + "\n" + end
    path.write_text(re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, text, flags=re.S))


def main():
    file = Path(sys.argv[1]).resolve()
    first, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    about = first["machine"]
    family, model = about["family, model"].split(", ")

    def head(link):
        return (f"{about['cpu']} (family {family}, model {model}), a virtual machine with {about['cpus']} processors; "
                f"{', '.join(about['compilers'])}; `-O2`; {about['date']}. Medians of one run; all of it in [{file.relative_to(ROOT)}]({link}).")

    if any(row.get("case") == "write_fully" for row in rows):
        tables = [paper_claims_table(rows)] + [paper_table(rows, heading, case) for heading, case in PAPER_CASES] + [paper_hanoi_table(rows), paper_counted_table(rows)]
        lines = [head(f"../{file.relative_to(ROOT)}")] + [line for table in tables for line in ("", *table)]
        put(ROOT / "docs/paper.md", "<!-- paper:begin -->", "<!-- paper:end -->", lines)
    elif any(row.get("case") == "scale_create" for row in rows):
        counts = sorted({row["params"]["n"] for row in rows if row.get("case") == "scale_create"}, reverse=True)
        tables = [scale_table(rows, n) for n in counts if n in (counts[0], 100000)]
        tables += [live_table(rows), private_table(rows), reclaim_table(rows), churn_table(rows)]
        lines = [head(f"../{file.relative_to(ROOT)}")] + [line for table in tables for line in ("", *table)]
        put(ROOT / "docs/memory.md", "<!-- memory:begin -->", "<!-- memory:end -->", lines)
    else:
        put(ROOT / "README.md", BEGIN, END, [head(file.relative_to(ROOT)), "", *switch_table(rows), "", *generator_table(rows), "", *task_table(rows), "",
                                             *memory_table(rows)])


if __name__ == "__main__":
    main()
