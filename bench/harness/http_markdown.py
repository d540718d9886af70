"""The tables of docs/http.md, from a JSON file of bench/run_http.py."""
from .io_markdown import table

BODIES = {"1m.64": "1 MB", "file-1m.64": "1 MB file"}
HELLO = [  # heading, cases, their field, the factor to the heading's unit
    ("CPU for a request, µs", ("hello.1", "hello.64", "hello.1000"), "cpu_us", 1),
    ("p99, ms", ("hello.1", "hello.64", "hello.1000"), "p99_us", 0.001),
    ("an idle connection, bytes", ("idle",), "bytes", 1),
]
def tables(rows):
    yield table(rows, "hello, 1 / 64 / 1000 connections", HELLO)
    yield table(rows, "CPU for a request, µs, 64 connections",
                [*((name, (case,), "cpu_us", 1) for case, name in BODIES.items()),
                 ("a new connection", ("new.64",), "cpu_us", 1), ("two threads", ("cores.64",), "cpu_us", 1),
                 ("TLS: hello", ("tls.64",), "cpu_us", 1), ("TLS: 1 MB", ("tls-1m.64",), "cpu_us", 1),
                 ("TLS: a new connection", ("tls-new.64",), "cpu_us", 1)])
