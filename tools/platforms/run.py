#!/usr/bin/env python3
"""Builds and tests the library for each row of rows.py (or those named) and appends a line of JSON for each to
build/platforms/results.jsonl, from which document.py makes the tables of docs/platforms.md.

    python3 tools/platforms/run.py [--cut] [--list] [NAME...]

--cut: what CI runs, a few tests of the rows marked for it, or of those named. Prints a line for each row, what failed,
what was skipped and why, and a summary. Exit 1 when anything failed: also a test that could not be built."""
import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree
from pathlib import Path

import objects
from rows import CUT_PROGRAMS, CUT_TESTS, DEBIAN_CLANG, DEBIAN_GCC, LEFT_OUT, PLATFORMS, ROWS, ZIG

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/platforms"
HEADERS = "".join(path.read_text() for path in (ROOT / "include").rglob("*.h"))
JOBS = str(os.cpu_count() or 2)
ENVIRONMENT = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": os.environ.get("ZIG_GLOBAL_CACHE_DIR", str(BUILD / "zig-cache")),
               "WINEPREFIX": str(BUILD / "wine"), "WINEDEBUG": "-all"}
ENVIRONMENT.pop("DISPLAY", None)


class Missing(Exception):
    """A tool that a row needs is not here."""


def name_of(row):
    return "-".join(part for part in (row.platform, row.compiler, row.name) if part)


def options_of(row):
    return " ".join(part for part in (row.flags, row.link, row.setting) if part)


def find(tool):
    path = shutil.which(tool, path=os.environ["PATH"] + ":/usr/lib/wine")
    if not path:
        raise Missing(f"no {tool}")
    return path


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT).stdout


def zig():
    """The Zig toolchain, in a virtual environment of its own."""
    venv = BUILD / "zig"
    if not list(venv.glob("lib/*/site-packages/ziglang/zig")):
        subprocess.run([sys.executable, "-m", "venv", venv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", f"ziglang=={ZIG}"])
    found = list(venv.glob("lib/*/site-packages/ziglang/zig"))
    if not found:
        raise Missing(f"no ziglang {ZIG} (PyPI)")
    return str(found[0])


def zig_command(language, platform):
    """A command of one word, for CMake: it drops the others when it makes the assembler of the C compiler."""
    command = BUILD / "bin" / f"zig-{language}-{platform.zig}"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{zig()}" {language} -target {platform.zig} {platform.zig_flags} "$@"\n')
    command.chmod(0o755)
    return str(command)


def compilers(row):
    """The commands of the C and the C++ compiler, and what CMake has to know besides."""
    platform = PLATFORMS[row.platform]
    if row.compiler == "zig":
        return [zig_command("cc", platform)], [zig_command("c++", platform)], {}
    if row.compiler == "clang":
        commands = find(f"clang-{DEBIAN_CLANG}"), find(f"clang++-{DEBIAN_CLANG}")
        target = {f"CMAKE_{language}_COMPILER_TARGET": platform.debian for language in ("C", "CXX", "ASM")
                  if platform.debian}
    else:
        prefix = f"{platform.debian}-" if platform.debian else ""
        version = f"-{DEBIAN_GCC}" if platform.system == "Linux" else "-posix"
        commands, target = (find(f"{prefix}gcc{version}"), find(f"{prefix}g++{version}")), {}
    if platform.debian:
        root = f"/usr/{platform.debian}"
        if not os.path.isdir(f"{root}/include"):
            raise Missing(f"no {root}")
        target["CMAKE_FIND_ROOT_PATH"] = root
        target.update({f"CMAKE_FIND_ROOT_PATH_MODE_{kind}": "ONLY" for kind in ("LIBRARY", "INCLUDE", "PACKAGE")})
    return [commands[0]], [commands[1]], target


def emulator(row):
    platform = PLATFORMS[row.platform]
    if not platform.emulator or row.what == "built":
        return []
    command = [find(platform.emulator)]
    if platform.emulator.startswith("wine"):
        if not (BUILD / "wine/system.reg").exists():
            output(*command, "wineboot", "-i")
    elif row.compiler != "zig":
        command += ["-L", f"/usr/{platform.debian}"]
    # Static programs. Their malloc() hints at addresses: without a space of its own qemu soon finds none.
    elif platform.processor != "arm":
        command += ["-R", "0x2000000000"]
    return command + row.cpu.split()


def configuration(row, cc, cxx, extra, emulate, cut):
    platform = PLATFORMS[row.platform]
    settings = {"CMAKE_BUILD_TYPE": "None", "CMAKE_C_COMPILER": ";".join(cc), "CMAKE_CXX_COMPILER": ";".join(cxx),
                "CMAKE_C_FLAGS": row.flags, "CMAKE_CXX_FLAGS": row.flags, "CMAKE_EXE_LINKER_FLAGS": row.link,
                "ACORN_STANDARDS": "20", "ACORN_TESTS_ONCE": "OFF", "ACORN_WERROR": "ON", **extra}
    if row.compiler != "gcc":
        settings.update(CMAKE_AR=find(f"llvm-ar-{DEBIAN_CLANG}"), CMAKE_RANLIB=find("true"))
    if row.compiler == "clang":
        settings.update(CMAKE_EXE_LINKER_FLAGS=f"-fuse-ld=lld {row.link}", CMAKE_SHARED_LINKER_FLAGS="-fuse-ld=lld")
    if platform.debian or platform.zig:  # for another system, which may be this one's processor with another C library
        settings.update(CMAKE_SYSTEM_NAME=platform.system, CMAKE_SYSTEM_PROCESSOR=platform.processor)
    if platform.system == "Darwin":
        settings.update(CMAKE_OSX_SYSROOT="/", CMAKE_INSTALL_NAME_TOOL=find("true"))
    if emulate:
        settings["CMAKE_CROSSCOMPILING_EMULATOR"] = ";".join(emulate)
    if cut:
        settings.update(ACORN_VARIANTS="release", ACORN_CXX_FULL="OFF")
    elif row.variants:
        settings.update(ACORN_VARIANTS=row.variants.replace(" ", ";"), ACORN_CXX_FULL="OFF")
    return [f"-D{key}={value}" for key, value in settings.items()] + [f"-D{row.setting}"] * bool(row.setting)


def logged(log, *command, **options):
    return subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=ENVIRONMENT,
                          **options).returncode


def run_tests(directory, row, cut):
    """Names of the tests that passed, failed (of these: were not built), and were skipped with the reasons."""
    left = [each for each in LEFT_OUT
            if re.fullmatch(each.emulators, PLATFORMS[row.platform].emulator) and re.fullmatch(each.rows, name_of(row))]
    report = directory / "tests.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "-j", JOBS, "--output-on-failure", "--output-junit", str(report)]
    if left:
        command += ["-E", "|".join(f"^({each.tests})$" for each in left)]
    if cut:
        command += ["-R", CUT_TESTS]
    waits = None
    # The first program starts Wine's services, which would hold a test's output open.
    if PLATFORMS[row.platform].emulator.startswith("wine"):
        waits = subprocess.Popen([find(PLATFORMS[row.platform].emulator), "cmd.exe"], stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        time.sleep(3)
    with open(directory / "ctest.log", "w") as log:
        logged(log, *command, cwd=directory)
    if waits:
        waits.communicate(b"exit\r\n")
    passed, failed, not_built, skipped = [], [], [], {}
    shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=directory, capture_output=True, text=True).stdout
    listed = json.loads(shown)["tests"]
    unbuilt = {test["name"] for test in listed
               if any(part.startswith(f"{directory}/") and not os.path.exists(part)
                      for part in test.get("command", []))}
    for case in xml.etree.ElementTree.parse(report).iter("testcase") if report.exists() else ():
        name, why = case.get("name"), case.find("skipped")
        if case.get("status") == "run":
            passed.append(name)
        elif why is not None and "SKIP_RETURN_CODE" in why.get("message", ""):
            said = re.search(r"^skipped: (.*)", case.findtext("system-out") or "", re.M)
            skipped[name] = said.group(1) if said else "says not why"
        elif name in unbuilt or why is not None:
            not_built.append(name)
        else:
            failed.append(name)
    if left and not cut:
        for test in listed:
            skipped.update({test["name"]: each.reason for each in left if re.fullmatch(each.tests, test["name"])})
    return {"passed": len(passed), "failed": sorted(failed), "not_built": sorted(not_built), "skipped": skipped}


def programs(directory):
    """How many of the programs that the build knows were linked, and how many there are."""
    targets = re.findall(r"^build (\S+): C(?:XX)?_EXECUTABLE_LINKER", (directory / "build.ninja").read_text(), re.M)
    return sum((directory / target).exists() for target in targets), len(targets)


def run_row(row, cut):
    cut &= row.what == "suite"
    result = {"row": name_of(row), "platform": row.platform, "what": "cut" if cut else row.what,
              "flags": options_of(row), "variants": "" if cut else row.variants, "date": time.strftime("%Y-%m-%d"),
              "commit": output("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*").strip()}
    unknown = [macro for macro in re.findall(r"-D(ACO_\w+)", row.flags) if macro not in HEADERS]
    if unknown:
        return {**result, "status": "failed", "why": f"the headers know no {' '.join(unknown)}"}
    try:
        cc, cxx, extra = compilers(row)
        emulate = emulator(row)
        settings = configuration(row, cc, cxx, extra, emulate, cut)
    except Missing as missing:
        return {**result, "status": "skipped", "why": str(missing)}
    result["compiler"] = (f"zig {ZIG}, " if row.compiler == "zig" else "") + output(*cc, "--version").splitlines()[0]
    if emulate:
        result["emulator"] = " ".join([output(emulate[0], "--version").splitlines()[0], row.cpu]).strip()
    directory = BUILD / ("cut" if cut else "full") / name_of(row)
    directory.mkdir(parents=True, exist_ok=True)
    start, processor = time.time(), processor_time()
    with open(directory / "log", "w") as log:
        if logged(log, "cmake", "-S", ROOT, "-B", directory, "-G", "Ninja", *settings):
            return {**result, "status": "failed", "why": "CMake cannot configure it", "log": str(directory / "log")}
        known = set(re.findall(r"^build (\w\S*): phony", (directory / "build.ninja").read_text(), re.M))
        wanted = [program for program in CUT_PROGRAMS if program in known] if cut else ["all"]
        build = "cmake", "--build", directory, "-j", JOBS, "--target"
        if logged(log, *build, "acorn_static"):
            return {**result, "status": "failed", "why": "the library does not build", "log": str(directory / "log")}
        logged(log, *build, *wanted, "--", "-k", "0")
    if "-O2" in row.flags:
        result["objects"] = objects.check(PLATFORMS[row.platform], [*cc, *target_option(extra)], row, directory,
                                          ENVIRONMENT)
    failed = bool(result.get("objects"))
    if row.what == "built":
        result["linked"], result["programs"] = programs(directory)
        failed |= result["linked"] < result["programs"]
    else:
        result.update(run_tests(directory, row, cut))
        failed |= bool(result["failed"] or result["not_built"] or not result["passed"])
    good = "built, not run" if row.what == "built" else "passed"
    return {**result, "status": "failed" if failed else good, "seconds": round(time.time() - start),
            "processor_seconds": round(processor_time() - processor)}


def processor_time():
    """What the commands that have ended took, in seconds: a busy machine does not change it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def target_option(extra):
    return [f"--target={extra['CMAKE_C_COMPILER_TARGET']}"] if extra.get("CMAKE_C_COMPILER_TARGET") else []


def line(result):
    said = [result["status"] + (f": {result['why']}" if "why" in result else "")]
    if "linked" in result:
        said.append(f"{result['linked']} of {result['programs']} programs linked")
    if "passed" in result:
        numbers = {kind: len(result[kind]) for kind in ("failed", "not_built", "skipped")}
        said.append(f"{result['passed']} passed, " +
                    ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in numbers.items()))
    for kind in ("failed", "not_built", "objects"):
        if result.get(kind):
            said.append(f"{kind.replace('_', ' ')}: " + ("; " if kind == "objects" else " ").join(result[kind]))
    if "log" in result:
        said.append(f"see {result['log']}")
    return (f"{result['row']}: {'; '.join(said)} "
            f"({result.get('seconds', 0)} s, {result.get('processor_seconds', 0)} of a processor)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cut", action="store_true")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    chosen = [row for row in ROWS if (name_of(row) in asked.names if asked.names else row.cut or not asked.cut)]
    if set(asked.names) - {name_of(row) for row in chosen}:
        parser.error("no such row: " + " ".join(set(asked.names) - {name_of(row) for row in chosen}))
    if asked.list:
        print("\n".join(name_of(row) for row in chosen))
        return 0
    BUILD.mkdir(parents=True, exist_ok=True)
    results = []
    with open(BUILD / "results.jsonl", "a") as file:
        for row in chosen:
            results.append(run_row(row, asked.cut))
            print(json.dumps(results[-1]), file=file, flush=True)
            print(line(results[-1]), flush=True)
    passed = sum(result.get("passed", result["status"] == "built, not run") for result in results)
    skipped = sum(len(result.get("skipped", [])) + (result["status"] == "skipped") for result in results)
    failed = sum(max(1, len(result.get("failed", [])) + len(result.get("not_built", [])))
                 for result in results if result["status"] == "failed")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
