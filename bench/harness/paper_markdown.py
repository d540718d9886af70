"""The tables of docs/paper.md, from a JSON file of bench/run_paper.py."""
from .cases import ACORN, BOOST_COROUTINE, BOOST_TASK, CALLBACK, CLASSIC, COROSENSEI, CPP20
from .markdown import COMPILERS, NOTHING, cell, compiler_of, heading, line, rounded
from .paper_cases import BOOST, CPP20_TASK, CPP23, CSHARP, OUT_OF_LINE, PAPER


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
INLINE, HELPED, EXPORTED = (ACORN, "inline switch"), (ACORN, "inline switch and helper"), (ACORN, OUT_OF_LINE)
SCHEDULER_EXPORTED, YIELD_EXPORTED = (ACORN, f"scheduler, {OUT_OF_LINE}"), (ACORN, f"aco_task_yield, {OUT_OF_LINE}")
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
    ("hanoi", (CSHARP, "an iterator for each call, .NET"), (CSHARP, "recursion and callback, C#, .NET"), None),
    *(("write_fully", SCHEDULER, other, None)
      for other in (SCHEDULER_EXPORTED, CPP20_NEW, CPP20_POOL, (CSHARP, "async, a Task for each call, .NET"),
                    (BOOST, "fiber"), SENSEI, RING, RING_RET)),
    *(("write_fully_mixed", SCHEDULER, other, None) for other in (SCHEDULER_EXPORTED, CPP20_NEW, RING, RING_RET)),
    *((case, of, to, said) for case, before, helped in (("http", 1 / 1.112, 1 / 1.188), ("rpc", 1 / 1.262, 1 / 1.452))
      for of, to, said in ((INLINE, EXPORTED, before), (HELPED, EXPORTED, helped), (INLINE, RING, None),
                           (HELPED, RING, None), (INLINE, RING_RET, None), (HELPED, RING_RET, None),
                           (HELPED, INLINE, helped / before))),
    *((f"{case}_counted", HELPED, INLINE, None) for case in ("http", "rpc")),  # in files of before --counts
]
LABELS = {
    (ACORN, "in-stack generator"): "Acorn, in-stack generator", OWN_STACK: "Acorn, generator", SCHEDULER: "Acorn",
    INLINE: "Acorn", HELPED: "Acorn with the helper", (ACORN, "aco_task_yield"): "Acorn", CPP20_FOR: "C++20, `for`",
    **dict.fromkeys((EXPORTED, SCHEDULER_EXPORTED, YIELD_EXPORTED), "Acorn out of line"),
    YIELD_CALL: "Acorn, `aco_task_yield_call()`",
    **{(CSHARP, what): f"C# (.NET), {label}" for what, label in (
        ("an iterator for each call, .NET", "iterators"), ("recursion and callback, C#, .NET", "callback"),
        ("async, a Task for each call, .NET", "`async`"))},
    (CPP20, "while loop"): "C++20, `while`", (CPP20, "a generator for each call"): "C++20",
    (CPP23, "std::generator, elements_of"): "`std::generator`", CALL_BACK: "callback", PULL_TYPE: "Boost",
    CPP20_NEW: "C++20", CPP20_POOL: "C++20, pooled frames", (BOOST, "fiber"): "Boost", SENSEI: "corosensei",
    RING: "classic", RING_RET: "classic, by ret", ("plain ring", "classic"): "classic ring",
    ("plain ring", "classic, by ret"): "classic ring, by ret",
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


# ---- Figures 1 and 15: steps, each with one change more than the one before ----

def step_rows(found, steps, texts, said):
    """A line for each (impl, what) of `steps` that was measured; texts(row) are its cells, said(step) is the last."""
    for step, label in steps:
        if step in found:
            by = found[step]
            columns = zip(*(texts(by[name]) for name in dict.fromkeys([*COMPILERS, *by]) if name in by))
            yield line(label, *(cell(column, str) for column in columns), said(step))


BREAKDOWN = (
    (CPP20_FOR, "C++20, `for`"), ((BOOST_COROUTINE, "assertions"), "Boost.Coroutine2, with its assertions"),
    ((BOOST_COROUTINE, "no assertions"), "without them"), ((BOOST_COROUTINE, "-O3"), "by `-O3`"),
    ((BOOST_COROUTINE, "all calls inline"), "all its calls in place"),
    ((BOOST, "fiber, without Boost.Coroutine2"), "Boost.Context itself"), (OWN_STACK, "Acorn, generator"),
    ((ACORN, "in-stack generator"), "Acorn, in-stack generator"))


def breakdown_table(rows):
    found = found_rows(rows, "breakdown")
    base = found.get(CPP20_FOR)
    if not base:
        return

    def texts(row):
        return rounded(row["ns"]), ratio(row["ns"] / of_same_compiler(base, row)["ns"])

    yield from heading("sum of a sequence, an element (fig. 1)", "ns, gcc / clang", "to C++20", "the paper's")
    yield from step_rows(found, BREAKDOWN, texts, lambda step: ratio(PAPER.get(("breakdown", *step))))


PLAIN_RING = "plain ring"
STEPS_OF_YIELD = (
    ((PLAIN_RING, "classic"), "a function that calls the classic switch"),
    ((PLAIN_RING, "classic, by ret"), "the classic switch that returns by `ret`"),
    ((PLAIN_RING, "inline"), "the first's switch in place in that function"),
    ((PLAIN_RING, "tail"), "it ends in the other task's caller"), ((PLAIN_RING, "preserve_none"), "`preserve_none`"),
    ((PLAIN_RING, "coloured"), "stacks that begin at different places"), ((PLAIN_RING, "small"), "small stacks"),
    (YIELD_EXPORTED, "**acorn**, `aco_task_yield()` out of line"), (YIELD_CALL, "**acorn**, `aco_task_yield_call()`"),
    ((ACORN, "aco_task_yield"), "**acorn**, `aco_task_yield()`"),
    ((ACORN, "aco_task_yield, 4 KiB stacks"), "the same, small stacks"))
PAPERS_YIELD = {"classic": "8.97 ns", "small": "1.52 ns, 3.34 cycles"}


def yield_table(rows):
    """Less the empty loop, as in the paper."""
    found = found_rows(rows, "yield")
    loop, first = (found.get(which) for which in (("processor", "an empty loop"), (PLAIN_RING, "classic")))
    if not (loop and first):
        return

    def less(row):
        return row["ns"] - of_same_compiler(loop, row)["ns"]

    def texts(row):
        return (f"{less(row):.2f}", f"{row['cycles']:.1f}" if row.get("cycles") else NOTHING,
                ratio(less(row) / less(of_same_compiler(first, row))))

    yield from heading("a yield of ten, less the empty loop (fig. 15)", "ns, gcc / clang", "cycles", "to the first",
                       "the paper's")
    yield from step_rows(found, STEPS_OF_YIELD, texts, lambda step: PAPERS_YIELD.get(step[1], NOTHING))


def tables(rows):
    return [table for table in (list(claims_table(rows)), list(breakdown_table(rows)), list(yield_table(rows)))
            if table]


# ---- What cachegrind counted: case -> Acorn's row, and the contenders ----

COUNTED = {
    "breakdown": (OWN_STACK, (CPP20_FOR, *(step for step, _ in BREAKDOWN[1:6]), (ACORN, "in-stack generator"))),
    "hanoi": (OWN_STACK, (CALL_BACK, PULL_TYPE, (CPP20, "a generator for each call"),
                          (CPP23, "std::generator, elements_of"), (COROSENSEI, "Coroutine"))),
    "write_fully": (SCHEDULER, (SCHEDULER_EXPORTED, CPP20_NEW, CPP20_POOL, RING, RING_RET, (BOOST, "fiber"), SENSEI)),
    "yield": ((ACORN, "aco_task_yield"),
              (YIELD_EXPORTED, (PLAIN_RING, "classic"), (PLAIN_RING, "classic, by ret"), (PLAIN_RING, "small"),
               (BOOST_TASK, "this_fiber::yield"), SENSEI)),
    **{case: (INLINE, (EXPORTED, HELPED, RING, RING_RET, (BOOST, "fiber"), SENSEI)) for case in ("http", "rpc")},
}
COUNTED_LABELS = {step: label for step, label in BREAKDOWN[1:6]}
COUNTED_NAMES = {"breakdown": "sum, an element",
                 "hanoi": "Hanoi(16), a move", "write_fully": "`write_fully()`, a send", "yield": "`yield()`",
                 "http": "HTTP, a request", "rpc": "RPC, a request"}


def counts_table(rows):
    """A row for each contender; Acorn's own first."""
    yield from heading("each, gcc / clang", "", "instructions", "Acorn's to these", "L1 misses", "mispredictions")
    for case, (ours, others) in COUNTED.items():
        found = found_rows(rows, f"{case}_counted")
        for who in (ours, *others):
            if who in found:
                lost = "–" if who == ours else claim_cell(found[ours], found[who], "instructions")
                yield line(COUNTED_NAMES[case] if who == ours else "", LABELS.get(who) or COUNTED_LABELS[who],
                           by_compiler(found[who], lambda row: rounded(row["instructions"])), lost,
                           *(by_compiler(found[who], lambda row, field=field: f"{row[field]:.2f}")
                             for field in ("misses", "mispredictions")))


def counts_tables(rows):
    return [counts_table(rows)]
