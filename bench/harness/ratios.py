"""Ratios between measurements of one run: what is compared with what."""
import statistics

from .cases import ACORN
from .programs import INLINE, SHARED


def reference(results, case, program, impl):
    """What `program` is compared with in the matrix: `impl` by the same compiler, else by all compilers.

    For Acorn this is the inline form with a shared floating-point environment."""
    def fits(other):
        return other.impl == impl and (impl != ACORN or other.params == {"form": INLINE, "fp": SHARED})

    return results.pooled(case, lambda other: fits(other) and other.compiler == program.compiler) \
        or results.pooled(case, fits)


def matrix_ratio(results, case, program, impl):
    """The program's median to that of `impl`, or None."""
    ns, base = results.samples.get((case, program)), reference(results, case, program, impl)
    return statistics.median(ns) / base if ns and base else None


def native_median(results, case, program, lines):
    """The fastest of `lines` with the compiler of `program`, else the fastest of all."""
    for alike in (lambda other: other.compiler == program.compiler, lambda other: True):
        found = [results.pooled(case, lambda other, line=line: other.line is line and alike(other)) for line in lines]
        if any(found):
            return min(ns for ns in found if ns)
    return None


def native_ratio(results, case, program):
    """The program's median to that of the case's base, or None."""
    ns, base = results.samples.get((case, program)), native_median(results, case, program, case.bases)
    return statistics.median(ns) / base if ns and base else None


def native_cycles(results, case, program):
    """The program's median in cycles, less the loop around it; None where the case does not measure cycles."""
    ns = results.samples.get((case, program))
    if not case.cycle or not ns or program.line in (case.loop, case.cycle):
        return None
    loop, cycle = (native_median(results, case, program, [line]) for line in (case.loop, case.cycle))
    return (statistics.median(ns) - loop) / cycle if loop and cycle else None
