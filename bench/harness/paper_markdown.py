"""The tables of docs/paper.md, from a JSON file of bench/run_paper.py."""
from .cases import ACORN, BOOST_COROUTINE, BOOST_TASK, CALLBACK, CLASSIC, COROSENSEI, CPP20
from .markdown import COMPILERS, NOTHING, cell, compiler_of, heading, line, rounded
from .paper_cases import BOOST, CPP20_TASK, CPP23, PAPER


def found_rows(rows, case):
    """(impl, what) -> {compiler: row}, in the order of the file."""
    found = {}
    for row in rows:
        if row.get("case") == case and "missing" not in row:
            found.setdefault((row["impl"], row["params"]["what"]), {})[compiler_of(row)] = row
    return found


def by_compiler(found, value):
    return cell([value(found[name]) for name in dict.fromkeys([*COMPILERS, *found]) if name in found], str)


def of_same_compiler(found, row):
    """The row to compare `row` with: by the same compiler, else the first."""
    return found.get(compiler_of(row)) or next(iter(found.values()))


def ratio(value):
    return format(value, ".2f") if value else NOTHING


CPP20_FOR, CALL_BACK = (CPP20, "for loop"), (CALLBACK, "recursion and callback")
PULL_TYPE, OWN_STACK = (BOOST_COROUTINE, "pull_type"), (ACORN, "own-stack generator")
YIELD_CALL = (ACORN, "aco_task_yield_call, preserve_none")
SCHEDULER, SENSEI = (ACORN, "scheduler"), (COROSENSEI, "Coroutine, resumed in turn")
RING, RING_RET = (CLASSIC, "next of the ring"), (CLASSIC, "next of the ring, by ret")
INLINE, HELPED = (ACORN, "inline switch"), (ACORN, "inline switch and helper")
CPP20_NEW = (CPP20_TASK, "a task for each call, operator new")
CPP20_POOL = (CPP20_TASK, "a task for each call, pooled frames")
CLAIMS = [  # case, the claim's subject, what it is compared with, the paper's ratio where PAPER has none
    ("sum", (ACORN, "in-stack generator"), CPP20_FOR, None),
    ("sum", (CPP20, "while loop"), CPP20_FOR, None),
    ("sum", PULL_TYPE, CPP20_FOR, None),
    ("hanoi", (CPP20, "a generator for each call"), CALL_BACK, None),
    ("hanoi", (CPP23, "std::generator, elements_of"), CALL_BACK, None),
    ("hanoi", PULL_TYPE, CALL_BACK, None),
    ("hanoi", OWN_STACK, CALL_BACK, None),
    ("hanoi", OWN_STACK, PULL_TYPE, 0.5),
    *(("write_fully", SCHEDULER, other, None)
      for other in (CPP20_NEW, CPP20_POOL, (BOOST, "fiber"), SENSEI, RING, RING_RET)),
    *(("write_fully_mixed", SCHEDULER, other, None) for other in (CPP20_NEW, RING, RING_RET)),
    ("yield", (ACORN, "aco_task_yield"), ("plain ring", "classic"), None),
    ("yield", YIELD_CALL, ("plain ring", "classic"), None),
    ("yield", ("plain ring", "small"), ("plain ring", "classic"), None),
    *((case, of, to, said) for case, helped in (("http", 1.112 / 1.188), ("rpc", 1.262 / 1.452)) for of, to, said in (
        (INLINE, RING, None), (HELPED, RING, None), (INLINE, RING_RET, None), (HELPED, INLINE, helped))),
    *((f"{case}_counted", HELPED, INLINE, None) for case in ("http", "rpc")),  # in files of before --counts
]
LABELS = {
    (ACORN, "in-stack generator"): "Acorn, in-stack generator", OWN_STACK: "Acorn, generator", SCHEDULER: "Acorn",
    INLINE: "Acorn", HELPED: "Acorn with the helper", (ACORN, "aco_task_yield"): "Acorn", CPP20_FOR: "C++20, `for`",
    YIELD_CALL: "Acorn, `aco_task_yield_call()`",
    (CPP20, "while loop"): "C++20, `while`", (CPP20, "a generator for each call"): "C++20",
    (CPP23, "std::generator, elements_of"): "`std::generator`", CALL_BACK: "callback", PULL_TYPE: "Boost",
    CPP20_NEW: "C++20", CPP20_POOL: "C++20, pooled frames", (BOOST, "fiber"): "Boost", SENSEI: "corosensei",
    RING: "classic", RING_RET: "classic, by ret", ("plain ring", "classic"): "classic ring",
    ("plain ring", "small"): "the paper's last step", (BOOST_TASK, "this_fiber::yield"): "Boost.Fiber",
    (COROSENSEI, "Coroutine"): "corosensei",
}
CASE_NAMES = {"hanoi": "Hanoi(20)", "write_fully": "`write_fully()`", "write_fully_mixed": "`write_fully()`, two ways",
              "yield": "`yield()`", "http": "HTTP", "rpc": "RPC", "http_counted": "HTTP, instructions",
              "rpc_counted": "RPC, instructions"}


def claim_cell(of, to, field):
    """The ratio by each compiler that has both, or by each of `of` if `to` has only one."""
    return by_compiler({name: row for name, row in of.items() if name in to or len(to) == 1},
                       lambda row: ratio(row[field] / of_same_compiler(to, row)[field]))


def claims_table(rows):
    rows = [row for row in rows if row.get("params", {}).get("discs", 20) == 20]
    yield from heading("", "", "compared with", "time, gcc / clang", "the paper's")
    shown = None
    for case, of, to, said in CLAIMS:
        found = found_rows(rows, case)
        if of not in found or to not in found:
            continue
        said = said or (PAPER.get((case, *of)) if to == next(iter(found)) else None)
        field = "instructions" if case.endswith("_counted") else "ns"
        yield line(CASE_NAMES.get(case, case) if case != shown else "", LABELS[of], LABELS[to],
                   claim_cell(found[of], found[to], field), ratio(said))
        shown = case


def tables(rows):
    return [claims_table(rows)]


# ---- What cachegrind counted: case -> Acorn's row, and the contenders ----

COUNTED = {
    "hanoi": (OWN_STACK, (CALL_BACK, PULL_TYPE, (CPP20, "a generator for each call"),
                          (CPP23, "std::generator, elements_of"), (COROSENSEI, "Coroutine"))),
    "write_fully": (SCHEDULER, (CPP20_NEW, CPP20_POOL, RING, RING_RET, (BOOST, "fiber"), SENSEI)),
    "yield": ((ACORN, "aco_task_yield"), (("plain ring", "classic"), ("plain ring", "small"),
                                          (BOOST_TASK, "this_fiber::yield"), SENSEI)),
    **{case: (INLINE, (HELPED, RING, RING_RET, (BOOST, "fiber"), SENSEI)) for case in ("http", "rpc")},
}
COUNTED_NAMES = {"hanoi": "Hanoi(16), a move", "write_fully": "`write_fully()`, a send", "yield": "`yield()`",
                 "http": "HTTP, a request", "rpc": "RPC, a request"}


def counts_table(rows):
    """A row for each contender; Acorn's own first."""
    yield from heading("each, gcc / clang", "", "instructions", "Acorn's to these", "L1 misses", "mispredictions")
    for case, (ours, others) in COUNTED.items():
        found = found_rows(rows, f"{case}_counted")
        for who in (ours, *others):
            if who in found:
                lost = "–" if who == ours else claim_cell(found[ours], found[who], "instructions")
                yield line(COUNTED_NAMES[case] if who == ours else "", LABELS[who],
                           by_compiler(found[who], lambda row: rounded(row["instructions"])), lost,
                           *(by_compiler(found[who], lambda row, field=field: f"{row[field]:.2f}")
                             for field in ("misses", "mispredictions")))


def counts_tables(rows):
    return [counts_table(rows)]
