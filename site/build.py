#!/usr/bin/env python3
"""build.py OUTPUT WORK: the site, from the Markdown files that site/pages.txt lists and the public headers.

Copies the pages into WORK, makes the reference from the headers, and runs Sphinx. Every warning of Sphinx is an error:
links to pages, anchors and files are checked by it."""
import glob
import os
import posixpath
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAME = re.compile(r"^(?:ACO_API\b[^;(]*?\b(\w+)\(|#define ((?:ACO|aco)_\w+)|typedef [^;{]*?\b(\w+);|} (\w+);)", re.M)


def read(path):
    with open(f"{ROOT}/{path}", encoding="utf-8") as file:
        return file.read()


def sections():
    found = []
    for line in read("site/pages.txt").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.endswith(":"):
            found.append((line[:-1], []))
        else:
            found[-1][1].append(line)
    listed = {page for _, pages in found for page in pages}
    unlisted = {f"docs/{os.path.basename(path)}" for path in glob.glob(f"{ROOT}/docs/*.md")} - listed
    if unlisted:
        sys.exit(f"error: not in site/pages.txt: {' '.join(sorted(unlisted))}")
    return found


def headers():
    patterns = ["include/*.h", "include/*.hpp", "include/aco/*.h", "include/aco/*.hpp", "include/aco/compat/*.h"]
    return sorted(os.path.relpath(path, f"{ROOT}/include") for pattern in patterns
                  for path in glob.glob(f"{ROOT}/{pattern}"))


def chunks(text):
    """A header's declarations, each with the comment above it: empty lines outside of comments and braces part them."""
    part = []
    for line in text.splitlines():
        whole = "\n".join(part)
        open_comment = whole.count("/*") > whole.count("*/")
        if not line.strip() and not open_comment and whole.count("{") == whole.count("}"):
            if part:
                yield whole
            part = []
        else:
            part.append(line)
    if part:
        yield "\n".join(part)


def reference(header):
    """A page: the comment that the header begins with, then each declaration as the header has it."""
    text = read(f"include/{header}")
    first, *rest = chunks(text)
    page = [f"# {header}", f"```c\n{first}\n```"]
    seen, level = set(), "##"
    for chunk in rest:
        title = re.match(r"/\* -{3,} (.*?) -{3,}", chunk)
        if title:
            page.append(f"## {title.group(1)}")
            level = "###"
        names = []
        for match in NAME.finditer(chunk):
            name = next(filter(None, match.groups()))
            if "aco__" not in name and "ACO__" not in name and name not in seen and not name.endswith("_H"):
                names.append(name)
                seen.add(name)
        if names:
            shown = ", ".join(f"`{name}`" for name in names[:3]) + (", …" if len(names) > 3 else "")
            page += [f"{level} {shown}", f"```{'cpp' if header.endswith('pp') else 'c'}\n{chunk}\n```"]
        elif header.endswith("pp") and re.search(r"^\s*(class|struct|template)", chunk, re.M):
            page.append(f"```cpp\n{chunk}\n```")
    return "\n\n".join(page) + "\n"


def links(text, page, pages, known):
    """Headers become pages of the reference; other files of the tree are copied; folders keep their text alone."""
    folder = posixpath.dirname(page)
    copied = []

    def replace(match):
        label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        path, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        if path in pages:
            return match.group(0)
        if path.startswith("include/") and path[8:] in known:
            return f"[{label}]({posixpath.relpath(f'reference/{path[8:]}.md', folder or '.')})"
        if os.path.isfile(f"{ROOT}/{path}") and not path.endswith(".md"):
            copied.append(path)
            return f"[{label}](<{posixpath.relpath(path, folder or '.')}>)" if not match.group(0).startswith("!") else \
                match.group(0)
        if os.path.isdir(f"{ROOT}/{path}"):
            return label
        return match.group(0)

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)  # code stays as it is
    parts[::2] = [re.sub(r"\[([^\]\[]*)\]\(([^)\s]+)\)", replace, part) for part in parts[::2]]
    return "".join(parts), copied


def put(work, path, text):
    os.makedirs(os.path.dirname(f"{work}/{path}") or work, exist_ok=True)
    with open(f"{work}/{path}", "w", encoding="utf-8") as file:
        file.write(text)


def main():
    output, work = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(output, ignore_errors=True)
    found = sections()
    pages = {"README.md"} | {page for _, each in found for page in each}
    known = headers()
    for page in sorted(pages):
        text, copied = links(read(page), page, pages, known)
        if page == "README.md":
            for section, each in found:
                listing = "\n".join(name[:-3] for name in each)
                text += f"\n```{{toctree}}\n:hidden:\n:caption: {section}\n\n{listing}\n```\n"
            listing = "\n".join(f"{header} <reference/{header}>" for header in known)
            text += f"\n```{{toctree}}\n:hidden:\n:caption: Reference\n\n{listing}\n```\n"
        put(work, page, text)
        for path in copied:
            os.makedirs(os.path.dirname(f"{work}/{path}") or work, exist_ok=True)
            shutil.copyfile(f"{ROOT}/{path}", f"{work}/{path}")
    for path in glob.glob(f"{ROOT}/bench/results/*.svg"):
        os.makedirs(f"{work}/bench/results", exist_ok=True)
        shutil.copy(path, f"{work}/bench/results")
    for header in known:
        put(work, f"reference/{header}.md", reference(header))
    os.makedirs(f"{work}/_static")
    shutil.copy(f"{ROOT}/site/conf.py", work)
    with open(f"{work}/conf.py", "a", encoding="utf-8") as conf:
        conf.write('root_doc = "README"\n')
    shutil.copy(f"{ROOT}/site/site.css", f"{work}/_static")
    status = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", work, output],
                            check=False).returncode
    if status:
        sys.exit(status)
    shutil.copy(f"{output}/README.html", f"{output}/index.html")
    print(f"{len(pages)} pages and {len(known)} headers: {output}/index.html")


if __name__ == "__main__":
    main()
