#!/usr/bin/env python3
"""The documents: their links, and their code.

  documents.py links                 every link to a file or a heading leads there; so does what sources name:
                                     docs/PAGE.md, or "docs/PAGE.md, Heading)" or "docs/PAGE.md, rule 3"
  documents.py code FOLDER CC CXX FLAGS LIBRARY...   every block of C or C++ in README.md and docs/ is compiled, and
                                     every program is run
  documents.py seeded                the same finds faults that are put into a copy

A block with main() is a program. If the next text says: prints `WORDS`, its output must be these words. Other blocks
are compiled inside of what a comment right before them has, where it says `...`:

  <!-- within
  void f(void) {
  ...
  }
  -->

`<!-- echoes at PORT -->` before a program: it is a server, which must send back what it gets. The pages in OTHERS have
tests of their own."""
import concurrent.futures
import contextlib
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OTHERS = re.compile(r"docs/(tutorial-.*|cookbook)\.md$")
LIMIT_S = 100
BLOCK = re.compile(r"(?:<!-- (?P<how>within|echoes at)\s(?P<what>(?:(?!-->).)*)-->\n+)?"
                   r"^(?P<indent> *)```(?P<language>c|cpp)\n(?P<text>.*?)^ *```\n"
                   r"(?=(?P<after>\s*[^\n]+(?:\n[^\n]+)*)?)",
                   re.M | re.S)


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


# ---- code ----

def blocks(root):
    pages = ["README.md", *sorted(p for p in files(root) if re.match(r"docs/[^/]*\.md$", p) and not OTHERS.match(p))]
    for page in pages:
        text = read(root, page)
        for n, block in enumerate(BLOCK.finditer(text)):
            line = text.count("\n", 0, block.start("text")) + 1
            yield f"{page}:{line}", f"{os.path.basename(page)[:-3]}-{n}", block


def free_port():
    """Below the ports that the system gives to others meanwhile."""
    for port in random.sample(range(20000, 30000), 100):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return str(port)
    raise OSError("no free port")


def is_echo(program, port):
    with subprocess.Popen([program]) as server:
        try:
            for _ in range(LIMIT_S * 10):
                try:
                    with socket.create_connection(("127.0.0.1", int(port)), LIMIT_S) as peer:
                        peer.sendall(b"hello")
                        return peer.recv(5, socket.MSG_WAITALL) == b"hello"
                except ConnectionRefusedError:
                    if server.poll() is not None:
                        return False
                    time.sleep(0.1)
            return False
        finally:
            server.kill()


def try_block(where, name, block, folder, compilers, flags, libraries):
    """What is wrong, or None."""
    text = re.sub(rf"(?m)^{block['indent']}", "", block["text"])
    is_program, port = re.search(r"\bint main\(", text), None
    if block["how"] == "echoes at":
        port = free_port()
        text = text.replace(block["what"].strip(), port)
    text = f'#line {where.rpartition(":")[2]} "{where.rpartition(":")[0]}"\n{text}'
    if not is_program:
        if block["how"] != "within":
            return f"{where}: neither a program nor after a comment <!-- within"
        before, _, after = block["what"].partition("...\n")
        text = before + text + after
    source = os.path.join(folder, f"{name}.{block['language']}")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    program = source + ".run"
    standard = "-std=c++20" if block["language"] == "cpp" else "-std=gnu11"
    wanted = [*libraries, "-pthread", "-o", program] if is_program else ["-fsyntax-only"]
    made = subprocess.run([compilers[block["language"]], standard, "-O1", "-fexceptions", "-Wall", "-Wextra", "-Werror",
                           *([] if is_program else ["-Wno-unused", "-Wno-unused-parameter"]), *flags, source, *wanted],
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return made.stderr or made.stdout
    if port:
        return None if is_echo(program, port) else f"{where}: no echo"
    if is_program:
        ran = subprocess.run([program], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        prints = re.search(r"prints\s+`([^`]*)`", block["after"] or "")
        if ran.returncode != 0:
            return f"{where}: ends with {ran.returncode}: {ran.stderr}"
        if prints and prints[1].split() != ran.stdout.split():
            return f"{where}: says that it prints `{prints[1]}`, and prints\n{ran.stdout}"
    return None


def code(root, folder, cc, cxx, flags, *libraries):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    flags = [*flags.split(), "-I", os.path.join(root, "include")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tries = [pool.submit(try_block, where, name, block, folder, {"c": cc, "cpp": cxx}, flags, libraries)
                 for where, name, block in blocks(root)]
        wrong = [found for found in (t.result() for t in tries) if found]
    assert tries and not wrong, "\n".join(wrong)
    print(f"{len(tries)} blocks of code compiled, programs run")


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
                code(root, os.path.join(root, "build"), "cc", "c++", "")
            except AssertionError as error:
                assert says in str(error), f"{says!r} was expected, it says: {error}"
            else:
                raise AssertionError(f"not found: {text}")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "seeded":
        seeded()
    elif command == "links":
        links(ROOT)
    else:
        code(ROOT, *arguments)
