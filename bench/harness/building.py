"""Builds benchmark programs with CMake, cargo, go and mono, and names the compilers' versions."""
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang-19", "clang++-19")}
VERSION_LIMIT = 120  # seconds


# ---- Versions ----

def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=VERSION_LIMIT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def version(compiler):
    number = output_of(compiler, "-dumpfullversion" if compiler == "gcc" else "-dumpversion")
    return f"{compiler.split('-')[0]} {number}" if number else ""


def rust_version():
    return " ".join(output_of("rustc", "--version").split()[:2])


def go_version():
    return " ".join(output_of("go", "version").split()[2:3]).replace("go", "go ", 1)


def mono_version():
    return " ".join(output_of("mcs", "--version").split()[-1:])


# ---- Builds. Each function returns None, or the reason why the build failed ----

def run_logged(command, log, **options):
    with open(log, "ab") as out:
        try:
            code = subprocess.run(command, stdout=out, stderr=out, **options).returncode
        except OSError as error:
            return str(error)
    if code == 0:
        return None
    lines = [line.strip() for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
    errors = (i for i, line in enumerate(lines) if re.search(r"\berror:|undefined reference", line))
    first = next(errors, max(len(lines) - 1, 0))
    return f"{' '.join(lines[first:first + 2]) or 'failed'} (see {log})"


def run_tool(tool, command, log, **options):
    """run_logged() into a new log, if `tool` is installed."""
    if not shutil.which(tool):
        return f"{tool} is not installed"
    log.unlink(missing_ok=True)
    return run_logged(command, log, **options)


def configure(compiler, directory, *options, source=ROOT):
    """CMake's first step, for the checkout `source`."""
    cc, cxx = COMPILERS[compiler]
    for tool in (cc, cxx):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    directory.mkdir(parents=True, exist_ok=True)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    return run_tool("cmake", ["cmake", "-S", source, "-B", directory, *generator, f"-DCMAKE_C_COMPILER={cc}",
                              f"-DCMAKE_CXX_COMPILER={cxx}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DACORN_BENCH=ON",
                              "-DACORN_TESTS=OFF", *options], directory / "build.log")


def build_targets(directory, *targets):
    """CMake's second step; no targets means all."""
    command = ["cmake", "--build", directory, "--parallel", str(os.cpu_count())]
    return run_logged([*command, *(["--target", *targets] if targets else [])], directory / "build.log")


def build_with_cmake(compiler, directory, *options):
    return configure(compiler, directory, *options) or build_targets(directory)


def known_targets(directory):
    """The names of what build_targets() can build."""
    return set(re.findall(r"[\w.+-]+", output_of("cmake", "--build", str(directory), "--target", "help")))


def build_with_cargo(crate, directory, peers=BENCH / "peers"):
    return run_tool("cargo", ["cargo", "build", "--release", "--locked"],
                    directory.parent / f"{directory.name}-{crate}.log", cwd=peers / crate,
                    env={**os.environ, "CARGO_TARGET_DIR": str(directory)})


def build_with_go(program, package, module=BENCH / "peers" / "go"):
    return run_tool("go", ["go", "build", "-buildvcs=false", "-o", program, package], program.with_suffix(".log"),
                    cwd=module)


def build_with_mono(program):
    """Compiles to PROGRAM.exe; `program` becomes a script that runs it."""
    for tool in ("mcs", "mono"):
        if not shutil.which(tool):
            return f"{tool} is not installed (mono-mcs, mono-runtime)"
    compiled = program.with_suffix(".exe")
    program.write_text(f'#!/bin/sh\nexec mono {shlex.quote(str(compiled))} "$@"\n')
    program.chmod(0o755)
    return run_tool("mcs", ["mcs", "-optimize+", f"-out:{compiled}", BENCH / "peers" / "csharp" / "main.cs"],
                    program.with_suffix(".log"))
