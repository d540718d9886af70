#!/usr/bin/env python3
"""The proof about the machine: the induction, its bounded cross-check, the theorem about copying, walks that the real
library follows; then the same with faults, each of which must be noticed.

    run.py [--states N] [--long] [--no-mutations]

--states: how many states each small world is explored to; --long: to 200000, longer walks, and the induction over every
faulty machine too."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
try:
    import copying
    import prove
except ImportError as missing:
    sys.exit("prove-model: no module %s: python3 -m pip install z3-solver pycparser" % missing.name)
import conform
import explore
import machine
import mutations


def induction(call, change=None):
    faulty(change)
    start = time.process_time()
    proof = prove.Proof(call).run()
    obligations = sum(proof.obligations.values())
    return call, proof.paths, proof.checks, obligations, sorted(proof.failed), time.process_time() - start


def faulty(change):
    """This process's machine becomes a faulty one; None: the right one."""
    text = (HERE / "machine.py").read_text()
    if change:
        old, new = change[1:3]
        if text.count(old) != 1:
            raise SystemExit("prove-model: the mutation %r does not apply" % change[0])
        text = text.replace(old, new)
    module = types.ModuleType("machine")
    exec(compile(text, "machine.py", "exec"), module.__dict__)
    machine.Machine, machine.Dies = module.Machine, module.Dies


def example(change, most):
    """What exploring finds of a faulty machine, or None."""
    faulty(change)
    worlds = [world for world in explore.settings() if change[3:] in ((), world[:1])]
    for bound in (most // 8, most):
        for _, elements, given, useful in worlds:
            _, _, wrong, _ = explore.explore(elements, given, bound, useful)
            if wrong:
                return wrong
    return None


def not_inductive(change):
    for call in machine.CALLS:
        failed = induction(call, change)[4]
        if failed:
            return call, failed[0]
    return None


CALLS_CONTEXT = re.compile(r"aco__(save|restore)_resumer\(")  # units that have a copy of base/context.h's functions


class Library:
    """The library built for the walks, from src/ or from a faulty copy of it."""
    COMPILER = os.environ.get("CC", "gcc").split()

    def __init__(self, at):
        self.at = pathlib.Path(at)
        listed = subprocess.run(["sh", ROOT / "tools/sources.sh", "acorn"], capture_output=True, text=True, check=True)
        self.sources = [ROOT / name for name in listed.stdout.split()]

    def compile(self, sources, into, src):
        into.mkdir(parents=True, exist_ok=True)
        subprocess.run(self.COMPILER + ["-O2", "-fexceptions", "-w", "-I" + str(ROOT / "include"), "-I" + str(src),
                                        "-c"] + [str(s) for s in sources],
                       cwd=into, check=True)

    def build(self):
        self.compile(self.sources + [HERE / "follow.c"], self.at / "right", ROOT / "src")
        return self.link([])

    def build_copying(self):
        into = self.at / "copying"
        self.compile([HERE / "copying.c"], into, ROOT / "src")
        return self.link([into / "copying.o"], without=("follow.o", "copy.o"))

    def link(self, instead, without=()):
        names = {p.name for p in instead}.union(without)
        objects = [p for p in (self.at / "right").glob("*.o") if p.name not in names] + instead
        program = (instead[0].parent if instead else self.at) / "program"
        subprocess.run(self.COMPILER + [str(p) for p in objects] + ["-o", str(program), "-lpthread", "-lm"], check=True)
        return program

    def with_fault(self, number, file, old, new):
        text = (ROOT / "src" / file).read_text()
        if text.count(old) != 1:
            raise SystemExit("prove-model: the mutation of %s does not apply: %r" % (file, old))
        copy = self.at / ("fault%d" % number)
        subprocess.run(["cp", "-r", str(ROOT / "src"), str(copy)], check=True)
        (copy / file).write_text(text.replace(old, new))
        touched = [ROOT / "src" / file]
        if file.endswith(".h"):
            touched = [p for p in self.sources if CALLS_CONTEXT.search(p.read_text())]
        into = copy / "objects"
        self.compile([copy / p.relative_to(ROOT / "src") for p in touched], into, copy)
        return self.link(sorted(into.glob("*.o")))


def follows(program, walk, seconds=4):
    """None, or what went wrong. `seconds`: processor time; a walk takes a tenth of a second."""
    limited = ["sh", "-c", "ulimit -t %d; exec %s" % (seconds, program)]
    try:
        done = subprocess.run(limited, input=walk, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "it stands still"
    if done.returncode == 0:
        return None
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return "it turns in a circle"
    return (done.stderr.strip().splitlines() or ["signal %d" % -done.returncode])[0]


class Report:
    def __init__(self):
        self.bad = 0

    def line(self, good, text):
        self.bad += not good
        print("%s  %s" % ("ok    " if good else "FAILED", text), flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--states", type=int, default=1000)
    options.add_argument("--long", action="store_true")
    options.add_argument("--no-mutations", action="store_true")
    options = options.parse_args()
    report, begin = Report(), time.time()
    workers = concurrent.futures.ProcessPoolExecutor(min(os.cpu_count() or 1, 8))
    library = Library(tempfile.mkdtemp(prefix="acorn-model-"))

    longest_first = sorted(machine.CALLS, key=lambda c: c not in ("resume", "cancel", "yield_to", "end"))
    proofs = [workers.submit(induction, call) for call in longest_first]
    wrong = prove.initially()
    report.line(not wrong, "induction: before the first call%s" % "".join("; not: " + name for name in wrong))
    for proof in proofs:
        call, paths, checks, obligations, failed, seconds = proof.result()
        report.line(not failed, "induction: %-10s %3d paths, %4d obligations, %4d questions to z3, %4.1f s%s"
                    % (call, paths, obligations, checks, seconds, "".join("; not: " + f for f in failed)))

    for name, elements, given, useful in explore.settings():
        most = 200000 if options.long else options.states
        states, transitions, wrong, all_of_it = explore.explore(elements, given, most, useful)
        report.line(not wrong, "bounded: %s: %d states, %d transitions, %s%s"
                    % (name, states, transitions, "all" if all_of_it else "breadth first",
                       "; wrong: %s after %s" % wrong if wrong else ""))

    text, sizes = ((ROOT / "src/stack" / name).read_text() for name in ("copy.c", "stack.h"))
    shown, wrong = copying.check(text, sizes)
    for theorem in shown + wrong:
        report.line(theorem in shown, "bytes: " + theorem)

    walks = [conform.trace(seed, 100000 if options.long else 3000)[0] for seed in (1, 2, 3)]
    program = library.build()
    said = follows(library.build_copying(), "")
    why = "; " + said if said else ""
    report.line(said is None, "bytes: the compiled copy does so for every size, tried%s" % why)
    for walk in walks:
        said = follows(program, walk, 60 if options.long else 4)
        report.line(said is None, "walks: the library follows %s calls%s"
                    % (walk.split()[0], "; " + said if said else ""))

    if not options.no_mutations:
        for change, found in zip(mutations.MACHINE,
                                 workers.map(example, mutations.MACHINE, [6000] * len(mutations.MACHINE))):
            report.line(found is not None, "fault, machine: %s: %s"
                        % (change[0], "%s, after %d calls" % (found[0], len(found[1])) if found else "NOT NOTICED"))
        if options.long:
            for change, found in zip(mutations.MACHINE, workers.map(not_inductive, mutations.MACHINE)):
                report.line(found is not None, "fault, induction: %s: %s"
                            % (change[0], "%s: %s" % found if found else "NOT NOTICED"))
        for what, old, new in mutations.COPYING:
            if old not in text:
                raise SystemExit("prove-model: the mutation %r does not apply" % what)
            wrong = copying.check(text.replace(old, new), sizes)[1]
            report.line(bool(wrong), "fault, bytes: %s: %s" % (what, wrong[0] if wrong else "NOT NOTICED"))
        for number, (what, file, old, new) in enumerate(mutations.LIBRARY):
            program = library.with_fault(number, file, old, new)
            said = next(filter(None, (follows(program, walk) for walk in walks)), None)
            report.line(said is not None, "fault, library: %s: %s" % (what, said or "NOT NOTICED"))

    workers.shutdown()
    subprocess.run(["rm", "-r", str(library.at)])
    print("prove-model: %s, %.0f s" % ("%d failed" % report.bad if report.bad else "all holds", time.time() - begin))
    return report.bad != 0


if __name__ == "__main__":
    sys.exit(main())
