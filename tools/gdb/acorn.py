"""gdb: the coroutines of programs that use Acorn. docs/debugging.md

aco list             all coroutines, what they are doing and where
aco bt N             the frames of one: its number, its address, or its name. Without the library's own frames at its
                     innermost end; aco bt N -no-filters shows them
aco apply all bt     the same for all; or apply any other command, in the innermost frame of each
aco frame N          makes its frames gdb's, for bt, up, info locals, print ...; "aco frame" alone: the thread's again

Works on running processes, which it never writes to, and on core files."""

import itertools
import os
import sys

import gdb
import gdb.FrameDecorator
import gdb.printing
import gdb.unwinder

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import acorn_coroutines  # noqa: E402

# pc, sp, bp and the base pointer that compilers have.
REGISTERS = {
    "i386:x86-64": ("rip", "rsp", "rbp", "rbx"),
    "i386": ("eip", "esp", "ebp", "esi"),
    "aarch64": ("pc", "sp", "x29", "x19"),
}


def registers():
    name = gdb.selected_inferior().architecture().name()
    if name not in REGISTERS:
        raise gdb.GdbError(f"acorn: the registers of {name} are not known here")
    return REGISTERS[name]


def memory():
    inferior = gdb.selected_inferior()
    if not inferior.threads():
        raise gdb.GdbError("acorn: there is no process and no core file")
    if not gdb.selected_thread() or gdb.selected_thread().is_running():
        raise gdb.GdbError("acorn: the selected thread is running: interrupt")
    symbol = gdb.lookup_static_symbol("aco__debug") or gdb.lookup_global_symbol("aco__debug")
    try:
        where = int(symbol.value().address) if symbol else int(gdb.parse_and_eval("(unsigned long)&aco__debug"))
    except gdb.error:
        raise gdb.GdbError("acorn: this program has no Acorn library in it, or a stripped static one, or the library's "
                           "file is not here")
    little = "little" in gdb.execute("show endian", to_string=True)
    word = gdb.lookup_type("void").pointer().sizeof
    return acorn_coroutines.Memory(lambda at, size: bytes(inferior.read_memory(at, size)), word, where, little)


def stack_pointer():
    """The selected thread's, whichever of its frames is selected."""
    return int(gdb.newest_frame().read_register(registers()[1]))


def stack_pointers():
    """Of all threads that are stopped. What was selected is so again."""
    found = {}
    selected, frame = gdb.selected_thread(), gdb.selected_frame()
    try:
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            if not thread.is_running():
                found[thread.num] = stack_pointer()
    finally:
        selected.switch()
        if frame.is_valid():
            frame.select()
    return found


def coroutines():
    there = memory()
    return there.coroutines_of(stack_pointers())


def coroutines_while_printing():
    """Without a change of threads: gdb 13 crashes if its frames are taken away while it prints them."""
    return memory().coroutines_of({gdb.selected_thread().num: stack_pointer()})


def find(text):
    found = coroutines()
    for co in found:
        if text == str(co.number) or (text and text == co.name):
            return co
    try:
        address = int(gdb.parse_and_eval(text))
    except gdb.error:
        raise gdb.GdbError(f"acorn: no coroutine {text}")
    for co in found:
        if co.block == address:
            return co
    raise gdb.GdbError(f"acorn: no coroutine {text}")


def find_first(arguments):
    """The coroutine at the beginning of the arguments, and the rest. Its name may have spaces."""
    words = arguments.split()
    for i in range(len(words), 1, -1):
        for co in coroutines():
            if co.name and co.name.split() == words[:i]:
                return co, " ".join(words[i:])
    return find(words[0]), " ".join(words[1:])


class Borrowed:
    """The coroutine that gdb shows as the caller of a thread's innermost frame."""

    def __init__(self):
        self.co = None

    def begin(self, co):
        self.end()
        frame = gdb.newest_frame()
        self.thread = gdb.selected_thread().ptid
        self.at = frame.pc(), stack_pointer()
        self.co = co
        gdb.invalidate_cached_frames()

    def end(self, _event=None):
        if self.co:
            self.co = None
            gdb.invalidate_cached_frames()

    def applies(self):
        return self.co is not None and gdb.selected_thread() is not None and gdb.selected_thread().ptid == self.thread


borrowed = Borrowed()


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Unwinder(gdb.unwinder.Unwinder):
    """Makes a coroutine's innermost frame the caller of the thread's. From there gdb uses unwind information as always.

    Saved frames are in the save area, so the stack pointer is made to point there. Frame pointers stored in these
    frames still point to the stack. After each frame that has one, this unwinder inserts a frame that only corrects it.
    The filter below leaves out the inserted frames."""

    def __init__(self):
        super().__init__("acorn")

    def __call__(self, pending):
        if not borrowed.applies():
            return None
        co = borrowed.co
        pc_name, sp_name, bp_name, base_name = registers()
        pc_value, sp_value = pending.read_register(pc_name), pending.read_register(sp_name)
        pc, sp = int(pc_value), int(sp_value)

        def unwound(**values):
            info = pending.create_unwind_info(FrameId(sp_value, pc_value))
            for name, value in values.items():
                info.add_saved_register(name, gdb.Value(value).cast(pending.read_register(name).type))
            return info

        if (pc, sp) == borrowed.at:
            # A caller's frame must not be further in than the frame that it called, so this one is as far in as can be.
            sp_value = gdb.Value(0).cast(sp_value.type)
            return unwound(**{pc_name: co.pc, sp_name: co.to_memory(co.sp), bp_name: co.to_memory(co.bp),
                              base_name: co.to_memory(co.base)})
        if co.saved is None or not co.saved <= sp:
            return None
        if sp > co.end():
            return unwound(**{pc_name: 0, sp_name: sp})
        bp = int(pending.read_register(bp_name))
        if co.to_memory(bp) == bp:
            return None
        return unwound(**{pc_name: pc, sp_name: sp, bp_name: co.to_memory(bp)})


class Beginning(gdb.FrameDecorator.FrameDecorator):
    """A coroutine's first frame: the frames after it are its resumer's."""

    def address(self):
        return None

    def function(self):
        return "<the coroutine's beginning>"


class Filter:
    """Leaves out what is not the coroutine's, and the frame at 0 that gdb shows where there is no resumer."""

    def __init__(self):
        self.name, self.priority, self.enabled = "acorn", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        try:
            there = memory()
        except (gdb.error, gdb.GdbError, ValueError):
            return frames
        if borrowed.applies():
            frames = itertools.dropwhile(lambda d: is_internal(d.inferior_frame()), self.without_ours(frames))
        return self.named(frames, there)

    def named(self, frames, there):
        for decorated in frames:
            frame = decorated.inferior_frame()
            if frame.pc() == there.returned and frame.type() == gdb.SIGTRAMP_FRAME:
                decorated = Beginning(decorated)
            if frame.pc() != 0:
                yield decorated

    def without_ours(self, frames):
        sp_name = registers()[1]
        place, group = None, []
        for decorated in frames:
            frame = decorated.inferior_frame()
            here = frame.pc(), int(frame.read_register(sp_name))
            if here != place:
                yield from self.of_coroutine(place, group)
                place, group = here, []
            group.append(decorated)
        yield from self.of_coroutine(place, group)

    def of_coroutine(self, place, group):
        """Frames with the same pc and sp: one, and those inlined there. They come twice if the first was inserted."""
        co = borrowed.co
        if place is None or place == borrowed.at or (co.saved is not None and place[1] > co.end() and
                                                     co.saved <= place[1]):
            return []
        real = [i for i, d in enumerate(group) if d.inferior_frame().type() != gdb.INLINE_FRAME]
        return group[real[-2] + 1:] if len(real) > 1 else group


def library_source():
    """The folder of the library's sources, where debug information tells it."""
    symbol = gdb.lookup_static_symbol("aco__debug") or gdb.lookup_global_symbol("aco__debug")
    name = symbol.symtab.fullname() if symbol and symbol.symtab else ""
    return os.path.dirname(os.path.dirname(os.path.realpath(name))) + os.sep if name else None


def is_internal(frame, source=None):
    if frame.pc() == 0:
        return False
    library, symtab = gdb.solib_name(frame.pc()), frame.find_sal().symtab
    return (acorn_coroutines.is_internal(frame.name() or "") or
            (library is not None and os.path.basename(library).startswith("libacorn")) or
            (source is not None and symtab is not None and os.path.realpath(symtab.fullname()).startswith(source)))


def place_of(co, source):
    """The function where it is suspended, with file and line if they are known; "" if it is not. The library's own
    frames do not count."""
    selected = gdb.selected_frame()
    borrowed.begin(co)
    try:
        frame = gdb.newest_frame()
        while frame and ((frame.pc(), int(frame.read_register(registers()[1]))) == borrowed.at or
                         is_internal(frame, source)):
            frame = frame.older()
        if not (frame and frame.name()):
            return ""
        sal = frame.find_sal()
        return frame.name() + (f" {os.path.basename(sal.symtab.filename)}:{sal.line}" if sal.symtab else "")
    except gdb.error:
        return ""
    finally:
        borrowed.end()
        if selected.is_valid():
            selected.select()


def where(pc):
    """The function, without the library's own inline code."""
    block = gdb.current_progspace().block_for_pc(pc)
    while block and not (block.function and not block.function.name.startswith(acorn_coroutines.INTERNAL)):
        block = block.superblock
    if block:
        return block.function.name
    symbol = gdb.execute(f"info symbol {pc:#x}", to_string=True)
    return symbol.split(" in section")[0] if " in section" in symbol else hex(pc)


def doing(co):
    if co.state == "done":
        return ""
    if co.state == "running":
        thread = f"thread {co.on_thread}" if co.on_thread else ""
        return ", ".join(filter(None, (thread, f"began in {where(co.entry)}" if co.entry else "")))
    place = where(co.entry if co.state == "ready" and co.entry else co.pc)
    return f"began in {where(co.entry)}" if co.entry and acorn_coroutines.is_internal(place) else place


class Aco(gdb.Command):
    """Coroutines of Acorn: aco list, aco bt N, aco apply all bt, aco frame N."""

    def __init__(self):
        super().__init__("aco", gdb.COMMAND_STACK, prefix=True)


MOST_LINES = 1000 # gdb unwinds each coroutine for its line


class List(gdb.Command):
    """All coroutines: number, address, state (+: on a share stack, frames saved), name, where."""

    def __init__(self):
        super().__init__("aco list", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        borrowed.end()
        there = memory()
        found, source = there.coroutines_of(stack_pointers()), library_source()
        print(f"{'N':>4}  {'address':<18} {'state':<11} {'name':<16} where")
        for co in found:
            state = co.state + ("+" if co.saved is not None else "")
            place = place_of(co, source) if co.has_frames() and co.number <= MOST_LINES else ""
            place = ", ".join(filter(None, (place or doing(co), co.wait)))
            print(f"{co.number:4}  {co.block:#018x} {state:<11} {co.name:<16} {place}".rstrip())
        print(f"{len(found)} coroutines")
        if there.complaint():
            print(f"acorn: {there.complaint()}")


def execute(command):
    try:
        gdb.execute(command)
    except gdb.error as error: # gdb's own, and no fault of this script
        raise gdb.GdbError(str(error))


def show(co, command):
    title = f"coroutine {co.number} ({co.block:#x}{', ' + co.name if co.name else ''}): {co.state}"
    if co.state == "running" and co.on_thread:
        print(f"{title}, by thread {co.on_thread}")
        execute(f"thread apply {co.on_thread} -q {command}")
    elif co.state == "running":
        print(f"{title}, by a thread that is on another stack: thread apply all bt")
    elif co.lacks_stack:
        print(f"{title}: this core file lacks its stack (aco list says why)")
    elif not co.has_frames():
        print(f"{title}{', begins in ' + doing(co) if co.state == 'ready' else ''}")
    else:
        print(title)
        selected = gdb.selected_frame()
        borrowed.begin(co)
        try:
            if command.split()[0] not in ("bt", "backtrace", "where"):
                select_innermost()
            execute(command)
        finally:
            borrowed.end()
            if selected.is_valid():
                selected.select()


def select_innermost():
    """Of the coroutine, behind the thread's own with what is inlined there."""
    frame = gdb.newest_frame()
    while frame and (frame.pc(), int(frame.read_register(registers()[1]))) == borrowed.at:
        frame = frame.older()
    if frame:
        frame.select()


def select_shown():
    """The first frame that `bt` shows, if there is one: the library's own are left out."""
    frame = gdb.selected_frame()
    while frame and is_internal(frame):
        frame = frame.older()
    if frame:
        frame.select()


class Backtrace(gdb.Command):
    """The frames of one coroutine: aco bt N; N is its number, address or name. Options of bt may follow."""

    def __init__(self):
        super().__init__("aco bt", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        if not arguments.strip():
            raise gdb.GdbError("aco bt: which coroutine? aco list")
        co, options = find_first(arguments)
        show(co, f"bt {options}".strip())


class Apply(gdb.Command):
    """A command for all coroutines, or for those named: aco apply all bt; aco apply 1 3 info locals."""

    def __init__(self):
        super().__init__("aco apply", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        words = arguments.split()
        everyone = words[:1] == ["all"]
        names = words[:1] if everyone else list(itertools.takewhile(str.isdigit, words))
        command = words[len(names):]
        if not names or not command:
            raise gdb.GdbError("aco apply: all, or numbers, and then a command")
        for co in coroutines() if everyone else [find(n) for n in names]:
            print()
            show(co, " ".join(command))


class Frame(gdb.Command):
    """Makes the frames of a coroutine gdb's own: aco frame N; without N the thread's are back. They are also back when
    the process runs on; `aco frame` first where it shall be stepped."""

    def __init__(self):
        super().__init__("aco frame", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        borrowed.end()
        if not arguments:
            execute("frame 0")
            return
        co = find(arguments.strip())
        if not co.has_frames():
            raise gdb.GdbError(f"coroutine {co.number} is {co.state}")
        borrowed.begin(co)
        select_innermost()
        select_shown()
        gdb.execute("frame")


class CoroutinePrinter:
    """aco_t"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        address = int(self.value.address) if self.value.address else None
        try:
            co = next((co for co in coroutines_while_printing() if co.block == address), None)
        except (gdb.error, gdb.GdbError, ValueError):
            co = None
        if not co:
            return "no coroutine that is there"
        return (f"coroutine {co.number}{' ' + repr(co.name) if co.name else ''}, "
                f"{co.state}{', at ' + where(co.pc) if co.has_frames() else ''}")

    def children(self):
        for name in ("is_end", "share_stack", "arg", "fp"):
            yield name, self.value[name]


class StackPrinter:
    """aco_share_stack_t"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        kind = "private" if int(self.value["aco__private"]) else "share"
        return (f"{kind} stack of {int(self.value['sz']) - int(self.value['aco__colour'])} bytes"
                f"{'' if int(self.value['guard_page_enabled']) else ', no guard page'}")

    def children(self):
        for name in ("ptr", "sz", "owner"):
            yield name, self.value[name]


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("acorn")
    collection.add_printer("aco_t", "^aco_s$", CoroutinePrinter)
    collection.add_printer("aco_share_stack_t", "^aco_share_stack_s$", StackPrinter)
    return collection


Aco(), List(), Backtrace(), Apply(), Frame()
Filter()
gdb.unwinder.register_unwinder(None, Unwinder(), replace=True)
gdb.printing.register_pretty_printer(None, printers(), replace=True)
gdb.events.cont.connect(borrowed.end)
