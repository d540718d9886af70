"""The same machine on plain values: every state that a few coroutines can reach, each checked against the invariants
and the theorems. It is bounded: it shows that the machine does something and finds a shortest example of a fault. That
there is no fault with more coroutines is what prove.py proves. conform.py uses world() too."""
import collections

import invariant
import machine
from machine import CO, CTX, ENV, FR, ST, TH

DEFAULTS = {CO: "nil", TH: "nobody", ST: None, CTX: None, FR: None, ENV: None, machine.STATUS: "NONE",
            machine.LIFE: "UNBORN",
            machine.DOING: "IDLE", machine.BOOL: False, machine.INT: 0}
TOKENS = CTX, FR, ENV


class Wrong(Exception):
    pass


class Again(Exception):
    pass


class Field(dict):
    def __init__(self, world, name, values):
        super().__init__(values)
        self.world, self.default = world, DEFAULTS[machine.FIELDS[name][1]]

    def __missing__(self, key):
        return self.default

    def clear_on(self, s):
        for co in list(self):
            if self.world.fields["stack"][co] == s:
                self[co] = False


class World:
    """A state, and the answers to the choices that a call asks for."""
    constants = {name: name for name in machine.STATUSES + machine.LIVES + machine.DOINGS + tuple(machine.CONSTANTS)}

    def __init__(self, state=(), choices=()):
        self.fields = {name: Field(self, name, ()) for name in machine.FIELDS}
        for name, key, value in state:
            self.fields[name][key] = value
        self.choices, self.asked, self.number = list(choices), 0, 0

    def fresh(self, sort):
        self.number += 1
        return "%s!%d" % (sort, self.number)

    def choose(self):
        self.asked += 1
        return self.asked <= len(self.choices) and self.choices[self.asked - 1]

    def pick(self, fact, a, b):
        return a if fact else b

    def assume(self, fact):
        if not fact:
            raise Again

    def require(self, theorem, fact):
        if not fact:
            raise Wrong(theorem)

    def nobody_started(self, s):
        f = self.fields
        return not any(stack == s and (f["life"][co] == "STARTED" or f["left"][co]) for co, stack in f["stack"].items())

    def state(self):
        """The state with its tokens renamed in the order in which they are found: equal for states that differ only in
        names."""
        names, found = {}, []
        for name, (_, sort) in machine.FIELDS.items():
            default = DEFAULTS[sort]
            for key in sorted(self.fields[name]):
                value = self.fields[name][key]
                if value == default:
                    continue
                if sort in TOKENS and value not in machine.CONSTANTS:
                    value = names.setdefault(value, "%s:%d" % (sort, len(names)))
                found.append((name, key, value))
        return tuple(found)


def facts(m, elements):
    for sort, holds in invariant.INVARIANTS:
        for x in elements[sort]:
            if not holds(m, x):
                raise Wrong("invariant: %s(%s)" % (holds.__name__, x))


def begin(attributes):
    return tuple(sorted([("status", "trap", "SUSPENDED"), ("ctx", "trap", "TRAPPED")] + list(attributes)))


def moves(elements):
    for call, sorts in machine.CALLS.items():
        arguments = [()]
        for sort in sorts:
            arguments = [a + (x,) for a in arguments for x in elements[sort] if x not in ("nil", "trap")]
        for t in elements[TH]:
            for a in arguments:
                yield call, (t,) + a


def after(state, call, arguments):
    """Every state that the call leads to, with its result."""
    todo = [()]
    while todo:
        choices = todo.pop()
        world = World(state, choices)
        m = machine.Machine(world)
        try:
            result = getattr(m, "call_" + call)(*arguments)
        except (Again, machine.Dies):
            m = None
        for i in range(len(choices), world.asked):  # each choice that was answered by default
            todo.append(tuple(choices) + (False,) * (i - len(choices)) + (True,))
        if m:
            yield world.state(), m, result


def explore(elements, attributes, most, useful=lambda call, arguments: True):
    """Breadth first. (states, transitions, None or (what is wrong, the calls that lead there), whether that is all)"""
    first = begin(attributes)
    came_from, todo, transitions = {first: None}, collections.deque([first]), 0
    calls = [(call, arguments) for call, arguments in moves(elements) if useful(call, arguments)]
    while todo and len(came_from) < most:
        state = todo.popleft()
        for call, arguments in calls:
            try:
                for found, m, _ in after(state, call, arguments):
                    transitions += 1
                    if found not in came_from:
                        came_from[found] = state, call, arguments
                        facts(m, elements)
                        todo.append(found)
            except Wrong as wrong:
                trace = [(call, arguments)]
                while came_from[state]:
                    state, call, arguments = came_from[state]
                    trace.append((call, arguments))
                return len(came_from), transitions, (str(wrong), trace[::-1]), False
    return len(came_from), transitions, None, not todo


def settings():
    """Small worlds: (name, elements, their attributes, the useful calls)"""
    def world(stacks, coroutines, threads=1, **attributes):
        elements = {CO: ["nil", "trap"] + sorted(coroutines), TH: ["t%d" % i for i in range(threads)],
                    ST: sorted(stacks)}
        given = [("private", s, True) for s in stacks if s.startswith("p")]
        given += [(name, co, True) for name, cos in attributes.items() for co in cos]
        def useful(call, arguments):
            return call not in ("new", "spawn") or arguments[2] in coroutines[arguments[1]]
        return elements, given, useful
    yield ("three on a share stack",) + world({"s"}, {"a": "s", "b": "s", "c": "s"}, own_fp="ab")
    yield ("two on a share stack, one on its own",) + world({"s", "p"}, {"a": "s", "b": "s", "c": "p"}, own_fp="ac")
    yield ("tasks and a coroutine",) + world({"p", "pp", "s"}, {"a": ["p"], "b": ["pp"], "c": "s"}, own_fp="c")
    yield ("two threads",) + world({"s", "p"}, {"a": "s", "b": "s", "c": "p"}, threads=2, instrumented="c")


if __name__ == "__main__":
    import sys
    import time
    for name, elements, given, useful in settings():
        start = time.process_time()
        print(name, explore(elements, given, int(sys.argv[1]) if len(sys.argv) > 1 else 5000, useful),
              "%.1f s" % (time.process_time() - start), flush=True)
