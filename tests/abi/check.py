#!/usr/bin/env python3
"""check.py [--include DIR] [--seeded] ARCH... | --complete

Compares what the switch's asm statements of include/aco/arch/ declare with the ABI's register table,
tests/abi/ARCH.txt. Every register that the ABI gives to a call, or has it preserve, must be clobbered, be written by an
operand, or be saved by hand; no other register may be clobbered. The statements are read from preprocessed code: no
headers, no linker and no machine of the target are needed.

--seeded   headers with one clobber dropped, or with one too many, must be found; each clobber in turn
--complete  each backend must have a table

A table's first line names its source. Then, one a line:
  header: FILE              the backend's, in include/aco/arch/
  target: TRIPLE            for clang
  gcc: COMMAND, ...         where none of them is here, clang plays gcc
  flags[ clang| gcc]: ...   options to compile with, once more
  without: MACRO...         switches that are not there, and macros of SHARED that are not used
  NAMES: ROLE [WORD...]     registers: r0, r2-r5, s0/x8 (a name and another)
ROLE  argument, result, temporary, callee-saved, return-address, status: to be declared. status may be left out:
      `optional`
      frame-pointer: saved by hand
      control: `by=INSTRUCTION`s that keep it, where coroutines have their own FP environment
      stack-pointer, thread-pointer, platform, zero: never declared
WORD  hand, hand=clang, hand=gcc: saved by hand    handed-over=SWITCH,...: there the other side brings it back
      letter=C: constraint of operands there    if=MACRO, if=!MACRO, if=MACRO|MACRO: all must hold

Exit 1 on a failure, 77 when there is no compiler or no backend."""

import argparse
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "include")
SHARED = "statements.h"  # the statements of backends that name the registers which cross
CLANGS = ["clang-19", "clang", "clang-16", "clang-15", "clang-14"]
DECLARED = {"argument", "result", "temporary", "callee-saved", "return-address", "status", "frame-pointer"}
UNTOUCHED = {"stack-pointer", "thread-pointer", "platform", "zero"}
COMES_BACK = ["resume", "yield", "transfer", "swap", "in_stack_resume", "in_stack_yield"]
APART = ["in_stack_next", "in_stack_value"]  # macros of which a function is made here, for compilers that have them
FOR_GOOD = ["exit", "enter", "swap_last", "in_stack_last"]
APART_TEXT = """#ifdef ACO__IN_STACK_NEXT
void aco__switch_in_stack_next() { ACO__IN_STACK_NEXT("+d"(word), ended, busy); }
void aco__switch_in_stack_value() { ACO__IN_STACK_VALUE(injected); }
#endif
"""
OWN_FP = COMES_BACK[:3]  # the first of their two statements keeps control words
COMPILERS_HEADERS = {"float.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h"}


# ---- The ABI's table ----


def expand(names):
    """'r2-r4' gives r2, r3, r4; 's0/x8' one register of two names."""
    out = []
    for part in re.split(r",\s*", names.strip()):
        columns = []
        for name in part.split("/"):
            ends = re.fullmatch(r"(.*?)(\d+)(\D*)-(\D*)(\d+)\D*", name)
            if ends and ends.group(1) == ends.group(4):
                numbers = range(int(ends.group(2)), int(ends.group(5)) + 1)
                columns.append(["%s%d%s" % (ends.group(1), n, ends.group(3)) for n in numbers])
            else:
                columns.append([name])
        out += [list(row) for row in zip(*columns)]
    return out


class Register:
    def __init__(self, names, role, words):
        self.names, self.role = names, role
        self.options = dict(word.split("=", 1) if "=" in word else (word, "") for word in words)
        self.instructions = [word[3:] for word in words if word.startswith("by=")]
        self.conditions = [word[3:] for word in words if word.startswith("if=")]

    def applies(self, macros):
        return all(any((name.lstrip("!") in macros) != name.startswith("!") for name in condition.split("|"))
                   for condition in self.conditions)

    def by_hand(self, macros):
        kind = "clang" if "__clang__" in macros else "gcc"
        return self.role == "frame-pointer" or self.options.get("hand") in ("", kind)


class Table:
    def __init__(self, arch):
        self.arch, self.registers, self.flags, self.settings = arch, [], [("", [])], {}
        with open(os.path.join(HERE, arch + ".txt")) as table:
            self.source = table.readline().strip("# \n")
            for line in table:
                line = line.split("#")[0].strip()
                if not line:
                    continue
                key, value = re.split(r":\s+", line, maxsplit=1)
                if key.startswith("flags"):
                    self.flags.append((key[5:].strip(), value.split()))
                elif key in ("header", "target", "gcc", "without"):
                    self.settings[key] = value
                else:
                    role, *words = value.split()
                    if role not in DECLARED | UNTOUCHED | {"control"}:
                        sys.exit("%s.txt: no such role: %s" % (arch, role))
                    self.registers += [Register(names, role, words) for names in expand(key)]


def check_complete():
    headers = {os.path.basename(path) for path in glob.glob(INCLUDE + "/aco/arch/*.h")
               if "define ACO__CLOBBERS" in open(path).read()}
    tables = [Table(os.path.basename(path)[:-4]) for path in glob.glob(HERE + "/*.txt")]
    missing = headers - {table.settings["header"] for table in tables}
    print("backends without a table: " + ", ".join(sorted(missing)) if missing else "each backend has a table")
    return 1 if missing or not headers else 0


# ---- Preprocessed code ----


def stub_headers(folder):
    """The system's headers, empty: preprocessed asm statements do not depend on them. In next/ those that compilers
    bring, for theirs to include (MinGW)."""
    os.mkdir(os.path.join(folder, "next"))
    for name in COMPILERS_HEADERS:
        open(os.path.join(folder, "next", name), "w").close()
    for path in glob.glob(INCLUDE + "/**/*.h*", recursive=True):
        with open(path) as header:
            for name in re.findall(r"#\s*include <([^>]+)>", header.read()):
                if name not in COMPILERS_HEADERS:
                    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                    open(os.path.join(folder, name), "w").close()


def first_of(commands):
    return next((command for command in commands if shutil.which(command.split()[0])), None)


class NotChecked(Exception):
    pass


class Compiler:
    def __init__(self, name, command):
        self.name, self.command = name, command + ["-E", "-P", "-ffreestanding", "-w", "-x", "c"]

    def run(self, unit, *options):
        done = subprocess.run(self.command + [*options, "-"], input=unit.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise NotChecked((re.findall(r"error: .*", done.stderr.decode()) or ["does not preprocess"])[0])
        return done.stdout.decode()

    @functools.lru_cache(maxsize=None)
    def macros(self):
        """The names that it predefines."""
        return set(re.findall(r"^#define (\w+)", self.run("", "-dM"), re.M))

    def preprocess(self, include, stubs):
        text = '#include "aco.h"\n#include "aco/in_stack_generator.h"\n' + APART_TEXT
        return self.run(text, "-I", include, "-I", stubs, "-idirafter", os.path.join(stubs, "next"))


def compilers(table):
    """Each kind with each set of flags."""
    clang = first_of(CLANGS)
    gcc = first_of(re.split(r",\s*", table.settings.get("gcc", ""))) if "gcc" in table.settings else None
    kinds = []
    if clang:
        kinds.append(("clang", [clang, "--target=" + table.settings["target"], "-nostdlibinc"]))
    if gcc:
        own = subprocess.run(gcc.split() + ["-print-file-name=include"], stdout=subprocess.PIPE).stdout.decode().strip()
        kinds.append(("gcc", gcc.split() + ["-nostdinc", "-isystem", own]))
    elif clang:
        kinds.append(("gcc, played by clang", kinds[0][1] + ["-U__clang__"]))
    return [
        Compiler(" ".join([kind] + flags), command + flags) for kind, command in kinds for only, flags in table.flags
        if not only or kind == only
    ]


def closing(text, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for token in re.compile(r'"(?:\\.|[^"\\])*"|[][(){}]').finditer(text, at):
        depth += (token.group() in "([{") - (token.group() in ")]}")
        if depth == 0:
            return token.end()
    raise ValueError("unbalanced")


def split(text, separator):
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] in "([{":
            at = closing(text, at)
        elif text[at] == '"':
            at = re.compile(r'"(?:\\.|[^"\\])*"').match(text, at).end()
        else:
            if text[at] == separator:
                parts.append(text[start:at])
                start = at + 1
            at += 1
    return [part.strip() for part in parts + [text[start:]]]


def strings(text):
    return re.findall(r'"((?:\\.|[^"\\])*)"', text)


class Statement:
    """One asm statement: its template, the registers that it writes as operands, its clobbers."""

    def __init__(self, text, variables, letters):
        sections = (split(text, ":") + ["", "", ""])[:4]
        self.template = "".join(strings(sections[0])).replace("\\n", "\n").replace("\\t", " ")
        self.clobbers = strings(sections[3])
        self.operands = []
        for operand in filter(None, split(sections[1], ",")):
            constraint = strings(operand)[0].strip("=+&")
            variable = operand[operand.index("("):].strip("() ")
            self.operands.append(variables.get(variable) or letters.get(constraint, "?"))

    def names(self, register):
        """How often the template does."""
        return len(re.findall(r"(?<![\w.])%?%?(?:" + "|".join(map(re.escape, register.names)) + r")(?!\w)",
                              self.template))


def statements(text, table):
    """{name of a switch: its statements}"""
    letters = {
        register.options["letter"]: register.names[0]
        for register in table.registers if "letter" in register.options
    }
    declared = re.compile(r"\bregister\b[^;=]*?\b(\w+)\s+__asm__\s*\(\s*\"([^\"]+)\"\s*\)")
    everywhere, found = declared.findall(text), {}
    for head in re.finditer(r"\baco__switch_(\w+)\s*\(", text):
        end = closing(text, head.end() - 1)
        if not re.match(r"\s*\{", text[end:]):
            continue
        body = text[end:closing(text, text.index("{", end))]
        variables = {name: register.lstrip("$%") for name, register in everywhere + declared.findall(body)}
        kind = "goto" if head.group(1) in APART else "volatile"
        found[head.group(1)] = [
            Statement(body[at.end():closing(body, at.end() - 1) - 1], variables, letters)
            for at in re.finditer(r"__asm__\s+(?:__)?%s(?:__)?\s*\(" % kind, body) if re.search(r":", body[at.end():])]
    return found


# ---- The comparison ----


def saved_by_hand(statement, register, name):
    """Stored and loaded, or swapped, or handed over."""
    exchanged = any("xchg" in line and re.search(r"\b%s\b" % re.escape(name), line)
                    for line in statement.template.split("\n") for name in register.names)
    return (exchanged
            or statement.names(register) >= (1 if name in register.options.get("handed-over", "").split(",") else 2))


def compare(statement, table, macros, switch, own_fp):
    """What is wrong with a switch that comes back."""
    clobbers = {name.lstrip("$%") for name in statement.clobbers}
    if "memory" not in clobbers:
        yield "memory is not clobbered"
    for register in table.registers:
        name = register.names[0]
        declared = clobbers.intersection(register.names)
        if not register.applies(macros):
            continue
        if register.role == "control":
            missing = [word for word in register.instructions
                       if own_fp and not re.search(r"\b(?:%s)\b" % word, statement.template)]
            if missing:
                yield "%s is not kept: no %s" % (name, ", ".join(missing))
        elif register.role in UNTOUCHED or register.by_hand(macros):
            if declared:
                yield "%s is clobbered, the %s" % (name, register.role)
            if register.by_hand(macros) and not saved_by_hand(statement, register, switch):
                yield "%s is not saved by hand, the %s" % (name, register.role)
        elif (not declared and not set(statement.operands).intersection(register.names)
              and "optional" not in register.options):
            yield "%s is not declared, %s" % (name, register.role)


def compare_last(statement, table, macros):
    clobbers = {name.lstrip("$%") for name in statement.clobbers}
    for register in table.registers:
        if register.role in UNTOUCHED and register.applies(macros) and clobbers.intersection(register.names):
            yield "%s is clobbered, the %s" % (register.names[0], register.role)


def check(table, compiler, include, stubs):
    """Complaints, by one compiler."""
    macros = compiler.macros()
    found = statements(compiler.preprocess(include, stubs), table)
    complaints = []
    for name in COMES_BACK + FOR_GOOD + [each for each in APART if each in found]:
        wanted = 0 if name in table.settings.get("without", "").split() else 2 if name in OWN_FP else 1
        if len(found.get(name, [])) != wanted:
            complaints.append("%s: %d asm statements, not %d" % (name, len(found.get(name, [])), wanted))
        for i, statement in enumerate(found.get(name, [])):
            wrong = compare(statement, table, macros, name, name in OWN_FP and i == 0) if name in COMES_BACK + APART \
                else compare_last(statement, table, macros)
            complaints += ["%s: %s" % (name, what) for what in wrong]
    return complaints


def check_all(table, include, stubs):
    """Whether all is well; None where nothing could be checked."""
    failed, checked = 0, 0
    for compiler in compilers(table):
        try:
            complaints = check(table, compiler, include, stubs)
        except NotChecked as why:
            print("%s, %s: not checked: %s" % (table.arch, compiler.name, why))
            failed += not re.search(r"unrecognized|unknown|unsupported|invalid|bad value|has no switch yet", str(why))
            continue
        checked += 1
        failed += len(complaints) > 0
        verdict = "\n  ".join(["differs"] + complaints) if complaints else "as the table says"
        print("%s, %s: %s" % (table.arch, compiler.name, verdict))
    return failed == 0 if failed or checked else None


# ---- Seeded differences ----


def crossing(header):
    """{name: register} of those that cross, as the backend gives them to SHARED."""
    return dict(re.findall(r'^#define (ACO__(?:FIRST|SECOND|THIRD|FOURTH|FIFTH)) "([^"]+)"', header, re.M))


def dropped(header, without, names):
    """(a clobber, the header without it), for every one that is written in the lists of switches. `names`:
    crossing()."""
    lists, one = [], "|".join(['"[^"\\s]+"', *names])
    for macro in re.finditer(r"#define ACO__(\w+)(?:[^\n]*\\\n)*[^\n]*", header):
        if macro.group(1).startswith("CLOBBER"):
            if not re.match(r"#define \w+ *:", macro.group()):  # else of another statement
                lists.append(macro.span())
        elif macro.group(1).lower() not in without:
            lists += [
                m.span(1) for m in re.compile(r"((?:(?:%s),\s*)+)ACO__CLOBBERS" % one).finditer(header, *macro.span())
            ]
    for start, end in lists:
        for token in re.finditer(r",?\s*(%s)(,?)" % one, header[start:end]):
            comma = "," if token.group().startswith(",") and token.group(2) else ""
            name = names.get(token.group(1)) or token.group(1).strip('"')
            yield name, header[:start + token.start()] + " " + comma + header[start + token.end():]


def one_too_many(header, table):
    for register in table.registers:
        if register.role in UNTOUCHED | {"frame-pointer"}:
            yield register.names[0], header.replace('"memory"', '"%s", "memory"' % register.names[0])


def is_found(table, kinds, name, include, stubs):
    register = next((r for r in table.registers if name.lstrip("$%") in r.names), None)
    names = register.names if register else [name]
    for compiler in kinds:
        try:
            complaints = check(table, compiler, include, stubs)
            if any(": %s is " % known in what for what in complaints for known in names):
                return True
        except NotChecked:
            pass
    return False


def can_check(compiler, stubs):
    try:
        compiler.preprocess(INCLUDE, stubs)
        return True
    except NotChecked:
        return False


def check_seeded(table, stubs):
    kinds, missed = [compiler for compiler in compilers(table) if can_check(compiler, stubs)], []
    if not kinds:
        return None
    optional = {name for r in table.registers if "optional" in r.options for name in r.names}
    own = table.settings["header"]
    headers = {name: open(os.path.join(INCLUDE, "aco/arch", name)).read() for name in (own, SHARED)}
    without, names = table.settings.get("without", "").split(), crossing(headers[own])
    seeded = [(file, "without ") + seeded_fault for file in ([own, SHARED] if names else [own])
              for seeded_fault in dropped(headers[file], without, names)
              if seeded_fault[0].lstrip("$%") not in optional]
    seeded += [(own, "with ") + seeded_fault for seeded_fault in one_too_many(headers[own], table)]
    with tempfile.TemporaryDirectory() as folder:
        include = os.path.join(folder, "include")
        shutil.copytree(INCLUDE, include)
        for header, how, name, text in seeded:
            path = os.path.join(include, "aco/arch", header)
            with open(path, "w") as file:
                file.write(text)
            if not is_found(table, kinds, name, include, stubs):
                missed.append(how + name)
            with open(path, "w") as file:
                file.write(headers[header])
    names = ": " * bool(missed) + ", ".join(missed)
    print("%s: %d seeded differences, %d not found%s" % (table.arch, len(seeded), len(missed), names))
    return not missed and len(seeded) > 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--include")
    parser.add_argument("--seeded", action="store_true")
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("arch", nargs="*")
    options = parser.parse_args()
    global INCLUDE
    INCLUDE = options.include or INCLUDE
    if options.complete:
        return check_complete()
    ok, skipped = True, []
    with tempfile.TemporaryDirectory() as stubs:
        stub_headers(stubs)
        for arch in options.arch:
            table = Table(arch)
            if not os.path.exists(os.path.join(INCLUDE, "aco/arch", table.settings["header"])):
                skipped.append(arch + " has no backend")
            elif not compilers(table):
                skipped.append("no compiler for " + arch)
            else:
                done = check_seeded(table, stubs) if options.seeded else check_all(table, INCLUDE, stubs)
                ok &= done is not False
                if done is None:
                    skipped.append("no compiler can serve %s, or it has no backend" % arch)
    for why in skipped:
        print("skipped: " + why)
    return 1 if not ok else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
