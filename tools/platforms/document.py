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
    return f"{kind} {number.group(0) if number else '?'}" + (f" `{options.group(1)}`" if options else "")


def wrong(result):
    """What a row's result has besides passed and skipped tests."""
    said = [f"**{result['status']}**"] if result["status"] == "failed" else []
    if result["what"] == "cut":
        said.append("a few tests (`--cut`)")
    said += [result["why"]] if "why" in result else []
    for kind in ("failed", "not_built"):
        if result.get(kind):
            some = result[kind][:8]
            more = len(result[kind]) - len(some)
            said.append(f"{kind.replace('_', ' ')}: {', '.join(f'`{name}`' for name in some)}" +
                        (f" and {more} more" if more else ""))
    return said + (["object code: " + ", ".join(result["objects"])] if result.get("objects") else [])


def row_ran(result):
    return result["what"] != "built" and "passed" in result


def numbers(result):
    if not result:
        return "not run yet"
    if "linked" in result:
        return f"{result['linked']} of {result['programs']} programs linked, not run"
    return f"{result.get('passed', 0)}" + (f" ({len(result['skipped'])})" if result.get("skipped") else "")


def results(found):
    shown = {row: found.get((name_of(row), row.what)) or found.get((name_of(row), "cut")) for row in ROWS}
    dates = sorted(result["date"] for result in shown.values() if result)
    compilers = sorted({short(result["compiler"]) for result in shown.values() if result and "compiler" in result})
    if dates:
        yield (f"Run {' to '.join(dict.fromkeys((dates[0], dates[-1])))} by {', '.join(compilers)}: tests passed "
               "(skipped), of each row. [results.json](../tools/platforms/results.json) has options, commits, and why "
               "tests were skipped.")
        yield ""
    yield "| platform | run by | rows |"
    yield "| --- | --- | --- |"
    for platform in dict.fromkeys(row.platform for row in ROWS):
        rows = {row: result for row, result in shown.items() if row.platform == platform}
        emulators = dict.fromkeys(short(result["emulator"]).split(" `")[0] for result in rows.values()
                                  if result and "emulator" in result and row_ran(result))
        ran = any(result and row_ran(result) for result in rows.values())
        cells = [f"{name_of(row)[len(platform) + 1:]} " +
                 "; ".join([numbers(result), *(wrong(result) if result else [])]) for row, result in rows.items()]
        yield f"| {platform} | {', '.join(emulators) or ('this machine' if ran else '–')} | {', '.join(cells)} |"


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
