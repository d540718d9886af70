#!/usr/bin/env python3
"""Puts tables of measurements between their markers, from the JSON file of a command of bench/:
bench/run.py's into README.md, bench/run_memory.py's into docs/memory.md, bench/run_io.py's into docs/io.md,
bench/run_paper.py's into docs/paper.md.

    python3 bench/readme.py [--check] bench/results/FILE.json

With --check it writes nothing, and fails if the document has other tables.
"""
import argparse
import json
import os
import re
import sys
from pathlib import Path

from harness import io_markdown, memory_markdown, paper_markdown, readme_markdown
from harness.building import ROOT

DOCUMENTS = [  # a case of the file, the document, its markers' name, its tables
    ("write_fully", ROOT / "docs/paper.md", "paper", paper_markdown.tables),
    ("scale_create", ROOT / "docs/memory.md", "memory", memory_markdown.tables),
    ("echo.1", ROOT / "docs/io.md", "io", io_markdown.tables),
    ("flat", ROOT / "README.md", "bench", readme_markdown.tables),
]


def heading(about, file, document):
    family, model = about["family, model"].split(", ")
    return (f"{about['cpu']} (family {family}, model {model}), a virtual machine with {about['cpus']} processors; "
            f"{', '.join(about['compilers'])}; `-O2`; {about['date']}. Medians of one run; all of it in "
            f"[{file.relative_to(ROOT)}]({os.path.relpath(file, document.parent)}).")


def with_tables(text, name, lines):
    """The document's `text` with `lines` between the markers."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    block = "\n".join([begin, *lines, end])
    return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description="Measurements into documents")
    parser.add_argument("file", metavar="FILE", type=Path, help="what a command of bench/ wrote with --json")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the document has other tables")
    args = parser.parse_args()
    file = args.file.resolve()
    first, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    cases = {row.get("case") for row in rows}
    document, name, tables = next((found for case, *found in DOCUMENTS if case in cases), (None, None, None))
    if not document:
        sys.exit(f"{file}: no case of a document's tables")
    lines = [heading(first["machine"], file, document)] + [line for table in tables(rows) for line in ("", *table)]
    text = document.read_text()
    wanted = with_tables(text, name, lines)
    if not args.check:
        document.write_text(wanted)
    elif text != wanted:
        sys.exit(f"{document.relative_to(ROOT)}: its tables are not those of {file}")


if __name__ == "__main__":
    main()
