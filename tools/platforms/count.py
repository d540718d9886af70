#!/usr/bin/env python3
"""Counts, with qemu, the instructions of one resume and yield for each platform, beside other switches. Writes a line
of JSON for each to build/platforms/counts.jsonl, from which document.py makes the table of docs/platforms.md.

    python3 tools/platforms/count.py [PLATFORM...]

A program of bench/platforms loops 2000 and 1000 times; the difference of the instructions that qemu names in its log,
over 1000."""
import json
import os
import subprocess
import sys
import threading
import time

from objects import SOURCES
from rows import PLATFORMS, Row
from run import BUILD, ENVIRONMENT, ROOT, Missing, compilers, find, output, target_option

PROGRAMS = ROOT / "bench/platforms"
BOOST = "boost1.81"  # Debian's source package; its assembly, by platform
BOOST_ASSEMBLY = {"x86_64": "x86_64_sysv", "i386": "i386_sysv", "aarch64": "arm64_aapcs", "arm": "arm_aapcs",
                  "riscv64": "riscv64_sysv", "loongarch64": "loongarch64_sysv", "ppc64le": "ppc64_sysv",
                  "s390x": "s390x_sysv"}
EMULATORS = {"x86_64": "qemu-x86_64", "i386": "qemu-i386"}  # for the count alone
PLATFORMS_COUNTED = {"x86_64": ("gcc", "clang"), "i386": ("gcc", "clang"), "aarch64": ("gcc", "clang"),
                     "arm": ("gcc", "clang"), "riscv64": ("gcc", "clang"), "loongarch64": ("zig",),
                     "ppc64le": ("gcc", "clang"), "s390x": ("gcc", "clang")}
FLAGS = {"i386": "-m32 -O2", "arm": "-marm -O2"}


def boost():
    """The folder of Boost.Context's assembly: fetched as Debian's source package, with an apt of its own lists."""
    here = BUILD / "boost"
    if not (here / "jump_x86_64_sysv_elf_gas.S").exists():
        (here / "lists/partial").mkdir(parents=True, exist_ok=True)
        (here / "sources.list").write_text("deb-src http://deb.debian.org/debian bookworm main\n")
        apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={here}/sources.list", "-o",
               "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={here}/lists", "-o", f"Dir::Cache={here}"]
        for command in (["update"], ["source", "--download-only", BOOST]):
            subprocess.run([*apt, *command], cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for archive in here.glob("*.orig.tar.*"):
            subprocess.run(["tar", "-xf", archive, "--wildcards", "--strip-components=5", "*/libs/context/src/asm/*.S"],
                           cwd=here)
    return here


def programs(platform):
    """Name, sources and options of each program to count."""
    yield "acorn", [str(PROGRAMS / "acorn.c"), *SOURCES], ["-fexceptions"]
    yield "classic", [str(PROGRAMS / "classic.c"), str(PROGRAMS / "classic.S")], []
    assembly = [str(boost() / f"{part}_{BOOST_ASSEMBLY[platform]}_elf_gas.S") for part in ("jump", "make")]
    yield "boost", [str(PROGRAMS / "boost.c"), *assembly], []
    yield "empty", [str(PROGRAMS / "empty.c")], []


def executed(qemu, program, loops):
    """The instructions that the program executes: qemu logs a line for each."""
    ends = os.pipe()
    count = [0]

    def reader():
        with os.fdopen(ends[0], "rb") as log:
            for text in iter(lambda: log.read(1 << 20), b""):
                count[0] += text.count(b"\nTrace ") + text.startswith(b"Trace ")
    counting = threading.Thread(target=reader)
    counting.start()
    status = subprocess.run([*qemu, "-singlestep", "-d", "nochain,exec", "-D", f"/dev/fd/{ends[1]}", program,
                             str(loops)], pass_fds=[ends[1]], env=ENVIRONMENT).returncode
    os.close(ends[1])
    counting.join()
    if status:
        raise RuntimeError(f"exit status {status}")
    return count[0]


def main():
    directory = BUILD / "count"
    directory.mkdir(parents=True, exist_ok=True)
    unknown = set(sys.argv[1:]) - set(PLATFORMS_COUNTED)
    if unknown:
        sys.exit("not counted: " + " ".join(unknown))
    with open(BUILD / "counts.jsonl", "a") as file:
        for platform in sys.argv[1:] or PLATFORMS_COUNTED:
            for compiler in PLATFORMS_COUNTED[platform]:
                for result in count(platform, compiler, directory):
                    print(json.dumps(result), file=file, flush=True)
                    print(platform, compiler, result["impl"], result.get("instructions", result.get("why")), flush=True)


def count(platform, compiler, directory):
    result = {"platform": platform, "date": time.strftime("%Y-%m-%d"), "flags": FLAGS.get(platform, "-O2")}
    try:
        cc, _, extra = compilers(Row(platform, compiler, ""))
        qemu = [find(EMULATORS.get(platform) or PLATFORMS[platform].emulator)]
    except Missing as missing:
        return [{**result, "compiler": compiler, "impl": "acorn", "why": str(missing)}]
    if PLATFORMS[platform].debian:
        qemu += ["-L", f"/usr/{PLATFORMS[platform].debian}"]
    result["compiler"] = compiler
    result["emulator"] = output(qemu[0], "--version").splitlines()[0]
    results = []
    for impl, sources, options in programs(platform):
        program = str(directory / f"{platform}-{compiler}-{impl}")
        command = [*cc, *target_option(extra), *result["flags"].split(), *options, f"-I{ROOT}/include", f"-I{ROOT}/src",
                   *sources, "-o", program, "-lpthread"]
        if compiler == "clang":
            command.append("-fuse-ld=lld")
        built = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
        results.append({**result, "impl": impl})
        if built.returncode:
            results[-1]["why"] = "does not build"
            (directory / f"{platform}-{compiler}-{impl}.log").write_text(built.stderr)
            continue
        try:
            results[-1]["instructions"] = (executed(qemu, program, 2000) - executed(qemu, program, 1000)) / 1000
        except RuntimeError as error:
            results[-1]["why"] = str(error)
    return results


if __name__ == "__main__":
    main()
