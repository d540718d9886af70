"""The plots of bench/run_memory.py: bytes and nanoseconds, by the number of coroutines and by their bytes
of locals."""
from .memory_cases import ACORN, BOOST, CPP20, ENTRY, GLIBC, GO, JEMALLOC, KIB, LIVE, LIVES, PRIVATE, PRIVATES, TCMALLOC
from .plots import BLUE, DARK, GREEN, LIGHT_GREEN, ORANGE, PURPLE, set_logarithmic, short, spaced

LINES = {  # impl -> colour, dashes
    ACORN: (GREEN, "-"), ENTRY: (GREEN, "--"), GLIBC: (DARK, "-"), TCMALLOC: (DARK, "--"), JEMALLOC: (DARK, ":"),
    CPP20: (PURPLE, "-"), BOOST: (BLUE, "-"), GO: (ORANGE, "-"), PRIVATE: (GREEN, ":"),
}
PREFETCHED = "acorn, aco_prefetch 8 ahead"
ORDERS = (("round_robin", "round robin"), ("random", "random order"))


def points(table, impl, case, field, param, **fixed):
    """By gcc where two compilers built it."""
    for name, compiler in table.contenders(case):
        if name == impl:
            values = LIVES if param == "live" else table.values(case, param, **fixed)
            found = [(value, table.get(case, impl, compiler, field, **{param: value}, **fixed)) for value in values]
            return [(x, y) for x, y in found if y is not None]
    return []


def private_points(table, case, field):
    found = [(n, table.get(case, PRIVATE, field=field, n=n, stack=sz)) for n, sz in PRIVATES if sz == 64 * KIB]
    return [(n, value) for n, value in found if value is not None]


def curves(table, step, field, param, **fixed):
    """(label, colour, dashes, points) of each measured contender."""
    found = []
    for impl, (colour, dashes) in LINES.items():
        if impl != PRIVATE:
            found.append((impl, colour, dashes, points(table, impl, f"scale_{step}", field, param, **fixed)))
        elif param == "n":
            found.append((f"{PRIVATE} 64 KiB stack", colour, dashes, private_points(table, f"private_{step}", field)))
    if step == "random":
        line = points(table, ACORN, "scale_random_prefetch", field, param, **fixed)
        found.append((PREFETCHED, LIGHT_GREEN, "-", line))
    return [curve for curve in found if len(curve[3]) > 1]


def tick(value, _):
    return spaced(value) if value >= 1 else short(value)


def draw(plt, panels, xlabel, ylabel):
    """`panels`: (title, curves). Both axes are logarithmic."""
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * max(len(panels), 1.4), 4.8), sharey=True, squeeze=False)
    labels = {}
    for panel, (title, lines) in zip(axes[0], panels):
        for label, colour, dashes, line in lines:
            labels[label], = panel.plot(*zip(*line), color=colour, linestyle=dashes, marker="o", markersize=4,
                                        label=label)
        set_logarithmic(panel, xlabel, title)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(tick)
    axes[0][0].set_ylabel(ylabel)
    if labels:
        figure.legend(labels.values(), labels, loc="lower center", ncols=4 if len(panels) > 1 else 3, frameon=False,
                      fontsize=9)
        figure.tight_layout(rect=(0, 0.16, 1, 1))
    return figure, bool(labels)


def drawings(table):
    resumed = "nanoseconds for one resume and yield"
    found = {
        "memory-bytes.svg": lambda plt: draw(plt, [("", curves(table, "create", "bytes", "n", live=LIVE))],
                                             "coroutines", "resident bytes each"),
        "memory-ns.svg": lambda plt: draw(plt, [(title, curves(table, step, "ns", "n", live=LIVE))
                                                for step, title in ORDERS], "coroutines", resumed),
    }
    numbers = table.values("scale_create", "n", live=LIVES[0])
    if numbers:
        n = max(numbers)
        found["memory-live.svg"] = lambda plt: draw(plt, [(title, curves(table, step, "ns", "live", n=n))
                                                          for step, title in ORDERS],
                                                    f"bytes of locals, {n} coroutines", resumed)
    return found
