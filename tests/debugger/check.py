#!/usr/bin/env python3
"""check.py gdb|lldb SCRIPT PROGRAM

Promises of tools/gdb/acorn.py and tools/lldb/acorn.py, on a running process and on the core file that the kernel writes: all coroutines are
listed, with state and name; frames of one that is suspended on its own stack, of one whose frames are in its save area (with
the values of its variables), of one that waits and of the one that runs, whose frames go on in its resumer's."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

debugger, script, program = sys.argv[1:]
failures = 0


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def expect(what, pattern, output):
    global failures
    if not re.search(pattern, output, re.S):
        failures += 1
        print(f"FAILED: {what}: nothing matches {pattern}\nin\n{output}\n")


def order(*names):
    """Functions, the innermost first, one frame behind the other or with others between."""
    return r".*?".join(r"[ `]" + re.escape(n) for n in names)


def run(commands, *target):
    command = [shutil.which(debugger), "-q", "-batch", "-nx", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    for line in ["set pagination off", "set width 0", f"source {script}"] + commands:
        command += ["-ex", line]
    result = subprocess.run(command + list(target), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100,
                            env={**os.environ, "DEBUGINFOD_URLS": ""})
    return result.stdout


def section(output, command):
    """What came between two marks."""
    found = re.search(rf"== {re.escape(command)}\n(.*?)(?:== |\Z)", output, re.S)
    return found.group(1) if found else ""


def ask(questions, before, *target):
    commands = list(before)
    for question in questions:
        commands += [f"echo == {question}\\n", question]
    output = run(commands, *target)
    return output, {q: section(output, q) for q in questions}


def check_suspended(answers):
    listed = answers["aco list"]
    expect("list: saved", r"1 +0x\w+ +suspended\+ +saved_inner", listed)
    expect("list: in place", r"2 +0x\w+ +suspended +saved_inner", listed)
    expect("list: name", r"3 +0x\w+ +suspended +worker +inner", listed)
    expect("list: ready", r"4 +0x\w+ +ready +suspended", listed)
    expect("list: all", r"\n6 coroutines", listed)
    for number in "12":
        expect("share stack", order("saved_inner ()", "saved ()"), answers[f"aco bt {number}"])
    expect("private stack", order("inner (depth=", "inner (depth=", "inner (depth=", "suspended (arg=0x7)", "aco__begin"), answers["aco bt worker"])
    expect("a saved variable", r"saved_inner.*precious = 4711", answers["up 3"] + answers["info locals"])


QUESTIONS = ["aco list", "aco bt 1", "aco bt 2", "aco bt worker", "aco frame 1", "up 3", "info locals", "aco frame"]

with tempfile.TemporaryDirectory() as directory:
    if not shutil.which(debugger):
        skip(f"{debugger} is not installed")
    if "yes" not in run(["python print('y' + 'es')"]):
        skip(f"{debugger} has no Python")

    live, answers = ask(QUESTIONS + ["aco bt runner", "aco bt 6", "aco apply all bt", "bt"], ["break stop_here", "run"], program)
    if re.search(r"ptrace|Couldn't get registers|not permitted", live):
        skip("processes may not be traced here")
    check_suspended(answers)
    expect("list: running", r"5 +0x\w+ +running +runner +thread 1", answers["aco list"])
    expect("list: resuming", r"6 +0x\w+ +resuming", answers["aco list"])
    expect("running, and linked", order("stop_here ()", "runs_inner ()", "runs (", "resumes (", "main ()"), answers["aco bt runner"])
    expect("gdb's own", order("stop_here ()", "runs_inner ()", "runs (", "resumes (", "main ()"), answers["bt"])
    expect("waiting, and linked", order("resumes (", "main ()"), answers["aco bt 6"])
    expect("all", r"coroutine 1 .*coroutine 2 .*coroutine 3 .*coroutine 4 .*begins in suspended.*coroutine 5 .*coroutine 6 ", answers["aco apply all bt"])
    chosen, _ = ask(["aco frame 3", "up 2", "info locals", "aco frame", "bt"], ["break stop_here", "run"], program)
    expect("frame", r"aco frame 3.*inner \(depth=.*local = 10\d.*== aco frame\n.*stop_here", chosen)
    printed, _ = ask(["print *(aco_t *)co", "print *((aco_t *)co)->share_stack"], ["break resumes", "run"], program)
    expect("printer of aco_t", r"= coroutine 5 'runner', ready = {\s*is_end = ", printed)
    expect("printer of aco_share_stack_t", r"= private stack of 262144 bytes = {\s*ptr = ", printed)

    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    subprocess.run([program], cwd=directory, check=False)
    cores = [name for name in os.listdir(directory) if name.startswith("core")]
    if cores:
        _, answers = ask(QUESTIONS, [], program, os.path.join(directory, cores[0]))
        check_suspended(answers)
        expect("list: done", r"5 +0x\w+ +done +runner", answers["aco list"])
    else:
        print("no core file was written (ulimit -c, /proc/sys/kernel/core_pattern): left out")

print("failed" if failures else "passed")
sys.exit(failures != 0)
