#!/usr/bin/env python3
"""guards.py [--self-test] [FOLDER...]: the library's own guards (src/base/invariants.h) leave nothing in a release.

Compiles each source of tools/sources.sh but those in the FOLDERs as a release does, once as it is and once with every
guard taken out of it and of the headers, and compares the objects: a guard that has an effect or leaves code makes them
differ. Where the preprocessor already makes the same text of both, it compiles neither. Lines keep their numbers. Fails
also if there are fewer than MINIMUM assertions. --self-test: puts faulty guards into copies, each of which must be
found. CC is the compiler.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINIMUM = 400
CC = os.environ.get('CC', 'cc').split()
FLAGS = ['-std=c11', '-O2', '-g0', '-fPIC', '-fvisibility=hidden', '-w', '-Isrc', '-Iinclude',
         '-Ithird_party']
GUARD = re.compile(r'\bACO__(?:ASSERT(?:_LOCKED)?|NO_SWITCH_(?:BEGIN|END)|LOCKED_(?:BEGIN|END)|MAY_SWITCH)\b\s*(?=\()')
OWN = 'src/base/invariants.h'  # defines them
PARTS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def hidden(text):
    """The text with comments and literals blanked: same length, same lines."""
    return PARTS.sub(lambda match: re.sub(r'[^\n]', ' ', match[0]), text)


def guards(text):
    """(begin, end) of each guard, with its arguments."""
    plain = hidden(text)
    for match in GUARD.finditer(plain):
        if plain[plain.rfind('\n', 0, match.start()) + 1:match.start()].lstrip().startswith('#'):
            continue
        depth, end = 0, match.end()
        while depth or end == match.end():
            depth += (plain[end] == '(') - (plain[end] == ')')
            end += 1
        yield match.start(), end


def without(text):
    """The text without guards: "(void)0" stands for each, and lines keep their numbers."""
    pieces, at = [], 0
    for begin, end in guards(text):
        pieces += [text[at:begin], '((void)0)', '\n' * text.count('\n', begin, end)]
        at = end
    return ''.join(pieces) + text[at:]


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def files(root):
    for folder, _, names in os.walk(os.path.join(root, 'src')):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(('.c', '.h', '.inc')) and path != OWN:
                yield path


def strip(root):
    for path in files(root):
        text = read(os.path.join(root, path))
        if GUARD.search(text):
            with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                file.write(without(text))


def compiled(root, source, *how):
    """What the compiler writes, as bytes. Without debug information an object does not name its folder."""
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run([*CC, *FLAGS, *how, source, '-o', out.name], cwd=root, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            sys.exit(f'{source} does not compile:\n{done.stdout}')
        with open(out.name, 'rb') as file:
            return file.read()


def differs(trees, source):
    texts = [compiled(tree, source, '-E', '-P').split() for tree in trees]
    if texts[0] == texts[1]:
        return None
    objects = [compiled(tree, source, '-c') for tree in trees]
    return f'{source}: its object is another one without its guards' if objects[0] != objects[1] else None


def check(less=(), changed=None, only=None):
    """The faults found, as lines. `changed`: {file: text} instead of what the tree has."""
    with tempfile.TemporaryDirectory() as folder:
        trees = [os.path.join(folder, name) for name in ('with', 'less')]
        for tree in trees:
            for part in ('src', 'include', 'third_party'):
                shutil.copytree(os.path.join(ROOT, part), os.path.join(tree, part))
            for path, text in (changed or {}).items():
                with open(os.path.join(tree, path), 'w', encoding='utf-8') as file:
                    file.write(text)
        strip(trees[1])
        listed = only or subprocess.run(['sh', 'tools/sources.sh'], cwd=ROOT, capture_output=True, text=True,
                                        check=True).stdout.split()
        listed = [source for source in listed if not source.startswith(tuple(less))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return [line for line in pool.map(lambda source: differs(trees, source), listed) if line]


def count():
    return sum(text.count('ACO__ASSERT', begin, begin + 11)
               for text in (read(os.path.join(ROOT, path)) for path in files(ROOT)) for begin, _ in guards(text))


def self_test():
    """Guards that are none: each must be found, and nothing in the tree as it is."""
    path, own = 'src/base/lock.c', read(os.path.join(ROOT, OWN))
    text = read(os.path.join(ROOT, path))
    line = '    aco__os_lock();\n'
    nothing = '#define ACO__ASSERT(condition) ((void)'
    effect = own.replace(nothing + '0)', nothing + '(condition))')
    assert line in text and effect != own
    planted = text.replace(line, line + '    ACO__ASSERT(aco__os_process_number() > 0);\n')
    cases = [('as it is', {}, False), ('an assertion with a call', {path: planted}, False),
             ('an assertion that is compiled', {path: planted, OWN: effect}, True),
             ('an assertion with a store, that is compiled',
              {path: text.replace(line, line + '    ACO__ASSERT(aco__debug_units++);\n'), OWN: effect}, True)]
    missed = 0
    for what, changed, wanted in cases:
        found = check((), changed, [path])
        print(f'{what}: {found[0] if found else "the same"}')
        missed += bool(found) != wanted
    sample = 'a("ACO__ASSERT(x)"); /* ACO__ASSERT(y) */ ACO__ASSERT(f(")") &&\n b); c;\n'
    missed += without(sample) != 'a("ACO__ASSERT(x)"); /* ACO__ASSERT(y) */ ((void)0)\n; c;\n'
    return missed


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    faults, assertions = check(tuple(sys.argv[1:])), count()
    if assertions < MINIMUM:
        faults.append(f'{assertions} assertions: fewer than {MINIMUM}')
    print(*faults, f'guards: {assertions} assertions, {len(faults)} errors', sep='\n')
    return bool(faults)


if __name__ == '__main__':
    sys.exit(main())
