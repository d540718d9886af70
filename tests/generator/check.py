#!/usr/bin/env python3
"""check.py [--compilers CC,...] [FILE...]

Checks what x86-64 compilers make of generators. Of code.c at -O2, by every compiler named:
  - in the loops of tight_ functions nothing is accessed in memory but their own frame
  - framed_ functions, which consume an in-stack generator, have a frame pointer and access nothing by the stack pointer
  - seeded_ functions, which break these rules, are found to do so
Of these and of the FILEs (executables, objects): no function with a generator's switch uses the red zone, which signals
and the consumer's calls overwrite.

A switch is `xchg %rbp,%rsi` with `jmp *%rax` within four instructions. Its code goes on behind the jump; in an in-stack
resume after the failure branch that stands there. Exit 1 with a line for each violation, 2 when no switch was found, 77
without any compiler."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LINE = re.compile(r"^\s*([0-9a-f]+):\s+([a-z][\w.,]*)\s*([^#<]*)")
HEAD = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
ACCESS = re.compile(r"(-?(?:0x)?[0-9a-f]*)\((%\w+)?")
NOT_ACCESSES = ("lea", "nop", "jmp", "notrack", "ret", "endbr64")


class Instruction:
    def __init__(self, address, name, operands):
        self.address, self.name, self.operands = address, name, operands.strip()
        target = re.match(r"([0-9a-f]+)$", self.operands)
        self.target = int(target.group(1), 16) if name.startswith("j") and target else None

    def access(self):
        """(offset, base register) of what it reads or writes in memory."""
        found = ACCESS.search(self.operands)
        if not found or self.name.startswith(NOT_ACCESSES) or "%fs:" in self.operands:
            return (0, "%fs") if "%fs:" in self.operands else None
        return int(found.group(1) or "0", 0), found.group(2)


def disassemble(path):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    functions, name = {}, None
    for line in text.splitlines():
        head, instruction = HEAD.match(line), LINE.match(line)
        if head:
            name = head.group(1)
            functions[name] = []
        elif instruction and name:
            functions[name].append(
                Instruction(int(instruction.group(1), 16), instruction.group(2), instruction.group(3)))
    return functions


def switches(code):
    """Indices of the jumps that leave."""
    return [
        i for i, instruction in enumerate(code)
        if instruction.name == "jmp" and instruction.operands == "*%rax"
        and any(re.match(r"%rbp,%rsi|%rsi,%rbp", other.operands) and other.name == "xchg"
                for other in code[max(0, i - 4):i])
    ]


def successors(code, i, index_of, left):
    instruction = code[i]
    if i in left:
        behind = i + 1
        while behind < len(code) and code[behind].operands.startswith("$0x1,%edi"): # the failure branch, and its jump
            behind += 2
        return [behind] if behind < len(code) else []
    if (instruction.name.startswith(("call", "ret", "ud2", "hlt"))
            or (instruction.name.startswith("jmp") and instruction.target is None)):
        return []
    out = [index_of[instruction.target]] if instruction.target in index_of else []
    if not instruction.name.startswith("jmp") and i + 1 < len(code):
        out.append(i + 1)
    return out


def loop_around(code, start, left):
    """What can be reached from `start` and reaches it again, without a call."""
    index_of = {instruction.address: i for i, instruction in enumerate(code)}
    forward = {i: successors(code, i, index_of, left) for i in range(len(code))}
    backward = {i: [] for i in forward}
    for i, targets in forward.items():
        for target in targets:
            backward[target].append(i)

    def reach(edges):
        seen, todo = set(), list(edges[start])
        while todo:
            i = todo.pop()
            if i not in seen:
                seen.add(i)
                todo += edges[i]
        return seen
    return sorted(reach(forward) & reach(backward))


def is_framed(code):
    return any(i.name == "mov" and i.operands == "%rsp,%rbp" for i in code)


def check_tight(name, code):
    left = switches(code)
    frame = ("%rsp", "%rbp") if is_framed(code) else ("%rsp",)
    loops = [loop_around(code, i, left) for i in left]
    if not any(loops):
        return ["%s: no loop found" % name]
    return ["%s: %x: %s %s in the loop" % (name, code[i].address, code[i].name, code[i].operands)
            for loop in loops for i in loop if code[i].access() and code[i].access()[1] not in frame]


def check_framed(name, code):
    bad = [
        "%s: %x: %s %s by the stack pointer" % (name, i.address, i.name, i.operands) for i in code
        if i.access() and i.access()[1] == "%rsp"
    ]
    if not is_framed(code):
        bad.append("%s: no frame pointer" % name)
    return bad


def check_red_zone(name, code):
    """Below the stack pointer; by the frame pointer, below all that is ever pushed or subtracted."""
    framed, depth = is_framed(code), 0
    for i in code:
        subtracted = re.match(r"\$0x([0-9a-f]+),%rsp$", i.operands)
        added = re.match(r"\$0xffffffff([0-9a-f]{8}),%rsp$", i.operands)
        if i.name == "push":
            depth += 8
        elif i.name == "sub" and subtracted:
            depth += int(subtracted.group(1), 16)
        elif added and i.name in ("add", "and"): # -128, and what over-aligned frames lose
            depth += (1 << 32) - int(added.group(1), 16)
    bad = []
    for i in code:
        offset, base = i.access() or (0, None)
        if (base == "%rsp" and offset < 0) or (framed and base == "%rbp" and -0x10000 < offset < -depth):
            bad.append("%s: %x: %s %s in the red zone" % (name, i.address, i.name, i.operands))
    return bad


def check_file(path):
    bad, count = [], 0
    for name, code in disassemble(path).items():
        if switches(code):
            count += 1
            bad += check_red_zone(name, code)
    return bad, count


def check_compiler(compiler, folder):
    path = os.path.join(folder, "code.o")
    bad, count = [], 0
    for flags in ["-O2", "-O2 -fPIC", "-O3", "-O2 -DSEEDED"]:
        subprocess.run([compiler] + flags.split() +
                       ["-std=c11", "-fexceptions", "-I" + ROOT + "/include", "-c", HERE + "/code.c", "-o", path],
                       check=True)
        functions = disassemble(path)
        found = []
        for name, code in functions.items():
            if name.endswith(".cold"): # a part of another, behind a call
                continue
            where = "%s %s: %s" % (compiler, flags, name)
            if "seeded" in name:
                wrong = (check_red_zone(where, code) if "leaf" in name else
                         (check_tight if "tight" in name else check_framed)(where, code))
                found += [name] if wrong else []
                continue
            if switches(code):
                count += 1
                bad += check_red_zone(where, code)
            if name.startswith("tight_"):
                bad += check_tight(where, code)
            if name.startswith("framed_"):
                bad += check_framed(where, code)
        if "SEEDED" in flags and len(found) != 3:
            bad.append("%s: of the seeded violations only %s were found" % (compiler, found))
    return bad, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compilers", default="gcc,clang-19,clang-14")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    compilers = [c for c in arguments.compilers.split(",") if c and shutil.which(c)]
    bad, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        results = [check_compiler(c, folder) for c in compilers] + [check_file(path) for path in arguments.files]
    for more, switching in results:
        bad += more
        count += switching
    print("\n".join(
        bad + ["generator.code: %d functions with switches; compilers: %s" % (count, " ".join(compilers) or "none")]))
    if not compilers and not arguments.files:
        return 77
    return 1 if bad else 0 if count else 2


if __name__ == "__main__":
    sys.exit(main())
