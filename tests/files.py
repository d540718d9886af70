"""files.py [--seeded]: no test file is lost. Fails when a file of tests/, examples/ or verification/fuzz/ is used by no
CMake file and by no file that is used itself, and when a CMake file there names a file that does not exist.

A file uses another one when it names it outside of comments: by its path, or by its name in the same folder or in
tests/. In CMake files variables are replaced by what set(), list(APPEND) and foreach() give them there, or else in
other ones. --seeded: does so with faults in a copy of the tree, each of which must be found."""
import itertools
import os
import re
import shutil
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("tests", "examples", "verification/fuzz")
KINDS = r"(?:cpp|c|hpp|h|py|sh|S|cmake)"
CHECKED = re.compile(r"\.%s$" % KINDS)
FIRST = (["Makefile", "CMakeLists.txt", "tools/platforms/objects.py"] +
         [folder + "/CMakeLists.txt" for folder in FOLDERS])
NAME = re.compile(r"[\w./+-]+\.%s\b" % KINDS)
CMAKE_NAME = re.compile(r"(?:\$\{\w+\}|[\w./+-])+\.%s\b(?![\w.>:])" % KINDS)
MADE = ("${CMAKE_CURRENT_BINARY_DIR}", "${PROJECT_BINARY_DIR}")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def without_comments(name, text):
    if re.search(r"\.(c|h|cpp|hpp|S)$", name):
        return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"(?m)(^|\s)#(?!include).*$", " ", text)


def variables(texts):
    """What each CMake variable may be."""
    values = {}
    for text in texts:
        for command, arguments in re.findall(r"\b(set|foreach|list)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
            words = [word.strip('"') for word in re.findall(r'"[^"]*"|[^\s"]+', arguments)]
            if command == "list":
                words = words[1:] if words[:1] == ["APPEND"] else []
            if words:
                words[1:] = [
                    f"${{{w}}}" if "LISTS" in words[1:3] and w not in ("IN", "LISTS") else w for w in words[1:]
                ]
                values.setdefault(words[0], set()).update(w for w in words[1:] if w not in ("IN", "LISTS", "ITEMS"))
    return values


def expand(word, values, depth=0):
    """All values that the word may have; what the build makes is left out."""
    if any(made in word for made in MADE) or depth > 6:
        return set()
    parts = re.split(r"(\$\{\w+\})", word)
    choices = []
    for part in parts:
        if part.startswith("${"):
            choices.append(set().union(*(expand(v, values, depth + 1) for v in values.get(part[2:-1], ()))))
        else:
            choices.append({part})
    return {"".join(choice) for choice in itertools.product(*choices)}


def subjects(call):
    """acorn_variant_tests(SUBJECT... OPTION...): SUBJECT.c"""
    return " ".join(word + ".c" for word in itertools.takewhile(lambda word: not word.isupper(), call[1].split()))


def check(root):
    files = {os.path.relpath(os.path.join(folder, name), root)
             for top in FOLDERS for folder, _, names in os.walk(os.path.join(root, top)) for name in names}
    checked = {name for name in files if CHECKED.search(name)}
    cmake = {name: re.sub(r"(?m)(^|\s)#(?!include).*$", " ", read(os.path.join(root, name)))
             for name in files if name.endswith((".cmake", "CMakeLists.txt"))}
    everywhere = variables(cmake.values())
    errors, used, todo = [], set(), [name for name in FIRST]
    while todo:
        user = todo.pop()
        folder = os.path.dirname(user)
        text = cmake[user] if user in cmake else without_comments(user, read(os.path.join(root, user)))
        if user in cmake:
            values = {
                **everywhere, **variables([text]),
                "CMAKE_CURRENT_SOURCE_DIR": {"/R/" + folder}, "PROJECT_SOURCE_DIR": {"/R"}
            }
            todo += [f"{folder}/{name}/CMakeLists.txt" for name in re.findall(r"\badd_subdirectory\((\w+)\)", text)
                     if f"{folder}/{name}/CMakeLists.txt" in cmake]
            text = re.sub(r"acorn_test\(\S+", "", text) # the test's name
            text = re.sub(r"acorn_variant_tests\(([^()]*)\)", subjects, text)
            named = {
                word: expand(word, values)
                for word in CMAKE_NAME.findall(text) if "<" + word not in text and not word.startswith("/")
            }
        else:
            named = {word: {word} for word in NAME.findall(re.sub(r"\$\{?\w+\}?/", "/", text))}
            named.update((word, {word + ".py"}) for word in re.findall(r"(?m)^\s*(?:import|from) (\w+)", text)
                         if user.endswith(".py"))
        for word, names in named.items():
            for name in names:
                name = (name[2:] if name.startswith("/R/") else name).lstrip("/") # "$here/run.c"
                here = os.path.normpath(os.path.join(folder, name))
                places = [p for p in (here, name, os.path.join("tests", name)) if p in files]
                if "/" in name and not places:
                    places = [p for p in checked if p.endswith("/" + name)]
                if (user in cmake and not places and not name.endswith((".h", ".hpp"))
                        and not os.path.exists(os.path.join(root, name))):
                    errors.append(f"{user}: there is no {name}" + (f" ({word})" if word != name else ""))
                for place in places[:1]:
                    if user == "tests/windows.cmake" and not place.startswith("tests/windows/"):
                        continue # what only Windows runs is lost here
                    if place not in used:
                        used.add(place)
                        todo += [place] if place != "tests/files.py" else [] # it names files that shall be missing
    errors += [f"{name}: no test uses it" for name in sorted(checked - used)]
    return errors


def seeded():
    def remove(name):
        return f"{name} removed", lambda root: os.remove(os.path.join(root, name))

    def rename(name, new):
        return f"{name} renamed", lambda root: os.rename(os.path.join(root, name), os.path.join(root, new))

    def edit(name, old, new):
        def act(root):
            text = read(os.path.join(root, name))
            assert old in text, (name, old)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))
        return f"{name} without {old}", act

    def add(name):
        return f"{name} added", lambda root: open(os.path.join(root, name), "w", encoding="utf-8").close()

    faults = [
        remove("tests/cancel.c"),
        rename("tests/pool.c", "tests/pooled.c"),
        remove("tests/hardening/check.py"),
        remove("tests/pool.cmake"),
        remove("examples/tokenizer.c"),
        edit("tests/CMakeLists.txt", "include(pool.cmake)", ""),
        add("tests/lost.c"),
        edit("tests/coroutine.cmake", "coroutine_states", ""),
        add("tests/lost.h"),
        add("examples/lost.cpp")
    ]
    missed = 0
    for what, act in [("nothing changed", lambda root: None), *faults]:
        with tempfile.TemporaryDirectory() as root:
            for name in os.listdir(ROOT): # the faults are in copies, what else CMake files name is there as it is
                if name in {folder.split("/")[0] for folder in FOLDERS}:
                    shutil.copytree(os.path.join(ROOT, name), os.path.join(root, name))
                else:
                    os.symlink(os.path.join(ROOT, name), os.path.join(root, name))
            act(root)
            errors = check(root)
        print(f"{what}: {len(errors)} errors" + (f", the first: {errors[0]}" if errors else ""))
        missed += bool(errors) == (what == "nothing changed")
    return missed


if sys.argv[1:] == ["--seeded"]:
    sys.exit(seeded())
found = check(ROOT)
print(*found, f"files: {len(found)} errors", sep="\n")
sys.exit(bool(found))
