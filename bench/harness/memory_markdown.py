"""The tables of docs/memory.md, from a JSON file of bench/run_memory.py."""
from .markdown import NOTHING, cell, each, heading, line, numbers
from .memory_cases import ACORN, BARE, BOOST, CPP20, ENTRY, GLIBC, GO, JEMALLOC, LIVES, PRIVATE, TCMALLOC
from .plots import spaced

SCALE_ROWS = [
    ("**acorn**", ACORN),
    ("**acorn**, entry function marked `ACO_ENTRY`", ENTRY),
    ("block and save area from malloc: glibc", GLIBC),
    ("the same from tcmalloc", TCMALLOC),
    ("the same from jemalloc", JEMALLOC),
    ("C++20 coroutine", CPP20),
    ("Boost.Context fiber, pooled stacks", BOOST),
    ("Go, a goroutine on a channel", GO),
]
SCALE_COLUMNS = [("create", "create"), ("first resume", "first_resume"), ("round robin", "round_robin"),
                 ("random order", "random"), ("random, prefetched", "random_prefetch"), ("destroy", "destroy")]
LIVE_COLUMNS = [(ACORN, "**acorn**"), (GLIBC, "blocks from malloc"), (CPP20, "C++20 coroutine")]
ORDERS = [("round robin", "round_robin"), ("random", "random")]


def scale_table(rows, n):
    yield from heading(f"{spaced(n)} coroutines, 96 live bytes; nanoseconds, gcc / clang",
                       *(title for title, _ in SCALE_COLUMNS), "bytes each")
    wanted = {"n": n, "live": 96}
    for label, impl in SCALE_ROWS:
        if each(rows, "scale_create", impl, wanted) != NOTHING:
            yield line(label, *(each(rows, f"scale_{step}", impl, wanted) for _, step in SCALE_COLUMNS),
                       each(rows, "scale_create", impl, wanted, "bytes"))


def live_table(rows):
    yield from heading("live bytes, 100 000 coroutines; nanoseconds per resume, gcc / clang",
                       *(f"{label}, {order}" for _, label in LIVE_COLUMNS for order, _ in ORDERS))
    for live in LIVES:
        yield line(str(live), *(each(rows, f"scale_{step}", impl, {"n": 100000, "live": live})
                                for impl, _ in LIVE_COLUMNS for _, step in ORDERS))


def private_table(rows):
    yield from heading("private stacks, suspended one call deep; nanoseconds", "create", "the kernel's part",
                       "first resume", "round robin", "random order", "prefetched", "destroy", "resident bytes",
                       "page tables", "mappings per region")
    for n, stack in sorted({(row["params"]["n"], row["params"]["stack"]) for row in rows
                            if row.get("case") == "private_create"}):
        wanted = {"n": n, "stack": stack}
        kernel = sum(sum(numbers(rows, f"private_{step}", BARE, wanted)) for step in ("create", "first_resume"))
        create, *steps = (each(rows, f"private_{step}", PRIVATE, wanted) for _, step in SCALE_COLUMNS)
        (size,), (mappings,) = (numbers(rows, "private_kernel", PRIVATE, wanted, field)
                                for field in ("bytes", "mappings"))
        yield line(f"{n} of {stack >> 10} KiB", create, cell([kernel]), *steps,
                   each(rows, "private_create", PRIVATE, wanted, "bytes"), f"{size:.0f}", f"{mappings:.1f}")


def reclaim_table(rows):
    yield from heading("reclaim, 10 000 idle stacks; nanoseconds per stack", "use while warm", "`aco_pool_trim()`",
                       "use after that")
    for pages in (1, 16):
        for how, label in (("at once", "at once"), ("lazy", "`ACO_POOL_LAZY`")):
            yield line(f"{pages} page{'s' if pages > 1 else ''} touched, {label}",
                       *(each(rows, f"private_{step}", PRIVATE, {"pages": pages, "reclaim": how})
                         for step in ("use_warm", "trim", "use_again")))


def churn_table(rows):
    n = max((row["params"]["n"] for row in rows if row.get("case") == "churn" and row["impl"] == ACORN), default=0)
    yield from heading(f"churn, {n} coroutines with 40, 104 or 488 live bytes", "ns per destroy, create and resume",
                       "bytes each at the end")
    for label, impl in [*SCALE_ROWS, ("**acorn**, private stacks (100 000)", PRIVATE)]:
        wanted = {} if impl == PRIVATE else {"n": n}
        if each(rows, "churn", impl, wanted) != NOTHING:
            yield line(label, each(rows, "churn", impl, wanted), each(rows, "churn", impl, wanted, "bytes"))


def tables(rows):
    counts = sorted({row["params"]["n"] for row in rows if row.get("case") == "scale_create"}, reverse=True)
    return [*(scale_table(rows, n) for n in counts if n in (counts[0], 100000)),
            live_table(rows), private_table(rows), reclaim_table(rows), churn_table(rows)]
