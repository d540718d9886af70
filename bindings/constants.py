#!/usr/bin/env python3
"""constants.py [--cc CC] [--check]: what bindings need of the headers, as the C compiler says it: values of enumerators
and macros, error numbers, sizes, alignments and offsets. Writes constants.json, or compares it (1: stale, 77: another
kind of processor).

Every name in the public headers is a candidate; the compiler refuses those that are no constant, type or field."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "include")
TARGET = "x86_64-linux-gnu"
LEFT_OUT = r"ACO_CONFIG_|ACO_DEBUG$|ACO\w*_VERSION_"  # of one program; of one release

cc = sys.argv[sys.argv.index("--cc") + 1] if "--cc" in sys.argv else "cc"
headers = ["aco.h"] + sorted("aco/" + name for name in os.listdir(os.path.join(INCLUDE, "aco")) if name.endswith(".h"))
headers.remove("aco/in_stack_generator.h")  # for some architectures
text = "\n".join(open(os.path.join(INCLUDE, name)).read() for name in headers)
code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
start = "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdalign.h>\n#include <stddef.h>\n#include <stdio.h>\n"
start += "".join(f'#include "{name}"\n' for name in headers)


def compiler(*arguments):
    command = [cc, "-std=gnu11", "-O1", "-w", "-ftrack-macro-expansion=0", "-I" + INCLUDE, *arguments]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE)


def accepted(candidates, statement):
    """Those for which the compiler accepts the statement."""
    path = os.path.join(folder, "candidates.c")
    first = start.count("\n") + 1
    with open(path, "w") as file:
        file.write(start + "".join(statement.format(*each) + "\n" for each in candidates))
    refused = {int(line) for line in
               re.findall(r"candidates\.c:(\d+):\d+: error", compiler("-fsyntax-only", path).stderr)}
    if refused and min(refused) < first:
        sys.exit(compiler("-fsyntax-only", path).stderr)
    return [each for number, each in enumerate(candidates, first) if number not in refused]


def names(pattern, where):
    return [(name,) for name in sorted(set(re.findall(pattern, where))) if not re.match(LEFT_OUT, name)]


def evaluated(lines):
    path, program = os.path.join(folder, "values.c"), os.path.join(folder, "values")
    with open(path, "w") as file:
        file.write(start + "int main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n")
    done = compiler(path, "-o", program)
    if done.returncode:
        sys.exit(done.stderr)
    return [[int(word) for word in line.split()] for line in
            subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()]


def table():
    constants = [name for name, in accepted(names(r"\bACO_(?!_)\w+", code), "enum {{ x_{0} = ({0}) }};")]
    errors = [name for name, in accepted(names(r"\bE[A-Z]{3,}\b", text), "enum {{ x_{0} = {0} }};")]
    types = [name for name, in accepted(names(r"\baco_(?:(?!_)\w+_)?t\b", code), "enum {{ x_{0} = sizeof({0}[1]) }};")]
    fields = []
    for name in types:
        alias = re.search(r"\btypedef struct (\w+) " + name, code)
        body = re.search(r"\bstruct " + (alias.group(1) if alias else name[:-1] + "s") + r"\s*\{(.*?)\n\}", code, re.S)
        words = sorted(set(re.findall(r"\b[a-z]\w*", body.group(1)))) if body else []
        fields += [(name, word) for word in words if not word.startswith("aco__") and word not in types]
    fields = accepted(fields, "enum {{ x_{0}_{1} = offsetof({0}, {1}) + sizeof((({0} *)0)->{1}) }};")
    values = evaluated([f'printf("%lld\\n", (long long)({name}));' for name in constants + errors])
    values = dict(zip(constants + errors, (value for value, in values)))
    sizes = evaluated([f'printf("%zu %zu\\n", sizeof({name}), alignof({name}));' for name in types])
    offsets = evaluated([f'printf("%zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));'
                         for name, field in fields])
    structures = {name: {"size": size, "align": align, "fields": {}} for name, (size, align) in zip(types, sizes)}
    for (name, field), where in sorted(zip(fields, offsets), key=lambda each: each[1]):
        structures[name]["fields"][field] = where
    return {"target": TARGET, "constants": {name: values[name] for name in constants},
            "errors": {name: values[name] for name in errors}, "types": structures}


def printed(made):
    """A constant or a type a line."""
    groups = []
    for group, entries in made.items():
        if isinstance(entries, dict):
            lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
            groups.append(f" {json.dumps(group)}: {{\n{lines}\n }}")
        else:
            groups.append(f" {json.dumps(group)}: {json.dumps(entries)}")
    return "{\n" + ",\n".join(groups) + "\n}\n"


with tempfile.TemporaryDirectory() as folder:
    machine = subprocess.run([cc, "-dumpmachine"], check=True, text=True, stdout=subprocess.PIPE).stdout
    if not re.match("x86_64.*linux", machine):
        print(f"skipped: constants.json is for {TARGET}, the compiler for {machine}", end="")
        sys.exit(77)
    new = printed(table())
path = os.path.join(HERE, "constants.json")
if "--check" not in sys.argv:
    open(path, "w").write(new)
elif open(path).read() != new:
    sys.exit("constants.json is stale: run bindings/constants.py")
