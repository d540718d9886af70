"""coverage.py BUILD [--list]: the lines of the core that no test of BUILD (gcc --coverage, after its tests) has run.

The core is what Linux on x86-64 compiles of src/ and of the C headers of include/, with all folders below. A line of a
header counts as run if one program ran it, and is not seen if no program compiles it. The command fails
  - when less than 95 % of the lines were run
  - when a .c file of src/ has no counts and EMPTY below has no reason for that, or EMPTY is wrong
  - when tools/coverage.txt does not explain a line that was not run. There, "FOLDER: TEXT" is one source line without
    its indentation (two that look the same are two lines there), in any file of the folder. The comment above it says
    why no test of this build runs it. "? FOLDER: TEXT" is run by chance.
  - when it explains a line that is run, or that does not exist any more
--list prints what is not explained in that form.
"""
import collections
import json
import os
import re
import subprocess
import sys

LEAST = 95
EMPTY = {  # files of src/ without a line in this build
    "src/hooks/shadow_stack.c": "ACORN_SHADOW_STACKS is off",
    "src/os/ucontext.c": "ACORN_UCONTEXT is off",
    "src/os/windows.c": "another system",
    "src/os/windows_clock.c": "another system",
    "src/os/windows_unwind.c": "another system",
}
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORE = re.compile(r"(src|include)/.*\.(c|h|inc)$")


def counts(build):
    """{file: {line: times}}"""
    data = [os.path.join(folder, name) for folder, _, names in os.walk(build)
            for name in names if name.endswith(".gcda")]
    if not data:
        sys.exit(f"coverage: {build} has no counts")
    result = collections.defaultdict(collections.Counter)
    for start in range(0, len(data), 50):
        out = subprocess.run(["gcov", "--json-format", "--stdout", *data[start:start + 50]], cwd=build,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
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


def folder_of(name):
    return os.path.dirname(name) if name.startswith("src/") else "include"


def main():
    build, listing = os.path.abspath(sys.argv[1]), "--list" in sys.argv
    known, by_chance = explained()
    errors = []
    total = run = 0
    found = counts(build)
    units = {os.path.relpath(os.path.join(folder, name), ROOT)
             for folder, _, names in os.walk(os.path.join(ROOT, "src")) for name in names if name.endswith(".c")}
    errors += [f"{unit}: no counts: not compiled at all" for unit in sorted(units - set(found) - set(EMPTY))]
    errors += [f"{unit}: in EMPTY, but it has counts or is gone" for unit in sorted(set(EMPTY) - (units - set(found)))]
    for name, lines in sorted(found.items()):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = [line.strip() for line in file]
        missed = [number for number in sorted(lines) if not lines[number]]
        total, run = total + len(lines), run + len(lines) - len(missed)
        for number in missed:
            entry = f"{folder_of(name)}: {text[number - 1]}"
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
