"""What the plots share: matplotlib's setup, colours, axes and files."""
GREEN, LIGHT_GREEN, DARK, GREY, ORANGE, BLUE, PURPLE = \
    "#2a7f4f", "#7cc29a", "#444444", "#9aa5b1", "#c7522a", "#3b6fb6", "#8a63a8"
GRID = "#e3e6ea"


def pyplot():
    """matplotlib.pyplot, set up to write equal files for equal numbers; None, and a message, if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("\nno plots: matplotlib is not installed for this Python "
              "(Debian: apt-get install python3-matplotlib, then /usr/bin/python3)")
        return None
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "acorn", "font.family": "sans-serif", "font.size": 10})
    import matplotlib.pyplot
    return matplotlib.pyplot


def write_plots(directory, drawings):
    """`drawings`: file name -> a function that draws with pyplot and returns (figure, whether it shows anything)."""
    plt = pyplot() if directory else None
    if not plt:
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name, draw in drawings.items():
        figure, drawn = draw(plt)
        if drawn:
            figure.savefig(directory / name, metadata={"Date": None})
            print(f"\nplot: {directory / name}")
        plt.close(figure)


def set_logarithmic(axes, xlabel, title):
    axes.set(xscale="log", yscale="log", xlabel=xlabel, title=title)
    axes.grid(True, which="major", color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def spaced(value, _=None):
    """1000000 -> "1 000 000"; also a formatter of an axis."""
    return f"{value:,.0f}".replace(",", " ")


def short(value, _=None):
    return f"{value:g}"
