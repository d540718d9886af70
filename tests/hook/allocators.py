#!/usr/bin/env python3
"""allocators.py ALLOCATOR FOLDER PROGRAM OBJECT CC [FLAG...]: runs tests/hook/allocators.c with another library's
malloc(), for each way in which that and acorn_hook come to a program: PROGRAM, which is linked with neither, with both
preloaded in both orders; OBJECT linked with both in both orders, as shared and as static libraries. FOLDER has acorn's.
ALLOCATOR "programs FOLDER": programs of Debian that are linked with jemalloc, with acorn_hook preloaded.
Exit 77: the allocator is not installed."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 60
SKIPPED = 77
# Shared libraries, static ones with what they need, and environments to run in beside the usual one.
ALLOCATORS = {
    'locking': (['libhook_locking.so'], ['libhook_locking.a'], []),  # locking.c
    'jemalloc': (['libjemalloc.so.2'], ['libjemalloc.a', '-lstdc++', '-lm'],
                 [{'MALLOC_CONF': 'background_thread:true,narenas:1,tcache:false'}]),
    'tcmalloc': (['libtcmalloc.so.4'], [], []),
    'tcmalloc_minimal': (['libtcmalloc_minimal.so.4'], ['libtcmalloc_minimal.a', '-lstdc++', '-lm'], []),
    'tcmalloc_debug': (['libtcmalloc_minimal_debug.so.4'], ['libtcmalloc_minimal_debug.a', '-lstdc++', '-lm'], []),
    'mimalloc': (['libmimalloc.so.2.0', 'libmimalloc.so.2'], [], [{'MIMALLOC_SHOW_STATS': '1'}]),
    'tbbmalloc': (['libtbbmalloc_proxy.so.2'], [], []),
    'efence': (['libefence.so.0'], ['libefence.a'], []),
    'dmalloc': (['libdmallocth.so.5'], [], [{'DMALLOC_OPTIONS': 'debug=0x403,log=/dev/null,lockon=2'}]),
    'scudo': (['libclang_rt.scudo_standalone-x86_64.so', 'libclang_rt.scudo_standalone-i386.so'], [], []),
    'glibc_debug': (['libc_malloc_debug.so.0'], [], [{'GLIBC_TUNABLES': 'glibc.malloc.check=3'}]),
}
# Those whose locks a fork() takes first.
FORKS = ('jemalloc', 'tcmalloc', 'tcmalloc_minimal')
PROGRAMS = (['redis-cli', '--version'], ['redis-server', '--version'], ['dig', '-v'], ['h2load', '--version'])


def machine(path):
    """The kind of processor that a program or shared library is for."""
    with open(path, 'rb') as file:
        head = file.read(20)
    return head[4], head[18:20]


def candidates(compiler, name, folder):
    yield folder + '/' + name
    yield subprocess.run([*compiler, '-print-file-name=' + name], check=True, capture_output=True,
                         text=True).stdout.strip()
    yield from sorted(glob.glob('/usr/lib/llvm-*/lib/clang/*/lib/linux/' + name))


def find(compiler, names, program):
    """The first of the libraries that the program's folder, the linker or clang has for the program; None: no such."""
    for name in names:
        for path in candidates(compiler, name, os.path.dirname(program)):
            if os.path.isabs(path) and os.path.exists(path) and (
                    name.endswith('.a') or machine(path) == machine(program)):
                return path
    return None


def run(what, command, environment, output):
    """0, or 1: it has failed."""
    print('  ' + what, *[f'{name}={value}' for name, value in environment.items()], flush=True)
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True,
                              timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f'    failed: no end after {LIMIT_S} seconds')
        return 1
    if done.returncode == 0 and output in done.stdout:
        return 0
    print(f'    failed: {command[0]}: status {done.returncode}: {(done.stdout + done.stderr)[-2000:]}')
    return 1


def ways(allocator, archive, folder, program, object_file, compiler, made):
    """Each way: its name, the program and its environment."""
    preloaded = [allocator, folder + '/libacorn_hook.so']
    yield 'preloaded, allocator first', program, {'LD_PRELOAD': ':'.join(preloaded)}
    yield 'preloaded, hooks first', program, {'LD_PRELOAD': ':'.join(reversed(preloaded))}
    yield 'preloaded, the program at a fixed address', program + '_fixed', {'LD_PRELOAD': ':'.join(preloaded)}
    system = [*(option for option in compiler if option.startswith('-l')), '-lpthread', '-ldl']
    shared = [folder + f'/lib{name}.so' for name in ('acorn_hook', 'acorn_io', 'acorn')]
    static = [folder + f'/lib{name}.a' for name in ('acorn_hook', 'acorn_io', 'acorn')]
    links = {'linked, allocator first': [allocator, *shared], 'linked, hooks first': [*shared, allocator]}
    if archive:
        links['static, allocator first'] = [*archive, *static]
        links['static, hooks first'] = [*static, *archive]
    links['static hooks, shared allocator'] = [*static, allocator]
    for name, libraries in links.items():
        subprocess.run([*compiler, '-o', made, object_file, '-Wl,--no-as-needed', '-Wl,-rpath,' + folder,
                        '-Wl,-rpath,' + os.path.dirname(allocator), *libraries, *system], check=True)
        yield name, made, {}


def test(name, folder, program, object_file, *compiler):
    names, archive, environments = ALLOCATORS[name]
    allocator = find(compiler, names, program)
    archive = [find(compiler, archive[:1], program), *archive[1:]] if archive else []
    if not allocator:
        print(f'skipped: {names[0]} is not installed')
        return SKIPPED
    with tempfile.TemporaryDirectory() as scratch:
        failed = 0
        for way, made, preload in ways(allocator, archive if archive and archive[0] else None, folder, program,
                                       object_file, compiler, scratch + '/program'):
            for environment in [{}, *environments]:
                command = [made, 'forks'] if name in FORKS else [made]
                failed += run(way, command, {**environment, **preload}, 'allocators: passed')
    return failed != 0


def run_programs(folder):
    failed, ran = 0, 0
    for program in PROGRAMS:
        path = shutil.which(program[0])
        if not path or machine(path) != machine(folder + '/libacorn_hook.so'):
            print(f'skipped: {program[0]} is not installed, or for another processor')
            continue
        ran += 1
        failed += run(' '.join(program), program, {'LD_PRELOAD': folder + '/libacorn_hook.so'}, '')
    return failed != 0 if ran else SKIPPED


if sys.argv[1] == 'programs':
    sys.exit(run_programs(sys.argv[2]))
sys.exit(test(*sys.argv[1:]))
