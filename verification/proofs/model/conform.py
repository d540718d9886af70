"""Random walks of the machine, which the real library must follow. follow.c makes each call in the coroutine that runs
in the machine, and afterwards compares the state of the library with that of the machine. Tasks are left out, because
the scheduler chooses their order."""
import collections
import random

import machine
from explore import Again, Field, World
from machine import CO, ENV, ST, TH

CALLS = ["new", "resume", "yield", "yield_to", "end", "clean_up", "cancel", "restart", "destroy"]
WEIGHTS = [6, 40, 25, 12, 2, 1, 2, 2, 3]
STATES = ["READY", "RUNNING", "RESUMING", "SUSPENDED", "DONE", "NONE", "ELSEWHERE"]  # aco_state_t
THREADS, SHARED, PRIVATE, COROUTINES = 2, 3, 4, 12


class Walk:
    def __init__(self, seed):
        self.random, self.rounding = random.Random(seed), {None: 0, "FIRST": 0}
        self.cos = ["c%d" % i for i in range(COROUTINES)]
        self.stacks = ["s%d" % i for i in range(SHARED)] + ["p%d" % i for i in range(PRIVATE)]
        self.threads = ["t%d" % i for i in range(THREADS)]
        given = [("status", "trap", "SUSPENDED"), ("ctx", "trap", "TRAPPED")]
        given += [("private", s, True) for s in self.stacks
                  if s[0] == "p"] + [("own_fp", co, True) for co in self.cos[::2]]
        self.world = World(given)
        self.m = machine.Machine(self.world)
        self.counts = collections.Counter()

    def snapshot(self):
        return {name: dict(field) for name, field in self.world.fields.items()}

    def back_to(self, snapshot):
        for name, field in self.world.fields.items():
            field.clear()
            field.update(snapshot[name])

    def forget(self, co):
        """The name of one that is destroyed may be another's."""
        for name, (of, _) in machine.FIELDS.items():
            if of == CO and name != "own_fp":
                self.world.fields[name].pop(co, None)

    def draw(self):
        m = self.m
        call = self.random.choices(CALLS, WEIGHTS)[0]
        t = self.random.choice(self.threads)
        arguments = [self.random.choice(self.cos) if sort == CO else self.random.choice(self.stacks)
                     for sort in machine.CALLS[call]]
        actor = m.running[t]
        if call == "new" and actor != "nil" and m.cleaning[actor]:
            return None
        if call in ("end", "clean_up") and actor == "nil":
            return None
        if arguments and call != "new" and m.status[arguments[0]] in ("NONE", "DESTROYED"):
            return None
        if call == "yield_to" and actor == "nil":
            return None
        return call, t, arguments

    def step(self):
        """One call, as a line for follow.c."""
        m, before = self.m, self.snapshot()
        while True:
            drawn = self.draw()
            if not drawn:
                continue
            call, t, arguments = drawn
            number, actor = self.world.number, m.running[t]
            try:
                result = getattr(m, "call_" + call)(t, *arguments)
            except (Again, machine.Dies):
                self.back_to(before)
                continue
            if result == machine.FAILED and call == "destroy":  # which aborts
                self.back_to(before)
                continue
            break
        rounding = self.random.randrange(4)
        for i in range(number + 1, self.world.number + 1):
            self.rounding["%s!%d" % (ENV, i)] = rounding
        self.counts[call if result == machine.OK else call + " failed"] += 1
        co = self.cos.index(arguments[0]) if arguments else -1
        stack = self.stacks.index(arguments[1]) if len(arguments) > 1 else -1
        departs = result == machine.OK and self.world.number != number
        line = [self.threads.index(t), CALLS.index(call), co, stack, rounding if departs else -1, result == machine.OK]
        line += [self.index(m.running[t]), self.index(m.resuming[t]),
                 m.running[t] != "nil" and m.resumer[t] == "TRAMPOLINE", self.rounding[m.cpu[t]]]
        for co in self.cos:
            status = machine.STATUSES.index(m.status[co])
            line += [status, STATES.index(self.state(t, co))]
            self.counts[m.status[co]] += 1
        for s in self.stacks[:SHARED]:
            started = sum(m.stack[co] == s and (m.life[co] == "STARTED" or m.left[co]) for co in self.cos)
            line += [self.index(m.owner[s]), m.thread[s] != "nobody", started]
        for co in self.cos:
            if m.status[co] == "DESTROYED" and not m.left[co]:
                self.forget(co)
        return " ".join(str(int(x)) for x in line)

    def index(self, co):
        return -1 if co == "nil" else -2 if co == "trap" else self.cos.index(co)

    def state(self, t, co):
        m = self.m
        if m.status[co] in ("NONE", "DESTROYED"):
            return "NONE"
        if m.status[co] == "ENDED":
            return "DONE"
        if m.status[co] in ("RESUMING", "RESUMING_SAVED"):
            return "RESUMING"
        if m.running[t] == co:
            return "RUNNING"
        if m.doing[co] == "RUNS":  # which aco_state() does not say
            return "ELSEWHERE"
        return "READY" if m.life[co] == "NEW" else "SUSPENDED"


def trace(seed, steps):
    walk = Walk(seed)
    lines = [walk.step() for _ in range(steps)]
    head = "%d %d %d %d %d" % (steps, THREADS, SHARED, PRIVATE, COROUTINES)
    return "\n".join([head] + lines) + "\n", walk.counts


if __name__ == "__main__":
    import sys
    text, counts = trace(int(sys.argv[1]), int(sys.argv[2]))
    print(text, end="")
    print(dict(counts), file=sys.stderr)
