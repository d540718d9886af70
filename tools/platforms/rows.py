"""The matrix of platforms, as data: run.py builds and tests a row for each (platform, compiler, options, emulator)."""
from typing import NamedTuple

ZIG = "0.17.1"  # of ziglang on PyPI: clang with the headers and C libraries of all its targets
DEBIAN_GCC, DEBIAN_CLANG = "12", "19"


class Platform(NamedTuple):
    system: str  # as CMake names it
    processor: str
    debian: str = ""  # the GNU triple of Debian's cross compiler, which is the name of its sysroot below /usr too
    zig: str = ""  # zig's target
    zig_flags: str = ""
    emulator: str = ""


# libc++'s float.h is guarded, and <math.h> asks for a part of it alone: what comes later would get nothing.
FLOAT_H = "-include float.h"

PLATFORMS = {
    "x86_64": Platform("Linux", "x86_64"),
    "x86_64-musl": Platform("Linux", "x86_64", zig="x86_64-linux-musl"),
    "i386": Platform("Linux", "i686"),
    "aarch64": Platform("Linux", "aarch64", "aarch64-linux-gnu", "aarch64-linux-musl", emulator="qemu-aarch64"),
    "aarch64_be": Platform("Linux", "aarch64_be", zig="aarch64_be-linux-musl", emulator="qemu-aarch64_be"),
    "arm": Platform("Linux", "arm", "arm-linux-gnueabihf", "arm-linux-musleabihf", emulator="qemu-arm"),
    "riscv64": Platform("Linux", "riscv64", "riscv64-linux-gnu", "riscv64-linux-musl", emulator="qemu-riscv64"),
    "loongarch64": Platform("Linux", "loongarch64", zig="loongarch64-linux-musl", emulator="qemu-loongarch64",
                            zig_flags="-mcpu=generic_la64+d"),  # qemu 7.2 has no LSX
    "ppc64le": Platform("Linux", "ppc64le", "powerpc64le-linux-gnu", "powerpc64le-linux-musl", emulator="qemu-ppc64le"),
    "s390x": Platform("Linux", "s390x", "s390x-linux-gnu", "s390x-linux-musl", emulator="qemu-s390x"),
    "x86_64-windows": Platform("Windows", "AMD64", "x86_64-w64-mingw32", "x86_64-windows-gnu", emulator="wine64"),
    "x86_64-macos": Platform("Darwin", "x86_64", zig="x86_64-macos", zig_flags=FLOAT_H),
    "aarch64-macos": Platform("Darwin", "arm64", zig="aarch64-macos", zig_flags=FLOAT_H),
    "x86_64-freebsd": Platform("FreeBSD", "amd64", zig="x86_64-freebsd"),
    "aarch64-freebsd": Platform("FreeBSD", "arm64", zig="aarch64-freebsd"),
}


class Row(NamedTuple):
    platform: str
    compiler: str  # gcc, clang, zig
    flags: str
    name: str = ""  # what follows "PLATFORM-COMPILER" in the row's name
    cpu: str = ""  # options of the emulator
    link: str = ""  # options for linking programs
    what: str = "suite"  # suite: all of the test suite; built: what cannot be run here is built, linked and looked at
    cut: bool = False  # CI runs a few tests of it (CUT below)
    setting: str = ""  # of CMake: NAME=VALUE
    variants: str = ""  # the ways of compiling the C tests (ACORN_VARIANTS), where not all; and of C++ the plain tests


O2, O0 = "-O2 -g", "-O0 -g"
# Otherwise zig adds the sanitizer, with frames too large for the tests' small stacks.
ZIG_O0 = O0 + " -fno-sanitize=undefined"
FEW = "release shared_fp"  # in a further row of a processor that has one with all: both forms of each switch
ROWS = [
    Row("x86_64", "gcc", O2),
    Row("x86_64", "clang", O2),
    Row("x86_64", "gcc", "-O2 -g -DACO_CONFIG_UCONTEXT", "ucontext", setting="ACORN_UCONTEXT=ON"),
    Row("x86_64", "gcc", O2, "static", link="-static", variants=FEW),
    # What zig links for musl is static by default, on all platforms.
    Row("x86_64-musl", "zig", O2, "static", link="-lunwind"),
    # -fPIC: zig's linker copies stdin, stdout and stderr of a shared musl into one word
    Row("x86_64-musl", "zig", "-O2 -g -fPIC", "dynamic", link="-dynamic -lunwind", variants=FEW),
    Row("i386", "gcc", "-m32 -O2 -g"),
    Row("i386", "clang", "-m32 -O2 -g"),

    Row("aarch64", "gcc", O2, cut=True),
    Row("aarch64", "gcc", O0, "O0", variants=FEW),
    Row("aarch64", "gcc", "-O2 -g -mbranch-protection=standard", "branch-protection", cpu="-cpu max"),
    Row("aarch64", "gcc", "-O2 -g -march=armv8.2-a+sve", "sve", cpu="-cpu max", variants=FEW),
    Row("aarch64", "clang", O2),
    Row("aarch64", "clang", O0, "O0", variants=FEW),
    Row("aarch64", "clang", "-O2 -g -mbranch-protection=standard", "branch-protection", cpu="-cpu max", variants=FEW),
    Row("aarch64", "zig", O2, "musl-static", link="-lunwind", variants=FEW),
    Row("aarch64_be", "zig", O2, "musl-static", link="-lunwind"),

    Row("arm", "gcc", "-O2 -g -marm", cut=True),
    Row("arm", "gcc", "-O2 -g -mthumb", "thumb"),
    Row("arm", "gcc", "-O0 -g -mthumb", "thumb-O0", variants=FEW),
    Row("arm", "clang", "-O2 -g -marm"),
    Row("arm", "clang", "-O2 -g -mthumb", "thumb", variants=FEW),
    Row("arm", "zig", O2, "musl-static", link="-lunwind", variants=FEW),

    Row("riscv64", "gcc", O2, cut=True),
    Row("riscv64", "gcc", O0, "O0", variants=FEW),
    Row("riscv64", "clang", O2),
    Row("riscv64", "clang", "-O2 -g -march=rv64gcv", "vector", cpu="-cpu rv64,v=true,vext_spec=v1.0,vlen=128",
        variants=FEW),
    Row("riscv64", "zig", O2, "musl-static", link="-lunwind", variants=FEW),

    Row("loongarch64", "zig", O2, link="-lunwind"),
    Row("loongarch64", "zig", ZIG_O0, "O0", link="-lunwind", variants=FEW),

    Row("ppc64le", "gcc", O2, cut=True),
    Row("ppc64le", "gcc", O0, "O0", variants=FEW),
    Row("ppc64le", "clang", O2),
    Row("ppc64le", "zig", O2, "musl-static", link="-lunwind", variants=FEW),

    Row("s390x", "gcc", O2, cut=True),
    Row("s390x", "gcc", O0, "O0", variants=FEW),
    Row("s390x", "clang", O2),
    Row("s390x", "zig", O2, "musl-static", link="-lunwind", variants=FEW),

    Row("x86_64-windows", "gcc", O2, cut=True),
    Row("x86_64-windows", "zig", O2),
    Row("x86_64-windows", "zig", ZIG_O0, "O0", variants=FEW),

    Row("aarch64-macos", "zig", O2, what="built"),
    Row("x86_64-macos", "zig", O2, what="built"),
    Row("x86_64-freebsd", "zig", O2, link="-lunwind", what="built"),
    Row("aarch64-freebsd", "zig", O2, link="-lunwind", what="built"),
]

# What CI runs of the rows marked `cut`: these programs, and the tests that run them.
CUT_PROGRAMS = ["test_probe_shared-fp", "test_probe_own-fp", "test_api_release", "test_coroutine_switch_release",
                "test_generator_release", "test_cancel_release", "test_model_release_1", "test_signals_release",
                "test_cpp_plain_20", "test_threads_processors_release", "test_threads_shared_release",
                "test_threads_sync_release"]
CUT_TESTS = (r"^(probe\.(own|shared)-fp|(api|coroutine_switch|generator|cancel|signals)\.release|model\.release\.1|"
             r"threads_(processors|shared|sync)\.release|cpp_plain\.20)$")


class Left(NamedTuple):
    tests: str  # a regular expression, of those that ctest has; each fits the whole name
    reason: str
    emulators: str = ".*"
    rows: str = ".*"  # by their names


# Tests that an emulator, or a row, cannot run: the table in docs/platforms.md prints them with the reason.
QEMU = "qemu-.*"
LEFT_OUT = [
    Left(r"(coroutine_failure|pool_guards)\.[a-z]+\.mappings",
         "the limit on mappings is used up, and then qemu itself has none to go on with", QEMU),
    Left(r"pool_failure\.release\.room", "qemu keeps RLIMIT_AS from the kernel", QEMU),
    Left(r"slab\.threads", "it compares resident memory, of which qemu keeps 0.3 MiB for each thread that has ended",
         QEMU),
    Left(r"(stack_trim|profile|profile_model)\..*|found\.stacks|example\.sizes",
         "qemu's mincore() tells of pages of 4 KiB where the program's have 16, beyond the end of the program's array",
         "qemu-loongarch64"),
    Left(r"slab\.default",
         "/proc/self/statm, which it compares, counts this machine's pages of 4 KiB and not the program's of 16",
         "qemu-loongarch64"),
    Left(r"redzone\.check",
         "the check takes an index to be 0 or more: clang 22 begins a loop with one of 2, and an address below the "
         "stack pointer to go with it", rows="x86_64-musl-zig-.*"),
    Left(r"generator\.random",
         "clang 19 gives the memory of a variable-length array back before a call, and reads it after the call: in "
         "function 7, where nothing is switched; clang 22 fails in the same function",
         rows="s390x-(clang|zig-musl-static)"),
    Left(r"cpp_plain\.20\.no_exceptions",
         "libgcc 12 aborts when it unwinds a frame whose size depends on the vectors' length: it does not know vlenb",
         rows="riscv64-clang-vector"),
    Left(r"debugger\.emulated_steps",
         "qemu 7.2 does not tell gdb which bits of a return address are its signature, so that gdb finds no caller",
         rows="aarch64-.*-branch-protection"),
    Left(r"cpp_plain\.20|entry\.cpp",
         "on Arm LLVM's C++ run time takes a catch (...) block that a cancellation comes to for a cleanup, and stops "
         "the process when it throws the cancellation again", rows="arm-zig-musl-static"),
]
