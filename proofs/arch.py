"""What differs from processor to processor. The roles of registers in a switch are the contract of include/aco/arch/, written down
again here, so that a header cannot change both sides of a comparison."""
import importlib.util
import pathlib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent


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
    carried: tuple    # the block, aco__where(), the value
    leaving: str      # a transfer's
    entered: str      # the block that ENTER loads
    frame: str
    base: str         # clang's base pointer
    exchange: dict    # what an exchange passes
    controls: tuple
    arguments: tuple
    entry: int        # sp modulo 16 as a function begins
    return_address: str  # a register, or "" for [sp]
    tls_offset: object
    status: tuple = ()   # registers that a sequence may not change: direction flag, x87 stack
    where_is_offset: bool = False
    code_bit: int = 0
    context: dict = {}
    special: dict = {}   # the ABI's names that are not Sleigh's
    targets: dict = {}   # compiler: command
    link: tuple = ()
    room: int = 0        # what NESTED_RESUME moves sp by
    pads: str = ""       # the option that asks for landing pads
    pad: bytes = b""
    entry_below_top: int = 8
    return_word: int = 0
    flags: tuple = ("",)  # options to compile with, one set after the other
    lto: bool = False
    traps: tuple = ("UD2",)

    def sleigh(self, name, registers):
        """Sleigh's register for the ABI's `name`, or None."""
        for candidate in (self.special.get(name, name), name.upper()):
            if candidate in registers:
                return candidate
        return None

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
    exchange={"pc": "RDI", "bp": "RSI", "sp": "RCX", "base": "R8", "value": "RDX"},
    controls=(Control("MXCSR", 0xffffffc0, 32, 4), Control("FPUControlWord", 0xffff, 36, 2)),
    arguments=("RDI", "RSI", "RDX", "RCX", "R8", "R9"), entry=8, return_address="", tls_offset=x86_tls, status=X86_STATUS,
    where_is_offset=True, pads="-fcf-protection", pad=bytes.fromhex("f30f1efa"), lto=True,
    special={"mxcsr": "MXCSR", "x87cw": "FPUControlWord", "fs": "FS_OFFSET"},
    targets={"gcc": ["x86_64-linux-gnu-gcc-12"], "clang": ["clang-19", "--target=x86_64-linux-gnu"]})

ARCHES = {arch.name: arch for arch in (X86_64,)}
