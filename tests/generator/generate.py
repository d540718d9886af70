#!/usr/bin/env python3
"""generate.py SEED N > generated.c

N random C functions that consume generators of both kinds: among calls with up to 12 arguments of mixed types, with
locals of many sizes and alignments, alloca(), arrays of variable length in scopes that end before the next value is
asked for, loops left early; and the generators, which do the same, make their values in loops and from several calls
deep, and consume other generators. All of it is written twice (kinds.h): with generators, and with functions that fill
arrays. run.c compares."""

import random
import sys

HEADER = """/* Made by generate.py: seed %d. */
#include "run.h"

"""
TYPES = ["uint64_t", "uint64_t", "uint32_t", "uint16_t", "uint8_t", "double", "float", "long double", "triple_t"]
ARRAYS = {"uint64_t": 64, "uint32_t": 32, "uint16_t": 16, "uint8_t": 8}
HELPERS = 14


def argument(type_, expression):
    if type_ in ("double", "long double"):
        return "(%s)((%s) & 0xffff)" % (type_, expression)
    if type_ == "float":
        return "(float)((%s) & 0xfff)" % expression
    if type_ == "triple_t":
        return "((triple_t){{%s, 3, 5}})" % expression
    return "(%s)(%s)" % (type_, expression)


def as_number(type_, name):
    return "%s.words[0] + %s.words[2]" % (name, name) if type_ == "triple_t" else "(uint64_t)%s" % name


class Helper:
    """A function that is only called."""

    def __init__(self, random_, number):
        self.name = "helper%d" % number
        count = number % 13
        self.types = [random_.choice(TYPES) for _ in range(count)]
        self.text = ("static NOINLINE __attribute__((unused)) uint64_t %s(%s)\n{\n    uint64_t sum = %d;\n"
                     "    __asm__ volatile(\"\" : \"+r\"(sum));\n") % (
            self.name, ", ".join("%s p%d" % (t, i) for i, t in enumerate(self.types)) or "void", number)
        for i, t in enumerate(self.types):
            self.text += "    sum = sum * 7 + (%s);\n" % as_number(t, "p%d" % i)
        self.text += "    return sum;\n}\n\n"


class Generator:
    def __init__(self, number, kind, depth):
        self.name, self.kind, self.depth = "NAME(generator%d)" % number, kind, depth


class Function:
    """The body of a consumer, of a generator (`emits` is its kind) or of a function that it makes values in."""

    def __init__(self, unit, emits=None, deep=None, depth=0):
        self.unit, self.random, self.emits, self.deep, self.depth = unit, unit.random, emits, deep, depth
        self.scalars = self.random.randint(2, 12)
        self.doubles = self.pick([0, 0, 1, 3])
        self.arrays = [self.array() for _ in range(self.pick([0, 1, 1, 2, 3]))]
        self.room = self.random.randint(2, 40) if self.chance(0.2) else 0
        self.loops = []    # of generators that are consumed: (name, kind, how they end early)
        self.in_loop = False # of a generator: `break` ends it
        self.scopes = []   # arrays of variable length
        self.values = []   # loop variables
        self.names = 0

    def chance(self, p):
        return self.random.random() < p

    def pick(self, choices):
        return self.random.choice(choices)

    def name(self, prefix):
        self.names += 1
        return "%s%d" % (prefix, self.names)

    def array(self):
        alignment = self.pick([32, 64, 128]) if self.chance(0.2) else 0
        return (self.pick(list(ARRAYS)), 1 << self.random.randint(1, 6), self.chance(0.3), alignment)

    def declarations(self, seed):
        text = ""
        for i in range(self.scalars):
            text += "    uint64_t s%d = %s + %du;\n" % (i, seed, self.random.randrange(1000))
        for i in range(self.doubles):
            text += "    double d%d = %d.0;\n" % (i, self.random.randrange(100))
        for i, (type_, size, is_volatile, alignment) in enumerate(self.arrays):
            text += "    %s%s a%d[%d]%s;\n" % ("volatile " if is_volatile else "", type_, i, size,
                                               " __attribute__((aligned(%d)))" % alignment if alignment else "")
        if self.room:
            text += "    volatile uint32_t *room = __builtin_alloca((%d + (%s & 7)) * sizeof *room);\n" % (
                self.room, seed)
        for i, (type_, size, _, alignment) in enumerate(self.arrays):
            text += "    for (unsigned i = 0; i < %d; i++)\n        a%d[i] = (%s)(%s + i);\n" % (size, i, type_, seed)
            if alignment:
                text += "    s0 += (uintptr_t)a%d %% %d;\n" % (i, alignment)
        if self.room:
            text += "    for (unsigned i = 0; i < %d; i++)\n        room[i] = i;\n" % self.room
        return text

    def digest(self):
        text = "    uint64_t sum = %s;\n" % " + ".join("s%d * %d" % (i, i + 3) for i in range(self.scalars))
        for i in range(self.doubles):
            text += "    sum = sum * 5 + (uint64_t)(int64_t)d%d;\n" % i
        for i, (_, size, _, _) in enumerate(self.arrays):
            text += "    for (unsigned i = 0; i < %d; i++)\n        sum = sum * 11 + a%d[i];\n" % (size, i)
        if self.room:
            text += "    for (unsigned i = 0; i < %d; i++)\n        sum = sum * 11 + room[i];\n" % self.room
        return text

    # expressions

    def scalar(self):
        return "s%d" % self.random.randrange(self.scalars)

    def value(self):
        choices = [self.scalar, self.scalar, lambda: "%du" % self.random.randrange(1 << 16)]
        if self.values:
            choices += [lambda: self.pick(self.values)] * 2
        if self.arrays:
            choices.append(self.element)
        if self.room:
            choices.append(lambda: "room[%s %% %d]" % (self.scalar(), self.room))
        if self.scopes:
            choices.append(lambda: "%s[%s & 7]" % (self.pick(self.scopes), self.scalar()))
        return self.pick(choices)()

    def element(self):
        n = self.random.randrange(len(self.arrays))
        return "a%d[%s & %d]" % (n, self.scalar(), self.arrays[n][1] - 1)

    def expression(self):
        form = self.pick(["%s + %s", "%s ^ %s", "%s * 3 + %s", "%s - %s", "(%s >> 5) + %s", "(%s << 3) | (%s & 7)"])
        return form % (self.value(), self.value())

    def call(self, level=0):
        if self.chance(0.1):
            count = self.random.randint(0, 12)
            arguments = [argument("double" if i % 2 else "uint64_t", self.value()) for i in range(count)]
            return "mix_many(%s)" % ", ".join([str(count)] + arguments)
        helper = self.pick(self.unit.helpers)
        arguments = [
            argument(t, self.call(level + 1) if level < 2 and self.chance(0.15) else self.value())
            for t in helper.types
        ]
        return "%s(%s)" % (helper.name, ", ".join(arguments))

    # statements

    def indent(self, level):
        return "    " * (level + 1)

    def block(self, level, size):
        return "".join(self.indent(level) + self.statement(level) for _ in range(size))

    def statement(self, level):
        choices = [self.assign] * 3 + [self.assign_call] * 4 + [self.calls, self.pause]
        if self.arrays:
            choices += [lambda: "a%d[%s & %d] ^= %s;\n" % (n, self.scalar(), self.arrays[n][1] - 1, self.expression())
                        for n in range(len(self.arrays))]
        if self.doubles:
            choices.append(self.assign_double)
        if self.emits:
            choices += [self.emit] * 3 + ([self.emit_deep] if self.deep else [])
        if level < 3:
            choices += [lambda: self.scope(level), lambda: self.loop(level), lambda: self.branch(level)]
            if len(self.loops) < 3 and self.unit.usable(self.depth):
                choices += [lambda: self.consume(level)] * 3
        if self.in_loop:
            choices.append(self.leave_loop)
        if self.loops:
            choices.append(self.leave_function)
        return self.pick(choices)()

    def assign(self):
        return "%s %s %s;\n" % (self.scalar(), self.pick(["=", "+=", "^="]), self.expression())

    def assign_call(self):
        return "%s %s %s;\n" % (self.scalar(), self.pick(["=", "+=", "^="]), self.call())

    def calls(self):
        """Several calls in a row, whose arguments some compilers take off the stack together."""
        return " ".join("(void)%s;" % self.call() for _ in range(self.random.randint(2, 4))) + "\n"

    def assign_double(self):
        n = self.random.randrange(self.doubles)
        return "d%d = d%d + (double)(%s & 0xff);\n" % (n, n, self.value())

    def pause(self):
        return self.pick(["PAUSE();\n", "PAUSE_INLINE();\n"])

    def emit(self):
        return "EMIT_%s(%s);\n" % (self.emits, self.pick([self.expression, self.call])())

    def emit_deep(self):
        return "%s(y, %d, %s);\n" % (self.deep, self.random.randint(0, 3), self.expression())

    def scope(self, level):
        name = self.name("vla")
        outer = list(self.scopes)
        self.scopes.append(name)
        # the size is not known: 8 to 23 elements
        text = "{\n%suint32_t %s[8 + (%s & 15)];\n" % (self.indent(level + 1), name, self.scalar())
        text += "%sfor (unsigned i = 0; i < 8; i++)\n%s%s[i] = (uint32_t)(%s + i);\n" % (
            self.indent(level + 1), self.indent(level + 2), name, self.scalar())
        text += "%s__asm__ volatile(\"\" : : \"r\"(%s) : \"memory\");\n" % (self.indent(level + 1), name)
        text += self.block(level + 1, self.random.randint(1, 4))
        text += "%sfor (unsigned i = 0; i < 8; i++)\n%ss0 += %s[i];\n" % (self.indent(level + 1),
                                                                          self.indent(level + 2), name)
        self.scopes = outer
        return text + self.indent(level) + "}\n"

    def loop(self, level):
        variable = self.name("i")
        self.values.append(variable)
        was, self.in_loop = self.in_loop, False
        text = "for (unsigned %s = 0; %s < %d; %s++) {\n%s%s}\n" % (
            variable, variable, self.random.randint(1, 4), variable,
            self.block(level + 1, self.random.randint(1, 3)), self.indent(level))
        self.in_loop = was
        self.values.pop()
        return text

    def branch(self, level):
        return "if ((%s) & %d) {\n%s%s}\n" % (
            self.expression(), self.pick([1, 2, 3, 6]), self.block(level + 1, self.random.randint(1, 3)),
            self.indent(level))

    def consume(self, level):
        generator = self.pick(self.unit.usable(self.depth))
        g, v, budget = self.name("g"), self.name("v"), self.name("n")
        how = self.pick(["close", "close", "drop"])
        text = "{\n%sunsigned %s = 0;\n" % (self.indent(level + 1), budget)
        text += "%suint64_t %s_p[2] = {%s, %s};\n" % (self.indent(level + 1), g, self.expression(), self.value())
        text += "%s%s_EACH(%s, %s, %s_p, %s)\n" % (self.indent(level + 1), generator.kind, g, generator.name, g, v)
        text += "%sif (++%s > %d)\n%sbreak;\n" % (
            self.indent(level + 2), budget, self.pick([3, 20]) if self.emits else self.pick([1, 20, 200]),
            self.indent(level + 3))
        self.values.append(v)
        self.loops.append((g, generator.kind, how))
        was, self.in_loop = self.in_loop, True
        text += self.block(level + 2, self.random.randint(1, 4))
        text += "%ss0 = s0 * 3 + %s;\n" % (self.indent(level + 2), v)
        self.in_loop = was
        self.loops.pop()
        self.values.pop()
        text += "%s%s_END(%s, %s)\n" % (self.indent(level + 1), generator.kind, g, how)
        return text + self.indent(level) + "}\n"

    def leave_loop(self):
        return "if (((%s) & 15) == 1)\n        break;\n" % self.expression()

    def leave_function(self):
        leave = " ".join("%s_LEAVE(%s, %s)" % (kind, g, how) for g, kind, how in reversed(self.loops))
        return "if (((%s) & 31) == 1) { %s return%s; }\n" % (self.expression(), leave, "" if self.emits else " s0 + s1")

    def emit_some(self):
        return "    for (unsigned i = 0; i < %d; i++)\n        EMIT_%s(s0 + i);\n" % (
            self.random.randint(1, 12), self.emits)


class Unit:
    def __init__(self, seed, count):
        self.random = random.Random(seed)
        self.helpers = [Helper(self.random, n) for n in range(HELPERS)]
        self.generators, self.items = [], [] # items: (name, text)
        for n in range(count):
            for _ in range(2 if n else 5):
                self.generator(len(self.generators))
            self.consumer(n)

    def text(self):
        """Of what is used: the consumers, and what they and their generators name."""
        kept, wanted = [], ""
        for name, text in reversed(self.items):
            if name.startswith("NAME(consumer") or name in wanted:
                kept.append(text)
                wanted += text
        return "".join(reversed(kept))

    def usable(self, depth):
        """A generator may consume those that consume less deeply; a consumer any of the last ones."""
        return [g for g in self.generators[-9:] if g.depth < (depth or 3)]

    def generator(self, number):
        kind = self.random.choice(["OWN", "IN_STACK"])
        depth = self.random.choice([1, 1, 2])
        generator = Generator(number, kind, depth)
        deep = "NAME(deep%d)" % number
        inner = Function(self, kind, None, 1) # depth 1: consumes none
        body = inner.block(0, self.random.randint(1, 3))
        text = "static NOINLINE void %s(%s_YIELDER, int depth, uint64_t seed)\n{\n%s" % (
            deep, kind, inner.declarations("seed"))
        text += body + "    if (depth)\n        %s(y, depth - 1, %s);\n%s%s" % (
            deep, inner.expression(), inner.block(0, 1), inner.digest())
        self.items.append((deep, text + "    EMIT_%s(sum >> 7);\n}\n\n" % kind))
        outer = Function(self, kind, deep, depth)
        body = outer.block(0, self.random.randint(2, 5))
        text = "%s(%s)\n{\n    const uint64_t *p = arg;\n    const uint64_t seed = p[0] ^ p[1];\n%s" % (
            kind, generator.name, outer.declarations("seed"))
        text += body + outer.emit_some() + outer.digest()
        self.items.append((generator.name, text + "    EMIT_%s(sum >> 9);\n    EMIT_%s(p[0]);\n}\n\n" % (kind, kind)))
        self.generators.append(generator)

    def consumer(self, number):
        function = Function(self)
        body = function.block(0, self.random.randint(2, 5)) + "    " + function.consume(0) + function.block(0, 2)
        inlined = self.random.random() < 0.3
        text = "%s uint64_t NAME(%s%d)(uint64_t seed)\n{\n%s%s%s    return sum;\n}\n\n" % (
            "static ALWAYS_INLINE" if inlined else "static NOINLINE", "inlined" if inlined else "consumer", number,
            function.declarations("seed"), body, function.digest())
        if inlined:
            text += (
                "static NOINLINE uint64_t NAME(consumer%d)(uint64_t seed)\n{\n    uint64_t sum = 0;\n"
                "    for (unsigned i = 0; i < 3; i++)\n"
                "        sum = sum * 13 + NAME(inlined%d)(seed + i) + helper8(%s);\n    return sum;\n}\n\n") % (
                    number, number, ", ".join(argument(t, "sum + %d" % i) for i, t in enumerate(self.helpers[8].types)))
        self.items.append(("NAME(consumer%d)" % number, text))


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    unit = Unit(seed, count)
    out = HEADER % seed + "".join(h.text for h in unit.helpers)
    for plain in ["#define PLAIN\n", "#undef PLAIN\n"]:
        out += plain + "#include \"kinds.h\"\n\n" + unit.text()
    out += "const run_function_t run_functions[] = {\n"
    out += "".join("    {plain_consumer%d, live_consumer%d},\n" % (n, n) for n in range(count))
    out += "};\nconst unsigned run_count = %d;\n" % count
    sys.stdout.write(out)


if __name__ == "__main__":
    main()
