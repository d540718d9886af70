"""What the plots share: matplotlib's setup, colours, axes and files."""
import io
import re
import xml.etree.ElementTree as xml

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
    matplotlib.rcParams.update({"svg.hashsalt": "acorn", "svg.fonttype": "none", "font.family": "sans-serif",
                                "font.size": 10})
    import matplotlib.pyplot
    return matplotlib.pyplot


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FONTS = "font-family: DejaVu Sans, Verdana, sans-serif"  # all as wide as the one that matplotlib measures


def compact(text):
    """The same picture in fewer bytes: one element a line, without metadata, groups and digits that nobody sees."""
    for name, where in (("", SVG), ("xlink", XLINK)):
        xml.register_namespace(name, where)
    root = xml.fromstring(text)
    used = set(re.findall(r"#([\w.-]+)", text))
    for element in list(root.iter()):
        element.text, element.tail = (element.text or "").strip(), ""
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        for name, value in element.attrib.items():
            if name != f"{{{XLINK}}}href" and name not in ("id", "clip-path"):
                value = re.sub(r"font: ([\d.]+px) [^;]*", r"font-size: \1", value)
                value = re.sub(r"[1-9]\d*\.\d+", lambda number: f"{round(float(number[0]), 2):g}", value)
                element.set(name, re.sub(r"\s+", " ", value).strip())
        if re.match(r"rotate\(-?0 ", element.get("transform", "")):
            del element.attrib["transform"]
    flatten(root)
    root.set("style", FONTS)
    return xml.tostring(root, encoding="unicode").replace("><", ">\n<").replace(" />", "/>") + "\n"


def flatten(element):
    """Puts the elements of groups without attributes in the groups' places."""
    for child in list(element):
        flatten(child)
        if child.tag == f"{{{SVG}}}metadata":
            element.remove(child)
        elif child.tag == f"{{{SVG}}}g" and not child.attrib:
            at = list(element).index(child)
            element[at:at + 1] = list(child)


def write_plots(directory, drawings):
    """`drawings`: file name -> a function that draws with pyplot and returns (figure, whether it shows anything)."""
    plt = pyplot() if directory else None
    if not plt:
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name, draw in drawings.items():
        figure, drawn = draw(plt)
        if drawn:
            text = io.StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
            (directory / name).write_text(compact(text.getvalue()), encoding="utf-8")
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
