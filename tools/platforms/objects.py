"""What object code shows without being run: the library has all public symbols, the switch is inline in a program, no
stack is executable, functions that switch have what the switch relies on."""
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from rows import DEBIAN_CLANG

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = [f"{ROOT}/{name}" for name in subprocess.run(["sh", f"{ROOT}/tools/sources.sh", "acorn"],
                                                       capture_output=True, text=True, check=True).stdout.split()]

# How a disassembly shows calls, and the jumps by which a switch leaves; by the beginning of a processor's name.
X86 = r"\bcall[lq]?\b", r"\bjmp[lq]?\s+\*"
CODE = {
    "x86_64": X86, "AMD64": X86, "amd64": X86, "i686": X86,
    "aarch64": (r"\bblr?\b", r"\bbr\b"), "arm64": (r"\bblr?\b", r"\bbr\b"),
    "arm": (r"\bblx?\b", r"\bbx\s+r|\b(mov|ldr)\s+pc,"),
    "riscv": (r"\bjal\b|\bjalr\b", r"\bjr\s+(?!ra\b)"),
    "loongarch": (r"\bbl\b|\bjirl\s+\$ra", r"\bjr\s+\$(?!ra\b)|\bjirl\s+\$zero, \$(?!ra\b)"),
    "ppc": (r"\bbl\b|\bbctrl\b", r"\bbctr\b"),
    "s390": (r"\bbrasl\b|\bbasr\b", r"\bbr\s+%r(?!14\b)"),
}


def tool(name, *arguments):
    path = shutil.which(f"llvm-{name}-{DEBIAN_CLANG}")
    return subprocess.run([path, *arguments], capture_output=True, text=True).stdout if path else ""


@functools.cache
def public():
    """The library's public symbols: those that this machine's own compiler gives it."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["gcc", "-c", "-fexceptions", f"-I{ROOT}/include", f"-I{ROOT}/src", *SOURCES], cwd=directory,
                       check=True)
        return defined([str(path) for path in Path(directory).glob("*.o")])


def defined(files):
    return set(re.findall(r" [A-Z] _?(aco_[a-z]\w*)$", tool("nm", "--extern-only", "--defined-only", *files), re.M))


def function(name, disassembly):
    """Its lines, local labels and mapping symbols in it passed over; without i386's calls that ask where they are."""
    start = re.search(rf"^[0-9a-f]+ <_?{name}>:$", disassembly, re.M)
    rest = disassembly[start.end():] if start else ""
    end = re.search(r"^[0-9a-f]+ <(?![$.L])[^>]*>:$", rest, re.M)
    lines = rest[:end.start() if end else None].splitlines()
    return [text for text in lines if not re.search(rf"\bcall.*<(_?{name}\+|__x86\.get_pc_thunk)", text)]


def leaves_without_call(platform, program):
    """Whether round_trips() in the program jumps to another stack, with no call on the way there. Further jumps, in
    the code of uncommon cases, may have calls before them."""
    calls, leaves = next(patterns for start, patterns in CODE.items() if platform.processor.startswith(start))
    code = function("round_trips", tool("objdump", "-d", "--no-show-raw-insn", str(program)))
    jumps = [at for at, text in enumerate(code) if re.search(leaves, text)]
    return bool(jumps) and not any(re.search(calls, text) for text in code[:jumps[0]])


def executable_stack(platform, program):
    if platform.system == "Darwin":
        return "ALLOW_STACK_EXECUTION" in tool("objdump", "--macho", "--private-header", str(program))
    if platform.system == "Windows":
        return "IMAGE_DLL_CHARACTERISTICS_NX_COMPAT" not in tool("readobj", "--file-headers", str(program))
    flags = re.search(r"GNU_STACK.* ([RWE ]{3}) ", tool("readelf", "--program-headers", "--wide", str(program)))
    return not flags or "E" in flags.group(1)


def functions(file):
    """(name, disassembly) of each function in an object file or an archive."""
    parts = re.split(r"^[0-9a-f]+ <((?![$.L])[^>]*)>:$", tool("objdump", "-d", "--no-show-raw-insn", file), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


# s390x.h keeps two registers in the words 96 above the stack pointer, which are a function's own only below a frame of
# its own, and nothing else may be there in that frame. ppc64le.h finds its labels by r2, which a function has made from
# r12 at its beginning.
KEPT = {"s390x": r"\bstmg\s+%r12, %r13, 96\(%r15\)", "ppc64le": r"\baddis\s+\d+, 2,"}


def has_no_frame(code):
    lowered = re.search(r"\b(?:lay|aghi)\s+%r15, -(\d+)", code)
    if not lowered or int(lowered.group(1)) < 112 or lowered.start() > re.search(KEPT["s390x"], code).start():
        return True
    others = re.sub(r"\b(?:stmg|lmg)\s+%r12, %r13, 96\(%r15\)", "", code[lowered.end():])
    return bool(re.search(r"\b(?:89|9\d|10\d|11[01])\((?:%r\d+,\s*)?%r15\)", others))


def has_no_toc(code):
    return not re.search(r"\baddis\s+2, 12,", code[:re.search(KEPT["ppc64le"], code).start()])


def lacking(processor, file):
    """The functions of the file that lack the frame or TOC pointer they rely on, and all functions that rely on one. A
    part split off uses that of its function."""
    lacks = {"s390x": has_no_frame, "ppc64le": has_no_toc}[processor]
    relying = {name: code for name, code in functions(file)
               if re.search(KEPT[processor], code) and not name.endswith(".cold")}
    return {name for name, code in relying.items() if lacks(code)}, set(relying)


def check_frames(platform, cc, row, directory, environment):
    """The library and tests/abi/frames.c. The seeded_ functions there must be found."""
    unit, library = str(directory / "frames.o"), str(directory / "libacorn.a")
    command = [*cc, *row.flags.split(), "-fexceptions", f"-I{ROOT}/include", "-c",
               f"{ROOT}/tests/abi/frames.c", "-o", unit]
    if subprocess.run(command, env=environment).returncode:
        return ["tests/abi/frames.c does not compile"]
    (lack, relying), (lack_in_library, _) = lacking(platform.processor, unit), lacking(platform.processor, library)
    seeded = {name for name in relying if name.startswith("seeded_")}
    wrong = [f"{name} switches without a frame or TOC pointer of its own"
             for name in sorted(lack - seeded | lack_in_library)]
    wrong += [f"{name} was not found to lack what it lacks" for name in sorted(seeded - lack)]
    # With clang, s390x.h keeps nothing in the save area.
    if not seeded and (row.compiler == "gcc" or platform.processor != "s390x"):
        wrong.append("no function that relies on a frame or TOC pointer was found")
    return wrong


def check(platform, cc, row, directory, environment):
    """What is wrong with the library in `directory` and with a small program that the compiler links with it by the
    row's options: a list, empty if all is well."""
    library = directory / "libacorn.a"
    missing = sorted(public() - defined([str(library)]))
    wrong = [f"no symbol {' '.join(missing)}"] if missing else []
    if platform.processor in KEPT:
        wrong += check_frames(platform, cc, row, directory, environment)
    for form, options, inline in (("inline", [], "UCONTEXT" not in row.flags),
                                  ("exported", ["-DACO_CONFIG_NO_INLINE"], False)):
        program = directory / (f"round-trips-{form}" + (".exe" if platform.system == "Windows" else ""))
        unit = directory / f"round-trips-{form}.o"
        compile_it = [*cc, *row.flags.split(), *options, f"-I{ROOT}/include", "-c",
                      str(ROOT / "bench/platforms/acorn.c"), "-o", str(unit)]
        link_it = [*cc, *row.flags.split(), str(unit), str(library), "-o", str(program),
                   *(["-fuse-ld=lld"] if "clang" in cc[0] else []), *row.link.split(), "-lpthread"]
        if any(subprocess.run(command, capture_output=True, text=True, env=environment).returncode
               for command in (compile_it, link_it)):
            return wrong + [f"a program with the {form} switch does not link"]
        looked_at = unit if platform.system == "Windows" else program  # zig's programs have no symbols there
        if leaves_without_call(platform, looked_at) != inline:
            wrong.append("there is a call before the switch, or no switch" if inline else
                         "the exported form looks inline too")
        if executable_stack(platform, program):
            wrong.append("executable stack")
    return wrong
