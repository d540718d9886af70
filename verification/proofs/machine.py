"""Compiled code, lifted to p-code, and its symbolic execution.

A State holds what is known of registers and memory, byte by byte: which byte of which term. Memory is kept by base: two
addresses with one base are compared by their constants; what a store to an unknown address may have changed is
forgotten."""
import pypcode
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from terms import (Term, add, apply, bit_of, const, fresh, is_const, is_poisoned, joined, make, may_be_set, of_bits,
                   piece_of, signed, split, where)


# Sleigh's names for what changes nothing that is looked at: barriers, hints, traps, what the next instruction set is,
# FPSCR.
WITHOUT_EFFECT = {"LOCK", "UNLOCK", "ShadowStackPush8B", "Hint_Prefetch", "setISAMode", "DataMemoryBarrier",
                  "HintPreloadData",
                  "ClearExclusiveLocal", "ExclusiveAccess", "dbar", "sync", "fence", "instructionSynchronize",
                  "dataCacheBlockTouch",
                  "dataCacheBlockTouchForStore", "MoveToFPSCRFields", "trapWord", "ebreak", "trap"}


class NotUnderstood(Exception):
    pass


class Program:
    """A linked ELF file: its bytes, its symbols, its instructions as p-code."""

    def __init__(self, path, arch):
        self.arch = arch
        self.sections, self.functions, self.labels, self.starts, self.tls, self.static = [], {}, {}, {}, {}, set()
        with open(path, "rb") as file:
            elf = ELFFile(file)
            for section in elf.iter_sections():
                flags = section["sh_flags"]
                if flags & 2 and section["sh_type"] != "SHT_NOBITS":
                    writable = bool(flags & 1) and not section.name.startswith((".got", ".toc", ".data.rel.ro"))
                    self.sections.append((section["sh_addr"], bytearray(section.data()), writable, bool(flags & 4)))
            self.tls_sizes = [(s["p_memsz"], s["p_align"]) for s in elf.iter_segments() if s["p_type"] == "PT_TLS"]
            for symbol in elf.get_section_by_name(".symtab").iter_symbols():
                kind, at = symbol["st_info"]["type"], symbol["st_value"]
                if kind == "STT_FUNC":
                    at &= ~arch.code_bit
                    name = symbol.name
                    while name in self.functions:  # static, in another unit
                        name += "'"
                    self.functions[name] = (at, symbol["st_size"])
                    if symbol["st_info"]["bind"] == "STB_LOCAL":
                        self.static.add(at)
                    local = symbol["st_other"]["local"]  # Power: where calls from the same module enter
                    for start in {at, at + (1 << local if local > 1 else 0)}:
                        self.starts.setdefault(start, []).append(symbol.name)
                elif kind == "STT_TLS":
                    self.tls[symbol.name] = at
                elif symbol.name.startswith("aco"):
                    self.labels[symbol.name] = at & ~arch.code_bit
            self.relocate(elf)
            self.toc = next((s["sh_addr"] + 0x8000 for s in elf.iter_sections() if s.name == ".got"), 0)  # Power's
        State.big, self.lifter = arch.order == "big", None
        if arch.language == "VEX":
            import vex
            self.lifter = vex.Lifter()
            self.registers = dict(self.lifter.registers)
        else:
            self.context = pypcode.Context(arch.language)
            for name, value in arch.context.items():
                self.context.setVariableDefault(name, value)
            self.registers = {name: (r.offset, r.size) for name, r in self.context.registers.items()}
        if arch.thread_pointer not in self.registers:
            self.registers[arch.thread_pointer] = (1 << 40, arch.word)
        self.zero = self.registers.get(arch.zero)
        self.cache = {}

    def thread_record(self):
        """Its offset from the thread pointer."""
        return self.arch.tls_offset(self.tls["aco__thread"], *self.tls_sizes[0])

    def relocate(self, elf):
        """What the dynamic linker writes, the image being where it is linked to be."""
        for section in elf.iter_sections():
            if not isinstance(section, RelocationSection) or not section["sh_flags"] & 2:
                continue
            symbols = elf.get_section(section["sh_link"])
            for entry in section.iter_relocations():
                at = entry["r_offset"]
                data, k = next((data, at - start) for start, data, *_ in self.sections
                               if start <= at < start + len(data))
                addend = entry["r_addend"] if entry.is_RELA() else \
                    int.from_bytes(data[k:k + self.arch.word], self.arch.order)
                symbol = symbols.get_symbol(entry["r_info_sym"]) if entry["r_info_sym"] else None
                if entry["r_info_type"] in self.arch.thread_relocations:
                    addend = self.thread_record()
                elif symbol is not None:
                    addend += symbol["st_value"]
                data[k:k + self.arch.word] = (addend
                                              & (1 << 8 * self.arch.word) - 1).to_bytes(self.arch.word, self.arch.order)

    def bytes_at(self, at, size, code=False):
        """What stands in memory that is not written."""
        for start, data, writable, executable in self.sections:
            if start <= at and at + size <= start + len(data) and (not writable or executable):
                return bytes(data[at - start:at - start + size])
        return None

    def name_at(self, at):
        names = self.starts.get(at & ~self.arch.code_bit)
        return names[0] if names else None

    def location_of(self, name):
        """The address of a function or of a label of the library's, or None."""
        return self.functions[name][0] if name in self.functions else self.labels.get(name)

    def instruction(self, at):
        """(length, operations) of the instruction there."""
        if at not in self.cache:
            data = next((self.bytes_at(at, n) for n in (16, 12, 10, 8, 6, 4, 3, 2, 1) if self.bytes_at(at, n)), None)
            if data is None:
                raise NotUnderstood("no code at %#x" % at)
            if self.lifter:
                try:
                    self.cache[at] = self.lifter.instruction(data, at, self.bytes_at)
                except self.lifter.NotLifted as error:
                    raise NotUnderstood("%#x: %s" % (at, error))
                return self.cache[at]
            try:
                ops = self.context.translate(data, at, 0, len(data), 1).ops
            except (pypcode.BadDataError, pypcode.UnimplError) as error:
                raise NotUnderstood("%#x: %s" % (at, error))
            length = sum(v.size for op in ops if op.opcode == pypcode.OpCode.IMARK for v in op.inputs)
            operations = [Operation(op) for op in ops if op.opcode != pypcode.OpCode.IMARK]
            self.cache[at] = (length, self.vsx(at, operations) if self.arch.targets_last else operations)
        return self.cache[at]

    def vsx(self, at, operations):
        """Power's moves of doublewords, which Sleigh has wrong (lxsdx fills the register from 16 bytes) or names only.
        A register's doubleword 0 is the upper one here."""
        mnemonic, _, rest = self.text(at).partition(" ")
        if mnemonic not in ("lxsdx", "stxsdx", "xxpermdi"):
            return operations
        half = lambda name, number: ("register", self.registers[name.strip()][0] + (0 if number else 8), 8)
        operands = rest.split(",")
        if mnemonic == "xxpermdi":
            which, parts = int(operands[3], 0), [("unique", 0, 8), ("unique", 8, 8)]
            return [Operation.copy(parts[0], half(operands[1], which >> 1)),
                    Operation.copy(parts[1], half(operands[2], which & 1)),
                    Operation.copy(half(operands[0], 0), parts[0]), Operation.copy(half(operands[0], 1), parts[1])]
        for op in operations:
            if op.name == "LOAD":
                op.output = half(operands[0], 0)
            elif op.name == "STORE":
                op.inputs[2] = half(operands[0], 0)
        return [op for op in operations if op.name != "CALLOTHER"]

    def only_decides(self, at):
        """Whether the instruction there computes in registers, from memory too, and perhaps jumps by what it finds."""
        return all(op.name not in ("STORE", "CALL", "CALLIND", "CALLOTHER", "BRANCHIND", "RETURN") and
                   all(space in ("const", "register", "unique") for space, *_ in op.inputs["BRANCH" in op.name:])
                   for op in self.instruction(at)[1])

    def text(self, at):
        data = self.bytes_at(at, 16) or self.bytes_at(at, 4)
        if self.lifter:
            return self.lifter.text(data)
        try:
            i = self.context.disassemble(data, at, 0, len(data), 1).instructions[0]
            return "%s %s" % (i.mnem, i.body)
        except (pypcode.BadDataError, pypcode.UnimplError, IndexError, TypeError):
            return "?"


class Operation:
    __slots__ = ("name", "output", "inputs", "other")

    def __init__(self, op):
        self.name = op.opcode.name
        self.other = pypcode.PcodePrettyPrinter.fmt_op(op) if self.name == "CALLOTHER" else ""
        self.output = op.output and (op.output.space.name, op.output.offset, op.output.size)
        self.inputs = [(v.space.name, v.offset, v.size) for v in op.inputs]
        if self.name == "LOAD" and op.inputs[0].getSpaceFromConst().name == "const":  # Power's masks
            self.name, self.inputs = "COPY", self.inputs[1:]


    @classmethod
    def copy(cls, output, value):
        operation = cls.__new__(cls)
        operation.name, operation.other, operation.output, operation.inputs = "COPY", "", output, [value]
        return operation


class State:
    """Terms have their lowest byte first. Where memory has it last, addresses are counted downwards."""
    big = False

    def __init__(self):
        self.registers, self.memory = {}, {}
        self.facts = {}  # condition: whether it held; since a path was last joined with another

    def copy(self):
        other = State()
        other.facts = dict(self.facts)
        other.registers = dict(self.registers)
        other.memory = {base: dict(cells) for base, cells in self.memory.items()}
        return other

    @staticmethod
    def read(cells, at, size, what, unknown=None):
        """What is not known becomes a variable, which is remembered."""
        at, k = State.lowest(at, size), 0
        while k < size:
            if at + k in cells:
                k += 1
                continue
            n = 1
            while k + n < size and at + k + n not in cells:
                n += 1
            variable = (unknown or fresh)(n, what)
            for i in range(n):
                cells[at + k + i] = (variable, i)
            k += n
        term, first = cells[at]
        if first == 0 and term.size == size and cells[at + size - 1] == (term, size - 1):
            return term
        result, k = None, 0
        while k < size:
            term, first = cells[at + k]
            n = 1
            while k + n < size and cells[at + k + n] == (term, first + n):
                n += 1
            part = piece_of(term, first, n)
            result = part if result is None else joined(part, result)
            k += n
        return result

    @staticmethod
    def lowest(at, size=1):
        """Where cells have the lowest byte of what is at an address; of one byte, also the address of what is there."""
        return 1 - at - size if State.big else at

    @staticmethod
    def write(cells, at, term):
        at = State.lowest(at, term.size)
        for i in range(term.size):
            cells[at + i] = (term, i)

    def learn(self, condition, holds):
        """Each register is what it is where the condition holds, or not: compilers select a value without a branch and
        then branch by what they selected by."""
        for term in {term for term, _ in self.registers.values()}:
            known = where(term, condition, const(1, holds))
            if known is not term:
                self.replace(term, known)

    def replace(self, term, by):
        for cells in (self.registers, *self.memory.values()):
            for at, (old, i) in cells.items():
                if old is term:
                    cells[at] = (by, i)

    @staticmethod
    def known(cells, at, size):
        at = State.lowest(at, size)
        return all(at + i in cells for i in range(size))


class Machine:
    """Executes one instruction. A client hears of memory accesses, calls and what cannot be followed."""

    def __init__(self, program):
        self.program, self.arch = program, program.arch
        self.sp = program.registers[self.arch.sp]
        self.names = {}
        for name, (offset, size) in program.registers.items():
            for i in range(size):
                self.names.setdefault(offset + i, name)

    def register(self, state, name):
        offset, size = self.program.registers[name]
        return State.read(state.registers, offset, size, name)

    def set_register(self, state, name, term):
        State.write(state.registers, self.program.registers[name][0], term)

    def value(self, state, unique, varnode):
        space, offset, size = varnode
        if space == "const":
            return const(size, offset)
        if space == "register":
            if self.program.zero and self.program.zero[0] <= offset < sum(self.program.zero):
                return const(size, 0)
            return State.read(state.registers, offset, size, self.names.get(offset, "r%x" % offset))
        if space == "unique":
            return State.read(unique, offset, size, "undefined")
        return self.client.load(state, const(self.arch.word, offset), size)

    def set_value(self, state, unique, varnode, term):
        space, offset, _ = varnode
        if space == "register":
            State.write(state.registers, offset, term)
        elif space == "unique":
            State.write(unique, offset, term)
        else:
            self.client.store(state, const(self.arch.word, offset), term)

    def step(self, state, at, client):
        """[(where to go on, the state there, conditions)]: where is an address, or ("call" | "leave" | "return", a
        term)."""
        self.client = client
        length, ops = self.program.instruction(at)
        after = at + length
        todo, done = [(0, state, {}, ())], []
        while todo:
            index, state, unique, conditions = todo.pop()
            while True:
                if index >= len(ops):
                    done.append((after, state, conditions))
                    break
                op = ops[index]
                name = op.name
                if name in ("BRANCH", "CBRANCH"):
                    space, offset, size = op.inputs[0]
                    if name == "CBRANCH":
                        taken = self.value(state, unique, op.inputs[1])
                        client.uses(state, taken, "a condition")
                        condition, holds = plain(taken)
                        known = client.decides(state, condition)
                        if known is not None:
                            taken = const(1, known == holds)
                        if is_const(taken):
                            if not taken.args[0]:
                                index += 1
                                continue
                        else:
                            other = state.copy()
                            client.learns(state, condition, holds)
                            client.learns(other, condition, not holds)
                            todo.append((index + 1, other, dict(unique), conditions + ((taken, False),)))
                            conditions += ((taken, True),)
                    if space == "const":  # within the instruction
                        index += signed(offset, size)
                        continue
                    done.append((offset, state, conditions))
                    break
                if name in ("CALL", "CALLIND", "BRANCHIND", "RETURN"):
                    target = const(self.arch.word,
                                   op.inputs[0][1]) if name == "CALL" else self.value(state, unique, op.inputs[0])
                    kind = {"CALL": "call", "CALLIND": "call", "BRANCHIND": "leave", "RETURN": "return"}[name]
                    done.append(((kind, target, after), state, conditions))
                    break
                if name == "LOAD":
                    address = client.settled(self.value(state, unique, op.inputs[1]))
                    self.set_value(state, unique, op.output, client.load(state, address, op.output[2]))
                elif name == "STORE":
                    address = client.settled(self.value(state, unique, op.inputs[1]))
                    client.store(state, address, self.value(state, unique, op.inputs[2]))
                elif name == "CALLOTHER":
                    self.other(state, unique, op)
                elif name == "moves":
                    client.moves(state, client.settled(self.value(state, unique, op.inputs[0])))
                else:
                    arguments = [self.value(state, unique, v) for v in op.inputs]
                    self.set_value(state, unique, op.output, apply(name, op.output[2], *arguments))
                index += 1
        return done


    def other(self, state, unique, op):
        """What Sleigh names only: of what it computes nothing is known, but what from."""
        arguments = op.inputs[1:]
        if op.output and any(name in op.other for name in self.arch.other_thread):
            self.set_value(state, unique, op.output, self.register(state, self.arch.thread_pointer))
            return
        written = op.output
        if not written:
            name = op.other.partition("(")[0].strip()
            if name in WITHOUT_EFFECT:
                return
            if not self.arch.targets_last or arguments[-1][0] != "register":
                raise NotUnderstood("what does %s?" % op.other)
            written = arguments[-1]
            if "madd" not in name and "msub" not in name:
                arguments = arguments[:-1]
        poison = any(is_poisoned(self.value(state, unique, argument)) for argument in arguments)
        self.set_value(state, unique, written, fresh(written[2], "other", poison))


def plain(condition):
    """A condition, or the one that it negates, and whether it is the condition itself."""
    if condition.op == "BOOL_NEGATE":
        other, holds = plain(condition.args[0])
        return other, not holds
    return (make("INT_EQUAL", 1, *condition.args), False) if condition.op == "INT_NOTEQUAL" else (condition, True)


# ---- Joining ----


class Join:
    """What holds in both of two states, by anti-unification: equal terms stay, pairs of different ones become a
    variable, one for each pair. Variables that were made at this place before go on to stand for what they stand for,
    while they can."""

    def __init__(self, ours, client):
        self.ours, self.pairs, self.partner, self.changed, self.client = ours, {}, {}, False, client

    def term(self, a, b):
        if a is b:
            for v in a.free:
                if v in self.ours and self.partner.setdefault(v, v) is not v:
                    break
            else:
                return a
        if (a, b) in self.pairs:
            return self.pairs[a, b]
        client = self.client
        # bits that are set and read one by one
        if client.narrow and a.size == 1 and 1 < may_be_set(a) | may_be_set(b) <= 15:
            self.pairs[a, b] = of_bits([self.term(bit_of(a, n), bit_of(b, n)) for n in range(4)])
            return self.pairs[a, b]
        (x, c), (y, d) = split(a), split(b)
        if c == d and c != 0 and x is not None and y is not None and a is not b:
            return add(self.term(x, y), c)
        if a.op == b.op in ("INT_ZEXT", "piece", "INT_EQUAL") and a.size == b.size and \
                a.args[0].size == b.args[0].size and \
                a.args[1:] == b.args[1:] and (a.op != "INT_EQUAL" or is_const(a.args[1])):
            inner = self.term(a.args[0], b.args[0])
            self.pairs[a, b] = piece_of(inner, a.args[1],
                                        a.size) if a.op == "piece" else apply(a.op, a.size, inner, *a.args[1:])
            return self.pairs[a, b]
        # a half that is written leaves the other as it was
        if a.op == b.op == "PIECE" and a.args[1].size == b.args[1].size:
            self.pairs[a, b] = joined(*map(self.term, a.args, b.args))
            return self.pairs[a, b]
        # and that nobody brought one half says nothing of the other
        if (a.op == "PIECE") != (b.op == "PIECE") and (is_poisoned(a) or is_poisoned(b)):
            low = (a if a.op == "PIECE" else b).args[1].size
            self.pairs[a, b] = joined(*(self.term(piece_of(a, at, size), piece_of(b, at, size))
                                        for at, size in ((low, a.size - low), (0, low))))
            return self.pairs[a, b]
        aligned, or_zero = client.alignment(a) == client.alignment(b) == 0, client.both_or_zero(a, b)
        bit = a.size == 1 and may_be_set(a) | may_be_set(b) == 1
        stands_for_it = (aligned or client.alignment(a) is None) and (bit or a.size > 1 or may_be_set(a) == 0xff) and \
            client.or_zero.get(a) in (None, or_zero) and (is_poisoned(a) or not is_poisoned(b))
        if a in self.ours and stands_for_it and self.partner.setdefault(a, b) is b:
            self.pairs[a, b] = a
            return a
        if a.op == "mixed" or b.op == "mixed":  # in one of them perhaps as it was
            (p, q, m), (r, s, n) = (t.args if t.op == "mixed" else (t, t, (a if a.op == "mixed" else b).args[2])
                                    for t in (a, b))
            if m == n:
                self.pairs[a, b] = make("mixed", a.size, self.term(p, r), self.term(q, s), m)
                self.changed |= a.op != "mixed"
                return self.pairs[a, b]
        self.changed = True
        variable = fresh(a.size, "join", poison=is_poisoned(a) or is_poisoned(b), bit=bit)
        self.ours.add(variable)
        if aligned:
            client.aligned.add(variable)
        if or_zero is not None:
            client.or_zero[variable] = or_zero
        self.partner[variable] = b
        self.pairs[a, b] = variable
        return variable

    def cells(self, old, new):
        out, get = {}, new.get
        ours = theirs = term = None  # of the byte before: most are of one term
        for at, cell in old.items():
            (a, i), other = cell, get(at)
            if other is None or other[1] != i or other[0].size != a.size:
                self.changed = True
                continue
            if a is not ours or other[0] is not theirs:
                ours, theirs = a, other[0]
                term = self.term(ours, theirs)
            out[at] = cell if term is a else (term, i)
        return out

    def state(self, old, new):
        out = State()
        out.registers = self.cells(old.registers, new.registers)
        top, chain = self.back_chain(out, old, new) if self.client.arch.back_chain else (None, {})
        for base, cells in old.memory.items():
            if base is top:
                cells = {at: cell for at, cell in cells.items() if at not in chain}
            match = new.memory.get(base)
            name = base
            if match is None:
                name = next((v for (a, b), v in self.pairs.items() if a is base and b in new.memory), None)
                match = new.memory.get(next((b for (a, b), v in self.pairs.items() if v is name),
                                            None)) if name is not None else None
            if match is None:
                self.changed |= bool(cells)
                continue
            kept = self.cells(cells, match)
            if kept:
                out.memory[name] = kept
        if chain:
            out.memory.setdefault(top, {}).update(chain)
        for a, held in old.facts.items():
            both = [self.same(a, b) for b, too in new.facts.items() if too == held]
            facts = dict.fromkeys((term for term in both if term is not None), held)
            out.facts.update(facts)
            self.changed |= not facts
        return out

    def back_chain(self, out, old, new):
        """The word at a stack pointer that is not the same distance from anything here and there: the pointer's base,
        and what is there."""
        client, word = self.client, self.client.arch.word
        (top, low), (x, c), (y, d) = (split(client.machine.register(state, client.arch.sp))
                                      for state in (out, old, new))
        if top not in self.ours:
            return None, {}
        here, there = ({low + k: state.memory[base][at + k] for k in range(word)
                        if at + k in state.memory.get(base, {})}
                       for state, base, at in ((old, x, c), (new, y, d)))
        client.also_at.setdefault(top, set()).update(place for base, at in ((x, c), (y, d)) if base is not top
                                                     for place in ((base, at), *client.also_at.get(base, ())))
        return top, self.cells(here, there)

    def same(self, a, b):
        """A term that stands for `a` there and for `b` here, by the variables that there are, or None."""
        if a is b and self.ours.isdisjoint(a.free):
            return a
        if (a, b) in self.pairs:
            return self.pairs[a, b]
        if a.op != b.op or a.size != b.size or a.op in ("var", "const") or len(a.args) != len(b.args):
            return None
        args = [self.same(x, y) if isinstance(x, Term) and isinstance(y, Term) else x if x == y else None
                for x, y in zip(a.args, b.args)]
        return None if None in args else make(a.op, a.size, *args)
