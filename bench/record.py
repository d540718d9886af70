#!/usr/bin/python3
"""Records one of the documents' tables anew: measures, and puts file, pictures and tables where they belong.

    bench/record.py NAME [--seconds S] [--build DIR]

It measures after its programs are built: for about three minutes, or the rounds that its entry says. The results go
into bench/results/, named after the processor, in place of those from another processor; then readme.py writes the
tables into the documents. Nothing is committed. bench/history.py draws its picture from commits: run it after the next
one.
"""
import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from harness import command
from harness.building import BENCH, ROOT
from harness.processors import short_name

DOCUMENTS = ("README.md", "README.zh.md", "docs/*.md")


class Record(NamedTuple):
    """A command of bench/ with its options. `suffix`: of the files' names, behind the processor's; None: the counts',
    which are the same on every processor."""
    script: str
    suffix: str
    options: tuple = ()
    draws: bool = True
    is_bounded: bool = True  # has --seconds
    adds: bool = False       # to the file that is there


def only(*cases):
    return tuple(word for case in cases for word in ("--only", case))


RECORDS = {
    "paper": Record("run_paper.py", "-paper",
                    only("sum", "breakdown", "Hanoi(20)", "write_fully", "yield", "http", "rpc", "both")),
    "paper-hanoi": Record("run_paper.py", "-paper", only("hanoi"), adds=True),
    "paper-counts": Record("run_paper.py", None, ("--counts",), draws=False, is_bounded=False),
    "bench": Record("run.py", "", ("--part", "cases")),
    "bench-copying": Record("run.py", "", ("--part", "copying"), draws=False, adds=True),
    "threads": Record("run_threads.py", "-threads", draws=False, is_bounded=False),
    "io": Record("run_io.py", "-io", draws=False, is_bounded=False),
    "http": Record("run_http.py", "-http", ("--rounds", "3"), draws=False, is_bounded=False),
}


def file_name(record, processor):
    return "paper-counts.json" if record.suffix is None else f"{processor}{record.suffix}.json"


def measure(record, file, pictures, args):
    """Runs the command; its output goes to the terminal."""
    words = [sys.executable, BENCH / record.script, *record.options, "--json", file, "--build", args.build]
    words += ["--svg", pictures] if record.draws else []
    words += ["--seconds", str(args.seconds)] if record.is_bounded else []
    words += ["--add"] if record.adds else []
    if subprocess.run(words).returncode != 0:
        sys.exit(f"record: {record.script} failed; nothing was changed")


def replaced(record, results, name):
    """What `name` takes the place of: the same table from other processors."""
    pattern = re.compile(rf"\w+{re.escape(record.suffix)}\.json" if record.suffix is not None else re.escape(name))
    return [path for path in results.glob("*.json") if pattern.fullmatch(path.name) and path.name != name]


def place_pictures(pictures, results, processor):
    """Puts those that documents show in place of another processor's; returns {old name: new name}."""
    names = {}
    for drawn in sorted(pictures.glob("*.svg")):
        for old in results.glob(f"*-{drawn.name}"):
            new = f"{processor}-{drawn.name}"
            if re.fullmatch(r"\w+", old.name[:-len(drawn.name) - 1]):
                old.unlink()
                shutil.copyfile(drawn, results / new)
                names[old.name] = new
    return names


def rename_in_documents(root, names):
    for path in (path for pattern in DOCUMENTS for path in root.glob(pattern)):
        text = path.read_text()
        for old, new in names.items():
            text = text.replace(f"bench/results/{old}", f"bench/results/{new}")
        if text != path.read_text():
            path.write_text(text)


def record_table(record, root, args):
    """The whole of it; returns the recorded file."""
    results, made = root / "bench" / "results", args.build / "record"
    processor = short_name(command.machine()["family, model"])
    name = file_name(record, processor)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    if record.adds:
        if not (results / name).exists():
            sys.exit(f"record: {results / name} is not there to add to: record the other tables of this page first")
        shutil.copyfile(results / name, made / name)
    measure(record, made / name, made, args)
    for old in replaced(record, results, name):
        old.unlink()
    shutil.copyfile(made / name, results / name)
    rename_in_documents(root, place_pictures(made, results, processor))
    return results / name


def main():
    parser = argparse.ArgumentParser(description="Records one table of the documents anew")
    parser.add_argument("name", choices=RECORDS)
    parser.add_argument("--seconds", metavar="S", type=int, default=150, help="for the rounds (150)")
    parser.add_argument("--build", metavar="DIR", type=Path, default=ROOT / "build" / "bench", help="where to build")
    args = parser.parse_args()
    args.build = args.build.resolve()
    file = record_table(RECORDS[args.name], ROOT, args)
    sys.exit(subprocess.run([sys.executable, BENCH / "readme.py", file]).returncode)


if __name__ == "__main__":
    main()
