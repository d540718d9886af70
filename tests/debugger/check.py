#!/usr/bin/env python3
"""check.py DEBUGGER SCRIPT PROGRAM ODD_PROGRAM

Promises of tools/gdb/acorn.py and tools/lldb/acorn.py, on a running process and on the core file that the kernel
writes: all coroutines are listed, with state and name; frames of one that is suspended on its own stack, of one whose
frames are in its save area (with the values of its variables), of one that waits and of the one that runs, whose frames
go on in its resumer's. And of the other program: of a process with several threads, without debug information, with a
stack that has overflowed, and without a process."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

debugger, script, program, odd = sys.argv[1], *map(os.path.realpath, sys.argv[2:])
failures = 0
ARGUMENT = "suspended (arg=" + ("" if program.endswith("O2") else "0x7)") # optimised, it may have no location any more


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
    command = [
        shutil.which(debugger), "-q", "-batch", "-nx", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"
    ]
    for line in ["set pagination off", "set width 0", f"source {script}"] + commands:
        command += ["-ex", line]
    result = subprocess.run(command + list(target), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=100, env={**os.environ, "DEBUGINFOD_URLS": ""})
    return result.stdout


def run_lldb(commands, *target, after_crash=()):
    command = [shutil.which(debugger), "-x", "-b", "-o", f"command script import {script}"]
    for option, lines in (("-o", commands), ("-k", after_crash)):
        for line in lines:
            command += [option, line]
    return subprocess.run(command + list(target), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=100).stdout


LLDB_QUESTIONS = [
    "aco list", "aco bt all", "aco frame 1", "up 3", "frame variable", "aco bt worker", "aco frame", "thread list"
]


def lldb_answers(before, *target):
    """What came after each question, as lldb repeats them."""
    output = run_lldb(before + LLDB_QUESTIONS, *target)
    return output, {q: (output + "(lldb) ").split(f"(lldb) {q}\n", 1)[-1].split("(lldb) ")[0] for q in LLDB_QUESTIONS}


def check_lldb_suspended(answers):
    listed, shown = answers["aco list"], answers["aco bt all"]
    end = r"[^`]*(`aco__outermost[^`]*)?" # and no wrong frames
    expect("list: saved", r"1 +0x\w+ +suspended\+ +saved_inner", listed)
    expect("list: name", r"3 +0x\w+ +suspended +worker +inner", listed)
    expect("list: ready", r"4 +0x\w+ +ready +suspended", listed)
    expect("the innermost is the program's", r"coroutine 1 [^\n]*: suspended\+?\n[^\n]*`saved_inner at", shown)
    expect("saved", order("saved_inner at", "saved at") + end + "coroutine 2", shown)
    expect("share stack", "coroutine 2 .*" + order("in_place_inner at", "in_place at") + end + "coroutine 3", shown)
    worker = order("inner(depth=0)", "inner(depth=1)", "inner(depth=2)", "suspended(arg=0x0000000000000007)",
                   "aco__begin(")
    expect("private stack", "coroutine 3 .*worker.*" + worker + end + "coroutine 4", shown)
    expect("a saved variable", r"precious = 4711", answers["frame variable"])
    expect("while another one is looked at", "coroutine 3 .*worker.*" + worker, answers["aco bt worker"])


def check_lldb_odd():
    output = run_lldb(["breakpoint set -n stop_here", "run", "aco list", "aco bt two words", "continue"], odd,
                      after_crash=["aco bt small"])
    expect("a name of two words", r"coroutine 1 [^\n]*suspended.*" + order("yields", "suspended("), output)
    expect("a task that is parked", r"2 +0x\w+ +waiting +\w+, waits at [^\n]*odd.c:\d+ to be unparked\n", output)
    expect("a task that waits", r"3 +0x\w+ +waiting +\w+, waits at [^\n]*odd.c:\d+ for mutex 0x\w+\n", output)
    expect("overflowed", r"coroutine 4 [^\n]*running\s.*`overflows\(", output)
    address = re.search(r"1 +(0x0\w+)", output)
    if address: # without randomisation, which debuggers turn off
        output = run_lldb(["breakpoint set -n stop_here", "run", f"aco bt {address.group(1)}"], odd)
        expect("an address as it is listed", r"coroutine 1 [^\n]*suspended", output)
    expect("no process", "error: acorn: there is no process", run_lldb(["aco list"], odd))
    # lldb takes a moment to see that it is gone; until then what reads its memory says so
    expect("ended", "error: acorn: (the process is running, or has ended|failed to send packet)",
           run_lldb(["breakpoint set -n stop_here", "run", "process kill", "aco list"], odd))


def check_lldb(directory):
    output, answers = lldb_answers(["breakpoint set -n stop_here", "run"], program)
    if "aco list" not in output or re.search(r"ptrace|not permitted|No module named", output):
        skip("lldb has no Python, or may not trace processes here")
    check_lldb_suspended(answers)
    expect("list: running", r"5 +0x\w+ +running +runner +thread 1", answers["aco list"])
    expect("running", "coroutine 5 .*" + order("stop_here at", "runs_inner at", "runs(arg=") + ".*coroutine 6",
           answers["aco bt all"])
    # lldb 19 may lose its way in a function of the library that gcc has split
    expect("waiting, and linked",
           "coroutine 6 .*(" + order("resumes(co=", "aco__outermost", "main at") + "|resume_common_chain|resume_rest)",
           answers["aco bt all"])
    expect("the process again", r"stop_here", answers["thread list"])
    check_lldb_odd()
    core = dump_core(directory)
    if core:
        check_lldb_suspended(lldb_answers([], program, "-c", core)[1])


def dump_core(directory):
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    subprocess.run([program], cwd=directory, check=False)
    cores = [name for name in os.listdir(directory) if name.startswith("core")]
    if not cores:
        print("no core file was written (ulimit -c, /proc/sys/kernel/core_pattern): left out")
        return None
    return os.path.join(directory, cores[0])


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
    expect("list: saved", r"1 +0x\w+ +suspended\+ +saved_inner program.c:\d+\n", listed)
    expect("list: in place", r"2 +0x\w+ +suspended +in_place_inner program.c:\d+\n", listed)
    expect("list: name", r"3 +0x\w+ +suspended +worker +inner program.c:\d+\n", listed)
    expect("list: ready", r"4 +0x\w+ +ready +suspended\n", listed)
    expect("list: waits in a task", r"7 +0x\w+ +suspended +waits_inside program.c:\d+\n", listed)
    expect("list: its task",
           r"8 +0x\w+ +resuming +has_inner program.c:\d+, waits( at [^\n]*program.c:\d+)? to be unparked\n", listed)
    expect("list: all", r"\n8 coroutines", listed)
    expect("the innermost is the program's", r"^[^\n]*: suspended\+?\n#\d+ +(0x\w+ in )?saved_inner ",
           answers["aco bt 1"])
    expect("saved", order("saved_inner ()", "saved ()"), answers["aco bt 1"])
    expect("share stack", order("in_place_inner ()", "in_place ()"), answers["aco bt 2"])
    expect("private stack", order("inner (depth=", "inner (depth=", "inner (depth=", ARGUMENT, "aco__begin"),
           answers["aco bt worker"])
    expect("a saved variable", r"saved_inner.*precious = 4711", answers["aco frame 1"] + answers["info locals"])


def check_gcore(directory):
    """gdb's gcore leaves out what is behind a guard page in the page tables. What is there is shown, without errors of
    Python, and what is not there is named."""
    core = os.path.join(directory, "by_gcore")
    run(["break stop_here", "run", f"gcore {core}"], program)
    output, answers = ask(["aco list", "aco bt 3"], [], program, core)
    if "Exception" in output or "Traceback" in output:
        expect("no exception", "$^", output)
    if "suspended   worker " in answers["aco list"]:
        expect("all is there", r"\n8 coroutines", answers["aco list"])
        return
    expect("what is missing", r"acorn: this core file lacks (the stack of coroutine \d|control blocks)",
           answers["aco list"])
    expect("a stack that is missing", r"this core file lacks its stack|no coroutine 3", answers["aco bt 3"])


QUESTIONS = ["aco list", "aco bt 1", "aco bt 2", "aco bt worker", "aco frame 1", "info locals", "aco frame"]

def check_gdb_odd(directory):
    questions = [
        "bt", "up 2", "aco list", "aco bt two words", "aco bt 1 -nonsense", "frame", "aco apply all nonsense",
        "continue", "aco bt small -1"
    ]
    output, answers = ask(questions, ["break stop_here", "run", "set print frame-arguments all"], odd)
    expect("printer in a backtrace, with threads",
           order("has_copy (", "has_copy (", "has_copy (", "has_copy (", "main ("), answers["bt"])
    expect("a name of two words", r"1 \(0x\w+, two words\): suspended.*" + order("yields (", "suspended ("),
           answers["aco bt two words"])
    expect("the same frame", "#2 .*has_copy", answers["frame"])
    expect("a task that is parked", r"2 +0x\w+ +waiting +locks odd.c:\d+, waits at [^\n]*odd.c:\d+ to be unparked\n",
           answers["aco list"])
    expect("a task that waits", r"3 +0x\w+ +waiting +locks odd.c:\d+, waits at [^\n]*odd.c:\d+ for mutex 0x\w+\n",
           answers["aco list"])
    expect("overflowed", r"4 \(0x\w+, small\): running, by thread 1.*main \(", answers["aco bt small -1"])
    _, nobody = ask(["aco list", "aco bt 1", "aco frame 1", "aco apply all bt"], [], odd)
    for question, answer in nobody.items():
        expect(f"{question}: no process", "acorn: there is no process", answer)
    if "Python" in output + "".join(nobody.values()):
        expect("no failure of the script", "^$", output + "".join(nobody.values()))
    if shutil.which("strip"):
        bare = os.path.join(directory, "bare")
        subprocess.run(["strip", "-g", "-o", bare, odd], check=True)
        _, answers = ask(["aco bt 1"], ["break stop_here", "run"], bare)
        expect("no debug information", order("yields ()", "suspended ()", "aco.begin"),
               answers["aco bt 1"].replace("aco__begin", "aco.begin"))


def check_gdb(directory):
    if "yes" not in run(["python print('y' + 'es')"]):
        skip("gdb has no Python")
    live, answers = ask(QUESTIONS + ["aco bt runner", "aco bt 6", "aco apply all bt", "bt"], ["break stop_here", "run"],
                        program)
    if re.search(r"ptrace|Couldn't get registers|not permitted", live):
        skip("processes may not be traced here")
    check_suspended(answers)
    expect("list: running", r"5 +0x\w+ +running +runner +thread 1, began in runs\n", answers["aco list"])
    expect("list: resuming", r"6 +0x\w+ +resuming +resumes program.c:\d+\n", answers["aco list"])
    expect("running, and linked", order("stop_here ()", "runs_inner ()", "runs (", "resumes (", "main ()"),
           answers["aco bt runner"])
    expect("gdb's own", order("stop_here ()", "runs_inner ()", "runs (", "resumes (", "main ()"), answers["bt"])
    expect("waiting, and linked", order("resumes (", "main ()"), answers["aco bt 6"])
    expect("all",
           r"coroutine 1 .*coroutine 2 .*coroutine 3 .*coroutine 4 .*begins in suspended.*coroutine 5 .*coroutine 6 ",
           answers["aco apply all bt"])
    chosen, _ = ask(["aco frame 3", "up 2", "info locals", "aco frame", "bt"], ["break stop_here", "run"], program)
    expect("frame", r"aco frame 3.*inner \(depth=.*local = 10\d.*== aco frame\n.*stop_here", chosen)
    check_gdb_odd(directory)
    check_gcore(directory)
    printed, _ = ask(["print *(aco_t *)co", "print *((aco_t *)co)->share_stack"], ["break resumes", "run"], program)
    expect("printer of aco_t", r"= coroutine 5 'runner', ready = {\s*is_end = ", printed)
    expect("printer of aco_share_stack_t", r"= private stack of 262144 bytes = {\s*ptr = ", printed)
    if shutil.which("strip"):
        bare = os.path.join(directory, "bare")
        subprocess.run(["strip", "-g", "-o", bare, program], check=True)
        _, answers = ask(["aco list"], ["break stop_here", "run"], bare)
        expect("list: not the library's function",
               r"7 +0x\w+ +suspended +waits_inside.*8 +0x\w+ +resuming +has_inner, ",
               answers["aco list"])
    core = dump_core(directory)
    if core:
        _, answers = ask(QUESTIONS, [], program, core)
        check_suspended(answers)
        expect("list: done", r"5 +0x\w+ +done +runner", answers["aco list"])


def check_waits():
    """The script knows each kind of wait."""
    tree = os.path.dirname(os.path.dirname(os.path.dirname(script)))
    sys.path.insert(0, os.path.join(tree, "tools"))
    import acorn_coroutines
    with open(os.path.join(tree, "src", "scheduler", "wait.h"), encoding="utf-8") as file:
        kinds = re.findall(r"^    ACO__WAIT_\w+", file.read(), re.M)
    expect("kinds of waits", f"^{len(kinds)}$", str(len(acorn_coroutines.WAITS)))


check_waits()
if not shutil.which(debugger):
    skip(f"{debugger} is not installed")
with tempfile.TemporaryDirectory() as scratch:
    (check_gdb if "gdb" in os.path.basename(debugger) else check_lldb)(scratch)
print("failed" if failures else "passed")
sys.exit(failures != 0)
