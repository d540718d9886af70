"""Builds benchmark programs with CMake, cargo, go, mono and .NET, and names the compilers' versions."""
import json
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


CSHARP_SOURCE = BENCH / "peers" / "csharp" / "main.cs"
DOTNET = "3.1.23"  # the runtime that PyPI has, without a compiler: dotnetcore2


def write_runner(program, *command):
    """`program` becomes a script that runs the command with its own arguments."""
    program.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
    program.chmod(0o755)


def build_with_mono(program):
    """Compiles to PROGRAM.exe; `program` becomes a script that runs it."""
    for tool in ("mcs", "mono"):
        if not shutil.which(tool):
            return f"{tool} is not installed (mono-mcs, mono-runtime)"
    compiled = program.with_suffix(".exe")
    write_runner(program, "mono", compiled)
    return run_tool("mcs", ["mcs", "-optimize+", f"-out:{compiled}", CSHARP_SOURCE], program.with_suffix(".log"))


def install_dotnet(directory):
    """The runtime's folder under `directory`, and why it is not there, or None."""
    found = directory / "dotnetcore2" / "bin"
    if (found / "dotnet").exists():
        return found, None
    command = ["python3", "-m", "pip", "install", "-q", "--no-deps", "--target", directory, f"dotnetcore2=={DOTNET}"]
    return found, run_tool("python3", command, directory.with_suffix(".log"))


def build_with_dotnet(program):
    """Compiles by mcs against .NET's own assemblies; `program` becomes a script that runs it in .NET."""
    runtime, failure = install_dotnet(program.with_name("dotnet-runtime"))
    if failure:
        return failure
    framework = runtime / "shared" / "Microsoft.NETCore.App" / DOTNET
    options = {"framework": {"name": "Microsoft.NETCore.App", "version": DOTNET},
               "configProperties": {"System.Globalization.Invariant": True,
                                    "System.Runtime.TieredCompilation": False}}
    compiled = program.with_suffix(".dll")
    compiled.with_suffix(".runtimeconfig.json").write_text(json.dumps({"runtimeOptions": options}))
    (runtime / "dotnet").chmod(0o755)
    write_runner(program, runtime / "dotnet", "exec", compiled)
    references = (f"-r:{framework / name}.dll" for name in ("System.Private.CoreLib", "System.Runtime",
                                                            "System.Collections", "System.Console"))
    return run_tool("mcs", ["mcs", "-optimize+", "-nostdlib", "-noconfig", *references, "-target:exe",
                            f"-out:{compiled}", CSHARP_SOURCE], program.with_suffix(".log"))
