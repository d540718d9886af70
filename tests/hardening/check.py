#!/usr/bin/env python3
"""check.py options | bti | ibt | shadow | shadow-all | refused | marks | library [--marked MARK,...] FILE...

Hardening options: what must work under them, and what they must find.

options  switches.c and the library built with each row of OPTIONS here, by every compiler, and run
bti      for AArch64, under an emulator that enforces landing pads and return addresses' signatures: switches.c passes;
         what seeded.c does is stopped; and so is switches.c when any one of our landing pads is taken away
ibt      for x86-64, the same for landing pads, which ibt.c enforces
shadow   for x86-64, return addresses, which shadow_model.c compares with those on shadow stacks: shadow_switches.c
         passes, and switches.c with the exported functions, when they are switched
shadow-all   the same with every compiler, as C and as C++; and any one of our instructions that switch them is missed
refused  options that cannot be served stop the compiler, with a message of ours
marks    the amalgamation's empty acosw.S has the marks of a unit in C: without them the whole program would lose its
         own. Not the mark of AArch64's shadow stacks (GCS), which we do not switch
library  the library's files, as the build made them: no executable stack; full RELRO; with --marked all objects have
         these marks; without it none has that of shadow stacks

Exit 1 on a failure, 77 without the tools. What cannot be had is named."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STACK_CHECKS = "-fstack-protector-%s -fstack-clash-protection"
CLEARING = "-ftrivial-auto-var-init=pattern -fzero-call-used-regs=all "
AS_LIBRARY = "-std=gnu11 -fPIC -fexceptions -fvisibility=hidden".split()
LINK = ["-pthread", "-Wl,-z,relro,-z,now,-z,noexecstack"]
GCC, CLANG = "gcc", "clang-19"
OPTIONS = [
    (GCC, "-O2 -fPIE -pie -D_FORTIFY_SOURCE=3 -fcf-protection=full " + STACK_CHECKS % "strong"),
    (GCC, "-O3 -fPIE -pie -D_FORTIFY_SOURCE=3 " + CLEARING + STACK_CHECKS % "all"),
    (GCC, "-O0 -fcf-protection=full " + STACK_CHECKS % "all"),
    (GCC, "-O2 -flto -D_FORTIFY_SOURCE=3 -fcf-protection=full " + STACK_CHECKS % "strong"),
    (GCC, "-m32 -O2 -D_FORTIFY_SOURCE=3 -fcf-protection=full " + STACK_CHECKS % "strong"),
    (CLANG, "-O2 -fPIE -pie -D_FORTIFY_SOURCE=3 -fcf-protection=full " + STACK_CHECKS % "strong"),
    (CLANG, "-O3 -fPIE -pie -D_FORTIFY_SOURCE=3 " + CLEARING + STACK_CHECKS % "all"),
    (CLANG, "-O0 -fcf-protection=full " + STACK_CHECKS % "all"),
    (CLANG, "-m32 -O2 -D_FORTIFY_SOURCE=3 -fcf-protection=full " + STACK_CHECKS % "strong"),
    (CLANG, "-O2 -flto -fuse-ld=lld -fvisibility=hidden -fsanitize=cfi"),
    (CLANG, "-O2 -flto -fuse-ld=lld -fvisibility=hidden -fsanitize=cfi -fcf-protection=full"),
]
PROGRAMS = {"C": "-x c -std=gnu11", "C, no inline switches": "-x c -std=gnu11 -DACO_CONFIG_NO_INLINE", "C++": "-x c++"}
REFUSED = [
    (CLANG + " --target=x86_64-linux-gnu -fsanitize=safe-stack", "safe-stack"),
    (CLANG + " --target=aarch64-linux-gnu -ffreestanding -ffixed-x18 -fsanitize=shadow-call-stack",
     "shadow-call-stack"),
    (CLANG + " --target=riscv64-linux-gnu -ffreestanding -fsanitize=shadow-call-stack", "shadow-call-stack"),
    (CLANG + " --target=riscv64-linux-gnu -ffreestanding -D__riscv_shadow_stack=1", "Zicfiss"),
]
MARKED = [(GCC, "-fcf-protection=" + what) for what in ["full", "branch", "return"]] + [(CLANG, "-fcf-protection=full")]
CROSS = ["aarch64-linux-gnu-gcc-12", CLANG + " --target=aarch64-linux-gnu"]
EMULATOR = "qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu".split()

failures, skipped = [], []


def run(arguments, timeout=300):
    try:
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return 124, "no end within %d s" % timeout


def check(what, holds, text=""):
    if not holds:
        failures.append(what + "".join("\n    " + line for line in text.splitlines()[:10]))
    return holds


def builds(what, arguments):
    status, text = run(arguments)
    return check(what + ": does not build", status == 0, text)


def works(compiler, folder):
    """Whether the compiler can make a program."""
    source = os.path.join(folder, "probe.c")
    with open(source, "w") as out:
        out.write("#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n")
    return shutil.which(compiler[0]) and run(compiler + [source, "-o", source + ".out"])[0] == 0


def sources():
    """The C files of libacorn."""
    listed = subprocess.run(["sh", ROOT + "/tools/sources.sh", "acorn"], stdout=subprocess.PIPE, text=True, check=True)
    return [os.path.join(ROOT, name) for name in listed.stdout.split()]


def build_library(what, compiler, folder):
    """Its objects, or None."""
    objects = []
    for source in sources():
        objects.append(os.path.join(folder, os.path.basename(source) + ".o"))
        if not builds(what, compiler + includes() + AS_LIBRARY + ["-c", source, "-o", objects[-1]]):
            return None
    return objects


def includes(root=ROOT):
    return ["-I", root + "/include", "-I", root + "/src", "-I", ROOT + "/tests"]


def as_cxx(compiler):
    return [
        re.sub("gcc", "g++", compiler[0]) if "gcc" in compiler[0] else compiler[0].replace("clang", "clang++")
    ] + compiler[1:]


def build_program(what, compiler, kind, library, program, root=ROOT, source="switches.c"):
    driver = as_cxx(compiler) if kind == "C++" else compiler
    return builds(
        what, driver + ["-Wall", "-Wextra", "-Werror", "-fexceptions"] + includes(root) + PROGRAMS[kind].split() +
        [HERE + "/" + source, "-x", "none"] + library + LINK + ["-o", program])


def executable_stack(text):
    """By readelf -lW of a program or shared library."""
    flags = re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+(R?W?E?)\s", text)
    return not flags or "E" in flags.group(1)


def options():
    ran = 0
    for name, flags in OPTIONS:
        with tempfile.TemporaryDirectory() as folder:
            compiler, what = [name] + flags.split(), "%s %s" % (name, flags)
            if not works(compiler, folder):
                skipped.append("%s: cannot build here" % what)
                continue
            library = build_library(what, compiler, folder)
            for kind in PROGRAMS if library else []:
                program = os.path.join(folder, "program")
                if build_program(what + ", " + kind, compiler, kind, library, program):
                    status, text = run([program])
                    check("%s, %s: status %d" % (what, kind, status), status == 0, text)
                    text = run(["readelf", "-lW", program])[1]
                    check("%s, %s: an executable stack" % (what, kind), not executable_stack(text), text)
                    ran += 1
    return ran


def pads(path, pattern):
    """For each of the file's landing pads where it is, and the text without it. Of what the pattern finds, its group
    stays."""
    with open(path) as source:
        text = source.read()
    for pad in re.finditer(pattern, text):
        where = "%s:%d" % (os.path.relpath(path, ROOT), text.count("\n", 0, pad.start()) + 1)
        yield where, text[:pad.start()] + pad.group(1) + text[pad.end():]


def copied(folder, path, text):
    """A copy of the tree, of which one file has this text."""
    root = os.path.join(folder, "tree")
    shutil.rmtree(root, ignore_errors=True)
    for part in ["include", "src"]:
        shutil.copytree(os.path.join(ROOT, part), os.path.join(root, part))
    with open(os.path.join(root, path), "w") as out:
        out.write(text)
    return root


def check_pads(what, compiler, kinds, arch, in_assembly, extra, execute, stopped, folder, mutants=True):
    """switches.c passes, and is stopped without any one of our landing pads: the header's, and those that the pattern
    finds in the library's assembly. `execute` runs a program; `stopped`: the status of one that was stopped."""
    ran, program, library = 0, os.path.join(folder, "program"), build_library(what, compiler, folder)
    for kind in kinds if library else []:
        if build_program(what, compiler, kind, library + extra, program):
            status, text = execute(program)
            check("%s, %s: status %d" % (what, kind, status), status == 0, text)
            ran += 1
    if not library or not mutants:
        return ran

    path = "include/aco/arch/%s.h" % arch
    for pad, text in pads(os.path.join(ROOT, path), r'("1:\\t") ACO__LANDING_PAD'):
        if build_program(pad, compiler, "C", library + extra, program, copied(folder, path, text)):
            status, text = execute(program)
            check("%s: without the landing pad of %s: status %d" % (what, pad, status), status == stopped, text)
            ran += 1
    path, mutant = "src/coroutine/entry/%s.inc" % arch, os.path.join(folder, "mutant.o")
    line = '#include "coroutine/entry/%s.inc"' % arch
    including = next(source for source in sources() if line in open(source).read())
    for pad, text in pads(os.path.join(ROOT, path), in_assembly):
        root = copied(folder, path, text)
        if builds(pad, compiler + includes(root) + AS_LIBRARY + ["-c", including.replace(ROOT, root), "-o", mutant]):
            unchanged = [o for o in library if os.path.basename(o) != os.path.basename(including) + ".o"]
            statuses, objects = [], [mutant] + unchanged + extra
            for kind in kinds:
                if stopped not in statuses and build_program(pad, compiler, kind, objects, program):
                    statuses.append(execute(program)[0])
            check("%s: without the landing pad of %s: statuses %s" % (what, pad, statuses), stopped in statuses)
            ran += 1
    return ran


def emulate(program):
    return run(EMULATOR + [program])


def bti():
    ran = 0
    for cross in CROSS:
        with tempfile.TemporaryDirectory() as folder:
            compiler = cross.split() + "-O2 -mbranch-protection=standard -Wl,--wrap=main".split()
            program, enforcing = os.path.join(folder, "seeded"), os.path.join(folder, "enforcing.o")
            if not shutil.which(EMULATOR[0]) or not works(cross.split(), folder):
                skipped.append("bti: %s or %s" % (cross, EMULATOR[0]))
                continue
            if not builds(cross, compiler + ["-c", HERE + "/bti.c", "-o", enforcing]):
                continue
            if builds(cross, compiler + [HERE + "/seeded.c", enforcing] + LINK + ["-o", program]):
                for fault, wanted in [("", 0), ("pad", -signal.SIGILL), ("signature", -signal.SIGSEGV)]:
                    status, text = run(EMULATOR + [program, fault])
                    check("%s: seeded.c %s: status %d" % (cross, fault, status), status == wanted, text)
            kinds = [kind for kind in PROGRAMS if kind != "C++" or works(as_cxx(compiler[:-1]), folder)]
            # not 36, at aco__cancel_landing: gcc 12's unwinder gets there by `ret`
            pad_in_assembly = r'()"\\thint #34\\n"'
            ran += check_pads(cross, compiler, kinds, "aarch64", pad_in_assembly, [enforcing], emulate, -signal.SIGILL,
                              folder)
    return ran


def ibt():
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        tool = os.path.join(folder, "ibt")
        if not works([GCC], folder) or not builds("ibt.c",
                                                  [GCC, "-O2", "-Wall", "-Werror", HERE + "/ibt.c", "-o", tool]):
            skipped.append("ibt: no " + GCC)
            return 0

        def execute(program):
            main_at = re.search(r"^ *\d+: (\w+) .* main$", run(["readelf", "-sW", program])[1], re.M)
            return run([tool, main_at.group(1), program])

        for name in [GCC, CLANG]:
            compiler = [name] + "-O2 -fcf-protection=branch -no-pie".split()
            if not works(compiler, folder):
                skipped.append("ibt: no " + name)
                continue
            # In assembly: the pads of a generator's beginning and of the exported functions' arrivals.
            ran += check_pads(name, compiler, PROGRAMS if name == GCC else ["C++"], "x86_64",
                              r'((?<=undefined rip\\n"\n        )"|"1:)\\tendbr64(?=\\n")', [], execute, 3, folder,
                              name == GCC)
    return ran


def shadow(everything=False):
    ran, exported = 0, {"aco_yield", "aco_yield1", "aco_yield_value"}
    with tempfile.TemporaryDirectory() as folder:
        tool, program = os.path.join(folder, "model"), os.path.join(folder, "program")
        build = [GCC, "-O2", "-Wall", "-Werror", HERE + "/shadow_model.c", "-o", tool]
        if not works([GCC], folder) or not builds("shadow_model.c", build):
            skipped.append("shadow: no " + GCC)
            return 0

        def ends(what, status, text, options=(), arguments=()):
            main_at = re.search(r"^ *\d+: (\w+) .* main$", run(["readelf", "-sW", program])[1], re.M)
            got, said = run([tool, *options, main_at.group(1), program, *arguments])
            check("%s %s: status %d" % (what, " ".join([*options, *arguments]), got), got == status and text in said,
                  said)

        def miss_each(what, is_wanted):
            """Takes away each of the instructions in functions that are wanted; which functions had one."""
            function, found = "", []
            for line in run(["objdump", "-d", "--no-show-raw-insn", program])[1].splitlines():
                label = re.match(r"\w+ <(\S+)>:", line)
                function = label.group(1) if label else function
                instruction = re.match(r" *(\w+):\s+(rdsspq|rstorssp|saveprevssp|incsspq)\b", line)
                if instruction and is_wanted(function):
                    address, name = instruction.groups()
                    ends("%s, %s in %s" % (what, name, function), 3, "shadow_model: ", ["-without", "0x" + address])
                    found.append(function)
            return found

        for name in [GCC, CLANG] if everything else [GCC]:
            compiler = [name] + "-O2 -fcf-protection=full -no-pie -DSHADOW_STACKS".split()
            if not works(compiler, folder):
                skipped.append("shadow: no " + name)
                continue
            library = build_library(name, compiler, folder)
            for kind in PROGRAMS if library else []:
                what = "%s, %s" % (name, kind)
                is_exported = "no inline" in kind
                if (everything or is_exported) and build_program(what, compiler, kind, library, program):
                    ends(what + ", switches.c", 0, "passed")
                    ran += 1
                    if everything and is_exported:
                        missed = miss_each(what, lambda function: function in exported)
                        check("%s: %s look for a shadow stack" % (what, missed), set(missed) == exported)
                        ran += len(missed)
                source = "shadow_switches.c"
                if everything and not is_exported or kind == "C++":
                    if not build_program(what, compiler, kind, library, program, ROOT, source):
                        continue
                    what += ", " + source
                    ends(what, 0, "passed")
                    ends(what, 0, "passed", ["-most", "0"], ["refused"])
                    ends(what, 0, "passed", ["-most", "3"], ["few"])
                    ends(what, 128 + signal.SIGABRT, "aco_in_stack_open: the thread has a shadow stack", [],
                         ["in-stack"])
                    ran += 1
                    if everything and kind == "C++":
                        ran += len(miss_each(what, lambda function: function not in exported | {"main"}))
    return ran


def refused():
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "unit.c")
        with open(source, "w") as out:
            out.write("#include <stddef.h>\n#include <stdint.h>\n#include \"aco.h\"\n")
        for command, reason in REFUSED:
            for define in [[], ["-DACO_CONFIG_NO_INLINE"]]:
                compiler = command.split()
                if not shutil.which(compiler[0]):
                    skipped.append("refused: no " + compiler[0])
                    continue
                status, text = run(compiler + define + includes() + ["-fsyntax-only", source])
                check("%s: status %d" % (" ".join(compiler + define), status),
                      status != 0 and re.search("error: .*acorn: .*" + reason, text), text)
                ran += 1
    return ran


def features(file):
    """Its marks, except GCS, which binutils before 2.44 call by its number."""
    return re.findall(r"feature: (.*?)(?:, GCS|, <unknown: 4>)?$", run(["readelf", "-nW", file])[1], re.M)


def marks():
    ran = 0
    rows = MARKED + [(cross, "-mbranch-protection=" + what) for cross in CROSS
                     for what in ["standard", "bti", "pac-ret"]]
    with tempfile.TemporaryDirectory() as folder:
        unit, empty = os.path.join(folder, "unit.c"), os.path.join(folder, "acosw.S")
        open(unit, "w").write("int in_c(void) { return 0; }\n")
        builds("amalgamation", ["sh", ROOT + "/tools/amalgamate.sh", ROOT, folder, "src/base/error.c"])
        for name, flags in rows:
            compiler, what = name.split() + flags.split(), "%s %s" % (name, flags)
            if not shutil.which(compiler[0]):
                skipped.append(what)
            elif all([builds(what, compiler + ["-c", source, "-o", source + ".o"]) for source in (unit, empty)]):
                wanted, got = features(unit + ".o"), features(empty + ".o")
                check("%s: acosw.S is marked %s, a unit in C %s" % (what, got, wanted), wanted and got == wanted)
                ran += 1
    return ran


def library(marks, files):
    for path in files:
        if path.endswith(".a"):
            text = run(["readelf", "-SW", path])[1]
            objects = text.count("There are ")  # section headers, once for each object
            check(
                "%s: %d objects, %d say what stack they need" % (path, objects, text.count(".note.GNU-stack")),
                objects > 10 and text.count(".note.GNU-stack") == objects
                and not re.search(r"\.note\.GNU-stack.* X", text))
            notes = run(["readelf", "-nW", path])[1]
            for mark in marks:
                marked = len(re.findall(r"feature: .*\b%s\b" % mark, notes))
                check("%s: %d of %d objects are marked %s" % (path, marked, objects, mark), marked == objects, notes)
        else:
            text = run(["readelf", "-lW", path])[1]
            check("%s: an executable stack" % path, not executable_stack(text), text)
            check("%s: no RELRO" % path, "GNU_RELRO" in text, text)
            text = run(["readelf", "-dW", path])[1]
            check("%s: lazy binding" % path, "NOW" in text, text)
            notes = run(["readelf", "-nW", path])[1]
        check("%s: made for shadow stacks" % path, "SHSTK" in marks or not re.search(r"SHSTK|\bGCS\b", notes), notes)
    return len(files)


def main():
    marked = sys.argv[2:3] == ["--marked"]
    commands = {"options": options, "bti": bti, "ibt": ibt, "refused": refused, "marks": marks,
                "shadow": shadow, "shadow-all": lambda: shadow(True),
                "library": lambda: library(sys.argv[3].split(",") if marked else [], sys.argv[4 if marked else 2:])}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    if not shutil.which("readelf"):
        print("skipped: no readelf")
        return 77
    ran = commands[sys.argv[1]]()
    verdict = "hardening.%s: %d checked, %d failures" % (sys.argv[1], ran, len(failures))
    print("\n".join(failures + [verdict] + ["skipped: " + what for what in skipped]))
    return 1 if failures else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
