#!/usr/bin/env python3
"""The ABI of the shared libraries against the recorded one (CONTRIBUTING.md, "Versions and ABI").

abi.py symbols FOLDER  the libraries of FOLDER: an error is an exported symbol that is gone, one that the sources do not
                       mark (cmake/exports.cmake), or another soname; added symbols are counted
abi.py check FOLDER    the same, and public types that have changed, by abidiff (abigail-tools). Built with -g
abi.py record FOLDER   writes what FOLDER has: packaging/debian/*.symbols and packaging/abi/*.abi.gz
abi.py seeded FOLDER   check must find a symbol that is missing or not marked, and a field that has another type
"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = ["acorn", "acorn_threads", "acorn_io", "acorn_http", "acorn_tls", "acorn_hook", "acorn_sim",
             "acorn_resilience", "acorn_service", "acorn_debug", "acorn_grpc"]


def version():
    with open(f"{ROOT}/include/aco.h", encoding="utf-8") as header:
        return re.search(r'ACORN_VERSION_STRING "([^"]*)"', header.read()).group(1)


def soversion():
    parts = version().split(".")
    return ".".join(parts[:2]) if parts[0] == "0" else parts[0]


def symbols_file(name):
    return f"{ROOT}/packaging/debian/lib{name.replace('_', '-')}{soversion()}.symbols"


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] in "TDBRVWGS"}


def marked(folder, name):
    with tempfile.NamedTemporaryFile("r") as output:
        subprocess.run(["cmake", "-DNM=nm", f"-DOUTPUT={output.name}", "-P", f"{ROOT}/cmake/exports.cmake", "--",
                        f"{folder}/lib{name}.a"], check=True)
        return set(re.findall(r"^  (\w+)", output.read(), re.M))


def not_as_marked(name, have, marks):
    """libc's names are exported by acorn_hook alone, and have marks of their own."""
    return sorted(marks ^ (have if name != "acorn_hook" else {each for each in have if each.startswith("aco_")}))


def recorded(name):
    with open(symbols_file(name), encoding="utf-8") as symbols:
        return {name: (tag, since) for tag, name, since in
                re.findall(r"^ (\(optional\))?(\w+)@Base (\S+)$", symbols.read(), re.M)}


def write_types(library, output):
    subprocess.run(["abidw", "--headers-dir", f"{ROOT}/include", "--drop-private-types", "--no-corpus-path",
                    "--no-show-locs", "--no-comp-dir-path", "--out-file", output, library], check=True)


def types_changed(name, library, folder):
    """What abidiff says, or nothing."""
    base, now = f"{folder}/base.abi", f"{folder}/now.abi"
    with gzip.open(f"{ROOT}/packaging/abi/{name}.abi.gz") as packed, open(base, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    write_types(library, now)
    return compare_types(base, now)


def compare_types(base, now):
    run = subprocess.run(["abidiff", "--no-added-syms", base, now], capture_output=True, text=True)
    return run.stdout + run.stderr if run.returncode else ""


def gone_of(want, have):
    return sorted(name for name, (tag, _) in want.items() if not tag and name not in have)


def symbols(folder):
    return check(folder, types=False)


def check(folder, types=True):
    wrong = 0
    for name in LIBRARIES:
        library = f"{folder}/lib{name}.so.{soversion()}"
        if not os.path.exists(library):
            print(f"skipped: {name}: not built (or its soname is not {os.path.basename(library)})")
            wrong += name == "acorn"
            continue
        dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
        if f"soname: [lib{name}.so.{soversion()}]" not in dynamic:
            print(f"error: {name}: its soname is not lib{name}.so.{soversion()}")
            wrong += 1
        have, want = exported(library), recorded(name)
        gone = gone_of(want, have)
        for symbol in gone:
            print(f"error: {name}: {symbol} is exported no more")
        wrong += len(gone)
        for symbol in not_as_marked(name, have, marked(folder, name)):
            print(f"error: {name}: {symbol} is exported without a mark, or marked and not exported")
            wrong += 1
        if types:
            with tempfile.TemporaryDirectory() as scratch:
                changed = types_changed(name, library, scratch)
            if changed:
                print(f"error: {name}: types or functions have changed\n{changed}")
                wrong += 1
        print(f"{name}: {len(want)} symbols, {len(have - set(want))} not recorded yet")
    if wrong:
        print("before a release of a new minor version, `make abi` records what is there now")
    return wrong


def public_names():
    """Names in the headers: programs call them, internal ones too. Other exports serve the libraries of one version."""
    names = set()
    for place, _, files in os.walk(f"{ROOT}/include"):
        for file in files:
            with open(f"{place}/{file}", encoding="utf-8") as header:
                names |= set(re.findall(r"\w+", header.read()))
    return names


def record(folder):
    public = public_names()
    for name in LIBRARIES:
        library = f"{folder}/lib{name}.so.{soversion()}"
        before = recorded(name) if os.path.exists(symbols_file(name)) else {}
        with open(symbols_file(name), "w", encoding="utf-8") as file:
            file.write(f"lib{name}.so.{soversion()} lib{name.replace('_', '-')}{soversion()} #MINVER#\n")
            for symbol in sorted(exported(library), key=lambda each: f"{each}@"):
                tag = "" if symbol in public else "(optional)"
                file.write(f" {tag}{symbol}@Base {before.get(symbol, ('', version()))[1]}\n")
        with tempfile.TemporaryDirectory() as scratch:
            write_types(library, f"{scratch}/abi")
            with open(f"{scratch}/abi", "rb") as plain, open(f"{ROOT}/packaging/abi/{name}.abi.gz", "wb") as packed:
                with gzip.GzipFile("", "wb", 9, packed, mtime=0) as writer:
                    shutil.copyfileobj(plain, writer)


def seeded(folder):
    missed = 0
    library = f"{folder}/libacorn.so.{soversion()}"
    if gone_of(recorded("acorn"), exported(library) - {"aco_yield"}) != ["aco_yield"]:
        print("error: a symbol that is gone was not found")
        missed += 1
    have = exported(library)
    for more, marks in [("atexit", have), ("aco_yield", have - {"aco_yield"})]:
        if not_as_marked("acorn", have | {more}, marks) != [more]:
            print("error: a symbol that is not marked was not found")
            missed += 1
    if shutil.which("abidw"):
        with tempfile.TemporaryDirectory() as scratch:
            write_types(library, f"{scratch}/base.abi")
            with open(f"{scratch}/base.abi", encoding="utf-8") as file:
                text = file.read()
            # aco_pool_options_t.most_stacks gets another type
            pattern = r"(<class-decl name='aco_pool_options_s'.*?)name='most_stacks' type-id='[^']*'"
            other = re.search(r"<type-decl name='char'.*? id='([^']*)'", text).group(1)
            text, count = re.subn(pattern, rf"\1name='most_stacks' type-id='{other}'", text, count=1, flags=re.S)
            with open(f"{scratch}/now.abi", "w", encoding="utf-8") as file:
                file.write(text)
            if count != 1 or not compare_types(f"{scratch}/base.abi", f"{scratch}/now.abi"):
                print("error: a field that has another type was not found")
                missed += 1
    print("seeded changes found" if not missed else "seeded changes were missed")
    return missed


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("symbols", "check", "record", "seeded"):
        sys.exit(__doc__)
    sys.exit(1 if globals()[sys.argv[1]](sys.argv[2]) else 0)
