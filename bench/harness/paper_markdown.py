"""The tables of docs/paper.md, from a JSON file of bench/run_paper.py."""
from .cases import ACORN, BOOST_COROUTINE, CALLBACK, CLASSIC, COROSENSEI, CPP20, GO
from .markdown import COMPILERS, NOTHING, cell, compiler_of, heading, line, rounded
from .paper_cases import BOOST, CPP20_TASK, CPP23, CSHARP, PAPER, PYTHON


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


def label(impl, what):
    return f"**{impl}**, {what}" if impl == ACORN else f"{impl}, {what}"


def ratio(value):
    return format(value, ".2f") if value else NOTHING


# ---- Each case, beside the paper's ratios ----

CASES = [  # heading, case
    ("sum of a sequence, nanoseconds per element", "sum"),
    ("`write_fully()`, nanoseconds per send", "write_fully"),
    ("`write_fully()`, tasks on two ways, nanoseconds per send", "write_fully_mixed"),
    ("`yield()` of ten coroutines, nanoseconds, the empty loop not subtracted", "yield"),
    ("HTTP client, nanoseconds per request", "http"),
    ("RPC client, nanoseconds per request", "rpc"),
]


def case_table(rows, title, case):
    found = found_rows(rows, case)
    base = next(iter(found.values()), {})
    yield from heading(f"{title}, gcc / clang where both are", "", "ratio to the first row", "the paper's")
    for (impl, what), compilers in found.items():
        if what != "one cycle":
            yield line(label(impl, what), by_compiler(compilers, lambda row: rounded(row["ns"])),
                       by_compiler(compilers, lambda row: ratio(row["ns"] / of_same_compiler(base, row)["ns"])),
                       ratio(PAPER.get((case, impl, what))))


# ---- The paper's claims ----

CPP20_FOR, CALL_BACK = (CPP20, "for loop"), (CALLBACK, "recursion and callback")
PULL_TYPE, OWN_STACK = (BOOST_COROUTINE, "pull_type"), (ACORN, "own-stack generator")
SCHEDULER, SENSEI = (ACORN, "scheduler"), (COROSENSEI, "Coroutine, resumed in turn")
RING, RING_RET = (CLASSIC, "next of the ring"), (CLASSIC, "next of the ring, by ret")
INLINE, HELPED = (ACORN, "inline switch"), (ACORN, "inline switch and helper")
LTO, HELPED_LTO = (ACORN, "inline switch, LTO"), (ACORN, "inline switch and helper, LTO")
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
    ("yield", ("plain ring", "small"), ("plain ring", "classic"), None),
    *((case, of, to, said) for case, helped in (("http", 1.112 / 1.188), ("rpc", 1.262 / 1.452)) for of, to, said in (
        (INLINE, RING, None), (HELPED, RING, None), (INLINE, RING_RET, None), (HELPED, INLINE, helped),
        (HELPED_LTO, LTO, None))),
    *((f"{case}_counted", HELPED, INLINE, None) for case in ("http", "rpc")),
]
CASE_NAMES = {"hanoi": "Hanoi(20)", "write_fully": "`write_fully()`", "write_fully_mixed": "`write_fully()`, two ways",
              "yield": "`yield()`", "http": "HTTP", "rpc": "RPC", "http_counted": "HTTP, instructions",
              "rpc_counted": "RPC, instructions"}


def claim_cell(of, to, field):
    """The ratio by each compiler that has both, or by each of `of` if `to` has only one."""
    return by_compiler({name: row for name, row in of.items() if name in to or len(to) == 1},
                       lambda row: ratio(row[field] / of_same_compiler(to, row)[field]))


def claims_table(rows):
    rows = [row for row in rows if row.get("params", {}).get("discs", 20) == 20]
    yield from heading("ratio, gcc / clang where both are", "medians", "minima", "the paper's")
    for case, of, to, said in CLAIMS:
        found = found_rows(rows, case)
        if of not in found or to not in found:
            continue
        counted = case.endswith("_counted")
        said = said or (PAPER.get((case, *of)) if to == next(iter(found)) else None)
        yield line(f"{CASE_NAMES.get(case, case)}: {label(*of)}, to: {label(*to)}",
                   claim_cell(found[of], found[to], "instructions" if counted else "ns"),
                   NOTHING if counted else claim_cell(found[of], found[to], "min"), ratio(said))


# ---- Hanoi by discs, and what cachegrind counted ----

LANGUAGE_BASES = {"go": (GO, "recursion and callback, Go", "go"),
                  "python": (PYTHON, "recursion and callback, Python", "python"),
                  "mono": (CSHARP, "recursion and callback, C#", "mono"), "rustc": (*CALL_BACK, "gcc")}


def hanoi_table(rows):
    towers = {}
    for row in rows:
        if row.get("case") == "hanoi" and "missing" not in row:
            key = row["impl"], row["params"]["what"], compiler_of(row)
            towers.setdefault(row["params"]["discs"], {})[key] = row["ns"]
    discs = [n for n in (1, 4, 8, 12, 16, 20) if n in towers]
    yield from heading("Hanoi, time relative to recursion and callback in the same language (Rust: in C)", "compiler",
                       *map(str, discs))
    for key in towers[discs[-1]] if discs else ():
        impl, what, compiler = key
        base = LANGUAGE_BASES.get(compiler, (*CALL_BACK, compiler))
        if not what.startswith("recursion and callback"):
            yield line(label(impl, what), compiler,
                       *(format(towers[n][key] / towers[n][base], ".1f") if key in towers[n] and base in towers[n]
                         else NOTHING for n in discs))


def counted_table(rows):
    yield from heading("counted by cachegrind, gcc / clang", "instructions", "reads", "of them L1 misses, %")
    for case, unit in (("write_fully", "send"), ("http", "HTTP request"), ("rpc", "RPC request")):
        for (impl, what), found in found_rows(rows, f"{case}_counted").items():
            yield line(f"each {unit}: {label(impl, what)}",
                       *(by_compiler(found, lambda row, field=field: format(row[field], ".0f"))
                         for field in ("instructions", "reads")),
                       by_compiler(found, lambda row: format(100 * row["read_misses"] / row["reads"], ".1f")))


def tables(rows):
    return [claims_table(rows), *(case_table(rows, title, case) for title, case in CASES), hanoi_table(rows),
            counted_table(rows)]
