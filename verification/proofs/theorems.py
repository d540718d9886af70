"""The theorems, each stated once, and the walk through a compiled function that brings them to every switch in it.

A function is followed from its entry over all its paths, with what it finds in registers and memory unknown; where
paths meet, what differs is unknown again (machine.Join), so loops end. At a switch

  1. each path through its instructions is followed apart, up to the jump, and the theorems about leaving are proved
     there;
  2. the function goes on at the arrival label in a state in which nothing is known but what those theorems, of whoever
     comes back, promise: the stack pointer, frame pointer and base pointer that this side left, the registers that
     cross, the frame [sp, top). Every other register holds poison. At the function's return the theorems about it are
     proved."""
import re

import z3

from arch import ROOT, abi, redzone
from machine import Join, Machine, NotUnderstood, State
from terms import add, apply, check, const, fresh, is_const, is_poisoned, make, split, to_z3, truth

COMES_BACK = ("RESUME", "YIELD", "TRANSFER", "PEER_SWAP", "IN_STACK_RESUME", "IN_STACK_YIELD")
#          kind       own context  arriving   what record.running becomes
MEMORY = {"RESUME": ("record", "block", "block"), "YIELD": ("block", "record", None),
          "TRANSFER": ("leaving", "block", "block"),
          "EXIT": (None, "record", None), "ENTER": (None, "entered", "as it was")}

# theorem: what it says. C1.0 to C2.2 are libaco's names for the ABI's constraints.
THEOREMS = {
    "kept.sp": "C2.1: the own context holds the stack pointer, as it was at the first instruction",
    "kept.frame": "C2.0: the own context holds the frame pointer and, with clang, the base pointer",
    "kept.pc": "the own context holds the address of the arrival label",
    "arrives.sp": "C2.1: at the jump sp is the arriving context's word",
    "arrives.frame": "C2.0: so are the frame pointer and, in a swap, the base pointer",
    "arrives.pc": "the jump goes where the arriving context says",
    "carried": "C1.0: the block, aco__tls_ref() and the value are at the jump what they were",
    "control.kept": "C2.2: with own FP environments, the own context holds the control bits",
    "control.arrives": "C2.2: and at the jump they are the arriving context's",
    "control.untouched": "C2.2: of who shares them they are as they were",
    "control.exceptions": "C1.2: no x87 exception is pending when another control word is loaded",
    "status": "C1.3, C1.4: the direction flag and the x87 stack are at the jump as they were",
    "memory": "nothing is read or written but words of the two contexts and the thread record, and nothing below sp",
    "steady": "the stack pointer moves once, to the arriving side's",
    "running": "the record names who runs",
    "thread": "the record is the calling thread's own",
    "pad": "the arrival label has a landing pad, where the unit is built with them",
    "exit.saved": "C2.0: at the function's return each callee-saved register is what it was at its entry",
    "exit.sp": "C2.1: so is the stack pointer, and it returns where it was called from",
    "exit.control": "C2.2: with own FP environments, so are the control bits",
    "exit.status": "C1.4: the direction flag is clear",
    "stale": "C1.1, C1.5: nothing depends on a register that the arriving side did not bring",
    "aligned": "C2.1: the stack pointer is a multiple of 16 at each call",
    "entry.aligned": "C2.1: where coroutines begin, aco__top of the stack's record, sp is as the ABI wants it at a "
                     "function's entry",
    "entry.return": "the return address found there is aco__returned, and nothing else is written with it",
    "begin.context": "a context that begins: at aco__top, or at a generator's words, which are laid out there, in the "
                     "assembly, without a frame; "
                     "C2.2: a coroutine's with the control words that its thread gives to new ones",
    "begin.goes": "a first arrival goes on in the function that it is to begin",
    "begin.return": "and that function's return address is the one laid out",
    "begin.parameters": "and its parameters are what crossed, and a generator's argument",
    "begin.aligned": "C2.1: and sp is as the ABI wants it there",
    "begin.memory": "nothing is read but what was laid out and the block's entry function, nothing written but "
                    "parameters below top",
    "begin.pad": "and it begins with a landing pad, where the processor has them",
    "redzone": "nothing is read or written below the stack pointer in a function with a switch that comes back",
}
PRESERVE_NONE = {"aco_task_yield_call"}


def never_return():
    """What is declared so, here and in the C library as tests/redzone/check.py knows it."""
    declared = re.compile(r"__attribute__\(\([^()]*\bnoreturn\b[^()]*\)\)[^;{}()]*?\b(\w+)\(")
    files = [*(ROOT / "include").rglob("*.h*"), *(ROOT / "src").rglob("*.[ch]")]
    return redzone.NEVER_RETURN.union(*(declared.findall(path.read_text()) for path in files))


NEVER_RETURN = never_return()
# Words that are written through the address of a local; of others it is not known how many, so all up to the next saved
# value.
WRITES_THROUGH = {"use": 4, "next_long_double": 2, "_ZN4heldC1Ev": 1, "_ZN4heldC2Ev": 1, "_ZN4heldD1Ev": 1,
                  "_ZN4heldD2Ev": 1,
                  "aco__send_check": 1, "aco__send_slow": 1, "aco__in_stack_closing": 0}
# How many parameters some functions have: they do not read the registers of further parameters.
PARAMETERS = {"next": 0, "put": 1, "aco__in_stack_failed": 1, "aco__in_stack_closing": 1, "aco__in_stack_impossible": 0,
              "aco__yields_in_cleanup": 1, "aco__interrupted": 1}
# where they come back at all, they have not switched
SAME_THREAD = {"memcpy", "memset", "aco__send_check", "aco__resume_check", "aco__yield_check"}
POINTER_NEVER_RETURNS = {"aco__end"}  # it calls end_task, which is declared so
ROLES_KEPT = {"callee-saved", "frame-pointer", "stack-pointer", "platform", "zero"}


def wanted(site, arch, clang, pads):
    """The theorems that must be brought to a switch."""
    if site.kind in MEMORY:
        out = {"arrives.sp", "arrives.frame", "arrives.pc", "carried", "memory", "steady", "thread"}
        if site.kind != "ENTER":
            out |= {"running"}
        if site.kind in COMES_BACK:
            out |= {"kept.sp", "kept.frame", "kept.pc"}
        if arch.controls:
            out |= {"control.untouched"} | ({"control.kept", "control.arrives"} if site.fp == "own" else set())
            if site.fp == "own" and any(c.register == "FPUControlWord" for c in arch.controls):
                out |= {"control.exceptions"}
    else:
        out = {"arrives.sp", "arrives.frame", "arrives.pc", "carried", "memory",
               "kept.pc"} | ({"control.untouched"} if arch.controls else set())
        if not site.kind.endswith("LAST"):
            out |= {"kept.frame"}
    if arch.status:
        out |= {"status"}
    if pads and site.kind in COMES_BACK:
        out |= {"pad"}
    return out


class Claims:
    """What was proved and what was not, by site or function."""

    def __init__(self):
        self.results, self.queries, self.answers = {}, 0, {}

    def claim(self, where, theorem, formula, conditions=(), detail=""):
        assert theorem in THEOREMS, theorem
        ok = z3.is_true(z3.simplify(formula))
        if not ok:
            question = (*conditions, z3.Not(formula))
            key = tuple(part.get_id() for part in question)
            if key not in self.answers:
                self.queries += 1
                self.answers[key] = check(*question), question  # what is named by an id must live on
            answer = self.answers[key][0]
            ok = answer == z3.unsat
            if answer == z3.unknown:
                detail += " (the solver gave up)"
        self.record(where, theorem, ok, detail)

    def record(self, where, theorem, ok, detail=""):
        count, bad = self.results.get((where, theorem), (0, None))
        self.results[where, theorem] = (count + 1, bad if ok else bad or detail or "does not hold")

    def begin(self, where):
        """What was claimed of less general states does not count."""
        for key in [key for key in self.results if key[0] == where]:
            del self.results[key]


class Site:
    def __init__(self, name, labels):
        self.name = name
        _, _, self.kind, self.fp, self.number = name.split(".")
        self.begin, self.end, self.arrival = (labels.get(name + "." + what) for what in ("begin", "end", "arrival"))


class Access:
    def __init__(self, kind, base, offset, size, at):
        self.kind, self.base, self.offset, self.size, self.at = kind, base, offset, size, at


class Function:
    """One function with switches in it."""

    def __init__(self, program, name, sites, claims, macros, pads):
        self.program, self.arch, self.name, self.claims, self.pads = program, program.arch, name, claims, pads
        self.clang = "__clang__" in macros
        self.machine = Machine(program)
        self.at_begin = {site.begin: site for site in sites}
        self.sites, self.reached = sites, set()
        self.entry, self.size = program.functions[name]
        self.table = abi.Table(self.arch.table)
        self.comes_back = any(site.kind in COMES_BACK for site in sites)  # else it keeps nothing
        self.own_fp_only = all(site.fp == "own" for site in sites)
        self.sequence = None
        self.escaped, self.also_at, self.or_zero = set(), {}, {}
        self.registers = [(r, s) for r in self.table.registers if r.applies(macros) for s in [self.sleigh(r)] if s]

    def sleigh(self, register):
        return next(filter(None, (self.arch.sleigh(n, self.program.registers) for n in register.names)), None)

    # ---- What the machine asks ----

    def cells(self, state, base):
        return state.memory.setdefault(base, {})

    def settled(self, address):
        """Without a rounding down that changes nothing, or as much as is known."""
        base, offset = split(address)
        if base is not None and base.op == "INT_AND" and base.args[1] is const(self.arch.word, -self.arch.alignment):
            over = self.alignment(base.args[0])
            return address if over is None else add(base.args[0], offset - over)
        return address

    def load(self, state, address, size):
        base, offset = split(address)
        self.access(state, "read", address, base, offset, size)
        if base is None:
            data = self.program.bytes_at(offset, size)
            if data is not None:
                return const(size, int.from_bytes(data, self.arch.order))
        return State.read(self.cells(state, base), offset, size, "memory")

    def store(self, state, address, term):
        base, offset = split(address)
        self.access(state, "write", address, base, offset, term.size)
        if base not in self.stack_bases and self.sequence is None:
            if is_poisoned(term):
                self.stale("stores a register that nobody brought", self.at)
            for other in [b for b in state.memory if b not in self.stack_bases and b is not base]:
                del state.memory[other]
            self.forget_escaped(state)
        for sp, places in self.also_at.items():
            if any(b is base and at < offset + term.size and offset < at + self.arch.word for b, at in places):
                state.memory.pop(sp, None)
        value_base = split(term)[0]
        if value_base in self.stack_bases and self.sequence is None and \
                (base not in self.stack_bases or self.has_escaped(base, offset)):
            self.escape(term)
        State.write(self.cells(state, base), offset, term)

    def moves(self, state, address, most=256):
        """Up to so many bytes are copied there: what is known afterwards is what is known when a function that was
        given the address has returned."""
        if self.sequence is not None:
            raise NotUnderstood("%s: %#x: %s" % (self.name, self.at, self.program.text(self.at)))
        self.store(state, address, fresh(1, "moved"))
        base, _ = split(address)
        if base in self.stack_bases:
            self.escape(address, most // self.arch.word)
        else:
            state.memory.pop(base, None)
        self.forget_escaped(state)

    def uses(self, state, term, what):
        if self.sequence is None and is_poisoned(term):
            self.stale("%s depends on a register that nobody brought" % what, self.at)

    def stale(self, what, at):
        self.claims.record(self.name, "stale", False, "%#x: %s" % (at, what))

    def access(self, state, kind, address, base, offset, size):
        self.accesses.append(Access(kind, base, offset, size, self.at))
        self.uses(state, address, "an address")

    def escape(self, term, words=512):
        base, offset = split(term)
        known = dict(((b, o), w) for b, o, w in self.escaped)
        if known.get((base, offset), 0) < words:
            self.escaped = {e for e in self.escaped if e[:2] != (base, offset)} | {(base, offset, words)}

    def has_escaped(self, base, offset):
        return any(b is base and o <= offset < o + words * self.arch.word for b, o, words in self.escaped)

    def is_saved(self, term):
        return term in self.entry_values or term in self.or_zero or split(term)[0] in self.stack_bases or \
            bool(term.free) and term.free <= self.narrow

    def both_or_zero(self, a, b):
        """The address in the frame of which each of the two is the value, where it is not 0, or None: a stack pointer
        that was saved, where it was."""
        def address(term):
            return term if split(term)[0] is self.sp0 else self.or_zero.get(term)
        x, y = address(a), address(b)
        if x is y or y is None and b is const(b.size, 0):
            return x
        return y if x is None and a is const(a.size, 0) else None

    def decides(self, state, condition):
        """Whether a condition holds, if that is known: no address in the frame is 0."""
        if condition.op == "INT_EQUAL" and split(condition.args[0])[0] is self.sp0 and \
                is_const(condition.args[1]) and not condition.args[1].args[0]:
            return False
        return state.facts.get(condition)

    def learns(self, state, condition, holds):
        state.facts[condition] = holds
        state.learn(condition, holds)
        term = condition.args[0] if condition.args else None
        if condition.op == "INT_EQUAL" and term in self.or_zero and condition.args[1] is const(term.size, 0):
            state.replace(term, condition.args[1] if holds else self.or_zero[term])

    def forget_escaped(self, state):
        """What other functions may write to: what an address of the frame that they were given leads to, up to the next
        place where the compiler keeps a register or an address."""
        for base, offset, words in self.escaped:
            cells = state.memory.get(base)
            if not cells:
                continue
            for at in sorted(filter(range(offset, offset + words * self.arch.word).__contains__,
                                    map(State.lowest, cells))):
                if self.is_saved(cells[State.lowest(at)][0]):
                    break
                del cells[State.lowest(at)]

    # ---- The walk ----

    def run(self):
        self.aligned = set()  # variables that are multiples of what sp is at calls
        self.initial = self.entry_state()
        for _ in range(6):
            self.escaped = {e for e in self.escaped if e[0].free <= {self.sp0}}
            before = set(self.escaped)
            self.walk()
            if {e for e in self.escaped if e[0].free <= {self.sp0}} == before:
                break
        else:
            raise NotUnderstood("%s: what has its address taken does not settle" % self.name)
        self.claims.record(self.name, "stale", True)
        if self.comes_back:
            self.claims.record(self.name, "redzone", True)

    def entry_state(self):
        state = State()
        self.entry_values, self.first, self.narrow = set(), {}, set()
        for register, name in self.registers:
            offset, size = self.program.registers[name]
            if not State.known(state.registers, offset, size):
                term = const(size, self.program.toc) if name == self.arch.toc else self.unknown(name, "entry")
                self.first[name] = term
                State.write(state.registers, offset, term)
                if register.role in ROLES_KEPT | {"return-address"} or name == self.arch.return_address:
                    self.entry_values.add(term)
                if name in self.arch.narrow:  # saved together, as one word
                    self.narrow |= term.free
        self.sp0 = self.first[self.arch.sp]
        if self.arch.thread_pointer not in self.first:  # s390x: two registers together
            self.new_thread(state)
        self.found_by_address(state, self.entry)
        if self.arch.return_address:
            self.ret = self.first[self.arch.return_address]
        else:
            self.ret = self.load_initial(state)
        self.entry_values.add(self.ret)
        if "DF" in self.arch.status:
            self.machine.set_register(state, "DF", const(1, 0))
        return state

    def unknown(self, register, where, poison=False):
        size = self.program.registers[register][1]
        term = fresh(size, "%s@%s" % (register, where), poison)
        return apply("INT_AND", size, term, const(size, 15)) if register in self.arch.narrow else term

    def found_by_address(self, state, at):
        """The beginning of a function, or its arrival label after a switch: a location entered by its address."""
        if self.arch.goes_by:
            self.machine.set_register(state, self.arch.goes_by, const(self.arch.word, at))

    def load_initial(self, state):
        term = fresh(self.arch.word, "return@entry")
        State.write(self.cells(state, self.sp0), 0, term)
        return term

    def walk(self):
        self.claims.begin(self.name)
        self.also_at = {}  # where the word at a stack pointer, which is known by that, may be too
        self.or_zero = {}  # variables that are an address in the frame, or 0
        self.stack_bases, self.accesses, self.at = set(), [], self.entry
        state = self.initial.copy()
        self.stack_bases = {self.sp0}
        self.states, self.ours = {}, {}
        todo, steps = [(self.entry, state, False)], 0
        # where paths may meet; elsewhere the state is that of the instruction before, made more general with it
        joins = set()
        while todo:
            at, state, forced = todo.pop()
            joins.add(at)
            while at is not None:
                steps += 1
                if steps > 60000:
                    raise NotUnderstood("%s does not settle" % self.name)
                if at in joins and at in self.states and not forced:
                    beyond = self.decided(at, state)
                    if beyond:
                        at, state = beyond
                        joins.add(at)
                        continue
                    join = Join(self.ours.setdefault(at, set()), self)
                    state = join.state(self.states[at], state)
                    if not join.changed:
                        break
                    self.note_bases(state)
                forced = False
                self.states[at] = state
                state = state.copy()
                if at in self.at_begin:
                    todo += self.site(self.at_begin[at], state)
                    break
                ends, behind = self.step(state, at), at + self.program.instruction(at)[0]
                if len(ends) == 1:
                    at, state = ends[0]
                    if at != behind:
                        joins.add(at)
                else:
                    todo += [(to, other, False) for to, other in ends]
                    break

    def decided(self, at, state):
        """Where this path goes on behind a branch or conditional instruction just here, that goes one way alone after
        what it has passed: compilers test again what they join, and the instructions of Arm's sequences without
        branches test the same flags one after the other. Else None."""
        for _ in range(16):
            if at in self.at_begin or not self.program.only_decides(at):
                return None
            decides = any(op.name == "CBRANCH" for op in self.program.instruction(at)[1])
            ends = self.step(state.copy(), at)
            if len(ends) != 1 or isinstance(ends[0][0], tuple):
                return None
            at, state = ends[0]
            if decides:
                return at, state
        return None

    def alignment(self, term):
        """term modulo what it is at calls, or None."""
        mask = self.arch.alignment - 1
        base, offset = split(term)
        if base is None or base is self.sp0 or base in self.aligned:
            return (offset + (self.arch.entry if base is self.sp0 else 0)) & mask
        if base.op == "INT_AND" and is_const(base.args[1]) and base.args[1].args[0] & mask == 0:
            return offset & mask
        while base.op == "piece" and base.args[1] == 0:
            base = base.args[0]
        if base.op == "INT_MULT" and is_const(base.args[1]) and base.args[1].args[0] & mask == 0:
            return offset & mask
        if base.op == "INT_LEFT" and is_const(base.args[1]) and base.args[1].args[0] >= 4:
            return offset & mask
        if base.op in ("INT_2COMP", "PIECE"):
            a = self.alignment(base.args[-1])
            return None if a is None else (offset + a if base.op == "PIECE" else offset - a) & mask
        if base.op in ("INT_ADD", "INT_SUB"):
            a, b = map(self.alignment, base.args)
            return None if a is None or b is None else (offset + a + (b if base.op == "INT_ADD" else -b)) & mask
        return None

    def note_bases(self, state):
        self.stack_bases.add(split(self.machine.register(state, self.arch.sp))[0])

    def step(self, state, at):
        """One instruction outside the switches: [(address, state)]."""
        self.at, self.accesses = at, []
        if any(op.name == "CALLOTHER" for op in self.program.instruction(at)[1]) and \
                self.program.text(at).split()[0] in self.arch.traps:
            return []
        sp = self.machine.register(state, self.arch.sp)
        ends = []
        for to, after, _ in self.machine.step(state, at, self):
            self.note_bases(after)
            self.check_red_zone(sp, self.machine.register(after, self.arch.sp))
            if isinstance(to, tuple):
                ends += self.transfer_of_control(*to, after, sp)
            elif self.leaves_function(to):
                self.exit(after, 0)
            else:
                ends.append((to, after))
        return ends

    def leaves_function(self, to):
        """A jump to another function is a tail call."""
        names = self.program.starts.get(to, [])
        return to != self.entry and names and not any(".cold" in n or ".part" in n for n in names) and \
            not self.entry < to < self.entry + self.size

    def check_red_zone(self, before, after):
        if self.arch.prologue_below:
            return
        (base, low), (other, moved) = split(before), split(after)
        if base is other:
            low = min(low, moved)
        for access in self.accesses:
            if access.base is base and access.offset < low and base is not None and self.comes_back:
                self.claims.record(self.name, "redzone", False, "%#x: %s" % (access.at, self.program.text(access.at)))

    def transfer_of_control(self, kind, target, after, state, sp):
        if kind == "call":
            name = self.program.name_at(target.args[0]) if is_const(target) else None
            if is_const(target) and target.args[0] == after:  # i386: where am I?
                return [(after, state)]
            if name and name.startswith("__x86.get_pc_thunk."):
                self.machine.set_register(state, "E" + name[-2:].upper(), const(self.arch.word, after))
                self.machine.set_register(state, self.arch.sp, sp)
                return [(after, state)]
            # gcc knows what its own need
            if not (self.arch.name == "i386" and is_const(target) and target.args[0] in self.program.static):
                self.check_alignment(sp)
            if name and name.split(".")[0] in NEVER_RETURN or not name and self.name in POINTER_NEVER_RETURNS or \
                    self.leaves_function(after):
                return []
            return [(after, self.after_call(state, sp, name))]
        popped = self.arch.word if not self.arch.return_address else 0
        if target.op == "INT_AND" and target.args[0] is self.ret and \
                target.args[1] in (const(self.arch.word, -2), const(self.arch.word, -4)):
            target = self.ret  # without the bits that are no part of an address
        if target is self.ret:
            self.exit(state, popped)
            return []
        if is_const(target) and kind == "leave":
            return [(target.args[0], state)]
        if kind == "leave" and self.machine.register(state, self.arch.sp) is self.sp0:  # a tail call through a pointer
            self.exit(state, 0)
            return []
        if kind == "return":
            self.claims.record(self.name, "exit.sp", False, "%#x: returns to %r" % (self.at, target))
            return []
        if self.program.text(self.at).split()[0] in self.arch.traps:
            return []
        raise NotUnderstood("%s: %#x: %s" % (self.name, self.at, self.program.text(self.at)))

    def check_alignment(self, sp):
        assumed = [to_z3(self.sp0) & self.arch.alignment - 1
                   == self.arch.entry] + [to_z3(term) & self.arch.alignment - 1 == 0 for term in sp.free & self.aligned]
        self.claims.claim(self.name, "aligned", to_z3(sp) & self.arch.alignment - 1 == 0, assumed,
                          "%#x: sp is %r" % (self.at, sp))

    def mixed(self, control, old):
        """A control register after a call or a switch: its own control bits, and unknown status bits."""
        size = self.program.registers[control.register][1]
        if control.mask == (1 << 8 * size) - 1:
            return old
        return make("mixed", size, old.args[0] if old.op == "mixed" else old, fresh(size, "status"), control.mask)

    def after_call(self, state, sp, name):
        for argument in self.arch.arguments[:PARAMETERS.get(name)]:
            term = self.machine.register(state, argument)
            if split(term)[0] in self.stack_bases:
                self.escape(term, self.written_through(state, name))
        after = State()
        everything = not (name in PRESERVE_NONE and self.clang)
        for register, sleigh in self.registers:
            if register.role in ROLES_KEPT and (everything or register.role != "callee-saved"):
                self.machine.set_register(after, sleigh, self.machine.register(state, sleigh))
        self.machine.set_register(after, self.arch.sp, sp)
        for control in self.arch.controls:
            self.machine.set_register(after, control.register,
                                      self.mixed(control, self.machine.register(state, control.register)))
        if name in SAME_THREAD:
            self.machine.set_register(after, self.arch.thread_pointer,
                                      self.machine.register(state, self.arch.thread_pointer))
        else:
            self.new_thread(after)
        if "DF" in self.arch.status:
            self.machine.set_register(after, "DF", const(1, 0))
        after.memory = self.frame(state, sp)
        self.forget_escaped(after)
        return after

    def written_through(self, state, name):
        """How many words a call may write through the address of a local."""
        if name in ("memcpy", "memset") and self.arch.arguments:
            count = self.machine.register(state, self.arch.arguments[2])
            if is_const(count):
                return -(-count.args[0] // self.arch.word)
        return WRITES_THROUGH.get(name, 512)

    def new_thread(self, state):
        """The call may return on another thread."""
        self.machine.set_register(state, self.arch.thread_pointer, fresh(self.arch.word, "thread"))

    def frame(self, state, sp):
        """The memory that survives a call or a switch: the frame, from the stack pointer up."""
        base, low = split(sp)
        out = {}
        for b, cells in state.memory.items():
            if b in self.stack_bases:
                out[b] = cells if b is not base else {
                    k: v for k, v in cells.items() for at in [State.lowest(k)]
                    if at >= low and not low + self.arch.word <= at < low + self.arch.header}
        return out

    # ---- Theorems about functions ----

    def exit(self, state, popped):
        sp = self.machine.register(state, self.arch.sp)
        self.claims.claim(self.name, "exit.sp", to_z3(sp) == to_z3(add(self.sp0, popped)), (),
                          "%#x: sp is %r" % (self.at, sp))
        if not popped and not self.arch.return_address:
            there = State.read(self.cells(state, self.sp0), 0, self.arch.word, "memory")
            self.claims.claim(self.name, "exit.sp", to_z3(there) == to_z3(self.ret), (),
                              "%#x: the return address is lost" % self.at)
        if not (self.name.strip("'") in PRESERVE_NONE and self.clang):
            for register, name in self.registers:
                if register.role in ("callee-saved", "frame-pointer"):
                    term = self.machine.register(state, name)
                    self.claims.claim(self.name, "exit.saved", to_z3(term) == to_z3(self.first[name]), (),
                                      "%#x: %s is %r" % (self.at, name, term))
        if self.own_fp_only:
            for control in self.arch.controls:
                term = self.machine.register(state, control.register)
                self.claims.claim(self.name, "exit.control",
                                  to_z3(term) & control.mask == to_z3(self.first[control.register]) & control.mask,
                                  (), "%#x: %s is %r" % (self.at, control.register, term))
        if "DF" in self.arch.status:
            self.claims.claim(self.name, "exit.status", to_z3(self.machine.register(state, "DF")) == 0, (),
                              "%#x" % self.at)

    # ---- A switch ----

    def site(self, site, state):
        """Where the function goes on."""
        self.reached.add(site.name)
        self.claims.begin(site.name)
        begin = state
        begin.facts = {}  # what the theorems assume is the conditions of the sequence's own paths
        for name in (*self.arch.status, *(c.register for c in self.arch.controls), *self.arch.carried,
                     self.arch.leaving, self.arch.entered,
                     *self.arch.swap.values(), *self.arch.handed_over, self.arch.frame, *filter(None, [self.arch.base]),
                     self.arch.thread_pointer):
            self.machine.register(begin, name)  # has a name from now on
        begin.memory = {b: dict(c) for b, c in state.memory.items() if b in self.stack_bases}
        ends = []
        cases = [("", begin)]
        if site.kind == "TRANSFER":  # to itself is a transfer too
            same = begin.copy()
            self.machine.set_register(same, self.arch.leaving, self.machine.register(same, self.arch.carried[0]))
            cases.append((" (to itself)", same))
        for case, first in cases:
            ends += self.paths(site, first, case)
        if site.kind in COMES_BACK:
            ends.append((site.arrival, self.arrive(site, begin), True))
        return ends

    def paths(self, site, begin, case):
        leave, outside = Leave(self, site, begin, case), []
        todo, left = [(site.begin, begin.copy(), (), [])], 0
        while todo:
            at, state, conditions, accesses = todo.pop()
            if len(conditions) > 24 or len(accesses) > 300:
                self.claims.record(site.name, "memory", False, "the sequence does not end")
                return outside
            if at == site.end or not site.begin <= at < site.end:
                outside.append((at, state, False))
                leave.falls_out(state, conditions)
                continue
            self.at, self.accesses, self.sequence = at, [], site
            before = self.machine.register(state, self.arch.sp)
            for to, after, more in self.machine.step(state, at, self):
                both = conditions + tuple(truth(t) if taken else z3.Not(truth(t)) for t, taken in more)
                all_accesses = accesses + self.accesses
                leave.steady(before, after, isinstance(to, tuple), both)
                if self.arch.pushes and isinstance(to, tuple) and to[0] == "call" and \
                        to[1] is const(self.arch.word, to[2]):
                    to = to[2]  # where am I?
                if isinstance(to, tuple):
                    left += 1
                    if to[0] != "leave":
                        self.claims.record(site.name, "steady", False, "%#x: %s" % (at, self.program.text(at)))
                    else:
                        leave.leaves(to[1], after, both, all_accesses)
                    continue
                if more and self.impossible(both):
                    continue
                todo.append((to, after, both, all_accesses))
            self.sequence = None
        if not left:
            self.claims.record(site.name, "arrives.pc", False, "no path leaves")
        return outside

    @staticmethod
    def impossible(conditions):
        return check(*conditions) == z3.unsat

    def arrive(self, site, begin):
        """What is known at the arrival label."""
        arch, machine, state = self.arch, self.machine, State()
        for register, name in self.registers:
            if register.role not in ("platform", "zero"):
                machine.set_register(state, name, self.unknown(name, "arrival", poison=True))
            else:
                machine.set_register(state, name, machine.register(begin, name))
        for name in arch.status:
            machine.set_register(state, name, fresh(self.program.registers[name][1], name + "@arrival", poison=True))
        if "DF" in arch.status:
            machine.set_register(state, "DF", const(1, 0))
        for control in arch.controls:
            old = machine.register(begin, control.register)
            machine.set_register(state, control.register,
                                 self.mixed(control, old)
                                 if site.fp == "own" else fresh(self.program.registers[control.register][1], "control"))
        sp = machine.register(begin, arch.sp)
        machine.set_register(state, arch.sp, sp)
        machine.set_register(state, arch.frame, machine.register(begin, arch.frame))
        self.found_by_address(state, site.arrival)
        self.new_thread(state)
        state.memory = self.frame(begin, sp)
        self.forget_escaped(state)
        for offset, name in self.fixed(site):
            self.put(state, sp, offset, machine.register(begin, name))
        if site.kind in MEMORY:
            co, tls, value = arch.carried
            thread = machine.register(state, arch.thread_pointer)
            record = add(thread, self.program.thread_record())
            machine.set_register(state, tls, const(arch.word, self.program.thread_record())
                                 if arch.tls_ref_is_offset else record)
            machine.set_register(state, value, fresh(arch.word, "value"))
            machine.set_register(state, co, fresh(arch.word, "tagged"))
            # the other side has changed neither context; a coroutine is named by the record that it runs on
            own = {"record": record, "block": machine.register(begin, co),
                   "leaving": machine.register(begin, arch.leaving)}[MEMORY[site.kind][0]]
            if site.kind != "RESUME":
                self.put(state, record, arch.running, own)
            if arch.base:
                self.put(state, own, 3 * arch.word, machine.register(begin, arch.base))
        else:
            for name in arch.peer(site.kind).values():
                machine.set_register(state, name, fresh(arch.word, name + "@swap"))
            if arch.base:
                machine.set_register(state, arch.base, machine.register(begin, arch.base))
            if site.kind == "IN_STACK_RESUME":
                generators = fresh(arch.word, "generator's sp")
                self.aligned.add(generators)
                self.stack_bases.add(generators)
                machine.set_register(state, arch.sp, generators)
                base, low = split(sp)
                if base in state.memory:  # there were its first words, and are its frames
                    lost = range(low, low + arch.room + arch.start_words * arch.word)
                    state.memory[base] = {k: v for k, v in state.memory[base].items() if State.lowest(k) not in lost}
                for name in arch.handed_over:
                    machine.set_register(state, name, machine.register(begin, name))
        return state

    def fixed(self, site):
        """What a sequence keeps at its stack pointer."""
        keeps = not self.clang and site.kind in COMES_BACK and site.kind != "IN_STACK_RESUME"
        return self.arch.fixed.items() if keeps else ()

    def put(self, state, where, offset, term):
        base, at = split(where)
        State.write(self.cells(state, base), at + offset, term)


class Leave:
    """The theorems about the instructions of one switch, from `begin` to the jump."""

    def __init__(self, function, site, begin, case):
        self.f, self.site, self.begin, self.case = function, site, begin, case
        self.arch, self.machine = function.arch, function.machine
        co, tls, _ = self.arch.carried
        self.in_memory = site.kind in MEMORY
        self.co = self.at_begin(co)
        self.tls = self.at_begin(tls)
        thread = self.at_begin(self.arch.thread_pointer)
        self.record = apply("INT_ADD", self.arch.word, thread, self.tls) if self.arch.tls_ref_is_offset else self.tls
        self.contexts = {"record": self.record, "block": self.co, "leaving": self.at_begin(self.arch.leaving),
                         "entered": self.at_begin(self.arch.entered)}
        if self.in_memory:
            own, arriving, self.runs = MEMORY[site.kind]
            self.own, self.arriving = self.contexts.get(own), self.contexts[arriving]
            expected = add(thread, function.program.thread_record())
            self.claim("thread", self.record, expected, (), "the record")

    def at_begin(self, register):
        return self.machine.register(self.begin, register)

    def claim(self, theorem, term, expected, conditions, what):
        self.f.claims.claim(self.site.name, theorem, to_z3(term) == to_z3(expected), conditions,
                            "%s%s is %r, not %r" % (what, self.case, term, expected))

    def word(self, state, context, offset, size=None):
        base, at = split(context)
        return State.read(self.f.cells(state, base), at + offset, size or self.arch.word, "memory")

    def steady(self, before, after, is_jump, conditions):
        """sp is what it was at the beginning, or what it is at the jump."""
        sp, first = self.machine.register(after, self.arch.sp), self.at_begin(self.arch.sp)
        own = (first, add(first, -self.arch.word)) if self.arch.pushes else (first,)
        if sp is before or before in own and sp in own:
            return
        if self.site.kind == "IN_STACK_LAST":
            self.rounded_down("steady", sp, conditions)
        elif self.site.kind.startswith("IN_STACK"):
            room = add(first, self.arch.room)
            self.claim("steady", sp, room if self.site.kind == "IN_STACK_RESUME" and sp is not first else first,
                       conditions, "sp")
        elif before in own:
            self.claim("steady", sp, self.word(after, self.arriving, 0) if self.in_memory else self.passed("sp"),
                       conditions, "sp")
        elif not (self.arch.pops and not self.in_memory and before is self.passed("sp")
                  and sp is add(before, self.arch.word)):
            self.f.claims.record(self.site.name, "steady", False,
                                 "%#x: sp moves twice: %s" % (self.f.at, self.f.program.text(self.f.at)))

    def rounded_down(self, theorem, sp, conditions):
        """x86: in a function that calls nothing, the stack pointer may be no multiple of 16. The consumer may call a
        function before it restores its own."""
        first = self.at_begin(self.arch.sp)
        self.f.claims.claim(self.site.name, theorem, z3.ULT(to_z3(first) - to_z3(sp), self.arch.alignment), conditions,
                            "sp is %r" % sp)

    def passed(self, what):
        """Before the switch, what the other side handed over."""
        register = self.arch.peer(self.site.kind)[what]
        return self.at_begin(self.arch.goes_to.get(self.site.kind, register) if what == "pc" else register)

    def pushed(self):
        """What may be written at the stack pointer: the word below it; registers that have no other location."""
        out = self.span(self.at_begin(self.arch.sp), -self.arch.word, self.arch.word) if self.arch.pushes else set()
        return out.union(*(self.span(self.at_begin(self.arch.sp), offset, self.arch.word)
                           for offset, _ in self.f.fixed(self.site)))

    def leaves(self, target, state, conditions, accesses):
        """At the jump."""
        program, arch = self.f.program, self.arch
        if self.in_memory:
            self.leaves_by_memory(target, state, conditions, accesses)
        else:
            self.leaves_by_registers(target, state, conditions, accesses)
        if arch.goes_by:
            self.claim("arrives.pc", self.location(self.machine.register(state, arch.goes_by)), target, conditions,
                       "what it finds itself by")
        for offset, name in self.f.fixed(self.site):
            self.claim("kept.frame", self.word(state, self.at_begin(arch.sp), offset), self.at_begin(name), conditions,
                       "%s at sp" % name)
        for name in arch.status:
            self.claim("status", self.machine.register(state, name), self.at_begin(name), conditions, name)
        if self.site.kind in COMES_BACK and self.f.pads:
            there = program.bytes_at(self.site.arrival, len(arch.pad))
            self.f.claims.record(self.site.name, "pad", there == arch.pad,
                                 "%#x: %s" % (self.site.arrival, program.text(self.site.arrival)))

    def leaves_by_memory(self, target, state, conditions, accesses):
        arch, word = self.arch, self.arch.word
        register = lambda name: self.machine.register(state, name)
        if self.own is not None:
            self.claim("kept.sp", self.word(state, self.own, 0), self.at_begin(arch.sp), conditions,
                       "the own context's sp")
            self.claim("kept.pc", self.word(state, self.own, word), const(word, self.site.arrival | arch.arrival_bit),
                       conditions,
                       "the resume address")
            self.claim("kept.frame", self.word(state, self.own, 2 * word), self.at_begin(arch.frame), conditions,
                       "the own frame pointer")
            if self.f.clang and arch.base:
                self.claim("kept.frame", self.word(state, self.own, 3 * word), self.at_begin(arch.base), conditions,
                           "the own base pointer")
        self.claim("arrives.sp", register(arch.sp), self.word(state, self.arriving, 0), conditions, "sp")
        self.claim("arrives.pc", target, self.location(self.word(state, self.arriving, word)), conditions,
                   "the jump's target")
        self.claim("arrives.frame", register(arch.frame), self.word(state, self.arriving, 2 * word), conditions,
                   "the frame pointer")
        for name in arch.carried:
            self.claim("carried", register(name), self.at_begin(name), conditions, name)
        self.controls(state, conditions)
        if self.runs != "as it was":
            runs = self.co if self.runs == "block" else const(word, 0)
            self.claim("running", self.word(state, self.record, arch.running), runs, conditions, "record.running")
        self.check_accesses(accesses)

    def location(self, word):
        """Where a jump to `word` leads: Arm's lowest bit is not part of the address."""
        return apply("INT_AND", word.size, word, const(word.size, ~self.arch.code_bit)) if self.arch.code_bit else word

    def controls(self, state, conditions):
        arch, site = self.arch, self.site
        shares = to_z3(self.word(state, self.co, arch.state, 1)) < 0
        for control in arch.controls:
            now, first = self.machine.register(state, control.register), self.at_begin(control.register)
            same = to_z3(now) == to_z3(first)
            apart = shares
            if control.register == "MXCSR" and arch.word == 4:  # a processor may have none
                apart = z3.Or(shares, to_z3(self.word(state, self.record, arch.state, 1)) < 0)
            detail = "%s%s is %r" % (control.register, self.case, now)
            if site.fp != "own":
                self.f.claims.claim(site.name, "control.untouched", same, conditions, detail)
                continue
            kept = to_z3(self.word(state, self.own, control.offset, control.size))
            wanted = to_z3(self.word(state, self.arriving, control.offset, control.size))
            narrow = lambda x: z3.Extract(8 * control.size - 1, 0, x) & control.mask
            self.f.claims.claim(site.name, "control.untouched", z3.Implies(shares, same), conditions, detail)
            self.f.claims.claim(site.name, "control.kept", z3.Or(apart, kept & control.mask == narrow(to_z3(first))),
                                conditions,
                                "the own %s%s" % (control.register, self.case))
            self.f.claims.claim(site.name, "control.arrives", z3.Or(apart, wanted & control.mask == narrow(to_z3(now))),
                                conditions, detail)
            if control.register == "FPUControlWord" and now is not first:
                flags = to_z3(self.machine.register(state, "FPUStatusWord")) & 0x3f == 0
                self.f.claims.claim(site.name, "control.exceptions", flags, conditions, "exceptions may be pending")

    def check_accesses(self, accesses):
        """Byte by byte."""
        word, fp = self.arch.word, self.site.fp == "own"
        context = 4 * word + 6 if fp else 4 * word
        writable, readable = self.pushed(), set()
        if self.own is not None:
            writable |= self.span(self.own, 0, context)
        if self.runs != "as it was":
            writable |= self.span(self.record, self.arch.running, word)
        readable |= writable | self.span(self.arriving, 0, context)
        if fp:  # the state, and which way is cheaper
            readable |= self.span(self.co, self.arch.state, 1) | self.span(self.record, self.arch.state, 1)
        self.only(accesses, readable, writable)

    def only(self, accesses, readable, writable):
        for access in accesses:
            allowed = writable if access.kind == "write" else readable
            if access.base is None and access.kind == "read" and \
                    self.f.program.bytes_at(access.offset, access.size) is not None:
                continue  # a constant
            ok = all((access.base, access.offset + i) in allowed for i in range(access.size))
            self.f.claims.record(self.site.name, "memory", ok, "%#x: %s: a %s of %r%+d" % (
                access.at, self.f.program.text(access.at), access.kind, access.base, access.offset))

    @staticmethod
    def span(context, offset, size):
        base, at = split(context)
        return {(base, at + offset + i) for i in range(size)}

    def leaves_by_registers(self, target, state, conditions, accesses):
        arch, kind, peer = self.arch, self.site.kind, self.arch.peer(self.site.kind)
        register = lambda name: self.machine.register(state, name)
        in_stack, last = kind.startswith("IN_STACK"), kind.endswith("LAST")
        pops = arch.pops and not in_stack
        first_sp = self.at_begin(arch.sp)
        resume_address = const(arch.word, self.site.arrival | arch.arrival_bit) if self.site.arrival else None
        goes_to = self.word(state, self.passed("sp"), 0) if pops else self.passed("pc")
        self.claim("arrives.pc", target, self.location(goes_to), conditions, "the jump's target")
        self.claim("arrives.frame", register(arch.frame), self.passed("bp"), conditions, "the frame pointer")
        if arch.base:
            self.claim("arrives.frame", register(arch.base), self.passed("base"), conditions, "the base pointer")
        if in_stack:
            self.f.check_alignment(register(arch.sp))
            if last:
                self.rounded_down("arrives.sp", register(arch.sp), conditions)
            else:
                self.claim("arrives.sp", register(arch.sp),
                           add(first_sp, arch.room if kind == "IN_STACK_RESUME" else 0), conditions, "sp")
            if kind == "IN_STACK_RESUME":
                self.claim("arrives.sp", first_sp, self.passed("sp"), conditions, "sp at the beginning")
        else:
            self.claim("arrives.sp", register(arch.sp), add(self.passed("sp"), arch.word if pops else 0), conditions,
                       "sp")
        for name, by in arch.handed_over.items():
            if kind == "IN_STACK_RESUME":
                self.claim("kept.frame", register(by), self.at_begin(name), conditions, "%s handed over" % name)
            elif in_stack:
                self.claim("arrives.frame", register(name), self.at_begin(by), conditions, "%s handed back" % name)
        self.claim("carried", register(peer["value"]), self.passed("value"), conditions, "the value")
        if last:
            self.claim("kept.pc", register(peer["pc"]), const(arch.word, 0), conditions, "the resume address")
        else:
            if pops:  # what says that this side has not ended: an address
                self.claim("carried", register(peer["pc"]), goes_to, conditions, "what says that it goes on")
                self.claim("kept.pc", self.word(state, first_sp, -arch.word), resume_address, conditions,
                           "the resume address")
            else:
                self.claim("kept.pc", register(peer["pc"]), resume_address, conditions, "the resume address")
            self.claim("kept.frame", register(peer["bp"]), self.at_begin(arch.frame), conditions,
                       "the frame pointer handed over")
            if arch.base:
                self.claim("kept.frame", register(peer["base"]), self.at_begin(arch.base), conditions,
                           "the base pointer handed over")
            if not in_stack:
                self.claim("kept.sp", register(peer["sp"]), add(first_sp, -arch.word if pops else 0), conditions,
                           "the stack pointer handed over")
        for control in arch.controls:
            self.claim("control.untouched", register(control.register), self.at_begin(control.register), conditions,
                       control.register)
        self.f.claims.record(self.site.name, "memory", True)
        self.only(accesses, self.pushed() | (self.span(self.passed("sp"), 0, arch.word) if pops else set()),
                  self.pushed())

    def falls_out(self, state, conditions):
        """An in-stack resume of a generator that is not the innermost: it does not switch."""
        if self.site.kind != "IN_STACK_RESUME":
            self.f.claims.record(self.site.name, "arrives.pc", False,
                                 "a path goes on behind the switch without leaving")
            return
        peer = self.arch.peer(self.site.kind)
        self.claim("carried", self.machine.register(state, peer["pc"]), const(self.arch.word, 1), conditions,
                   "what says that it failed")
        self.claim("steady", self.machine.register(state, self.arch.sp), self.at_begin(self.arch.sp), conditions, "sp")
        self.f.claims.claim(self.site.name, "arrives.sp",
                            to_z3(self.at_begin(self.arch.sp)) != to_z3(self.passed("sp")), conditions,
                            "it fails for the innermost")


class Stores(Function):
    """A function of the library without a switch, of which it is known what it stores outside its frame."""

    def __init__(self, program, name, claims, macros):
        super().__init__(program, name, [], claims, macros, False)
        self.stores = []

    def store(self, state, address, term):
        if split(address)[0] is not self.sp0:
            self.stores.append((address, term))
        super().store(state, address, term)

    def run(self):
        self.aligned = set()
        self.initial = self.entry_state()
        self.proves(*self.parameters())

    def parameters(self):
        if self.arch.arguments:
            return [self.first[name] for name in self.arch.arguments[:3]]
        return [State.read(self.cells(self.initial, self.sp0), n * self.arch.word, self.arch.word, "memory")
                for n in (1, 2, 3)]


class LayOut(Stores):
    """src/stack/layout.c: what a stack's record says is where the first functions on it find their stack pointer."""
    NAMES, THEOREMS = ("aco__stack_lay_out",), {"entry.aligned"}

    def proves(self, map_, below, sz):
        arch, of_top = self.arch, 4 * self.arch.word  # the record's fifth word is aco__top
        self.walk()
        line = [to_z3(map_) + to_z3(below) + to_z3(sz) & 63 == 0]  # their sum is a multiple of a cache line
        tops = {top for address, top in self.stores if top is add(address, -of_top - arch.entry_below_top)}
        for top in tops:
            self.claims.claim(self.name, "entry.aligned", to_z3(top) & arch.alignment - 1 == arch.entry, line,
                              "aco__top is %r" % top)
        if not tops:
            self.claims.record(self.name, "entry.aligned", False, "aco__top is not stored")


class SetReturn(Stores):
    """src/coroutine/entry.c: the return address at the top of a stack."""
    NAMES, THEOREMS = ("aco__stack_set_return",), {"entry.return"}

    def proves(self, stack, *_):
        word = self.arch.word
        top = State.read(self.cells(self.initial, stack), 4 * word, word, "top")
        self.walk()
        returned = self.program.location_of("aco__returned")
        there = [term for address, term in self.stores if address is add(top, self.arch.return_word * word)]
        right = len(there) == len(self.stores) and there and \
            all(is_const(term) and term.args[0] & ~self.arch.code_bit == returned for term in there)
        self.claims.record(self.name, "entry.return", bool(right), "it stores %r" % self.stores)


class Begin(Function):
    """The library's assembly at which a context begins that no switch has stored: a few instructions without a
    condition."""
    NAMES = ("aco__begin", "aco__begin_entry", "aco__generator_begin")

    def __init__(self, program, name, claims, macros):
        super().__init__(program, name, [], claims, macros, False)
        self.aligned, self.stack_bases, self.accesses, self.at = set(), set(), [], self.entry
        self.state = State()
        self.found_by_address(self.state, self.entry)
        if self.arch.toc:
            self.machine.set_register(self.state, self.arch.toc, const(self.arch.word, program.toc))
        self.first = {name: self.machine.register(self.state, name) for _, name in self.registers}
        self.sp0, self.entry_values = self.first[self.arch.sp], set()
        self.laid_out = {n: State.read(self.cells(self.state, self.sp0), n * self.arch.word, self.arch.word,
                                       "laid out") for n in range(24)}
        self.stack_bases = {self.sp0}

    def run(self):
        arch, at, state, begun = self.arch, self.entry, self.state, len(self.accesses)
        while not isinstance(at, tuple):
            if at != self.entry and self.program.name_at(at):
                at = ("leave", const(arch.word, at), at)  # a jump to another function
                break
            self.at = at
            ends = self.machine.step(state, at, self)
            if len(ends) != 1:
                raise NotUnderstood("%s: %#x: %s" % (self.name, at, self.program.text(at)))
            at, state, _ = ends[0]
        self.end = state
        generator = self.name == "aco__generator_begin"
        if arch.goes_by:
            self.same("begin.goes", self.location(self.machine.register(state, arch.goes_by)), at[1],
                      "what it finds itself by")
        read = self.generator(at) if generator else self.coroutine(at)
        sp = self.machine.register(state, arch.sp)
        self.claims.claim(self.name, "begin.aligned", to_z3(sp) & arch.alignment - 1 == arch.entry,
                          [to_z3(self.sp0) & arch.alignment - 1 == (0 if generator else arch.entry)], "sp is %r" % sp)
        for access in self.accesses[begun:]:
            code = access.base is None and access.kind == "read" and \
                self.program.bytes_at(access.offset, access.size) is not None
            here = (access.base, access.offset, access.size)
            self.claims.record(self.name, "begin.memory",
                               code or here in (self.writes if access.kind == "write" else read | self.writes),
                               "%#x: %s" % (access.at, self.program.text(access.at)))
        if arch.begin_pad:
            self.claims.record(self.name, "begin.pad",
                               self.program.bytes_at(self.entry, len(arch.begin_pad)) == arch.begin_pad,
                               self.program.text(self.entry))
        for register, name in self.registers:
            if register.role in ROLES_KEPT and name != arch.sp:
                self.same("begin.parameters", self.machine.register(state, name), self.first[name], name)

    def same(self, theorem, term, expected, what):
        self.claims.claim(self.name, theorem, to_z3(term) == to_z3(expected), (),
                          "%s is %r, not %r" % (what, term, expected))

    def location(self, word):
        return apply("INT_AND", word.size, word, const(word.size, ~self.arch.code_bit)) if self.arch.code_bit else word

    def word_at(self, offset):
        return (self.sp0, offset, self.arch.word)

    def coroutine(self, at):
        """Returns what it may read."""
        arch = self.arch
        co = self.first[arch.carried[0]]
        self.writes = set()
        if self.name == "aco__begin":
            begun = self.program.functions["aco__begun"][0]
            self.same("begin.goes", at[1], const(arch.word, begun), "where it goes")
        else:
            entry = State.read(self.cells(self.end, co), arch.entry_function, arch.word, "fp")
            self.same("begin.goes", at[1], self.location(entry), "where it goes")
        self.same("begin.return", self.machine.register(self.end, arch.return_address), self.laid_out[arch.return_word],
                  "the return address")
        self.same("begin.parameters", self.machine.register(self.end, arch.sp), self.sp0, "sp")
        for name in arch.arguments:
            self.same("begin.parameters", self.machine.register(self.end, name), self.first[name], name)
        return {self.word_at(arch.return_word * arch.word), (co, arch.entry_function, arch.word)}

    def generator(self, at):
        arch, word = self.arch, self.arch.word
        sp = self.machine.register(self.end, arch.sp)
        base, low = split(sp)
        self.same("begin.goes", at[1], self.location(self.laid_out[0]), "where it goes")
        returns = self.machine.register(self.end, arch.return_address) if arch.return_address else \
            State.read(self.cells(self.end, base), low, word, "memory")
        self.same("begin.return", returns, self.laid_out[arch.start_return], "the return address")
        low += arch.parameters_at
        self.writes, on_stack = set(), 0
        for k, what in enumerate(arch.generator_parameters):
            if k < len(arch.arguments):
                there = self.machine.register(self.end, arch.arguments[k])
            else:
                there = State.read(self.cells(self.end, base), low + on_stack * word, word, "memory")
                if what != "argument":
                    self.writes.add((base, low + on_stack * word, word))
                on_stack += 1
            if what:
                self.same("begin.parameters", there, self.laid_out[arch.start_argument]
                          if what == "argument" else self.first[arch.swap[what]], what)
        return {self.word_at(k * word) for k in (0, arch.start_return, arch.start_argument)}


class BeginsAt(Function):
    """callers/begins.c: the first context of a coroutine or generator, as the header sets it. What is written overlaps
    nothing that is read."""
    NAMES, THEOREMS = ("prepares", "generator_context"), {"begin.context"}

    def __init__(self, program, name, claims, macros):
        super().__init__(program, name, [], claims, macros, False)

    def store(self, state, address, term):
        base, offset = split(address)
        self.access(state, "write", address, base, offset, term.size)
        State.write(self.cells(state, base), offset, term)

    def run(self):
        arch, word = self.arch, self.arch.word
        self.aligned = set()
        self.initial = self.entry_state()
        at = self.program.labels["aco_proof_offsets"]
        stack_of, top_of, *control = (int.from_bytes(self.program.bytes_at(at + k * word, word), arch.order)
                                      for k in range(6))
        self.parameters = [self.first[name] for name in arch.arguments[:4]] if arch.arguments else \
            [State.read(self.cells(self.initial, self.sp0), (k + 1) * word, word, "parameter") for k in range(4)]
        stack = State.read(self.cells(self.initial, self.parameters[1]), stack_of, word, "stack")
        self.top = State.read(self.cells(self.initial, stack), top_of, word, "top")
        thread, offset = split(self.parameters[0])
        self.controls = [(to, State.read(self.cells(self.initial, thread), offset + of, size, "control"))
                         for to, of, size in ((*control[:2], 4), (*control[2:], 2))]
        self.walk()
        if (self.name, "begin.context") not in self.claims.results:
            self.claims.record(self.name, "begin.context", False, "does not return")

    def after_call(self, state, sp, name):
        """memset() and memcpy() change their bytes. No other function is called: the rest of memory stays."""
        word = self.arch.word
        where, value, count = [self.machine.register(state, r)
                               for r in self.arch.arguments[:3]] if self.arch.arguments else \
            [State.read(self.cells(state, split(sp)[0]), split(sp)[1] + k * word, word, "argument") for k in range(3)]
        if not is_const(count) or not (name == "memcpy" or name == "memset" and is_const(value)):
            raise NotUnderstood("%s: %#x calls %s" % (self.name, self.at, name))
        after = super().after_call(state, sp, name)
        after.memory = {base: dict(cells) for base, cells in state.memory.items()}
        base, offset = split(where)
        if name == "memcpy":
            copied = State.read(self.cells(state, split(value)[0]), split(value)[1], count.args[0], "memory")
        else:
            copied = const(count.args[0], int.from_bytes(bytes([value.args[0] & 255]) * count.args[0], "little"))
        State.write(self.cells(after, base), offset, copied)
        return after

    def exit(self, state, popped):
        super().exit(state, popped)
        if self.name == "prepares":
            self.holds(state, self.parameters[1], self.top, "aco__begin")
            self.is_at(state, self.parameters[1], self.arch.entry_function, self.parameters[2], "the entry function")
            for offset, control in self.controls:
                self.is_at(state, self.parameters[1], offset, control, "a control word")
        else:
            self.generator(state)

    def generator(self, state):
        arch, word = self.arch, self.arch.word
        start = add(self.top, arch.entry_below_top - arch.start_words * word)
        begin = const(word, self.program.location_of("aco__generator_begin") | arch.arrival_bit)
        self.holds(state, self.parameters[0], add(start, -word if arch.pops else 0), "aco__generator_begin")
        if arch.pops:
            self.is_at(state, start, -word, begin, "the resume address")
        self.is_at(state, start, 0, self.parameters[2], "the function")
        self.is_at(state, start, arch.start_argument * word, self.parameters[3], "the argument")
        line = [to_z3(self.top) & arch.alignment - 1 == arch.entry]
        self.claims.claim(self.name, "begin.context", to_z3(start) & arch.alignment - 1 == 0, line,
                          "the words are at %r" % start)
        returns = self.program.location_of("aco__returned_without_parent") or self.program.location_of("aco__returned")
        if not returns:
            raise NotUnderstood("%s: the library's return address is not here" % self.name)
        self.is_at(state, start, arch.start_return * word, const(word, returns | arch.arrival_bit),
                   "the return address")

    def holds(self, state, context, sp, function):
        word = self.arch.word
        self.is_at(state, context, 0, sp, "sp")
        self.is_at(state, context, word, const(word, self.program.location_of(function) | self.arch.arrival_bit), "pc")
        self.is_at(state, context, 2 * word, const(word, 0), "the frame pointer")

    def is_at(self, state, where, offset, expected, what):
        base, at = split(where)
        term = State.read(self.cells(state, base), at + offset, expected.size, "memory")
        self.claims.claim(self.name, "begin.context", to_z3(term) == to_z3(expected), (),
                          "%s is %r, not %r" % (what, term, expected))
