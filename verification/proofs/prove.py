#!/usr/bin/env python3
"""prove.py [--quick] [--only REGEX] [--jobs N] [--verbose] [--record] [--missing]
    proves the theorems of theorems.py about compiled switches
prove.py --mutations [--only REGEX]
    and that seeded faults are found, each by the theorem named for it

One line for each configuration: processor, compiler, options; how many switches were found in how many functions, how
many claims were proved, how many of them needed the solver (the others are equal terms), and the time. A claim that
fails, a switch that no path reached, and a theorem that was not brought to a switch are printed and make the exit
status 1. What this machine has no compiler for is listed as not run. --record: what came out goes into results.json,
and results.json into the table of README.md. --missing: only what is not in results.json, failed there, or was proved
of other sources."""
import argparse
import collections
import functools
import gc
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import traceback

import build
import machine
import terms
import theorems
from arch import ARCHES, ROOT, redzone

OUT = ROOT / "build/prove"
CALLERS = [ROOT / "verification/proofs/callers" / name
           for name in ("integers.c", "others.c", "in_stack.c", "leaf.c", "begins.c", "plus.cpp")]
LIBRARY = [ROOT / "src" / name for name in (
    "stack/layout.c", "coroutine/entry.c", "coroutine/resume.c", "coroutine/on_scratch.c", "coroutine/yield_to.c",
    "coroutine/exit.c", "coroutine/exports.c", "coroutine/cancel.c", "coroutine/generator.c",
    "scheduler/task.c", "scheduler/sleep.c", "scheduler/run.c", "scheduler/task_exports.c", "scheduler/wait.c",
    "scheduler/poll_task.c", "scheduler/inner.c", "scheduler/on_share_stack.c")]
RESULTS, README = ROOT / "verification/proofs/results.json", ROOT / "verification/proofs/README.md"
# Functions without a switch, on which first entries rest.
BEGINNINGS = {name: kind for kind in (theorems.LayOut, theorems.SetReturn, theorems.Begin, theorems.BeginsAt)
              for name in kind.NAMES}
LEVELS = ("-O0", "-O1", "-O2", "-O3")


class Configuration:
    def __init__(self, arch, compiler, flags, lto=False, units=None, beginnings=True):
        """`beginnings`: whether first entries are looked at, which are in the library's units."""
        self.arch_name, self.compiler, self.flags, self.lto, self.units = arch, compiler, flags.split(), lto, units
        self.beginnings = beginnings
        self.name = " ".join(filter(None, [arch, compiler, flags, "-flto" if lto else ""]))

    def left_out(self):
        """Callers that are left out: without optimisation the address of everything is taken, so too little is known of
        the frame of a function with an in-stack generator."""
        return {CALLERS[2]} if "-O0" in self.flags and self.arch.return_address else set()

    @property
    def arch(self):
        return ARCHES[self.arch_name]

    def is_here(self):
        command = self.arch.targets[self.compiler]
        headers = [part[len("-isystem"):] for part in command if part.startswith("-isystem")]
        return shutil.which(command[0]) is not None and all(map(os.path.isdir, headers))


def configurations():
    for arch, about in ARCHES.items():
        for compiler in about.targets:
            for flags in about.flags:
                for level in LEVELS:
                    yield Configuration(arch, compiler, (level + " " + flags).strip())
                yield Configuration(arch, compiler,
                                    ("-O2 " + flags + " -DACO_CONFIG_SHARE_FPU_MXCSR_ENV").replace("  ", " "))
            if about.lto:
                yield Configuration(arch, compiler, "-O2", lto=True)
                yield Configuration(arch, compiler, "-O3", lto=True)
            for position in ("-fPIE", "-fPIC"):
                yield Configuration(arch, compiler, " ".join(["-O2", *about.flags[:1], position]).replace("  ", " "))
            if about.pads:
                yield Configuration(arch, compiler, " ".join(["-O2", *about.flags[:1], about.pads]).replace("  ", " "))


def quick():
    return [Configuration("x86_64", "gcc", "-O2 -fcf-protection", units=CALLERS + LIBRARY),
            Configuration("x86_64", "gcc", "-O0", units=CALLERS, beginnings=False),
            Configuration("x86_64", "clang", "-O3", units=CALLERS, beginnings=False)]


def find_sites(program, labels_of):
    """{function: its switches}"""
    names, found = sorted(labels_of), collections.defaultdict(list)
    spans = sorted((at, -size, name) for name, (at, size) in program.functions.items() if size)
    for site in (theorems.Site(name, program.labels) for name in names):
        if site.begin is None:
            raise build.BuildFailed("the switch %s is not in the program" % site.name)
        inside = [name for at, size, name in spans if at <= site.begin < at - size]
        if not inside:
            raise build.BuildFailed("the switch %s is in no function" % site.name)
        name = min(inside, key=lambda n: ("." in n, len(n)))
        whole = re.sub(r"\.cold(\.\d+)?$", "", name)
        found[whole if whole in program.functions else name].append(site)
    return found


class Outcome:
    def __init__(self, configuration):
        self.name, self.failures, self.unreachable, self.error = configuration.name, [], [], None
        self.sites = self.functions = self.claims = self.queries = 0
        self.kinds, self.theorems, self.seconds, self.processor = collections.Counter(), collections.Counter(), 0, 0


def prove(configuration, include=ROOT / "include", folder=None, functions=None):
    outcome, begun = Outcome(configuration), time.monotonic()
    folder = folder or OUT / re.sub(r"\W+", "_", configuration.name)
    try:
        units = [unit for unit in configuration.units or CALLERS + LIBRARY if unit not in configuration.left_out()]
        path, names = build.build(configuration.arch, configuration.compiler, configuration.flags, units, folder,
                                  include, configuration.lto)
        program = machine.Program(path, configuration.arch)
        walk(configuration, program, names, functions, outcome)
        if configuration.arch.name == "x86_64" and functions is None:
            red_zone(folder, outcome)
    except build.BuildFailed as error:
        outcome.error = str(error)
    except Exception:  # of the prover's own
        outcome.error = traceback.format_exc()
    outcome.seconds, outcome.processor = time.monotonic() - begun, sum(os.times()[:4])
    return outcome


def walk(configuration, program, names, only, outcome):
    clang = configuration.compiler == "clang"
    pads = bool(configuration.arch.pads and configuration.arch.pads in " ".join(configuration.flags))
    macros = build.macros(configuration.arch, configuration.compiler, configuration.flags)
    for function, sites in sorted(find_sites(program, names).items()):
        if only and not any(re.fullmatch(pattern, function) for pattern in only):
            continue
        claims = theorems.Claims()
        terms.forget()
        walked = theorems.Function(program, function, sites, claims, macros, pads)
        try:
            walked.run()
        except machine.NotUnderstood as why:
            outcome.failures.append((function, "not understood", str(why)))
        for site in sites:
            missing = sorted(t for t in theorems.wanted(site, configuration.arch, clang, pads)
                             if (site.name, t) not in claims.results)
            if site.name not in walked.reached and "-O0" in configuration.flags:
                outcome.unreachable.append(site.name + " in " + function)
            elif missing:
                outcome.failures.append((site.name + " in " + function, missing[0],
                                         "not brought to this switch: " + ", ".join(missing)))
        add_up(claims, outcome, function)
        outcome.sites += len(sites)
        outcome.functions += 1
        outcome.kinds.update(site.kind for site in sites)
    for name, kind in BEGINNINGS.items():
        if not configuration.beginnings or only and name not in only:
            continue
        if kind is theorems.Begin and (name not in program.functions or
                                       name == "aco__begin" and not configuration.arch.return_address):
            continue  # here it is in C
        if name not in program.functions:
            if not configuration.lto:  # which leaves out functions that are not called here
                outcome.failures.append((name, sorted(kind.THEOREMS)[0], "is not in the program"))
            continue
        claims = theorems.Claims()
        terms.forget()
        try:
            kind(program, name, claims, macros).run()
        except machine.NotUnderstood as why:
            outcome.failures.append((name, "not understood", str(why)))
        add_up(claims, outcome, name)


def add_up(claims, outcome, function):
    for (where, theorem), (count, bad) in claims.results.items():
        outcome.claims += count
        outcome.theorems[theorem] += count
        if bad:
            outcome.failures.append((where if where == function else where + " in " + function, theorem, bad))
    outcome.queries += claims.queries


def red_zone(folder, outcome):
    """The same objects, by the other checker, which follows frames of variable size too."""
    for path in sorted(folder.glob("*.s.o")):
        try:
            for line in redzone.check_file(str(path), argparse.Namespace(vzeroupper=None, verbose=False))[1]:
                outcome.failures.append((path.name, "redzone", line))
        except ValueError as why:
            outcome.failures.append((path.name, "redzone", str(why)))


def report(outcome, verbose):
    print("%-62s %4d switches in %3d functions: %6d claims, %5d by the solver, %3d failed, %4.0f s" % (
        outcome.name, outcome.sites, outcome.functions, outcome.claims, outcome.queries, len(outcome.failures),
        outcome.seconds), flush=True)
    if verbose:
        print("    " + ", ".join("%s %d" % pair for pair in sorted(outcome.kinds.items())))
        print("    " + ", ".join("%s %d" % pair for pair in sorted(outcome.theorems.items())))
    if outcome.unreachable:  # without optimisation the other form of each switch is there, behind a constant condition
        print("    %d of them no path leads to%s"
              % (len(outcome.unreachable), ": " + ", ".join(outcome.unreachable) if verbose else ""))
    for where, theorem, what in outcome.failures:
        print("    FAILED %s: %s: %s\n        (%s)" % (where, theorem, what, theorems.THEOREMS.get(theorem, "")))
    if outcome.error:
        print("    ERROR " + outcome.error)


@functools.cache
def sources():
    """The commit that last changed the proved sources, with all that they include on any processor, or the prover."""
    found = build.run(["g++", "-MM", "-I", ROOT / "include", "-I", ROOT / "src", *CALLERS, *LIBRARY])
    headers = {os.path.realpath(name) for name in found.split() if name.endswith((".h", ".hpp", ".inc"))}
    paths = ["include/aco/arch", "src/coroutine/entry", *sorted(headers), *CALLERS, *LIBRARY,
             *("verification/proofs/%s.py" % name for name in "arch build machine prove terms theorems vex".split())]
    commit, changes = (subprocess.run(["git", "-C", str(ROOT), *command, "--", *paths], capture_output=True,
                                      text=True).stdout.strip()
                       for command in (["log", "-1", "--format=%h"], ["status", "--porcelain"]))
    return commit + " and changes" * bool(changes)


def forgotten():
    """Units of the library that have a switch and are not in LIBRARY."""
    marker, out = build.Marker(ROOT / "include"), []
    for unit in build.run(["sh", ROOT / "tools/sources.sh", "acorn", "acorn_threads", "acorn_io"]).split():
        if ROOT / unit not in LIBRARY:
            command = ["gcc", "-O2", "-fexceptions", "-I", ROOT / "include", "-I", ROOT / "src", "-S", ROOT / unit,
                       "-o", "-"]
            before = len(marker.sites)
            marker.mark(build.run(command), "unit")
            out += [unit] * (len(marker.sites) > before)
    return out


def recorded():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def record(outcome):
    """The last outcome of each configuration."""
    results = recorded()
    results[outcome.name] = {"switches": outcome.sites, "functions": outcome.functions, "claims": outcome.claims,
                             "failed": len(outcome.failures) + bool(outcome.error), "seconds": round(outcome.processor),
                             "date": time.strftime("%Y-%m-%d", time.gmtime()), "sources": sources()}
    RESULTS.write_text("{\n" + ",\n".join('%s: %s' % (json.dumps(n), json.dumps(results[n])) for n in sorted(results))
                       + "\n}\n")
    tabulate(results)


def tabulate(results):
    """A row for each processor and compiler."""
    rows = collections.defaultdict(list)
    for c in configurations():
        rows["%s, %s" % (c.arch_name, c.compiler)].append((c.name, results.get(c.name)))
    lines = ["| | configurations | claims | seconds | failed, or not run |", "| --- " * 5 + "|"]
    for row, of in rows.items():
        wrong = ", ".join("`%s`" % name for name, result in of if not result or result["failed"])
        claims, seconds = (sum(result[what] for _, result in of if result) for what in ("claims", "seconds"))
        lines.append("| %s | %d | %d | %d | %s |" % (row, len(of), claims, seconds, wrong or "–"))
    known = [results[c.name] for c in configurations() if c.name in results]
    sums = [sum(r[what] for r in known) for what in ("switches", "claims", "failed")]
    commits = ", ".join(sorted({r["sources"] for r in known}))
    lines.append("\n%d of %d configurations, the last on %s, sources of commit %s:" % (
        len(known), len(list(configurations())), max(r["date"] for r in known), commits))
    lines.append("%d switches, %d claims, %d failed." % tuple(sums))
    begin, end = "<!-- results:begin -->", "<!-- results:end -->"
    text = README.read_text()
    README.write_text(text[:text.index(begin) + len(begin)] + "\n" + "\n".join(lines) + "\n" + text[text.index(end):])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--mutations", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    if options.mutations:
        import mutations
        return mutations.main(options)
    wanted = [c for c in (quick() if options.quick else configurations()) if re.search(options.only, c.name)]
    if options.missing:
        wanted = [c for c in wanted if recorded().get(c.name, {"failed": 1})["failed"]
                  or recorded()[c.name]["sources"] != sources()]
    absent = [c for c in wanted if not c.is_here()]
    wanted = [c for c in wanted if c.is_here()]
    begun, failed, sites, claims = time.monotonic(), 0, 0, 0
    # A process for each configuration. Collecting garbage took a quarter of its time, for some 500 MB.
    with multiprocessing.Pool(options.jobs, initializer=gc.disable, maxtasksperchild=1) as pool:
        for outcome in pool.imap(prove, wanted, chunksize=1):
            report(outcome, options.verbose)
            if options.record:
                record(outcome)
            failed += bool(outcome.failures or outcome.error or not outcome.sites)
            sites, claims = sites + outcome.sites, claims + outcome.claims
    for configuration in wanted:
        for unit in configuration.left_out():
            print("not looked at: %s by %s" % (unit.name, configuration.name))
    for configuration in absent:
        print("not run, no compiler: " + configuration.name)
    for unit in forgotten() if options.quick else ():
        print("FAILED: %s has a switch and is not among LIBRARY" % unit)
        failed += 1
    print("%d configurations, %d failed, %d not run: %d switches, %d claims, %.0f s" % (
        len(wanted), failed, len(absent), sites, claims, time.monotonic() - begun))
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
