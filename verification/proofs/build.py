"""Units compiled to one linked program in which each asm statement that leaves for another stack is marked by labels:

  aco.site.KIND.FP.N.begin, .arrival, .end

The compiler's assembly text is what gets the labels, which change no byte; KIND and FP (own, none) are read off the
source line that the compiler names for the statement."""
import pathlib
import re
import subprocess

from arch import ROOT

LEAVES = re.compile(r"^\s*(?:notrack\s+)?"
                    r"(?:jmpq?l?\s+\*|bx?r?\s+(?:x16|x9|r\d+|ip)\s*$|bx\s|jr\s+(?!ra)|bctr\b|br\s+%r|jirl\s)", re.M)
RESUME_ADDRESS = re.compile(r"^\s*leaq?\s+(?:1f|(\.L\w+))\(%rip\),\s*%rdx", re.M)
FOUND_BY = re.compile("|".join([  # what the compiler calls the label
    r"(\.L\w+)\(%rip\)", r"\b(?:adr|la|lla|adrl)(?:\.w)?\s+\w+,\s*(\.?L\w+)", r"%pc(?:rel_hi|_hi20)\((\.L\w+)\)",
    r"\blarl\s+%r\d+,\s*(\.L\w+)", r"\b(?:movl|pushl)\s+\$(\.L\w+)", r"\baddl\s+\$(\.L\w+)-\.L",
    r"\baddis\s+\d+,\s*2,\s*(\.L\w+)@toc"]))

# Code for a shared library finds the thread slot and what is defined elsewhere by the global offset table, which the
# dynamic linker fills.
LINKED = {"-fno-pic": [], "-fPIE": ["-pie"], "-fPIC": ["-shared", "-Bsymbolic"]}


class BuildFailed(Exception):
    pass


def run(command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, **options)
    if done.returncode:
        raise BuildFailed("%s\n%s" % (" ".join(map(str, command)), done.stdout[-3000:]))
    return done.stdout


class Marker:
    """Puts labels into one file of assembly text."""

    def __init__(self, include):
        self.include, self.files, self.sites = include, {}, []

    def source_line(self, path, line):
        """The text of a line of a header, as far as its file's name goes."""
        name = "aco/" + path.split("aco/")[-1]
        for folder in (self.include, self.include.parent / "src"):
            file = folder / name
            if file.exists():
                lines = file.read_text().split("\n")
                return lines[line - 1]
        return ""

    def kind(self, path, line):
        text = self.source_line(path, line)
        match = re.search(r"ACO__(RESUME|YIELD|TRANSFER|EXIT|ENTER|PEER_SWAP_LAST|PEER_SWAP|IN_STACK_\w+)\b", text)
        return (match.group(1), "own" if "FP_SWAP" in text else "none") if match else None

    def mark(self, text, unit):
        lines, out, files, location = text.split("\n"), [], {}, None
        i = 0
        while i < len(lines):
            line = lines[i]
            match = re.match(r'\s*\.file\s+(\d+)\s+(?:"([^"]*)"\s+)?"([^"]*)"', line)
            if match:
                files[match.group(1)] = "%s/%s" % (match.group(2) or "", match.group(3))
            match = re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line)
            if match and match.group(2) != "0":
                location = (files.get(match.group(1), ""), int(match.group(2)))
            begins = re.match(r'\s*(?:#|//|@|;)\s*(\d+) "([^"]+)" 1$', line)
            if begins:
                end = next(k for k in range(i, len(lines)) if re.match(r'\s*(?:#|//|@|;)\s*0 "" 2$', lines[k]))
                out.append(line)
                out += self.statement(lines[i + 1:end], (begins.group(2), int(begins.group(1))), unit)
                i = end
                continue
            if re.match(r"\s*(?:#|//|@|;)\s?APP\s*$", line):
                end = next(k for k in range(i, len(lines)) if re.match(r"\s*(?:#|//|@|;)\s?NO_APP\s*$", lines[k]))
                body = lines[i + 1:end]
                if not any(re.match(r'\s*(?:#|//|@|;)\s*\d+ "([^"]+)" 1$', text) for text in body):
                    out.append(line)
                    out += self.statement(body, location, unit)
                    i = end
                    continue
            out.append(line)
            i += 1
        return "\n".join(out)

    def statement(self, body, location, unit):
        text = "\n".join(body)
        if re.search(r"\.type\s+\w+,\s*[@%]function", text):
            return self.functions(body, unit)
        if not LEAVES.search(text):
            return body
        kind = location and self.kind(*location)
        if not kind:
            raise BuildFailed("a jump in an asm statement of %s that is no known switch:\n%s" % (location, text))
        return self.labelled(body, kind, unit)

    def labelled(self, body, kind, unit, first=0):
        name = "aco.site.%s.%s.%s%d" % (kind[0], kind[1], unit, len(self.sites))
        self.sites.append(name)
        out, arrival = list(body[:first]) + [name + ".begin:"], None
        # in clang's text the label 1 has a name of its own, which is what the resume address refers to
        resume_address = FOUND_BY.search("\n".join(body))
        label = next((g for g in resume_address.groups() if g), None) if resume_address else None
        for line in body[first:]:
            if arrival is None and (re.match(r"\s*1:", line) or label and line.strip() == label + ":"):
                out.append(name + ".arrival:")
                arrival = True
            out.append(line)
        return out + [name + ".end:"]

    def functions(self, body, unit):
        """Assembly at file scope: the library's own, out of line. A sequence begins where it takes its resume
        address."""
        function = re.search(r"\.type\s+(\w+)", "\n".join(body)).group(1)
        kind = {"aco_resume": "RESUME", "aco_send": "RESUME", "aco_yield": "YIELD", "aco_yield1": "YIELD",
                "aco_yield_value": "YIELD"}
        starts = [k for k, line in enumerate(body) if RESUME_ADDRESS.match(line)]
        if function not in kind or not starts:
            return body
        end = next(k for k, line in enumerate(body)
                   if re.match(r"\s*(?:1|%s):" % re.escape(RESUME_ADDRESS.match(body[starts[0]]).group(1) or "1"),
                               line))
        out = self.labelled(body[:end + 1], (kind[function], "own"), unit, starts[0])
        return out[:-1] + [out[-1]] + body[end + 1:]


def undefined(nm, files):
    defined, wanted = set(), set()
    for line in run([nm, *files]).split("\n"):
        match = re.match(r"^[0-9a-f]*\s+(\w) (\S+)$", line)
        if match:
            (wanted if match.group(1) in "Uwv" else defined).add(match.group(2))
    return sorted(wanted - defined - {"_GLOBAL_OFFSET_TABLE_", ".TOC."})


def build(arch, compiler, flags, units, folder, include, lto=False):
    """(path of the program, names of its sites)."""
    folder.mkdir(parents=True, exist_ok=True)
    position = next((f for f in flags if f in LINKED), "-fno-pic")
    command = [*arch.targets[compiler], *flags, "-fexceptions", "-I", str(include), "-I", str(include.parent / "src"),
               position, "-w"]
    if compiler == "clang":
        command += ["-gline-tables-only"]
    marker, texts = Marker(include), []
    if lto:
        texts = link_time(command, compiler, units, folder)
    else:
        for unit in units:
            text = folder / (pathlib.Path(unit).name + ".s")
            run([*driver(command, unit, compiler), "-S", unit, "-o", text])
            texts.append(text)
    objects = []
    for text in texts:
        marked = folder / (text.name + ".marked.s")
        marked.write_text(marker.mark(text.read_text(), re.sub(r"\W", "_", text.name.split(".")[0])))
        objects.append(folder / (text.name + ".o"))
        run([*arch.targets[compiler], *[f for f in flags if f.startswith(("-m", "--target"))], "-c", marked, "-o",
             objects[-1]])
    stubs = folder / "stubs.s"
    names = undefined("llvm-nm-19", objects)
    # What is defined elsewhere, functions and variables alike: of bytes that are written nothing is known.
    stub = "\t.p2align 4\n\t.globl %s\n\t.type %s,%%function\n%s:\n\t.space 16\n\t.size %s,16\n"
    record = '\t.section .tbss,"awT",%nobits\n\t.p2align 6\n\t.globl aco__thread\n\t.type aco__thread,%object\n' \
        'aco__thread:\n\t.space 640\n'
    stubs.write_text('\t.section .stubs,"aw",%progbits\n'
                     + "".join(stub % (n, n, n, n) for n in names if n != "aco__thread") +
                     record * ("aco__thread" in names) + '\t.section .note.GNU-stack,"",%progbits\n')
    run([*arch.targets[compiler], *[f for f in flags if f.startswith("-m")], "-c", stubs, "-o", folder / "stubs.o"])
    program = folder / "program"
    run(["ld.lld-19", *arch.link, *LINKED[position], "-e", "0", "--noinhibit-exec", *objects, folder / "stubs.o", "-o",
         program])
    return program, marker.sites


def macros(arch, compiler, flags):
    """The names that the compiler predefines, for the conditions in the ABI's table."""
    defined = run([*arch.targets[compiler], *flags, "-dM", "-E", "-x", "c", "/dev/null"])
    return set(re.findall(r"^#define (\w+)", defined, re.M))


def driver(command, unit, compiler):
    if not str(unit).endswith((".cpp", ".cc")):
        return command
    name = command[0]
    return [name.replace("clang", "clang++") if compiler == "clang" else name.replace("gcc", "g++"), *command[1:]]


def link_time(command, compiler, units, folder):
    """The assembly text that link-time optimisation makes of all units."""
    objects = []
    for unit in units:
        objects.append((folder / (pathlib.Path(unit).name + ".lto.o")).resolve())
        run([*driver(command, unit, compiler), "-flto", "-c", unit, "-o", objects[-1]])
    if compiler == "clang":
        whole = folder / "whole.s"
        run(["ld.lld-19", "--lto-emit-asm", "-e", "0", "--unresolved-symbols=ignore-all", "--export-dynamic", "-shared",
             *objects, "-o", whole])
        return [folder / n for n in sorted(p.name for p in folder.glob("whole.s*"))
                if not n.endswith((".o", ".marked.s"))]
    for old in folder.glob("*.ltrans*"):
        old.unlink()
    run([*command, "-flto", "-flto-partition=one", "-flinker-output=nolto-rel", "-r", "-save-temps", *objects, "-o",
         "whole.o"], cwd=folder)
    return sorted(folder.glob("*.ltrans*.s"))
