"""Faults, each a change of some text, and what must notice it. explore.py must find a shortest example of each fault in
the machine. The proof about copying, or a walk that follow.c cannot follow, must find each fault in the library."""

# (what is wrong, the text, the text instead, the only small world that shows it, where it takes long elsewhere)
MACHINE = [
    ("an evicted resumer has no trampoline",
     "pick(self.status[co] == self.RESUMING_SAVED, self.TRAMPOLINE, self.ctx[co])", "self.ctx[co]"),
    ("the trampoline restores nothing", "if self.stack_restore(t, resumer) != OK:", "if False:"),
    ("a resumer is evicted with the context that its block had", """        if waits and self.resuming[t] == co:
            self.save_resumer(t)
        if self.w.choose():""", "        if self.w.choose():"),
    ("restored before saved", "        if self.owner[s] != self.nil and not self.save(t, s):\n",
     "        self.content[s] = self.area[co]\n        if self.owner[s] != self.nil and not self.save(t, s):\n"),
    ("saved by code on the same stack", "on_this_stack = waiting != self.nil and self.stack[waiting] == self.stack[co]",
     "on_this_stack = False"),
    ("an owner is overwritten", "if self.owner[s] != self.nil and not self.save(t, s):", "if False:"),
    ("nobody owns what was restored", "        self.owner[s] = co\n        if not starts:", "        if not starts:"),
    ("a resume is accepted while the coroutine resumes another",
     "self.DESTROYED, self.TASK, self.RESUMING, self.RESUMING_SAVED):\n            return FAILED\n        if co",
     "self.DESTROYED, self.TASK):\n            return FAILED\n        if co"),
    ("a resume is accepted of the running coroutine",
     "        if co == self.running[t]:\n            return FAILED\n        s =", "        s ="),
    ("the fast path does not ask whether one runs", "not self.instrumented[co] and self.running[t] == self.nil:",
     "not self.instrumented[co]:"),
    ("a resume is accepted of one that has ended",
     "if self.status[co] in (self.ENDED, self.DESTROYED, self.TASK, self.RESUMING",
     "if self.status[co] in (self.DESTROYED, self.TASK, self.RESUMING"),
    ("a resume is accepted of a task", "if self.status[co] in (self.ENDED, self.DESTROYED, self.TASK, self.RESUMING",
     "if self.status[co] in (self.ENDED, self.DESTROYED, self.RESUMING"),
    ("the outer resumer is not saved", "        outer = self.resuming[t]\n        self.save_resumer(t)\n",
     "        outer = self.resuming[t]\n"),
    ("the outer resumer is not restored", "        self.restore_resumer(t, outer)\n        self.running[t] = waiting",
     "        self.running[t] = waiting"),
    ("a transfer makes the one that leaves the resumer",
     "        if on_this_stack:\n            self.ctx[source] = self.depart(t, source)",
     "        self.resuming[t] = source\n"
     "        if on_this_stack:\n            self.ctx[source] = self.depart(t, source)"),
    ("a transfer leaves from a cleanup",
     "            if self.resuming[t] == self.trap:\n                return FAILED\n", ""),
    ("the trap is set over the resumer", "        self.kept[co] = self.resuming[t]\n        self.save_resumer(t)\n",
     "        self.kept[co] = self.resuming[t]\n"),
    ("the resumer's environment is not restored",
     "        self.resumer_fp[t] = pick(co == self.nil, self.root_fp[t], self.fp[co])\n", ""),
    ("a stack is given up while coroutines are started there",
     "        if self.w.nobody_started(s):\n            self.thread[s]",
     "        if True:\n            self.thread[s]"),
    ("one that runs for the first time counts as new", " and co != self.running[t])", ")"),
    ("one that waits is destroyed",
     "self.status[co] in (self.DESTROYED, self.RESUMING, self.RESUMING_SAVED):\n            return FAILED\n"
     "        self.w.require(\"destroys",
     "self.status[co] == self.DESTROYED:\n            return FAILED\n        self.w.require(\"destroys"),
    ("what another thread destroyed stays the owner", "        self.free_remote(s)\n", "        pass\n", "two threads"),
    ("a coroutine of aco_yield() may hand a task's turn on",
     "source == self.nil or source != self.turn[t] or self.resuming[t] != self.nil:", "source == self.nil:"),
]

COPYING = [  # of src/stack/copy.c, for copying.py
    ("off by 8 at the stack pointer", "- (uintptr_t)owner->aco__self.sp);", "- (uintptr_t)owner->aco__self.sp - 8);"),
    ("a turn takes 64 bytes and goes on after 48", "f += 4 * CHUNK, t += 4 * CHUNK", "f += 3 * CHUNK, t += 4 * CHUNK"),
    ("the last 8 bytes are written over the ones before", "__builtin_memcpy(t, f, 8), t += 8, f += 8;",
     "__builtin_memcpy(t, f, 8);"),
    ("32 bytes are asked for by the wrong bit", "if (sz & 2 * CHUNK) {", "if (sz & CHUNK) {"),
    ("the last 4 bytes are forgotten", "    if (sz & 4)\n        __builtin_memcpy(t, f, 4);\n", ""),
    ("odd sizes are taken for short", "(sz & ~(size_t)SHORT_COPY) == 0", "sz <= SHORT_COPY"),
    ("what is short is more than a stack has", "SHORT_COPY = 2044", "SHORT_COPY = 8188"),
]

LIBRARY = [  # (what is wrong, file in src/, the text, the text instead): for the walks
    ("an evicted resumer has no trampoline", "base/context.h", "from = &self->scratch->restore_trampoline;", ";"),
    ("the trampoline restores nothing", "coroutine/on_scratch.c",
     '    aco__stack_restore(resumer, 1, "aco_yield");\n', ""),
    ("saved from 8 bytes above the stack pointer", "stack/copy.c",
     "copy_short(owner->save_stack.ptr, owner->aco__self.sp, out);",
     "copy_short(owner->save_stack.ptr, (char *)owner->aco__self.sp + 8, out);"),
    ("restored before saved", "stack/copy.c", "    if (stack->owner && save(stack, stack->owner) != 0) {",
     "    copy(co->aco__self.sp, co->save_stack.ptr, co->save_stack.valid_sz);\n"
     "    if (stack->owner && save(stack, stack->owner) != 0) {"),
    ("a resume is accepted while the coroutine resumes another", "coroutine/query.c",
     '        return aco__fail(fatal, EBUSY, call, co, "is resuming another coroutine, or waits in a task");',
     "        break;"),
    ("the outer resumer is not saved", "coroutine/resume.c",
     "    aco__save_resumer(self);\n    self->resuming = waiting;", "    self->resuming = waiting;"),
    ("one that runs for the first time counts as new", "coroutine/query.c", " && co != aco__running());", ");"),
    ("a stack is given up while coroutines are started there", "stack/copy.c", "if (--stack->aco__use.started == 0)",
     "if (--stack->aco__use.started != 1000)"),
    ("the resumer's environment is not restored", "base/context.h",
     "    self->fp_control2 = co ? co->aco__fp_control2 : self->root_fp_control2;\n", ""),
]
