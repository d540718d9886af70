#!/usr/bin/env python3
"""Puts tables of measurements between their markers, from the JSON file of a command of bench/:
bench/run.py's into README.md, README.zh.md and docs/benchmarks.md, bench/run_memory.py's into docs/memory.md,
bench/run_io.py's into docs/io.md, bench/run_threads.py's into docs/threads.md, bench/run_http.py's into docs/http.md,
bench/run_paper.py's into docs/paper.md.

    python3 bench/readme.py [--check] bench/results/FILE.json...

With --check it writes nothing, and fails if a document has other tables.
"""
import argparse
import json
import os
import re
import sys
from pathlib import Path

from harness import (http_markdown, io_markdown, memory_markdown, paper_markdown, switch_markdown,
                     threads_markdown)
from harness.building import ROOT

DOCUMENTS = [  # a case of the file; document, its markers' name, its tables
    ("write_fully", [("docs/paper.md", "paper", paper_markdown.tables)]),
    ("yield_counted", [("docs/paper.md", "counts", paper_markdown.counts_tables)]),
    ("scale_create", [("docs/memory.md", "memory", memory_markdown.tables)]),
    ("echo.1", [("docs/io.md", "io", io_markdown.tables)]),
    ("skynet", [("docs/threads.md", "threads", threads_markdown.tables)]),
    ("hello.64", [("docs/http.md", "http", http_markdown.tables)]),
    ("flat", [("docs/benchmarks.md", "bench", switch_markdown.tables),
              ("README.md", "numbers", lambda rows: [switch_markdown.summary(rows)]),
              ("README.zh.md", "numbers", lambda rows: [switch_markdown.summary(rows, switch_markdown.CHINESE)])]),
]


QUIET = 1.7  # the most load of a run that had the machine for itself


def loaded(about, form):
    """What to say of a run beside others."""
    load = about.get("load", 0)
    return form.format(load) if load > QUIET else ""


def heading(about, file, document):
    family, model = about["family, model"].split(", ")
    link = f"[{file.relative_to(ROOT)}]({os.path.relpath(file, document.parent)})"
    if "valgrind" in about:
        return (f"Cachegrind of valgrind {about['valgrind']}; {', '.join(about['compilers'][:3])}; `-O2`; "
                f"{about['date']}. All of it in {link}.")
    if document.name.endswith(".zh.md"):
        return (f"{about['cpu']}（family {family}，model {model}），{about['cpus']} 个处理器的虚拟机；"
                f"{'，'.join(about['compilers'])}；`-O2`；{about['date']}{loaded(about, '；机器另有负载（load average {}）')}。"
                f"一次运行中的中位数；全部数据见 {link}。")
    return (f"{about['cpu']} (family {family}, model {model}), a virtual machine with {about['cpus']} processors; "
            f"{', '.join(about['compilers'])}; `-O2`; {about['date']}"
            f"{loaded(about, '; beside other programs (load average {})')}. Medians of one run; all of it in {link}.")


def with_tables(text, name, lines):
    """The document's `text` with `lines` between the markers."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    block = "\n".join([begin, *lines, end])
    return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, text, flags=re.S)


def put(file, check):
    first, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    cases = {row.get("case") for row in rows}
    documents = next((found for case, found in DOCUMENTS if case in cases), None)
    if not documents:
        sys.exit(f"{file}: no case of a document's tables")
    for path, name, tables in documents:
        document = ROOT / path
        lines = [heading(first["machine"], file, document)] + [line for table in tables(rows) for line in ("", *table)]
        text = document.read_text()
        wanted = with_tables(text, name, lines)
        if not check:
            document.write_text(wanted)
        elif text != wanted:
            sys.exit(f"{path}: its tables are not those of {file}")


def main():
    parser = argparse.ArgumentParser(description="Measurements into documents")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path,
                        help="what a command of bench/ wrote with --json")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a document has other tables")
    args = parser.parse_args()
    for file in args.files:
        put(file.resolve(), args.check)


if __name__ == "__main__":
    main()
