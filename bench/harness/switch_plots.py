"""The plots of bench/run.py: one switch by contender, and by the number of coroutines."""
import statistics

from .cases import ACORN, BOOST_COROUTINE, BOOST_FIBER, CASES, CLASSIC, COROSENSEI, CPP20, ONE
from .plots import BLUE, DARK, GREEN, GREY, ORANGE, PURPLE, set_logarithmic, short, spaced
from .programs import INLINE, LIBRARY, OWN, SHARED
from .tables import number

LINES = {  # label -> colour, dashes
    f"{ACORN}, {INLINE}, {SHARED}": (GREEN, "-"),
    f"{ACORN}, {INLINE}, {OWN}": (GREEN, "--"),
    CLASSIC: (DARK, "-"),
    COROSENSEI: (ORANGE, "-"),
    BOOST_FIBER: (BLUE, "-"),
    BOOST_COROUTINE: (BLUE, "--"),
    "ucontext": (GREY, "-"),
    CPP20: (PURPLE, "-"),
}


def contenders(results, case, programs):
    """(label, is acorn, ns) of each bar of `case`, by gcc where two compilers built it."""
    chosen = {}
    for program in programs:
        if (case, program) in results.samples and program.params.get("form") != LIBRARY:
            chosen.setdefault(program.label, program)
    return [(label, program.impl == ACORN, statistics.median(results.samples[case, program]))
            for label, program in chosen.items()]


def draw_bars(plt, results, programs):
    bars = sorted(contenders(results, ONE, programs), key=lambda bar: bar[2], reverse=True)
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(bars) + 1.4))
    if not bars:
        return figure, False
    values = sorted(ns for _, _, ns in bars)
    edge = values[-1] * 1.15
    if len(values) > 2 and values[-1] > 4 * values[-2]:
        edge = values[-2] * 1.25  # one far outlier would make all others invisible
    axes.barh([label for label, _, _ in bars], [min(ns, edge) for _, _, ns in bars],
              color=[GREEN if ours else GREY for _, ours, _ in bars], height=0.7)
    for i, (_, _, ns) in enumerate(bars):
        if ns > edge:
            axes.text(edge * 0.99, i, f"{number(ns)}, beyond the axis", va="center", ha="right", color="white")
        else:
            axes.text(ns + edge * 0.008, i, number(ns), va="center")
    axes.set_xlim(0, edge)
    axes.set_xlabel("nanoseconds for one resume and yield (median),\n"
                    "one coroutine in a flat loop, -O2, gcc where it builds it")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.tight_layout()
    return figure, True


def draw_lines(plt, results, programs):
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True)
    drawn = False
    for axes, order in zip(panels, ("rr", "random")):
        cases = [case for case in CASES if case.name == "flat" and (case is ONE or case.order == order)]
        for label, (colour, dashes) in LINES.items():
            points = [(case.number, ns) for case in cases for name, _, ns in contenders(results, case, programs)
                      if name == label]
            if len(points) > 1:
                axes.plot(*zip(*points), color=colour, linestyle=dashes, marker="o", markersize=4, label=label)
                drawn = True
        set_logarithmic(axes, "coroutines", {"rr": "round robin", "random": "random order"}[order])
        axes.yaxis.set_major_formatter(short)
        axes.xaxis.set_major_formatter(spaced)
    if drawn:
        panels[0].set_ylabel("nanoseconds for one resume and yield (median)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=9)
        figure.tight_layout(rect=(0, 0.12, 1, 1))
    return figure, drawn


def drawings(results, programs):
    return {"switch.svg": lambda plt: draw_bars(plt, results, programs),
            "coroutines.svg": lambda plt: draw_lines(plt, results, programs)}
