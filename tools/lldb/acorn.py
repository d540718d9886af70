"""lldb: the coroutines of programs that use Acorn. docs/debugging.md

command script import .../lldb/acorn.py

aco list       all coroutines, what they are doing and where
aco-threads    from now on those that are suspended are threads, for thread list, bt, frame variable ...
aco bt N       after that the frames of one: its number, its address or its name; "all": of each

Works on running processes, which it never writes to, and on core files. lldb lets no script unwind; it takes threads from one (an
"operating system plug-in"). So of frames in a save area only those are right up to the first that goes by a frame pointer, and
`aco bt` shows no others. The plug-in is loaded by an alias for a setting: lldb 19 crashes if a script's command sets it."""

import os
import struct
import sys

import lldb

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import acorn_coroutines  # noqa: E402

# Name, and its numbers in DWARF, of all registers that are told: sp, pc, bp, base first.
REGISTERS = {
    "x86_64": [("rsp", 7, "sp"), ("rip", 16, "pc"), ("rbp", 6, "fp"), ("rbx", 3, None)],
    "aarch64": [("sp", 31, "sp"), ("pc", 32, "pc"), ("x29", 29, "fp"), ("x19", 19, None)],
}


def registers(target):
    arch = target.GetTriple().split("-")[0]
    if arch not in REGISTERS:
        raise ValueError(f"acorn: the registers of {arch} are not known here")
    return REGISTERS[arch]


def memory(process):
    def read(at, size):
        error = lldb.SBError()
        data = process.ReadMemory(at, size, error)
        if not error.Success():
            raise ValueError(f"acorn: {error.GetCString()}")
        return data

    target = process.GetTarget()
    for symbol in target.FindSymbols("aco__debug"):
        where = symbol.GetSymbol().GetStartAddress().GetLoadAddress(target)
        if where != lldb.LLDB_INVALID_ADDRESS:
            return acorn_coroutines.Memory(read, target.GetAddressByteSize(), where, target.GetByteOrder() == lldb.eByteOrderLittle)
    raise ValueError("acorn: this program has no Acorn library in it, or a stripped static one")


def threads_of_system(process):
    return [t for t in process if not t.GetName() or not t.GetName().startswith("coroutine ")]


def coroutines(process):
    stack_pointers = {t.GetIndexID(): t.GetFrameAtIndex(0).GetSP() for t in threads_of_system(process)}
    return memory(process).coroutines_of(stack_pointers)


def where(target, pc):
    address = target.ResolveLoadAddress(pc)
    block = address.GetBlock()
    while block.IsValid() and (not block.IsInlined() or (block.GetInlinedName() or "").startswith(("aco_", "aco::"))):
        block = block.GetParent()
    if block.IsValid():
        return block.GetInlinedName()
    return address.GetFunction().GetName() or address.GetSymbol().GetName() or hex(pc)


def doing(target, co):
    if co.state == "done":
        return ""
    if co.state == "running":
        return f"thread {co.on_thread}" if co.on_thread else ""
    return where(target, co.entry if co.state == "ready" and co.entry else co.pc)


class OperatingSystemPlugIn:
    """Suspended coroutines as threads; a coroutine's address is the thread's number."""

    def __init__(self, process):
        self.process = process
        self.known = {}

    def get_thread_info(self):
        try:
            self.known = {co.block: co for co in memory(self.process).coroutines() if co.has_frames()}
        except ValueError:
            self.known = {}
        return [{"tid": co.block, "name": f"coroutine {co.number} {co.name}".rstrip(), "queue": "", "state": "stopped", "stop_reason": "none"}
                for co in self.known.values()]

    def get_register_info(self):
        word = self.process.GetTarget().GetAddressByteSize()
        found = []
        for i, (name, number, generic) in enumerate(registers(self.process.GetTarget())):
            register = {"name": name, "bitsize": 8 * word, "offset": i * word, "encoding": "uint", "format": "hex", "set": 0,
                        "gcc": number, "ehframe": number, "dwarf": number}
            if generic:
                register["generic"] = generic
            found.append(register)
        return {"sets": ["General Purpose Registers"], "registers": found}

    def get_register_data(self, tid):
        co = self.known[tid]
        values = (co.to_memory(co.sp), co.pc, co.to_memory(co.bp), co.to_memory(co.base))
        return struct.pack("<4Q", *values)


def list_them(process, result):
    found = coroutines(process)
    print(f"{'N':>4}  {'address':<18} {'state':<11} {'name':<16} where", file=result)
    for co in found:
        state = co.state + ("+" if co.saved is not None else "")
        print(f"{co.number:4}  {co.block:#018x} {state:<11} {co.name:<16} {doing(process.GetTarget(), co)}".rstrip(), file=result)
    print(f"{len(found)} coroutines", file=result)


def print_frames(co, thread, result):
    for frame in thread:
        if co.saved is not None and not co.saved <= frame.GetSP() <= co.end():
            if frame.GetSP() - thread.process.target.GetAddressByteSize() != co.end():
                print("  (more are found only by a frame pointer)", file=result)
            break
        print(f"  frame #{frame.GetFrameID()}: {frame.GetPC():#018x} {frame.GetDisplayFunctionName() or '?'}"
              f" at {frame.GetLineEntry().GetFileSpec().GetFilename() or '?'}:{frame.GetLineEntry().GetLine()}", file=result)


def backtraces(process, which, result):
    found = [co for co in coroutines(process) if which in ("all", str(co.number), co.name, hex(co.block))]
    if not found or not which:
        raise ValueError(f"acorn: no coroutine {which}")
    for co in found:
        print(f"coroutine {co.number} ({co.block:#x}{', ' + co.name if co.name else ''}): {co.state}", file=result)
        thread = process.GetThreadByID(co.block) if co.has_frames() else process.GetThreadByIndexID(co.on_thread or 0)
        if thread.IsValid():
            print_frames(co, thread, result)
        elif co.has_frames():
            raise ValueError("acorn: aco-threads first, which makes suspended coroutines threads")


def aco(debugger, command, context, result, _dictionary):
    """Coroutines of Acorn: aco list; after aco-threads aco bt N, aco bt all."""
    what, _, rest = command.partition(" ")
    process = context.GetProcess()
    try:
        if not process.IsValid():
            raise ValueError("acorn: there is no process and no core file")
        if what == "list":
            list_them(process, result)
        elif what == "bt":
            backtraces(process, rest.strip(), result)
        else:
            result.SetError("aco list, aco bt N, aco bt all")
    except ValueError as error:
        result.SetError(str(error))


def __lldb_init_module(debugger, _dictionary):
    debugger.HandleCommand(f"command script add -o -f {__name__}.aco aco")
    debugger.HandleCommand(f"command alias aco-threads settings set target.process.python-os-plugin-path '{os.path.realpath(__file__)}'")
