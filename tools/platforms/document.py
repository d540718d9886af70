#!/usr/bin/env python3
"""Puts what run.py and count.py have found, of each row the newest, into results.json beside this file, and that into
docs/platforms.md, between its markers. So the rows can be run on different days and machines.

    python3 tools/platforms/document.py"""
import json
import re
from pathlib import Path

from rows import PLATFORMS, ROWS
from run import BUILD, ROOT, name_of, options_of

IMPLS = [("acorn", "acorn"), ("classic", "classic full-save switch"), ("boost", "Boost.Context `jump_fcontext`"),
         ("empty", "the loop alone")]


RECORD = Path(__file__).with_name("results.json")
KEYS = {"results": ("row", "what"), "counts": ("platform", "compiler", "impl")}


def newest(kind):
    """What is recorded, and what has been found here since: the last for each value of the keys."""
    found = json.loads(RECORD.read_text())[kind]
    here = BUILD / f"{kind}.jsonl"
    if here.exists():
        found += [json.loads(text) for text in here.read_text().splitlines()]
    return {tuple(each[key] for key in KEYS[kind]): each for each in found}


def record(found):
    """A line for each, so that a change can be read."""
    rows = {name_of(row) for row in ROWS}
    found["results"] = {key: each for key, each in found["results"].items() if each["row"] in rows}
    kinds = [f'"{kind}": [\n' + ",\n".join(json.dumps(found[kind][key], sort_keys=True)
                                            for key in sorted(found[kind])) + "\n]" for kind in KEYS]
    RECORD.write_text("{\n" + ",\n".join(kinds) + "\n}\n")


def short(version):
    """A compiler's or emulator's name and version, of the first line it prints about itself."""
    number = re.search(r"\d+\.\d+(\.\d+)?|\b\d+\b", version)
    kind = next((kind for kind in ("zig", "clang", "qemu", "wine") if kind in version), "gcc")
    options = re.search(r" (-cpu .*)", version)
    said = f"{kind} {number.group(0) if number else '?'}"
    if kind == "zig":
        clang = re.search(r"clang version (\d+\.\d+\.\d+)", version)
        said += f" (clang {clang.group(1)})" if clang else ""
    return said + (f" `{options.group(1)}`" if options else "")


def outcome(result):
    said = [f"**{result['status']}**" if result["status"] == "failed" else result["status"]]
    if result["what"] == "cut":
        said[0] += ", of a few tests (`--cut`)"
    if result.get("variants"):
        said[0] += f", C tests as {result['variants'].replace(' ', ', ')}"
    if "why" in result:
        said.append(result["why"])
    for kind in ("failed", "not_built"):
        if result.get(kind):
            some = result[kind][:8]
            more = len(result[kind]) - len(some)
            said.append(f"{kind.replace('_', ' ')}: {', '.join(f'`{name}`' for name in some)}" +
                        (f" and {more} more" if more else ""))
    if result.get("objects"):
        said.append("object code: " + ", ".join(result["objects"]))
    return "; ".join(said)


def results(found):
    yield "| row | compiler | options | run by | date, commit | passed | failed | skipped | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in ROWS:
        result = found.get((name_of(row), row.what)) or found.get((name_of(row), "cut"))
        if not result:
            yield f"| {name_of(row)} | {row.compiler} | `{options_of(row)}` | | | | | | not run yet |"
            continue
        run_by = (short(result["emulator"]) if "emulator" in result else
                  "–" if row.what == "built" or "passed" not in result else "this machine")
        numbers = ["–"] * 3
        if "passed" in result:
            numbers = [str(result["passed"]), str(len(result["failed"]) + len(result["not_built"])),
                       str(len(result["skipped"]))]
        elif "linked" in result:
            numbers[0] = f"{result['linked']} of {result['programs']} programs linked"
        yield (f"| {result['row']} | {short(result['compiler']) if 'compiler' in result else row.compiler} "
               f"| `{result['flags']}` | {run_by} | "
               f"{result['date']}, {result['commit']} | {' | '.join(numbers)} | {outcome(result)} |")
    reasons = {}
    for result in found.values():
        for test, reason in result.get("skipped", {}).items() if result["what"] == "suite" else ():
            reasons.setdefault(reason, (set(), set()))
            reasons[reason][0].add(test)
            reasons[reason][1].add(result["row"])
    yield ""
    suites = any(result["what"] == "suite" and "passed" in result for result in found.values())
    yield ("Skipped, and why:" if reasons else "No test was skipped." if suites else
           "No row has run its whole suite yet.")
    yield ""
    for reason, (tests, rows) in sorted(reasons.items()):
        yield f"- {', '.join(f'`{test}`' for test in sorted(tests))} ({', '.join(sorted(rows))}): {reason}"


def counts(found):
    counted = {platform for platform, _, _ in found}
    yield "| instructions of one round trip, gcc / clang | " + " | ".join(label for _, label in IMPLS) + " |"
    yield "| --- |" + " --- |" * len(IMPLS)
    for platform in (each for each in PLATFORMS if each in counted):
        cells = []
        for impl, _ in IMPLS:
            values = [found.get((platform, compiler, impl)) for compiler in ("gcc", "clang", "zig")]
            cells.append(" / ".join(f"{value['instructions']:.0f}" if "instructions" in value else value["why"]
                                    for value in values if value))
        yield f"| {platform} | " + " | ".join(cells) + " |"
    if found:
        last = max(found.values(), key=lambda line: line["date"])
        yield ""
        yield (f"{last['date']}, {short(last.get('emulator', 'qemu ?'))}; `-O2`, on Arm `-marm`; "
               "LoongArch by zig's clang.")


def put(text, marker, lines):
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    before, rest = text.split(begin)
    return before + begin + "\n" + "\n".join(lines).rstrip() + "\n" + end + rest.split(end)[1]


def main():
    page = ROOT / "docs/platforms.md"
    text = page.read_text()
    found = {kind: newest(kind) for kind in KEYS}
    record(found)
    for marker, table in (("results", results), ("counts", counts)):
        text = put(text, marker, table(found[marker]))
    page.write_text(text)


if __name__ == "__main__":
    main()
