#!/usr/bin/python3
"""Draws how Acorn's ratios to its yardsticks went from one recorded run to the next, on each processor.

    bench/history.py FILE.svg

The runs are all that bench/results had in any commit of this clone. Only ratios within a run are drawn: times of two
machines cannot be compared. A table with one recorded run has no history, and no picture.
"""
import json
import sys
from pathlib import Path

from harness.building import ROOT, output_of
from harness.cases import ACORN, CALLBACK, CLASSIC, COROSENSEI, CPP20, GO
from harness.memory_cases import GLIBC, LIVE
from harness.paper_cases import CPP20_TASK
from harness.plots import GREY, write_plots
from harness.processors import name_and_colour

TEN_MILLION = {"n": 10_000_000, "live": LIVE}
MADE_IN_TURN = {"live": 96, "order": "made", "fp": "shared"}
BY_RET = {"what": "next of the ring, by ret"}
PANELS = (  # title, case, field, of (implementation, parameters), to; each table of the documents has one at least
    ("resume and yield, to a classic switch", "flat", "ns",
     (ACORN, {"coroutines": 1, "form": "inline", "fp": "shared FP"}), (CLASSIC, {"coroutines": 1})),
    ("yield 4 calls deep, to a classic switch", "nested", "ns",
     (ACORN, {"depth": 4, "form": "inline", "fp": "shared FP"}), (CLASSIC, {"depth": 4})),
    ("a coroutine's whole life, to corosensei", "native_call", "ns",
     (ACORN, {"what": "new, send, return, destroy"}), (COROSENSEI, {})),
    ("in-stack generator, a sum, to C++20", "generator_sum", "ns",
     (ACORN, {"what": "in-stack generator"}), (CPP20, {"what": "for loop"})),
    ("generator, Hanoi(20), to callbacks", "generator_hanoi", "ns",
     (ACORN, {"what": "own-stack generator"}), (CALLBACK, {})),
    ("yield in a ring of 10, to a classic ring", "scheduler_ring", "ns",
     (ACORN, {"what": "aco_task_yield", "tasks": 10}), (CLASSIC, {"tasks": 10})),
    ("channel ping-pong, to Go", "scheduler_ping_pong", "ns", (ACORN, {}), (GO, {})),
    ("spawn, run and join, to Go", "scheduler_spawn", "ns", (ACORN, {"tasks": 1}), (GO, {"tasks": 1})),
    ("a million on a share stack, to malloc's blocks", "rss_96_live_bytes_1M", "ns",
     (ACORN, {**MADE_IN_TURN, "save": "default"}), ("malloc_blocks", {**MADE_IN_TURN, "save": "fit"})),
    ("bytes of one of 10 million, to malloc's blocks", "scale_create", "bytes", (ACORN, TEN_MILLION),
     (GLIBC, TEN_MILLION)),
    ("resume in random order, to malloc's blocks", "scale_random", "ns", (ACORN, TEN_MILLION),
     (GLIBC, TEN_MILLION)),
    ("write_fully(), to C++20", "write_fully", "ns", (ACORN, {"what": "scheduler"}), (CPP20_TASK, {})),
    ("HTTP client, to a classic ring by ret", "http", "ns", (ACORN, {"what": "inline switch"}), (CLASSIC, BY_RET)),
    ("RPC client, to a classic ring by ret", "rpc", "ns", (ACORN, {"what": "inline switch"}), (CLASSIC, BY_RET)),
    ("instructions of an RPC, to a classic ring", "rpc_counted", "instructions",
     (ACORN, {"what": "inline switch"}), (CLASSIC, {})),
    ("submit and join on 2 threads, to Go", "empty", "ns", ("acorn, 2 threads", {}), ("Go, 2 threads", {})),
    ("skynet on 2 threads, to Go", "skynet", "ns", ("acorn, 2 threads", {}), ("Go, 2 threads", {})),
    ("CPU of an HTTP request, to nginx", "hello.64", "cpu_us", ("acorn", {}), ("nginx", {})),
    ("CPU of 1 MB over TLS, to Go", "tls-1m.64", "cpu_us", ("acorn", {}), (GO, {})),
    ("CPU of an echo, 100 clients, to an epoll loop", "echo.100", "cpu_us", ("acorn", {}), ("epoll loop", {})),
    ("CPU of a streamed MiB, to an epoll loop", "stream.1", "cpu_us", ("acorn", {}), ("epoll loop", {})),
    ("CPU of a random read by io_uring, to fio", "files", "cpu_us", ("acorn, io_uring", {}), ("fio, io_uring", {})),
)
COLUMNS = 3


def git(*arguments):
    return output_of("git", "-C", str(ROOT), *arguments)


def recorded():
    """The runs that were not quick, oldest first: (description of the machine, rows). A run that was recorded again,
    with a row corrected, counts once."""
    found = {}
    for commit in git("log", "--reverse", "--format=%h", "--", "bench/results").split():
        for file in git("diff-tree", "--root", "--no-commit-id", "--name-only", "--diff-filter=AM", "-r", commit, "--",
                        "bench/results").split():
            if file.endswith(".json"):
                first, *rows = map(json.loads, git("show", f"{commit}:{file}").splitlines())
                about = first["machine"]
                if not about.get("quick"):
                    found[file, about["commit"]] = about, rows
    return list(found.values())


def value(rows, case, field, impl, params):
    """The first of such rows: gcc's, if two compilers built it."""
    fitting = (row[field] for row in rows if row["case"] == case and row["impl"] == impl and row.get(field)
               and all(row["params"].get(name) == wanted for name, wanted in params.items()))
    return next(fitting, None)


def points(runs, case, field, of, to):
    """(date, processor, ratio) of each run that has both."""
    for about, rows in runs:
        mine, theirs = value(rows, case, field, *of), value(rows, case, field, *to)
        if mine and theirs:
            yield about["date"], about["family, model"], mine / theirs


def draw_panel(axes, title, found):
    for processor in dict.fromkeys(processor for _, processor, _ in found):
        name, colour = name_and_colour(processor)
        line = [(x, ratio) for x, (_, of, ratio) in enumerate(found) if of == processor]
        axes.plot(*zip(*line), color=colour, marker="o", markersize=4, clip_on=False, label=name)
    axes.set_title(title, fontsize=8)
    axes.set_xticks(range(len(found)), [date[5:] for date, _, _ in found])
    axes.set_xlim(-0.5, len(found) - 0.5)
    axes.set_ylim(0, 1.1 * max(1, *(ratio for _, _, ratio in found)))
    axes.locator_params(axis="y", nbins=3)
    axes.tick_params(left=False, bottom=False, labelsize=7)
    axes.axhline(1, color=GREY, linewidth=0.6, clip_on=False)
    axes.spines[["top", "right", "left"]].set_visible(False)


def draw(plt, runs):
    panels = [(title, found) for title, *what in PANELS if len(found := list(points(runs, *what))) > 1]
    lines = max(1, -(-len(panels) // COLUMNS))
    figure, axes = plt.subplots(lines, COLUMNS, figsize=(9, 1.7 * lines + 0.4), squeeze=False)
    legend = {}
    for place, panel in zip(axes.flat, panels):
        draw_panel(place, *panel)
        legend.update(zip(*place.get_legend_handles_labels()[::-1]))
    for place in axes.flat[len(panels):]:
        place.set_visible(False)
    if legend:
        figure.legend(legend.values(), legend, loc="lower center", ncols=len(legend), frameon=False, fontsize=8)
        figure.tight_layout(rect=(0, 0.04, 1, 1))
    return figure, bool(panels)


def main():
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".svg"):
        sys.exit(__doc__)
    file = Path(sys.argv[1])
    write_plots(file.parent, {file.name: lambda plt: draw(plt, recorded())})


if __name__ == "__main__":
    main()
