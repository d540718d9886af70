#!/usr/bin/env python3
"""matrix.py [--programs N] [--seed S] [--compilers CC,...] [--every N] [--jobs N]

Random programs with generators (generate.py) by every compiler here in every row below: run.c must find that each
function returns what its plain twin does. Eight functions make a program, a new seed each; every program is built in
every row. Exit 1 on a failure, 77 without any compiler. Compilers and rows that cannot be had are named. A failing
program is kept."""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INCLUDES = ["-I", ROOT + "/include", "-I", ROOT + "/src", "-I", ROOT + "/tests", "-I", HERE]
FUNCTIONS = 8
ROWS = {
    "gcc": [
        "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-O2 -fno-omit-frame-pointer", "-O2 -fPIC",
        "-O2 -fstack-protector-strong -mavx2", "-O3 -fcf-protection -fstack-clash-protection", "-m32 -O0",
        "-m32 -O1 -fPIC", "-m32 -O2", "-m32 -O3 -msse2 -mfpmath=sse", "-m32 -Os"
    ],
    "clang": [
        "-O0", "-O1", "-O2", "-O3 -mavx2", "-Os", "-O2 -fno-omit-frame-pointer", "-O2 -fPIC",
        "-O2 -fstack-protector-strong", "-m32 -O0 -fPIC", "-m32 -O2", "-m32 -Oz"
    ],
}


def command(arguments, timeout=600):
    try:
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return 124, "no end within %d s" % timeout


def has_avx2():
    try:
        with open("/proc/cpuinfo") as cpuinfo:
            return "avx2" in cpuinfo.read()
    except OSError:
        return False


def sources():
    """The C files of libacorn."""
    listed = subprocess.run(["sh", ROOT + "/tools/sources.sh", "acorn"], stdout=subprocess.PIPE, text=True, check=True)
    return [os.path.join(ROOT, name) for name in listed.stdout.split()]


def build_library(folder, compiler, word):
    """Its objects, or None."""
    objects = os.path.join(folder, "%s%s" % (os.path.basename(compiler), word))
    os.mkdir(objects)
    for source in sources():
        out = os.path.join(objects, source[len(ROOT) + 1:].replace("/", "_") + ".o")
        status, text = command([compiler] + word.split() +
                               ["-std=c11", "-O2", "-fPIC", "-fexceptions", "-fvisibility=hidden"] + INCLUDES +
                               ["-c", source, "-o", out])
        if status:
            return None, text
    return [os.path.join(objects, f) for f in sorted(os.listdir(objects))], None


def run(folder, compiler, row, library, seed):
    """None, or what went wrong."""
    source = os.path.join(folder, "generated_%d.c" % seed)
    program = os.path.join(folder, "program_%s_%d" % ("".join(c if c.isalnum() else "_" for c in compiler + row), seed))
    status, text = command([compiler] + row.split() + ["-std=gnu11", "-fexceptions"] + INCLUDES +
                           [source, HERE + "/run.c"] + library + ["-pthread", "-o", program])
    if status == 0:
        status, text = command([program], 120)
    if status == 0:
        os.remove(program)
        return None
    kept = os.path.join(tempfile.gettempdir(), os.path.basename(source))
    shutil.copy(source, kept)
    return "%s %s, seed %d (%s): status %d\n%s" % (compiler, row, seed, kept, status, "\n".join(text.splitlines()[:3]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compilers", default="gcc,clang-19,clang-14")
    parser.add_argument("--every", type=int, default=1, help="only every Nth row of each compiler")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    arguments = parser.parse_args()
    compilers = [c for c in arguments.compilers.split(",") if shutil.which(c)]
    missing = [c for c in arguments.compilers.split(",") if c not in compilers]
    tasks, failures = [], []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        seeds = range(arguments.seed, arguments.seed + arguments.programs)
        for seed in seeds:
            text = subprocess.run([sys.executable, HERE + "/generate.py", str(seed), str(FUNCTIONS)],
                                  stdout=subprocess.PIPE, check=True).stdout
            with open(os.path.join(folder, "generated_%d.c" % seed), "wb") as out:
                out.write(text)
        for compiler in compilers:
            libraries = {}
            for word in ["", "-m32"]:
                libraries[word], why = build_library(folder, compiler, word)
                if not libraries[word]:
                    missing.append("%s %s" % (compiler, word))
                    if not word:
                        failures.append("%s: the library does not build\n%s" % (compiler, why))
            for row in ROWS["clang" if "clang" in compiler else "gcc"][::arguments.every]:
                library = libraries["-m32" if "-m32" in row else ""]
                if library and ("avx2" not in row or has_avx2()):
                    tasks += [pool.submit(run, folder, compiler, row, library, seed) for seed in seeds]
                elif library:
                    missing.append("%s %s" % (compiler, row))
        failures += [task.result() for task in tasks if task.result()]
    print("\n".join(failures + [
        "generator.matrix: %d programs of %d functions, seeds from %d; %d failures" %
        (len(tasks), FUNCTIONS, arguments.seed, len(failures))
    ] + ["skipped: " + m for m in missing]))
    return 77 if not compilers else 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
