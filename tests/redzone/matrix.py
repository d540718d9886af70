#!/usr/bin/env python3
"""matrix.py sweep [--functions N] [--seed S] | seeded | vzeroupper    [--compilers CC,...] [--jobs N]

sweep       generated functions, compiled by every compiler here at every level: check.py must find nothing, and the
            functions, run on a copying stack, must give what their plain twins give
seeded      check.py must flag seeded violations: hand-written ones, a wrong header's, and a whole program's; the
            program's results must then be wrong too
vzeroupper  a unit compiled with AVX clears the upper halves before each switch, one without does not

Exit 1 on a failure, 77 when no compiler was found. A compiler that is not here is named."""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COMPILERS = ["gcc", "clang-19", "clang-16", "clang-15", "clang-14"]
INCLUDES = ["-I", ROOT + "/include", "-I", ROOT + "/src", "-I", ROOT + "/tests", "-I", HERE]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
SHARED = "-DACO_CONFIG_SHARE_FPU_MXCSR_ENV"
LEVELS = [
    "-O0", "-O1 " + SHARED, "-O2", "-O3 " + SHARED, "-Os", "-O3 -flto", "-O2 -fPIC",
    "-O2 -fno-omit-frame-pointer " + SHARED, "-O0 -fPIC -fno-omit-frame-pointer",
    "-O3 -fcf-protection -fstack-clash-protection",
]
COMMAND_TIMEOUT = 300
RUN_TIMEOUT = 60


def has_avx2():
    try:
        with open("/proc/cpuinfo") as cpuinfo:
            return re.search(r"\bavx2\b", cpuinfo.read()) is not None
    except OSError:
        return False


def sources():
    """The C files of libacorn."""
    listed = subprocess.run(["sh", ROOT + "/tools/sources.sh", "acorn"], stdout=subprocess.PIPE, text=True, check=True)
    return [os.path.join(ROOT, name) for name in listed.stdout.split()]


def command(arguments, timeout=COMMAND_TIMEOUT):
    """Exit status (or None after the timeout) and what was printed."""
    try:
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return None, "%s: no end within %d s" % (arguments[0], timeout)


def check(files, *options):
    return command([sys.executable, HERE + "/check.py"] + list(options) + files)


def build(compiler, flags, inputs, output, only_compile=False):
    """None, or what went wrong."""
    more = ["-c"] if only_compile else ["-pthread"]
    # its own lld, or a newer one, which reads its code too
    if "-flto" in flags and compiler.startswith("clang") and not only_compile:
        version = compiler.partition("-")[2] or "0"
        newer = [
            name for name in ["ld.lld-" + version, "ld.lld"] + ["ld.lld-%d" % n for n in range(int(version), 30)]
            if shutil.which(name)
        ]
        more += ["--ld-path=" + shutil.which(newer[0])] if newer else ["-fuse-ld=lld"]
    status, text = command([compiler] + WARNINGS + flags.split() + INCLUDES + inputs + more + ["-o", output])
    return None if status == 0 else text


def shorten(text, lines=12):
    all_lines = text.splitlines()
    more = ["... %d lines more" % (len(all_lines) - lines)] if len(all_lines) > lines else []
    return "\n".join("    " + line for line in all_lines[:lines] + more)


class Matrix:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.failures = []
        self.count = 0
        wanted = arguments.compilers.split(",") if arguments.compilers else COMPILERS
        self.compilers = [c for c in wanted if shutil.which(c)]
        for c in wanted:
            if c not in self.compilers:
                print("skipped: %s is not installed" % c)

    def path(self, *parts):
        return os.path.join(self.folder, re.sub(r"[^A-Za-z0-9.]+", "_", "-".join(parts)))

    def fail(self, what, text):
        self.failures.append(what)
        print("%s: failed\n%s" % (what, shorten(text)))

    def all(self, function, cases):
        """function(*case) for each case, some at a time; it returns (what, None or what went wrong)."""
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            for what, wrong in pool.map(lambda case: function(*case), cases):
                self.count += 1
                if wrong is not None:
                    self.fail(what, wrong)

    def generate(self):
        path = self.path("generated.c")
        status, text = command([sys.executable, HERE + "/generate.py", str(self.arguments.seed),
                                str(self.arguments.functions)])
        if status != 0:
            raise RuntimeError(text)
        with open(path, "w") as out:
            out.write(text)
        return path

    def library(self, compiler):
        """The library's objects, for the levels without -flto."""
        folder = self.path(compiler, "library")
        os.mkdir(folder)
        objects = []
        for source in sources():
            objects.append(os.path.join(folder, os.path.relpath(source, ROOT).replace("/", "_") + ".o"))
            wrong = build(compiler, "-O2 -fPIC -fexceptions", [source], objects[-1], only_compile=True)
            if wrong:
                raise RuntimeError(wrong)
        return objects

    # -- sweep --

    def sweep(self):
        generated, levels = self.generate(), LEVELS + ["-O3 -mavx2"]
        libraries = {c: self.library(c) for c in self.compilers}
        cases = [(c, libraries[c], level, generated) for level in levels for c in self.compilers]
        self.all(self.sweep_one, cases)
        print("%d functions (seed %d), %d builds by %s" %
              (self.arguments.functions, self.arguments.seed, self.count, ", ".join(self.compilers)))

    def sweep_one(self, compiler, library, level, generated):
        what, program = "%s %s" % (compiler, level), self.path(compiler, level)
        wrong = build(compiler, level, [generated, HERE + "/run.c"] + (sources() if "-flto" in level else library),
                      program)
        if wrong:
            return what, wrong
        status, text = check([program], "--at-least", str(self.arguments.functions))
        if status == 0 and ("-mavx2" not in level or has_avx2()):
            status, text = command([program], RUN_TIMEOUT)
        os.remove(program)
        return what, None if status == 0 else "exit status %s\n%s" % (status, text)

    # -- seeded violations --

    def seeded(self):
        generated = self.generate()
        self.all(self.seeded_assembly, [(c,) for c in self.compilers])
        levels = ("-O0", "-O1", "-O2", "-O3", "-O2 -fno-omit-frame-pointer")
        self.all(self.seeded_header, [(c, level) for c in self.compilers for level in levels])
        self.all(self.seeded_program, [(c, self.library(c), generated) for c in self.compilers])
        print("%d seeded violations by %s" % (self.count, ", ".join(self.compilers)))

    def seeded_assembly(self, compiler):
        what, output = compiler + " seeded.S", self.path(compiler, "seeded.o")
        wrong = build(compiler, "-O0", [HERE + "/seeded.S"], output, only_compile=True)
        if wrong:
            return what, wrong
        with open(HERE + "/seeded.S") as source:
            expected = set(re.findall(r"^FUNCTION (bad_\w+)", source.read(), re.M))
        status, text = check([output])
        flagged = set(name.split(".")[0] for name in re.findall(r"^[^ ]+: ([\w.]+): ", text, re.M))
        if status != 1 or flagged != expected:
            return what, "status %s; not flagged: %s; wrongly flagged: %s\n%s" % (
                status, sorted(expected - flagged), sorted(flagged - expected), text)
        return what, None

    def seeded_header(self, compiler, level):
        """At -O0 and with frame pointers too: there by rbp. Compilers differ in which functions they choose."""
        what, output = "%s %s seeded.c" % (compiler, level), self.path(compiler, level, "seeded-c.o")
        wrong = build(compiler, level, [HERE + "/seeded.c"], output, only_compile=True)
        if wrong:
            return what, wrong
        status, text = check([output])
        flagged = set(re.findall(r": (seeded_\w+): ", text))
        right = status == 1 and {"seeded_no_call", "seeded_array"} <= flagged
        return what, None if right else "status %s\n%s" % (status, text)

    def seeded_program(self, compiler, library, generated):
        what, program = compiler + " -DSEEDED", self.path(compiler, "seeded-program")
        wrong = build(compiler, "-O2 -DSEEDED", [generated, HERE + "/run.c"] + library, program)
        if wrong:
            return what, wrong
        status, text = check([program])
        if status != 1:
            return what, "check.py: exit status %s\n%s" % (status, text)
        status, text = command([program], RUN_TIMEOUT)
        return what, (None if status != 0 else
                      "its results are right: copying loses no red zone, or there was none\n" + text)

    # -- vzeroupper --

    def vzeroupper(self):
        cases = [(c, flags, expected) for c in self.compilers
                 for flags, expected in (("-O2 -mavx", "yes"), ("-O0 -mavx2", "yes"),
                                         ("-O3 -mavx512f -mavx512bw", "yes"), ("-O2", "no"), ("-O0", "no"))]
        self.all(self.vzeroupper_one, cases)
        print("%d builds by %s" % (self.count, ", ".join(self.compilers)))

    def vzeroupper_one(self, compiler, flags, expected):
        what, output = "%s %s abi/live.c" % (compiler, flags), self.path(compiler, flags, "live.o")
        wrong = build(compiler, flags, [ROOT + "/tests/abi/live.c"], output, only_compile=True)
        if wrong:
            return what, wrong
        status, text = check([output], "--vzeroupper", expected, "--at-least", "10")
        return what, None if status == 0 else text


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["sweep", "seeded", "vzeroupper"])
    parser.add_argument("--functions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compilers", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="acorn-redzone-") as folder:
        matrix = Matrix(arguments, folder)
        if not matrix.compilers:
            return 77
        getattr(matrix, arguments.what)()
    if matrix.failures:
        print("%d failed: %s" % (len(matrix.failures), "; ".join(matrix.failures)))
    return 1 if matrix.failures else 0


if __name__ == "__main__":
    sys.exit(main())
