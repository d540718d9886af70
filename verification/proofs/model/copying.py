"""Saving and restoring, as theorems about ranges of bytes: from the text of src/stack/copy.c, and the smallest size of
a stack in src/stack/stack.h, for every size, every address and all contents.

The functions' C is run on z3's bit vectors, a path for every way through their conditions. Loops are unrolled as often
as their conditions allow, which is_short() bounds, so nothing is left out. What is C's rather than the processor's
here: pointers into two objects that do not overlap. That compilers keep to it is tried, for every size, by
copying.c."""
import re

import z3
from pycparser import c_ast, c_parser

WORD, MOST_TURNS = 64, 64  # of a loop: 15 are what is short
FUNCTIONS = "is_short", "copy_short", "live_bytes"


def text_of(source, name):
    found = re.search(r"^static[^\n;]*\b%s\([^;{]*\)\n\{\n.*?^\}\n" % name, source, re.M | re.S)
    if not found:
        raise SystemExit("copying: src/stack/copy.c has no function %s()" % name)
    return re.sub(r"/\*.*?\*/", "", found.group(0), flags=re.S).replace("inline ", "")


def constants_of(source):
    """enum { ... } on one line, where all is plain."""
    values = {}
    for body in re.findall(r"^enum \{ ([^{}]*) \};", source, re.M):
        for name, number in re.findall(r"(\w+) = (\d+)(?![\w<]| <)", body):
            values[name] = int(number)
    return values


def word(n):
    return z3.BitVecVal(n, WORD)


class Pointer:
    """An object, by name, and an offset into it."""

    def __init__(self, to, offset):
        self.to, self.offset = to, offset


class Path:
    def __init__(self, program, decisions):
        self.program, self.decisions, self.at, self.solver = program, decisions, 0, z3.SolverFor("QF_BV")
        self.copies = []  # (to, offset, from, offset, bytes)

    def decide(self, fact):
        fact = z3.simplify(fact)
        if z3.is_true(fact) or z3.is_false(fact):
            return z3.is_true(fact)
        if self.at == len(self.decisions):
            yes = self.solver.check(fact) != z3.unsat
            if yes and self.solver.check(z3.Not(fact)) != z3.unsat:
                self.program.open.append(self.decisions + [False])
            self.decisions = self.decisions + [yes]
        answer = self.decisions[self.at]
        self.at += 1
        self.solver.add(fact if answer else z3.Not(fact))
        return answer


class Returned(Exception):
    pass


class Endless(Exception):
    """A loop does not stop where it should."""


class Program:
    def __init__(self, source, sizes):
        self.constants = constants_of(sizes) | constants_of(source)
        prelude = "typedef unsigned long size_t; typedef unsigned long uintptr_t; " \
            "typedef struct s { char *aco__top; } aco_share_stack_t;\n" \
                  "typedef struct c { struct { char *sp; } aco__self; } aco_t;\n"
        tree = c_parser.CParser().parse(prelude + "".join(text_of(source, name) for name in FUNCTIONS))
        self.functions = {f.decl.name: f for f in tree.ext if isinstance(f, c_ast.FuncDef)}

    def run(self, name, env, assumed):
        """Yields the path for every way through the function with these parameters."""
        self.open = [[]]
        while self.open:
            path = Path(self, self.open.pop())
            path.solver.add(assumed)
            self.do(path, dict(env), self.functions[name].body)
            yield path

    def returns(self, name, env):
        """What a function that is one expression returns."""
        try:
            self.do(Path(self, []), env, self.functions[name].body)
        except Returned as returned:
            return returned.args[0]

    def do(self, path, env, node):
        kind = type(node).__name__
        if kind == "Compound":
            for item in node.block_items:
                self.do(path, env, item)
        elif kind == "DeclList":
            for item in node.decls:
                self.do(path, env, item)
        elif kind == "Decl":
            env[node.name] = self.value(path, env, node.init)
        elif kind == "If":
            self.do(path, env, node.iftrue if self.truth(path, env, node.cond) else node.iffalse or c_ast.Compound([]))
        elif kind == "For":
            if node.init:
                self.value(path, env, node.init)
            turns = 0
            while self.truth(path, env, node.cond):
                turns += 1
                if turns > MOST_TURNS:
                    raise Endless
                self.do(path, env, node.stmt)
                self.value(path, env, node.next)
        elif kind == "Return":
            raise Returned(self.value(path, env, node.expr))
        else:
            self.value(path, env, node)

    def truth(self, path, env, node):
        value = self.value(path, env, node)
        return path.decide(value if z3.is_bool(value) else value != 0)

    def value(self, path, env, node):
        kind = type(node).__name__
        if kind == "Constant":
            return word(int(node.value.rstrip("uUlL"), 0))
        if kind == "ID":
            return env[node.name] if node.name in env else word(self.constants[node.name])
        if kind == "Cast":
            return self.value(path, env, node.expr)
        if kind == "StructRef":
            return env[self.name_of(node)]
        if kind == "UnaryOp":
            value = self.value(path, env, node.expr)
            return {"~": lambda: ~value, "!": lambda: value == 0}[node.op]()
        if kind == "ExprList":
            return [self.value(path, env, e) for e in node.exprs][-1]
        if kind == "BinaryOp":
            return self.binary(node.op, self.value(path, env, node.left), self.value(path, env, node.right))
        if kind == "Assignment":
            value = self.value(path, env, node.rvalue)
            env[node.lvalue.name] = value if node.op == "=" else self.binary(node.op[:-1], env[node.lvalue.name], value)
            return env[node.lvalue.name]
        if kind == "FuncCall" and node.name.name == "__builtin_memcpy":
            to, source, size = (self.value(path, env, e) for e in node.args.exprs)
            path.copies.append((to.to, z3.simplify(to.offset), source.to, z3.simplify(source.offset),
                                z3.simplify(size)))
            return to
        raise SystemExit("copying: %s in src/stack/copy.c is not understood" % kind)

    def name_of(self, node):
        return "%s.%s" % (self.name_of(node.name) if isinstance(node.name, c_ast.StructRef) else node.name.name,
                          node.field.name)

    @staticmethod
    def binary(op, a, b):
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            if a.to != b.to:
                raise SystemExit("copying: pointers to different objects are compared")
            a, b = a.offset, b.offset
        elif isinstance(a, Pointer):
            return Pointer(a.to, Program.binary(op, a.offset, b))
        return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "&": lambda: a & b, "|": lambda: a | b,
                "<=": lambda: z3.ULE(a, b), "!=": lambda: a != b, "==": lambda: a == b}[op]()


def proved(solver, fact):
    return solver.check(z3.Not(fact)) == z3.unsat


def copies_exactly(program):
    """copy_short(to, from, sz) makes the bytes of `to` from 0 up to sz equal to those of `from`, touching no others,
    where is_short(sz). Returns (paths, what is wrong or None)."""
    sz, paths = z3.BitVec("sz", WORD), 0
    short = program.returns("is_short", {"sz": sz})
    for path in program.run("copy_short", {"to": Pointer("to", word(0)), "from": Pointer("from", word(0)), "sz": sz},
                            short):
        paths += 1
        done = 0
        for to, to_offset, source, from_offset, size in path.copies:
            if (to, source) != ("to", "from") or to_offset.as_long() != done or from_offset.as_long() != done:
                return paths, "copy: the pieces do not follow each other, at byte %d" % done
            done += size.as_long()
        if not proved(path.solver, sz == done):
            return paths, "copy: %d bytes are copied where the size is another" % done
    return paths, None


def what_is_short_is_on_the_stack(program):
    """The everyday case asks nothing but is_short(): a stack pointer with that few bytes above it is on its stack,
    which has ACO__LEAST_STACK bytes or more below its top."""
    ptr, sp, top = (z3.BitVec(n, WORD) for n in ("ptr", "sp", "top"))
    live = program.returns("live_bytes", {"stack.aco__top": top, "owner.aco__self.sp": sp})
    short = program.returns("is_short", {"sz": live})
    s = z3.SolverFor("QF_BV")
    s.add(z3.ULE(ptr, top), z3.UGE(top - ptr, program.constants["ACO__LEAST_STACK"]), short)
    return proved(s, z3.And(live == top - sp, z3.ULE(ptr, sp), z3.ULE(sp, top)))


def saved_and_restored(program):
    """Saving [sp, top) to an area, whatever then happens on the stack, and restoring brings back each of these bytes,
    and changes no byte but these. The copies are what copies_exactly() shows, or memcpy()."""
    byte = z3.BitVecSort(8)
    before, meanwhile, after = (z3.Function(n, z3.BitVecSort(WORD), byte) for n in ("before", "meanwhile", "after"))
    area = z3.Function("area", z3.BitVecSort(WORD), byte)
    ptr, sp, top, a = (z3.BitVec(n, WORD) for n in ("ptr", "sp", "top", "a"))
    live = program.returns("live_bytes", {"stack.aco__top": top, "owner.aco__self.sp": sp})
    s = z3.SolverFor("QF_UFBV")
    s.add(z3.ULE(ptr, top), z3.ULE(live, top - ptr))           # save() has failed for all else
    i = a - sp                                                # where byte a is in the area, if it is
    s.add(z3.Implies(z3.ULT(i, live), area(i) == before(a)))  # saved: area[i] = before[sp + i] for i < live
    s.add(z3.If(z3.ULT(i, live), after(a) == area(i), after(a) == meanwhile(a)))
    inside = z3.And(z3.ULE(sp, a), z3.ULT(a, top))
    return proved(s, z3.And(z3.Implies(inside, after(a) == before(a)),
                            z3.Implies(z3.Not(inside), after(a) == meanwhile(a))))


def check(source, sizes):
    """(what was shown, what is wrong). `sizes`: the text that has ACO__LEAST_STACK."""
    program = Program(source, sizes)
    shown, wrong = [], []
    try:
        paths, fault = copies_exactly(program)
    except Endless:
        fault = "copy: it does not stop at the size"
    (wrong if fault else shown).append(
        fault or "copy_short() copies [0, size) exactly: %d paths, one for each size" % paths)
    for theorem, holds in (("what is short is on the stack", what_is_short_is_on_the_stack),
                           ("[sp, top) comes back, and nothing else", saved_and_restored)):
        (shown if holds(program) else wrong).append(theorem)
    return shown, wrong


if __name__ == "__main__":
    import pathlib
    import time
    start = time.process_time()
    stack = pathlib.Path(__file__).parents[3] / "src/stack"
    print(check((stack / "copy.c").read_text(), (stack / "stack.h").read_text()),
          "%.1f s" % (time.process_time() - start))
