"""Seeded faults: one change of the sources each, and the theorem that must fail for it. The exit status is 1 if
a fault compiles and no theorem fails, or only other theorems fail."""
import functools
import multiprocessing
import re
import shutil
import time
import types

import prove
import terms
from arch import ARCHES, ROOT
from machine import Join, State

SWITCH, X86 = "include/aco/arch/x86_64.h", "include/aco/arch/x86.h"
GENERATOR, API = "include/aco/detail/generator_inline.h", "include/aco/detail/aco_inline.h"
CREATE_H = "src/coroutine/create.h"
I386, ENTRY, ENTRY_X86_64 = "include/aco/arch/i386.h", "src/coroutine/entry.c", "src/coroutine/entry/x86_64.inc"
LOONGARCH = dict(arch="loongarch64", compiler="clang")
S390X = "include/aco/arch/s390x.h"
LOONGARCH64 = "include/aco/arch/loongarch64.h"
RESUME, YIELD, DOUBLES = ["resume_once"], ["ends"], ["doubles"]


class Fault:
    """`old` becomes `new` in `file`, once or, where it is a list, for each; `functions` are looked at; `theorems`: one
    must fail."""

    def __init__(self, name, file, old, new, functions, theorems, compiler="gcc", flags="-O2", unit="integers.c",
                 arch="x86_64"):
        self.name, self.file, self.old, self.new, self.functions = name, file, old, new, functions
        self.theorems = theorems.split()
        self.configuration = prove.Configuration(arch, compiler, flags, units=[self.unit(unit)])

    @staticmethod
    def unit(name):
        return ROOT / ("" if name.startswith("src/") else "verification/proofs/callers") / name


def in_macro(macro, old, new, every=False):
    """A change inside one macro."""
    def change(text):
        match = re.search(r"#define %s\b(?:[^\n]*\\\n)*[^\n]*" % macro, text)
        assert match and old in match.group(), (macro, old)
        return text[:match.start()] + match.group().replace(old, new, -1 if every else 1) + text[match.end():]
    return change


FAULTS = [
    Fault("no clobber of r12", SWITCH, in_macro("ACO__CLOBBERS_OF_ALL", '"r12", ', ""), None, RESUME,
          "exit.saved stale"),
    Fault("no clobber of r15", SWITCH, in_macro("ACO__CLOBBERS_OF_ALL", '"r15", ', ""), None, RESUME,
          "exit.saved stale"),
    Fault("no clobber of r9", SWITCH, in_macro("ACO__CLOBBERS_OF_ALL", '"r9", ', ""), None, RESUME, "stale"),
    Fault("no clobber of rbx", SWITCH, '#define ACO__CLOBBER_BASE "rbx",', "#define ACO__CLOBBER_BASE", RESUME,
          "exit.saved stale"),
    Fault("no clobber of xmm14", SWITCH, '"xmm13", "xmm14", "xmm15"', '"xmm13", "xmm15"', DOUBLES, "stale",
          unit="others.c"),
    Fault("no clobber of the x87 stack", SWITCH, 'ACO__IF_X87("st", "st(1)"', 'ACO__IF_X87("st(1)"', ["long_doubles"],
          "stale", unit="others.c"),
    Fault("sp and pc swapped where they are stored", SWITCH, in_macro("ACO__STORE", "to(ACO__SP)", "to(ACO__PC)"), None,
          RESUME, "kept.sp"),
    Fault("sp and pc swapped where they are loaded", SWITCH, in_macro("ACO__LEAVE", "from(ACO__PC)", "from(ACO__SP)"),
          None, RESUME, "arrives.pc"),
    Fault("another offset of the frame pointer", SWITCH, in_macro("ACO__STORE", "to(ACO__BP)", "to(ACO__BASE)"), None,
          YIELD, "kept.frame"),
    Fault("the frame pointer is not stored", SWITCH, in_macro("ACO__STORE", '"movq %%rbp," to(ACO__BP) "\\n\\t" ', ""),
          None, YIELD, "kept.frame"),
    Fault("the frame pointer is not loaded", SWITCH,
          in_macro("ACO__LEAVE", '"movq " from(ACO__BP) ",%%rbp\\n\\t"', '""'), None, YIELD, "arrives.frame"),
    Fault("a push", SWITCH, in_macro("ACO__RESUME", '"leaq 1f', '"pushq %%rax\\n\\tleaq 1f'), None, RESUME, "steady"),
    Fault("a push and a pop", SWITCH, in_macro("ACO__YIELD", '"leaq 1f', '"pushq %%rax\\n\\tpopq %%rax\\n\\tleaq 1f'),
          None, YIELD, "steady"),
    Fault("a store below sp", SWITCH, in_macro("ACO__YIELD", '"leaq 1f', '"movq %%rcx,-8(%%rsp)\\n\\tleaq 1f'), None,
          YIELD, "memory"),
    Fault("a store behind the context", SWITCH,
          in_macro("ACO__YIELD", '"leaq 1f', '"movq %%rcx,48(%%rdi)\\n\\tleaq 1f'), None, YIELD, "memory"),
    Fault("a mask that forgets the exception masks", SWITCH, "andl $-64,", "andl $-8192,", YIELD, "control.arrives"),
    Fault("MXCSR is not loaded", SWITCH, in_macro("ACO__FP_SLOW", '"2:\\tldmxcsr " from(ACO__MXCSR) "\\n"', '"2:\\n"'),
          None, RESUME, "control.arrives"),
    Fault("MXCSR is not stored", SWITCH,
          in_macro("ACO__FP_SLOW", '"4:\\tstmxcsr " to(ACO__MXCSR) "\\n\\t"', '"4:\\t"'), None, RESUME, "control.kept"),
    Fault("the x87 control word is not loaded", SWITCH, '"fldcw " from(ACO__X87CW) "\\n\\t"', '""', RESUME,
          "control.arrives"),
    Fault("the x87 control word is not stored", SWITCH,
          in_macro("ACO__FP_SLOW", '"fnstcw " to(ACO__X87CW) "\\n\\t"', '""'), None, RESUME, "control.kept"),
    Fault("no fnclex", SWITCH, '"fnclex\\n\\t"', '""', RESUME, "control.exceptions"),
    Fault("a shared environment is taken for an own one", SWITCH, in_macro("ACO__FP_SWAP", '"jns 4f', '"js 4f'), None,
          RESUME, "control.untouched"),
    Fault("the FP environment of the wrong side", SWITCH,
          in_macro("ACO__YIELD", "fp_slow(ACO__BLOCK, ACO__THREAD)", "fp_slow(ACO__THREAD, ACO__BLOCK)"), None, YIELD,
          "control.kept control.arrives"),
    Fault("the control word beside its place", X86, "#define ACO__X87CW ACO__FP_CONTROL2",
          "#define ACO__X87CW ACO__STATE_BYTE", RESUME, "memory control.kept"),
    Fault("nobody is named as running", SWITCH,
          in_macro("ACO__RESUME", '"movq %%rdi," ACO__THREAD(ACO__RUNNING) "\\n\\t"', '""'), None, RESUME, "running"),
    Fault("a coroutine that yields goes on being named", SWITCH,
          in_macro("ACO__YIELD", '"movq $0," ACO__THREAD(ACO__RUNNING) "\\n\\t"', '""'), None, YIELD, "running"),
    Fault("an exit does not say that nobody runs", SWITCH,
          in_macro("ACO__EXIT", '"movq $0," ACO__THREAD(ACO__RUNNING)', '"movq $0," ACO__THREAD(48)'), None,
          ["aco__end", "end"], "running", unit="src/coroutine/exit.c"),
    Fault("a record beside the thread's", SWITCH, '__asm__ volatile("movq aco__thread@gottpoff(%%rip),%0"',
          '__asm__ volatile("movq aco__thread@gottpoff(%%rip),%0\\n\\taddq $64,%0"', RESUME, "thread"),
    Fault("another arrival label", SWITCH, in_macro("ACO__YIELD", "leaq 1f", "leaq 5f"), None, YIELD, "kept.pc"),
    Fault("no landing pad", SWITCH, in_macro("ACO__YIELD", '"1:\\t" ACO__LANDING_PAD', '"1:\\t"'), None, YIELD, "pad",
          flags="-O2 -fcf-protection"),
    Fault("the base pointer before the landing pad", SWITCH,
          in_macro("ACO__RESUME", "ACO__RESUMER_BASE", "ACO__LANDING_PAD"), None, RESUME, "exit.saved stale pad",
          compiler="clang", flags="-O2 -fcf-protection"),
    Fault("the landing pad comes late", SWITCH,
          in_macro("ACO__RESUME", '"1:\\t" ACO__LANDING_PAD', '"1:\\tnop\\n\\t" ACO__LANDING_PAD'), None, RESUME, "pad",
          flags="-O2 -fcf-protection"),
    Fault("the direction flag is set", SWITCH, in_macro("ACO__YIELD", '"leaq 1f', '"std\\n\\tleaq 1f'), None, YIELD,
          "status"),
    Fault("a value is left on the x87 stack", SWITCH, in_macro("ACO__YIELD", '"leaq 1f', '"fldz\\n\\tleaq 1f'), None,
          YIELD, "status"),
    Fault("the value is lost", SWITCH, in_macro("ACO__RESUME", '"leaq 1f', '"xorl %%ecx,%%ecx\\n\\tleaq 1f'), None,
          ["send_in_a_loop"], "carried"),
    Fault("the frame pointer through the new stack pointer", SWITCH,
          in_macro("ACO__LEAVE", '"movq " from(ACO__BP) ",%%rbp', '"movq (%%rsp),%%rbp'), None, YIELD, "memory"),
    Fault("ret instead of jmp", SWITCH,
          in_macro("ACO__LEAVE", '"jmpq *" from(ACO__PC) "\\n"', '"pushq " from(ACO__PC) "\\n\\tjmpq *(%%rsp)\\n"'),
          None, RESUME, "steady"),
    Fault("a transfer stores into the block that it enters", SWITCH,
          in_macro("ACO__TRANSFER", "ACO__STORE(ACO__LEAVING)", "ACO__STORE(ACO__BLOCK)"), None, ["transfer"],
          "kept.sp"),
    Fault("a swap loses the stack pointer", SWITCH, in_macro("ACO__PEER_SWAP", "xchgq %%rsp,%%rcx", "movq %%rcx,%%rsp"),
          None, ["numbers"], "kept.sp"),
    Fault("a swap leaves rbx", SWITCH, in_macro("ACO__PEER_SWAP", '"xchgq %%rbx,%%r8\\n\\t"', '""'), None, ["numbers"],
          "arrives.frame"),
    Fault("an in-stack resume does not compare", SWITCH, in_macro("ACO__IN_STACK_RESUME", "jne 2f", "nop"), None,
          ["moves_the_stack"], "arrives.sp", unit="in_stack.c"),
    Fault("an in-stack generator ends beside a multiple of 16", SWITCH,
          in_macro("ACO__IN_STACK_LAST", '"andq $-16,%%rsp\\n\\t"', '""'), None, ["leave_generator"], "aligned",
          compiler="clang", unit="src/coroutine/cancel.c"),
    Fault("clang's base pointer is not stored", SWITCH,
          '#define ACO__KEEP_BASE(to) "movq %%rbx," to(ACO__BASE) "\\n\\t"', "#define ACO__KEEP_BASE(to)",
          ["over_aligned"], "kept.frame", compiler="clang", unit="others.c"),
    Fault("clang's base pointer is not loaded", SWITCH,
          '#define ACO__RESUMER_BASE "movq " ACO__THREAD(ACO__BASE) ",%%rbx\\n\\t"', "#define ACO__RESUMER_BASE",
          ["over_aligned"], "exit.saved stale", compiler="clang", unit="others.c"),
    Fault("a stack's top is not aligned", SWITCH, "#define ACO__ENTRY_BELOW_TOP 8", "#define ACO__ENTRY_BELOW_TOP 16",
          ["aco__stack_lay_out"], "entry.aligned", unit="src/stack/layout.c"),
    Fault("no return address at the top", ENTRY, "((const void **)stack->aco__top)[ACO__RETURN_WORD] = aco__returned;",
          "", ["aco__stack_set_return"], "entry.return", unit=ENTRY),
    Fault("a first entry beside the top", API, "co->aco__self.sp = co->share_stack->aco__top;",
          "co->aco__self.sp = (char *)co->share_stack->aco__top + 8;", ["prepares"], "begin.context", unit="begins.c"),
    Fault("a new coroutine without the thread's MXCSR", CREATE_H,
          "    co->aco__fp_control = self->new_fp_control;\n", "", ["prepares"], "begin.context", unit="begins.c"),
    Fault("a new coroutine with another's x87 control word", CREATE_H, "co->aco__fp_control2 = self->new_fp_control2;",
          "co->aco__fp_control2 = self->root_fp_control2;", ["prepares"], "begin.context", unit="begins.c"),
    Fault("a generator's words hold another function", GENERATOR, "start[ACO__START_FUNCTION] = function;",
          "start[ACO__START_FUNCTION] = arg;", ["generator_context"], "begin.context", unit="begins.c"),
    Fault("a generator's words begin beside a multiple of 16", SWITCH, "ACO__START_ARGUMENT = 2, ACO__START_WORDS = 4",
          "ACO__START_ARGUMENT = 2, ACO__START_WORDS = 5", ["generator_context"], "begin.context", unit="begins.c"),
    Fault("a generator's function stays on its stack", ENTRY_X86_64, '"\\tpopq %r9\\n"\n        "\\tjmpq *%r9\\n"',
          '"\\tmovq (%rsp),%r9\\n"\n        "\\tjmpq *%r9\\n"', ["aco__generator_begin"], "begin.aligned begin.return",
          unit=ENTRY),
    Fault("no landing pad where a generator begins", ENTRY_X86_64, '"\\tendbr64\\n"\n        "\\tpopq %r9\\n"',
          '"\\tpopq %r9\\n"', ["aco__generator_begin"], "begin.pad", unit=ENTRY),
    Fault("i386: a swap leaves the resume address on the stack", I386,
          in_macro("ACO__PEER_SWAP", '"popl %%eax', '"movl (%%esp),%%eax'), None, ["numbers"], "arrives.sp",
          arch="i386", flags="-O2 -m32 -msse2"),
    Fault("i386: a swap goes on four bytes further", I386, "addl $(1f-8b),(%%esp)", "addl $(1f-8b+4),(%%esp)",
          ["numbers"], "kept.pc", arch="i386", flags="-O2 -m32 -msse2 -fPIC"),
    Fault("i386: who has ended is not told", I386,
          in_macro("ACO__PEER_SWAP_LAST", '"xorl %%eax,%%eax', '"movl %%ecx,%%eax'), None, ["numbers"], "kept.pc",
          arch="i386", flags="-O2 -m32 -msse2"),
    Fault("i386: who finds itself leaves that on the stack", I386,
          in_macro("ACO__FIND_SELF", '":\\tpopl " reg', '":\\tmovl (%%esp)," reg'), None, RESUME, "kept.sp exit.sp",
          arch="i386", flags="-O2 -m32 -msse2 -fPIC"),
    Fault("i386: the word beside the thread slot's in the offset table", I386, "$_GLOBAL_OFFSET_TABLE_+(.-9b)",
          "$_GLOBAL_OFFSET_TABLE_+4+(.-9b)", RESUME, "thread", arch="i386", flags="-O2 -m32 -msse2 -fPIC"),
    Fault("LoongArch: no clobber of s3", LOONGARCH64, '"$s3", ', "", RESUME, "exit.saved stale", **LOONGARCH),
    Fault("LoongArch: the rounding mode is not compared", LOONGARCH64, '"andi $t2,$t2,0x31f', '"andi $t2,$t2,0x1f',
          RESUME, "control.arrives", **LOONGARCH),
    Fault("LoongArch: clang's base pointer is not stored", LOONGARCH64,
          'ACO__KEEP_BASE(to) "st.d $s8," to(ACO__BASE) "\\n\\t"', "ACO__KEEP_BASE(to)", ["over_aligned"], "kept.frame",
          unit="others.c", **LOONGARCH),
    Fault("LoongArch: an in-stack resume makes less room", LOONGARCH64, "addi.d $sp,$sp,128", "addi.d $sp,$sp,64",
          ["moves_the_stack"], "arrives.sp", unit="in_stack.c", **LOONGARCH),
    Fault("Power: the room of an in-stack generator's consumer has the generator's back chain",
          "include/aco/arch/ppc64le.h", "ld 9,0(31)", "ld 9,0(1)", ["moves_the_stack"], "exit.sp", unit="in_stack.c",
          arch="ppc64le", compiler="clang"),
    Fault("Thumb: no clobber of r8", "include/aco/arch/arm.h", '"r5", "r8", "r9", "r10"', '"r5", "r9", "r10"',
          ["run"], "exit.saved stale", unit="src/scheduler/run.c", arch="thumb", flags="-O2 -mthumb"),
    Fault("Power: no clobber of cr2", "include/aco/arch/ppc64le.h", '"cr1", "cr2"', '"cr1"', ["leave_task"],
          "exit.saved stale", unit="src/scheduler/inner.c", arch="ppc64le", compiler="clang"),
    Fault("s390x: no clobber of r10", S390X, '"r9", "r10", "r14", "memory"', '"r9", "r14", "memory"', ["run"],
          "exit.saved stale", unit="src/scheduler/run.c", arch="s390x"),
    Fault("s390x: no clobber of r9", S390X, '"r9", ', "", RESUME, "exit.saved stale", arch="s390x"),
    Fault("s390x: no clobber of f12", S390X, '"f12", ', "", DOUBLES, "exit.saved stale", unit="others.c", arch="s390x",
          compiler="clang"),
    Fault("s390x: FPC's masks are not compared", S390X, "nilf %%r0,0xff0000ff", "nilf %%r0,0xff", RESUME,
          "control.arrives", arch="s390x"),
    Fault("s390x: gcc's literal pool register is not kept", S390X, "stmg %%r12,%%r13,96(%%r15)", "stg %%r12,96(%%r15)",
          RESUME, "kept.frame", arch="s390x"),
    Fault("s390x: a shared environment is taken for an own one", S390X, '"je 4f', '"jne 4f', RESUME,
          "control.untouched", arch="s390x"),
    Fault("s390x: an in-stack resume does not hand r13 over", S390X, "lgr %%r6,%%r13", "lgr %%r6,%%r12",
          ["moves_the_stack"], "kept.frame", unit="in_stack.c", arch="s390x"),
    Fault("s390x: a generator does not bring r12 back", S390X, "lgr %%r12,%%r5", "lgr %%r12,%%r6", ["counts"],
          "arrives.frame", unit="in_stack.c", arch="s390x"),
    Fault("no cold call", API, "            aco__interrupted(tagged);", "", ["leaf"], "redzone", unit="leaf.c"),
]


def change(fault, folder):
    include = folder / "include"
    for name in ("include", "src"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    path = folder / fault.file
    text = before = path.read_text()
    if callable(fault.old):
        text = fault.old(text)
    else:
        for old, new in fault.old if isinstance(fault.old, list) else [(fault.old, fault.new)]:
            assert text.count(old) == 1, "%s: %d times in %s: %s" % (fault.name, text.count(old), fault.file, old)
            text = text.replace(old, new)
    assert text != before, fault.name
    path.write_text(text)
    fault.configuration.units = [folder / u.relative_to(ROOT) if u.is_relative_to(ROOT / "src") else u
                                 for u in fault.configuration.units]
    return include


def look(number):
    fault = FAULTS[number]
    folder = prove.OUT / "mutations" / str(number)
    shutil.rmtree(folder, ignore_errors=True)
    include = change(fault, folder)
    return fault.name, fault.theorems, prove.prove(fault.configuration, include, folder / "out", fault.functions)


def third_path_is_told():
    """A former fault of the prover: the term for two values, where paths meet, also stood for a third value, which no
    path had."""
    client = types.SimpleNamespace(narrow=(), alignment=lambda term: None, both_or_zero=lambda a, b: None, or_zero={},
                                   arch=ARCHES["x86_64"])
    states, ours = [], set()
    for term in (terms.const(8, 1), terms.const(8, 2), terms.fresh(8, "nobody's", poison=True)):
        states.append(State())
        State.write(states[-1].registers, 0, term)
    joined = functools.reduce(lambda a, b: Join(ours, client).state(a, b), states)
    return terms.is_poisoned(State.read(joined.registers, 0, 8, "register"))


def main(options):
    wanted = [n for n, fault in enumerate(FAULTS) if re.search(options.only, fault.name)]
    absent = [n for n in wanted if not FAULTS[n].configuration.is_here()]
    wanted = [n for n in wanted if n not in absent]
    begun, missed = time.monotonic(), []
    if not third_path_is_told():
        missed.append("what a third path brings")
        print("what a third path brings: NOT FOUND")
    with multiprocessing.Pool(options.jobs) as pool:
        for name, expected, outcome in pool.imap(look, wanted, chunksize=1):
            failed = sorted({theorem for _, theorem, _ in outcome.failures})
            found = not outcome.error and set(expected) & set(failed)
            print("%-52s %s by %s" % (name, "found" if found else "NOT FOUND", ", ".join(failed) or "none"), flush=True)
            if not found:
                missed.append(name)
                print("    expected %s; %d switches, %d claims\n    %s"
                      % (" or ".join(expected), outcome.sites, outcome.claims, outcome.error or ""))
            elif options.verbose:
                print("    %s" % next((where, what) for where, theorem, what in outcome.failures
                                      if theorem in expected)[1])
    for n in absent:
        print("not run, no compiler: " + FAULTS[n].name)
    print("%d seeded faults, %d not found for the right reason, %d not run, %.0f s" % (
        len(wanted), len(missed), len(absent), time.monotonic() - begun))
    return 1 if missed or not wanted else 0
