"""The plots of bench/run_paper.py: each case beside the paper's ratios, and Hanoi by the number of discs."""
import statistics

from .cases import ACORN, BOOST_COROUTINE, COROSENSEI, CPP20, GO
from .paper_cases import CPP23, CSHARP, DISCS, PAPER, PYTHON, WRITE_FULLY_BOOST
from .paper_tables import hanoi_rows
from .plots import BLUE, GREEN, GREY, GRID, ORANGE, PURPLE, short
from .ratios import native_median, native_ratio

EDGE = 8  # of the axis; a bar beyond it says its ratio
COLOURS = {ACORN: GREEN, BOOST_COROUTINE: BLUE, CPP20: PURPLE, CPP23: "#b58fce", COROSENSEI: ORANGE, GO: "#d9a400",
           PYTHON: GREY, CSHARP: "#5f6b76"}


def plain_ratio(results, case, program):
    """The program's ratio to the case's base, both less the empty loop where the case measures one."""
    if not case.loop:
        return native_ratio(results, case, program)
    base, loop = (native_median(results, case, program, lines) for lines in (case.bases, [case.loop]))
    return (statistics.median(results.samples[case, program]) - loop) / (base - loop)


def bars(results, case):
    """[(label, ratio to the first line, the paper's or None, is acorn)], by clang, which has preserve_none."""
    chosen = {}
    for program in case.programs:
        if (case, program) in results.samples and program.line not in (case.loop, case.cycle):
            key = program.impl, program.params["what"]
            if program.params["what"] not in chosen or program.compiler.startswith("clang"):
                chosen[key] = program
    return [(f"{impl}: {what}", plain_ratio(results, case, program), PAPER.get((case.name, impl, what)), impl == ACORN)
            for (impl, what), program in chosen.items()]


def draw_bars(plt, results, case):
    found = bars(results, case)[::-1]
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(found) + 1.5))
    if not found:
        return figure, False

    def bar(y, ratio, text, size, **style):
        axes.barh(y, min(ratio, EDGE), **style)
        beyond = ", beyond the axis" if ratio > EDGE else ""
        axes.text(min(ratio, EDGE) + 0.03, y, f"{ratio:.2f}{text}{beyond}", va="center", fontsize=8, **size)

    for y, (_, ratio, paper, ours) in enumerate(found):
        bar(y + 0.18, ratio, "", {}, color=GREEN if ours else GREY, height=0.36)
        if paper:
            bar(y - 0.18, paper, " in the paper", {"color": ORANGE}, color="white", edgecolor=ORANGE, height=0.3)
    axes.set_yticks(range(len(found)), [label for label, *_ in found])
    axes.set_xlim(0, 1.25 * min(EDGE, max(max(ratio, paper or 0) for _, ratio, paper, _ in found)))
    axes.set_title(case.title, fontsize=10)
    axes.set_xlabel("time relative to the first; clang where it builds it", loc="right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure, True


def draw_hanoi(plt, results, cases):
    figure, axes = plt.subplots(figsize=(9, 4.6))
    drawn = set()
    for impl, what, _, ratios in hanoi_rows(results, cases):
        points = [(case.params["discs"], ratio) for case, ratio in zip(cases, ratios) if ratio]
        if impl in COLOURS and (impl, what) not in drawn and len(points) > 1:
            axes.plot(*zip(*points), color=COLOURS[impl], linestyle="--" if what == "own-stack generator" else "-",
                      marker="o", markersize=3, label=f"{impl}: {what}")
            drawn.add((impl, what))
    if drawn:
        axes.plot([20], [PAPER["hanoi", CPP20, "a generator for each call"]], marker="D", color="white",
                  markeredgecolor=COLOURS[CPP20], linestyle="none", label="C++20 in the paper's text")
        axes.set(yscale="log", xlabel="discs", ylabel="time, relative to recursion and callback", xticks=list(DISCS))
        axes.yaxis.set_major_formatter(short)
        axes.grid(True, color=GRID)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, ncols=2)
        figure.tight_layout()
    return figure, bool(drawn)


def drawings(results, cases, towers):
    found = {f"paper-{case.name}.svg": lambda plt, case=case: draw_bars(plt, results, case)
             for case in cases if case not in towers and case is not WRITE_FULLY_BOOST}
    if towers:
        found["paper-hanoi.svg"] = lambda plt: draw_hanoi(plt, results, towers)
    return found
