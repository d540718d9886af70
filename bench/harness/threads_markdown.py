"""The tables of docs/threads.md, from a JSON file of bench/run_threads.py."""
from .io_markdown import table, three_digits
from .markdown import NOTHING, heading, line

CASES = {"empty": "submit + join", "work": "1 µs of work", "skynet": "skynet, a leaf", "tree": "sum of a tree, a leaf",
         "pingpong": "ping-pong", "across": "ping-pong of two threads", "many": "4 to 4, a value"}
ECHO = [("CPU for an echo, µs", ("echo",), "cpu_us", 1), ("an echo, µs", ("echo",), "us", 1),
        ("p99, µs", ("echo",), "p99_us", 1), ("sleeps for 1000 echoes", ("echo",), "sleeps", 1),
        ("CPU, the client alone on its core, µs", ("echo-apart",), "cpu_us", 1)]


def computing(rows):
    """A row for each contender, in a cell its numbers with one and two threads."""
    measured = {(row["case"], *row["impl"].split(", ")): row["ns"] for row in rows if ", " in row.get("impl", "")
                and "ns" in row}
    cases = [case for case in CASES if case in {case for case, *_ in measured}]
    yield from heading("1 / 2 threads, ns", *(CASES[case] for case in cases))
    for impl in dict.fromkeys(impl for _, impl, _ in measured):
        cells = [[three_digits(measured[case, impl, threads]) if (case, impl, threads) in measured else NOTHING
                  for threads in ("1 thread", "2 threads")] for case in cases]
        yield line(impl.replace("acorn", "**acorn**"),
                   *(NOTHING if set(cell) == {NOTHING} else " / ".join(cell) for cell in cells))


def tables(rows):
    yield computing(rows)
    yield table(rows, "echo server on 2 threads, the client on the second core", ECHO)
