#!/usr/bin/env python3
"""check.py PROGRAM PART: runs tests/trace/program.c's PART traced, and compares the trace with what the program says
that ran.

check.py PROGRAM waits: the same for the waits for I/O of tests/io_tasks.c.

check.py PROGRAM probes LIBRARY: the USDT probes in LIBRARY's notes, and met by gdb in PROGRAM."""
import collections
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

PROGRAM, PART = sys.argv[1:3]
SLACK = 0.0015  # microseconds: the trace's clock is cut to nanoseconds


def run(*arguments, trace, status=0, **more):
    environment = dict(os.environ, ACO_TRACE=trace)
    done = subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, timeout=60, **more)
    if done.returncode != status:
        sys.exit(f"{PART}: status {done.returncode}, not {status}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="surrogateescape"), done.stderr.decode()


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


class Threads:
    """The runs of a trace: [name, begin, end, coroutine], after checking that they nest on each thread."""

    def __init__(self, events, may_be_open=False):
        self.runs, self.instants, self.names = [], [], {}
        open_runs, clocks = collections.defaultdict(list), collections.defaultdict(float)
        on_cpu = {}
        for e in events:
            if e["ph"] == "M":
                if e["name"] == "thread_name":
                    self.names[e["tid"]] = e["args"]["name"]
                continue
            thread = e["tid"]
            assert e["ts"] >= clocks[thread], f"time goes back: {e}"
            clocks[thread] = e["ts"]
            assert thread in self.names, f"a thread without a name: {e}"
            if e["ph"] == "B":
                co = e["args"]["coroutine"]
                assert co not in on_cpu, f"runs already, on thread {on_cpu.get(co)}: {e}"
                on_cpu[co] = thread
                run = [e["name"], e["ts"], None, co, thread]
                self.runs.append(run)
                open_runs[thread].append(run)
            elif e["ph"] == "E":
                run = open_runs[thread].pop()
                assert run[0] == e["name"], f"{run} ends as {e}"
                run[2] = e["ts"]
                del on_cpu[run[3]]
            else:
                assert e["ph"] == "i" and e["name"] in ("create", "exit"), e
                self.instants.append((e["name"], e["args"]["coroutine"], e["args"].get("name")))
        assert may_be_open or not any(open_runs.values()), "runs that do not end"


def everything(directory):
    path = os.path.join(directory, "trace.json")
    said = json.loads(run("everything", trace=path)[0])
    threads = Threads(load(path))
    check_order(threads, said)
    kinds = collections.Counter(kind for kind, _, _ in threads.instants)
    assert kinds["create"] == 6 + 1 + 5 + 2, kinds
    assert kinds["exit"] == 5 + 5 + 2, kinds  # `to` has not ended, nor has `from` that was made anew
    created = {co: name for kind, co, name in threads.instants if kind == "create"}
    assert sorted(set(created.values())) == sorted([
        "inner", "outer", "to", "from", "cancelled", "never run", "first", "second", "sender", "receiver", "joined",
        "coroutine 13", "coroutine 14"
    ]), created


def segments(runs):
    """When which coroutine was the innermost that ran, on one thread: (begin, end, name)."""
    edges = sorted([(r[1], True, i) for i, r in enumerate(runs)] + [(r[2], False, i) for i, r in enumerate(runs)])
    stack = []
    for (clock, begins, i), following in zip(edges, edges[1:] + [None]):
        if begins:
            stack.append(i)
        else:
            assert stack.pop() == i, "runs overlap"
        if stack:
            yield clock, following[0], runs[stack[-1]][0]


def check_order(threads, said):
    """Who ran, in which order, and when: what the program has recorded of each coroutine, from getting control to
    giving it away, lies in the trace's next segment of it. The two clocks differ by a constant, which is not known."""
    begins, following = {}, collections.defaultdict(collections.deque)
    for thread in threads.names:
        for segment in segments([r for r in threads.runs if r[4] == thread]):
            following[segment[2]].append(segment)
    for name, own in following.items():
        following[name] = collections.deque(sorted(own))
    lowest, highest, stays = -1e30, 1e30, 0
    for what, name, clock in said:
        if what == "runs":
            begins[name] = clock / 1000
        elif what == "stops":
            assert following[name], f"{name} ran more often than the trace says"
            begin, end, _ = following[name].popleft()
            lowest, highest = max(lowest, clock / 1000 - end), min(highest, begins.pop(name) - begin)
            assert lowest <= highest + SLACK, f"{name} did not run when the trace says, {begin} to {end}"
            stays += 1
    assert stays and not begins
    left = {name: len(rest) for name, rest in following.items() if rest}
    assert set(left) <= {"cancelled"}, f"runs of which the program knows nothing: {left}"  # its cleanup


def names(directory):
    path = os.path.join(directory, "trace.json")
    run("names", trace=path)
    made = [name for kind, _, name in Threads(load(path)).instants if kind == "create"]
    assert made == [
        '"quoted\\"', "tab\tand\nline", "\x01\x1f\x7f", "na\u00efve \u20ac \U0001f43f", "bad \ufffd\ufffd",
        "\ufffd\ufffd\ufffd\ufffd\ufffd", "0123456789012345678901234567890",
        "\u0080\u07ff\u0800\ud7ff\ue000\uffff", "\U00010000\U0010ffff", 9 * "\ufffd", 7 * "\ufffd", "coroutine 12"
    ], made
    with open(path, "rb") as written:
        assert b"\x7f" not in written.read()  # a terminal would obey it


def threads(directory):
    path = os.path.join(directory, "trace-%p.json")
    said = json.loads(run("threads", trace=path)[0])
    written = os.listdir(directory)
    assert len(written) == 1 and re.fullmatch(r"trace-\d+\.json", written[0]), written
    traced = Threads(load(os.path.join(directory, written[0])))
    check_order(traced, said)
    if sys.platform == "linux":
        assert {f"worker {i}" for i in range(4)} <= set(traced.names.values()), traced.names
        for name, _, _, _, thread in traced.runs:
            assert not name.startswith("worker") or name.rsplit(".", 1)[0] == traced.names[thread]
    assert len({r[4] for r in traced.runs if r[0] == "wanderer"}) == 3


def dies(directory):
    """The library's own abort() loses nothing. A kill() loses at most the last tenth of a second, and within a write
    the last line and the ending."""
    path = os.path.join(directory, "trace.json")
    said, message = run("dies", trace=path, status=-signal.SIGABRT)
    assert message.count("\n") == 1 and "has ended" in message, message
    check_order(Threads(load(path)), json.loads(said))
    run("killed", trace=path, status=-signal.SIGKILL)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")[1:]
    events = [json.loads(line.rstrip(",")) for line in lines[:-1] if line not in ("]}", "")]
    assert len(Threads(events, may_be_open=True).runs) > 100


def signals(directory):
    """A signal that ends the process loses nothing, except SIGKILL; also where a fault is explained."""
    path = os.path.join(directory, "trace.json")
    for explained in ("0", "1"):
        os.environ["ACO_EXPLAIN_OVERFLOW"] = explained
        for name in ("SEGV", "TERM", "ABRT"):
            said, _ = run("ended by", name, trace=path, status=-getattr(signal, "SIG" + name))
            check_order(Threads(load(path)), json.loads(said))


def errors(directory):
    """What cannot be written is said once, and the program goes on."""
    path = os.path.join(directory, "trace.json")
    message = run("many", trace=os.path.join(directory, "missing", "trace.json"))[1]
    assert message.count("\n") == 1 and "No such file" in message, message
    if os.path.exists("/dev/full"):
        message = run("many", trace="/dev/full")[1]
        assert message.count("\n") == 1 and "the trace ends here" in message, message

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))

    message = run("many", trace=path, preexec_fn=limited)[1]
    assert message.count("\n") == 1 and "the trace ends here" in message, message
    assert len(Threads(load(path), may_be_open=True).runs) > 100
    assert run("many", trace="")[1] == ""
    many = os.path.join(directory, "many.json")
    assert run("many", trace=many)[1] == ""
    assert len(Threads(load(many)).runs) == 100000 + 1  # its cleanup


def forks(directory):
    """A child leaves its parent's file alone."""
    path = os.path.join(directory, "trace.json")
    run("forks", trace=path)
    assert [r[0] for r in Threads(load(path)).runs] == ["before", "before"]


def waits(directory):
    """PROGRAM is tests/io_tasks.c. A task has one wait at a time, which ends; descriptors and places are named."""
    path = os.path.join(directory, "trace.json")
    run(trace=path)
    open_waits = {}
    all_waits = [(e["ph"], e["name"], e["id"], e["args"]) for e in load(path) if e.get("cat") == "io"]
    for phase, name, co, args in all_waits:
        if phase == "b":
            assert co not in open_waits and args["coroutine"] == co, (name, co)
            open_waits[co] = name
        else:
            assert phase == "e" and open_waits.pop(co) == name and args["errno"] == 0, (phase, name, args)
    assert not open_waits, open_waits
    assert any(name.startswith("waits for readable fd ") and args.get("at", "").startswith("io_tasks.c:")
               for _, name, _, args in all_waits), all_waits


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def probes(directory):
    library = sys.argv[3]
    if not shutil.which("readelf"):
        skip("no readelf")
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    if "stapsdt" not in notes:
        if (os.path.exists("/usr/include/x86_64-linux-gnu/sys/sdt.h") and os.uname().machine == "x86_64"
                and "ELF64" in subprocess.run(["readelf", "-h", library], capture_output=True, text=True,
                                              check=True).stdout):
            sys.exit("probes: <sys/sdt.h> is here, and the library has no probes")
        skip("the library was built without <sys/sdt.h> (Debian: systemtap-sdt-dev)")
    assert notes.count("Provider: acorn") >= 4, notes
    for name in ("create", "resume", "yield", "exit"):
        assert f"Name: {name}" in notes, notes
    if not shutil.which("gdb"):
        skip("no gdb")
    # gdb raises a probe's semaphore, so that the program is traced without ACO_TRACE.
    commands = ["set confirm off", "set debuginfod enabled off", "set pagination off"]
    for name in ("create", "resume", "yield", "exit"):
        commands += [
            f"break -probe-stap acorn:{name}", "commands", "silent", f'printf "met {name} %s\\n", (char *)$_probe_arg1',
            "continue", "end"
        ]
    commands += ["run names >/dev/null", "quit"]
    script = os.path.join(directory, "commands")
    with open(script, "w", encoding="utf-8") as file:
        file.write("\n".join(commands) + "\n")
    done = subprocess.run(["gdb", "-nx", "-batch", "-x", script, PROGRAM], capture_output=True, timeout=100,
                          errors="replace", encoding="utf-8")
    met = collections.Counter(line.split()[1] for line in done.stdout.splitlines() if line.startswith("met "))
    if not met and "ptrace" in done.stdout + done.stderr:
        skip("gdb may not run programs here")
    assert met == {"create": 12, "resume": 11, "yield": 11}, (met, done.stdout[-2000:], done.stderr[-2000:])
    assert "met resume 0123456789012345678901234567890" in done.stdout


with tempfile.TemporaryDirectory() as scratch:
    globals()[PART](scratch)
print(f"{PART}: passed")
