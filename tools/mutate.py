#!/usr/bin/env python3
"""mutate.py: how many faults in the library do the tests find?

A mutant is the library with one small fault. This script makes mutants of src/ and of the bodies in include/. It builds
each, runs a tier of tests on it, and notes which test finds ("kills") it.

  mutate.py list  [--seed S] [--count N] [PATH...]       the mutants that `run` would take, in its order
  mutate.py run   [--seed S] [--count N] --tier NAME     builds and tests them; goes on where an earlier run was cut
  mutate.py table                                        the share that each tier kills, and who survives all of them
  mutate.py self-test                                    the mutants of a text that is known

With --per-area N, `run` spreads --count over the folders of src by their numbers of mutants, N at least for each. With
--near, it runs only the tests of the mutant's area and of its neighbours (NEAR below): who survives these is for
another run with --survivors-of. `table --per-area 1` has a row for each area.

With --seeded, `list` and `run` take the faults of tools/seeded_faults.txt instead. TIERS below has the tiers. --ctest
replaces a tier's tests; --command runs any other command in the build folder, which kills a mutant by failing.

A mutant's name is a hash of its file, its function, the text of its line and what is changed there. So it stays the
same when other lines change, and a sample (--seed) keeps its members. tools/mutants.txt lists mutants that no test can
kill, with the reason: lines "ID REASON".

Verdicts: killed; timeout (counts as killed); survived; same (the compiler makes the same code of it, or does not see it
on this platform); does-not-compile. The last two are not counted: `run` goes on until N others have a verdict.

A tree of its own and an incremental build, both in --folder, serve all mutants. Tests run in the order of their speed,
in growing batches; quick tests that are named like the mutant's file come first. Only tests with a program that the
mutant changes run. Each batch builds its own programs, so that a mutant that dies early costs little even in a header.
"""
import argparse
import collections
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLAGS = ['-DCMAKE_BUILD_TYPE=None', '-DCMAKE_C_FLAGS=-O2 -g', '-DCMAKE_CXX_FLAGS=-O2 -g']
Tier = collections.namedtuple('Tier', 'ctest options')  # the arguments of ctest, and of cmake besides FLAGS
TIERS = {'check': Tier(['-L', '^fast$'], ['-DACORN_VARIANTS=release;debug', '-DACORN_STANDARDS=20',  # of `make check`
                                          '-DACORN_CXX_DEBUG=OFF', '-DACORN_QUICK=ON',
                                          '-DCMAKE_CXX_FLAGS=-O0 -g0']),
         'wide': Tier([], ['-UACORN_VARIANTS', '-UACORN_STANDARDS', '-UACORN_CXX_DEBUG', '-UACORN_QUICK'])}
TIERS['near'] = TIERS['check']  # for --near
BATCHES = [4, 12, 36]  # how many tests at once; then the last number again and again,
BATCH_SECONDS = 10     # or fewer, since ctest begins with the slowest of a batch
# --near: how names of tests begin that are near a folder of src.
NEAR = {'base': 'api|misuse|slab|pool|coroutine|cancel|migration|every_failure|threads[._]',
        'coroutine': 'api|coroutine|cancel|local|found|forgotten|generator|backtrace|misuse|migration|returns|cpp_[ce]',
        'debug': 'debug|cpp_debug|scheduler_report|fuzz.*debug|http_requests',
        'grpc': 'grpc|cpp_grpc|http2|http_compression|http_decoding',
        'http': 'http|cpp_http|sim_http|fuzz.*(http|forms)|websocket|sim_agrees.http|example.http',
        'io': 'io|cpp_io|hook_(sockets|files|streams)|sim_(files|kernel|pipes|agrees.io)|example.io|tls_streams',
        'libc': 'hook|cpp_hook|sim_hook',
        'lifecycle': 'service|cpp_service|threads_(run|signals|http)|http_(stop|drain)|example.io_shutdown',
        'os': 'api|overflow|guard|fork|signals|threads|pool|scheduler_(threads|watchdog)|coroutine_failure|trace',
        'resilience': 'limiter|retry|resource_pool|singleflight|cpp_resilience|sim_faults|example.sim_',
        'scheduler': 'scheduler|cpp_task|sim_(mix|faults|threads)|threads_|io_tasks',
        'service': 'scheduler|io|threads_|limiter|hook_tasks|sim.release|sim.debug',
        'sim': 'sim|cpp_sim|example.sim',
        'stack': 'copying|guard|overflow|save_area|entry|stack_trim|pool|profile|slab|coroutine|found',
        'system': 'system|io|hook|http_websocket|tls|sim_(files|kernel|names)|threads_run',
        'threads': 'threads_|migration|sim_thread|cpp_threads|io_offload',
        'tls': 'tls|cpp_tls|http2_tls|sim_tls|sim_agrees.tls|hook_tls|fuzz.*tls|example.tls',
        'tools': 'trace|profile|sanitizers|hardening|cpp_exceptions|copying|generator'}
QUICK = 2              # seconds; quick tests that are named like the mutant's file come first

Mutant = collections.namedtuple('Mutant', 'id file line function operator before after start end')

# ---- reading C ----

TOKEN = re.compile(r'''
    (?P<space>\s+ | /\*.*?\*/ | //[^\n]*)
  | (?P<string>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->\*|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|.)''', re.X | re.S)

DIRECTIVE = re.compile(r'#(?:/\*.*?\*/|\\\n|[^\n])*', re.S)

Token = collections.namedtuple('Token', 'kind text start end')
OPEN, CLOSE = '([{', ')]}'
# Regions without mutants: assembly, what holds at compile time, attributes, hints to the processor; and guards, which
# behave alike while nothing is wrong.
SKIPPED_CALLS = {'__asm__', 'asm', '_Static_assert', 'static_assert', '__attribute__', '__builtin_prefetch', 'sizeof',
                 'offsetof', 'ACO__ASSERT', 'ACO__ASSERT_LOCKED', 'ACO__ASSERT_MT', 'ACO__LOCKED_BEGIN',
                 'ACO__LOCKED_END', 'ACO__NO_SWITCH_BEGIN', 'ACO__NO_SWITCH_END', 'ACO__MAY_SWITCH'}
GUARDS = re.compile(r'^#ifdef ACO__INVARIANTS$.*?^#(?=else|endif)', re.M | re.S)
NOT_EXPRESSIONS = {'return', 'goto', 'case', 'default', 'typedef', 'struct', 'union', 'enum', 'static', 'const',
                   'extern', 'register', 'volatile', 'using', 'throw', 'delete', 'if', 'else', 'do', 'while', 'for',
                   'switch', 'try', 'catch'}
ASSIGNMENTS = {'=', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<=', '>>='}


def tokens_of(text):
    """The tokens, without space, comments and preprocessor directives."""
    found, at = [], 0
    text = GUARDS.sub(lambda guards: re.sub(r'[^\n]', ' ', guards[0][:-1]) + '#', text)
    while at < len(text):
        is_directive = text[at] == '#' and not text[text.rfind('\n', 0, at) + 1:at].strip()
        match = (DIRECTIVE if is_directive else TOKEN).match(text, at)
        if not is_directive and match.lastgroup != 'space':
            found.append(Token(match.lastgroup, match[0], at, match.end()))
        at = match.end()
    return found


def match_brackets(tokens):
    """{index of an opening bracket: index of its closing one}"""
    pairs, stack = {}, []
    for i, token in enumerate(tokens):
        if token.text in OPEN:
            stack.append(i)
        elif token.text in CLOSE:
            while stack and OPEN.index(tokens[stack[-1]].text) != CLOSE.index(token.text):
                stack.pop()  # an #if with two openings and one closing
            if stack:
                pairs[stack.pop()] = i
    return pairs


def function_name(tokens, pairs, start, end):
    """The name of the function that tokens[start:end] and a body define: it stands before the last list in parentheses.

    None if they define no function: then they do not end in such a list and words behind it."""
    last = end - 1
    while last >= start and tokens[last].kind == 'name':
        last -= 1
    if last < start or tokens[last].text != ')':
        return None
    name, i = None, start
    while i < end:
        if tokens[i].text == '=' and tokens[i - 1].text != 'operator':
            return None
        if tokens[i].text == '(' and i in pairs:
            before = tokens[i - 1]
            if i > start and before.kind == 'name' and before.text not in SKIPPED_CALLS | {'noexcept', 'alignas'}:
                name = before.text
            i = pairs[i]
        i += 1
    return None if name in NOT_EXPRESSIONS else name


def bodies(tokens, pairs):
    """[(name, index of '{', index of '}')] of functions, and of enumerations outside them under the name "enum"."""
    found, start, i = [], 0, 0
    while i < len(tokens):
        text = tokens[i].text
        if text == '(' and i in pairs:
            i = pairs[i]
        elif text == '{' and i in pairs:
            words = [token.text for token in tokens[start:i]]
            name = 'enum' if 'enum' in words else function_name(tokens, pairs, start, i)
            if name:
                found.append((name, i, pairs[i]))
            if name or '=' in words:
                i = pairs[i]
            start = i + 1
        elif text in ';}':
            start = i + 1
        i += 1
    return found


# ---- operators: each yields (operator, start, end, after) of a text ----

COMPARISONS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
LOGIC = {'&&': '||', '||': '&&'}
ARITHMETIC = {'+': '-', '-': '+', '+=': '-=', '-=': '+=', '++': '--', '--': '++'}


class Body:
    """A body's tokens, and what the operators ask of them."""

    def __init__(self, text, tokens, pairs, first, last):
        self.text, self.tokens, self.pairs, self.first, self.last = text, tokens, pairs, first, last
        self.skipped = set()
        for i in range(first, last):
            if tokens[i].text in SKIPPED_CALLS:
                self.skipped.update(range(i, self.end_of_skipped(i)))

    def end_of_skipped(self, i):
        """Behind the operand of a `sizeof` without parentheses, else behind the next parentheses."""
        tokens, end = self.tokens, i + 1
        if tokens[i].text == 'sizeof' and tokens[end].text != '(':
            while tokens[end].text in ('*', '&', '-', '+', '!', '~'):
                end += 1
            end += 1
            while tokens[end].text in ('.', '->', '[', '('):
                end = self.pairs.get(end, end + 1) + 1
            return end
        while end < self.last and tokens[end].text != '(':
            end += 1
        return self.pairs.get(end, end) + 1

    def indices(self):
        return (i for i in range(self.first + 1, self.last) if i not in self.skipped)

    def is_spaced(self, i):
        """Operators are spaced, template brackets and signs are not."""
        token = self.tokens[i]
        return self.text[token.start - 1].isspace() and self.text[token.end].isspace()

    def is_binary(self, i):
        before = self.tokens[i - 1]
        is_operand = before.kind != 'sign' and before.text != 'return' or before.text in ')]'
        return self.is_spaced(i) and is_operand

    def statements(self):
        """[(first, last)] of the simple statements, the last being the index of the ';'."""
        start, i = self.first + 1, self.first + 1
        while i < self.last:
            text = self.tokens[i].text
            if text in ('if', 'while', 'for', 'switch') and i == start and self.tokens[i + 1].text == '(':
                i = self.pairs.get(i + 1, i + 1)
                start = i + 1
            elif text in ('else', 'do', '{', '}'):
                start = i + 1
            elif text == ':' and (self.tokens[start].text in ('case', 'default') or i == start + 1):
                start = i + 1
            elif text in '([':
                i = self.pairs.get(i, i)
            elif text == ';':
                if i > start:
                    yield start, i
                start = i + 1
            i += 1


def is_declaration(tokens):
    """Whether the left side of an assignment declares: two names without an operator between them, or NAME * NAME."""
    for a, b in zip(tokens, tokens[1:]):
        if b.kind == 'name' and (a.kind == 'name' and a.text != 'sizeof' or a.text == '>'):
            return True
    return len(tokens) > 2 and tokens[0].kind == 'name' and tokens[1].text in ('*', '&')


def drops(body):
    """Statements deleted: assignments, increments and jumps; and calls."""
    for first, last in body.statements():
        words = body.tokens[first:last]
        is_void = [word.text for word in words[:3]] == ['(', 'void', ')']
        if first in body.skipped or words[0].text in NOT_EXPRESSIONS or is_void:
            continue
        depth, assignment = 0, None
        for i, word in enumerate(words):
            depth += (word.text in OPEN) - (word.text in CLOSE)
            if depth == 0 and assignment is None and word.text in ASSIGNMENTS | {'++', '--'}:
                assignment = i
        left = words[:assignment]
        start, end = words[0].start, body.tokens[last].end
        after = ';' + '\n' * body.text.count('\n', start, end)
        if is_declaration(left):
            continue
        if assignment is not None or words[0].text in ('break', 'continue'):
            yield 'statement', start, end, after
        elif words[-1].text == ')':
            yield 'call', start, end, after


def replaced_signs(body):
    for i in body.indices():
        token = body.tokens[i]
        if token.text in COMPARISONS and body.is_binary(i):
            yield 'compare', token.start, token.end, COMPARISONS[token.text]
        elif token.text in LOGIC and body.is_binary(i):
            yield 'logic', token.start, token.end, LOGIC[token.text]
        elif token.text in ARITHMETIC and (token.text in ('++', '--') or body.is_binary(i)):
            yield 'arithmetic', token.start, token.end, ARITHMETIC[token.text]


def constants(body):
    for i in body.indices():
        token = body.tokens[i]
        number = re.fullmatch(r'(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)', token.text)
        if token.kind != 'number' or not number:
            continue
        base = 16 if number[1][:2] in ('0x', '0X') else 8 if number[1][0] == '0' else 10
        value = int(number[1], base)
        for other in {value + 1, abs(value - 1)}:
            yield 'constant', token.start, token.end, (hex(other) if base == 16 else str(other)) + number[2]


def negated_conditions(body):
    for i in body.indices():
        if body.tokens[i].text in ('if', 'while') and body.tokens[i + 1].text == '(' and i + 1 in body.pairs:
            start, end = body.tokens[i + 1].end, body.tokens[body.pairs[i + 1]].start
            condition = body.tokens[i + 2:body.pairs[i + 1]]
            signs = [token.text for token in condition if token.text in {**COMPARISONS, **LOGIC}]
            if signs not in (['=='], ['!=']):  # which `compare` negates
                yield 'negate', start, end, f'!({body.text[start:end]})'


PLAIN = re.compile(r'&?[A-Za-z_]\w*(?:(?:->|\.)\w+)*|\d\w*')


def kind_of(text):
    """What can stand for what: numbers, CONSTANTS, addresses, and other names."""
    name = re.split(r'->|\.', text)[-1]
    return 'number' if text[0].isdigit() else 'constant' if name.isupper() else 'address' if text[0] == '&' else 'name'


def swapped_arguments(body):
    """Neighbouring arguments of a call that are both names, or both numbers."""
    for i in body.indices():
        if body.tokens[i].text != '(' or body.tokens[i - 1].kind != 'name' or i not in body.pairs:
            continue
        if body.tokens[i - 1].text in NOT_EXPRESSIONS:
            continue
        commas, depth = [i], 0
        for j in range(i + 1, body.pairs[i]):
            depth += (body.tokens[j].text in OPEN) - (body.tokens[j].text in CLOSE)
            if depth == 0 and body.tokens[j].text == ',':
                commas.append(j)
        commas.append(body.pairs[i])
        for a, b, c in zip(commas, commas[1:], commas[2:]):
            yield from swap(body, a + 1, b, b + 1, c)


def swapped_operands(body):
    """a - b as b - a, where both are plain; a sum or a product stays the same."""
    for i in body.indices():
        if body.tokens[i].text not in ('-', '/', '%', '<<', '>>') or not body.is_binary(i) or i + 1 in body.skipped:
            continue
        left, right = i - 1, i + 2
        while body.tokens[left - 1].text in ('->', '.') and left > body.first:
            left -= 2
        while body.tokens[right].text in ('->', '.'):
            right += 2
        is_whole = body.tokens[left - 1].text not in ('->', '.', ')', ']', '*', '&')
        if is_whole and body.tokens[right].text not in ('(', '['):
            yield from swap(body, left, i, i + 1, right)


def swap(body, first, first_end, second, second_end):
    spans = [(body.tokens[a].start, body.tokens[b - 1].end) for a, b in ((first, first_end), (second, second_end))]
    one, two = (body.text[a:b] for a, b in spans)
    if one != two and PLAIN.fullmatch(one) and PLAIN.fullmatch(two) and kind_of(one) == kind_of(two):
        between = body.text[spans[0][1]:spans[1][0]]
        yield 'swap', spans[0][0], spans[1][1], two + between + one


OPERATORS = [drops, replaced_signs, constants, negated_conditions, swapped_arguments, swapped_operands]


# ---- mutants ----

def mutants_of(file, text):
    tokens = tokens_of(text)
    pairs, seen, found = match_brackets(tokens), collections.Counter(), []
    for name, first, last in bodies(tokens, pairs):
        if name == 'enum' and not file.startswith('src/'):
            continue  # the numbers of the public interface
        body = Body(text, tokens, pairs, first, last)
        operators = [constants] if name == 'enum' else OPERATORS
        for operator in operators:
            for kind, start, end, after in operator(body):
                found.append((start, end, kind, name, after))
    for start, end, kind, name, after in sorted(found):
        line_start, line_end = text.rfind('\n', 0, start) + 1, text.find('\n', start)
        line = ' '.join(text[line_start:line_end].split())
        key = '\0'.join((file, name, line, kind, text[start:end], after))
        seen[key] += 1
        digest = hashlib.sha1(f'{key}\0{seen[key]}'.encode()).hexdigest()[:10]
        yield Mutant(digest, file, text.count('\n', 0, start) + 1, name, kind, text[start:end], after, start, end)


def sources(root):
    for top, ends in (('src', ('.c', '.h')), ('include', ('.h', '.hpp'))):
        for folder, _, names in os.walk(os.path.join(root, top)):
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(ends))


def all_files(root):
    command = ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard']
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split('\0')
    return [name for name in names if name and os.path.isfile(os.path.join(root, name))]


def read(root, file):
    with open(os.path.join(root, file), encoding='utf-8') as opened:
        return opened.read()


def generated(root, seed, paths):
    """All mutants, in an order that only the seed and their names make."""
    found = [mutant for file in sources(root) if not paths or file.startswith(tuple(paths))
             for mutant in mutants_of(file, read(root, file))]
    return sorted(found, key=lambda m: hashlib.sha1(f'{seed} {m.id}'.encode()).digest())


def seeded(root):
    """The faults of tools/seeded_faults.txt. Each text stands once in the sources; spaces and line ends are alike."""
    texts = {file: read(root, file) for file in sources(root)}
    blocks = re.split(r'^== (.*)\n', read(root, 'tools/seeded_faults.txt'), flags=re.M)[1:]
    for name, block in zip(blocks[::2], blocks[1::2]):
        before, after = (part.strip() for part in block.split('\n=>\n'))
        pattern = re.compile(r'\s+'.join(re.escape(word) for word in before.split()))
        hits = [(file, match) for file, text in texts.items() for match in pattern.finditer(text)]
        if len(hits) != 1:
            sys.exit(f'tools/seeded_faults.txt: {name}: its text stands {len(hits)} times in the sources, not once')
        file, match = hits[0]
        line = texts[file].count('\n', 0, match.start()) + 1
        slug = 'seeded-' + re.sub(r'\W+', '-', name)
        yield Mutant(slug, file, line, '', 'seeded', before, after, match.start(), match.end())


def equivalent(root):
    """{id: reason}"""
    if not os.path.exists(os.path.join(root, 'tools/mutants.txt')):
        return {}
    lines = (line.strip() for line in read(root, 'tools/mutants.txt').splitlines())
    return dict(line.split(' ', 1) for line in lines if line and not line.startswith('#'))


def area_of(file):
    return file.split('/')[1] if file.startswith('src/') else 'include'


def per_area(mutants, count, least):
    """(the mutants, so ordered that each first part has all areas; {area: its part of count, or `least`})"""
    sizes, rank = collections.Counter(area_of(mutant.file) for mutant in mutants), collections.Counter()
    quotas = {area: max(least, round(count * size / len(mutants))) for area, size in sizes.items()}
    ranked = []
    for mutant in mutants:
        area = area_of(mutant.file)
        ranked.append((rank[area] / quotas[area], area, len(ranked), mutant))
        rank[area] += 1
    return [mutant for _, _, _, mutant in sorted(ranked)], quotas


def one_line(text):
    text = ' '.join(text.split())
    return text if len(text) <= 60 else text[:57] + '...'


def describe(mutant):
    return (f'{mutant.id} {mutant.file}:{mutant.line} {mutant.function} {mutant.operator}: '
            f'{one_line(mutant.before)} => {one_line(mutant.after) or "nothing"}')


# ---- building and testing ----

def restrict():
    """In a process that runs mutants: it writes no core files and no huge ones, and goes first when memory runs out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    with open('/proc/self/oom_score_adj', 'w', encoding='ascii') as opened:
        opened.write('1000')


class Workshop:
    """A copy of the tree with an incremental build, and what its tests do without a mutant."""

    def __init__(self, root, folder, ctest, options, jobs, is_near=False):
        self.is_near = is_near  # --near
        self.tree, self.build = os.path.join(folder, 'tree'), os.path.join(folder, 'build')
        self.jobs, self.ctest = jobs, ctest
        self.copy_tree(root)
        self.configure(options)
        listed = self.listed_tests()
        has_all = all(listed.values())  # the programs; --ctest has left out the tests that need more
        self.targets = sorted({path for paths in listed.values() for path in paths}) if has_all else ['all']
        if not self.builds(self.targets):
            sys.exit('the tree does not build without a mutant')
        self.tests = {}  # name: seconds, the programs it runs
        self.hashes = {}
        self.measure(listed)

    def copy_tree(self, root):
        files = set(all_files(root))
        for file in files:
            target = os.path.join(self.tree, file)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(os.path.join(root, file), 'rb') as opened:
                data = opened.read()
            if not os.path.isfile(target) or open(target, 'rb').read() != data:
                shutil.copy(os.path.join(root, file), target)
        for parent, _, names in os.walk(self.tree):
            for name in names:
                path = os.path.relpath(os.path.join(parent, name), self.tree)
                if path not in files:
                    os.remove(os.path.join(self.tree, path))

    def configure(self, options):
        launcher = ['-DCMAKE_C_COMPILER_LAUNCHER=ccache', '-DCMAKE_CXX_COMPILER_LAUNCHER=ccache']
        launcher = launcher if shutil.which('ccache') else []
        subprocess.run(['cmake', '-S', self.tree, '-B', self.build, '-G', 'Ninja', *FLAGS, *options, *launcher],
                       check=True, stdout=subprocess.DEVNULL)

    def ninja(self, arguments):
        return subprocess.run(['ninja', '-C', self.build, f'-j{self.jobs}', *arguments], capture_output=True, text=True,
                              check=False)

    def builds(self, targets):
        """Whether they compile, without a confusion of types that compilers only warn of."""
        result = self.ninja(targets)
        confused = re.search(r'\[-W(int-conversion|incompatible-pointer-types)\]', result.stdout)
        return result.returncode == 0 and not confused

    def needs_no_work(self):
        return 'no work to do' in self.ninja(['-n', *self.targets]).stdout

    def listed_tests(self):
        """{name: the programs it runs}; with --near, only of tests with programs, as no others are built."""
        shown = subprocess.run(['ctest', '--show-only=json-v1', *self.ctest], cwd=self.build, check=True,
                               capture_output=True, text=True)
        lines = self.ninja(['-t', 'targets', 'all']).stdout.splitlines()
        targets = {line.split(':')[0] for line in lines if not line.endswith(': phony')}
        tests = {}
        for test in json.loads(shown.stdout)['tests']:
            paths = {os.path.relpath(word, self.build) for word in test.get('command', []) if word.startswith('/')}
            tests[test['name']] = sorted(paths & targets)
        tests.pop('mutate.self_test', None)  # it knows the text of the sources
        return {name: paths for name, paths in tests.items() if paths or not self.is_near}

    def hash_of(self, path):
        """Of a program without its debug information, which names columns."""
        program = os.path.join(self.build, path)
        with tempfile.NamedTemporaryFile() as stripped:
            done = subprocess.run(['objcopy', '-g', '-R', '.note.gnu.build-id', program, stripped.name], check=False,
                                  stderr=subprocess.DEVNULL)
            with open(program if done.returncode else stripped.name, 'rb') as opened:
                return hashlib.sha1(opened.read()).hexdigest()

    def measure(self, listed):
        """Runs the tests once. Those that fail or are skipped without a mutant are left out, by name."""
        log = self.run_ctest(self.ctest, None)[1]
        seconds = {m[1]: float(m[2]) for m in re.finditer(r'Test +#\d+: (\S+) \.+ +Passed +([\d.]+) sec', log)}
        for name, programs in listed.items():
            if name in seconds:
                self.tests[name] = seconds[name], programs
            else:
                print(f'left out, since it does not pass without a mutant: {name}')
        if not self.tests:
            sys.exit('no test passes without a mutant')
        self.hashes = {path: self.hash_of(path) for _, paths in self.tests.values() for path in paths}
        print(f'{len(self.tests)} tests, {sum(seconds.values()):.0f} s of tests', flush=True)

    def run_ctest(self, arguments, limit):
        """(the exit status, or None at the time limit; what ctest printed)"""
        with tempfile.TemporaryFile('w+') as log:
            with subprocess.Popen(['ctest', f'-j{self.jobs}', *arguments], cwd=self.build, stdout=log, stderr=log,
                                  start_new_session=True, preexec_fn=restrict) as process:
                try:
                    status = process.wait(limit)
                except subprocess.TimeoutExpired:
                    status = None
                    os.killpg(process.pid, signal.SIGKILL)
            log.seek(0)
            return status, log.read()

    def batches(self, file):
        """Lists of tests in the order of their speed, those with programs first; the rest build their own."""
        words = file.split('.')[0].split('/')[1:]

        def order(name):
            seconds, programs = self.tests[name]
            is_near = seconds < QUICK and any(word in name for word in words)
            return not programs, not is_near, seconds

        near = NEAR.get(area_of(file), '') if self.is_near else ''
        sizes, batch, total = list(BATCHES), [], 0
        for name in sorted((name for name in self.tests if re.match(near, name)), key=order):
            seconds, programs = self.tests[name]
            is_full = len(batch) == sizes[0] or total + seconds > BATCH_SECONDS
            if batch and (is_full or bool(programs) != bool(self.tests[batch[0]][1])):
                yield batch
                batch, total, sizes = [], 0, sizes[1:] or sizes
            batch.append(name)
            total += seconds
        yield batch

    def test(self, names):
        """("killed", a test that fails); ("timeout", those that ran at the time limit); None: all pass."""
        limit = 20 + 4 * sum(self.tests[name][0] for name in names)
        pattern = '^(' + '|'.join(re.escape(name) for name in names) + ')$'
        status, log = self.run_ctest(['--stop-on-failure', '-R', pattern], limit)
        if status == 0:
            return None
        failed = re.search(r'Test +#\d+: (\S+) \..*\*\*\*', log)
        if failed and status is not None:
            return 'killed', failed[1]
        ended = set(re.findall(r'Test +#\d+: (\S+) \.', log))
        running = [name for name in re.findall(r'Start +\d+: (\S+)', log) if name not in ended]
        return 'timeout', ' '.join(running)

    def judge(self, file):
        """(verdict, test) of the tree, in which `file` has a mutant."""
        has_changed = False
        if self.needs_no_work():
            return 'same', None
        for names in self.batches(file):
            programs = sorted({path for name in names for path in self.tests[name][1]})
            if not self.builds(programs or ['all']):
                return 'does-not-compile', None
            different = {path for path in programs if self.hash_of(path) != self.hashes[path]}
            has_changed = has_changed or bool(different)
            wanted = [name for name in names if different.intersection(self.tests[name][1])]
            if not programs and has_changed:
                wanted = names
            killer = self.test(wanted) if wanted else None
            if killer:
                return killer
        return ('survived' if has_changed else 'same'), None

    def judge_by(self, command, limit):
        """The same by a command."""
        if not self.builds(['all']):
            return 'does-not-compile', None
        if all(self.hash_of(path) == known for path, known in self.hashes.items()):
            return 'same', None
        with subprocess.Popen(command, shell=True, cwd=self.build, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True, preexec_fn=restrict) as process:
            try:
                return ('killed', command) if process.wait(limit) else ('survived', None)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return 'timeout', command

    def write(self, file, text):
        with open(os.path.join(self.tree, file), 'w', encoding='utf-8') as opened:
            opened.write(text)


# ---- the commands ----

COUNTED = ('killed', 'timeout', 'survived')


def results_in(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as opened:
        return [json.loads(line) for line in opened if line.endswith('\n')]


def chosen(args):
    return list(seeded(ROOT)) if args.seeded else generated(ROOT, args.seed, args.paths)


def command_list(args):
    mutants = chosen(args)
    for mutant in mutants[:args.count or None]:
        print(describe(mutant))
    kinds = collections.Counter(mutant.operator for mutant in mutants)
    counts = ', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))
    print(f'{len(mutants)} mutants: {counts}', file=sys.stderr)


def command_run(args):
    os.makedirs(args.folder, exist_ok=True)
    results = results_in(args.results)
    done = {record['id']: record['verdict'] for record in results if record['tier'] == args.tier}
    survivors = {record['id'] for record in results
                 if record['tier'] == args.survivors_of and record['verdict'] == 'survived'}
    reasons, counted, survived, in_area = equivalent(ROOT), 0, 0, collections.Counter()
    tier = TIERS.get(args.tier, TIERS['wide'])
    ctest = args.ctest.split() if args.ctest is not None else tier.ctest
    workshop = Workshop(ROOT, os.path.abspath(args.folder), ctest, tier.options, args.jobs, args.near)
    mutants, quotas = chosen(args), {}
    if args.per_area:
        mutants, quotas = per_area(mutants, args.count, args.per_area)
    for mutant in mutants:
        area = area_of(mutant.file)
        if not quotas and args.count and counted >= args.count:
            break
        if in_area[area] >= quotas.get(area, len(mutants)):
            continue
        if mutant.id in reasons or (args.survivors_of and mutant.id not in survivors):
            continue
        verdict = done.get(mutant.id) or take(args, workshop, mutant)
        counted += verdict in COUNTED
        in_area[area] += verdict in COUNTED
        survived += verdict == 'survived'
    share = 100 * (counted - survived) / max(counted, 1)
    print(f'{counted} mutants, {survived} survive, {share:.0f} % die')
    if share < args.at_least:
        sys.exit(f'FAILED: fewer than {args.at_least} % die')


def take(args, workshop, mutant):
    """Tests one mutant and writes its record."""
    text, begin = read(ROOT, mutant.file), time.monotonic()
    workshop.write(mutant.file, text[:mutant.start] + mutant.after + text[mutant.end:])
    try:
        verdict, by = workshop.judge_by(args.command, args.limit) if args.command else workshop.judge(mutant.file)
    finally:
        workshop.write(mutant.file, text)
    seconds = round(time.monotonic() - begin, 1)
    record = {'tier': args.tier, 'verdict': verdict, 'by': by, 'seconds': seconds, **mutant._asdict()}
    del record['start'], record['end']
    with open(args.results, 'a', encoding='utf-8') as opened:
        opened.write(json.dumps(record) + '\n')
    print(f'{verdict}{" by " + by if by else ""} ({seconds} s): {describe(mutant)}', flush=True)
    return verdict


def verdicts_of(records, is_seeded):
    """{id: {tier: whether the mutant is killed}}"""
    reasons, found = equivalent(ROOT), {}
    for record in records:
        is_wanted = (record['operator'] == 'seeded') == is_seeded and record['id'] not in reasons
        if is_wanted and record['verdict'] in COUNTED:
            found.setdefault(record['id'], {})[record['tier']] = record['verdict'] != 'survived'
    return found


def command_table(args):
    """What each tier kills. The last tier includes those before it, and may have run on their survivors only."""
    records = results_in(args.results)
    tiers = list(dict.fromkeys(record['tier'] for record in records))
    print('| mutants | tier | tested | killed | survived | share killed |\n| --- | --- | ---: | ---: | ---: | ---: |')
    for source in ('generated', 'seeded'):
        verdicts = verdicts_of(records, source == 'seeded').values()
        for tier in tiers:
            included = tiers if tier == tiers[-1] else [tier]
            results = [any(by.get(t) for t in included) for by in verdicts if any(t in by for t in included)]
            if results:
                killed, count = sum(results), len(results)
                print(f'| {source} | {tier} | {count} | {killed} | {count - killed} | {100 * killed / count:.0f} % |')
    if args.per_area:
        print_areas(records)
    print_survivors(records, tiers, equivalent(ROOT))


def print_areas(records):
    verdicts, areas = verdicts_of(records, False), {record['id']: area_of(record['file']) for record in records}
    print('\n| area | mutants | killed | survived | share killed |\n| --- | ---: | ---: | ---: | ---: |')
    for area in sorted(set(areas.values())) + ['all']:
        results = [any(by.values()) for name, by in verdicts.items() if area in (areas[name], 'all')]
        if results:
            killed, count = sum(results), len(results)
            print(f'| {area} | {count} | {killed} | {count - killed} | {100 * killed / count:.0f} % |')


def print_survivors(records, tiers, reasons):
    killed = {record['id'] for record in records if record['verdict'] in ('killed', 'timeout')}
    print('\nSurvivors of all tiers:')
    for record in records:
        if record['verdict'] == 'survived' and record['id'] not in killed and record['tier'] == tiers[-1]:
            mutant = Mutant(start=0, end=0, **{field: record[field] for field in Mutant._fields[:7]})
            print(f'- {describe(mutant)}' + (f' ({reasons[mutant.id]})' if mutant.id in reasons else ''))


# ---- self-test ----

SELF_TEST = '''#include <a.h> /* f(1 == 2);
*/
#define MACRO(x) do { x = 1; } while (0)
enum { ROOM = 16 };
_Static_assert(1 == 1, "a");
static const int table[] = {1, 2, 3};
struct s { int a : 3; };
int f(int a, struct s *s) __attribute__((noinline));
static inline __attribute__((always_inline)) int f(int a, struct s *s)
{
    int b = a, *c = &b; /* b = 1 */
    __asm__ volatile("x" : : "r"(1 + 2));
    if (a < 0x10 && g(a, s->b)) {
        s->a += 1;
        h("if (a == 1)");
    } else
        *c = -a - b;
    for (k(sizeof *s->c[1 + 2].d, s); b < a; b++)
        k(sizeof b / sizeof *c);
    (void)s;
    return b;
}
'''
EXPECTED = '''
4 enum constant 16 => 15
4 enum constant 16 => 17
13 f negate a < 0x10 && g(a, s->b) => !(a < 0x10 && g(a, s->b))
13 f compare < => <=
13 f constant 0x10 => 0x11
13 f constant 0x10 => 0xf
13 f logic && => ||
13 f swap a, s->b => s->b, a
14 f statement s->a += 1; => ;
14 f arithmetic += => -=
14 f constant 1 => 0
14 f constant 1 => 2
15 f call h("if (a == 1)"); => ;
17 f statement *c = -a - b; => ;
17 f arithmetic - => +
17 f swap a - b => b - a
18 f compare < => <=
18 f arithmetic ++ => --
19 f call k(sizeof b / sizeof *c); => ;
'''


def command_self_test(_):
    found = list(mutants_of('src/a.c', SELF_TEST))
    lines = [f'{m.line} {m.function} {m.operator} {m.before} => {m.after}' for m in found]
    if sorted(lines) != sorted(EXPECTED.split('\n')[1:-1]):
        expected = set(EXPECTED.split('\n')[1:-1])
        missing, extra = expected - set(lines), set(lines) - expected
        sys.exit(f'FAILED: missing: {sorted(missing)}; too many: {sorted(extra)}')
    moved = list(mutants_of('src/a.c', '\nint other;\n' + SELF_TEST.replace('return b', 'return a')))
    if [m.id for m in moved] != [m.id for m in found] or len({m.id for m in found}) != len(found):
        sys.exit('FAILED: a mutant changes its name with other lines, or two have one name')
    files = ('src/a/a.c', 6), ('src/b/b.c', 18), ('src/c.h', 1)
    spread, quotas = per_area([m._replace(file=file) for file, end in files for m in found[:end]], 8, 2)
    firsts = collections.Counter(m.file for m in spread[:7])
    if quotas != {'a': 2, 'b': 6, 'c.h': 2} or firsts['src/a/a.c'] != 2 or firsts['src/c.h'] != 1:
        sys.exit(f'FAILED: a sample by areas: {quotas}, {firsts}')
    faults = list(seeded(ROOT))
    stale = set(equivalent(ROOT)) - {m.id for m in generated(ROOT, '', []) + faults}
    if stale:  # their lines have changed: `list` has the new names
        sys.exit(f'FAILED: tools/mutants.txt: no mutants have the names {sorted(stale)}')
    print(f'{len(found)} mutants as expected; {len(faults)} seeded faults apply')


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (('list', command_list), ('run', command_run)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument('--seed', default='1')
        command.add_argument('--count', type=int, default=0, help='0: all')
        command.add_argument('--seeded', action='store_true', help='the faults of tools/seeded_faults.txt')
        command.add_argument('paths', nargs='*', metavar='PATH', help='only files whose paths begin so')
    command.add_argument('--tier', required=True, help='the name that the table has: ' + ', '.join(TIERS))
    command.add_argument('--ctest', help='arguments of ctest, for another set of tests')
    command.add_argument('--command', help='a command to run instead of ctest')
    command.add_argument('--limit', type=int, default=600, help='of --command, seconds')
    command.add_argument('--at-least', type=int, default=0, metavar='PERCENT', help='fail if fewer die')
    command.add_argument('--near', action='store_true', help='only the tests near the mutant')
    command.add_argument('--survivors-of', metavar='TIER', help='only mutants that survived this tier')
    command.add_argument('--folder', default=os.path.join(ROOT, 'build/mutants'))
    command.add_argument('--jobs', type=int, default=os.cpu_count())
    table = commands.add_parser('table')
    table.set_defaults(function=command_table)
    for command in (command, table):
        command.add_argument('--per-area', type=int, default=0, metavar='N', help='spread over the folders of src')
        command.add_argument('--results', default=os.path.join(ROOT, 'build/mutants/results.jsonl'))
    commands.add_parser('self-test').set_defaults(function=command_self_test)
    return parser.parse_args()


if __name__ == '__main__':
    arguments = parse_arguments()
    arguments.function(arguments)
