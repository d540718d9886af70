#!/usr/bin/python3
"""Looks for wrongly infected functions: compares the pass's output, as text, with its report. It knows only the
promise of the pass: every call of a function with preserve_none says so.

    check.py UNIT.ll...     each with the report of its compilation, UNIT.report; prints how many functions were
                            infected and stopped, and each that should not have been; exit 1 if there is one, or if
                            none was infected
"""
import re
import sys
from pathlib import Path

NAME = r'@(?:"[^"]+"|[-\w.$]+)'
DEFINE = re.compile(rf"^define (?P<head>[^@]*)(?P<name>{NAME})\((?P<tail>.*)\{{$")
CALL = re.compile(rf"\b(?:call|invoke|callbr) (?P<between>[^@]*?)(?P<name>{NAME})\(")
REPORT = re.compile(r"^(infected|stopped): (\S+) \(.*?\): (.*)$")


def plain(name):
    return re.sub(r'^@"?|"$', "", name)


def wrong_in(text, infected):
    """(function, what is wrong) for each of the infected of a unit."""
    defines, wrong = {}, []
    for line in text.splitlines():
        if match := DEFINE.match(line):
            defines[plain(match["name"])] = match
    for name in sorted(infected):
        define = defines.get(name)
        if not define:
            continue  # removed, since nobody calls it, or a listed one that stands elsewhere
        if "preserve_nonecc" not in define["head"].split():
            wrong.append((name, "is reported, but has another convention"))
        if not {"internal", "private"} & set(define["head"].split()) and infected[name] != "it is listed":
            wrong.append((name, "can be called by other units"))
        if "..." in define["tail"].split(")")[0]:
            wrong.append((name, "takes a variable number of arguments"))
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("!"):
            continue  # metadata, which is no use
        if match := DEFINE.match(line):
            rest = line[match.end("name"):]
        elif line.startswith((";", "declare ")):
            continue
        else:
            rest = line
            call = CALL.search(line)
            if call and plain(call["name"]) in infected:
                if "preserve_nonecc" not in call["between"].split():
                    wrong.append((plain(call["name"]), f"is called with another convention, line {number}"))
                if "musttail" in line:
                    wrong.append((plain(call["name"]), f"must be a tail call, line {number}"))
                rest = line[:call.start("name")] + line[call.end("name"):]
        for other in re.findall(NAME, re.sub(r'c"(?:[^"\\]|\\.)*"', "", rest)):
            if plain(other) in infected and "blockaddress(" + other not in rest:
                wrong.append((plain(other), f"has its address taken, line {number}: {line.strip()[:90]}"))
    return wrong


def main():
    infected, stopped, wrong = 0, 0, []
    for path in map(Path, sys.argv[1:]):
        report = path.with_suffix(".report")
        reported = {}
        for line in report.read_text(encoding="utf-8").splitlines() if report.exists() else []:
            match = REPORT.match(line)
            if match and match[1] == "infected":
                reported[match[2]] = match[3]
            stopped += bool(match) and match[1] == "stopped"
        infected += len(reported)
        wrong += [(path.name, *what) for what in wrong_in(path.read_text(encoding="utf-8"), reported)]
    for path, name, what in wrong:
        print(f"wrongly infected: {name} ({path}): {what}")
    print(f"{len(sys.argv) - 1} units: {infected} functions infected, {stopped} stopped, {len(wrong)} wrongly infected")
    sys.exit(bool(wrong) or not infected)


main()
