"""The coroutines of a process or a core file, for gdb/acorn.py and lldb/acorn.py. They are read from memory. The
library describes its layout in the constant aco__debug (src/coroutine/debugger.c), so neither debug information nor a
symbol table is needed."""

import bisect
import struct

VERSION = 2
FIELDS = """heap_next heap_thread heap_slabs slab_next slab_fresh slab_size slab_first state is_end share_stack arg fp
save_ptr save_sz save_valid_sz block_size stack_ptr stack_owner stack_top stack_size extra_name name_size running
resuming outermost task_entry wait_object wait_location wait_kind""".split()
# The state byte: include/aco/detail/coroutine.h.
PHASE, READY, SAVED, ENDED, MAIN, GONE, RESUMING, RESUMING_SAVED = 7, 1, 2, 3, 4, 5, 6, 7
EXTRA, PRIVATE, FROM_NEW = 0x10, 0x20, 0x40
LARGEST_PAGE = 65536
# The library's own functions, which backtraces begin with and do not show; "aco." begins names of hidden ones.
INTERNAL = ("aco_", "aco.", "aco::")
INTERNAL_STATIC = ("leave_chain", "leave_inner", "resume_apart", "resume_chained", "resume_common_chain",
                   "resume_general", "resume_rest")
# What a task waits for: src/scheduler/wait.h, in that order.
WAITS = ("to be unparked", "to join {}", "for time to pass", "for mutex {}", "for condition {}", "for semaphore {}",
         "for wait group {}", "to send to channel {}", "to receive from channel {}", "for several channels",
         "for a place in group {}", "for the members of group {}", "for mutex {}", "to read under lock {}",
         "to write under lock {}", "for once {}", "at barrier {}", "for event {}", "for readable fd {}",
         "for writable fd {}", "for another thread or the system to answer", "for {}")
WAIT_SHARED = len(WAITS) - 1 # its object is a text


def is_internal(name):
    return name.startswith(INTERNAL) or name.split(".")[0] in INTERNAL_STATIC


class Memory:
    """read(address, size) -> bytes, which may raise; a word is `word` bytes; `debug`: the address of aco__debug."""

    def __init__(self, read, word, debug, little=True):
        self.read, self.word, self.order = read, word, "<" if little else ">"
        self.lacks = []
        version, size = struct.unpack(self.order + "2I", read(debug, 8))
        if version != VERSION:
            raise ValueError(f"this library's aco__debug has version {version}; this script knows {VERSION}")
        at = debug + 8
        self.heaps, self.begin, self.returned = (self.word_at(at + i * word) for i in range(3))
        for i, field in enumerate(FIELDS):
            setattr(self, field, self.number_at(at + 3 * word + 2 * i, 2))

    def number_at(self, address, size):
        return int.from_bytes(self.read(address, size), "little" if self.order == "<" else "big")

    def word_at(self, address):
        return self.number_at(address, self.word)

    def context_at(self, address):
        """sp, pc, bp, base"""
        return tuple(self.word_at(address + i * self.word) for i in range(4))

    def string_at(self, address, size):
        """Up to the 0, which may be at the end of the memory that can be read."""
        text = b""
        while len(text) < size and b"\0" not in text:
            text += self.read(address + len(text), 8 - (address + len(text)) % 8)
        return text.split(b"\0")[0].decode("utf-8", "replace")

    def chain(self, address, next_offset):
        while address:
            yield address
            address = self.word_at(address + next_offset)

    def coroutines(self):
        """All that were made and not destroyed, numbered from 1."""
        number = 0
        threads = [self.word_at(heap + self.heap_thread)
                   for heap in self.chain(self.word_at(self.heaps), self.heap_next)]
        if 0 in threads: # no heap has none
            self.lacks.append("control blocks")
            threads = [thread for thread in threads if thread]
        running = {self.word_at(t + self.running): t for t in threads}
        resuming = {self.word_at(t + self.resuming): t for t in threads}
        for heap in self.chain(self.word_at(self.heaps), self.heap_next):
            for slab in self.chain(self.word_at(heap + self.heap_slabs), self.slab_next):
                fresh, size = (self.number_at(slab + at, 4) for at in (self.slab_fresh, self.slab_size))
                if size == 0:
                    self.lacks.append(f"control blocks from {slab:#x} on")
                    break
                for block in range(slab + self.slab_first, slab + fresh, size):
                    state = self.number_at(block + self.state, 1)
                    if state & PHASE == GONE or state & (PHASE | PRIVATE) == MAIN:
                        continue
                    number += 1
                    yield Coroutine(self, number, block, state, running.get(block), resuming.get(block))

    def complaint(self):
        """What is not there, or "". For after coroutines(), which skips it."""
        if not self.lacks:
            return ""
        return (f"this core file lacks {', '.join(self.lacks[:3])}{' and more' if len(self.lacks) > 3 else ''}: gcore "
                "writes zeros behind guard pages; the kernel's own core files (ulimit -c, a fatal signal) are whole")

    def coroutines_of(self, stack_pointers):
        """The same, with what the threads' stack pointers show, by thread number: a thread that has made no coroutine
        is in no list, but may run one."""
        found = list(self.coroutines())
        exchange_contexts(found)
        for co in found:
            co.on_thread = None
            if co.private or co.state == "running":
                co.on_thread = next((n for n, sp in stack_pointers.items() if co.is_on_stack(sp)), None)
            if co.on_thread and co.private and co.state != "resuming":
                co.state = "running"
        elsewhere = {n: sp for n, sp in stack_pointers.items() if not any(co.on_thread == n for co in found)}
        for co in found:
            if co.state == "running" and not co.on_thread:
                co.on_thread = next((n for n, sp in elsewhere.items() if co.is_in_guard(sp)), None)
        return found


def exchange_contexts(found):
    """While a coroutine that a task resumed waits, their blocks have exchanged contexts: src/scheduler/inner.c"""
    away = [co for co in found if co.is_task and co.has_frames() and not co.is_on_stack(co.sp)]
    waiting = sorted((co for co in found if co.state == "resuming"), key=lambda co: co.lo) if away else []
    bottoms = [co.lo for co in waiting]
    for task in away:
        inner = waiting[bisect.bisect(bottoms, task.sp) - 1] if waiting else None
        if inner and inner.is_on_stack(task.sp):
            task.state, inner.state = "resuming", "suspended"
            for field in ("sp", "pc", "bp", "base"):
                ours, its = getattr(task, field), getattr(inner, field)
                setattr(task, field, its)
                setattr(inner, field, ours)


class Coroutine:
    """`thread`: the record of the thread that runs it, or None. `saved`: the address of its saved frames, or None if
    they are on its stack."""

    def __init__(self, memory, number, block, state_byte, thread, waits_on):
        m = memory
        self.memory, self.number, self.block, self.thread, self.saved = m, number, block, thread, None
        self.wait = ""  # of a waiting task
        phase = state_byte & PHASE
        # A task on a share stack has an annex, where its context is while another one uses the stack.
        annex = 0
        if state_byte & (FROM_NEW | PRIVATE) == FROM_NEW and phase in (RESUMING, RESUMING_SAVED):
            annex = m.word_at(block + m.fp + m.word)
        is_task = self.is_task = phase == MAIN or annex != 0
        self.stack = m.word_at(block + m.share_stack)
        self.lo, self.top = m.word_at(self.stack + m.stack_ptr), m.word_at(self.stack + m.stack_top)
        # The context of the running coroutine's resumer is in its thread's record.
        self.sp, self.pc, self.bp, self.base = m.context_at(waits_on if waits_on and phase != RESUMING_SAVED else block)
        if annex and not self.lo <= self.sp <= self.top:
            self.sp, self.pc, self.bp, self.base = m.context_at(annex)
        self.private = bool(state_byte & PRIVATE)
        self.lacks_stack = not self.lo # the stack's record is zeros
        if self.lacks_stack:
            m.lacks.append(f"the stack of coroutine {number}")
        self.entry = m.word_at(block + m.fp)
        self.arg = m.word_at(block + m.arg)
        if thread:
            self.state = "running"
        elif phase == ENDED:
            self.state = "done"
        elif (phase in (RESUMING, RESUMING_SAVED) and not annex) or waits_on:
            self.state = "resuming"
        elif phase == READY or self.pc == m.begin or (is_task and self.sp == self.top):
            self.state = "ready"
        else:
            self.state = "suspended"
        if phase in (SAVED, RESUMING_SAVED):
            self.saved = m.word_at(block + m.save_ptr)
        if is_task:
            link, self.entry = self.entry, m.word_at(self.stack + m.task_entry) if self.private else 0
            if link & 1 and self.state == "suspended":
                self.state = "waiting"
                self.wait = self.describe_wait(link & ~1)
        self.name = ""
        if state_byte & EXTRA:
            extra = self.stack + m.stack_size
            if not self.private:
                extra = m.word_at(m.word_at(block + m.save_ptr) + m.word_at(block + m.save_sz))
            self.name = m.string_at(extra + m.extra_name, m.name_size)

    def describe_wait(self, wait):
        """What the task waits for and where, of the aco__wait_t at this address."""
        m = self.memory
        kind, place = m.number_at(wait + m.wait_kind, 4), m.word_at(wait + m.wait_location)
        object_at = m.word_at(wait + m.wait_object)
        what = self.constant(object_at, "something shared") if kind == WAIT_SHARED else hex(object_at)
        text = WAITS[kind].format(what) if kind < len(WAITS) else "for something that this script does not know"
        # C++ has the line in the upper bits: include/aco/detail/config.h.
        line = place >> 48
        at = self.constant(place & (1 << 48) - 1, "") if place else ""
        at += f":{line}" if at and line else ""
        return f"waits{at and ' at '}{at} {text}"

    def constant(self, address, otherwise):
        """A text of the program's constants, which a core file need not have; each debugger has its own exception."""
        try:
            return self.memory.string_at(address, 200)
        except Exception:
            return otherwise

    def has_frames(self):
        return self.state in ("suspended", "waiting", "resuming") and not self.lacks_stack

    def is_on_stack(self, address):
        return self.lo <= address <= self.top

    def is_in_guard(self, address):
        """Whether the address is in the guard page: the stack has overflowed."""
        return self.lo - LARGEST_PAGE <= address < self.lo

    def to_memory(self, address):
        """The present address of the bytes that stood at this address of its stack."""
        if self.saved is not None and self.sp <= address <= self.top:
            return address - self.sp + self.saved
        return address

    def end(self):
        """The address where its frames end, in memory: its entry function's return address is there."""
        return self.to_memory(self.top)
