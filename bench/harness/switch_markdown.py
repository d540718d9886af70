"""The tables of docs/benchmarks.md, and README's few of these numbers, from a JSON file of bench/run.py."""
from .markdown import cell, each, heading, line, numbers, rounded

SWITCH_ROWS = [  # label, impl, form, floating-point environment
    ("**acorn**, inline", "acorn", "inline", "shared FP"),
    ("**acorn**, inline, each its own FP environment", "acorn", "inline", "own FP"),
    ("**acorn**, exported functions", "acorn", "exported", "shared FP"),
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
    ("yield 4 calls deep", "nested", {"depth": 4}),
]
GENERATOR_ROWS = [  # label, impl, the lines' names in the cases
    ("**acorn**, own-stack generator", "acorn", ("own-stack generator",)),
    ("**acorn**, in-stack generator", "acorn", ("in-stack generator",)),
    ("a function that calls back", "callback", ("function that calls back", "recursion and callback")),
    ("C++20 generator", "C++20 generator", ("for loop", "a generator for each call")),
    ("corosensei (Rust)", "corosensei", ("Coroutine",)),
    ("Boost.Coroutine2", "Boost.Coroutine2", ("pull_type",)),
]
GENERATOR_COLUMNS = [("sum of a sequence", "generator_sum", {}), ("Hanoi(20), recursive", "generator_hanoi", {})]
TASK_ROWS = [
    ("**acorn**", "acorn", ("aco_task_yield", "unbuffered channels", "aco_spawn, aco_join")),
    ("classic full-save switch, next of the ring", "classic switch", ("next of the ring",)),
    ("Boost.Fiber", "Boost.Fiber", ("this_fiber::yield", "unbuffered_channel", "fiber, join")),
    ("Go, GOMAXPROCS=1", "Go", ("runtime.Gosched", "unbuffered channels", "go, WaitGroup")),
    ("tokio, current_thread", "tokio", ("task::yield_now", "mpsc::channel(1)", "spawn, await")),
]
TASK_COLUMNS = [
    ("yield, ring of 10", "scheduler_ring", {"tasks": 10}),
    ("yield, ring of 10 000", "scheduler_ring", {"tasks": 10000}),
    ("yield, ring of 10 000, four live values", "scheduler_ring_live", {"tasks": 10000}),
    ("channel ping-pong", "scheduler_ping_pong", {}),
    ("spawn, run and join", "scheduler_spawn", {"tasks": 1}),
]
MEMORY_ROWS = [  # label, impl, save area
    ("**acorn**, save area of the size needed", "acorn", "fit"),
    ("**acorn**, default save area", "acorn", "default"),
    ("block and save area from malloc, classic switch", "malloc_blocks", "fit"),
]


SUMMARY = [  # label, case, parameters, (label, impl, more parameters) of each contender
    ("a resume and yield, 64 coroutines in turn", "flat", {"coroutines": 64, "order": "round robin"},
     [("Acorn", "acorn", {"form": "inline", "fp": "shared FP"}), ("corosensei", "corosensei", {}),
      ("C++20", "C++20 generator", {})]),
    ("the same, each its own floating-point environment", "flat", {"coroutines": 64, "order": "round robin"},
     [("Acorn", "acorn", {"form": "inline", "fp": "own FP"}), ("Boost.Context", "Boost.Context fiber", {}),
      ("ucontext", "ucontext", {})]),
    ("a yield to the next of 10 000 tasks", "scheduler_ring", {"tasks": 10000},
     [("Acorn", "acorn", {"what": "aco_task_yield"}), ("tokio", "tokio", {}), ("Boost.Fiber", "Boost.Fiber", {}),
      ("Go", "Go", {})]),
    ("spawn, run and join one task", "scheduler_spawn", {"tasks": 1},
     [("Acorn", "acorn", {"what": "aco_spawn, aco_join"}), ("tokio", "tokio", {}), ("Boost.Fiber", "Boost.Fiber", {}),
      ("Go", "Go", {})]),
]


CHINESE = {
    "nanoseconds, gcc": "纳秒，gcc",
    "others": "其他",
    "a resume and yield, 64 coroutines in turn": "一次 resume 加 yield，64 个协程轮流",
    "a yield to the next of 10 000 tasks": "yield 到下一个任务，共一万个",
    "spawn, run and join one task": "创建、运行并 join 一个任务",
    "the same, each its own floating-point environment": "同上，各有自己的浮点环境",
}


def summary(rows, words=None):
    def say(text):
        return words[text] if words else text

    yield from heading(say("nanoseconds, gcc"), "Acorn", say("others"))
    for label, case, wanted, contenders in SUMMARY:
        (_, first), *others = [(name, rounded(numbers(rows, case, impl, {**wanted, **more})[0]))
                               for name, impl, more in contenders]
        yield line(say(label), first, ", ".join(f"{name} {number}" for name, number in others))


def switch_table(rows):
    yield from heading("nanoseconds for one resume and yield, gcc / clang", *(title for title, *_ in SWITCH_COLUMNS))
    for label, impl, form, fp in SWITCH_ROWS:
        kind = {"form": form, "fp": fp} if form else {}
        yield line(label, *(each(rows, case, impl, {**wanted, **kind}) for _, case, wanted in SWITCH_COLUMNS))


def line_table(rows, title, labels, columns):
    yield from heading(title, *(name for name, *_ in columns))
    for label, impl, lines in labels:
        yield line(label, *(each(rows, case, impl, {**wanted, "what": lines}) for _, case, wanted in columns))


def memory_table(rows):
    yield from heading("a million coroutines on one share stack, 96 bytes of locals each, round robin", "ns per resume",
                       "bytes per coroutine")
    for label, impl, save in MEMORY_ROWS:
        case, wanted = "rss_96_live_bytes_1M", {"live": 96, "save": save, "order": "made", "fp": "shared"}
        yield line(label, each(rows, case, impl, wanted),
                   cell(numbers(rows, case, impl, wanted, "bytes"), "{:.0f}".format))


def tables(rows):
    return [switch_table(rows),
            line_table(rows, "nanoseconds per element, gcc / clang", GENERATOR_ROWS, GENERATOR_COLUMNS),
            line_table(rows, "nanoseconds, gcc / clang", TASK_ROWS, TASK_COLUMNS),
            memory_table(rows)]
