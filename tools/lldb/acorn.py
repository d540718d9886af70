"""lldb: the coroutines of programs that use Acorn. docs/debugging.md

command script import .../lldb/acorn.py

aco list       all coroutines, what they are doing and where
aco bt N       the frames of one: its number, its address or its name; "all": of each
aco frame N    makes its frames lldb's, for bt, up, frame variable, print ...; "aco frame" alone: the process's again

Works on running processes, which it never writes to, and on core files. lldb lets no script unwind. But a script may be
a process (a "scripted process"). This one makes a process with the coroutine as its only thread. Its memory is that of
the real process, except that the coroutine's saved frames are back on its stack. lldb unwinds it like any other."""

import itertools
import os
import re
import signal
import struct
import sys

import lldb
from lldb.plugins.scripted_process import ScriptedProcess, ScriptedThread

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
            return acorn_coroutines.Memory(read, target.GetAddressByteSize(), where,
                                           target.GetByteOrder() == lldb.eByteOrderLittle)
    raise ValueError("acorn: this program has no Acorn library in it, or a stripped static one, or the library's file "
                     "is not here")


def coroutines(process):
    return list(memory(process).coroutines_of({t.GetIndexID(): t.GetFrameAtIndex(0).GetSP() for t in process}))


def where(target, pc):
    address = target.ResolveLoadAddress(pc)
    block = address.GetBlock()
    while block.IsValid() and (not block.IsInlined() or acorn_coroutines.is_internal(block.GetInlinedName() or "")):
        block = block.GetParent()
    if block.IsValid():
        return block.GetInlinedName()
    return address.GetFunction().GetName() or address.GetSymbol().GetName() or hex(pc)


def doing(target, co):
    if co.state == "done":
        return ""
    if co.state == "running":
        return f"thread {co.on_thread}" if co.on_thread else ""
    place = where(target, co.entry if co.state == "ready" and co.entry else co.pc)
    return f"began in {where(target, co.entry)}" if co.entry and acorn_coroutines.is_internal(place) else place


class View(ScriptedProcess):
    """The process as `co` sees it: its frames are on its stack. lldb makes the object, so what it shows is taken from
    the class."""

    of = None

    def __init__(self, context, arguments):
        super().__init__(context, arguments)
        self.real, self.co = View.of
        self.threads[self.co.block] = Thread(self, arguments)

    def get_memory_region_containing_address(self, address):
        region = lldb.SBMemoryRegionInfo()
        return region if self.real.GetMemoryRegionInfo(address, region).Success() else None

    def read_memory_at_address(self, address, size, error):
        data, co = lldb.SBData(), self.co
        read = self.real.ReadMemory(address, size, error)
        if not error.Success():
            return data
        lo, hi = max(address, co.sp), min(address + size, co.top)
        if co.saved is not None and lo < hi:
            saved = self.real.ReadMemory(co.to_memory(lo), hi - lo, error)
            if not error.Success():
                return data
            read = read[:lo - address] + saved + read[hi - address:]
        data.SetDataWithOwnership(error, read, self.real.GetTarget().GetByteOrder(),
                                  self.real.GetTarget().GetAddressByteSize())
        return data

    def is_alive(self):
        return True

    def get_scripted_thread_plugin(self):
        return f"{__name__}.Thread"


class Thread(ScriptedThread):
    """The coroutine. Of its registers those are known that a switch keeps."""

    def __init__(self, process, arguments):
        super().__init__(process, arguments)
        self.co = process.co
        self.tid, self.name = self.co.block, f"coroutine {self.co.number} {self.co.name}".rstrip()

    def get_register_info(self):
        target = self.originating_process.target
        word = target.GetAddressByteSize()
        found = []
        for i, (name, number, generic) in enumerate(registers(target)):
            register = {"name": name, "bitsize": 8 * word, "offset": i * word, "encoding": "uint", "format": "hex",
                        "set": 0, "gcc": number, "ehframe": number, "dwarf": number}
            if generic:
                register["generic"] = generic
            found.append(register)
        self.register_info = {"sets": ["General Purpose Registers"], "registers": found}
        return self.register_info

    def get_register_context(self):
        return struct.pack("<4Q", self.co.sp, self.co.pc, self.co.bp, self.co.base)

    def get_stop_reason(self):
        return {"type": lldb.eStopReasonSignal, "data": {"signal": int(signal.SIGSTOP)}}


def load_modules(real, view):
    for module in real.modules:
        header = module.GetObjectFileHeaderAddress()
        if header.GetLoadAddress(real) != lldb.LLDB_INVALID_ADDRESS:
            view.AddModule(module)
            view.SetModuleLoadAddress(module, header.GetLoadAddress(real) - header.GetFileAddress())


class Viewed:
    """The target in which a coroutine is looked at, while there is one."""

    def __init__(self):
        self.target = self.real = None

    def open(self, process, co):
        """The process that shows it."""
        self.close()
        debugger = process.GetTarget().GetDebugger()
        View.of = self.real, _ = process, co
        error, info = lldb.SBError(), lldb.SBLaunchInfo(None)
        info.SetLaunchFlags(lldb.eLaunchFlagStopAtEntry)
        info.SetProcessPluginName("ScriptedProcess")
        info.SetScriptedProcessClassName(f"{__name__}.View")
        self.target = debugger.CreateTarget(process.GetTarget().GetExecutable().fullpath)
        view = self.target.Launch(info, error)
        load_modules(process.GetTarget(), self.target)
        if not error.Success():
            self.close()
            raise ValueError(f"acorn: {error.GetCString()}")
        return view

    def close(self):
        if self.target:
            debugger = self.target.GetDebugger()
            self.target.GetProcess().Destroy()
            debugger.DeleteTarget(self.target)
            debugger.SetSelectedTarget(self.real.GetTarget())
            self.target = None

    def real_process(self, process):
        """What the commands are about, also while lldb's own are about the view."""
        return self.real if self.target and process.GetTarget() == self.target else process


viewed = Viewed()


def list_them(process, result):
    there = memory(process)
    found = there.coroutines_of({t.GetIndexID(): t.GetFrameAtIndex(0).GetSP() for t in process})
    print(f"{'N':>4}  {'address':<18} {'state':<11} {'name':<16} where", file=result)
    for co in found:
        state = co.state + ("+" if co.saved is not None else "")
        place = ", ".join(filter(None, (doing(process.GetTarget(), co), co.wait)))
        print(f"{co.number:4}  {co.block:#018x} {state:<11} {co.name:<16} {place}".rstrip(), file=result)
    print(f"{len(found)} coroutines", file=result)
    if there.complaint():
        print(f"acorn: {there.complaint()}", file=result)


def find(process, which):
    address = int(which, 16) if re.fullmatch("0x[0-9a-fA-F]+", which) else None
    found = [co for co in coroutines(process) if which in ("all", str(co.number), co.name) or co.block == address]
    if not found or not which:
        raise ValueError(f"acorn: no coroutine {which}")
    return found


def is_internal(frame):
    return acorn_coroutines.is_internal(frame.GetFunctionName() or "")


def backtraces(process, which, result):
    for co in find(process, which):
        print(f"coroutine {co.number} ({co.block:#x}{', ' + co.name if co.name else ''}): "
              f"{co.state}{' on another stack' if co.state == 'running' and not co.on_thread else ''}", file=result)
        if co.has_frames():
            frames = list(viewed.open(process, co).GetThreadAtIndex(0))
            frames = list(itertools.dropwhile(is_internal, frames)) or frames
        else:
            frames = process.GetThreadByIndexID(co.on_thread or 0)
        for frame in frames:
            print(f"  {str(frame).rstrip()}", file=result)
        viewed.close()


def choose_frames(process, which):
    viewed.close()
    if which:
        co = find(process, which)[0]
        if not co.has_frames():
            raise ValueError(f"coroutine {co.number} is {co.state}")
        debugger = process.GetTarget().GetDebugger()
        debugger.SetSelectedTarget(viewed.open(process, co).GetTarget())


def aco(debugger, command, context, result, _dictionary):
    """Coroutines of Acorn: aco list, aco bt N, aco bt all, aco frame N, aco frame."""
    what, _, rest = command.partition(" ")
    try:
        if not context.GetProcess().IsValid():
            raise ValueError("acorn: there is no process and no core file")
        process = viewed.real_process(context.GetProcess())
        if process.GetState() not in (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended):
            raise ValueError("acorn: the process is running, or has ended")
        if what == "list":
            list_them(process, result)
        elif what == "bt":
            backtraces(process, rest.strip(), result)
        elif what == "frame":
            choose_frames(process, rest.strip())
        else:
            result.SetError("aco list, aco bt N, aco bt all, aco frame N, aco frame")
    except ValueError as error:
        result.SetError(str(error))


def __lldb_init_module(debugger, _dictionary):
    debugger.HandleCommand(f"command script add -o -f {__name__}.aco aco")
