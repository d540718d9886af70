"""The tables of bench/run_memory.py, and its goals."""
from .goals import MET, MISSED, Judgement, judged
from .memory_cases import ACORN, AREAS, AREAS_NUMBER, BARE, COUNTED, ENTRY, FALLBACK_NUMBER, GLIBC, KIB, LIVE, LIVES, \
    PRIVATE, PRIVATES, SHARED, TRIM_NUMBER
from .tables import number, print_columns, print_missing


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
        """(impl, compiler) of each measured contender, those of COUNTED first."""
        pairs = {(item["impl"], item["params"]["compiler"]) for item in self.items
                 if item["case"] in cases and "missing" not in item}
        order = [*COUNTED, PRIVATE, SHARED, BARE]
        return sorted(pairs, key=lambda pair: (order.index(pair[0]), pair[1].startswith("clang"), pair[1]))

    def values(self, case, param, **fixed):
        return sorted({item["params"][param] for item in self.items if item["case"] == case and "missing" not in item
                       and all(item["params"].get(key) == value for key, value in fixed.items())})


def shown(value):
    return "-" if value is None else number(value)


def thousands(n):
    return f"{n // 1_000_000}M" if n and n % 1_000_000 == 0 else f"{n // 1000}k" if n and n % 1000 == 0 else str(n)


STEPS = (("create", "create"), ("first_resume", "first resume"), ("round_robin", "resume, round robin"),
         ("random", "resume, random order"),
         ("random_prefetch", "resume, random order, aco_prefetch() 8 ahead"), ("destroy", "destroy"))


# ---- By number, and by bytes of locals ----

def print_by(table, title, case, field, param, values, form, **fixed):
    """One row for each contender, one column for each of `values`."""
    rows = [("implementation", "compiler", *map(form, values))]
    for impl, compiler in table.contenders(case):
        numbers = [table.get(case, impl, compiler, field, **{param: value}, **fixed) for value in values]
        if any(n is not None for n in numbers):
            rows.append((impl, compiler, *map(shown, numbers)))
    if len(rows) > 1:
        print(f"\n{title}")
        print_columns(rows, 2)


def print_count(table):
    ns = table.values("scale_create", "n", live=LIVE)
    print(f"\nBy the number of coroutines, {LIVE} bytes of locals in the entry function of each")
    print_by(table, "bytes per coroutine, resident", "scale_create", "bytes", "n", ns, thousands, live=LIVE)
    for step, title in STEPS:
        print_by(table, f"ns, {title}", f"scale_{step}", "ns", "n", ns, thousands, live=LIVE)


def print_copying(table):
    lives = [live for live in table.values("scale_create", "live") if live in LIVES]
    if not lives:
        return
    n = max(table.values("scale_create", "n", live=lives[0]))
    print(f"\nBy bytes of locals, {n} coroutines; those of C++20 and Go stay where they are")
    print_by(table, "bytes per coroutine, resident", "scale_create", "bytes", "live", lives, str, n=n)
    for step, title in STEPS:
        if step in ("round_robin", "random", "random_prefetch"):
            more = "; from 200 bytes on aco_prefetch_stack() 4 ahead" if step == "random_prefetch" else ""
            print_by(table, f"ns, {title}{more}", f"scale_{step}", "ns", "live", lives, str, n=n)


# ---- Save areas without a given size ----

AREA_NAMES = {"default": "made before the first resume", "in_turn": "each resumed before the next is made"}


def print_areas(table):
    print(f"\nSave areas without a given size, {LIVE} bytes of locals; ratio: to areas of the size that fits, "
          "by the number")
    rows = [("order", "implementation", "compiler", "number", "bytes each", "ns, round robin", "ratio", "ns, random",
             "ratio", "prefetched twice")]
    for area in AREAS:
        for impl, compiler in table.contenders("areas_create"):
            for n in table.values("areas_create", "n"):
                fixed = {"n": n, "live": LIVE}
                row = [AREA_NAMES[area], impl, compiler, thousands(n),
                       shown(table.get("areas_create", impl, compiler, "bytes", area=area, **fixed))]
                for step in ("round_robin", "random"):
                    ns = table.get(f"areas_{step}", impl, compiler, area=area, **fixed)
                    fit = table.get(f"scale_{step}", impl, compiler, **fixed)
                    row += [shown(ns), f"{ns / fit:.2f}" if ns and fit else "-"]
                rows.append((*row, shown(table.get("areas_random_prefetch", impl, compiler, area=area, **fixed))))
    print_columns(rows, 4)


# ---- Private stacks ----

def print_private_steps(table):
    rows = [("implementation", "stacks", "KiB", "create", "first", "in turn", "random", "prefetched", "destroy", "RSS",
             "tables", "maps/region")]
    for impl, _ in table.contenders("private_create"):
        for n, sz in PRIVATES:
            fixed = {"n": n, "stack": sz}
            times = [table.get(f"private_{step}", impl, **fixed) for step, _ in STEPS]
            if times[0] is not None:
                rows.append((impl, thousands(n), str(sz // KIB), *map(shown, times),
                             shown(table.get("private_create", impl, field="bytes", **fixed)),
                             shown(table.get("private_kernel", impl, field="bytes", **fixed)),
                             shown(table.get("private_kernel", impl, field="mappings", **fixed))))
    print("\nPrivate stacks, each suspended one call deep: ns by step; bytes resident and in page tables, of each; "
          "mappings by the region.\n"
          "Prefetched: random order, aco_prefetch() 8 and aco_prefetch_stack() 4 ahead. Bare pages: no coroutines; "
          "create is the guard, first the touch,\n"
          "destroy the unmapping")
    print_columns(rows, 1)


def print_private_fallback(table):
    print(f"\nWithout guards in page tables, {FALLBACK_NUMBER} stacks asked for")
    rows = [("flags", "made", "guarded", "ns each", "errno", "message")]
    rows += [(item["params"]["flags"], str(item["made"]), str(item["guarded"]), shown(item["ns"]), item["errno"] or "-",
              item["message"] or "-")
             for item in table.items if item["case"] == "private_fallback" and "made" in item]
    print_columns(rows, 1)


def print_private_trim(table):
    print(f"\nReclaim, {TRIM_NUMBER} idle stacks of 256 KiB: ns each; "
          "a use is: new, run, touch the pages, return, destroy")
    rows = [("touched pages", "reclaimed", "use, still warm", "aco_pool_trim()", "resident after, bytes",
             "first use after")]
    for pages in (1, 16):
        for how in ("at once", "lazy"):
            fixed = {"pages": pages, "reclaim": how}
            columns = (("private_use_warm", "ns"), ("private_trim", "ns"), ("private_trim", "bytes"),
                       ("private_use_again", "ns"))
            rows.append((str(pages), how, *(shown(table.get(case, PRIVATE, field=field, **fixed))
                                            for case, field in columns)))
    print_columns(rows, 2)


def print_private(table):
    print_private_steps(table)
    print_private_fallback(table)
    print_private_trim(table)


# ---- Churn ----

def print_churn(table):
    print("\nChurn: a random one is destroyed, another one made, with one of three numbers of bytes of locals "
          "(40, 104, 488), and resumed")
    rows = [("implementation", "compiler", "alive", "steps", "ns to make", "bytes then", "ns a step",
             "bytes at the end")]
    columns = (("churn_fill", "ns"), ("churn_fill", "bytes"), ("churn", "ns"), ("churn", "bytes"))
    for impl, compiler in table.contenders("churn"):
        for n in table.values("churn", "n"):
            if table.get("churn", impl, compiler, n=n) is not None:
                rows.append((impl, compiler, thousands(n), thousands(5 * n),
                             *(shown(table.get(case, impl, compiler, field, n=n)) for case, field in columns)))
    print_columns(rows, 2)


# ---- Tasks ----

def print_tasks(table):
    print("\nTasks: bytes of each that sleeps, the frames among them; bytes and ns of one that waits for each frame")
    rows = [("implementation", "compiler", "number", "bytes, asleep", "of them frames", "bytes, entity", "ns a frame")]
    columns = (("tasks_sleep", "bytes"), ("tasks_live", "bytes"), ("tasks_frame", "bytes"), ("tasks_frame", "ns"))
    for impl, compiler in table.contenders("tasks_frame"):
        for n in table.values("tasks_frame", "n"):
            rows.append((impl, compiler, thousands(n),
                         *(shown(table.get(case, impl, compiler, field, n=n)) for case, field in columns)))
    print_columns(rows, 2)


PRINTERS = {"count": print_count, "areas": print_areas, "copying": print_copying, "private": print_private,
            "churn": print_churn, "tasks": print_tasks}


def print_absent(programs, items):
    """What was not built, and what could not be measured."""
    print_missing(programs)
    said = {}
    for item in items:
        if "missing" in item:
            said.setdefault(item["missing"], []).append(f"{item['impl']} ({item['params']['compiler']})")
    for reason, who in said.items():
        print(f"\nmissing: {'; '.join(dict.fromkeys(who))}: {reason}")


# ---- Goals: each is for one number of coroutines; a run with another is not judged ----

GOAL, GOAL_PRIVATE = 10_000_000, 1_000_000
MOST_BYTES = {ACORN: 276, ENTRY: 228}
RATIOS = (("round_robin", "round robin", 0.50), ("random", "random", 0.30),
          ("random_prefetch", "random, aco_prefetch 8 ahead", 0.15), ("create", "create", 0.25),
          ("destroy", "destroy", 0.25))
MOST_PRIVATE = (("private_kernel", "mappings", "mappings by the region", 1),
                ("private_create", "bytes", "bytes resident each", 4.3 * KIB),
                ("private_create", "ns", "ns to create each", 3000))


def count_rows(table):
    ns = table.values("scale_create", "n", live=LIVE)
    if not ns:
        return []
    n, rows = max(ns), []
    note = thousands(n) if n == GOAL else f"{thousands(n)} (the number is for {thousands(GOAL)})"
    ours = [(impl, compiler) for impl, compiler in table.contenders("scale_create") if impl in MOST_BYTES]
    for impl, compiler in ours:
        each = table.get("scale_create", impl, compiler, "bytes", n=n, live=LIVE)
        rows.append(judged(note, f"{impl}, bytes each", each, MOST_BYTES[impl], compiler=compiler,
                           form="{:.0f}".format, is_judged=n == GOAL))
    for step, what, limit in RATIOS:
        base_step = "random" if step == "random_prefetch" else step
        for impl, compiler in ours:
            ns = table.get(f"scale_{step}", impl, compiler, n=n, live=LIVE)
            base = table.get(f"scale_{base_step}", GLIBC, compiler, n=n, live=LIVE)
            rows.append(judged(note, f"{impl}, {what}", ns / base if ns and base else None, limit, GLIBC, compiler,
                               is_judged=n == GOAL))
    return rows


def areas_rows(table):
    rows = []
    for n in table.values("areas_create", "n"):
        note = f"{thousands(n)}, no size given"
        for impl, compiler in table.contenders("areas_create"):
            for area in AREAS:
                fixed = {"n": n, "live": LIVE}
                each = table.get("areas_create", impl, compiler, "bytes", area=area, **fixed)
                rows.append(judged(note, f"{impl}, {area}, bytes each", each, MOST_BYTES[impl], compiler=compiler,
                                   form="{:.0f}".format, is_judged=n == AREAS_NUMBER))
                for step in ("round_robin", "random"):
                    ns = table.get(f"areas_{step}", impl, compiler, area=area, **fixed)
                    fit = table.get(f"scale_{step}", impl, compiler, **fixed)
                    rows.append(judged(note, f"{impl}, {area}, {step}", ns / fit if ns and fit else None, 1.0,
                                       "areas that fit", compiler, is_judged=n == AREAS_NUMBER))
    return rows


def private_rows(table):
    sz = 64 * KIB
    ns = [n for n, stack in PRIVATES if stack == sz and table.get("private_create", PRIVATE, n=n, stack=sz) is not None]
    if not ns:
        return []
    n = max(ns)
    note = f"{thousands(n)} private stacks" + ("" if n == GOAL_PRIVATE else
                                               f" (the number is for {thousands(GOAL_PRIVATE)})")
    compiler = table.contenders("private_kernel")[0][1]
    return [judged(note, what, table.get(case, PRIVATE, field=field, n=n, stack=sz), limit, compiler=compiler,
                   form=shown, is_judged=n == GOAL_PRIVATE)
            for case, field, what, limit in MOST_PRIVATE]


def fallback_rows(table):
    rows = []
    for item in table.items:
        if item["case"] == "private_fallback" and "made" in item:
            works = item["made"] == item["params"]["n"]
            refuses = item["errno"] == "EAGAIN" and "vm.max_map_count" in item["message"]
            rows.append(Judgement(f"{thousands(item['params']['n'])} private stacks, {item['params']['flags']}",
                                  "works, or refuses and says why", "", item["params"]["compiler"],
                                  "works" if works else f"refuses at {item['made']}", "-",
                                  MET if works or refuses else MISSED))
    return rows


def goal_rows(table):
    return count_rows(table) + areas_rows(table) + private_rows(table) + fallback_rows(table)
