"""The tables of docs/memory.md, from a JSON file of bench/run_memory.py."""
from .markdown import cell, each, heading, line, numbers
from .memory_cases import ACORN, BARE, CPP20, ENTRY, GLIBC, JEMALLOC, PRIVATE, TCMALLOC
from .plots import spaced

SCALE_ROWS = [
    ("**acorn**", ACORN),
    ("**acorn**, entry function marked `ACO_ENTRY`", ENTRY),
    ("block and save area from malloc: glibc", GLIBC),
    ("the same from tcmalloc", TCMALLOC),
    ("the same from jemalloc", JEMALLOC),
    ("C++20 coroutine", CPP20),
]
SCALE_COLUMNS = [("create", "create"), ("round robin", "round_robin"), ("random order", "random"),
                 ("random, prefetched", "random_prefetch"), ("destroy", "destroy")]
PRIVATE_COLUMNS = [("create", "create"), ("round robin", "round_robin"), ("random order", "random"),
                   ("destroy", "destroy")]


def scale_table(rows, n):
    yield from heading(f"{spaced(n)} coroutines, 96 bytes of locals; nanoseconds, gcc / clang",
                       *(title for title, _ in SCALE_COLUMNS), "bytes each")
    wanted = {"n": n, "live": 96}
    for label, impl in SCALE_ROWS:
        yield line(label, *(each(rows, f"scale_{step}", impl, wanted) for _, step in SCALE_COLUMNS),
                   each(rows, "scale_create", impl, wanted, "bytes"))


def private_table(rows):
    yield from heading("private stacks, suspended one call deep; nanoseconds", "create", "the kernel's part",
                       *(title for title, _ in PRIVATE_COLUMNS[1:]), "resident bytes", "page tables")
    for n, stack in sorted({(row["params"]["n"], row["params"]["stack"]) for row in rows
                            if row.get("case") == "private_create"}):
        wanted = {"n": n, "stack": stack}
        kernel = sum(sum(numbers(rows, f"private_{step}", BARE, wanted)) for step in ("create", "first_resume"))
        create, *steps = (each(rows, f"private_{step}", PRIVATE, wanted) for _, step in PRIVATE_COLUMNS)
        (size,) = numbers(rows, "private_kernel", PRIVATE, wanted, "bytes")
        yield line(f"{n} of {stack >> 10} KiB", create, cell([kernel]), *steps,
                   each(rows, "private_create", PRIVATE, wanted, "bytes"), f"{size:.0f}")


def reclaim_table(rows):
    yield from heading("reclaim, 10 000 idle stacks; nanoseconds per stack", "use while warm", "`aco_pool_trim()`",
                       "use after that")
    for pages in (1, 16):
        for how, label in (("at once", "at once"), ("lazy", "`ACO_POOL_LAZY`")):
            yield line(f"{pages} page{'s' if pages > 1 else ''} touched, {label}",
                       *(each(rows, f"private_{step}", PRIVATE, {"pages": pages, "reclaim": how})
                         for step in ("use_warm", "trim", "use_again")))


def tables(rows):
    most = max(row["params"]["n"] for row in rows if row.get("case") == "scale_create")
    return [scale_table(rows, most), private_table(rows), reclaim_table(rows)]
