#!/usr/bin/env python3
"""The documents: their links, README.zh.md, and that the tests of documents find faults. Their code: pages/pages.py.

  documents.py links     every link to a file or a heading leads there; so does what sources name: docs/PAGE.md, or
                         "docs/PAGE.md, Heading)" or "docs/PAGE.md, rule 3"
  documents.py sizes     the default sizes of stacks are everywhere what the source says
  documents.py chinese   README.zh.md has what README.md has
  documents.py seeded    links and sizes find faults that are put into a copy"""
import collections
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/pages"))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def files(root):
    """All but what builds make. Where there is no repository, in a release: all but build/."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True,
                            text=True, check=False)
    if listed.returncode == 0:
        return [path for path in listed.stdout.splitlines() if os.path.isfile(os.path.join(root, path))]
    return [path for folder, _, names in os.walk(root)
            for path in (os.path.relpath(os.path.join(folder, name), root) for name in names)
            if not path.startswith("build" + os.sep)]


# ---- links ----

def without_code(text):
    return re.sub(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`", "", text)


def anchors(text):
    """The names that GitHub gives to the headings."""
    found = {}
    for title in re.findall(r"(?m)^#+ +(.*)$", re.sub(r"(?ms)^ *```.*?^ *```$", "", text)):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {f"{name}-{n}" if n else name for name, count in found.items() for n in range(count + 1)}


def wrong_links(root):
    for page in files(root):
        if page.startswith("third_party/") or page == "tests/documents.py":
            continue
        text = read(root, page)
        if page.endswith(".md"):
            for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                if re.match(r"https?:", link):
                    continue
                if not os.path.exists(os.path.join(root, target)):
                    yield f"{page}: {link}: no such file"
                elif anchor and target.endswith(".md") and anchor not in anchors(read(root, target)):
                    yield f"{page}: {link}: no such heading"
        else:
            flat = re.sub(r"\s+(?:[*#/]+\s+)?", " ", text)
            for target, rule, title in re.findall(
                    r"(?<![\w/])(docs/[\w-]+\.md)(?:, (?:rule (\d+)|([A-Z][\w' -]*?)[).]))?", flat):
                if not os.path.exists(os.path.join(root, target)):
                    yield f"{page}: {target}: no such file"
                elif title and not re.search(rf"(?mi)^#+ {re.escape(title)}$", read(root, target)):
                    yield f"{page}: {target}, {title}: no such heading"
                elif rule and f"**{rule}. " not in read(root, target):
                    yield f"{page}: {target}: no rule {rule}"


def links(root):
    wrong = list(wrong_links(root))
    assert not wrong, "\n".join(wrong)


# ---- sizes of stacks ----

SIZES = [  # where the source has a size in bytes; places that repeat it
    ("include/aco/detail/config.h", r"ACO__PRIVATE_SIZE = (\d+ << \d+)", [
        ("include/aco.h", r"to pages or less\. 0: ({}) "),
        ("docs/memory.md", r"default size of a private stack, ({}), is"),
        ("tests/debugger/check.py", r"private stack of ({}) bytes"),
        ("bindings/rust/tests/coroutine.rs", r"private stack of ({}) bytes")]),
    ("include/aco/detail/config.h", r"ACO__SHARE_SIZE = (\d+ << \d+)", [
        ("include/aco.h", r"a share stack of at least `sz` bytes; 0 means ({}),"),
        ("docs/guide.md", r"aco_share_stack_new\(0\); +/\* ({}) \*/"),
        ("docs/migrating-from-libaco.md", r"one page more: ({}) and")]),
    ("bindings/python/acorn.py", r"STACK_SIZE = (\d+ << \d+)", [("bindings/README.md", r"Its stack of ({}) is")]),
]


def wrong_sizes(root):
    for source, definition, places in SIZES:
        number, shift = map(int, re.search(definition, read(root, source)).group(1).split(" << "))
        size = number << shift
        said = {f"{size}", f"{size >> 10} KiB", f"{size >> 20} MiB"}
        for page, pattern in places:
            found = re.search(pattern.replace("{}", r"\d+(?: [KM]iB)?"), re.sub(r"\s+(?:\* )?", " ", read(root, page)))
            if not found or found.group(1) not in said:
                yield f"{page}: {found.group(0) if found else pattern}: {source} has {number} << {shift}"


def sizes(root):
    wrong = list(wrong_sizes(root))
    assert not wrong, "\n".join(wrong)


# ---- README.zh.md ----

def facts(text):
    """What is the same in every language: code, names, links, numbers, which cells of tables are bold."""
    text = re.sub(r"(?s)<!-- numbers:begin.*?numbers:end -->", "", text)  # bench/readme.py checks them
    plain = re.sub(r"(?ms)^```.*?^```", "", text)
    words = re.sub(r"`[^`\n]+`|\]\([^)]*\)", "", plain)
    return {
        "code": re.findall(r"(?ms)^```(?:c|cpp)\n.*?^```", text),
        "commands": [re.split(r"\s+#", line)[0] for line in re.findall(r"(?m)^    .*", plain)],
        "tables": [[[cell.count("**") for cell in row.split("|")] for row in table.splitlines()]
                   for table in re.findall(r"(?m)(?:^\|.*\n)+", plain)],
        "names": set(re.findall(r"`[^`\n]+`", plain)),
        "links": set(re.findall(r"\]\(([^)\s]+)\)", plain)) - {"README.zh.md"},
        "numbers": collections.Counter(re.findall(r"(?<![\w.-])\d[\d.]*", words)),
    }


def chinese():
    """README.zh.md is not README.md word for word: it may have more. What README.md says it has, too."""
    wanted, got = facts(read(ROOT, "README.md")), facts(read(ROOT, "README.zh.md"))
    for kind, value in wanted.items():
        if isinstance(value, (set, collections.Counter)):
            assert value <= got[kind], f"README.zh.md lacks these {kind}: {value - got[kind]}"
        else:
            assert value == got[kind], f"README.zh.md has other {kind} than README.md: {got[kind]}\nwanted: {value}"


# ---- faults that must be found ----

FAULTS = [  # a page that is added, what is said of it
    ("docs/seeded.md", "[x](nowhere.md)\n", "no such file"),
    ("docs/seeded.md", "# Title: it\n[x](seeded.md#title-it) [y](#title)\n", "#title: no such heading"),
    ("src/seeded.c", "/* docs/nowhere.md\n * says so */\n", "no such file"),
    ("src/seeded.c", "/* it is (docs/seeded.md,\n * A title). */\n", "no such heading"),
    ("src/seeded.c", "/* it is (docs/seeded.md, rule 3) */\n", "no rule 3"),
    ("docs/seeded.md", "```c\nint f(void);\n```\n", "neither a program"),
    ("docs/seeded.md", "<!-- within\nvoid f(void) {\n...\n}\n-->\n\n```c\nint i = ;\n```\n", "seeded.md:8"),
    ("docs/seeded.md", "```c\n#include <stdio.h>\nint main(void) { puts(\"1\"); }\n```\n\nIt prints `2`.\n",
     "prints `2`"),
    ("docs/seeded.md", "```c\nint main(void) { return 1; }\n```\n", "ends with 1"),
    ("docs/seeded.md", "<!-- echoes at 7000 -->\n```c\nint main(void) { return 0; }\n```\n", "no echo"),
]


def seeded():
    import pages  # pylint: disable=import-outside-toplevel
    for page, text, says in FAULTS:
        with tempfile.TemporaryDirectory() as root:
            for path in ("docs/seeded.md", page):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text if path == page else "# Seeded\n")
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write("```c\nint main(void) { return 0; }\n```\n")
            try:
                links(root)
                pages.test_blocks(root, ["cc", "%%"], root)
            except AssertionError as error:
                assert says in str(error), f"{says!r} was expected, it says: {error}"
            else:
                raise AssertionError(f"not found: {text}")
    with tempfile.TemporaryDirectory() as root:
        for source, definition, places in SIZES:
            for path in [source] + [page for page, _ in places]:
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                text = read(ROOT, path) if not os.path.exists(os.path.join(root, path)) else read(root, path)
                if path == source:
                    text = re.sub(definition, lambda found: found.group(0) + "0", text)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
        missed = [page for _, _, places in SIZES for page, _ in places
                  if not any(wrong.startswith(page) for wrong in wrong_sizes(root))]
        assert not missed, f"another size was not found in {missed}"


if __name__ == "__main__":
    {"links": lambda: links(ROOT), "sizes": lambda: sizes(ROOT), "chinese": chinese, "seeded": seeded}[sys.argv[1]]()
