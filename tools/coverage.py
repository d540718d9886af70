"""coverage.py BUILD [--list]: the lines of the core that no test of BUILD (gcc --coverage, after its tests) has run.

Core is what Linux on x86-64 compiles of src/*.c, src/*.h, include/aco.h and include/aco/*.h; a line that a header gives to many
programs counts as run where one of them ran it, and is not seen where none of them compiles it. Fails when less than 95 % of the
lines were run, when a file of src/*.c has no counts, and when tools/coverage.txt does not explain a line that was not run: there,
a line "FILE: TEXT" is one source line without its indentation (two that look the same are two lines there), and the comment above
it says why no test of this build runs it. An explanation of a line that is run is an error too; "? FILE: TEXT" is run by chance.
--list prints what is not explained in that form.
"""
import collections
import json
import os
import re
import subprocess
import sys

LEAST = 95
EMPTY = ("shadow.c",)  # in this build: ACORN_SHADOW_STACKS is off
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORE = re.compile(r"(src/[a-z_]+\.[ch]|include/aco\.h|include/aco/[a-z_]+\.h)$")


def counts(build):
    """{file: {line: times}}"""
    data = [os.path.join(folder, name) for folder, _, names in os.walk(build) for name in names if name.endswith(".gcda")]
    if not data:
        sys.exit(f"coverage: {build} has no counts")
    result = collections.defaultdict(collections.Counter)
    for start in range(0, len(data), 50):
        out = subprocess.run(["gcov", "--json-format", "--stdout", *data[start:start + 50]], cwd=build, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=True).stdout
        for unit in out.splitlines():
            for file in json.loads(unit)["files"]:
                path = os.path.normpath(os.path.join(build, file["file"])) # by way of "include/aco/../aco.h" too
                name = os.path.relpath(path, ROOT)
                if CORE.match(name):
                    for line in file["lines"]:
                        result[name][line["line_number"]] += line["count"]
    return result


def explained():
    """How many lines of each kind are explained; of which it does not matter."""
    entries, by_chance, reason = collections.Counter(), set(), False
    with open(os.path.join(ROOT, "tools/coverage.txt"), encoding="utf-8") as file:
        for line in map(str.strip, file):
            if not line or line.startswith("#"):
                reason = bool(line)
            elif not reason:
                sys.exit(f"tools/coverage.txt: without a reason: {line}")
            elif line.startswith("? "):
                by_chance.add(line[2:])
            else:
                entries[line] += 1
    return entries, by_chance


def main():
    build, listing = os.path.abspath(sys.argv[1]), "--list" in sys.argv
    known, by_chance = explained()
    errors = []
    total = run = 0
    found = counts(build)
    for unit in sorted(os.listdir(os.path.join(ROOT, "src"))):
        if unit.endswith(".c") and unit not in EMPTY and f"src/{unit}" not in found:
            errors.append(f"src/{unit}: no counts: not run at all")
    for name, lines in sorted(found.items()):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = [line.strip() for line in file]
        missed = [number for number in sorted(lines) if not lines[number]]
        total, run = total + len(lines), run + len(lines) - len(missed)
        for number in missed:
            entry = f"{name}: {text[number - 1]}"
            if known[entry] > 0:
                known[entry] -= 1
            elif entry not in by_chance:
                errors.append(entry if listing else f"{name}:{number}: not run, not explained: {text[number - 1]}")
        if not listing:
            print(f"{name:32} {len(lines) - len(missed):5} of {len(lines):5}")
    if listing:
        print(*errors, sep="\n")
        return 0
    errors += [f"tools/coverage.txt: explained, but run or gone: {entry}" for entry in sorted(known.elements())]
    share = 100 * run / total
    print(*errors, f"coverage: {run} of {total} lines, {share:.1f} %; {len(errors)} errors", sep="\n")
    return 1 if errors or share < LEAST else 0


sys.exit(main())
