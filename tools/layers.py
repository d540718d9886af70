#!/usr/bin/env python3
"""layers.py OBJECT...: checks that the library's layers call downwards only.

Each folder of src/ is a layer. An object or a file may use its own layer and those below it. The script fails, with
one line for each violation, on:
  - an object that uses a symbol of a higher layer (weak references too)
  - a cycle of objects
  - an #include of a higher layer's file, and a cycle of includes
  - an #include of a system header outside src/system, src/os, src/io, src/libc, src/http, src/threads and src/sim,
    unless ISO C has it or SYSTEM_HEADERS below gives a reason
  - a call by name, outside src/system, of a function of libc that the system's table has (src/system), that a hook
    replaces (src/libc), or that OF_THE_SYSTEM below lists. A hook would switch tasks, and nothing could stand in the
    place of the others. BY_NAME below gives reasons for some
  - a folder of src/ or an object without a layer
  - a .c file of src/ that src/sources.txt does not list
  - two files of src/ and include/ with one name
  - a header of src/ that declares (ACO__HIDDEN) what another .c file than that of its name defines; SHARED_HEADERS
    below gives reasons for some
  - a .c file of src/ or tests/ that gives the system's table a `struct stat` or reads its `struct dirent`, without
    64-bit offsets: in a 32-bit build the table would write beyond the structure
The objects are those of one build; the sources are read whole, for every platform and option.

It exits with 77, "skipped", if the objects hold no symbols that nm can read: those of link-time optimisation.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The lowest first.
LAYERS = ['system', 'os', 'base', 'stack', 'tools', 'coroutine', 'scheduler', 'service', 'threads', 'io', 'libc',
          'http', 'grpc', 'tls', 'sim', 'resilience', 'lifecycle', 'debug']
BESIDE = [{'threads', 'io'}, {'libc', 'http'}, {'libc', 'tls'},
          {'sim', 'resilience'},
          *({top, other} for top in ('sim', 'resilience') for other in ('threads', 'io', 'libc', 'http', 'tls')),
          *({'lifecycle', other} for other in ('libc', 'http', 'tls', 'sim', 'resilience')),
          *({'debug', other} for other in ('threads', 'libc', 'tls', 'sim', 'resilience', 'lifecycle')),
          *({'grpc', other} for other in ('threads', 'libc', 'tls', 'sim', 'resilience', 'lifecycle', 'debug'))]
# Neither uses the other.
PUBLIC = 'include'  # the public headers stand below all layers,
BELOW_ALL = ['src/os/platform.h']  # and so do these: what every file includes first
LISTED = 'src/sources.txt'

ISO_C = {name + '.h' for name in ('errno', 'float', 'inttypes', 'limits', 'stdarg', 'stddef', 'stdint', 'stdio',
                                  'stdlib', 'string')}
SYSTEM_FOLDERS = ('src/system/', 'src/os/', 'src/io/', 'src/libc/', 'src/http/', 'src/threads/',
                  'src/sim/', 'src/lifecycle/', 'src/debug/')  # may include any
SYSTEM_HEADERS = [  # the file or folder, the header or folder of headers, the reason
    ('src/', 'unwind.h', "the compiler's, not the system's"),
    ('src/tools/', 'valgrind/memcheck.h', 'macros that tell Valgrind about stacks; no function is called'),
    ('src/tools/', 'sys/sdt.h', 'macros that make probes; no function is called'),
    ('include/aco/detail/generator_inline.h', 'cxxabi.h', "the C++ run time's, not the system's; for C++ only"),
    ('include/aco/task.hpp', 'cxxabi.h', 'the same'),
    ('src/grpc/', 'zlib.h', 'gzip'),
    ('src/tls/', 'openssl/', 'OpenSSL, which it is made of'),
    ('src/tls/', 'sys/socket.h', 'send() and recv(), called by OpenSSL'),
    ('src/tls/', 'arpa/inet.h', 'which hosts are addresses'),
    ('include/aco/io.h', 'sys/socket.h', "struct msghdr and sockaddr, which its calls take"),
    ('include/aco/io.h', 'sys/types.h', 'ssize_t'),
    ('include/aco/io.h', 'sys/uio.h', 'struct iovec'),
    ('include/aco/asio.hpp', 'asio/', 'Asio, which it is for'),
    ('include/aco/asio.hpp', 'boost/', "Boost's, the same"),
    ('include/aco/io.hpp', 'netinet/in.h', 'the sizes of the two kinds of internet addresses'),
    ('include/aco/file.h', 'sys/types.h', 'off_t, mode_t'),
    ('include/aco/url.h', 'sys/types.h', 'ssize_t'),
    ('include/aco/cookie_jar.h', 'sys/types.h', 'the same'),
    ('include/aco/process.h', 'signal.h', 'the numbers of signals, pid_t'),
    ('include/aco.h', 'time.h', "libaco's aco.h includes it"),
    ('include/aco.h', 'sys/mman.h', "libaco's aco.h includes it"),
    ('include/aco.h', 'unistd.h', "libaco's aco.h includes it"),
]

# libc's functions that wait, tell the time or random numbers, or make threads, processes, descriptors or pages, and
# that the table does not have. Who needs one puts it there.
OF_THE_SYSTEM = set("""
    accept alarm arc4random chdir clock_nanosleep copy_file_range creat dup dup2 dup3 epoll_pwait
    epoll_pwait2 execv execve execvp fdatasync flock fork freopen fstatat getaddrinfo getentropy getnameinfo getrandom
    gettid gettimeofday gmtime gmtime_r if_indextoname if_nametoindex inotify_init1 localtime localtime_r lockf
    lstat memfd_create mkostemp mlock
    mremap msync openat pause pidfd_open pidfd_send_signal pipe popen posix_fadvise posix_spawn ppoll preadv
    process_madvise pselect pthread_cancel pthread_mutex_timedlock pthread_rwlock_rdlock pthread_rwlock_wrlock pwritev
    random rand recvmmsg sched_getcpu select sem_post sem_timedwait sem_wait sendmmsg setitimer setrlimit
    sigprocmask sigsuspend sigwait sleep syscall system tee time timer_create timerfd_create timerfd_settime
    truncate uname usleep vfork wait wait4 waitid
""".split())

# Who may call such a function by name all the same: the file or folder, the functions (none: all), the reason.
BY_NAME = [
    ('src/libc/', (), "the hooks, which stand before libc: they have a table of libc's functions of their own. But "
     "syscall() is only for what the system's table is not for"),
    ('src/libc/look_up.c', ('syscall',), 'a table cannot be made'),
    ('src/libc/early.c', ('syscall',), 'the clock, for an allocator: libc has no other name for it'),
    ('src/libc/arguments.c', ('syscall',), 'has the kernel look whether memory is readable'),
    ('src/io/names.c', ('getaddrinfo', 'freeaddrinfo', 'getnameinfo'), 'puts them into the table: static programs that '
     'look up no name link no resolver'),
    ('src/sim/attempt.c', ('fork', 'dup2', 'setrlimit'), 'a run in a process of its own: between runs, when nothing '
     'simulates'),
    ('src/sim/thread_frames.c', ('longjmp', '__longjmp_chk'), 'leaves frames of its own thread, in whatever task'),
    ('src/debug/cpu.c', ('syscall',), 'timers that send signals to threads, which libc of old has in another library: '
     'what they measure is real time'),
    ('src/io/address.c', ('if_indextoname', 'if_nametoindex'), 'the same'),
]

# Headers that declare what several .c files define: the header, the reason.
SHARED_HEADERS = {
    **{name: "a layer's contract" for name in ('base.h', 'stack.h', 'tools.h', 'os.h')},
    **{name: 'a contract with an implementation for each system' for name in ('clock.h', 'events.h', 'entry.h')},
    **{name: 'a record, and the files that know it' for name in (
        'call.h', 'client_http2.h', 'client_peer.h', 'form.h', 'http2.h', 'lifecycle.h', 'metrics.h', 'node.h',
        'reply.h', 'samples.h', 'grpc_channel.h', 'grpc_client.h', 'websocket_internal.h', 'world.h')},
    'call_lists.h': 'the simulated calls, one table',
    'request.h': "drain.c's, for an inline function",
    'hooked.h': "simulated.c's, for hooks in a simulation",
    'libc.h': "hooked.c's, for an inline function",
    'inner.h': "wait.c's, which waits as a task does",
}


def rank(layer):
    return -1 if layer == PUBLIC else LAYERS.index(layer)


def layer_of(path):
    """The layer of a file of src/ or include/; None if it has none."""
    parts = path.split('/')
    if parts[0] == PUBLIC or path in BELOW_ALL:
        return PUBLIC
    folder = parts[1] if len(parts) > 2 else None
    return folder if folder in LAYERS else None


# ---- graphs: {node: {node that it uses: why}} ----

def components(graph):
    """The strongly connected components of more than one node (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, {})):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return [sorted(c) for c in found if len(c) > 1]


def shortest_cycle(graph, nodes):
    """The shortest cycle through the first of `nodes`, which are one component: a list that ends as it begins."""
    came_from, queue = {}, [nodes[0]]
    while queue:
        node = queue.pop(0)
        for other in sorted(set(graph[node]) & set(nodes)):
            if other in came_from:
                continue
            came_from[other] = node
            queue.append(other)
            if other == nodes[0]:
                path = [other]
                while len(path) == 1 or path[-1] != nodes[0]:
                    path.append(came_from[path[-1]])
                return path[::-1]
    raise AssertionError('not a component')


def cycles(graph, what):
    for nodes in components(graph):
        path = shortest_cycle(graph, nodes)
        steps = ''.join(f' -> {b} ({graph[a][b]})' for a, b in zip(path, path[1:]))
        rest = f'; the cycle has {len(nodes)} {what}: {" ".join(nodes)}' if len(nodes) > len(path) - 1 else ''
        yield f'cycle of {what}: {path[0]}{steps}{rest}'


def is_upward(user, used):
    layer, other = layer_of(user), layer_of(used)
    if layer is None or other is None or layer == other:
        return False
    return rank(other) > rank(layer) or {layer, other} in BESIDE


# ---- objects ----

DEFINED, WEAK, UNDEFINED = 'ABCDGRSTui', 'VW', 'Uvw'


def source_of(path):
    """The source of an object, as src/LAYER/…/NAME.c; None if its path does not tell."""
    found = re.match(r'.*(?:^|[/\\])(src[/\\](?:[^/\\]+[/\\])+[^/\\]+\.c)\.(?:o|obj)$', path)
    return found[1].replace('\\', '/') if found else None


def plain(name, magic):
    """The name of a symbol in C: 32-bit Windows and macOS put an underscore before it, Windows __imp_ before
    imports."""
    name = name[len('__imp_'):] if name.startswith('__imp_') else name
    decorated = magic[:2] == b'\x4c\x01' or magic in (b'\xcf\xfa\xed\xfe', b'\xce\xfa\xed\xfe')
    return name[1:] if decorated and name.startswith('_') else name


def symbols(nm, paths):
    """{path: [(name, type)] of the object's global and undefined symbols}"""
    result = subprocess.run([nm, '-A', '-P', *paths], capture_output=True, text=True, check=False)
    found = {path: [] for path in paths}
    magics = {}
    for path in paths:
        with open(path, 'rb') as file:
            magics[path] = file.read(4)
    by_the_compiler = ('.refptr.', '.weak.', '__gnu_lto', 'DW.ref.')
    for line in result.stdout.splitlines():
        path, _, rest = line.partition(': ')
        name, kind = (rest.split() + ['', ''])[:2]
        if path not in found or len(kind) != 1 or name.startswith(by_the_compiler):
            continue
        if kind in DEFINED + WEAK + UNDEFINED:
            found[path].append((plain(name, magics[path]), kind))
    return found


def read_objects(paths, nms):
    """{path: symbols} by the first nm that reads any; {} if none does."""
    for nm in nms:
        try:
            read = symbols(nm, paths)
        except FileNotFoundError:
            continue
        if any(read.values()):
            return read
    return {}


def definers(read):
    """{symbol: the objects that define it}: the strong definitions if there are any, else the weak ones."""
    strong, weak = {}, {}
    for source, pairs in read.items():
        for name, kind in pairs:
            if source.startswith('src/libc/') and not name.startswith('aco'):
                continue  # libc's: whoever uses it means libc
            if kind in DEFINED + WEAK:
                (strong if kind in DEFINED else weak).setdefault(name, []).append(source)
    return {**weak, **strong}


def object_graph(read):
    """Who uses whom, and {(user, used): symbols}. A weak definition uses the strong one that replaces it."""
    where, uses = definers(read), {}
    for source, pairs in read.items():
        for name, kind in pairs:
            others = where.get(name, [])
            if kind in UNDEFINED + WEAK and source not in others:
                for other in others:
                    uses.setdefault((source, other), set()).add(name)
    graph = {source: {} for source in read}
    for (user, used), names in uses.items():
        graph[user][used] = min(names)
    return graph, uses


def without_64(name):
    """open for open64, which is glibc's name of open() with 64-bit offsets"""
    return name.replace('64', '')


def calls_by_name(read):
    """Calls of libc's functions that go past the system's table."""
    hooks = {name for source, pairs in read.items() for name, kind in pairs
             if source.startswith('src/libc/') and kind in DEFINED and not name.startswith('aco')}
    table = {name for source, pairs in read.items() for name, kind in pairs
             if source.startswith('src/system/') and kind in UNDEFINED and not name.startswith(('_', 'aco'))}
    guarded = {without_64(name) for name in hooks | table | OF_THE_SYSTEM} if table else hooks
    for source, pairs in sorted(read.items()):
        excuses = [names for where, names, _ in BY_NAME if source.startswith(where)]
        if source.startswith('src/system/'):
            continue
        allowed = {name for names in excuses for name in names}
        if () in excuses:
            allowed |= guarded - {'syscall'}
        for name in sorted({name for name, kind in pairs if kind in UNDEFINED}):
            if without_64(name) in guarded - allowed:
                yield f'{source} calls {name} by name: what leaves the process goes by aco__system'


def check_objects(read):
    graph, uses = object_graph(read)
    found = list(calls_by_name(read))
    for user, used in sorted(uses):
        if is_upward(user, used):
            found += [f'{user} uses {name} of {used}: {layer_of(user)} may not use {layer_of(used)}'
                      for name in sorted(uses[user, used])]
    return found + list(cycles(graph, 'objects')), graph


# ---- sources ----

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def without_comments(text):
    keep_lines = lambda comment: '\n' * comment[0].count('\n') if comment[0].startswith('/') else comment[0]
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', keep_lines, text, flags=re.S)


def includes(root, path):
    """[(line, '<' or '"', name)]"""
    with open(os.path.join(root, path), encoding='utf-8') as file:
        text = without_comments(file.read())
    return [(text.count('\n', 0, m.start(1)) + 1, m[1], m[2]) for m in INCLUDE.finditer(text)]


def source_files(root):
    for top in ('src', PUBLIC):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith(('.c', '.h', '.hpp', '.inc')):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, '/')


def resolve(path, name, files):
    """The file that `path` includes as "name": beside it, or from src/ or include/."""
    for folder in (os.path.dirname(path), 'src', PUBLIC):
        candidate = os.path.normpath(f'{folder}/{name}').replace(os.sep, '/')
        if candidate in files:
            return candidate
    return None


def may_include(path, header):
    is_cpp = path.startswith(PUBLIC) and '.' not in header  # <optional>: ISO C++ has it
    return path.startswith(SYSTEM_FOLDERS) or header in ISO_C or is_cpp or any(
        path.startswith(where) and (header.startswith(name) if name.endswith('/') else header == name)
        for where, name, _ in SYSTEM_HEADERS)


def names_twice(files):
    with_name = {}
    for path in files:
        with_name.setdefault(os.path.basename(path), []).append(path)
    for name, paths in sorted(with_name.items()):
        if len(paths) > 1:
            yield f'{paths[-1]}: {paths[0]} has this name too'


TABLE = re.compile(r'\baco__system\b|#\s*include "(?:system/system|replace)\.h"')
WIDE = re.compile(r'^\s*#\s*(?:define\s+(_FILE_OFFSET_BITS)\s+64\b|include\s*([<"])([^">]+)[">])', re.M)


def read_code(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return re.sub(r'/\*.*?\*/|//[^\n]*', ' ', file.read(), flags=re.S)


def is_wide(root, path, files):
    """Whether it asks for 64-bit offsets before its first system header: True, False, or None (neither is there)."""
    for define, kind, name in WIDE.findall(read_code(root, path)):
        used = resolve(path, name, files) if kind == '"' else None
        result = True if define else False if kind == '<' else is_wide(root, used, files) if used else None
        if result is not None:
            return result
    return None


# Compiled for files only where `struct stat` has one form.
NARROW = {'src/libc/simulated.c'}


def narrow_sources(root):
    tests = {f'tests/{name}' for name in os.listdir(f'{root}/tests')} if os.path.isdir(f'{root}/tests') else set()
    files = {*source_files(root), *(path for path in tests if path.endswith(('.c', '.h')))}
    for path in sorted(files - NARROW):
        text = read_code(root, path) if path.endswith('.c') and path.startswith(('src/', 'tests/')) else ''
        if re.search(r'\bstruct\s+(?:stat|dirent)\s', text) and TABLE.search(text) and not is_wide(root, path, files):
            yield f'{path}: uses a structure of the table without _FILE_OFFSET_BITS 64 before its first system header'


def check_sources(root):
    files = sorted(source_files(root))
    graph, found = {path: {} for path in files}, []
    folders = sorted({path.split('/')[1] for path in files if path.startswith('src/') and layer_of(path) is None})
    found += [f'src/{folder} has no layer' for folder in folders]
    with open(os.path.join(root, LISTED), encoding='utf-8') as file:
        listed = {line.split()[-1] for line in file if line.strip()}
    found += [f'{path}: {LISTED} does not list it' for path in files
              if path.startswith('src/') and path.endswith('.c') and path not in listed]
    found += list(names_twice(files))
    found += list(narrow_sources(root))
    for path in files:
        for line, kind, name in includes(root, path):
            if kind == '<':
                if not may_include(path, name):
                    found.append(f'{path}:{line}: includes the system header <{name}>: only src/os may')
                continue
            used = resolve(path, name, files)
            if used is None and path.startswith('src/http/') and os.path.exists(f'{root}/third_party/{name}'):
                continue
            if used is None:
                found.append(f'{path}:{line}: includes "{name}", which is no file of src/ or include/')
                continue
            graph[path][used] = f'line {line}'
            if is_upward(path, used):
                found.append(f'{path}:{line}: includes "{name}": {layer_of(path)} may not use {layer_of(used)}')
    return found + list(cycles(graph, 'includes'))


# ---- the two together ----

def declares_others(root, read):
    """Headers with functions of other files than their own. What this build does not have is not seen."""
    where = definers(read)
    for path in sorted(path for path in source_files(root) if path.startswith('src/') and path.endswith('.h')):
        base = os.path.basename(path)
        own = {base[:-2], base[:-2].removesuffix('_internal')}
        for name in re.findall(r'ACO__HIDDEN[^;{]*?\b(\w+)\s*\(', read_code(root, path)):
            others = [other for other in where.get(name, []) if os.path.basename(other)[:-2] not in own]
            if others and base not in SHARED_HEADERS:
                yield f'{path}: declares {name}, which {others[0]} defines'


def check(root, paths, nms):
    """(violations, the graph of objects); (None, {}) if the objects hold no symbols."""
    found = check_sources(root)
    names = {path: source_of(path) for path in paths}
    found += [f'{path}: an object without a layer' for path in paths
              if not names[path] or layer_of(names[path]) is None]
    read = read_objects(paths, nms)
    if paths and not read:
        return None, {}
    read = {names[path]: pairs for path, pairs in read.items() if names[path]}
    objects, graph = check_objects(read)
    return found + objects + list(declares_others(root, read)), graph


# ---- self-test ----

CLEAN = {
    'include/aco.h': '#include <stddef.h>\n#include <time.h>\n/* #include "scheduler/s.h" */\n',
    'src/os/os.c': '#include <unistd.h>\n#include "aco.h"\nvoid low(void) {}\n',
    'src/base/base.h': 'void low(void);\nvoid base(void);\n',
    'src/base/base.c': '#include "base/base.h"\n__attribute__((weak)) void nobody_has(void);\n'
                       'void base(void) { low(); if (nobody_has) nobody_has(); }\n',
    'src/tools/tools.c': '#include "base/base.h"\nvoid hook(void) { base(); }\n',
    'src/scheduler/s.c': '#include "base/base.h"\nvoid run(void) { base(); }\n',
}
UPWARD = 'src/base/base.c uses run of src/scheduler/s.c: base may not use scheduler'
CASES = [  # what, the files that differ from CLEAN, the violations that must be found, and no others
    ('a clean tree', {}, []),
    ('an upward call', {'src/base/base.c': 'void run(void); void base(void); void base(void) { run(); }\n',
                        'src/scheduler/s.c': 'void run(void) {}\n'}, [UPWARD]),
    ('an upward weak reference',
     {'src/base/base.c': '__attribute__((weak)) void run(void); void base(void) { if (run) run(); }\n',
      'src/scheduler/s.c': 'void run(void) {}\n'}, [UPWARD]),
    ('a weak definition that a higher layer replaces',
     {'src/base/base.c': '__attribute__((weak)) void run(void) {} void base(void) {}\n',
      'src/scheduler/s.c': 'void run(void) {}\n'}, [UPWARD]),
    ('two objects of a layer that use each other',
     {'src/base/base.c': 'void two(void); void base(void) { two(); }\n',
      'src/base/two.c': 'void base(void); void two(void) { base(); }\n'},
     ['cycle of objects: src/base/base.c -> src/base/two.c (two) -> src/base/base.c (base)']),
    ('a cycle of three objects',
     {'src/base/base.c': 'void two(void); void base(void) { two(); }\n',
      'src/base/two.c': 'void three(void); void two(void) { three(); }\n',
      'src/base/three.c': 'void base(void); void three(void) { base(); }\n'},
     ['cycle of objects: src/base/base.c -> src/base/two.c (two) -> src/base/three.c (three) -> src/base/base.c (base)'
      ]),
    ('an upward include', {'src/stack/s.h': '#include "tools/h.h"\n', 'src/tools/h.h': '\n'},
     ['src/stack/s.h:1: includes "tools/h.h": stack may not use tools']),
    ('a public header that includes a private one', {'include/aco.h': '\n#include "base/base.h"\n'},
     ['include/aco.h:2: includes "base/base.h": include may not use base']),
    ('a cycle of includes', {'src/base/a.h': '#include "base/b.h"\n', 'src/base/b.h': '#include "a.h"\n'},
     ['cycle of includes: src/base/a.h -> src/base/b.h (line 1) -> src/base/a.h (line 1)']),
    ('a system header', {'src/base/base.h': 'void low(void);\nvoid base(void);\n # include <unistd.h>\n'},
     ['src/base/base.h:3: includes the system header <unistd.h>: only src/os may']),
    ('a use of descriptors below them', {
        'src/scheduler/s.c': 'void io(void); void run(void); void run(void) { io(); }\n',
        'src/io/io.c': '#include <sys/epoll.h>\nvoid io(void) {}\n'},
     ['src/scheduler/s.c uses io of src/io/io.c: scheduler may not use io']),
    ('uses between the libraries beside the scheduler', {
        'src/threads/t.c': '#include <pthread.h>\nvoid threads(void) {}\n',
        'src/io/io.c': 'void threads(void); void io(void); void io(void) { threads(); }\n'},
     ['src/io/io.c uses threads of src/threads/t.c: io may not use threads']),
    ('a call of a hook', {
        'src/system/system.c': 'int close(int); int (*table)(int) = close;\n',
        'src/libc/hooks.c': 'int close(int fd); int close(int fd) { return fd; }\n',
        'src/io/io.c': 'int close(int); int io(void); int io(void) { return close(0); }\n',
        'src/io/names.c': 'int getaddrinfo(void); int names(void); int names(void) { return getaddrinfo(); }\n',
        'src/libc/resolver.c': 'int getaddrinfo(void); int getaddrinfo(void) { return 1; }\n'},
     ["src/io/io.c calls close by name: what leaves the process goes by aco__system"]),
    ('calls past the table', {
        'src/system/system.c': 'int fstat64(void); int (*table)(void) = fstat64;\n',
        'src/libc/hooks.c': 'int fstat(void); int getrandom(void);\n'
                            'int hooks(void); int hooks(void) { return fstat() + getrandom(); }\n',
        'src/libc/waits.c': 'int syscall(void); int waits(void); int waits(void) { return syscall(); }\n',
        'src/libc/look_up.c': 'int syscall(void); int die(void); int die(void) { return syscall(); }\n',
        'src/io/io.c': 'int fstat(void); int getrandom(void); int abs_of(void);\n'
                       'int io(void); int io(void) { return fstat() + getrandom() + abs_of(); }\n'},
     ['src/io/io.c calls fstat by name: what leaves the process goes by aco__system',
      'src/io/io.c calls getrandom by name: what leaves the process goes by aco__system',
      'src/libc/waits.c calls syscall by name: what leaves the process goes by aco__system']),
    ('an include of nothing', {'src/base/a.h': '#include "lost.h"\n'},
     ['src/base/a.h:1: includes "lost.h", which is no file of src/ or include/']),
    ('a folder without a layer', {'src/misc/m.c': 'void misc(void) {}\n'},
     ['src/misc has no layer', 'src/misc/m.c.o: an object without a layer']),
    ('two files with one name', {'include/aco/s.h': '\n', 'src/stack/s.h': '\n', 'src/tools/t.h': '\n'},
     ['src/stack/s.h: include/aco/s.h has this name too']),
    ('a header of another file', {'src/tools/t.h': 'ACO__HIDDEN void low(void);\n/* ACO__HIDDEN void base(void); */\n',
                                  'src/base/base_internal.h': 'ACO__HIDDEN void base(void);\n'},
     ['src/tools/t.h: declares low, which src/os/os.c defines']),
    ('narrow offsets', {
        'src/system/system.h': '#include <time.h>\n',
        'src/io/wide.h': '#define _FILE_OFFSET_BITS 64\n#include <sys/stat.h>\n',
        'src/io/a.c': '#include "io/wide.h"\n#include "system/system.h"\nvoid a(void) { struct stat s; (void)s; }\n',
        'src/io/b.c': '#include <stdio.h>\n#define _FILE_OFFSET_BITS 64\n#include "system/system.h"\n'
                      '#include <sys/stat.h>\nvoid b(void) { struct stat s; (void)s; }\n',
        'src/io/c.c': '#include <sys/stat.h>\nvoid c(void) { struct stat s; (void)s; }\n'},
     ['src/io/b.c: uses a structure of the table without _FILE_OFFSET_BITS 64 before its first system header']),
    ('a file that is not listed', {LISTED: 'acorn all src/os/os.c\nacorn all src/base/base.c\n'
                                           'acorn all src/tools/tools.c\n'},
     ['src/scheduler/s.c: src/sources.txt does not list it']),
]


def compile_tree(folder, files, compiler):
    sources = [path for path in files if path.endswith('.c')]
    for path, text in {LISTED: '\n'.join(sources), **files}.items():
        os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(folder, path), 'w', encoding='utf-8') as file:
            file.write(text)
    for path in sources:
        subprocess.run([*compiler, '-c', path, '-o', path + '.o', '-Isrc', '-Iinclude'], cwd=folder, check=True)
    return [os.path.join(folder, path + '.o') for path in sources]


NAMES = [  # a symbol, the first bytes of its object, its name in C
    ('_f', b'\x7fELF', '_f'), ('__imp_f', b'\x64\x86\x04\x00', 'f'), ('_f', b'\x64\x86\x04\x00', '_f'),
    ('_f', b'\x4c\x01\x04\x00', 'f'), ('__imp__f', b'\x4c\x01\x04\x00', 'f'), ('_f', b'\xcf\xfa\xed\xfe', 'f'),
]


def self_test(compiler, nms):
    failures = 0
    for name, magic, expected in NAMES:
        if plain(name, magic) != expected:
            failures += 1
            print(f'{name} in an object {magic}: FAILED: {plain(name, magic)}, not {expected}')
    for what, files, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = check(folder, compile_tree(folder, {**CLEAN, **files}, compiler), nms)[0]
        if found is None:
            print('layers: skipped: no nm reads symbols of what $CC compiles')
            return 77
        found = sorted(line.replace(folder + os.sep, '') for line in found)
        is_right = found == sorted(expected)
        failures += not is_right
        good = 'found' if expected else 'passes'
        print(f'{what}: ' + (good if is_right else f'FAILED: {found}, not {expected}'))
    return 1 if failures else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('objects', nargs='*', metavar='OBJECT')
    parser.add_argument('--nm', default='nm', help='gcc-nm and llvm-nm are tried after it')
    parser.add_argument('--self-test', action='store_true', help='seed each kind of violation; compiles with $CC')
    return parser.parse_args()


def main():
    args = parse_arguments()
    nms = [args.nm, 'gcc-nm', 'llvm-nm']
    if args.self_test:
        return self_test(os.environ.get('CC', 'cc').split(), nms)
    found, graph = check(ROOT, args.objects, nms)
    if found is None:
        print('layers: skipped: no nm reads symbols in these objects; are they of link-time optimisation?')
        return 77
    if found:
        print('\n'.join(found))
        print(f'layers: {len(found)} violations')
        return 1
    arrows = sum(len(used) for used in graph.values())
    print(f'layers: {len(graph)} objects, {arrows} arrows, all downwards: {" < ".join(LAYERS)}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
