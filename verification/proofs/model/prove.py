"""The induction: z3 shows that every call, made in any state in which the invariants hold, keeps them and meets its
theorems. For any number of coroutines, threads, stacks and calls: all of them are elements of uninterpreted sorts.

    prove.py [CALL...]     for these calls, or for all

A call is run once for every path through its text that z3 does not refute. No formula has a quantifier: an invariant is
assumed of the finitely many coroutines, threads and stacks that the path comes across, so what is proved needs no
more."""
import z3

import invariant
import machine
from machine import CO, CTX, ST, TH

TIMEOUT = 20000  # milliseconds

SORTS = {name: z3.DeclareSort(name) for name in (CO, TH, ST, machine.CTX, machine.FR, machine.ENV)}
SORTS[machine.BOOL], SORTS[machine.INT] = z3.BoolSort(), z3.IntSort()
ENUMERATED = {}
for _sort, _names in ((machine.STATUS, machine.STATUSES), (machine.LIFE, machine.LIVES),
                      (machine.DOING, machine.DOINGS)):
    SORTS[_sort], _values = z3.EnumSort(_sort, _names)
    ENUMERATED.update(zip(_names, _values))
ELEMENTS = SORTS[CO], SORTS[TH], SORTS[ST]
CONSTANTS = {name: z3.Const(name, SORTS[sort]) for name, sort in machine.CONSTANTS.items()}
FUNCTIONS = {name: z3.Function(name, SORTS[of], SORTS[what]) for name, (of, what) in machine.FIELDS.items()}


class Infeasible(Exception):
    """No state leads along this path."""


def raw(x):
    return x.e if isinstance(x, Term) else z3.BoolVal(x) if isinstance(x, bool) else x


class Term:
    """An expression of the current path's. As a Python condition it splits the path."""
    __hash__ = None

    def __init__(self, path, e):
        self.path, self.e = path, e

    def __eq__(self, other):
        if other is None:
            return False
        other = raw(other)
        return Term(self.path, z3.BoolVal(True) if self.e.eq(other)
                    else self.e == other) if z3.is_expr(other) else Term(self.path, self.e == other)

    def __ne__(self, other):
        return True if other is None else Term(self.path, z3.Not(raw(self == other)))

    def __and__(self, other):
        return Term(self.path, z3.And(self.e, raw(other)))

    def __or__(self, other):
        return Term(self.path, z3.Or(self.e, raw(other)))

    __rand__, __ror__ = __and__, __or__

    def __lt__(self, other):
        return Term(self.path, self.e < raw(other))

    def __ge__(self, other):
        return Term(self.path, self.e >= raw(other))

    def __add__(self, n):
        return Term(self.path, self.e + n)

    def __bool__(self):
        return self.path.decide(self.e)


class Field:
    def __init__(self, path, name, writes=()):
        self.path, self.name, self.writes, self.read = path, name, list(writes), {}

    def at(self, key):
        known = key.get_id(), len(self.writes)
        if known not in self.read:
            self.read[known] = key, self.now_at(key)  # what is named by an id must live on
        return self.read[known][1]

    def now_at(self, key):
        value = FUNCTIONS[self.name](key)
        if self.path:
            self.path.meet(value)
        for where, written in self.writes:
            hit = where(key)
            value = written if z3.is_true(hit) else z3.If(hit, written, value)
        return value

    def __getitem__(self, key):
        key = raw(key)
        for where, written in reversed(self.writes):  # the last one, where it is no question
            hit = where(key)
            if z3.is_true(hit):
                return Term(self.path, written)
            if not z3.is_false(hit):
                break
        return Term(self.path, self.at(key))

    def __setitem__(self, key, value):
        key, value = raw(key), raw(value)
        if isinstance(value, int):
            value = z3.IntVal(value)
        self.path.meet(value)
        self.writes.append((lambda k: z3.BoolVal(True) if k.eq(key) else k == key, value))

    def clear_on(self, s):
        stack, s = Field(None, "stack", self.path.fields["stack"].writes), raw(s)
        self.writes.append((lambda k: stack.at(k) == s, z3.BoolVal(False)))


class Universal:
    """A fact about a variable."""

    def __init__(self, sort, fact):
        self.sort, self.fact = SORTS[sort], fact(z3.Var(0, SORTS[sort]))


def machine_at(path, fields):
    m = machine.Machine.__new__(machine.Machine)
    for name in machine.FIELDS:
        setattr(m, name, fields[name])
    for name, constant in list(ENUMERATED.items()) + list(CONSTANTS.items()):
        setattr(m, name, Term(path, constant))
    return m


class Still:
    """Of the state before the call."""

    def __init__(self, name):
        self.name = name

    def __getitem__(self, key):
        return Term(None, FUNCTIONS[self.name](raw(key)))


def invariants_before():
    m = machine_at(None, {name: Still(name) for name in machine.FIELDS})
    return [Universal(of, lambda x, of=of: z3.And([raw(holds(m, Term(None, x)))
                                                   for sort, holds in invariant.INVARIANTS if sort == of]))
            for of in (CO, TH, ST)]


class Path:
    """One way through a call, and the world that machine.Machine asks."""

    def __init__(self, proof, decisions, assumed):
        self.proof, self.decisions, self.at = proof, decisions, 0
        self.solver = z3.SolverFor("QF_UFLIA")
        self.solver.set("timeout", TIMEOUT)
        self.solver.add(z3.Distinct(CONSTANTS["TRAMPOLINE"], CONSTANTS["TRAPPED"], CONSTANTS["BEGIN"]),
                        CONSTANTS["nil"] != CONSTANTS["trap"])
        self.met, self.number = {}, 0
        self.fields = {name: Field(self, name) for name in machine.FIELDS}
        self.constants = {name: Term(self, e) for name, e in list(ENUMERATED.items()) + list(CONSTANTS.items())}
        self.universals = [] if assumed is None else list(assumed)
        for constant in CONSTANTS.values():
            self.meet(constant)

    def for_all(self, sort, fact):
        """Assumed of every element that the path comes across."""
        self.universals.append(Universal(sort, fact))
        for e in self.met.values():
            self.instantiate(e, self.universals[-1:])

    def meet(self, e):
        """A new element: what holds of all elements holds of it."""
        if e.sort() in ELEMENTS and e.get_id() not in self.met:
            self.met[e.get_id()] = e
            self.instantiate(e, self.universals)

    def instantiate(self, e, universals):
        self.solver.add([z3.substitute_vars(u.fact, e) for u in universals if u.sort == e.sort()])

    def new(self, sort):
        self.number += 1
        e = z3.Const("%s!%d" % (sort, self.number), SORTS[sort])
        self.meet(e)
        return Term(self, e)

    def can_be(self, fact):
        self.number += 1
        asked = z3.Bool("asked!%d" % self.number)
        self.solver.add(z3.Implies(asked, fact))
        self.proof.checks += 1
        return self.solver.check(asked) != z3.unsat

    def decide(self, e):
        e = z3.simplify(e)
        if z3.is_true(e) or z3.is_false(e):
            return z3.is_true(e)
        if self.at < len(self.decisions):
            answer = self.decisions[self.at]
        else:
            yes = self.can_be(e)
            no = not yes or self.can_be(z3.Not(e))
            answer = yes
            if yes and no:
                self.proof.open.append(self.decisions + [False])
            self.decisions = self.decisions + [answer]
        self.at += 1
        self.solver.add(e if answer else z3.Not(e))
        return answer

    # What the machine asks

    def fresh(self, sort):
        term = self.new(sort)
        if sort == CTX:  # where user code is left is not where the library's own begins
            self.solver.add(*(term.e != CONSTANTS[name] for name in ("TRAMPOLINE", "TRAPPED", "BEGIN")))
        return term

    def choose(self):
        return bool(self.new(machine.BOOL))

    def pick(self, fact, a, b):
        return Term(self, z3.If(raw(fact), raw(a), raw(b)))

    def assume(self, fact):
        self.solver.add(raw(fact))
        if isinstance(fact, bool) and not fact or self.solver.check() == z3.unsat:
            raise Infeasible

    def require(self, theorem, fact):
        self.proof.obligations[theorem] = self.proof.obligations.get(theorem, 0) + 1
        if self.can_be(z3.Not(raw(fact))):
            self.proof.fail(theorem)
        self.solver.add(raw(fact))

    def nobody_started(self, s):
        life, stack, left = (Field(None, name, self.fields[name].writes) for name in ("life", "stack", "left"))
        s = raw(s)

        def started(x):
            return z3.And(stack.at(x) == s, z3.Or(life.at(x) == ENUMERATED["STARTED"], left.at(x)))
        if self.choose():
            self.for_all(CO, lambda x: z3.Not(started(x)))
            return True
        self.solver.add(started(self.new(CO).e))
        return False


class Proof:
    def __init__(self, call):
        self.call, self.open, self.paths, self.checks, self.obligations, self.failed = call, [[]], 0, 0, {}, {}
        self.assumed = invariants_before()

    def fail(self, theorem):
        self.failed[theorem] = self.failed.get(theorem, 0) + 1

    def run(self):
        while self.open:
            path = Path(self, self.open.pop(), self.assumed)
            m = machine.Machine(path)
            try:
                t = path.new(TH)
                path.solver.add(t.e != CONSTANTS["nobody"])
                getattr(m, "call_" + self.call)(t, *(path.new(sort) for sort in machine.CALLS[self.call]))
            except Infeasible:
                continue
            except machine.Dies:
                self.paths += 1
                continue
            self.paths += 1
            self.keeps(path, m)
        return self

    def keeps(self, path, m):
        if not any(field.writes for field in path.fields.values()):
            return  # nothing has changed
        skolem = {sort: path.new(sort) for sort in (CO, TH, ST)}
        goals = {holds.__name__: raw(holds(m, skolem[sort])) for sort, holds in invariant.INVARIANTS}
        if path.can_be(z3.Not(z3.And(list(goals.values())))):
            for name, goal in goals.items():
                if path.can_be(z3.Not(goal)):
                    self.fail("keeps: " + name)


def initially():
    """The invariants hold before the first call. Returns the names of those that do not."""
    f, nil, trap = FUNCTIONS, CONSTANTS["nil"], CONSTANTS["trap"]
    begin = [Universal(CO, lambda x: z3.And(
        f["life"](x) == ENUMERATED["UNBORN"], f["doing"](x) == ENUMERATED["IDLE"], z3.Not(f["left"](x)),
        z3.Not(f["cleaning"](x)),
        f["status"](x) == z3.If(x == trap, ENUMERATED["SUSPENDED"], ENUMERATED["NONE"]),
        z3.Implies(x == trap, f["ctx"](x) == CONSTANTS["TRAPPED"]))),
        Universal(TH, lambda x: z3.And(f["running"](x) == nil, f["resuming"](x) == nil)),
        Universal(ST, lambda x: f["owner"](x) == nil)]
    path = Path(Proof(None), [], begin)
    m = machine_at(path, path.fields)
    return [holds.__name__ for sort, holds in invariant.INVARIANTS
            if path.can_be(z3.Not(raw(holds(m, path.new(sort)))))]


if __name__ == "__main__":
    import sys
    import time
    print("initially", initially())
    for call in sys.argv[1:] or machine.CALLS:
        begin = time.process_time()
        p = Proof(call).run()
        print("%-12s %5d paths %6d checks %5.1f s" % (call, p.paths, p.checks, time.process_time() - begin),
              p.failed or "", flush=True)
