#!/usr/bin/env python3
"""reverted.py [--folder DIR] [TEXT...]: which mended faults do the library's own invariants name?

Puts each fault of reverted_faults.txt back into a copy of the tree, builds the debug variant of the fault's test, and
runs it. The invariants (src/base/invariants.h) name the fault if the test ends in their message. Of the faults with one
of the TEXTs in their names, or of all, a line for each; exit 1 if one is not named.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAMED = re.compile(r'acorn: (.* in the no-switch section that begins at .*|.*: it does not hold that .*)')
SECONDS = 120


def faults(name='reverted_faults.txt'):
    """(name, [test, argument...], [(before, after)]) of each in this file of tests/."""
    with open(os.path.join(ROOT, 'tests', name), encoding='utf-8') as file:
        blocks = re.split(r'^== (.*): (\w[^:\n]*)\n', file.read(), flags=re.M)[1:]
    for name, test, text in zip(blocks[::3], blocks[1::3], blocks[2::3]):
        yield name, test.split(), [piece.split('\n=>\n') for piece in text.rstrip('\n').split('\n--\n')]


def sources(tree):
    for folder, _, names in os.walk(os.path.join(tree, 'src')):
        for name in names:
            if name.endswith(('.c', '.h')):
                yield os.path.join(folder, name)


def replace(tree, before, after):
    """Replaces the one text in the tree. Returns its file and what that was, or a string that says why not."""
    pattern = re.compile(r'\s+'.join(re.escape(word) for word in before.split()))
    hits = []
    for path in sources(tree):
        with open(path, encoding='utf-8') as file:
            text = file.read()
        hits += [(path, text, match) for match in pattern.finditer(text)]
    if len(hits) != 1:
        sys.exit(f'a text stands {len(hits)} times in the sources, not once:\n{before}')
    path, text, match = hits[0]
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text[:match.start()] + after + text[match.end():])
    return path, text


def copy_tree(folder):
    """The files of git, or all of a release; what has not changed keeps its time, so that little is built anew."""
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z'], cwd=ROOT, capture_output=True,
                            text=True, check=False).stdout
    names = [name for name in listed.split('\0') if name] or [
        os.path.relpath(os.path.join(at, name), ROOT) for at, folders, files in os.walk(ROOT)
        for name in files if not at.startswith(os.path.join(ROOT, 'build'))]
    for name in names:
        source, copy = os.path.join(ROOT, name), os.path.join(folder, name)
        if not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        with open(source, 'rb') as file:
            wanted = file.read()
        if os.path.exists(copy) and open(copy, 'rb').read() == wanted:
            continue
        shutil.copy(source, copy)


def run(command, folder, seconds=None, environment=()):
    """The output and whether it has succeeded."""
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **dict(environment)}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace', check=False, timeout=seconds)
        return done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b'').decode(errors='replace') + f'\nit hangs: {seconds} s', False


def build_and_run(build, test, *arguments):
    """Arguments with a "=" are for the environment."""
    output, good = run(['cmake', '--build', build, '--target', f'test_{test}_debug'], build)
    if not good:
        sys.exit(f'test_{test}_debug does not build:\n{output[-4000:]}')
    program = [os.path.join(build, f'tests/test_{test}_debug'), *(a for a in arguments if '=' not in a)]
    return run(program, os.path.join(build, 'tests'), SECONDS, [a.split('=') for a in arguments if '=' in a])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', default=os.path.join(ROOT, 'build/reverted'))
    parser.add_argument('texts', nargs='*', metavar='TEXT')
    args = parser.parse_args()
    tree, build = os.path.join(args.folder, 'tree'), os.path.join(args.folder, 'build')
    copy_tree(tree)
    output, good = run(['cmake', '-S', tree, '-B', build, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=None',
                        '-DCMAKE_C_FLAGS=-O1 -g', '-DACORN_VARIANTS=release;debug', '-DACORN_STANDARDS=20',
                        '-DACORN_TESTS_ONCE=OFF', '-DACORN_CXX_DEBUG=OFF'], args.folder)
    if not good:
        sys.exit(output)
    wanted = [f for f in faults() if not args.texts or any(text in f[0] for text in args.texts)]
    for test in sorted({tuple(test) for _, test, _ in wanted}):
        output, good = build_and_run(build, *test)
        if not good:
            sys.exit(f'test_{test[0]}_debug fails without a fault:\n{output[-4000:]}')
    named = 0
    for name, test, pieces in wanted:
        changed = [replace(tree, before, after) for before, after in pieces]
        output, good = build_and_run(build, *test)
        for path, text in reversed(changed):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
        found = NAMED.search(output)
        named += found is not None
        print(f'{name}: ' + (found[1] if found else 'NOT NAMED: the test ' + ('passes' if good else 'fails otherwise')),
              flush=True)
        if not found:
            print(output[-1500:])
    print(f'{named} of {len(wanted)} mended faults are named by the library itself when they are put back')
    return named != len(wanted)


if __name__ == '__main__':
    sys.exit(main())
