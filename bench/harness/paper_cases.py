"""The experiments of "Stackful Coroutine Made Fast" as cases, and the ratios that the paper states.

A line's limit is of its ratio to the case's first line."""
from .cases import ACORN, BOOST_COROUTINE, BOOST_TASK, CALLBACK, CLASSIC, COROSENSEI, CPP20, ELEMENTS, GO, TOKIO, \
    Line, NativeCase, in_cycles

CPP20_TASK, CPP23, BOOST, PYTHON, CSHARP = "C++20 coroutine", "C++23 generator", "Boost.Context", "Python", "C#"
OUT_OF_LINE = "the library's exported functions"  # ACO_CONFIG_NO_INLINE: the same library, as it was before the paper
DISCS = range(1, 21)
SENDS = 10 * 125000  # ten tasks, 100 MB each, 800 bytes at once
REQUESTS = 400


def sum_of_sequence():
    n = ELEMENTS
    return NativeCase("sum", "sum of a sequence (fig. 1, 12)",
                      Line("for loop", "generators", "sequence_for", n, impl=CPP20),
                      Line("while loop", "generators", "sequence_while", n, impl=CPP20),
                      Line("std::generator, for loop", "generators", "sequence23_for", n, impl=CPP23),
                      Line("std::generator, while loop", "generators", "sequence23_while", n, impl=CPP23),
                      Line("in-stack generator", "generator", "sequence_in_stack", n),
                      Line("own-stack generator", "generator", "sequence", n),
                      Line("function that calls back", "generator", "sequence_call", n, impl=CALLBACK),
                      Line("pull_type", "boost_generators", "sequence", n, impl=BOOST_COROUTINE),
                      Line("Coroutine", "corosensei", "sequence", n, impl=COROSENSEI),
                      Line("iter.Pull", "pull", "sequence", n, impl=GO),
                      Line("generator", "python", "sequence", n, impl=PYTHON),
                      Line("iterator", "csharp", "sequence", n, impl=CSHARP),
                      Line("iterator, .NET", "dotnet", "sequence", n, impl=CSHARP), params={"elements": n})


def breakdown():
    """Each line has one change more than the one before."""
    n = ELEMENTS
    return NativeCase("breakdown", "the cost of Boost's coroutine: sum of a sequence, step by step (fig. 1)",
                      Line("for loop", "generators", "sequence_for", n, impl=CPP20),
                      Line("assertions", "boost_generators-asserting", "sequence", n, impl=BOOST_COROUTINE),
                      Line("no assertions", "boost_generators", "sequence", n, impl=BOOST_COROUTINE),
                      Line("-O3", "boost_generators-O3", "sequence", n, impl=BOOST_COROUTINE),
                      Line("all calls inline", "boost_generators-flat", "sequence", n, impl=BOOST_COROUTINE),
                      Line("fiber, without Boost.Coroutine2", "boost_direct", "sequence", n, impl=BOOST),
                      Line("own-stack generator", "generator", "sequence", n),
                      Line("in-stack generator", "generator", "sequence_in_stack", n), params={"elements": n})


def hanoi(discs):
    n = 2 ** discs - 1
    case = NativeCase("hanoi", f"Hanoi({discs}) (fig. 5, 13)",
                      Line("recursion and callback", "generator", "hanoi_call", n, impl=CALLBACK),
                      Line("in-stack generator", "generator", "hanoi_in_stack", n),
                      Line("own-stack generator", "generator", "hanoi", n),
                      Line("pull_type", "boost_generators", "hanoi", n, impl=BOOST_COROUTINE),
                      Line("a generator for each call", "generators", "hanoi", n, impl=CPP20),
                      Line("std::generator, elements_of", "generators", "hanoi23", n, impl=CPP23),
                      Line("Coroutine", "corosensei", "hanoi", n, impl=COROSENSEI),
                      Line("iter.Pull", "pull", "hanoi", n, impl=GO),
                      Line("generator, yield from", "python", "hanoi", n, impl=PYTHON),
                      Line("an iterator for each call", "csharp", "hanoi", n, impl=CSHARP),
                      Line("an iterator for each call, .NET", "dotnet", "hanoi", n, impl=CSHARP),
                      Line("recursion and callback, Go", "pull", "hanoi_call", n, impl=GO),
                      Line("recursion and callback, Python", "python", "hanoi_call", n, impl=PYTHON),
                      Line("recursion and callback, C#", "csharp", "hanoi_call", n, impl=CSHARP),
                      Line("recursion and callback, C#, .NET", "dotnet", "hanoi_call", n, impl=CSHARP),
                      params={"discs": discs})
    case.language_bases = {line.program: line for line in case.lines[-4:]}
    return case


WRITE_FULLY = NativeCase(
    "write_fully", "write_fully(): ten tasks send 100 MB each, 800 bytes at once (fig. 6, 14); ns for each send",
    Line("a task for each call, operator new", "write_fully_cpp20", "write_fully", SENDS, impl=CPP20_TASK),
    Line("a task for each call, pooled frames", "write_fully_cpp20", "write_fully_pool", SENDS, impl=CPP20_TASK),
    Line("scheduler", "write_fully", "write_fully", SENDS, limit=0.50),
    Line(f"scheduler, {OUT_OF_LINE}", "write_fully_exported", "write_fully", SENDS),
    Line("scheduler, ACO_SWITCHING_RETURNS", "write_fully_returns", "write_fully", SENDS),
    Line("next of the ring", "write_fully_classic", "write_fully", SENDS, impl=CLASSIC),
    Line("next of the ring, by ret", "write_fully_classic_ret", "write_fully", SENDS, impl=CLASSIC),
    Line("fiber", "write_fully_boost", "write_fully", SENDS, impl=BOOST),
    Line("Coroutine, resumed in turn", "corosensei", "write_fully", SENDS, impl=COROSENSEI),
    Line("yield_now", "tokio", "write_fully", SENDS, impl=TOKIO),
    Line("Gosched", "go", "write_fully", SENDS, impl=GO),
    Line("async, a Task for each call", "csharp", "write_fully", SENDS, impl=CSHARP),
    Line("async, a Task for each call, .NET", "dotnet", "write_fully", SENDS, impl=CSHARP), params={"tasks": 10})
WRITE_FULLY_BOOST = NativeCase(
    "write_fully_boost", "write_fully() beside Boost (fig. 14)",
    Line("fiber", "write_fully_boost", "write_fully", SENDS, impl=BOOST),
    Line("scheduler", "write_fully", "write_fully", SENDS, limit=0.60))
WRITE_FULLY_MIXED = NativeCase(
    "write_fully_mixed", "write_fully() with tasks on two ways through the program; ns for each send",
    Line("a task for each call, operator new", "write_fully_cpp20", "write_fully_mixed", SENDS, impl=CPP20_TASK),
    Line("scheduler", "write_fully", "write_fully_mixed", SENDS),
    Line(f"scheduler, {OUT_OF_LINE}", "write_fully_exported", "write_fully_mixed", SENDS),
    Line("scheduler, ACO_SWITCHING_RETURNS", "write_fully_returns", "write_fully_mixed", SENDS),
    Line("next of the ring", "write_fully_classic", "write_fully_mixed", SENDS, impl=CLASSIC),
    Line("next of the ring, by ret", "write_fully_classic_ret", "write_fully_mixed", SENDS, impl=CLASSIC),
    Line("fiber", "write_fully_boost", "write_fully_mixed", SENDS, impl=BOOST),
    Line("Coroutine, resumed in turn", "corosensei", "write_fully_mixed", SENDS, impl=COROSENSEI),
    params={"tasks": 10})
STEPS = ("classic", "inline", "tail", "preserve_none", "coloured", "small")
YIELD = NativeCase(
    "yield", "yield(), ten coroutines (fig. 15)",
    *(Line(step, "paper_yield", step, 10, impl="plain ring") for step in STEPS),
    Line("classic, by ret", "paper_yield_ret", "classic", 10, impl="plain ring"),
    Line(f"aco_task_yield, {OUT_OF_LINE}", "scheduler-exported", "ring", 10),
    Line("aco_task_yield_call, preserve_none, uncoloured", "scheduler-uncoloured", "ring_preserve_none", 10),
    Line("aco_task_yield_call, preserve_none", "scheduler", "ring_preserve_none", 10),
    Line("aco_task_yield, uncoloured", "scheduler-uncoloured", "ring", 10),
    Line("aco_task_yield", "scheduler", "ring", 10),
    Line("aco_task_yield, 4 KiB stacks", "scheduler-small", "ring", 10),
    Line("this_fiber::yield", "boost_scheduler", "ring", 10, impl=BOOST_TASK),
    Line("Coroutine, resumed in turn", "corosensei", "flat", 10, impl=COROSENSEI),
    Line("yield_now", "tokio", "ring", 10, impl=TOKIO),
    Line("Gosched", "go", "ring", 10, impl=GO), params={"tasks": 10}, **in_cycles())


def client(name, title, limit=None):
    return NativeCase(name, f"{title} (fig. 16); ns for each request",
                      Line("next of the ring", "clients_classic", name, REQUESTS, impl=CLASSIC),
                      Line("next of the ring, by ret", "clients_classic_ret", name, REQUESTS, impl=CLASSIC),
                      Line("inline switch", "clients", name, REQUESTS),
                      Line(OUT_OF_LINE, "clients_exported", name, REQUESTS),
                      Line("inline switch, ACO_SWITCHING_RETURNS", "clients_returns", name, REQUESTS),
                      Line("inline switch and helper", "clients-apn", name, REQUESTS, limit=limit),
                      Line("inline switch and helper, -apn-returns=mixed", "clients-apn-returns", name, REQUESTS),
                      Line("inline switch, LTO", "clients-lto", name, REQUESTS),
                      Line("inline switch and helper, LTO", "clients-apn-lto", name, REQUESTS),
                      Line("fiber", "clients_boost", name, REQUESTS, impl=BOOST),
                      Line("Coroutine, resumed in turn", "clients_corosensei", name, REQUESTS, impl=COROSENSEI),
                      params={"clients": 10})


# The paper's gains are of throughput: 18.8 % and 45.2 %.
HTTP = client("http", "HTTP client, responses of 1 MB", 1 / 1.188)
RPC = client("rpc", "RPC client, responses of 1 MB", 1 / 1.452)
BOTH = client("both", "five HTTP and five RPC clients in one ring")
CASES = [sum_of_sequence(), breakdown(), *map(hanoi, DISCS), WRITE_FULLY, WRITE_FULLY_BOOST, WRITE_FULLY_MIXED, YIELD,
         HTTP, RPC, BOTH]

# The paper's text states these times relative to the first line: (case, impl, what) -> ratio. It does not state the
# figures' other values.
PAPER = {
    ("sum", CPP20, "for loop"): 1.0,
    ("sum", CPP20, "while loop"): 1.5,
    ("sum", ACORN, "in-stack generator"): 1.0,
    ("sum", BOOST_COROUTINE, "pull_type"): 20.0,  # not tuned, as here
    ("breakdown", CPP20, "for loop"): 1.0,
    ("breakdown", BOOST_COROUTINE, "assertions"): 20.0,
    ("breakdown", BOOST, "fiber, without Boost.Coroutine2"): 4.0,
    ("hanoi", CPP20, "a generator for each call"): 50.0,
    ("yield", "plain ring", "classic"): 1.0,
    ("yield", "plain ring", "small"): 1.52 / 8.97,
    ("http", CLASSIC, "next of the ring"): 1.0,
    ("http", ACORN, "inline switch"): 1 / 1.112,
    ("http", ACORN, "inline switch and helper"): 1 / 1.188,
    ("rpc", CLASSIC, "next of the ring"): 1.0,
    ("rpc", ACORN, "inline switch"): 1 / 1.262,
    ("rpc", ACORN, "inline switch and helper"): 1 / 1.452,
}
