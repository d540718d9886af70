"""s390x, which Sleigh does not know, lifted by VEX (pyvex) and put into the operations that machine.py executes: one
instruction at a time, each VEX temporary a location of its own. What VEX computes by a function of its own, the
condition code, has its meaning in terms.py for the comparisons and tests that the theorems need; of all else nothing is
known but what it is computed from.

Memory and VEX's registers are big-endian here (machine.State.big)."""
import re

import archinfo
import pyvex

MVC, XC, EXRL = 0xd2, 0xd7, 0xc6
TO_DOUBLE = (b"\xb3\x91", b"\xb3\xa1")  # of unsigned numbers, for which pyvex's processor is too old
SIZES = {"Ity_I1": 1, "Ity_I8": 1, "Ity_I16": 2, "Ity_I32": 4, "Ity_I64": 8, "Ity_I128": 16, "Ity_F32": 4, "Ity_F64": 8,
         "Ity_F128": 16,
         "Ity_D32": 4, "Ity_D64": 8, "Ity_D128": 16, "Ity_V128": 16}
REGISTERS = {"thread": (0, 8), "cc": (736, 32), "fpc": (712, 4),
             **{"a%d" % n: (4 * n, 4) for n in range(16)}, **{"f%d" % n: (64 + 16 * n, 8) for n in range(16)},
             **{"v%d" % n: (64 + 16 * n, 16) for n in range(32)}, **{"r%d" % n: (576 + 8 * n, 8) for n in range(16)}}
COUNTER, PLACE = 704, (720, 776, 784)  # of a loop within an instruction; where it goes on, which is read off elsewhere
TWO = {"Add": "INT_ADD", "Sub": "INT_SUB", "And": "INT_AND", "Or": "INT_OR", "Xor": "INT_XOR", "Mul": "INT_MULT",
       "Shl": "INT_LEFT",
       "Shr": "INT_RIGHT", "Sar": "INT_SRIGHT", "CmpEQ": "INT_EQUAL", "CmpNE": "INT_NOTEQUAL"}
ORDER = {"LTU": "INT_LESS", "LTS": "INT_SLESS", "LEU": "INT_LESSEQUAL", "LES": "INT_SLESSEQUAL"}
CALCULATES = "s390_calculate_cond"


class NotLifted(Exception):
    pass


class Operation:
    __slots__ = ("name", "output", "inputs", "other")

    def __init__(self, name, output, *inputs, other=""):
        self.name, self.output, self.inputs, self.other = name, output, list(inputs), other


def const(value, size=8):
    return ("const", value, size)


class Lifter:
    registers, NotLifted = REGISTERS, NotLifted

    def __init__(self):
        self.arch = archinfo.ArchS390X()

    @staticmethod
    def length(data):
        return (2, 4, 4, 6)[data[0] >> 6]

    def instruction(self, data, at, bytes_at):
        """(length, operations)"""
        length = self.length(data)
        if data[0] == EXRL and data[1] & 15 == 0:
            return length, self.moves(bytes_at(at + 2 * int.from_bytes(data[2:6], "big", signed=True), 6))
        if data[:2] == bytes((MVC, 255)):
            return length, self.moves(data)
        if self.is_trap(data):
            return length, [Operation("CALLOTHER", None, other="trap()")]
        if data[0] == MVC or data[0] == XC and data[2:4] == data[4:6]:
            return length, self.characters(data)
        if data[:2] in TO_DOUBLE:
            to, source = (REGISTERS[kind + "%d" % number]
                          for kind, number in (("f", data[3] >> 4), ("r", data[3] & 15)))
            return length, [Operation("to double", ("register", *to), ("register", *source))]
        block = pyvex.IRSB(data[:length], at, self.arch, max_inst=1, opt_level=0)
        if block.size != length:
            raise NotLifted("%s: VEX does not know it" % data[:length].hex())
        return length, One(block, at, length, data).operations

    @staticmethod
    def is_trap(data):
        """A jump into its own middle, to two bytes that are no instruction; and these two bytes."""
        return data[:4] == b"\xa7\xf4\x00\x01" or data[0] == 0

    def text(self, data):
        return "trap" if self.is_trap(data) else "instruction " + data[:self.length(data)].hex()

    @staticmethod
    def location(high, low):
        base, offset = high >> 4, (high & 15) << 8 | low
        return ("register", REGISTERS["r%d" % base][0], 8) if base else const(0), offset

    def moves(self, data):
        """A copy of unknown length: an mvc of 256 bytes in a loop, and one that exrl gives the length of the rest."""
        if data is None or data[0] != MVC:
            raise NotLifted("exrl of what is no mvc")
        (to, at), address = self.location(data[2], data[3]), ("unique", 0, 8)
        return [Operation("INT_ADD", address, to, const(at)), Operation("moves", None, address)]

    def characters(self, data):
        """mvc, or xc of something with itself: byte after byte, as they are defined."""
        (to, at), (source, begin) = self.location(data[2], data[3]), self.location(data[4], data[5])
        out, address, byte = [], ("unique", 0, 8), ("unique", 8, 1)
        for k in range(data[1] + 1):
            if data[0] == MVC:
                out += [Operation("INT_ADD", address, source, const(begin + k)),
                        Operation("LOAD", byte, const(0), address)]
            out += [Operation("INT_ADD", address, to, const(at + k)),
                    Operation("STORE", None, const(0), address, byte if data[0] == MVC else const(0, 1))]
        if data[0] == XC:  # the condition code is 0, as of a comparison of equals
            out += [Operation("COPY", ("register", 736 + 8 * n, 8), const(0)) for n in range(4)]
        return out


class One:
    """One instruction."""

    def __init__(self, block, at, length, data):
        self.block, self.at, self.operations, self.count = block, at, [], len(block.tyenv.types)
        for statement in block.statements:
            getattr(self, statement.tag[4:].lower(), self.unknown)(statement)
        self.goes_on(block, at + length, data)

    def unknown(self, statement):
        raise NotLifted("%#x: %s" % (self.at, statement))

    def imark(self, _):
        pass

    abihint = noop = mbe = imark

    def put(self, statement):
        if statement.offset not in PLACE:
            value = self.value(statement.data)
            self.add("COPY", ("register", statement.offset, value[2]), value)
        elif statement.offset == PLACE[0]:
            self.location = statement.data

    def wrtmp(self, statement):
        self.into(self.temporary(statement.tmp), statement.data)

    def store(self, statement):
        self.add("STORE", None, const(0), self.value(statement.addr), self.value(statement.data))

    def cas(self, statement):
        """What is stored depends on what is found and on what was expected there."""
        if statement.dataHi is not None:
            self.unknown(statement)
        address, new = self.value(statement.addr), self.value(statement.dataLo)
        found = self.temporary(statement.oldLo)
        self.add("LOAD", found, const(0), address)
        stored = self.location_for(new[2])
        self.add("compared", stored, found, new, self.value(statement.expdLo))
        self.add("STORE", None, const(0), address, stored)

    def exit(self, statement):
        if "Boring" not in statement.jumpkind and "Yield" not in statement.jumpkind:
            self.unknown(statement)
        self.add("CBRANCH", None, ("ram", statement.dst.value, 8), self.value(statement.guard))

    def goes_on(self, block, after, data):
        if block.jumpkind not in ("Ijk_Boring", "Ijk_Call", "Ijk_Ret"):
            raise NotLifted("%#x: %s: %s" % (self.at, data[:after - self.at].hex(), block.jumpkind))
        location = self.location if isinstance(block.next, pyvex.expr.RdTmp) else block.next
        known = location.con.value if isinstance(location, pyvex.expr.Const) else None
        if block.jumpkind == "Ijk_Call":
            if known is not None:
                self.add("CALL", None, ("ram", known, 8))
            else:
                self.add("CALLIND", None, self.value(location))
        elif known is None:
            self.add("RETURN" if data[:2] == b"\x07\xfe" else "BRANCHIND", None, self.value(location))  # br %r14
        elif known != after:
            self.add("BRANCH", None, ("ram", known, 8))

    # ---- Expressions ----

    def add(self, name, output, *inputs):
        self.operations.append(Operation(name, output, *inputs))

    def temporary(self, number):
        return ("unique", 32 * number, SIZES[self.block.tyenv.types[number]])

    def location_for(self, size):
        self.count += 1
        return ("unique", 32 * self.count, size)

    def value(self, expression):
        if isinstance(expression, pyvex.expr.RdTmp):
            return self.temporary(expression.tmp)
        size = SIZES[expression.result_type(self.block.tyenv)]
        if isinstance(expression, pyvex.expr.Const):
            return const(int(expression.con.value), size)
        if isinstance(expression, pyvex.expr.Get):
            return ("register", expression.offset, size)
        location = self.location_for(size)
        self.into(location, expression)
        return location

    def into(self, location, expression):
        if isinstance(expression, (pyvex.expr.RdTmp, pyvex.expr.Const, pyvex.expr.Get)):
            self.add("COPY", location, self.value(expression))
        elif isinstance(expression, pyvex.expr.Load):
            self.add("LOAD", location, const(0), self.value(expression.addr))
        elif isinstance(expression, pyvex.expr.CCall):
            self.add(CALCULATES if expression.callee.name == CALCULATES else expression.callee.name, location,
                     *map(self.value, expression.args))
        elif isinstance(expression, (pyvex.expr.Unop, pyvex.expr.Binop)):
            self.operation(location, expression.op[4:], [self.value(a) for a in expression.args])
        elif isinstance(expression, (pyvex.expr.Triop, pyvex.expr.Qop)):
            self.add(expression.op, location, *map(self.value, expression.args))
        elif isinstance(expression, pyvex.expr.ITE):
            self.add("choice", location, *map(self.value, (expression.cond, expression.iftrue, expression.iffalse)))
        else:
            self.unknown(expression)

    def operation(self, location, name, values):
        widened = re.fullmatch(r"(\d+)([US])to(\d+)", name)
        ordered = re.fullmatch(r"Cmp(LT|LE)\d+([US])", name)
        two = re.fullmatch(r"([A-Za-z]+)(8|16|32|64|V128)", name)
        if widened:
            self.add("INT_ZEXT" if widened.group(2) == "U" else "INT_SEXT", location, values[0])
        elif ordered:
            self.add(ORDER[ordered.group(1) + ordered.group(2)], location, *values)
        elif name == "Not1":
            self.add("BOOL_NEGATE", location, *values)
        elif two and two.group(1) == "Not":
            self.add("INT_NEGATE", location, *values)
        elif two and two.group(1) in TWO:
            self.add(TWO[two.group(1)], location, *values)
        elif re.fullmatch(r"(64|32|8)to1", name):
            byte = self.location_for(1)
            self.add("SUBPIECE", byte, values[0], const(0, 4))
            self.add("INT_AND", location, byte, const(1, 1))
        elif re.fullmatch(r"V?\d+to\d+", name):
            self.add("SUBPIECE", location, values[0], const(0, 4))
        elif re.fullmatch(r"V?\d+HIto\d+", name):
            self.add("SUBPIECE", location, values[0], const(values[0][2] // 2, 4))
        elif re.fullmatch(r"\d+HLtoV?\d+", name):
            self.add("PIECE", location, *values)
        elif name.startswith("Reinterp"):
            self.add("COPY", location, *values)
        else:
            self.add(name, location, *values)
