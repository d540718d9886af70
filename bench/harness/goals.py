"""Goals: what a command of bench/ prints at its end, in one form: each goal, and whether this run met it."""
from typing import NamedTuple

from .tables import print_columns

MET, MISSED, UNMEASURED, UNJUDGED = "met", "MISSED", "not measured", "not judged"
ORDER = (MET, UNJUDGED, UNMEASURED, MISSED)  # what was missed stands last, next to the prompt
HEADING = ("case", "what", "compared with", "compiler", "value", "goal", "")


class Judgement(NamedTuple):
    """A row of the table."""
    case: str
    what: str
    base: str
    compiler: str
    value: str
    goal: str
    verdict: str


def judged(case, what, value, bound, base="", compiler="", form="{:.3f}".format, is_least=False, is_judged=True):
    """`value` is at most `bound`, or at least if `is_least`; None: it was not measured. The verdict is of the value
    itself, not of the digits that `form` leaves. Not `is_judged`: the goal is for more than this run measured."""
    if value is None:
        verdict = UNMEASURED
    elif not is_judged:
        verdict = UNJUDGED
    else:
        verdict = MET if (value >= bound if is_least else value <= bound) else MISSED
    return Judgement(case, what, base, compiler, "-" if value is None else form(value),
                     f"{'>=' if is_least else '<='} {form(bound)}", verdict)


def print_goals(rows):
    """Nothing where there are none."""
    if not rows:
        return
    print("\nGoals: ratios or values, medians of this run")
    print_columns([HEADING, *sorted(rows, key=lambda row: ORDER.index(row.verdict))], 4)
    counts = [(verdict, sum(row.verdict == verdict for row in rows)) for verdict in (MISSED, *ORDER[:-1])]
    print("Goals: " + ", ".join(f"{count} {verdict}" for verdict, count in counts if count or verdict == MISSED))
