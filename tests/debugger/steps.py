"""gdb -x steps.py PROGRAM: the promise of ../unwind_steps.c by a debugger's single steps and its unwinder, for one
coroutine. Also for what runs in an emulator: emulated.sh."""

import re

import gdb

OUTSIDE, INSIDE = ["resume_it", "call_resume", "main"], ["yield_it", "call_yield"]
SWITCHES, WINDOW = 6, 2  # resumes, yields and the end; instructions from which nothing is known


def functions():
    """Of the frames, innermost first, by address: names of inlined ones would be the library's."""
    frame = gdb.newest_frame()
    found = []
    while frame and len(found) < 40:
        if frame.type() != gdb.INLINE_FRAME:
            found.append(gdb.execute(f"info symbol {frame.pc()}", to_string=True).split(" ")[0])
        frame = frame.older()
    return found


def is_untold(symbol):
    """A shared library (memcpy() without optimisation), of which gdb knows nothing in an emulator. clang's tables for
    s390x, Power and RISC-V do not say that an epilogue has given registers back, nor those for Power that a prologue
    has not yet stored the return address: what is inlined alone is looked at."""
    frame = gdb.newest_frame()
    if "is_emulated" in globals() and symbol == "No":
        return True
    is_looked_at = frame.type() == gdb.INLINE_FRAME or symbol not in [*INSIDE, *OUTSIDE, "aco.begun"]
    if is_looked_at or not re.search("s390|powerpc|riscv", frame.architecture().name()):
        return False
    return "clang" in (frame.function().symtab.producer or "")


def ends(frames, all_frames):
    return bool(frames) and frames == all_frames[-len(frames):]


def check(found, is_inside):
    """What is seen: nothing, one stack, or both; None: something else."""
    inside, outside = ([f for f in found if f in names] for names in (INSIDE, OUTSIDE))
    if len(found) == 1 and found[0] != "main":
        return "cut"
    if not is_inside:
        return "alone" if not inside and ends(outside, OUTSIDE) else None
    if [f for f in found if f in INSIDE + OUTSIDE] != inside + outside or (inside and not ends(inside, INSIDE)):
        return None
    return "linked" if outside == OUTSIDE else None if outside else "not linked"


def step_through():
    for setting in ("pagination off", "confirm off", "width 0"):
        gdb.execute(f"set {setting}")
    gdb.execute("break resume_it")
    if "is_emulated" in globals():
        gdb.execute("continue", to_string=True)  # fails where there is no connection
    else:
        try:
            gdb.execute("run", to_string=True)
        except gdb.error as error:
            print(f"skipped: {error}")
            return 77
    gdb.execute("delete")
    lo, hi = (int(gdb.parse_and_eval(f"(unsigned long){v}")) for v in ("lo", "hi"))
    seen = {}
    while True:
        symbol = gdb.execute("info symbol $pc", to_string=True).split(" ")[0]
        if symbol == "done":
            break
        if is_untold(symbol):
            gdb.execute("stepi", to_string=True)
            continue
        found = functions()
        what = check(found, lo <= int(gdb.parse_and_eval("(unsigned long)$sp")) <= hi)
        if not what:
            print(f"FAILED: {found}")
        seen[what] = seen.get(what, 0) + 1
        gdb.execute("stepi", to_string=True)
    print(seen)
    return int(None in seen or seen["cut"] > SWITCHES * WINDOW or seen["linked"] < seen["not linked"])


try:
    status = step_through()
except (gdb.error, LookupError) as error:  # gdb itself would end with 0
    print(f"FAILED: {error!r}")
    status = 1
gdb.execute(f"quit {status}")
