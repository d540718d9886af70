"""The tables of docs/io.md, from a JSON file of bench/run_io.py."""
from .markdown import NOTHING, heading, line

SERVERS = [  # heading, cases, their field, the factor to the heading's unit
    ("CPU for an echo, µs", ("echo.1", "echo.100", "echo.10000"), "cpu_us", 1),
    ("p99, ms", ("echo.1", "echo.100", "echo.10000"), "p99_us", 0.001),
    ("CPU for a MiB streamed, µs", ("stream.1", "stream.100", "stream.10000"), "cpu_us", 1),
    ("an idle connection, bytes", ("idle",), "bytes", 1),
]
FILES = [("CPU, µs", ("files",), "cpu_us", 1), ("1000 a second", ("files",), "kiops", 1)]


def three_digits(number):
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def table(rows, title, columns):
    """A row for each contender that has a number in a column."""
    measured = {(row["case"], row["impl"]): row for row in rows if "missing" not in row}
    yield from heading(title, *(name for name, _, _, _ in columns))
    for impl in dict.fromkeys(impl for _, impl in measured):
        cells = [[three_digits(measured[case, impl][field] * factor) for case in cases if (case, impl) in measured]
                 for _, cases, field, factor in columns]
        if any(cells):
            yield line(impl.replace("acorn", "**acorn**"), *(" / ".join(cell) or NOTHING for cell in cells))


def tables(rows):
    yield table(rows, "1 / 100 / 10 000 connections", SERVERS)
    yield table(rows, "random reads of 4 KiB, 128 in flight", FILES)
