#!/usr/bin/env python3
"""may_switch.py: checks that every function that may let other tasks run says so, over the call graph.

Such a function of src carries ACO__SWITCHES (src/base/invariants.h), and so does each field and parameter through
which one is called. Public functions carry no mark: a table in docs/scheduler.md lists them. The graph is made of
clang's output before any optimisation, in which inline functions are still called; for Linux on x86-64, and for all
sources. A function may switch if it reaches aco__may_switch(), which ACO__MAY_SWITCH() calls, or the assembly with
which one task leaves for another. Every public function that reaches the assembly must reach
ACO__MAY_SWITCH() too.

It prints one line for each violation. --write writes the table. It exits with 77, "skipped", without clang or
OpenSSL's headers.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

PAGE = 'docs/scheduler.md'
BEGIN, END = '<!-- may-switch:begin -->', '<!-- may-switch:end -->'
MARK = 'aco_switches'
MAY_SWITCH = 'aco__may_switch'
FLAGS = ['-std=c11', '-fexceptions', '-O0', '-g', '-fno-discard-value-names', '-Xclang', '-disable-llvm-passes', '-S',
         '-emit-llvm', '-w', '-DACO_CONFIG_INVARIANTS', f'-DACO__SWITCHES=__attribute__((annotate("{MARK}")))',
         '-Iinclude', '-Isrc', '-isystem', 'third_party']
if os.path.exists('/usr/include/liburing.h'):
    FLAGS.append('-DACO_CONFIG_URING')
for coding, header in ('ZLIB', 'zlib.h'), ('BROTLI', 'brotli/decode.h'):
    if os.path.exists('/usr/include/' + header):
        FLAGS.append('-DACO_CONFIG_' + coding)
if os.path.exists('/usr/include/nghttp2/nghttp2.h'):
    FLAGS.append('-DACO_CONFIG_HTTP2')

# Outside of src/coroutine who calls a switch (aco/detail/switch.h) leaves for another task, but for these.
SWITCH = 'aco__switch_'
NO_TASK_LEAVES = {
    'aco__resume_chain': "a coroutine's resumer: who resumes means that, and the library does not",
    'aco_yield_to_inline': 'the same',
    'aco_transfer_inline': 'the same',
    'run': 'the root context, in aco_run()',
    'poll_task_turn': 'the same, between tasks',
    'end_task': 'a task that has ended; it does not return',
    'arrives': "a task's first instruction",
}

# Users' functions: whether they may let other tasks run when the library calls them.
CALLBACKS = {
    ('aco_http_route_s', 'handler'): (True, 'a handler'),
    ('aco_http_middleware_s', 'run'): (True, 'the same'),
    ('aco_http_time_limit_s', 'late'): (True, 'the same'),
    ('aco_grpc_server_add', 2): (True, 'a handler'),
    ('aco_http_server_options_s', 'open'): (True, 'a handshake'),
    ('aco_http_server_options_s', 'refused'): (True, 'a handler'),
    ('aco_http_server_options_s', 'log'): (True, 'the next request waits for it'),
    ('aco_http_server_options_s', 'failed'): (True, 'the same'),
    ('aco_http_client_options_s', 'open'): (True, 'a handshake'),
    ('aco_grpc_channel_options_s', 'open'): (True, 'a handshake'),
    ('aco_cookie_jar_options_s', 'is_suffix'): (False, 'it must not wait'),
    ('aco_cookie_jar_each', 1): (False, 'the same'),
    ('aco_http_call_s', 'read_body'): (True, 'it may read what it sends'),
    ('aco_stream_functions_s', 'read'): (True, 'as aco_io_read()'),
    ('aco_stream_functions_s', 'write'): (True, 'as aco_io_write()'),
    ('aco_stream_functions_s', 'write_parts'): (True, 'as aco_io_writev()'),
    ('aco_stream_functions_s', 'shutdown'): (True, 'it may tell the peer'),
    ('aco_stream_functions_s', 'wait_readable'): (True, 'as aco_io_wait_readable()'),
    ('aco_stream_functions_s', 'has_input'): (False, 'does not wait'),
    ('aco_stream_functions_s', 'close'): (False, 'as aco_io_close(): what is closed is in lists'),
    ('aco_stream_functions_s', 'abort'): (False, 'the same'),
    ('aco_stream_functions_s', 'local_address'): (False, 'it looks'),
    ('aco_stream_functions_s', 'peer_address'): (False, 'it looks'),
    ('aco_stream_functions_s', 'protocol'): (False, 'it looks'),
    ('aco_once_at', 1): (True, 'others wait for it meanwhile'),
    ('aco_mt_once_until_at', 1): (True, 'the same'),
    ('aco_parallel_for', 3): (True, 'a part of the loop'),
    ('aco_submit', 1): (True, 'a task of its own'),
    ('aco_threads_run', 1): (True, 'the same'),
    ('aco_threads_join', 1): (True, 'the same'),
    ('aco__guarded_s', 'run'): (True, 'the same'),
    ('aco_sim_run', 0): (True, 'the same'),
    ('aco_sim_main', 2): (True, 'the same'),
    ('aco_sim_at', 2): (True, 'the same'),
    ('aco__sim_thread', 'fn'): (False, 'a thread begins with it, in no task'),
    ('aco__sim_at_end', 1): (False, 'the run has ended'),
    ('aco_sim_main', 3): (False, 'aco_run() calls it, in the root context'),
    ('aco_sim_options_s', 'invariants'): (False, 'the same'),
    ('each_task', 1): (False, 'it ends the waits of all tasks, in no turn of theirs'),
    ('aco_resource_pool_options_s', 'create'): (True, 'it may connect'),
    ('aco_resource_pool_options_s', 'check'): (True, 'it may ask the peer'),
    ('aco_resource_pool_options_s', 'destroy'): (False, 'it is also called in cleanup'),
    ('aco_singleflight_options_s', 'run'): (True, 'a task of its own'),
    ('aco_singleflight_options_s', 'release'): (False, 'it releases'),
    ('aco_service_run', 0): (True, 'a task of its own'),
    ('aco_service_options_s', 'load'): (True, 'it may read files'),
    ('aco_service_options_s', 'unload'): (False, 'it releases'),
    ('aco_defer', 0): (False, 'in its cleanup a task cannot wait'),
    ('aco__values_destroy', 'destructor'): (False, 'the same'),
    ('aco__relay_begin', 1): (False, 'it must not wait'),
    ('aco_each', 0): (False, 'it looks'),
    ('aco_stack_usage', 0): (False, 'it looks'),
    ('aco_post', 1): (False, 'aco_run() calls it, in the root context'),
    ('aco_on_idle', 0): (False, 'the same'),
    ('aco_on_wake', 0): (False, 'on any thread'),
    ('aco__idle_gives_turns', 0): (False, 'it must not wait'),
    ('aco_offload_at', 0): (False, 'on a thread without tasks'),
    ('aco_offload_at', 3): (False, 'it releases'),
    ('sim_pthread_create', 2): (False, 'the begin of a thread'),
    ('in_run_pthread_create', 2): (True, 'the function of a thread, as that of a task'),
    ('aco_thread_init', 0): (False, 'the process dies'),
    ('aco_allocator_s', 'map'): (False, 'memory'),
    ('aco_allocator_s', 'unmap'): (False, 'memory'),
    ('aco_allocator_s', 'allocate'): (False, 'memory'),
    ('aco_allocator_s', 'release'): (False, 'memory'),
    ('sigaction', '__sigaction_handler'): (False, 'a handler of a signal'),
    ('on_signal', 'handler'): (False, 'the same'),
    ('llvm_backtrace', 0): (False, 'it looks at a frame'),
    ('hooks_are_found', 'call1'): (False, "acorn_hook's read(), which is asked who it is"),
}

# Calls that do not switch, though what they call may.
CALLS = {
    ('aco__http_try_send', 'aco_io_send_at'): 'MSG_DONTWAIT',
    ('release_peer', 'aco__http_skip_body'): 'must_not_wait',
    ('aco__chooser_leave_turn', 'aco__task_leave'): 'the task never goes on; it does not return',
}

# ---- clang's output ----

NAME = r'@("[^"]+"|[\w.$]+)'
DEFINE = re.compile(rf'^define ([^@]*){NAME}\((.*)\).*!dbg !(\d+)')
PARAMETER = re.compile(r'%([\w.]+)(?=, |$)')
CALL = re.compile(rf'^ +(?:%([\w.]+) = )?(?:tail |musttail |notail )?(?:call|invoke) (.*)$')
DIRECT = re.compile(rf'^[^@%(]*(?:\([^()]*\) )?{NAME}\((.*)$')
INDIRECT = re.compile(r'^[^@%(]*(?:\([^()]*\) )?%([\w.]+)\((.*)$')
ASSIGN = re.compile(r'^ +%([\w.$-]+) = (getelementptr|load(?: atomic)? (?:ptr|i64)|phi ptr|select|'
                    r'alloca) ?(.*)$')
STRUCT_FACT = re.compile(r'(?:distinct )?!DICompositeType\(tag: DW_TAG_structure_type, name: "(\w+)".*'
                         r'elements: !(\d+)')
STORE = re.compile(r'^ +store (?:atomic )?(?:ptr|i64) (.+?), ptr (.+?)(?: (?:monotonic|release|seq_cst))?'
                   r'(?:, align.*)?$')
LINE_OF = re.compile(r'!dbg !(\d+)')
ELEMENT = re.compile(r'getelementptr (?:inbounds |nuw |nusw )*\(?%struct\.([\w.]+), ptr ([%@][\w.$]+)'
                     r'(?:, i(?:32|64) -?\w+)*, i32 (\d+)\)?')
GLOBAL_STRUCT = re.compile(r'^@([\w.$]+) = .*?(?:global|constant) %struct\.([\w.]+)')
STRUCT_START = re.compile(rf'^@([\w.$]+) = .*?(?:global|constant) (.*)$')


def split(text):
    """The parts of `text` between commas, outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += c in '([{<'
        depth -= c in ')]}>'
        if depth < 0:
            parts.append(text[start:at])
            return parts
        if c == ',' and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return parts + [text[start:]]


class Function:
    def __init__(self, key, name, place, is_static):
        self.key, self.name, self.place, self.is_static = key, name, place, is_static
        self.calls = []  # (line, ('function', key) or a slot)
        self.marked = False


class Graph:
    """Functions by key, and what flows where: values are ('function', key) and slots, which are ('field', struct,
    index), ('parameter', key, index) and ('local', key, name)."""
    def __init__(self):
        self.functions = {}
        self.flows = set()   # (value, slot, place)
        self.marked = set()  # slots
        self.names = {}      # of slots
        self.structs = set() # with names for all fields


class Unit:
    """Reads one file of clang's output into a graph."""
    def __init__(self, path, text, graph):
        self.path, self.graph, self.lines, self.facts = path, graph, text.split('\n'), {}
        self.statics, self.types, self.function, self.marks = {}, {}, None, set()
        for line in self.lines:
            if line.startswith('!') and ' = ' in line:
                number, fact = line.split(' = ', 1)
                self.facts[number[1:]] = fact
            elif line.startswith('@.str') and f'c"{MARK}\\00"' in line:
                self.marks.add(line.split(' ', 1)[0])
            elif line.startswith('@'):
                m = GLOBAL_STRUCT.match(line)
                if m:
                    self.types[m[1]] = m[2]
        self.name_fields()
        self.bodies()
        self.globals()

    def name_fields(self):
        for fact in self.facts.values():
            m = STRUCT_FACT.match(fact)
            if m and m[1] not in self.graph.structs:
                self.graph.structs.add(m[1])
                for n, member in enumerate(re.findall(r'!(\d+)', self.facts[m[2]])):
                    name = re.search(r'name: "(\w+)"', self.facts[member])
                    self.graph.names['field', m[1], n] = name[1] if name else str(n)

    def place(self, number):
        fact = self.facts[number]
        file = re.search(r'file: !(\d+)', fact)[1]
        return (os.path.normpath(re.search(r'filename: "([^"]*)"', self.facts[file])[1]),
                int(re.search(r'line: (\d+)', fact)[1]))

    def bodies(self):
        starts = [(at, m) for at, line in enumerate(self.lines) if line.startswith('define ')
                  for m in [DEFINE.match(line)] if m]
        for _, m in starts:
            if ' internal ' in f' {m[1]}' or ' private ' in f' {m[1]}':
                self.statics[m[2]] = self.place(m[4])[0] + ':' + m[2]
        for at, m in starts:
            key = self.key(m[2])
            self.function = self.graph.functions.setdefault(
                key, Function(key, m[2], self.place(m[4]), m[2] in self.statics))
            self.parameters = {name: n for n, part in enumerate(split(m[3])) for name in PARAMETER.findall(part)}
            self.values, self.is_again = {}, bool(self.function.calls)
            at += 1
            while self.lines[at] != '}':
                self.statement(self.lines[at])
                at += 1

    def key(self, name):
        if name in self.statics:
            return self.statics[name]
        is_hook = self.path.startswith('src/libc/') and not name.startswith('aco')
        return f'hook:{name}' if is_hook else name # by the same name others call libc's: tools/layers.py

    def line(self, text):
        m = LINE_OF.search(text)
        return int(re.search(r'line: (\d+)', self.facts[m[1]])[1]) if m else self.function.place[1]

    # What an operand is: a set of values, if it is a pointer that was loaded; its address is a slot.
    def value(self, operand):
        operand = operand.strip().split(' ')[-1] if not operand.strip().endswith(')') else operand.strip()
        if operand.startswith('@'):
            return {('function', self.key(operand[1:]))}
        if operand.startswith('%'):
            name = operand[1:]
            if name in self.parameters:
                return {('parameter', self.function.key, self.parameters[name])}
            return self.values.get(name, (set(), None))[0]
        return set()

    def address(self, operand):
        m = ELEMENT.search(operand)
        if m:
            return self.field(m[1], int(m[3]), None)
        operand = operand.strip().split(' ')[-1]
        if operand.startswith('@'):
            struct = self.types.get(operand[1:])
            return self.field(struct, 0, None) if struct else ('global', self.key(operand[1:]), 0)
        return self.values.get(operand[1:], (set(), None))[1]

    def field(self, struct, index, name):
        slot = ('field', re.sub(r'\.\d+$', '', struct), index)
        if name and slot[1] not in self.graph.structs:
            name = re.sub(r'\d+$', '', name) or name
            old = self.graph.names.get(slot)
            self.graph.names[slot] = min(old, name, key=len) if old else name
        return slot

    def flow(self, values, slot, text):
        if slot:
            for value in values:
                if value != slot:
                    self.graph.flows.add((value, slot, f'{self.function.place[0]}:{self.line(text)}'))

    def statement(self, text):
        m = ASSIGN.match(text)
        if m:
            self.assign(m[1], m[2], m[3])
            return
        m = STORE.match(text)
        if m:
            self.flow(self.value(m[1]), self.address(m[2]), text)
            return
        m = CALL.match(text)
        if m:
            self.call(m[1], m[2], text)

    def assign(self, name, what, rest):
        if what == 'alloca':
            slot = ('local', self.function.key, name)
            self.graph.names[slot] = re.sub(r'\.addr$', '', name)
            self.values[name] = (set(), slot)
        elif what == 'getelementptr':
            m = ELEMENT.search('getelementptr ' + rest)
            self.values[name] = (set(), self.field(m[1], int(m[3]), name) if m else None)
        elif what.startswith('load'):
            slot = self.address(re.match(r', ptr (.*?)(?: monotonic| acquire| seq_cst)?(?:, align.*)?$', rest)[1])
            self.values[name] = ({slot} if slot else set(), None)
        elif what == 'phi ptr':
            values = [self.value(v) for v in re.findall(r'\[ (.*?), %', rest)]
            self.values[name] = (set().union(*values), None)
        elif ' ptr ' in rest:
            values = [self.value(part) for part in split(rest.split(', !dbg')[0])[1:]]
            self.values[name] = (set().union(*values), None)

    def call(self, result, rest, text):
        if ' asm ' in f' {rest[:60]} ':
            return
        m = DIRECT.match(rest)
        if m and m[1].startswith('llvm.'):
            self.intrinsic(result, m[1], split(m[2]), text)
            return
        if m:
            called = self.key(m[1])
            self.function.calls.append((self.line(text), ('function', called)))
            for n, argument in enumerate(split(m[2])):
                if argument.strip().startswith('ptr '):
                    self.flow(self.value(argument), ('parameter', called, n), text)
            return
        m = INDIRECT.match(rest)
        for value in self.value('%' + m[1]) if m else ():
            self.function.calls.append((self.line(text), value))

    def intrinsic(self, result, name, arguments, text):
        is_mark = len(arguments) > 1 and arguments[1].strip().split(' ')[-1] in self.marks
        if name.startswith('llvm.ptr.annotation'):
            address = self.address(arguments[0])
            self.values[result] = (set(), address)
            if is_mark and address:
                self.graph.marked.add(address)
        elif name.startswith('llvm.var.annotation') and is_mark:
            local = arguments[0].split('%')[1]
            parameter = self.parameters.get(local.removesuffix('.addr'))
            self.graph.marked.add(('local', self.function.key, local))
            if parameter is not None:
                self.graph.marked.add(('parameter', self.function.key, parameter))

    def globals(self):
        self.function = None
        for line in self.lines:
            if line.startswith('@llvm.global.annotations'):
                for name, mark in re.findall(r'\{ ptr @([\w.$]+), ptr (@[\w.]+),', line):
                    if mark in self.marks and self.key(name) in self.graph.functions:
                        self.graph.functions[self.key(name)].marked = True
            elif line.startswith('@'):
                m = STRUCT_START.match(line)
                if m and 'ptr @' in m[2]:
                    self.initialiser(m[1], m[2])

    def initialiser(self, name, text):
        text = text.strip()
        m = re.match(r'(?:%struct\.([\w.]+)|<?\{[^{}]*\}>?|\[[^\[\]]*(?:\[[^\]]*\])?[^\[\]]*\]) ([{\[<].*)$', text)
        if not m:
            return
        for n, part in enumerate(split(m[2].lstrip('<')[1:])):
            part = part.strip()
            if part.startswith('ptr @') and m[1]:
                value = ('function', self.key(part[5:].split(' ')[0]))
                self.graph.flows.add((value, self.field(m[1], n, None), f'the initialiser of {name}'))
            elif not part.startswith('ptr'):
                self.initialiser(name, part)


def sources(root):
    every = subprocess.run(['sh', 'tools/sources.sh'], cwd=root, capture_output=True, text=True, check=True)
    return every.stdout.split()


def compile_one(clang, root, source):
    done = subprocess.run([*clang, *FLAGS, source, '-o', '-'], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None, done.stderr


# ---- who may switch ----

def is_public(function):
    return function.name.startswith('aco_') and not function.name.startswith('aco__')


def needs_mark(function):
    is_hook = function.key.startswith('hook:')
    return not (is_public(function) or is_hook or function.place[0].startswith('include/')
                or function.name == MAY_SWITCH)


class Answer:
    """Who may switch, and by whom: `next` has for each such function and slot what it reaches the switch by."""
    def __init__(self, graph, callbacks=None, calls=None):
        self.graph = graph
        self.callbacks = CALLBACKS if callbacks is None else callbacks
        self.calls = CALLS if calls is None else calls
        self.found, self.used = [], set()
        self.users, self.into = {}, {}
        for f in graph.functions.values():
            for _, called in f.calls:
                if not self.is_excepted(f, called):
                    self.users.setdefault(called, set()).add(('function', f.key))
        for value, slot, place in graph.flows:
            self.into.setdefault(slot, set()).add((value, place))
            if not (slot[0] == 'parameter' and self.is_public_name(slot[1])):
                self.users.setdefault(value, set()).add(slot)
        says = {('function', MAY_SWITCH)} | {slot for slot in self.users if self.decided(slot)}
        self.next = self.reach(says | {('function', f.key) for f in graph.functions.values() if self.leaves(f)})
        self.checked = self.reach(says)

    @staticmethod
    def is_public_name(key):
        return key.startswith('aco_') and not key.startswith('aco__')

    def is_excepted(self, function, called):
        pair = (function.name, called[1].split(':')[-1]) if called[0] == 'function' else None
        if pair in self.calls:
            self.used.add(pair)
        return pair in self.calls

    def leaves(self, function):
        if function.place[0].startswith('src/coroutine/') or not any(
                called[0] == 'function' and called[1].split(':')[-1].startswith(SWITCH)
                for _, called in function.calls):
            return False
        if function.name in NO_TASK_LEAVES:
            self.used.add(function.name)
        return function.name not in NO_TASK_LEAVES

    def decided(self, slot):
        """What CALLBACKS says of a slot: whether it may switch; None: nothing."""
        key = (slot[1].split(':')[-1], self.graph.names.get(slot, slot[2])) if slot[0] != 'function' else None
        if key not in self.callbacks:
            return None
        self.used.add(key)
        return self.callbacks[key][0]

    def reach(self, roots):
        following, todo = {root: None for root in roots}, sorted(roots, key=str)
        for value in todo:
            for user in sorted(self.users.get(value, ()), key=str):
                if user not in following and self.decided(user) is not False:
                    following[user] = value
                    todo.append(user)
        return following

    def label(self, value):
        if value[0] == 'function':
            return value[1].split(':')[-1]
        return f'{value[1].split(":")[-1]}.{self.graph.names.get(value, value[2])}'

    def way(self, value):
        steps = []
        value = self.next[value]
        while value:
            steps.append(self.label(value))
            value = self.next[value]
        return ' -> '.join(steps)

    # The rules. Each gives lines.

    def functions(self):
        for key, f in self.graph.functions.items():
            at, value = f'{f.place[0]}:{f.place[1]}', ('function', key)
            if not needs_mark(f):
                if f.marked:
                    yield f'{at}: {f.name} is public and is marked: {PAGE} has it'
            elif value in self.next and not f.marked:
                yield f'{at}: {f.name} reaches a switch by {self.way(value) or "assembly"} and is not marked'
            elif f.marked and value not in self.next:
                yield f'{at}: {f.name} is marked and reaches none'

    def slots(self):
        for slot in sorted({slot for slot in self.next if slot[0] in ('field', 'parameter', 'global')}, key=str):
            if slot not in self.graph.marked and self.decided(slot) is None and self.is_called(slot, set()):
                place = min(place for value, place in self.into[slot] if value in self.next)
                yield f'{place}: {self.label(slot)} may be {self.label(self.next[slot])}, which may switch, ' \
                      'and is not marked'
        for slot in sorted(self.graph.marked - set(self.next), key=str):
            if slot[0] != 'local':
                yield f'{self.label(slot)} is marked, and nothing that may switch gets there'

    def is_called(self, slot, seen):
        """Whether a function of src calls it, or what it is given to."""
        function = self.graph.functions.get(slot[1]) if slot[0] == 'parameter' else None
        if slot in seen or (function and function.place[0].startswith('include/')):
            return False
        seen.add(slot)
        users = self.users.get(slot, ())
        return any(user[0] == 'function' or self.is_called(user, seen) for user in users)

    def callbacks_kept(self):
        """Nothing that may switch is stored where CALLBACKS forbids it."""
        for slot, values in sorted(self.into.items(), key=str):
            if self.decided(slot) is False:
                for value, place in sorted(values, key=str):
                    if value in self.next:
                        yield f'{place}: {self.label(slot)} must not switch, and is {self.label(value)}, which may'

    def unknown(self):
        """Every function that is called by pointer is known, or decided in CALLBACKS."""
        for f in self.graph.functions.values():
            for line, called in f.calls:
                if called[0] != 'function':
                    for origin in sorted(self.origins(called, set()), key=str):
                        yield f'{f.place[0]}:{line}: {f.name} calls {self.label(called)}; nothing tells what ' \
                              f'{self.label(origin)} is: say it in CALLBACKS'

    def origins(self, slot, seen):
        if slot in seen or self.decided(slot) is not None:
            return set()
        seen.add(slot)
        values = [value for value, _ in self.into.get(slot, ())]
        if not values or (slot[0] == 'parameter' and self.is_public_name(slot[1])):
            return {slot}
        return set().union(*(self.origins(value, seen) for value in values if value[0] != 'function'))

    def unchecked(self):
        """Who reaches a switch without ACO__MAY_SWITCH() is called by those only that have said it."""
        for key, f in self.graph.functions.items():
            value = ('function', key)
            if value in self.next and value not in self.checked and (is_public(f) or key.startswith('hook:')):
                if not f.place[0].startswith('include/'):
                    yield f'{f.place[0]}:{f.place[1]}: {f.name} reaches a switch by {self.way(value)}, ' \
                          'but no ACO__MAY_SWITCH()'

    def stale(self):
        for exception in sorted({*self.callbacks, *self.calls, *NO_TASK_LEAVES} - self.used, key=str):
            yield f'{exception}: an exception that nothing needs any more'

    def violations(self):
        return [line for rule in (self.functions, self.slots, self.callbacks_kept, self.unknown, self.unchecked,
                                  self.stale) for line in rule()]


# ---- the table of public functions ----

ROWS = [('src/scheduler/', 'tasks (`aco/scheduler.h`, `aco/sync.h`, `aco/group.h`)'),
        ('src/threads/', 'threads (`aco/threads.h`, `aco/mt.h`)'),
        ('src/io/', 'descriptors, files, processes (`aco/io.h`, …)'), ('src/tls/', 'TLS (`aco/tls.h`)'),
        ('src/http/', 'HTTP (`aco/http.h`, `aco/websocket.h`, …)'), ('src/libc/', 'hooks on libc (`aco/hook.h`)'),
        ('src/resilience/', 'services (`aco/limiter.h`, `aco/resource_pool.h`, …)'),
        ('src/grpc/', 'gRPC (`aco/grpc.h`)'),
        ('src/lifecycle/', 'lives of services (`aco/service.h`)'),
        ('src/debug/', 'a look inside (`aco/debug.h`)')]


def public_names(answer):
    """{row: the names of public functions that may switch}: without _at, and without _until and 64 if there is a name
    without."""
    rows = {}
    for key, f in answer.graph.functions.items():
        if ('function', key) in answer.next and (is_public(f) or key.startswith('hook:')):
            if not f.name.startswith('__') and not f.place[0].startswith('include/'):
                row = next(text for folder, text in ROWS if f.place[0].startswith(folder))
                rows.setdefault(row, set()).add(f.name.removesuffix('_at'))
    for names in rows.values():
        for name in sorted(names):
            base = name.removesuffix('_until') if name.startswith('aco') else name.removesuffix('64')
            if base != name and (base in names or name.startswith('aco_shared_')):
                names.discard(name)
                names.add(base)
    return rows


def table(answer):
    rows = public_names(answer)
    lines = [f'| {text} | {", ".join(f"`{name}`" for name in sorted(rows[text]))} |'
             for _, text in ROWS if text in rows]
    return '\n'.join(['| of | calls |', '| --- | --- |', *lines])


def page(root, answer, writes):
    """The page's table is what it must be: else a line."""
    path = os.path.join(root, PAGE)
    with open(path, encoding='utf-8') as file:
        text = file.read()
    before, rest = text.split(BEGIN + '\n')
    old, after = rest.split(END)
    new = table(answer) + '\n'
    if writes and new != old:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'{before}{BEGIN}\n{new}{END}{after}')
    names = lambda text: set(re.findall(r'`(\w+)`', text))
    if not writes and new != old:
        for name in sorted(names(new) - names(old)):
            yield f'{PAGE}: {name} may switch and is not in the table'
        for name in sorted(names(old) - names(new)):
            yield f'{PAGE}: {name} is in the table and cannot switch'
        if names(new) == names(old):
            yield f'{PAGE}: the table is in another order: --write writes it'


# ---- the whole ----

def read(root, clang, paths, flags=()):
    """The graph; and the sources that do not compile: their headers are not here."""
    graph, missing = Graph(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = pool.map(lambda path: compile_one([*clang, *flags], root, path), paths)
        for path, (text, errors) in zip(paths, compiled):
            if text is None:
                missing.append((path, errors))
            else:
                Unit(path, text, graph)
    return graph, missing


# ---- self-test ----

BEFORE = """void aco__may_switch(void);
struct table { ACO__SWITCHES void (*marked)(void); void (*plain)(void); };
ACO__SWITCHES static void waits(void) { aco__may_switch(); }
static void looks(void) {}
"""
CASES = [  # what, the text behind BEFORE, the violations that must be found, and no others
    ('a clean file', 'void aco_call(void) { waits(); looks(); }', []),
    ('no mark', 'static void f(void) { waits(); } void aco_call(void) { f(); }',
     ['src/a.c:5: f reaches a switch by waits -> aco__may_switch and is not marked']),
    ('no mark, two calls away', 'static void g(void) { waits(); }\nvoid aco__f(void);\nvoid aco__f(void) { g(); }',
     ['src/a.c:5: g reaches a switch by waits -> aco__may_switch and is not marked',
      'src/a.c:7: aco__f reaches a switch by g -> waits -> aco__may_switch and is not marked']),
    ('a mark at the declaration', 'ACO__SWITCHES void aco__f(void);\nvoid aco__f(void) { waits(); }', []),
    ('a mark without a reason', 'ACO__SWITCHES static void f(void) { looks(); } void aco_call(void) { f(); waits(); }',
     ['src/a.c:5: f is marked and reaches none']),
    ('a public function with a mark', 'ACO__SWITCHES void aco_call(void) { waits(); }',
     ['src/a.c:5: aco_call is public and is marked: docs/scheduler.md has it']),
    ('a marked field', 'ACO__SWITCHES static void f(struct table *t) { t->marked = waits; t->marked(); }\n'
     'void aco_call(struct table *t) { f(t); }', []),
    ('a call by a marked field', 'static void f(struct table *t) { t->marked(); }\n'
     'void aco_call(struct table *t) { t->marked = waits; f(t); }',
     ['src/a.c:5: f reaches a switch by table.marked -> waits -> aco__may_switch and is not marked']),
    ('a field without a mark', 'void aco_call(struct table *t) { t->plain = waits; t->plain(); }',
     ['src/a.c:5: table.plain may be waits, which may switch, and is not marked']),
    ('the same in an initialiser', 'static const struct table all = {looks, waits};\n'
     'void aco_call(void) { all.plain(); all.marked(); }',
     ['the initialiser of all: table.plain may be waits, which may switch, and is not marked',
      'table.marked is marked, and nothing that may switch gets there']),
    ('a parameter without a mark', 'ACO__SWITCHES static void f(void (*fn)(void)) { fn(); }\n'
     'void aco_call(void) { f(waits); }',
     ['src/a.c:6: f.0 may be waits, which may switch, and is not marked']),
    ('a parameter with one', 'ACO__SWITCHES static void f(ACO__SWITCHES void (*fn)(void)) { fn(); }\n'
     'void aco_call(void) { f(waits); }', []),
    ('a pointer of which nothing is known', 'void aco_call(struct table *t) { t->plain(); waits(); }',
     ['src/a.c:5: aco_call calls table.plain; nothing tells what table.plain is: say it in CALLBACKS']),
    ('a callback that must not', 'struct users { void (*must_not)(void); };\n'
     'void aco_call(struct users *u) { u->must_not = waits; u->must_not(); }',
     ['src/a.c:6: users.must_not must not switch, and is waits, which may']),
    ('a callback that may', 'struct users { void (*may)(void); };\n'
     'static void f(struct users *u) { u->may(); } void aco_call(struct users *u) { f(u); }',
     ['src/a.c:6: f reaches a switch by users.may and is not marked']),
    ('a call that is excepted', 'static void exempt(void) { waits(); } void aco_call(void) { exempt(); }', []),
    ('a switch without a check', 'void aco__switch_yield(void);\n'
     'ACO__SWITCHES static void leave(void) { aco__switch_yield(); }\nvoid aco_call(void) { leave(); }',
     ['src/a.c:7: aco_call reaches a switch by leave, but no ACO__MAY_SWITCH()']),
    ('a switch without a mark', 'void aco__switch_yield(void);\n'
     'static void leave(void) { aco__switch_yield(); }\nvoid aco_call(void) { waits(); leave(); }',
     ['src/a.c:6: leave reaches a switch by assembly and is not marked']),
    ('one that has a reason', 'void aco__switch_yield(void);\n'
     'static void run(void) { aco__switch_yield(); }\nvoid aco_call(void) { run(); waits(); }', []),
]
SELF_CALLBACKS = {('users', 'may'): (True, ''), ('users', 'must_not'): (False, '')}
SELF_CALLS = {('exempt', 'waits'): ''}


def self_test(clang):
    failures = 0
    for what, text, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, 'src'))
            with open(os.path.join(folder, 'src', 'a.c'), 'w', encoding='utf-8') as file:
                file.write(BEFORE + text + '\n')
            graph, missing = read(folder, clang, ['src/a.c'])
        found = sorted(line for line in Answer(graph, SELF_CALLBACKS, SELF_CALLS).violations()
                       if 'an exception that nothing needs' not in line)
        is_right = not missing and found == sorted(expected)
        failures += not is_right
        good = 'found' if expected else 'passes'
        print(f'{what}: ' + (good if is_right else f'FAILED: {found}{missing}, not {expected}'))
    return 1 if failures else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--root', default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument('--clang', default='clang-19')
    parser.add_argument('--write', action='store_true', help=f'write the table of {PAGE}')
    parser.add_argument('--self-test', action='store_true', help='seed each kind of violation')
    return parser.parse_args()


def main():
    args = parse_arguments()
    if not shutil.which(args.clang):
        print(f'may_switch: skipped: {args.clang} is not here')
        return 77
    if args.self_test:
        return self_test([args.clang])
    graph, missing = read(args.root, [args.clang], sources(args.root))
    for path, errors in missing:
        print(f'may_switch: {path} does not compile:\n{errors}')
    if missing:
        return 77 if all(path.startswith('src/tls/') for path, _ in missing) else 1
    answer = Answer(graph)
    found = [*answer.violations(), *page(args.root, answer, args.write)]
    if found:
        print('\n'.join(found))
    marked = sum(f.marked for f in graph.functions.values())
    print(f'may_switch: {len(graph.functions)} functions, {marked} marked, {len(found)} violations')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
