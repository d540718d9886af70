#!/usr/bin/env python3
"""check.py [--at-least N] [--vzeroupper yes|no] [--verbose] FILE...

Checks compiled x86-64 code (object files, executables, shared libraries) for the red-zone invariant: a function that
contains an inline switch accesses nothing below its stack pointer. A copying stack saves [sp, top) only, so what such a
function kept below sp across the switch would be lost. Exit 1 with one line for each violation, 2 where the code cannot
be read or fewer than N switches (default 1) were found.

How a switch is recognised. Its assembly ends in one of

    mov (%rdi),%rsp;      mov 0x10(%rdi),%rbp;      jmp *0x8(%rdi)      resume, leaving for a control block
    mov %fs:(%rsi),%rsp;  mov %fs:0x10(%rsi),%rbp;  jmp *%fs:0x8(%rsi)  yield, leaving for the resumer; or without %fs:

and stores the stack pointer before: `mov %rsp,%fs:(%rsi)` or `mov %rsp,(%rdi)`. No compiler makes either. The code goes
on at the address that the last `lea label(%rip),%rdx` took. Without the store it is the last switch of a coroutine
(aco__switch_exit): nothing comes back, and nothing is kept. A store of rsp without such a jump, or the reverse, is an
error: then the switch has changed, and this script must change with it.

How a function is checked. Its control flow is followed from its entry, into the parts that compilers split off. For
each register and for words saved in the frame it is known whether they hold an address in the stack, as base + offset.
Bases: the stack pointer on entry; and for every instruction that aligns the stack pointer or subtracts an unknown
amount, a base of its own, known to be no higher than the address it was made from. An access is right when the address
is known to be no lower than the stack pointer, or the base register holds nothing known: an address known to be below
the stack pointer is itself a violation as soon as it is stored, passed to a call, or merged with another value. Indexes
are not known and taken to be positive; with registers other than rsp and rbp, which point to something in the frame,
taken to stay there. What cannot be proven counts as a violation. Arrays that one base stands for, made in turns of a
loop, are not told apart."""

import argparse
import re
import subprocess
import sys

PUSHED = 8
GENERAL = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"] + ["r%d" % n for n in range(8, 32)]
KEPT_BY_CALLS = {"rbx", "rbp", "rsp", "r12", "r13", "r14", "r15"}
ARGUMENTS = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"}
NEVER_RETURN = {
    "abort", "exit", "_exit", "__assert_fail", "__stack_chk_fail", "_Unwind_Resume", "__fortify_fail", "__chk_fail",
    "aco_exit", "aco_exit1", "aco__nothing_runs", "aco__assert_failed", "aco__alloc_failed", "aco__die",
    "aco__die_of_memory", "aco__entry_returned", "__cxa_throw", "__cxa_rethrow", "__clang_call_terminate",
    "_ZSt9terminatev",
}


def register_names():
    names = {}
    for r in ["ax", "bx", "cx", "dx"]:
        for n in ["r" + r, "e" + r, r, r[0] + "l", r[0] + "h"]:
            names[n] = "r" + r
    for r in ["si", "di", "bp", "sp"]:
        for n in ["r" + r, "e" + r, r, r + "l"]:
            names[n] = "r" + r
    for i in range(8, 32):
        for suffix in ["", "d", "w", "b"]:
            names["r%d%s" % (i, suffix)] = "r%d" % i
    return names


REGISTER = register_names()


class Instruction:
    __slots__ = ("key", "at", "text", "name", "operands", "next", "target", "target_name", "relocation", "section",
                 "function")

    def __init__(self, section, function, at, text):
        self.section, self.function, self.at, self.text, self.key = section, function, at, text, (section, at)
        self.next = self.target = self.target_name = self.relocation = None
        text = re.sub(r"\s+#.*$", "", text)
        words = text.split(None, 1)
        while len(words) == 2 and words[0] in PREFIXES:
            words = words[1].split(None, 1)
        self.name = words[0] if words else "(bad)"
        if "," in self.name: # jne,pt and the like
            self.name = self.name.split(",")[0]
        self.operands = split_operands(words[1]) if len(words) > 1 else []


PREFIXES = {
    "lock", "rep", "repz", "repnz", "notrack", "bnd", "data16", "cs", "ds", "es", "ss", "addr32", "rex.W", "rex",
    "xacquire", "xrelease", "{vex}", "{evex}"
}


def split_operands(text):
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    out.append(text[start:].strip())
    return [o for o in out if o]


MEMORY = re.compile(r"^\*?(?:%([c-gs]s):)?(-?0x[0-9a-f]+|-?[0-9]+)?\((%[a-z0-9]+)?(?:,(%[a-z0-9]+)(?:,([1248]))?)?\)")


class Memory:
    __slots__ = ("segment", "offset", "base", "index")

    def __init__(self, match):
        self.segment = match.group(1)
        self.offset = int(match.group(2), 0) if match.group(2) else 0
        self.base = REGISTER.get((match.group(3) or "%")[1:], match.group(3))
        index = REGISTER.get((match.group(4) or "%")[1:])
        self.index = index if index else None


def memory(operand):
    match = MEMORY.match(operand)
    return Memory(match) if match else None


def register(operand):
    return REGISTER.get(operand[1:]) if operand.startswith("%") else None


def immediate(operand):
    return int(operand[1:], 0) if re.match(r"^\$-?(0x[0-9a-f]+|[0-9]+)$", operand) else None


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


# ---- Reading objdump -------------------------------------------------------------------------------------------------

class Code:
    """All instructions of a file, by section and address."""

    def __init__(self, path):
        self.path = path
        self.instructions = {}
        self.by_address = None
        self.starts = {}   # (section, address) -> function
        self.symbols = {}  # function -> (section, address); the last of that name
        self.functions = {}  # (section, address) -> its instructions
        self.read(subprocess.run(["objdump", "-d", "-r", "-w", "-M", "att", "--no-show-raw-insn", path], check=True,
                                 stdout=subprocess.PIPE, universal_newlines=True).stdout)
        self.link()

    def read(self, text):
        section = current = last = None
        if not re.search(r"file format elf64-x86-64", text):
            raise ValueError("not x86-64 ELF: other architectures have no red zone or no check yet")
        for line in text.splitlines():
            match = re.match(r"^Disassembly of section (.*):$", line)
            if match:
                section, current, last = match.group(1), None, None
                continue
            match = re.match(r"^([0-9a-f]+) <(.*)>:$", line)
            if match:
                current = (section, int(match.group(1), 16))
                self.starts[current] = match.group(2)
                self.symbols[match.group(2)] = current
                self.functions[current] = []
                continue
            match = re.match(r"^\s+([0-9a-f]+):\t(.*)$", line)
            if match and current:
                parts = match.group(2).split("\t")  # -w puts relocations on the same line, after a tab
                instruction = Instruction(section, current, int(match.group(1), 16), parts[0])
                self.relocate(instruction, "\t".join(parts[1:]))
                if last is not None and last.function == current:
                    last.next = (section, instruction.at)
                self.instructions[(section, instruction.at)] = instruction
                self.functions[current].append(instruction)
                last = instruction
                continue
            if last is not None and "R_X86_64" in line:
                self.relocate(last, line)

    @staticmethod
    def relocate(instruction, text):
        match = re.search(r"R_X86_64_(\w+)\s+(\S+)", text)
        if match:
            instruction.relocation = (match.group(1), match.group(2))

    def link(self):
        for instruction in self.instructions.values():
            if not (instruction.name.startswith("j") or instruction.name.startswith("call")):
                continue
            if instruction.relocation and instruction.relocation[0] in ("PLT32", "PC32"):
                self.link_relocated(instruction)
                continue
            match = re.search(r"\b([0-9a-f]+) <([^>]*)>", instruction.text)
            if match:
                instruction.target = (instruction.section, int(match.group(1), 16))
                instruction.target_name = re.sub(r"(@plt|@@.*|\+0x[0-9a-f]+)$", "", match.group(2))
                if instruction.target not in self.instructions:  # another section of an executable
                    instruction.target = next((k for k in self.instructions_at(int(match.group(1), 16))), None)

    def instructions_at(self, address):
        if self.by_address is None:
            self.by_address = {}
            for key in self.instructions:
                self.by_address.setdefault(key[1], []).append(key)
        return self.by_address.get(address, [])

    def link_relocated(self, instruction):
        match = re.match(r"^(.*?)([+-]0x[0-9a-f]+)?$", instruction.relocation[1])
        name, addend = match.group(1), int(match.group(2) or "0", 16) + 4
        instruction.target_name = name
        if name in self.symbols:
            section, address = self.symbols[name]
            instruction.target = (section, address + addend)
        elif name.startswith("."):
            instruction.target = (name, addend)
            instruction.target_name = self.starts.get(instruction.target, name)
        if instruction.target not in self.instructions:
            instruction.target = None

    def name_of(self, function):
        return self.starts[function]


# ---- Switches --------------------------------------------------------------------------------------------------------

LEAVE = {
    "jmp *0x8(%rdi)": ("mov 0x10(%rdi),%rbp", "mov (%rdi),%rsp"),
    "jmp *0x8(%rdx)": ("mov 0x10(%rdx),%rbp", "mov (%rdx),%rsp"),
    "jmp *0x8(%rsi)": ("mov 0x10(%rsi),%rbp", "mov (%rsi),%rsp"),
}
STORES = {"mov %rsp,(%rsi)", "mov %rsp,(%rdi)", "mov %rsp,(%r8)"}
KEEP_BASE = {"mov %rbx,0x18(%rdi)", "mov %rbx,0x18(%r8)", "mov %rbx,0x18(%rsi)"}
RESTORE_BASE = {"mov 0x18(%rsi),%rbx", "mov 0x18(%rsi),%rbx"}


def plain(instruction):
    text = re.sub(r"\s+#.*$", "", instruction.text)
    text = re.sub(r"\bjmpq\b", "jmp", text)
    text = re.sub(r"\bmovq\b", "mov", text)
    text = text.replace("notrack ", "").replace("0x0(", "(")
    # the thread record, found by its offset or (ACO_CONFIG_DYNAMIC_TLS) its address
    text = re.sub(r"%fs:(\w*\(%rsi\))", r"\1", text)
    return re.sub(r"\s+", " ", text.strip())


class Switch:
    """`store`: where the stack pointer is stored; `jump`, `arrival`: the key of the jump away, and of where it comes
    back."""

    def __init__(self, store, jump, arrival, keeps_base, vzeroupper):
        (self.store, self.jump, self.arrival, self.keeps_base,
         self.vzeroupper) = store, jump, arrival, keeps_base, vzeroupper


WAY_BACK = re.compile(r"^lea .*\(%rip\),%rdx$")
LOAD_STACK_POINTER = re.compile(r"^mov [^%]*\((?!%rsp|%rbp)[^)]*\),%rsp$")
LONGEST_SWITCH = 40  # instructions, from the load of the resume address to the jump


def find_switches(instructions):
    """The switches of one function, by the key of their jump; and what cannot be understood, as text."""
    switches, errors = {}, []
    texts = [plain(i) for i in instructions]
    stores = set(n for n, text in enumerate(texts) if text in STORES)
    for n, text in enumerate(texts):
        if LOAD_STACK_POINTER.match(text) and not (n + 2 < len(texts) and texts[n + 2] in LEAVE):
            errors.append("loads the stack pointer in an unknown way: " + instructions[n].text)
        if text not in LEAVE or n < 2 or (texts[n - 1], texts[n - 2]) != LEAVE[text]:
            continue
        first = next((k for k in range(n, max(n - LONGEST_SWITCH, 0), -1) if WAY_BACK.match(texts[k])), n)
        stored = [k for k in range(first, n) if k in stores]
        if not stored:
            continue  # the last switch of a coroutine
        stores.remove(stored[0])
        match = re.search(r"# ([0-9a-f]+) <", instructions[first].text)
        if not match:
            errors.append("a switch without its way back: " + instructions[n].text)
            continue
        within = texts[first:n]
        arrival = (instructions[n].section, int(match.group(1), 16))
        switches[instructions[n].key] = Switch(instructions[stored[0]].key, instructions[n].key, arrival,
                                               not KEEP_BASE.isdisjoint(within), "vzeroupper" in within)
    errors += ["stores the stack pointer, but does not leave: " + instructions[k].text for k in sorted(stores)]
    return switches, errors


# ---- Following the stack pointer -------------------------------------------------------------------------------------

class Bases:
    """Bases of known addresses, and between what they lie: above[b] = (c, k): base b is at least c + k; below[b]: at
    most.

    A base made again in a loop stands for all that were made there: what is known of it holds for each."""

    def __init__(self):
        self.above, self.below = {}, {}

    def make(self, name, most, least=None):
        self.bound(self.below, name, most,
                   lambda known: known if self.not_lower(known, most) else self.lowest_above(known, most))
        self.bound(self.above, name, least, lambda known: known if self.not_lower(least, known) else None)
        return (name, 0)

    def bound(self, bounds, name, value, weaker):
        if name not in bounds:
            bounds[name] = value
        elif value is None or bounds[name] is None:
            bounds[name] = None
        else:
            itself = [offset for base, offset in self.chain(value, bounds) if base == name]
            if not itself: # else made from itself: what holds goes on to hold, if it moves the right way
                bounds[name] = weaker(bounds[name])
            elif (itself[0] > 0) == (bounds is self.below) and itself[0] != 0:
                bounds[name] = None

    def leads_to(self, value, name):
        return any(base == name for base, _ in self.chain(value, self.below))

    @staticmethod
    def chain(value, bounds):
        while value:
            yield value
            bound = bounds.get(value[0])
            value = bound and (bound[0], bound[1] + value[1])

    def lowest_above(self, one, other):
        """The nearest address that neither is higher than, or None."""
        others = dict(self.chain(other, self.below))
        return next(
            ((base, max(offset, others[base])) for base, offset in self.chain(one, self.below) if base in others), None)

    def not_lower(self, address, sp):
        """Whether address >= sp is known. Both are (base, offset)."""
        least = dict(self.chain(address, self.above))
        return any(base in least and least[base] >= offset for base, offset in self.chain(sp, self.below))


class State:
    __slots__ = ("registers", "slots")

    def __init__(self, registers, slots):
        self.registers, self.slots = registers, slots

    def copy(self):
        return State(dict(self.registers), dict(self.slots))

    def __eq__(self, other):
        return self.registers == other.registers and self.slots == other.slots


NO_ACCESS = ("nop", "prefetch", "lea")
COMPARES = re.compile(r"^(cmp[bwlq]?$|test[bwlq]?$|bt[wlq]?$|v?u?comis|v?ptest|vtestp|k(or)?test)")


class Checker:
    def __init__(self, code, function, switches):
        self.code, self.function, self.switches = code, function, switches
        self.bases = Bases()
        self.states = {}
        self.sources = {}
        self.violations = {}
        self.indirect = None
        self.work = []

    def complain(self, instruction, why):
        self.violations[instruction.key] = "%s: %s: %s: %x: %s" % (
            self.code.path, self.code.name_of(self.function), why, instruction.at,
            re.sub(r"\s+", " ", instruction.text))

    # -- joining --

    def is_surely_below(self, value, state):
        """Not so a copy of the stack pointer that an unknown amount was taken from: the end of a loop of stack probes,
        say."""
        sp = state.registers.get("rsp")
        return value is not None and sp is not None and self.bases.not_lower(sp, (value[0], value[1] + 1))

    def is_below(self, value, state):
        sp = state.registers.get("rsp")
        return value is not None and sp is not None and not self.bases.not_lower(value, sp)

    def arrive(self, key, state, source):
        if key is None or key not in self.code.instructions:
            return
        old = self.states.get(key)
        sources = self.sources.setdefault(key, set())
        sources.add(source)
        if old is None or (len(sources) == 1 and old != state): # nothing to join
            self.states[key] = state.copy()
            self.work.append(key)
            return
        if old == state:
            return
        joined = State({}, {})
        mine, other = old.registers.get("rsp"), state.registers.get("rsp")
        if mine and other and mine != other: # memory from alloca() on one of the ways here
            self.set(joined, "rsp", self.join_stack_pointers(key, mine, other))
        for r, value in old.registers.items():
            if state.registers.get(r) == value:
                joined.registers[r] = value
        for slot, value in old.slots.items():
            if state.slots.get(slot) == value:
                joined.slots[slot] = value
        if joined != old:
            self.states[key] = joined
            self.work.append(key)

    def join_stack_pointers(self, key, mine, other):
        """A base that stands for both, known to be no higher than what is no lower than either; or None."""
        name = "joined at %x" % key[1]
        if mine == (name, 0) and self.bases.below.get(name) and self.bases.not_lower(self.bases.below[name], other):
            return mine
        most = self.bases.lowest_above(mine, other)
        return self.bases.make(name, most) if most and not self.bases.leads_to(most, name) else None

    def lost_at_joins(self):
        """Addresses below the stack pointer that a join forgot: whoever uses them later is not seen."""
        for key, state in list(self.states.items()):
            instruction = self.code.instructions[key]
            for following, after in self.successors.get(key, []):
                joined = self.states.get(following)
                if joined is None or "rsp" not in after.registers:
                    continue
                for r, value in after.registers.items():
                    if (r != "rsp" and r not in joined.registers and self.is_surely_below(value, after)
                            and self.is_read_first(following, r)):
                        self.complain(instruction, "an address below the stack pointer is lost track of (%s)" % r)

    def is_read_first(self, key, wanted, limit=64):
        """Whether the register may be read before it is overwritten, from here on (straight line; else assumed)."""
        for _ in range(limit):
            instruction = self.code.instructions.get(key)
            if instruction is None:
                return False
            operands = instruction.operands
            if instruction.name.startswith("ret"):
                return wanted == "rax"
            if instruction.name.startswith("j"):
                return True
            if instruction.name.startswith("call"):
                return wanted in KEPT_BY_CALLS or wanted in ARGUMENTS
            for n, operand in enumerate(operands):
                m = memory(operand)
                if m and wanted in (m.base, m.index):
                    return True
                if register(operand) == wanted and (n < len(operands) - 1 or not writes_only(instruction)):
                    return True
            if operands and register(operands[-1]) == wanted:
                return False
            key = instruction.next
        return True

    # -- one instruction --

    def address(self, m, state):
        """The known address that a memory operand is based on, and whether an index makes it uncertain."""
        if m.segment in ("fs", "gs"):
            return None, False
        for r, other in ((m.base, m.index), (m.index, m.base)):
            if r in state.registers:
                base, offset = state.registers[r]
                return (base, offset + m.offset), other is not None
        return None, False

    def check_accesses(self, instruction, state):
        name = instruction.name
        if name.startswith(NO_ACCESS) or (name.startswith("or") and instruction.operands[0] == "$0x0"):
            return # the latter is a stack probe, which stores what is there
        for operand in instruction.operands:
            m = memory(operand)
            if not m:
                continue
            if "rsp" not in state.registers:
                if m.base == "rsp" and m.offset < 0:
                    self.complain(instruction, "accesses below the stack pointer")
                continue
            value, uncertain = self.address(m, state)
            if uncertain and m.base not in ("rsp", "rbp") and not self.is_below((value[0], value[1] - m.offset), state):
                continue # a pointer to an object of the frame and an index that begins above 0
            if self.is_below(value, state):
                self.complain(instruction, "accesses below the stack pointer")

    def check_escape(self, instruction, value, state, how):
        if self.is_surely_below(value, state):
            self.complain(instruction, "an address below the stack pointer is %s" % how)

    def push(self, state, value):
        sp = state.registers.get("rsp")
        if sp is None:
            return
        sp = (sp[0], sp[1] - PUSHED)
        state.registers["rsp"] = sp
        self.store(state, sp, value)

    def store(self, state, address, value):
        if value is None:
            state.slots.pop(address, None)
        else:
            state.slots[address] = value

    @staticmethod
    def set(state, r, value):
        if value is None:
            state.registers.pop(r, None)
        else:
            state.registers[r] = value

    def call(self, instruction, state):
        for r in ARGUMENTS:
            if r in state.registers:
                self.check_escape(instruction, state.registers[r], state, "passed to a call (%s)" % r)
        for r in list(state.registers):
            if r not in KEPT_BY_CALLS:
                del state.registers[r]

    def effect(self, instruction, state):
        """Changes `state` to what holds after an instruction that does not jump."""
        name, operands = instruction.name, instruction.operands
        registers = state.registers
        if plain(instruction) in RESTORE_BASE and "base at arrival" in registers:
            registers["rbx"] = registers.pop("base at arrival")
            return
        self.check_accesses(instruction, state)
        if not operands and name in ("leave", "leaveq"):
            frame = registers.get("rbp")
            self.set(state, "rbp", state.slots.get(frame) if frame else None)
            self.set(state, "rsp", (frame[0], frame[1] + PUSHED) if frame else None)
            return
        if name in ("push", "pushq") and operands:
            self.push(state, registers.get(register(operands[0])))
            return
        if name in ("pushf", "pushfq"):
            self.push(state, None)
            return
        if name in ("pop", "popq", "popf", "popfq"):
            sp = registers.get("rsp")
            r = register(operands[0]) if operands else None
            if sp:
                registers["rsp"] = (sp[0], sp[1] + PUSHED)
            if r:
                self.set(state, r, state.slots.get(sp) if sp else None)
            return
        if name in ("cpuid", "rdtsc", "xgetbv", "rdtscp", "syscall") or \
                (name[:3] in ("mul", "div") or name[:4] == "idiv") or \
                (name[:4] == "imul" and len(operands) == 1) or name in ("cqto", "cltd", "cqo"):
            for r in (("rax", "rdx") + (("rbx", "rcx") if name == "cpuid" else ()) +
                      (("rcx", "r11") if name == "syscall" else ())):
                registers.pop(r, None)
            return
        if name in ("cltq", "cwtl", "cbtw"):
            registers.pop("rax", None)
            return
        if name[:4] in ("stos", "movs", "lods", "scas", "cmps") and \
                any("(%rsi)" in o or "(%rdi)" in o for o in operands) and \
                not any(o.startswith("%xmm") for o in operands):
            for r in ("rsi", "rdi", "rcx"):
                registers.pop(r, None)
            if name[:4] == "lods":
                registers.pop("rax", None)
            return
        if not operands:
            return
        if COMPARES.match(name) or name.startswith(("nop", "prefetch", "endbr", "ud2")):
            return
        self.assign(instruction, state)

    def assign(self, instruction, state):
        name, operands, registers = instruction.name, instruction.operands, state.registers
        target = register(operands[-1])
        full = operands[-1] in ("%" + g for g in GENERAL)
        source = register(operands[0])
        if name.startswith("xchg") and len(operands) == 2:
            self.exchange(instruction, state)
            return
        if target is None:
            to = memory(operands[-1])
            if to is None:
                return
            address, uncertain = self.address(to, state)
            value = registers.get(source) if name in ("mov", "movq") and source and operands[0][1:] in GENERAL else None
            self.check_escape(instruction, value, state, "stored")
            if address and not uncertain:
                self.store(state, address, value)
            return
        old, new = registers.get(target), None
        if name in ("mov", "movq", "movabs") and len(operands) == 2:
            m = memory(operands[0])
            if source and full:
                new = registers.get(source)
            elif m and full:
                address, uncertain = self.address(m, state)
                new = state.slots.get(address) if address and not uncertain else None
        elif name in ("lea", "leaq") and full:
            m = memory(operands[0])
            address, uncertain = self.address(m, state) if m else (None, False)
            new = self.bases.make("indexed at %x" % instruction.at, address, address) if uncertain else address
        elif name in ("add", "addq", "sub", "subq", "inc", "incq", "dec", "decq") and full and old:
            new = self.arithmetic(instruction, state, target, old)
        elif (name in ("and", "andq") and full and old and immediate(operands[0]) is not None
              and signed(immediate(operands[0])) < 0):
            new = self.bases.make("aligned at %x" % instruction.at, old,
                                  (old[0], old[1] + signed(immediate(operands[0])) + 1))
        elif not writes_only(instruction):
            # compared, tested or moved around by parts: what it was is not known any more
            if target != "rsp":
                self.check_escape(instruction, old, state, "computed with")
        for operand in operands[:-1]:
            r = register(operand)
            if r and r != "rsp" and new is None and name not in ("mov", "movq") and r in registers:
                self.check_escape(instruction, registers[r], state, "computed with")
        self.set(state, target, new)

    def arithmetic(self, instruction, state, target, old):
        operands, down = instruction.operands, instruction.name[:3] in ("sub", "dec")
        if len(operands) == 1:
            return (old[0], old[1] + (-1 if down else 1))
        amount = immediate(operands[0])
        if amount is not None:
            amount = signed(amount)
            return (old[0], old[1] - amount if down else old[1] + amount)
        if not down and target != "rsp":
            return self.bases.make("indexed at %x" % instruction.at, old, old)
        return self.bases.make("lowered at %x" % instruction.at, old)

    def exchange(self, instruction, state):
        a, b = (register(o) for o in instruction.operands)
        if a and b:
            va, vb = state.registers.get(a), state.registers.get(b)
            self.set(state, a, vb)
            self.set(state, b, va)
            return
        for r in (a, b):
            if r:
                self.check_escape(instruction, state.registers.get(r), state, "stored")
                self.set(state, r, None)

    # -- the function --

    def follow(self, key):
        """What comes after the instruction at `key`: pairs of key and state."""
        instruction, state = self.code.instructions[key], self.states[key].copy()
        name = instruction.name
        if key in self.switches:
            return [(self.switches[key].arrival, State(dict(self.left[key]), state.slots))]
        if name.startswith("ret") or name in ("ud2", "hlt", "(bad)", "int3"):
            return []
        if name.startswith("call"):
            self.check_accesses(instruction, state)
            self.call(instruction, state)
            return [] if instruction.target_name in NEVER_RETURN else [(instruction.next, state)]
        if name.startswith("jmp"):
            if instruction.operands and instruction.operands[0].startswith("*"):
                self.check_accesses(instruction, state)
                if state.registers.get("rsp") != ("entry", 0):
                    self.indirect = state
                return []
            return [(instruction.target, state)] if self.is_inside(instruction, state) else []
        if name.startswith("j") or name.startswith("loop"):
            out = [(instruction.next, state)]
            if self.is_inside(instruction, state):
                out.append((instruction.target, state))
            return out
        if key in self.stores:
            self.remember(self.stores[key], state)
            return [(instruction.next, state)]
        self.effect(instruction, state)
        return [(instruction.next, state)]

    def remember(self, switch, state):
        """The switch leaves: what comes back is the stack pointer, and rbp and perhaps rbx, as they are now."""
        saved = {r: state.registers[r] for r in ("rsp", "rbp") if r in state.registers}
        if switch.keeps_base and "rbx" in state.registers:
            saved["base at arrival"] = state.registers["rbx"]
        self.left[switch.jump] = saved

    def is_inside(self, instruction, state):
        """Whether a jump stays in the function (or a part split off it), rather than being a tail call."""
        target = instruction.target
        if target is None:
            return False
        function = self.code.instructions[target].function
        if function == self.function or target not in self.code.starts:
            return True
        return ".cold" in self.code.name_of(function) and \
            self.code.name_of(function).split(".")[0] == self.code.name_of(self.function).split(".")[0]

    def run(self):
        self.left = {}    # what each switch brings back, by the key of its jump
        self.stores = {switch.store: switch for switch in self.switches.values()}
        start = State({"rsp": ("entry", 0)}, {})
        self.arrive(self.function, start, None)
        while True:
            self.drain()
            unreached = self.first_unreached()
            if unreached is None:
                break
            self.arrive(unreached, self.indirect, None)
        self.settle()
        # states are final now: report from them alone
        self.violations = {}
        self.successors = {}
        for key in list(self.states):
            self.successors[key] = self.follow(key)
        self.lost_at_joins()
        for instruction in self.code.functions[self.function]:
            if instruction.key not in self.states:
                self.check_unreached(instruction)
        for key in self.switches:
            if key not in self.states or "rsp" not in self.left[key]:
                self.complain(self.code.instructions[key], "the stack pointer at the switch is not known")
        return [self.violations[k] for k in sorted(self.violations)]

    def drain(self):
        while self.work:
            key = self.work.pop()
            for following, state in self.follow(key):
                self.arrive(following, state, key)

    def settle(self):
        """What is known of bases may have become less since a state was made from it."""
        for _ in range(10):
            before = dict(self.states)
            self.work = list(self.states)
            self.drain()
            if before == self.states:
                return
        raise ValueError("%s: the states do not settle" % self.code.name_of(self.function))

    def first_unreached(self):
        """Where a jump table may lead: the first instruction after an unconditional jump that nothing was seen to
        reach."""
        if self.indirect is None:
            return None
        instructions = self.code.functions[self.function]
        for n in range(1, len(instructions)):
            key = instructions[n].key
            if (key in self.states or instructions[n].name.startswith(("nop", "cs", "data16", "int3"))
                    or plain(instructions[n]) == "xchg %ax,%ax"):
                continue
            return key
        return None

    def check_unreached(self, instruction):
        for operand in instruction.operands:
            m = memory(operand)
            if m and m.base == "rsp" and m.offset < 0 and not instruction.name.startswith(NO_ACCESS):
                self.complain(instruction, "accesses below the stack pointer (in code that nothing was seen to reach)")


WRITES_ONLY = re.compile(
    r"^(mov|v?mov|lea|set|pop|cmov|cvt|vcvt|v?pextr|v?pmovmsk|bsf|bsr|tzcnt|lzcnt|popcnt|imul|rorx|shlx|shrx|sarx|"
    r"kmov|rdfsbase|pext|pdep|andn|bextr|mulx|stmxcsr|fnst|in)")


def writes_only(instruction):
    """Whether the last operand is overwritten without being read."""
    name, operands = instruction.name, instruction.operands
    if name.startswith("imul"):
        return len(operands) == 3
    if name.startswith("cmov"):
        return False
    if name.startswith(("xor", "sub", "pxor")) and len(operands) == 2 and operands[0] == operands[1]:
        return True
    return bool(WRITES_ONLY.match(name))


def check_function(code, function):
    """How many switches there are in it, those without vzeroupper among them, violations, what was not understood."""
    name = code.name_of(function)
    switches, errors = find_switches(code.functions[function])
    if not switches:
        return 0, 0, [], [e for e in errors if "stores" in e]
    entry, parts = function, dict(switches)
    for other in (name.split(".cold")[0], name + ".cold"):  # what was split is one function
        if other != name and other in code.symbols:
            parts.update(find_switches(code.functions[code.symbols[other]])[0])
            entry = code.symbols[other] if ".cold" in name else function
    return len(switches), sum(not s.vzeroupper for s in switches.values()), Checker(code, entry, parts).run(), errors


def check_file(path, arguments):
    """The number of switches, violations, what was not understood."""
    code = Code(path)
    switches_found, functions_found, violations, errors = 0, 0, [], []
    for function in code.functions:
        found, without, wrong, unknown = check_function(code, function)
        switches_found, functions_found = switches_found + found, functions_found + (found > 0)
        violations += wrong
        errors += ["%s: %s: %s" % (path, code.name_of(function), e) for e in unknown]
        if arguments.vzeroupper and found and without != (0 if arguments.vzeroupper == "yes" else found):
            violations.append(
                "%s: %s: %d of %d switches clear no upper halves" % (path, code.name_of(function), without, found))
    if arguments.verbose:
        print("%s: %d switches in %d functions" % (path, switches_found, functions_found))
    return switches_found, violations, errors


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument("--at-least", type=int, default=1)
    parser.add_argument("--vzeroupper", choices=["yes", "no"])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    found, violations, errors = 0, [], []
    for path in arguments.files:
        try:
            n, v, e = check_file(path, arguments)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            print("%s: %s" % (path, error), file=sys.stderr)
            return 2
        found, violations, errors = found + n, violations + v, errors + e
    for line in sorted(set(violations)) + sorted(set(errors)):
        print(line)
    if errors or found < arguments.at_least:
        print("check.py: found %d switches where %d or more were expected, %d not understood" %
              (found, arguments.at_least, len(errors)))
        return 2
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
