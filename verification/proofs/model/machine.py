"""The control blocks and the threads' records as a state machine.

One text, run in three ways: on z3's terms, where every comparison splits the path (prove.py); on plain values,
exhaustively for a few coroutines (explore.py); and at random, for the real library to follow (conform.py). Each
function down to "The calls" does what the function of the same name in src/coroutine, src/stack/copy.c or
src/scheduler/task.c does to the state.

What a switch does to one context, and copying to one range of bytes, is proved elsewhere (../README.md). Here a context
is a token: what a departing side's stack pointer, program counter, frame pointer and base pointer were. So are the
bytes from a stack pointer up to the stack's top ("frames"), and an environment (control words).

Two halves of the state are kept apart. What the library stores: a block's words, a stack's owner, a thread's record,
locals in a frame of the library. What is true ("ghost"): who has resumed whom, where and with what each has left. Only
the calls' specifications change the second, and no decision of the library's reads it. `require` states a theorem at
the place where it must hold."""

CO, TH, ST, CTX, FR, ENV, STATUS, LIFE, DOING, BOOL, INT = "Co Th St Ctx Fr Env Status Life Doing Bool Int".split()

STATUSES = ("SUSPENDED", "READY", "SAVED", "ENDED", "TASK", "DESTROYED", "RESUMING", "RESUMING_SAVED", "NONE")
LIVES = ("UNBORN", "NEW", "STARTED", "DONE", "DELETED")  # ghost: what has become of a coroutine
DOINGS = ("IDLE", "RUNS", "WAITS")                         # ghost: waits for one that it has resumed
CONSTANTS = {"nil": CO, "trap": CO, "nobody": TH, "TRAMPOLINE": CTX, "TRAPPED": CTX, "BEGIN": CTX, "garbage": FR,
             "FIRST": ENV}

FIELDS = {  # name: (of what, what)
    # the control block
    "status": (CO, STATUS), "ctx": (CO, CTX), "fp": (CO, ENV), "area": (CO, FR), "stack": (CO, ST),
    "own_fp": (CO, BOOL), "instrumented": (CO, BOOL),
    # the stack; the thread of a task's
    "owner": (ST, CO), "private": (ST, BOOL), "content": (ST, FR), "thread": (ST, TH), "left": (CO, BOOL),
    # the thread's record, and the processor's control words
    "running": (TH, CO), "resuming": (TH, CO), "resumer": (TH, CTX), "resumer_fp": (TH, ENV), "root": (TH, CTX),
    "root_fp": (TH, ENV), "turn": (TH, CO), "cpu": (TH, ENV),
    # locals of resume() in the frames of one that waits, and of clean_up() in those of one that cleans up
    "outer": (CO, CO), "kept": (CO, CO),
    # ghost, of a coroutine; `by`: who resumed it, nil: the thread's root context; `awaits`: the inverse
    "life": (CO, LIFE), "doing": (CO, DOING), "on": (CO, TH), "by": (CO, CO), "awaits": (CO, CO), "depth": (CO, INT),
    "cleaning": (CO, BOOL), "left_at": (CO, CTX), "left_with": (CO, FR), "left_env": (CO, ENV),
    # ghost, of a thread's root context
    "root_awaits": (TH, CO), "root_left_at": (TH, CTX), "root_left_env": (TH, ENV),
}

OK, FAILED, NO_MEMORY = "ok", "failed", "no memory"


class Dies(Exception):
    """The process aborts with a message."""


class Machine:
    """`world` gives the fields and constants, fresh(sort), choose(), pick(fact, a, b), require(theorem, fact),
    assume(fact) and nobody_started(s)."""

    def __init__(self, world):
        self.w = world
        for name in FIELDS:
            setattr(self, name, world.fields[name])
        for name in STATUSES + LIVES + DOINGS + tuple(CONSTANTS):
            setattr(self, name, world.constants[name])
        self.here = None  # the stack that the library's code runs on; None: the scratch stack, or the thread's own

    # ---- src/base/context.h ----

    def save_resumer(self, t):
        pick, co = self.w.pick, self.resuming[t]
        self.root[t] = pick(co == self.nil, self.resumer[t], self.root[t])
        self.root_fp[t] = pick(co == self.nil, self.resumer_fp[t], self.root_fp[t])
        self.ctx[co] = pick((co == self.nil) | (self.status[co] == self.RESUMING_SAVED), self.ctx[co], self.resumer[t])
        self.fp[co] = self.resumer_fp[t]  # and nil's is never read

    def restore_resumer(self, t, co):
        pick = self.w.pick
        self.resuming[t] = co
        self.resumer[t] = pick(co == self.nil, self.root[t],
                               pick(self.status[co] == self.RESUMING_SAVED, self.TRAMPOLINE, self.ctx[co]))
        self.resumer_fp[t] = pick(co == self.nil, self.root_fp[t], self.fp[co])

    # ---- src/stack/copy.c ----

    def bytes_at(self, co, context):
        """The frames from this context's stack pointer up: those of `co` if the context is its own."""
        return context == self.left_at[co]

    def one_less(self, s):
        if self.w.nobody_started(s):
            self.thread[s] = self.nobody

    def free_remote(self, s):
        owner = self.owner[s]
        if owner != self.nil and self.left[owner]:
            self.owner[s] = self.nil
        self.left.clear_on(s)

    def save(self, t, s):
        co = self.owner[s]
        waits = self.status[co] == self.RESUMING
        self.w.require("scratch: no stack is copied by code that runs on it", self.here != s)
        if waits and self.resuming[t] == co:
            self.save_resumer(t)
        if self.w.choose():
            return False
        self.area[co] = self.w.pick(self.bytes_at(co, self.ctx[co]), self.content[s], self.garbage)
        self.status[co] = self.RESUMING_SAVED if waits else self.SAVED
        if waits and self.resuming[t] == co:
            self.restore_resumer(t, co)
        return True

    def stack_restore(self, t, co):
        """aco__stack_restore(): its common case, and take()."""
        s = self.stack[co]
        waits, starts = self.status[co] == self.RESUMING_SAVED, self.status[co] == self.READY
        if self.thread[s] != t:
            if self.thread[s] != self.nobody:
                return FAILED
            self.thread[s] = t
        self.free_remote(s)
        if self.owner[s] != self.nil and not self.save(t, s):
            return NO_MEMORY
        self.w.require("scratch: no stack is copied by code that runs on it", self.here != s)
        self.owner[s] = co
        if not starts:
            self.content[s] = self.w.pick(self.bytes_at(co, self.ctx[co]), self.area[co], self.garbage)
        self.status[co] = self.RESUMING if waits else self.SUSPENDED
        return OK

    # ---- The switches: include/aco/arch ----

    def depart(self, t, a):
        """The leaving side has run until now: its stack and the environment hold unknown values."""
        context, frames = self.w.fresh(CTX), self.w.fresh(FR)
        self.cpu[t] = self.w.fresh(ENV)
        if a == self.nil:
            self.root_left_at[t] = context
            self.root_left_env[t] = self.cpu[t]
        else:
            self.content[self.stack[a]] = frames
            self.left_at[a], self.left_with[a], self.left_env[a] = context, frames, self.cpu[t]
        return context

    def leave_by_resume(self, t, co, swaps_fp):
        """Stores the resumer; with `swaps_fp` the control words of a coroutine that has its own."""
        self.resumer[t] = self.depart(t, self.actor)
        if swaps_fp:
            self.resumer_fp[t] = self.w.pick(self.own_fp[co], self.cpu[t], self.resumer_fp[t])
            self.cpu[t] = self.w.pick(self.own_fp[co], self.fp[co], self.cpu[t])

    def arrive(self, t, co):
        """Theorems: the coroutine that is named as running goes on where it left off, with its frames and
        environment."""
        self.running[t] = co
        self.here = None
        self.w.require("accepts: nobody but an idle coroutine is entered", self.doing[co] == self.IDLE)
        self.w.require("accepts: nobody is entered who has ended or is destroyed",
                       (self.life[co] == self.NEW) | (self.life[co] == self.STARTED))
        new = self.life[co] == self.NEW
        self.w.require("begins: a new coroutine begins at its beginning",
                       (self.life[co] != self.NEW) | (self.ctx[co] == self.BEGIN))
        self.w.require("where: a coroutine goes on where it left off", new | (self.ctx[co] == self.left_at[co]))
        self.w.require("frames: with the bytes that it left",
                       new | (self.content[self.stack[co]] == self.left_with[co]))
        self.w.require("environment: its own is as it left it",
                       new | (self.own_fp[co] == False) | (self.cpu[t] == self.left_env[co]))  # noqa: E712
        self.w.require("frames: its stack is its own while it runs", self.owner[self.stack[co]] == co)

    def leave_for_resumer(self, t, co, by, keeps):
        """By yield, with `keeps`, or by exit: to the side that the record names. Theorems: that is `by`, the true
        resumer of `co`."""
        if keeps:
            self.fp[co] = self.w.pick(self.own_fp[co], self.cpu[t], self.fp[co])
        self.cpu[t] = self.w.pick(self.own_fp[co], self.resumer_fp[t], self.cpu[t])
        self.running[t] = self.nil
        self.here = None
        to = self.resumer[t]
        if to == self.TRAPPED:
            self.w.require("chain: only who cleans up falls into the trap", self.cleaning[co])
            raise Dies
        if to == self.TRAMPOLINE:
            to = self.restore_trampoline(t)
        self.w.require("environment: the resumer's is as it left it",
                       (self.own_fp[co] == False)
                       | (self.cpu[t] == self.w.pick(by == self.nil, self.root_left_env[t],
                                                     self.left_env[by])))  # noqa: E712
        if by == self.nil:
            self.w.require("chain: control comes back to the resumer", to == self.root_left_at[t])
        else:
            self.w.require("chain: control comes back to the resumer", to == self.left_at[by])
            self.w.require("frames: with the bytes that it left", self.content[self.stack[by]] == self.left_with[by])
            self.w.require("frames: its stack is its own while it runs", self.owner[self.stack[by]] == by)
            self.end_waiting(t, by, self.outer[by])

    def restore_trampoline(self, t):
        resumer = self.resuming[t]
        if self.stack_restore(t, resumer) != OK:
            raise Dies
        self.restore_resumer(t, resumer)
        return self.resumer[t]

    # ---- src/coroutine/resume.c, yield_to.c, on_scratch.c and query.c ----

    def begin_waiting(self, t, waiting):
        outer = self.resuming[t]
        self.save_resumer(t)
        self.resuming[t] = waiting
        if not self.is_task(waiting):
            self.status[waiting] = self.RESUMING
        self.outer[waiting] = outer

    def end_waiting(self, t, waiting, outer):
        if not self.is_task(waiting):
            self.status[waiting] = self.SUSPENDED
        self.restore_resumer(t, outer)
        self.running[t] = waiting

    def is_task(self, co):
        return self.status[co] == self.TASK

    def is_new(self, t, co):
        return self.status[co] == self.READY or (
            self.status[co] == self.SUSPENDED and self.ctx[co] == self.BEGIN and co != self.running[t])

    def check(self, t, co):
        if self.status[co] in (self.ENDED, self.DESTROYED, self.TASK, self.RESUMING, self.RESUMING_SAVED):
            return FAILED
        if co == self.running[t]:
            return FAILED
        s = self.stack[co]
        if not self.private[s] and self.thread[s] != t and self.thread[s] != self.nobody:
            return FAILED
        return OK

    def change_environment(self, t, source, to):
        pick, cpu = self.w.pick, self.cpu[t]
        own_source, own_to = (source != self.nil) & self.own_fp[source], self.own_fp[to]
        self.fp[source] = pick(own_source, cpu, self.fp[source])
        self.resumer_fp[t] = pick(own_source, self.resumer_fp[t], pick(own_to, cpu, self.resumer_fp[t]))
        self.cpu[t] = pick(own_to, self.fp[to], pick(own_source, self.resumer_fp[t], cpu))

    def resume(self, t, co, interrupt_flag):
        """resume_general(), and resume_chained(), which is its common case."""
        waiting = self.running[t]
        on_this_stack = waiting != self.nil and self.stack[waiting] == self.stack[co]
        scratch = interrupt_flag or on_this_stack
        if waiting != self.nil:
            self.begin_waiting(t, waiting)
        if not on_this_stack and self.status[co] != self.SUSPENDED:
            restored = self.stack_restore(t, co)
            if restored != OK:
                if waiting != self.nil:
                    self.end_waiting(t, waiting, self.outer[waiting])
                return restored
        self.leave_by_resume(t, co, not scratch)
        if scratch:
            self.here = None
            if self.status[co] != self.SUSPENDED:
                restored = self.stack_restore(t, co)
                if restored != OK:  # aco__switch_exit(): back to the one that wanted it
                    self.w.require("chain: a resume that fails comes back", self.resumer[t] ==
                                   (self.root_left_at[t] if waiting == self.nil else self.left_at[waiting]))
                    self.running[t] = self.nil
                    if waiting != self.nil:
                        self.end_waiting(t, waiting, self.outer[waiting])
                    return restored
            self.change_environment(t, self.nil, co)
        self.arrive(t, co)
        return OK

    def send(self, t, co):
        """aco_send() and aco_resume() with their slow path."""
        if self.status[co] == self.SUSPENDED and not self.instrumented[co] and self.running[t] == self.nil:
            self.leave_by_resume(t, co, True)
            self.arrive(t, co)
            return OK
        if self.running[t] != self.nil and self.status[co] == self.SUSPENDED and not self.instrumented[co] and \
                co != self.running[t]:
            return self.resume(t, co, False)
        if self.check(t, co) != OK:
            return FAILED
        return self.resume(t, co, False)

    def yield_to(self, t, co):
        """aco_yield_to() with its slow path."""
        source = self.running[t]
        if source == self.nil:
            return FAILED
        fast = (self.status[co] == self.SUSPENDED and self.status[source] == self.SUSPENDED
                and not self.instrumented[co] and not self.instrumented[source]
                and self.own_fp[co] == self.own_fp[source])
        if not fast:
            if self.resuming[t] == self.trap:
                return FAILED
            if co == source:
                return OK
            if self.is_task(source) or self.check(t, co) != OK:
                return FAILED
        on_this_stack = not fast and self.stack[source] == self.stack[co]
        if not fast and not on_this_stack and self.status[co] != self.SUSPENDED:
            restored = self.stack_restore(t, co)
            if restored != OK:
                return restored
        if co == source:  # it leaves, and finds itself
            self.ctx[source] = self.depart(t, source)
            self.change_environment(t, source, co)
            return OK
        if on_this_stack:
            self.ctx[source] = self.depart(t, source)
            self.flow_if_shared(t, source, self.by[source])
            self.here = None
            if self.status[co] != self.SUSPENDED:
                restored = self.stack_restore(t, co)
                if restored != OK:  # on_scratch() enters the one that left
                    self.transfer_failed(t, source)
                    return restored
            self.change_environment(t, source, co)
        else:
            self.ctx[source] = self.depart(t, source)
            self.flow_if_shared(t, source, self.by[source])
            self.change_environment(t, source, co)
        self.arrive(t, co)
        return OK

    def transfer_failed(self, t, source):
        self.w.require("where: a coroutine goes on where it left off", self.ctx[source] == self.left_at[source])
        self.w.require("frames: with the bytes that it left",
                       self.content[self.stack[source]] == self.left_with[source])
        self.running[t] = source

    # ---- The calls, each with its specification: what it is to change of what is true ----

    def now(self, t):
        """The call is made by `actor`, which runs on thread t: a coroutine, or nil for the thread's root context."""
        self.actor = self.running[t]
        self.here = None
        if self.actor != self.nil:
            self.here = self.stack[self.actor]

    def used_rightly(self, t, co, to_run=True):
        """What the header forbids and the library does not notice: the coroutine runs on another thread; or it is about
        to run, and is on a share stack of another thread with its frames in place."""
        self.w.assume(co != self.nil and co != self.trap and self.status[co] != self.NONE)
        self.w.assume(self.doing[co] != self.RUNS or self.on[co] == t)
        s = self.stack[co]
        self.w.assume(not to_run or self.status[co] != self.SUSPENDED or self.private[s] or self.thread[s] == t)

    def may_run(self, t, co):
        """The specification of what a resume accepts."""
        return self.life[co] in (self.NEW, self.STARTED) and self.doing[co] == self.IDLE and not self.is_task(co)

    def runs_for(self, t, co, resumer):
        """Specification: `resumer` has resumed `co`."""
        self.doing[co], self.life[co], self.on[co], self.by[co] = self.RUNS, self.STARTED, t, resumer
        if resumer == self.nil:
            self.root_awaits[t] = co
            self.depth[co] = 1
        else:
            self.doing[resumer] = self.WAITS
            self.awaits[resumer] = co
            self.depth[co] = self.depth[resumer] + 1

    def comes_back(self, t, co):
        """Specification: `co` has left for its resumer."""
        by = self.by[co]
        self.doing[co] = self.IDLE
        if by != self.nil:
            self.doing[by] = self.RUNS

    def call_resume(self, t, co, interrupt_flag=False):
        self.used_rightly(t, co)
        self.now(t)
        may = self.may_run(t, co)
        other = not self.private[self.stack[co]] and self.thread[self.stack[co]] not in (t, self.nobody)
        resumer = self.actor
        if interrupt_flag:
            result = self.check(t, co)
            if result == OK:
                result = self.resume(t, co, True)
        else:
            result = self.send(t, co)
        if result == OK:
            self.w.require("accepts: what is accepted may run", may)
            self.runs_for(t, co, resumer)
        elif result == FAILED:
            self.w.require("fails: what fails may not run, or not here", not may or other)
        return result

    def call_yield(self, t):
        self.now(t)
        co = self.actor
        if co == self.nil:
            return FAILED
        by = self.by[co]
        self.ctx[co] = self.depart(t, co)
        self.flow_if_shared(t, co, by)
        self.leave_for_resumer(t, co, by, True)
        self.comes_back(t, co)
        return OK

    def flow_if_shared(self, t, co, by):
        """If a coroutine shares its resumer's environment, the resumer finds what the coroutine changed."""
        self.root_left_env[t] = self.w.pick((by == self.nil) & (self.own_fp[co] == False), self.cpu[t],
                                            self.root_left_env[t])  # noqa: E712
        self.left_env[by] = self.w.pick(self.own_fp[co], self.left_env[by], self.cpu[t])

    def call_yield_to(self, t, co):
        self.used_rightly(t, co)
        self.now(t)
        source = self.actor
        may = source != self.nil and (source == co or (self.may_run(t, co) and not self.is_task(source)))
        may = may and not self.cleaning[source]
        other = not self.private[self.stack[co]] and self.thread[self.stack[co]] not in (t, self.nobody)
        result = self.yield_to(t, co)
        if result == OK and co != source:
            self.w.require("accepts: what is accepted may run", may)
            by = self.by[source]
            self.doing[source] = self.IDLE
            self.runs_for(t, co, by)
        elif result == FAILED:
            self.w.require("fails: what fails may not run, or not here", not may or other)
        return result

    def end(self, t, next_task=None):
        """aco__end(), after the cleanup: by aco_exit(), return or cancellation. A task that ends may switch to the next
        one."""
        self.now(t)
        co, s = self.actor, self.stack[self.actor]
        self.w.assume(self.actor != self.nil)
        by = self.by[co]
        if self.cleaning[co]:  # lift_trap()
            self.restore_resumer(t, self.kept[co])
            self.instrumented[co] = False
        self.depart(t, co)
        self.flow_if_shared(t, co, by)
        task = self.is_task(co)
        self.status[co] = self.ENDED
        self.life[co], self.cleaning[co] = self.DONE, False
        if not self.private[s]:
            self.owner[s] = self.nil
            self.one_less(s)
        if next_task is not None and task:
            self.w.assume(self.in_ring(t, next_task) and not self.own_fp[co] and not self.own_fp[next_task])
            self.doing[co] = self.IDLE
            self.turn[t] = next_task
            self.arrive(t, next_task)
            self.runs_for(t, next_task, by)
        else:
            self.leave_for_resumer(t, co, by, False)
            self.comes_back(t, co)
        return OK

    def call_end(self, t):
        return self.end(t)

    def call_end_task(self, t, next_task):
        self.now(t)
        self.w.assume(self.actor != self.nil and self.is_task(self.actor) and next_task != self.actor)
        return self.end(t, next_task)

    def call_clean_up(self, t):
        """set_trap(): the running coroutine begins its cleanup: it returns, calls aco_exit(), or was cancelled."""
        self.now(t)
        co = self.actor
        self.w.assume(co != self.nil and not self.cleaning[co])
        self.kept[co] = self.resuming[t]
        self.save_resumer(t)
        self.restore_resumer(t, self.trap)
        self.instrumented[co] = True
        self.cleaning[co] = True
        return OK

    def call_cancel(self, t, co):
        self.used_rightly(t, co)
        if self.status[co] == self.ENDED:
            return OK
        if self.check(t, co) != OK:
            return self.call_resume(t, co, True)
        if self.is_new(t, co):
            self.w.require("new: what is ended unstarted was never started", self.life[co] == self.NEW)
            self.status[co], self.life[co] = self.ENDED, self.DONE
            return OK
        self.w.require("new: what is unwound has frames", self.life[co] == self.STARTED)
        result = self.call_resume(t, co, True)
        if result == OK:
            self.call_clean_up(t)
        return result

    def call_restart(self, t, co):
        """aco_restart() and aco_reset()."""
        self.used_rightly(t, co, to_run=False)
        if self.status[co] != self.ENDED and (self.status[co] in (self.TASK, self.DESTROYED) or not self.is_new(t, co)):
            return FAILED
        self.w.require("new: what is made as new has no frames", self.life[co] in (self.NEW, self.DONE))
        self.begin(co)
        return OK

    def begin(self, co):
        """aco__prepare()."""
        self.ctx[co], self.fp[co], self.life[co] = self.BEGIN, self.FIRST, self.NEW
        self.status[co] = self.SUSPENDED if self.private[self.stack[co]] else self.READY

    def call_new(self, t, co, s):
        """aco_new(), aco_create(): on an unused private stack, or a share stack."""
        self.w.assume(self.status[co] == self.NONE and co != self.nil and co != self.trap)
        self.w.assume(not self.private[s] or self.owner[s] == self.nil)
        self.stack[co] = s
        if self.private[s]:
            self.owner[s] = co
        self.begin(co)
        return OK

    def call_destroy(self, t, co):
        self.used_rightly(t, co, to_run=False)
        if co == self.running[t] or self.is_task(co) or \
                self.status[co] in (self.DESTROYED, self.RESUMING, self.RESUMING_SAVED):
            return FAILED
        self.w.require("destroys: nobody who runs or waits", self.doing[co] == self.IDLE)
        status, s = self.status[co], self.stack[co]
        self.status[co], self.life[co] = self.DESTROYED, self.DELETED
        if self.private[s]:
            self.owner[s] = self.nil
        elif status in (self.SUSPENDED, self.SAVED):
            if self.thread[s] == t:
                if self.owner[s] == co:
                    self.owner[s] = self.nil
                self.one_less(s)
            else:
                self.left[co] = True
        return OK

    # ---- Tasks ----

    def in_ring(self, t, co):
        """The thread's runnable tasks. Their order in the ring is not modelled."""
        return self.status[co] == self.TASK and self.thread[self.stack[co]] == t

    def call_spawn(self, t, co, s):
        self.w.assume(self.private[s])
        self.call_new(t, co, s)
        self.status[co], self.thread[s] = self.TASK, t
        return OK

    def call_run(self, t, co):
        """aco_run(), which has chosen this task."""
        self.now(t)
        self.w.assume(self.in_ring(t, co))
        if self.actor != self.nil:
            return FAILED
        self.turn[t] = co
        self.leave_by_resume(t, co, True)
        self.arrive(t, co)
        self.runs_for(t, co, self.nil)
        return OK

    def call_task_yield(self, t, co):
        """aco_task_yield() and blocking calls: to the next task."""
        self.now(t)
        source = self.actor
        self.w.assume(self.in_ring(t, co))
        if source == self.nil or source != self.turn[t] or self.resuming[t] != self.nil:
            return FAILED
        if co == source:
            return OK
        self.turn[t] = co
        if self.own_fp[source] or self.own_fp[co]:  # aco__task_leave(); aco_run() goes on
            return self.call_yield(t)
        self.ctx[source] = self.depart(t, source)
        self.flow_if_shared(t, source, self.by[source])
        self.arrive(t, co)
        self.doing[source] = self.IDLE
        self.runs_for(t, co, self.by[source])
        return OK


CALLS = {  # name: sorts of the arguments after the thread
    "resume": (CO,), "yield": (), "yield_to": (CO,), "end": (), "clean_up": (), "cancel": (CO,), "restart": (CO,),
    "new": (CO, ST),
    "destroy": (CO,), "spawn": (CO, ST), "run": (CO,), "task_yield": (CO,), "end_task": (CO,),
}
