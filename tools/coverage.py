"""coverage.py BUILD [--list]: what no test of BUILD (gcc --coverage, after its tests) has run of the core.

The core is what Linux on x86-64 compiles of src/ and of the C headers of include/, with all folders below. A line of a
header counts as run if one program ran it, and is not seen if no program compiles it. The command fails
  - when less than 95 % of the lines were run
  - when a .c file of src/ has no counts and EMPTY below has no reason for that, or EMPTY is wrong
  - when STRETCH lines of one function, one after the other, were not run, and tools/coverage.txt does not name the
    function. Shorter ones are mostly failures that cannot be brought about one by one: the 95 % limit them
  - when it names a function of which that is not true, or that does not exist
In tools/coverage.txt, "FOLDER: FUNCTION" has a comment above it that says why. "? FOLDER: FUNCTION" is run by chance.
--list prints what is missing there in that form.
"""
import collections
import json
import os
import re
import subprocess
import sys

LEAST = 95
STRETCH = 3
EMPTY = {  # files of src/ without a line in this build
    "src/base/upcalls.c": "a table",
    "src/coroutine/debugger.c": "constants",
    "src/io/kqueue.c": "another system",
    "src/os/ucontext.c": "ACORN_UCONTEXT is off",
    "src/os/windows.c": "another system",
    "src/os/windows_clock.c": "another system",
    "src/os/windows_unwind.c": "another system",
}
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORE = re.compile(r"(src|include)/.*\.(c|h|inc)$")


def counts(build):
    """{file: {line: [times, function]}}"""
    data = [os.path.join(folder, name) for folder, _, names in os.walk(build)
            for name in names if name.endswith(".gcda")]
    if not data:
        sys.exit(f"coverage: {build} has no counts")
    result = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, ""]))
    for start in range(0, len(data), 50):
        out = subprocess.run(["gcov", "--json-format", "--stdout", *data[start:start + 50]], cwd=build,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        for unit in out.splitlines():
            for file in json.loads(unit)["files"]:
                path = os.path.normpath(os.path.join(build, file["file"])) # by way of "include/aco/../aco.h" too
                name = os.path.relpath(path, ROOT)
                if CORE.match(name):
                    for line in file["lines"]:
                        known = result[name][line["line_number"]]
                        known[0] += line["count"]
                        known[1] = line.get("function_name", "")
    return result


def missed_functions(lines):
    """{function: the first of at least STRETCH lines that were not run}"""
    result, stretch, of = {}, [], None
    for number in [*sorted(lines), None]:
        times, function = lines[number] if number else (1, None)
        if times or function != of:
            stretch = []
        if not times and function:
            stretch.append(number)
            if len(stretch) == STRETCH:
                result.setdefault(function, stretch[0])
        of = function
    return result


def explained():
    """The functions that tools/coverage.txt names, and those of which it does not matter."""
    entries, by_chance, reason = set(), set(), False
    with open(os.path.join(ROOT, "tools/coverage.txt"), encoding="utf-8") as file:
        for line in map(str.strip, file):
            if not line or line.startswith("#"):
                reason = bool(line)
            elif not reason:
                sys.exit(f"tools/coverage.txt: without a reason: {line}")
            elif line.startswith("? "):
                by_chance.add(line[2:])
            else:
                entries.add(line)
    return entries, by_chance


def folder_of(name):
    return os.path.dirname(name) if name.startswith("src/") else "include"


def main():
    build, listing = os.path.abspath(sys.argv[1]), "--list" in sys.argv
    known, by_chance = explained()
    errors, new, met = [], [], set()
    total = run = 0
    found = counts(build)
    units = {os.path.relpath(os.path.join(folder, name), ROOT)
             for folder, _, names in os.walk(os.path.join(ROOT, "src")) for name in names if name.endswith(".c")}
    errors += [f"{unit}: no counts: not compiled at all" for unit in sorted(units - set(found) - set(EMPTY))]
    errors += [f"{unit}: in EMPTY, but it has counts or is gone" for unit in sorted(set(EMPTY) - (units - set(found)))]
    for name, lines in sorted(found.items()):
        ran = sum(times > 0 for times, _ in lines.values())
        total, run = total + len(lines), run + ran
        for function, line in missed_functions(lines).items():
            entry = f"{folder_of(name)}: {function}"
            met.add(entry)
            if entry not in known | by_chance:
                new.append(entry)
                errors.append(f"{name}:{line}: {STRETCH} lines of {function}() and more were not run, not explained")
        if not listing:
            print(f"{name:32} {ran:5} of {len(lines):5}")
    if listing:
        print(*new, sep="\n")
        return 0
    errors += [f"tools/coverage.txt: explained, but run or gone: {entry}" for entry in sorted(known - met)]
    share = 100 * run / total
    print(*errors, f"coverage: {run} of {total} lines, {share:.1f} %; {len(errors)} errors", sep="\n")
    return 1 if errors or share < LEAST else 0


sys.exit(main())
