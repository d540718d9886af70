"""The tables of docs/http.md, from a JSON file of bench/run_http.py."""
from .io_markdown import table

BODIES = {"4k.64": "4 kB", "1m.64": "1 MB", "file-4k.64": "4 kB file", "file-1m.64": "1 MB file"}
HELLO = [  # heading, cases, their field, the factor to the heading's unit
    ("CPU for a request, µs", ("hello.1", "hello.64", "hello.1000"), "cpu_us", 1),
    ("p99, ms", ("hello.1", "hello.64", "hello.1000"), "p99_us", 0.001),
    ("1000 requests a second", ("hello.1", "hello.64", "hello.1000"), "kreq", 1),
    ("an idle connection, bytes", ("idle",), "bytes", 1),
]
OTHERS = [
    ("new connections: CPU, µs", ("new.1", "new.64"), "cpu_us", 1),
    ("two threads: CPU, µs", ("cores.64",), "cpu_us", 1),
    ("two threads: 1000 requests a second", ("cores.64",), "kreq", 1),
    ("by h2load: CPU, µs", ("h2load.64",), "cpu_us", 1),
]


def tables(rows):
    yield table(rows, "hello, 1 / 64 / 1000 connections", HELLO)
    yield table(rows, "hello, 1 / 64 or 64 connections", OTHERS)
    yield table(rows, "CPU for a request, µs, 64 connections",
                [(name, (case,), "cpu_us", 1) for case, name in BODIES.items()])
    yield table(rows, "TLS, CPU for a request, µs, 64 connections",
                [("hello", ("tls.64",), "cpu_us", 1), ("1 MB", ("tls-1m.64",), "cpu_us", 1),
                 ("new connections", ("tls-new.64",), "cpu_us", 1)])
