"""What differs from processor to processor. The roles of registers in a switch are the contract of include/aco/arch/,
written down again here, so that a header cannot change both sides of a comparison."""
import importlib.util
import pathlib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(name, path):
    """A script of the tests as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


abi = script("abi_check", "tests/abi/check.py")
redzone = script("redzone_check", "tests/redzone/check.py")


class Control(NamedTuple):
    """A floating-point control register: the bits that belong to whoever runs, and where its context keeps it."""
    register: str
    mask: int
    offset: int
    size: int


class Arch(NamedTuple):
    name: str
    table: str        # tests/abi/TABLE.txt
    language: str     # Sleigh's
    word: int
    sp: str
    thread_pointer: str
    carried: tuple    # the block, aco__tls_ref(), the value
    leaving: str      # a transfer's
    entered: str      # the block that ENTER loads
    frame: str
    base: str         # clang's base pointer
    swap: dict        # what a swap passes to a generator with its own stack; `in_stack`: with one on its consumer's
    controls: tuple
    arguments: tuple
    entry: int        # sp modulo 16 as a function begins
    return_address: str  # a register, or "" for [sp]
    tls_offset: object
    thread_relocations: tuple = ()  # ELF's numbers of those that say where a thread-local variable is
    status: tuple = ()   # registers that a sequence may not change: direction flag, x87 stack
    tls_ref_is_offset: bool = False
    code_bit: int = 0     # of a resume address, that is no part of the location
    arrival_bit: int = 0  # what it is in these units
    context: dict = {}
    special: dict = {}   # the ABI's names that are not Sleigh's
    targets: dict = {}   # compiler: command
    link: tuple = ()
    room: int = 0        # what IN_STACK_RESUME moves sp by
    pads: str = ""       # the option that asks for landing pads
    pad: bytes = b""
    entry_below_top: int = 8
    return_word: int = 0
    # how a generator's function is entered, as src/coroutine/entry/ has it: the words laid out, its parameters, where
    # those on the stack begin
    start_return: int = 1
    start_argument: int = 2
    start_words: int = 6
    generator_parameters: tuple = ("pc", "bp", "value", "sp", "base", "argument")
    parameters_at: int = 0
    begin_pad: bytes = b""  # what the library's assembly begins with
    flags: tuple = ("",)  # options to compile with, one set after the other
    lto: bool = False
    in_stack: dict = {}   # where it is not `swap`
    goes_to: dict = {}    # the register of the other side's resume address before a switch, if it is not that after
    pops: bool = False    # in a swap the resume address stands at the stack pointer, not in a register
    # the register that holds a function's address as it is entered, and the resume address on arrival
    goes_by: str = ""
    toc: str = ""         # the register that addresses by it are relative to
    header: int = 0       # what a callee may write above the stack pointer: up to here, except the first word
    narrow: tuple = ()    # registers of four bits, which Sleigh keeps in eight
    back_chain: bool = False  # the word at the stack pointer leads to the caller's frame, and compilers use it
    targets_last: bool = False  # what Sleigh names only names the register that it writes last
    prologue_below: bool = False  # registers are saved below the stack pointer before it moves, in the red zone
    # no red zone: a sequence may write the word below the stack pointer, by a call to find itself or a push
    pushes: bool = False
    alignment: int = 16   # of sp at calls
    other_thread: tuple = ()  # Sleigh's names for reading the thread pointer, where it is no register of Sleigh's
    zero: str = ""        # the register that is always 0
    traps: tuple = ("UD2",)
    order: str = "little"
    # s390x's registers that are neither clobbers nor in a context: where, from the stack pointer, gcc's sequences keep
    # them; by what an in-stack resume hands them to a generator, which brings them back
    fixed: dict = {}
    handed_over: dict = {}

    def sleigh(self, name, registers):
        """Sleigh's register for the ABI's `name`, or None."""
        for candidate in (self.special.get(name, name), name.upper()):
            if candidate in registers:
                return candidate
        return None

    def peer(self, kind):
        return self.in_stack if self.in_stack and kind.startswith("IN_STACK") else self.swap

    @property
    def entry_function(self):
        """In a control block."""
        return 56 if self.word == 8 else 32

    @property
    def running(self):
        return 4 * self.word + 8

    @property
    def state(self):
        return 4 * self.word + 6


def x86_tls(value, size, align):
    return value - (size + align - 1) // align * align


X86_STATUS = ("DF",) + tuple("ST%d" % n for n in range(8))
X86_64 = Arch(
    name="x86_64", table="x86_64", language="x86:LE:64:default", word=8, sp="RSP", thread_pointer="FS_OFFSET",
    carried=("RDI", "RSI", "RCX"), leaving="R8", entered="RDX", frame="RBP", base="RBX",
    swap={"pc": "RDI", "bp": "RSI", "sp": "RCX", "base": "R8", "value": "RDX"}, goes_to={"PEER_SWAP": "RAX"},
    controls=(Control("MXCSR", 0xffffffc0, 32, 4), Control("FPUControlWord", 0xffff, 36, 2)),
    arguments=("RDI", "RSI", "RDX", "RCX", "R8", "R9"), entry=8, return_address="", tls_offset=x86_tls,
    thread_relocations=(18,), status=X86_STATUS,
    generator_parameters=("pc", "bp", "value", "sp", "base", "", "argument"), parameters_at=8, start_words=4,
    begin_pad=bytes.fromhex("f30f1efa"),
    tls_ref_is_offset=True, pads="-fcf-protection", pad=bytes.fromhex("f30f1efa"), lto=True,
    special={"mxcsr": "MXCSR", "x87cw": "FPUControlWord", "fs": "FS_OFFSET"},
    targets={"gcc": ["x86_64-linux-gnu-gcc-12"], "clang": ["clang-19", "--target=x86_64-linux-gnu"]})


def above(block):
    """The thread-local variables stand above the thread pointer, behind a block of the C library's."""
    return lambda value, size, align: (block + align - 1) // align * align + value


I386 = X86_64._replace(
    name="i386", table="i386", language="x86:LE:32:default", word=4, sp="ESP", thread_pointer="GS_OFFSET",
    carried=("EAX", "EDI", "ECX"), leaving="EBX", entered="EDX", frame="EBP", base="ESI", 
    swap={"pc": "EAX", "bp": "EDI", "sp": "ECX", "base": "EBX", "value": "EDX"}, pops=True, pushes=True,
    generator_parameters=("sp", "bp", "base", "sp", "argument"), parameters_at=4, start_return=3, start_argument=8,
    start_words=12,
    begin_pad=bytes.fromhex("f30f1efb"),
    in_stack={"pc": "ECX", "bp": "EDI", "sp": "EAX", "base": "EBX", "value": "EDX"}, thread_relocations=(14,),
    controls=(Control("MXCSR", 0xffffffc0, 16, 4), Control("FPUControlWord", 0xffff, 20, 2)),
    arguments=(), entry=12, entry_below_top=4, lto=False, pads="-fcf-protection", pad=bytes.fromhex("f30f1efb"),
    flags=("-m32 -msse2",),
    special={"mxcsr": "MXCSR", "x87cw": "FPUControlWord", "gs": "GS_OFFSET"},
    targets={"gcc": ["x86_64-linux-gnu-gcc-12"], "clang": ["clang-19", "--target=i386-linux-gnu"]})

AARCH64 = Arch(
    name="aarch64", table="aarch64", language="AARCH64:LE:64:v8A", word=8, sp="sp", thread_pointer="tpidr_el0",
    carried=("x0", "x1", "x3"), leaving="x4", entered="x4", frame="x29", base="x19",
    swap={"pc": "x0", "bp": "x1", "sp": "x3", "base": "x4", "value": "x2"},
    controls=(Control("fpcr", 0xffffffff, 32, 4),),
    arguments=tuple("x%d" % n for n in range(8)), entry=0, return_address="x30", tls_offset=above(16),
    thread_relocations=(1030,), room=128, entry_below_top=16,
    pads="-mbranch-protection=standard", pad=bytes.fromhex("9f2403d5"), traps=("brk", "udf", "hlt"), lto=True,
    begin_pad=bytes.fromhex("5f2403d5"),
    special={**{"v%d" % n: "q%d" % n for n in range(32)}, **{"v%d" % n: "d%d" % n for n in range(8, 16)}},
    targets={"gcc": ["aarch64-linux-gnu-gcc-12"], "clang": ["clang-19", "--target=aarch64-linux-gnu"]})

ARM = Arch(
    name="arm", table="arm", language="ARM:LE:32:v8", word=4, sp="sp", thread_pointer="tpidruro",
    carried=("r0", "r1", "r3"), leaving="r4", entered="r4", frame="r11", base="r6",
    swap={"pc": "r0", "bp": "r1", "sp": "r3", "base": "r4", "value": "r2"},
    controls=(Control("fpscr", 0x07ffff60, 16, 4),),
    arguments=("r0", "r1", "r2", "r3"), entry=0, return_address="lr", tls_offset=above(8),
    thread_relocations=(19,), room=128, entry_below_top=8, alignment=8, code_bit=1, start_argument=3,
    flags=("-marm",), traps=("udf",), link=(),
    targets={"gcc": ["arm-linux-gnueabihf-gcc-12"],
             "clang": ["clang-19", "--target=arm-linux-gnueabihf", "-march=armv7-a"]},
    other_thread=("coproc_movefrom_User_R_Thread_and_Process_ID", "coprocessor_movefromRt(0xf, 0x0, 0x3, cr13, cr0)"))

THUMB = ARM._replace(name="thumb", flags=("-mthumb",), context={"TMode": 1}, arrival_bit=1, frame="r7")

RISCV64 = Arch(
    name="riscv64", table="riscv64", language="RISCV:LE:64:RV64GC", word=8, sp="sp", thread_pointer="tp",
    carried=("a0", "a1", "a3"), leaving="a4", entered="a4", frame="s0", base="s1",
    swap={"pc": "a0", "bp": "a1", "sp": "a3", "base": "a4", "value": "a2"}, controls=(Control("frm", 0x7, 32, 4),),
    arguments=tuple("a%d" % n for n in range(8)), entry=0, return_address="ra",
    tls_offset=lambda value, size, align: value,
    thread_relocations=(11,), room=128,
    entry_below_top=16, traps=("ebreak", "c.ebreak", "unimp", "c.unimp"), lto=True, zero="zero",
    begin_pad=bytes.fromhex("17000000"),
    targets={"gcc": ["riscv64-linux-gnu-gcc-12"],
             "clang": ["clang-19", "--target=riscv64-linux-gnu", "-march=rv64gc", "-mabi=lp64d"]})

PPC64LE = Arch(
    name="ppc64le", table="ppc64le", language="PowerPC:LE:64:A2ALT", word=8, sp="r1", thread_pointer="r13",
    carried=("r3", "r4", "r6"), leaving="r7", entered="r7", frame="r31", base="r30",
    swap={"pc": "r3", "bp": "r4", "sp": "r6", "base": "r7", "value": "r5"}, controls=(),  # FPSCR is single bits there
    arguments=tuple("r%d" % n for n in range(3, 11)), entry=0, return_address="LR",
    tls_offset=lambda value, size, align: value - 0x7000,
    thread_relocations=(73,), room=224, entry_below_top=32, return_word=2, start_words=8, traps=("trap",),
    goes_by="r12", toc="r2", header=24, prologue_below=True, targets_last=True, back_chain=True,
    narrow=tuple("cr%d" % n for n in range(8)),
    special={"lr": "LR", "ctr": "CTR", **{"fr%d" % n: "f%d" % n for n in range(32)},
             **{"v%d" % n: "vs%d" % (32 + n) for n in range(32)}},
    targets={"gcc": ["powerpc64le-linux-gnu-gcc-12"], "clang": ["clang-19", "--target=powerpc64le-linux-gnu"]})

# Debian 12 has neither compiler nor headers for it. AArch64's, which are LP64 and little-endian too, have the same
# types; nothing of them is in a switch. Without LSX, which clang has by default, and whose loads and stores Sleigh
# names only.
ITS_HEADERS = ["-nostdlibinc", *("-isystem/usr/aarch64-linux-gnu/include" + part
                                 for part in ("/c++/12", "/c++/12/aarch64-linux-gnu", ""))]
LOONGARCH64 = RISCV64._replace(
    name="loongarch64", table="loongarch64", language="Loongarch:LE:64:lp64d", frame="fp", base="s8",
    controls=(Control("fcsr", 0x31f, 32, 4),),
    traps=("break",), begin_pad=b"", special={"fcsr0": "fcsr"},
    targets={"clang": ["clang-19", "--target=loongarch64-linux-gnu", "-march=loongarch64", *ITS_HEADERS]})

S390X = RISCV64._replace(
    name="s390x", table="s390x", language="VEX", order="big", sp="r15", thread_pointer="thread",
    carried=("r2", "r3", "r5"), leaving="r6",
    entered="r6", frame="r11", base="", swap={"pc": "r2", "bp": "r3", "sp": "r5", "base": "r6", "value": "r4"},
    controls=(Control("fpc", 0xff0000ff, 32, 4),),
    arguments=tuple("r%d" % n for n in range(2, 7)), return_address="r14", tls_offset=x86_tls, thread_relocations=(56,),
    alignment=8,
    entry_below_top=160, return_word=14, start_argument=22, start_words=30,
    parameters_at=160, header=160, fixed={96: "r12", 104: "r13"}, handed_over={"r12": "r5", "r13": "r6"}, room=240,
    zero="", begin_pad=b"", traps=("trap",), lto=False,
    targets={"gcc": ["s390x-linux-gnu-gcc-12"], "clang": ["clang-19", "--target=s390x-linux-gnu"]})

ARCHES = {arch.name: arch for arch in (X86_64, I386, AARCH64, ARM, THUMB, RISCV64, PPC64LE, LOONGARCH64, S390X)}
