"""Bit-vector terms, one object for each: what registers and memory hold, over the values that they had when a function
began.

A sum with a constant is always (base + constant), so that two addresses with one base compare at sight. Sizes are in
bytes."""
import functools
import itertools

import z3


class Term:
    __slots__ = ("op", "size", "args", "_free", "_z3", "number")

    def __repr__(self):
        if self.op == "const":
            return "%#x" % self.args[0]
        if self.op == "var":
            return self.args[0]
        if self.op == "add":
            return "%r%+d" % (self.args[0], signed(self.args[1], self.size))
        return "%s:%d(%s)" % (self.op, self.size, ", ".join(map(repr, self.args)))

    @property
    def free(self):
        """Its variables."""
        if self._free is None:
            if self.op == "var":
                self._free = frozenset([self])
            else:
                self._free = frozenset().union(*(a.free for a in self.args if isinstance(a, Term)))
        return self._free


TIMEOUT = 20000  # milliseconds
_terms, _count, _poison, _bits, _depends = {}, itertools.count(), set(), set(), {}


def make(op, size, *args):
    key = (op, size, args)
    term = _terms.get(key)
    if term is None:
        term = Term()
        term.op, term.size, term.args, term._free, term._z3 = op, size, args, None, None
        term.number = next(_count)
        _terms[key] = term
    return term


def const(size, value):
    return make("const", size, value & mask(size))


def fresh(size, what, poison=False, bit=False):
    """A variable that nothing is known of; `poison`: nothing may depend on it; `bit`: it is 0 or 1."""
    term = make("var", size, "%s.%d" % (what, next(_count)))
    if poison:
        _poison.add(term)
    if bit:
        _bits.add(term)
    return term


def is_poisoned(term):
    """Whether its value depends on poison. That a variable occurs is not enough: Power's compilers set and read single
    bits of a field with other bits undefined."""
    if _poison.isdisjoint(term.free):
        return False
    if term.op == "var" or term.op == "piece" and term.args[0].op == "var":
        return True
    if term not in _depends:
        here = to_z3(term)
        there = z3.substitute(here, *[tuple(z3.BitVec(v.args[0] + other, 8 * v.size) for other in ("", "'"))
                                      for v in term.free & _poison])
        _depends[term] = check(here != there) != z3.unsat
    return _depends[term]


def forget():
    """To be called between functions: they share no terms."""
    for kept in (_terms, _poison, _bits, _depends):
        kept.clear()


def mask(size):
    return (1 << 8 * size) - 1


def signed(value, size):
    return value - (1 << 8 * size) if value >> (8 * size - 1) else value


def split(term):
    """(base, constant); the base of a constant is None."""
    if term.op == "const":
        return None, signed(term.args[0], term.size)
    if term.op == "add":
        return term.args[0], signed(term.args[1], term.size)
    return term, 0


def add(term, constant):
    base, known = split(term)
    total = known + constant & mask(term.size)
    if base is None:
        return const(term.size, total)
    return base if total == 0 else make("add", term.size, base, total)


def is_const(term):
    return term.op == "const"


COMPARE = {
    "INT_EQUAL": lambda a, b, n: a == b, "INT_NOTEQUAL": lambda a, b, n: a != b,
    "INT_LESS": lambda a, b, n: a < b, "INT_LESSEQUAL": lambda a, b, n: a <= b,
    "INT_SLESS": lambda a, b, n: signed(a, n) < signed(b, n),
    "INT_SLESSEQUAL": lambda a, b, n: signed(a, n) <= signed(b, n),
}
FOLD = {
    "INT_AND": lambda a, b, n: a & b, "INT_OR": lambda a, b, n: a | b, "INT_XOR": lambda a, b, n: a ^ b,
    "INT_MULT": lambda a, b, n: a * b, "BOOL_AND": lambda a, b, n: a & b, "BOOL_OR": lambda a, b, n: a | b,
    "BOOL_XOR": lambda a, b, n: a ^ b, "INT_LEFT": lambda a, b, n: a << b if b < 8 * n else 0,
    "INT_RIGHT": lambda a, b, n: a >> b if b < 8 * n else 0,
    "INT_SRIGHT": lambda a, b, n: signed(a, n) >> min(b, 8 * n),
}


# VEX's numbers of what s390x's condition code is computed from: comparisons, with 0 or the other operand; a test under
# a mask.
BITWISE, SIGNED, UNSIGNED, LOAD_AND_TEST, UNDER_MASK = 0, 1, 2, 15, 18


def condition_code(size, mask_, what, one, other, rest):
    """Whether the condition code is in `mask_`. The highest bit of the mask stands for code 0."""
    if not is_const(mask_) or not is_const(what) or \
            what.args[0] not in (BITWISE, SIGNED, UNSIGNED, LOAD_AND_TEST, UNDER_MASK):
        return make("s390_calculate_cond", size, mask_, what, one, other, rest)
    codes, what, zero = mask_.args[0], what.args[0], const(one.size, 0)
    if what == UNDER_MASK:  # 0: no bit is set; 1: some; 3: all
        tested = apply("INT_AND", one.size, one, other)
        none, every = apply("INT_EQUAL", 1, tested, zero), apply("INT_EQUAL", 1, tested, other)
        parts = [none] * (codes >> 3 & 1) + [every] * (codes & 1)
        if codes & 4:
            parts.append(apply("BOOL_NEGATE", 1, apply("BOOL_OR", 1, none, every)))
        if codes & 13 == 5:  # all but none
            parts = [apply("BOOL_NEGATE", 1, none)]
    else:  # 0: equal; 1: less; 2: greater. Of bits: 1 where one is set
        if what in (BITWISE, LOAD_AND_TEST):
            other = zero
        less = "INT_NOTEQUAL" if what == BITWISE else "INT_LESS" if what == UNSIGNED else "INT_SLESS"
        greater = const(1, 0) if what == BITWISE else apply(less, 1, other, one)
        if codes & 6 == 6:
            parts = [apply("INT_NOTEQUAL", 1, one, other)]
        else:
            parts = [apply(less, 1, one, other)] * (codes >> 2 & 1) + [greater] * (codes >> 1 & 1)
        if codes & 8:
            parts.append(apply("INT_EQUAL", 1, one, other))
        if codes & 14 == 14:
            parts = [const(1, 1)]
    return apply("INT_ZEXT", size, functools.reduce(lambda a, b: apply("BOOL_OR", 1, a, b), parts)
                 if parts else const(1, 0))


def apply(op, size, *args):
    """What a p-code operation computes."""
    if op == "COPY":
        return args[0]
    if op == "s390_calculate_cond":
        return condition_code(size, *args)
    a = args[0]
    b = args[1] if len(args) > 1 else None
    if op == "INT_ADD":
        if is_const(b):
            return add(a, b.args[0])
        if is_const(a):
            return add(b, a.args[0])
        (x, c), (y, d) = split(a), split(b)
        return add(make(op, size, *sorted((x, y), key=lambda t: t.number)), c + d)
    if op == "INT_SUB":
        (x, c), (y, d) = split(a), split(b)
        if y is None:
            return add(a, -d)
        if x is y:
            return const(size, c - d)
        return make(op, size, a, b)
    if op == "INT_2COMP":
        return const(size, -a.args[0]) if is_const(a) else make(op, size, a)
    if op == "INT_NEGATE":
        return const(size, ~a.args[0]) if is_const(a) else make(op, size, a)
    if op == "BOOL_NEGATE":
        if is_const(a):
            return const(1, a.args[0] ^ 1)
        return a.args[0] if a.op == op else make(op, 1, a)
    if op in COMPARE:
        if is_const(a) and is_const(b):
            return const(1, COMPARE[op](a.args[0], b.args[0], a.size))
        (x, c), (y, d) = split(a), split(b)
        if x is y and op in ("INT_EQUAL", "INT_NOTEQUAL"):
            return const(1, (c == d) == (op == "INT_EQUAL"))
        # of what is extended
        if op in ("INT_EQUAL", "INT_NOTEQUAL") and a.op in ("INT_ZEXT", "INT_SEXT") and is_const(b):
            low = const(a.args[0].size, b.args[0])
            return apply(op, 1, a.args[0], low) if apply(a.op, a.size, low) is b else const(1, op == "INT_NOTEQUAL")
        if op in ("INT_EQUAL", "INT_NOTEQUAL") and b is const(b.size, 0):
            truth_ = a.args[0] if a.op == "INT_ZEXT" else a
            if truth_.size == 1 and may_be_set(truth_) == 1:
                return truth_ if op == "INT_NOTEQUAL" else apply("BOOL_NEGATE", 1, truth_)
        return make(op, 1, a, b)
    if op in FOLD:
        if is_const(a) and is_const(b):
            return const(size, FOLD[op](a.args[0], b.args[0], size))
        if is_const(a) and op in ("INT_AND", "INT_OR", "INT_XOR", "INT_MULT"):
            a, b = b, a
        if is_const(b):
            value = b.args[0]
            if value == 0:
                return const(size, 0) if op in ("INT_AND", "INT_MULT", "BOOL_AND") else a
            if op == "INT_AND" and a.op == "PIECE" and value >> 8 * a.args[1].size == 0:
                return apply("INT_ZEXT", size, apply(op, a.args[1].size, a.args[1], const(a.args[1].size, value)))
            if op == "INT_AND" and value == mask(size) or op == "INT_MULT" and value == 1 or op == "BOOL_AND":
                return a
            if op == "INT_OR" and value == mask(size):
                return b
            if op in ("INT_LEFT", "INT_RIGHT") and value >= 8 * size:
                return const(size, 0)
            if op == "INT_AND" and size == 1:  # bit by bit, as processors write their flags: what is replaced goes
                if may_be_set(a) & value == 0:
                    return const(1, 0)
                if a.op == "INT_RIGHT" and is_const(a.args[1]) and a.args[1].args[0] < 8:
                    return apply("INT_RIGHT", size, apply(op, size, a.args[0], const(size, value << a.args[1].args[0])),
                                 a.args[1])
                if may_be_set(a) & ~value == 0:
                    return a
                if a.op == op and is_const(a.args[1]):
                    return apply(op, size, a.args[0], const(size, value & a.args[1].args[0]))
                if a.op == "INT_OR":
                    return apply("INT_OR", size, apply(op, size, a.args[0], b), apply(op, size, a.args[1], b))
            if op == "INT_RIGHT" and size == 1 and a.op == "INT_LEFT" and is_const(a.args[1]) and \
                    a.args[1].args[0] == value and \
                    may_be_set(a.args[0]) << value <= 0xff:
                return a.args[0]
        if a is b:
            if op in ("INT_XOR", "BOOL_XOR"):
                return const(size, 0)
            if op in ("INT_AND", "INT_OR", "BOOL_AND", "BOOL_OR"):
                return a
        return make(op, size, a, b)
    if op == "INT_ZEXT":
        if is_const(a):
            return const(size, a.args[0])
        return a if size == a.size else make(op, size, a.args[0] if a.op == op else a)
    if op == "INT_SEXT":
        if is_const(a):
            return const(size, signed(a.args[0], a.size))
        return a if size == a.size else make(op, size, a)
    if op == "SUBPIECE":
        return piece_of(a, b.args[0], size)
    if op == "PIECE":
        return joined(a, b)
    return make(op, size, *args)


def where(term, condition, value):
    """The term where `condition`, which may be a part of it, has this value."""
    if term is condition:
        return value
    if not any(isinstance(a, Term) for a in term.args) or not condition.free <= term.free:
        return term
    args = [where(a, condition, value) if isinstance(a, Term) else a for a in term.args]
    if all(a is b for a, b in zip(args, term.args)):
        return term
    if term.op in ("add", "piece"):
        return add(*args) if term.op == "add" else piece_of(*args, term.size)
    return make(term.op, term.size, *args) if term.op == "mixed" else apply(term.op, term.size, *args)


def may_be_set(term):
    """The bits of a byte that may be 1."""
    if term.op == "const":
        return term.args[0]
    if term in _bits:
        return 1
    if term.op in COMPARE or term.op.startswith("BOOL_"):
        return 1
    if term.op == "piece" and term.args[0].op == "INT_AND" and is_const(term.args[0].args[1]):
        return term.args[0].args[1].args[0] >> 8 * term.args[1] & 0xff
    if term.op == "INT_OR":
        return may_be_set(term.args[0]) | may_be_set(term.args[1])
    if term.op in ("INT_LEFT", "INT_RIGHT", "INT_AND") and is_const(term.args[1]):
        bits, by = may_be_set(term.args[0]), term.args[1].args[0]
        if term.op == "INT_AND":
            return bits & by
        return (bits << by & 0xff if term.op == "INT_LEFT" else bits >> by) if by < 8 else 0
    return 0xff


def bit_of(term, n):
    """A bit of a byte, as a byte."""
    alone = apply("INT_AND", 1, term, const(1, 1 << n))
    return apply("INT_RIGHT", 1, alone, const(1, n))


def of_bits(bits):
    """The byte that they make, the lowest first."""
    shifted = (apply("INT_LEFT", 1, bit, const(1, n)) for n, bit in enumerate(bits))
    return functools.reduce(lambda a, b: apply("INT_OR", 1, a, b), shifted)


def piece_of(term, at, size):
    """Bytes [at, at + size)."""
    if at >= term.size:
        return const(size, 0)
    if at + size > term.size:
        return apply("INT_ZEXT", size, piece_of(term, at, term.size - at))
    if at == 0 and size == term.size:
        return term
    if is_const(term):
        return const(size, term.args[0] >> 8 * at)
    if term.op in ("INT_ZEXT", "INT_SEXT") and at + size <= term.args[0].size:
        return piece_of(term.args[0], at, size)
    if term.op == "INT_ZEXT" and at >= term.args[0].size:
        return const(size, 0)
    if term.op == "INT_LEFT" and is_const(term.args[1]) and term.args[1].args[0] % 8 == 0:
        by = term.args[1].args[0] // 8
        if at >= by:
            return piece_of(term.args[0], at - by, size)
        if at + size <= by:
            return const(size, 0)
    if term.op == "piece":
        return piece_of(term.args[0], term.args[1] + at, size)
    if term.op == "PIECE":
        high, low = term.args
        if at + size <= low.size:
            return piece_of(low, at, size)
        if at >= low.size:
            return piece_of(high, at - low.size, size)
    return make("piece", size, term, at)


def joined(high, low):
    def whole(term):
        return (term.args[0], term.args[1]) if term.op == "piece" else (term, 0)
    if is_const(high) and is_const(low):
        return const(high.size + low.size, high.args[0] << 8 * low.size | low.args[0])
    if is_const(high) and high.args[0] == 0:
        return apply("INT_ZEXT", high.size + low.size, low)
    if high.op == "piece" and whole(low)[0] is high.args[0] and whole(low)[1] + low.size == high.args[1]:
        return piece_of(high.args[0], whole(low)[1], high.size + low.size)
    return make("PIECE", high.size + low.size, high, low)


# ---- For the solver ----

SOLVER = z3.SimpleSolver()
SOLVER.set("timeout", TIMEOUT)


def check(*formulas):
    """Whether the formulas can hold together. The solver keeps no state."""
    SOLVER.push()
    SOLVER.add(*formulas)
    answer = SOLVER.check()
    SOLVER.pop()
    return answer


def truth(term):
    return to_z3(term) != 0


def to_z3(term):
    if term._z3 is None:
        term._z3 = translate(term)
    return term._z3


def translate(term):
    op, bits = term.op, 8 * term.size
    if op == "const":
        return z3.BitVecVal(term.args[0], bits)
    if op == "var":
        return z3.BitVec(term.args[0], bits) & 1 if term in _bits else z3.BitVec(term.args[0], bits)
    if op == "add":
        return to_z3(term.args[0]) + term.args[1]
    if op == "piece":
        return z3.Extract(8 * (term.args[1] + term.size) - 1, 8 * term.args[1], to_z3(term.args[0]))
    if op == "mixed":
        old, status, mask_ = term.args
        return to_z3(old) & mask_ | to_z3(status) & ~mask_
    args = [to_z3(a) for a in term.args]
    a, b = args[0], args[1] if len(args) > 1 else None

    def bit(condition):
        return z3.If(condition, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))

    def amount():
        if b.size() == a.size():
            return b
        return z3.ZeroExt(a.size() - b.size(), b) if b.size() < a.size() else z3.Extract(a.size() - 1, 0, b)
    known = {
        "INT_ADD": lambda: a + b, "INT_SUB": lambda: a - b, "INT_MULT": lambda: a * b, "INT_AND": lambda: a & b,
        "INT_OR": lambda: a | b, "INT_XOR": lambda: a ^ b, "INT_NEGATE": lambda: ~a, "INT_2COMP": lambda: -a,
        "INT_EQUAL": lambda: bit(a == b), "INT_NOTEQUAL": lambda: bit(a != b), "INT_LESS": lambda: bit(z3.ULT(a, b)),
        "INT_LESSEQUAL": lambda: bit(z3.ULE(a, b)), "INT_SLESS": lambda: bit(a < b),
        "INT_SLESSEQUAL": lambda: bit(a <= b),
        "INT_ZEXT": lambda: z3.ZeroExt(bits - a.size(), a), "INT_SEXT": lambda: z3.SignExt(bits - a.size(), a),
        "PIECE": lambda: z3.Concat(a, b), "BOOL_NEGATE": lambda: a ^ 1, "BOOL_AND": lambda: a & b,
        "BOOL_OR": lambda: a | b,
        "BOOL_XOR": lambda: a ^ b, "INT_LEFT": lambda: a << amount(), "INT_RIGHT": lambda: z3.LShR(a, amount()),
        "INT_SRIGHT": lambda: a >> amount(),
    }
    if op in known:
        return known[op]()
    # no theorem needs to know more of it than that it is a function: floating point, carries, division
    sorts = [z3.BitVecSort(x.size()) for x in args] + [z3.BitVecSort(bits)]
    return z3.Function("%s.%s" % (op, ".".join(str(s.size()) for s in sorts)), *sorts)(*args)
