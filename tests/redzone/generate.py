#!/usr/bin/env python3
"""generate.py SEED N > generated.c

N random C functions that switch, such as compilers would like to give a red zone: no other calls, arrays and more
values than registers that live across the switches, loops, branches, jump tables, stack arguments; some with
over-aligned locals or alloca(). Each is written twice: switching, and plain, to compare results with. run.c runs them.

With SEEDED defined the yields are made as the header must not make them: without the call on the cold path."""

import random
import sys

HEADER = """/* Made by generate.py: seed %d. */
#include "aco.h"
#include "run.h"

#ifdef SEEDED
#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#define YIELD() (passed = NULL, (void)aco__switch_yield(aco__tls_ref(), aco__running(), &passed, 0))
#else
#define YIELD() (passed = NULL, (void)aco__switch_yield(aco__tls_ref(), aco__running(), &passed, 1))
#endif
#define YIELD1() YIELD()
#define YIELD_VALUE() YIELD()
#define YIELD_TO() YIELD()
static void *passed;
#else
#define YIELD() aco_yield()
#define YIELD1() aco_yield1(aco_get_co())
#define YIELD_VALUE() ((void)aco_yield_value(NULL))
#define YIELD_TO() ((void)aco_yield_to(run_helper))
#endif
#define RESUME() aco_resume(run_helper)
#define SEND() ((void)aco_send(run_helper, NULL))
#define NOINLINE __attribute__((noinline))
"""

TYPES = {"uint64_t": 64, "uint32_t": 32, "uint16_t": 16, "uint8_t": 8}


class Function:
    def __init__(self, random_, number):
        self.random, self.number = random_, number
        self.kind = self.random.choice(["YIELD", "YIELD", "YIELD_VALUE", "YIELD1", "YIELD_TO", "RESUME", "SEND"])
        self.inline = self.chance(0.25)
        kinds = ["uint64_t", "uint64_t", "uint32_t", "uint16_t", "double"]
        self.parameters = [self.pick(kinds) for _ in range(self.pick([1, 2, 3, 5, 8, 12]))]
        self.scalars = self.random.randint(1, 14)
        self.doubles = self.pick([0, 0, 1, 4])
        self.arrays = [self.array() for _ in range(self.pick([0, 1, 1, 2, 3]))]
        self.room = self.random.randint(2, 20) if self.chance(0.15) else 0
        self.depth = 0
        body = self.block(self.random.randint(3, 8), 0)
        if "SWITCH" not in body: # most values shall live across one
            body += "    SWITCH;\n" + self.block(2, 0)
        self.body = body

    def chance(self, p):
        return self.random.random() < p

    def pick(self, choices):
        return self.random.choice(choices)

    def array(self):
        alignment = self.pick([32, 64]) if self.chance(0.1) else 0
        return (self.pick(list(TYPES)), 1 << self.random.randint(1, 5), self.chance(0.3), alignment)

    # expressions over what is declared

    def scalar(self):
        return "s%d" % self.random.randrange(self.scalars)

    def parameter(self):
        n = self.random.randrange(len(self.parameters))
        return ("(uint64_t)p%d" if self.parameters[n] == "double" else "p%d") % n

    def element(self, loop=None):
        n = self.random.randrange(len(self.arrays))
        index = self.pick([
            str(self.random.randrange(self.arrays[n][1])),
            "(%s) & %d" % (loop or self.scalar(), self.arrays[n][1] - 1),
            "%s & %d" % (self.scalar(), self.arrays[n][1] - 1)
        ])
        return "a%d[%s]" % (n, index)

    def value(self):
        choices = [self.scalar, self.scalar, self.parameter, lambda: "%du" % self.random.randrange(1 << 16)]
        if self.arrays:
            choices += [self.element, self.element]
        if self.room:
            choices.append(lambda: "room[%s %% %d]" % (self.scalar(), self.room))
        return self.pick(choices)()

    def expression(self):
        form = self.pick(["%s + %s", "%s ^ %s", "%s * 3 + %s", "%s - %s", "(%s >> 5) + %s", "(%s << 3) | (%s & 7)"])
        return form % (self.value(), self.value())

    # statements

    def statement(self, level):
        choices = [self.assign] * 5 + ["SWITCH"] * 2
        if self.arrays:
            choices += [self.assign_element] * 3
        if self.doubles:
            choices.append(self.assign_double)
        if self.room:
            choices.append(lambda: "room[%s %% %d] ^= %s;" % (self.scalar(), self.room, self.expression()))
        if level < 2:
            choices += [lambda: self.loop(level), lambda: self.branch(level)]
        if level == 0:
            choices += [lambda: self.table(level), self.leave]
        choice = self.pick(choices)
        return "SWITCH;" if choice == "SWITCH" else choice()

    def assign(self):
        return "%s %s %s;" % (self.scalar(), self.pick(["=", "+=", "^="]), self.expression())

    def assign_element(self):
        n = self.random.randrange(len(self.arrays))
        return "a%d[%s & %d] = (%s)(%s);" % (n, self.scalar(), self.arrays[n][1] - 1, self.arrays[n][0],
                                             self.expression())

    def assign_double(self):
        n = self.random.randrange(self.doubles)
        return "d%d += (double)(%s & 255);" % (n, self.scalar())

    def loop(self, level):
        self.depth += 1
        i = "i%d" % self.depth
        step = "s%d += a0[%s & %d]; " % (
            self.random.randrange(self.scalars), i, self.arrays[0][1] - 1) if self.arrays else ""
        return "for (unsigned %s = 0; %s < %s; %s++) {\n        %s%s    }" % (
            i, i, self.pick(["3", "4", "(unsigned)(%s & 3) + 1" % self.scalar()]), i, step,
            self.block(self.random.randint(1, 3), level + 1))

    def branch(self, level):
        return "if (%s & %d) {\n    %s    } else {\n    %s    }" % (
            self.scalar(), self.pick([1, 2, 4, 8]), self.block(self.random.randint(1, 3), level + 1),
            self.block(self.random.randint(1, 2), level + 1))

    def table(self, level):
        cases = "".join("    case %d:\n    %s        break;\n" % (n, self.block(1, level + 1)) for n in range(7))
        return "switch (%s & 7) {\n%s    default:\n        break;\n    }" % (self.scalar(), cases)

    def leave(self):
        return "if (%s %% 61 == 7)\n        return %s;" % (self.scalar(), self.scalar())

    def block(self, n, level):
        return "".join("    %s\n" % self.statement(level) for _ in range(n))

    # the whole

    def declarations(self):
        out = []
        for n in range(self.scalars):
            out.append("    uint64_t s%d = %s * %du;" % (n, self.parameter_for(n), 2 * n + 3))
        for n in range(self.doubles):
            out.append("    double d%d = (double)(s%d & 1023);" % (n, n % self.scalars))
        for n, (type_, size, volatile, alignment) in enumerate(self.arrays):
            how = ("_Alignas(%d) " % alignment if alignment else "") + ("volatile " if volatile else "")
            out.append("    %s%s a%d[%d];" % (how, type_, n, size))
        if self.room:
            out.append(
                "    uint64_t *room = __builtin_alloca(%s * sizeof *room);" % ("(size_t)((s0 & 7) + %d)" % self.room))
            out.append("    for (unsigned k = 0; k < %d; k++)\n        room[k] = s0 + k;" % self.room)
        for n, (type_, size, _, _) in enumerate(self.arrays):
            value = "(%s)(s%d + k * 7u)" % (type_, n % self.scalars)
            out.append("    for (unsigned k = 0; k < %d; k++)\n        a%d[k] = %s;" % (size, n, value))
        return "\n".join(out) + "\n"

    def parameter_for(self, n):
        n %= len(self.parameters)
        return ("(uint64_t)p%d" if self.parameters[n] == "double" else "(uint64_t)p%d") % n

    def results(self):
        out = ["    s0 = s0 * 31 + s%d;" % n for n in range(1, self.scalars)]
        out += ["    s0 = s0 * 31 + (uint64_t)d%d;" % n for n in range(self.doubles)]
        out += ["    s0 = s0 * 31 + (uint64_t)p%d;" % n for n in range(len(self.parameters))]
        for n, (_, size, _, _) in enumerate(self.arrays):
            out.append("    for (unsigned k = 0; k < %d; k++)\n        s0 = s0 * 31 + a%d[k];" % (size, n))
        if self.room:
            out.append("    for (unsigned k = 0; k < %d; k++)\n        s0 = s0 * 31 + room[k];" % self.room)
        return "\n".join(out + ["    return s0;"]) + "\n"

    def write(self, name, switch):
        parameters = ", ".join("%s p%d" % (type_, n) for n, type_ in enumerate(self.parameters))
        arguments = ", ".join("(%s)(v[%d]%s)" % (type_, n, " & 0xfffff" if type_ == "double" else "")
                              for n, type_ in enumerate(self.parameters))
        text = "static %suint64_t %s(%s)\n{\n" % ("inline " if self.inline else "NOINLINE ", name, parameters)
        text += self.declarations() + self.body.replace("SWITCH", switch) + self.results() + "}\n\n"
        return text + "static NOINLINE uint64_t %s_call(const uint64_t *v)\n{\n    return %s(%s);\n}\n\n" % (
            name, name, arguments)


def generate(seed, count):
    functions = [Function(random.Random("%d/%d" % (seed, n)), n) for n in range(count)]
    text = HEADER % seed + "\n"
    for f in functions:
        text += f.write("switching_%d" % f.number, f.kind + "()") + f.write("plain_%d" % f.number, "(void)0")
    text += "const run_function_t run_functions[] = {\n"
    for f in functions:
        kind = "RUN_RESUMES" if f.kind in ("RESUME", "SEND") else "RUN_YIELDS"
        text += "    {%d, %s, switching_%d_call, plain_%d_call},\n" % (f.number, kind, f.number, f.number)
    return text + "};\nconst int run_count = %d;\n" % count


if __name__ == "__main__":
    sys.stdout.write(generate(int(sys.argv[1]), int(sys.argv[2])))
