#!/usr/bin/env python3
"""The code of the documents, compiled and run from the pages' own text.

  pages.py program PAGE [SECTION]        prints the program of a tutorial, as it is after a section (the last one)
  pages.py blocks PAGE FOLDER            writes each section's code to FOLDER/the-title-of-the-section.h or .hpp
  pages.py test WHAT FOLDER COMMAND...   tests WHAT, by the function test_WHAT below, in FOLDER. COMMAND compiles C: the
                                         compiler, its options, the libraries; %% stands for the source. The
                                         environment's CXX compiles C++ with the same options

A tutorial builds one program. Each of its sections that has code adds definitions, or replaces those of the same name.
A block ```console shows how the program is run after its section, and what it prints: `$ ./NAME ARGUMENTS` and the
output, in which a line `...` stands for any lines."""
import collections
import concurrent.futures
import contextlib
import http.server
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from ports import kept_port

LIMIT_S = 100

# ---- pages ----

Block = collections.namedtuple("Block", "language text line section how what after")
FENCE = re.compile(r"(?:<!-- (?P<how>within|echoes at|serves at|scenario)\s(?P<what>(?:(?!-->).)*)-->\n+)?"
                   r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^ *```\n"
                   r"(?=(?P<after>\s*[^\n]+(?:\n[^\n]+)*)?)", re.M | re.S)


def blocks(page, root=ROOT):
    """The fenced blocks of a page: each with the title of its section, the comment before it, the text after it."""
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    found, section, end = [], "", 0
    for fence in FENCE.finditer(text):
        section = (re.findall(r"(?m)^## (.*)$", text[end:fence.start()]) or [section])[-1].strip()
        end = fence.end()
        found.append(Block(fence["language"].strip(), re.sub(rf"(?m)^{fence['indent']}", "", fence["text"]),
                           text.count("\n", 0, fence.start("text")) + 1, section, fence["how"], fence["what"],
                           fence["after"] or ""))
    assert 2 * len(found) == len(re.findall(r"(?m)^ *```", text)), f"{page}: a block has no end"
    return found


def sections(page, *languages):
    """{title: blocks of these languages}, in their order."""
    found = {}
    for block in blocks(page):
        if block.language in languages:
            found.setdefault(block.section, []).append(block)
    return found


def without_comments(text):
    return re.sub(r"\s*/\*.*?\*/", "", text, flags=re.S).strip()


def name_of(item):
    """What an item at file scope defines: a function, a type, a variable, a macro; `NAME;` for a prototype."""
    item = without_comments(item)
    for pattern, name in ((r"#define (\w+)", r"\1"), (r"typedef .*\b(\w+);$", r"\1"), (r"enum \{\s*(\w+)", r"enum \1"),
                          (r"ACO_GENERATOR\((\w+)", r"\1"), (r"[^=({;]*?\b(\w+)\([^{]*\);$", r"\1;"),
                          (r"[^=({;]*?\b(\w+)\s*(?:\[[^]]*\])*\s*[(=;]", r"\1")):
        match = re.match(pattern, item, flags=re.S)
        if match:
            return match.expand(name)
    raise SystemExit(f"what does this define?\n{item}")


def items(block):
    """The definitions at file scope, (text, line) of each: an empty line is between them, or they are of one line."""
    found, begin = [], 0
    lines = block.text.splitlines(keepends=True)
    for i in range(1, len(lines) + 1):
        before = without_comments(lines[i - 1])
        if i == len(lines) or (re.match(r"[^\s}{]", lines[i]) and
                               (before == "" or before.endswith(";") or before.startswith("#"))):
            if "".join(lines[begin:i]).strip():
                found.append(("".join(lines[begin:i]).strip("\n") + "\n", block.line + begin))
            begin = i
    return found


class Program:
    """A program that grows: what is defined again is replaced, what is used stands before what uses it, and what main()
    does not need is left out."""
    def __init__(self, page):
        self.page, self.includes, self.items = page, [], {}

    def add(self, block):
        for text, line in items(block):
            for include in re.findall(r"(?m)^#include .*\n", text):
                if include not in self.includes:
                    self.includes.append(include)
            text = re.sub(r"(?m)^#include .*\n", "", text)
            if text.strip():
                self.items[name_of(text)] = (text, line)

    def text(self, with_lines):
        order = []

        def place(name):
            if name in seen:
                return
            seen.add(name)
            for word in re.findall(r"\w+", without_comments(self.items[name][0])):
                if word + ";" in self.items:
                    place(word + ";")
                elif word in self.items:
                    place(word)
            order.append(name)

        seen = set()
        for name in [*(name for name in self.items if name.startswith("enum ")), "main"]:
            place(name)
        for name in [name[:-1] for name in order if name.endswith(";")]:
            place(name)
        order.sort(key=lambda name: name == "main")
        parts = [self.items[name] for name in order]
        return "".join(sorted(self.includes)) + "".join(
            "\n" + (f'#line {line} "{self.page}"\n' if with_lines else "") + text for text, line in parts)


def programs(page):
    """After each section with code: (title, program, blocks that show a run)."""
    program, runs = Program(page), sections(page, "console")
    for title, added in sections(page, "c").items():
        for block in added:
            program.add(block)
        yield title, program, runs.get(title, [])


# ---- programs ----

def build(source, text, command, *more):
    """COMMAND compiles C; CXX compiles C++ with the same options. Of what is no program only the syntax is checked."""
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    program = os.path.splitext(source)[0]
    if source.endswith(".cpp"):
        command = [os.environ.get("CXX", "c++"), *command[1:]]
    if not re.search(r"\bint main\(", text):
        command, more = command[:command.index("%%") + 1], [*more, "-fsyntax-only"]
    words = [source if word == "%%" else word for word in command]
    made = subprocess.run([words[0], *more, *words[1:], "-o", program], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    assert made.returncode == 0, f"{' '.join(made.args)}\n{made.stdout}{made.stderr}"
    return program


def has_header(name):
    text = f"#if !__has_include(<{name}>)\n#error\n#endif\n"
    return subprocess.run([os.environ.get("CXX", "c++"), "-E", "-x", "c++", "-"], input=text, capture_output=True,
                          text=True, check=False).returncode == 0


def run(command, **more):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)
    assert ended.returncode == 0, f"{command} ends with {ended.returncode}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def check_run(block, program, **more):
    """The block shows `$ ./NAME ARGUMENTS`, then the output."""
    first, *wanted = block.text.splitlines()
    assert first.startswith("$ ./"), (block, "no command")
    got = re.sub(" +\n", "\n", run([program, *first.split()[2:]], **more))
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in wanted)
    assert re.fullmatch(pattern, got), f"{block.section}, line {block.line}: the page shows\n{block.text}\nit is\n{got}"


# ---- pages without a test of their own ----

def is_echo(program, port):
    with subprocess.Popen([program]) as process:
        try:
            for _ in range(LIMIT_S * 10):
                try:
                    with socket.create_connection(("127.0.0.1", int(port)), LIMIT_S) as peer:
                        peer.sendall(b"hello")
                        return peer.recv(5, socket.MSG_WAITALL) == b"hello"
                except ConnectionRefusedError:
                    if process.poll() is not None:
                        return False
                    time.sleep(0.1)
            return False
        finally:
            process.kill()


def connected(process, port):
    for _ in range(LIMIT_S * 10):
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", int(port)), LIMIT_S)
        assert process.poll() is None, process.returncode
        time.sleep(0.1)
    raise TimeoutError(port)


def replies(peer):
    """The statuses of what comes up to the end of the stream."""
    return re.findall(rb"HTTP/1\.1 (\d+)", b"".join(iter(lambda: peer.recv(4096), b"")))


def serves_to_the_end(program, port):
    """A server with a health check. Stopped, it goes on for a while, and loses no request."""
    request = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"
    with subprocess.Popen([program]) as process:
        try:
            with connected(process, port) as kept, connected(process, port) as new:
                kept.sendall(request % b"/" + request % b"/health")
                while kept.recv(4096).count(b"HTTP/1.1 200") < 1:
                    pass
                process.send_signal(signal.SIGTERM)
                new.sendall(request % b"/")
                code = process.wait(LIMIT_S) if replies(new) == [b"200"] else None
                return code == 0 and not [status for status in replies(kept) if status != b"200"]
        finally:
            process.kill()


SIMULATED = r"""#include <stdio.h>
int main(void)
{
    aco_sim_stats_t stats;
    if (aco_sim_run(scenario, NULL, 1000, &stats, NULL) != 0)
        printf("%s\n", stats.reason);
    return 0;
}
"""


def check_block(page, block, source, command):
    where, text, port = f"{page}:{block.line}", block.text + (SIMULATED if block.how == "scenario" else ""), None
    more = ["-std=c++20" if block.language == "cpp" else "-std=gnu11", "-fexceptions"]
    if block.how in ("echoes at", "serves at"):
        port = str(kept_port())
        text = text.replace(block.what.strip(), port)
    text = f'#line {block.line} "{page}"\n{text}'
    if not re.search(r"\bint main\(", text):
        assert block.how == "within", f"{where}: neither a program nor after a comment <!-- within"
        before, _, after = block.what.partition("...\n")
        build(source, before + text + after, command, *more, "-Wno-unused", "-Wno-unused-parameter")
        return
    program = build(source, text, command, *more)
    if port:
        works, what = (is_echo, "echo") if block.how == "echoes at" else (serves_to_the_end, "graceful end")
        assert works(program, port), f"{where}: no {what}"
        return
    got = run([program])
    prints = re.search(r"prints\s+`([^`]*)`", block.after)
    assert not prints or prints[1].split() == got.split(), (
        f"{where}: says that it prints `{prints[1]}`, and prints\n{got}")


def test_blocks(folder, command, root=ROOT):
    """Every block of C and C++ in README.md and docs/. One with main() is a program; if the next text says: prints
    `WORDS`, its output must be these words. Any other is compiled inside of what a comment right before it has, where
    it says `...`:  <!-- within
                    void f(void) {
                    ...
                    }
                    -->
    `<!-- scenario -->`: its scenario() is simulated with 1000 seeds, and the reason of a failure printed.
    `<!-- echoes at PORT -->` before a program: it is a server, which must send back what it gets.
    `<!-- serves at PORT -->`: it is one of HTTP that ends at SIGTERM, and then answers what it has got."""
    pages = sorted(f"docs/{name}" for name in os.listdir(f"{root}/docs") if name.endswith(".md"))
    todo = [(page, block, f"{folder}/{os.path.basename(page)[:-3]}-{n}.{block.language}")
            for page in ["README.md", *pages] if not re.match(r"docs/(tutorial-.*|cookbook)\.md$", page)
            for n, block in enumerate(blocks(page, root)) if block.language in ("c", "cpp")]
    for header, include, page in (("asio.hpp", "<aco/asio.hpp>", "asio.md"),
                                  ("opentelemetry/context/runtime_context.h", "<opentelemetry/", "traces.md")):
        if not has_header(header):
            todo = [each for each in todo if include not in each[1].text]
            print(f"skipped: blocks of docs/{page}: {header} is not installed")
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for tried in [pool.submit(check_block, *each, command) for each in todo]:
            try:
                tried.result()
            except AssertionError as error:
                wrong.append(str(error))
    assert todo and not wrong, "\n".join(wrong)
    print(f"{len(todo)} blocks of code compiled, programs run")


# ---- tutorials ----

def steps(page, folder, command):
    """Builds what the tutorial has after each section."""
    os.makedirs(folder, exist_ok=True)
    for n, (title, program, runs) in enumerate(programs(page), 1):
        built = build(os.path.join(folder, f"{os.path.basename(page)[:-3]}-{n}.c"), program.text(True), command)
        print(f"{page}: {title}: built", flush=True)
        yield n, built, runs


# ---- the chat ----

@contextlib.contextmanager
def server(*command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, int(re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", process.stdout.readline())[1])
        finally:
            process.kill()


class Client:
    def __init__(self, port, name=None):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self.file = self.socket.makefile("r", encoding="ascii")
        if name:
            self.say(name)

    def say(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def hears(self, *lines):
        got = [self.file.readline() for _ in lines]
        assert got == [line + "\n" for line in lines], (got, lines)

    def reads_to_the_end(self):
        with contextlib.suppress(ConnectionResetError):
            self.file.read()


def meet(port):
    ann, tom = Client(port, "ann"), None
    tom = Client(port, "tom")
    ann.hears("tom is here")
    ann.say("hello")
    tom.hears("ann: hello")
    tom.say("hello, ann")
    tom.say("bye")
    tom.socket.shutdown(socket.SHUT_WR)
    ann.hears("tom: hello, ann", "tom: bye", "tom is gone")
    tom.reads_to_the_end()
    return ann


def test_chat(folder, command):
    for n, program, _ in steps("docs/tutorial-chat.md", folder, command):
        with server(program, "0") as (process, port):
            if n == 1:
                one, other = Client(port), Client(port)
                other.say("b")
                one.say("a")
                one.hears("a")
                other.hears("b")
            if n >= 2:
                ann = meet(port)
                deaf = Client(port, "deaf")
                ann.hears("deaf is here")
                for i in range(20000):  # more than all buffers hold
                    ann.say(f"{i} {'x' * 100}")
                tom = Client(port, "tom")
                ann.hears("tom is here")
                tom.say("still here?")
                ann.hears("tom: still here?")
            if n >= 3:
                process.send_signal(signal.SIGINT)
                ann.reads_to_the_end()
                assert process.stdout.read() == "ended\n" and process.wait(LIMIT_S) == 0
                del deaf
        if n >= 4:
            with server(program, "0", "0.2") as (_, port):
                Client(port, "silent").reads_to_the_end()
    assert n == 4


# ---- the crawler ----

class Site(http.server.BaseHTTPRequestHandler):
    """Pages with links to each other: /, /a, /b, ... /z; /slow has no end; /none is not there."""
    protocol_version = "HTTP/1.1"
    at_once = most = 0
    slow_s = 0.1
    lock = threading.Condition()

    def do_GET(self):  # pylint: disable=invalid-name
        links = {"/": ["/a", "/b", "/none", "http://elsewhere.invalid/", "#top"], "/a": ["/", "/c#part", "/slow"],
                 "/b": [f"/many/{n}" for n in range(20)], "/c": ["/a", "/a"]}
        if self.path == "/slow":
            with contextlib.suppress(OSError):
                self.connection.settimeout(Site.slow_s)
                self.connection.recv(1)  # until the client goes
            self.close_connection = True
            return
        with self.lock:
            Site.at_once += 1
            Site.most = max(Site.most, Site.at_once)
            self.lock.notify_all()
            if self.path.startswith("/many"):  # one of four connections may be busy with /slow
                self.lock.wait_for(lambda: Site.most >= 3, LIMIT_S)
            Site.at_once -= 1
        body = "".join(f'<a href="{link}">x</a>' for link in links.get(self.path, [])) + "\n"
        self.send_response(200 if self.path in links or self.path.startswith("/many") else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def crawl(program, address, *limits):
    """What it prints, without sizes, and without the page that has no end: (lines, that one's)."""
    Site.most = 0
    got = sorted(re.sub(r", \d+ bytes$", "", line) for line in run([program, address, *limits]).splitlines())
    return [line for line in got if "/slow" not in line], [line for line in got if "/slow" in line]


def test_crawler(folder, command):
    wanted = sorted(["/: 200", "/a: 200", "/b: 200", "/c: 200", *(f"/many/{n}: 200" for n in range(20)), "/none: 404"])
    late = ["/slow: Connection timed out"]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        site.daemon_threads = True
        threading.Thread(target=site.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{site.server_port}"
        for n, program, _ in steps("docs/tutorial-crawler.md", folder, command):
            Site.slow_s = LIMIT_S if n == 4 else 0.1
            if n < 4:
                got, slow = crawl(program, address)
                assert got == (wanted[:1] if n == 1 else wanted) and len(slow) == (n > 1), (got, slow)
                assert n == 1 or Site.most >= 3 and (n == 2 or Site.most <= 4), Site.most
                continue
            for limits in (lambda s: (s, "1000"), lambda s: ("1000", s)):
                # a machine that is busy may need longer for the pages that have an end
                assert any(crawl(program, address, *limits(s)) == (wanted, late) for s in ("0.5", "2", "10")), limits
        assert n == 4
        site.shutdown()


# ---- what says itself what it prints ----

def test_game(folder, command):
    for _, program, runs in steps("docs/tutorial-game.md", folder, command):
        for block in runs:
            check_run(block, program)


def test_faults(folder, command):
    """It says itself what it prints; the last block is the program in C++."""
    page = "docs/tutorial-faults.md"
    for _, program, runs in steps(page, folder, command):
        for block in runs:
            check_run(block, program)
    for block in blocks(page):
        if block.language == "cpp":
            check_block(page, block, f"{folder}/tutorial-faults.cpp", command)


def test_parser(folder, command):
    with open(os.path.join(folder, "orders.xml"), "w", encoding="utf-8") as file:
        file.writelines(block.text for block in blocks("docs/tutorial-parser.md") if block.language == "xml")
    for _, program, runs in steps("docs/tutorial-parser.md", folder, [*command, "-lexpat"]):
        for block in runs:
            check_run(block, program, cwd=folder)


# ---- the cookbook ----

def extract(page, folder):
    """One file for each section's code, for the harness to include."""
    os.makedirs(folder, exist_ok=True)
    for language, end in (("c", "h"), ("cpp", "hpp")):
        for title, found in sections(page, language).items():
            name = re.sub(r"\W+", "-", title.lower()).strip("-")
            text = "".join(f'#line {block.line} "{page}"\n{block.text}' for block in found)
            assert all(len(block.text.splitlines()) <= 15 for block in found), f"{page}: {title}: more than 15 lines"
            with open(os.path.join(folder, f"{name}.{end}"), "w", encoding="utf-8") as file:
                file.write(text)
            yield f"{name}.{end}"


def test_cookbook(folder, command):
    recipes = list(extract("docs/cookbook.md", folder))
    source = os.path.join(ROOT, "tests/pages/cookbook.c")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    recipes = [name for name in recipes if f'#include "{name}"' not in text]
    print(run([build(f"{folder}/cookbook.c", f'#line 1 "{source}"\n{text}', command, "-I", folder)]), flush=True)
    assert not recipes, f"no test includes {recipes}"


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "program":
        made = [(title, program.text(False)) for title, program, _ in programs(os.path.relpath(arguments[0], ROOT))]
        print(next(text for title, text in reversed(made) if title.startswith("".join(arguments[1:2]))), end="")
    elif what == "blocks":
        print(*extract(os.path.relpath(arguments[0], ROOT), arguments[1]), sep="\n")
    else:
        shutil.rmtree(arguments[1], ignore_errors=True)
        os.makedirs(arguments[1])
        globals()["test_" + arguments[0]](os.path.abspath(arguments[1]), arguments[2:])
        print(f"pages: {arguments[0]}: passed")
