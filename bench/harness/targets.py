"""The goals of bench/run.py and bench/run_paper.py: limits of ratios and sizes."""
import json
import statistics

from .cases import ACORN, CLASSIC, COROSENSEI, EIGHT, NESTED, ONE, SIXTY_FOUR
from .goals import judged
from .programs import EXPORTED, INLINE, OWN, SHARED
from .ratios import matrix_ratio, native_ratio

MATRIX = [  # case, form, fp, yardstick, at most
    *((case, INLINE, SHARED, CLASSIC, 0.65) for case in (ONE, EIGHT, SIXTY_FOUR)),
    (ONE, INLINE, SHARED, COROSENSEI, 1.15),
    *((case, INLINE, SHARED, COROSENSEI, 1.00) for case in (EIGHT, SIXTY_FOUR)),
    (ONE, INLINE, OWN, CLASSIC, 1.30),
    (SIXTY_FOUR, INLINE, OWN, CLASSIC, 1.30),
    (ONE, EXPORTED, OWN, CLASSIC, 1.30),
    (ONE, EXPORTED, SHARED, CLASSIC, 1.20),
    (NESTED[4], EXPORTED, OWN, CLASSIC, 1.00),
    (NESTED[4], EXPORTED, SHARED, CLASSIC, 1.00),
]
COPY_CASE, MEMORY_CASE, SCATTERED = "copy_100_bytes_1M", "rss_96_live_bytes_1M", "malloc_blocks"
COPY_LIMIT, MOST_BYTES = 0.60, {MEMORY_CASE: 280, "rss_asleep_1M": 200}


def matrix_rows(results, programs, cases):
    return [judged(case.title, f"{form}, {fp}", matrix_ratio(results, case, program, yardstick), limit, yardstick,
                   program.compiler)
            for case, form, fp, yardstick, limit in MATRIX if case in cases
            for program in programs if program.impl == ACORN and program.params == {"form": form, "fp": fp}]


def native_rows(results, cases):
    rows = []
    for case in cases:
        base = case.bases[0] if case.programs else None
        for program in case.programs or ():
            limit, most = program.line.limit_for(program.compiler), program.line.most_ns
            form = case.title, ", ".join(program.params.values())
            if limit is not None:
                rows.append(judged(*form, native_ratio(results, case, program), limit,
                                   base.what if base.impl == ACORN else base.impl, program.compiler))
            if most is not None:
                ns = results.samples.get((case, program))
                rows.append(judged(*form, statistics.median(ns) if ns else None, most, compiler=program.compiler,
                                   form="{:.1f} ns".format))
    return rows


def same_work(item):
    """The same for measurements of the same work. The number of copied bytes differs between contenders."""
    return json.dumps({name: value for name, value in item["params"].items() if name != "copied"}, sort_keys=True)


def copying_rows(items):
    """What bench/memory.h and bench/memory_await.cpp measure."""
    rows = []
    scattered = {same_work(item): item["ns"] for item in items
                 if item["case"] == COPY_CASE and item["impl"] == SCATTERED and "ns" in item}
    for item in items:
        if item["impl"] != ACORN or "missing" in item or item["case"] not in (COPY_CASE, *MOST_BYTES):
            continue
        params = item["params"]
        form = ", ".join(f"{name} {params[name]}" for name in ("live", "save", "order", "fp", "what") if name in params)
        if item["case"] in MOST_BYTES:
            rows.append(judged(item["case"], f"{form}, bytes per coroutine", item["bytes"], MOST_BYTES[item["case"]],
                               compiler=params["compiler"], form="{:.0f}".format))
        elif same_work(item) in scattered:
            rows.append(judged(item["case"], form, item["ns"] / scattered[same_work(item)], COPY_LIMIT, SCATTERED,
                               params["compiler"]))
    return rows
