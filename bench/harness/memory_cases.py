"""The cases of bench/run_memory.py: command lines of its programs, and who takes part."""
from .programs import BOTH, Program, build_compilers, go_program, why_missing

ACORN, ENTRY, PRIVATE, BARE, TASKS = "acorn", "acorn, ACO_ENTRY", "acorn, private", "bare pages", "acorn, tasks"
SHARED = "acorn, share stack"
GLIBC, TCMALLOC, JEMALLOC = (f"malloc blocks, {allocator}" for allocator in ("glibc", "tcmalloc", "jemalloc"))
CPP20, BOOST, GO = "C++20 coroutine", "Boost.Context fiber", "Go"
PROGRAMS = {  # impl -> program, compilers that build it, what else its build needs
    ACORN: ("scale-acorn", BOTH, None),
    ENTRY: ("scale-acorn-entry", BOTH, None),
    PRIVATE: ("scale-private", ("gcc",), None),
    TASKS: ("scale-tasks", ("gcc",), None),
    GLIBC: ("scale-malloc-glibc", BOTH, None),
    TCMALLOC: ("scale-malloc-tcmalloc", ("gcc",), "libgoogle-perftools-dev"),
    JEMALLOC: ("scale-malloc-jemalloc", ("gcc",), "libjemalloc-dev"),
    CPP20: ("scale-cpp20", BOTH, None),
    BOOST: ("scale-boost", ("gcc",), "libboost-context-dev"),
}
MOST = {BOOST: 100_000, GO: 1_000_000}  # coroutines
GROUPS = ("count", "areas", "copying", "private", "churn", "tasks")
COUNTED = (ACORN, ENTRY, GLIBC, TCMALLOC, JEMALLOC, CPP20, BOOST, GO)
COPIED = (ACORN, ENTRY, GLIBC, CPP20, GO)
CHURNED = (ACORN, ENTRY, GLIBC, TCMALLOC, JEMALLOC, CPP20)
AREAS, AREAS_NUMBER = ("default", "in_turn"), 1_000_000  # save_stack_sz 0
LIVE, LIVES, COPY_NUMBER = 96, (8, 40, 104, 232, 488, 1000, 4000), 100_000
KIB = 1024
PRIVATES = ((1_000, 64 * KIB), (100_000, 64 * KIB), (1_000_000, 64 * KIB), (100_000, 16 * KIB), (100_000, 256 * KIB))
FALLBACK_NUMBER, TRIM_NUMBER = 100_000, 10_000
TASK_NUMBERS, TASK_KINDS = (10_000, 100_000, 1_000_000), ("private", "shared")
CHURN_NUMBER, CHURN_PRIVATE = 1_000_000, 100_000


def found_programs(impls, builds):
    """The C and C++ programs of `impls`, built or missing; `builds` as build_compilers() returns it."""
    programs = []
    for name, (compiler, directory, failure) in builds.items():
        for impl in impls:
            program, builders, needs = PROGRAMS[impl]
            if name in builders:
                path = directory / "bench" / program
                programs.append(Program(impl, compiler, path, None, why_missing(failure, path, needs)))
    return programs


def build(directory):
    """All programs, built or missing."""
    return [*found_programs(PROGRAMS, build_compilers(directory)), go_program(directory / "memory-go", "./memory")]


def counts(most):
    powers = [10 ** k for k in range(3, 9) if 10 ** k <= most]
    return powers if most in powers else [*powers, most]


class Group:
    """Command lines; each has its programs."""

    def __init__(self, name):
        self.name, self.cases = name, []

    def add(self, programs, impls, *arguments, number=0):
        chosen = [program for program in programs
                  if program.impl in impls and number <= MOST.get(program.impl, number)]
        self.cases.append(([str(argument) for argument in arguments], number, chosen))


def groups(programs, most, quick):
    count, areas, copying, private, churn, tasks = map(Group, GROUPS)
    for n in counts(most):
        count.add(programs, COUNTED, "count", n, LIVE, number=n)
    n = min(AREAS_NUMBER, most)
    for area in AREAS:
        areas.add(programs, (ACORN, ENTRY), "count", n, LIVE, area, number=n)
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
    for n in TASK_NUMBERS:
        for kind in TASK_KINDS if n <= most else ():
            for what in ("sleep", "frame"):
                tasks.add(programs, (TASKS,), what, n, kind)
    return [count, areas, copying, private, churn, tasks]
