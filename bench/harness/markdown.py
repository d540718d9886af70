"""What the Markdown tables share: rows of a JSON file, chosen and set beside each other by compiler."""
COMPILERS = ("gcc", "clang", "rustc", "go")  # the order of the numbers in a cell
NOTHING = "–"


def compiler_of(row):
    return row["params"]["compiler"].split()[0]


def fits(row, case, impl, wanted):
    """`wanted`: parameter -> its value, or a tuple of values."""
    return row.get("case") == case and row.get("impl") == impl and "missing" not in row and all(
        row["params"].get(key) in (value if isinstance(value, tuple) else (value,)) for key, value in wanted.items())


def numbers(rows, case, impl, wanted, field="ns"):
    """What the programs of each compiler measured, in the order of COMPILERS."""
    found = {compiler_of(row): row[field] for row in rows
             if fits(row, case, impl, wanted) and row.get(field) is not None}
    return [found[name] for name in COMPILERS if name in found]


def rounded(number):
    return f"{number:.1f}" if number < 100 else f"{number:.0f}"


def cell(values, form=rounded):
    return " / ".join(map(form, values)) or NOTHING


def each(rows, case, impl, wanted, field="ns"):
    return cell(numbers(rows, case, impl, wanted, field))


def line(*cells):
    return "".join(f"| {text} " if text else "| " for text in cells) + "|"


def heading(*cells):
    yield line(*cells)
    yield line(*["---"] * len(cells))
