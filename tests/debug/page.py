#!/usr/bin/env python3
"""page.py PROGRAM [NODE] [CHROMIUM]: the live page of acorn_debug, of PROGRAM (problems.c), is up to date, its JSON
says what is wrong there, as acorn_top does, and its script is one (NODE, if given). CHROMIUM, if given, shows it: with
all tables, in two widths, and nothing refused by the page's own policy."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).parent.parent.parent
FAILED = []


def check(what, holds, text=''):
    if not holds:
        FAILED.append(f'{what}\n{text}')


def get(base, path):
    with urllib.request.urlopen(base + path, timeout=60) as page:
        return page.read().decode()


def has_problems(base):
    """What the page would show of it."""
    for _ in range(20):
        late = json.loads(get(base, '/debug/pprof/late?seconds=1&json=1'))
        state = json.loads(get(base, '/debug/state'))
        is_late = any(stack['state'] == 'ran long' and stack['task'] == 'reports' for stack in late['stacks'])
        if is_late and any('for mutex' in stack['for'] and stack['n'] > 20 for stack in state['stacks']):
            break
    check('late', is_late, late)
    check('three threads', state['threads_in_all'] == 3, state)
    check('tasks wait for the lock', any('for mutex' in stack['for'] and stack['n'] > 20 for stack in state['stacks']),
          state)
    check('a stack of sessions', any(stack['task'].startswith('session') for stack in state['stacks']), state)
    check('a group of 200', any(scope['is_group'] and scope['running'] == 200 for scope in state['scopes']), state)
    check('a listener', any(one.get('own', '').startswith('127.') for one in state['connections']), state)
    check('bounded', len(state['oldest']) <= 200 and len(state['stacks']) <= 300)
    few = json.loads(get(base, '/debug/state?filter=sensor'))
    check('filter', 20 <= few['matching'] < 30 < few['tasks'], few)


def in_terminal(base):
    done = subprocess.run([sys.executable, ROOT / 'tools/acorn_top.py', '--once', '--filter', 'order', base],
                          capture_output=True, text=True, check=False, timeout=60)
    for text in ('debug_problems', ' with "order"', 'write_audit < handle_order', 'for mutex'):
        check(f'acorn_top: no {text}', text in done.stdout, done.stdout + done.stderr)


def is_script(node, base):
    with tempfile.NamedTemporaryFile('w', suffix='.js', encoding='utf-8') as file:
        file.write(re.search(r'<script>(.*)</script>', get(base, '/'), re.DOTALL).group(1))
        file.flush()
        done = subprocess.run([node, '--check', file.name], capture_output=True, text=True, check=False, timeout=60)
    check('node', done.returncode == 0, done.stderr)


def is_shown(chromium, base, tab, width, *wanted):
    done = subprocess.run([chromium, '--headless', '--no-sandbox', '--disable-gpu', f'--window-size={width},800',
                           '--enable-logging=stderr', '--virtual-time-budget=8000', '--dump-dom', f'{base}/#{tab}'],
                          capture_output=True, text=True, check=False, timeout=120)
    for text in (f'data-shown="{tab}"', *wanted):
        check(f'{tab}: no {text}', text in done.stdout, done.stdout + done.stderr)
    errors = [line for line in done.stderr.splitlines() if 'CONSOLE' in line]
    check(f'{tab}: messages', not errors, errors)


def main():
    program, node, chromium = (sys.argv[1:] + ['', ''])[:3]
    done = subprocess.run([sys.executable, ROOT / 'tools/live_page.py', '--check'], capture_output=True, text=True,
                          check=False)
    check('live.c', done.returncode == 0, done.stdout)
    with subprocess.Popen([program, 'all'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as served:
        base = f'http://127.0.0.1:{int(served.stdout.readline())}'
        has_problems(base)
        in_terminal(base)
        if node:
            is_script(node, base)
        if chromium:
            is_shown(chromium, base, 'overview', 1200, '<canvas', 'write_audit ← handle_order', 'watch_session')
            is_shown(chromium, base, 'tasks', 390, 'watch_session', 'session 0')
            is_shown(chromium, base, 'groups', 1200, 'begun by shop')
            is_shown(chromium, base, 'connections', 390, '127.0.0.1:')
        served.communicate('\n')
    check('ends', served.returncode == 0, served.returncode)
    print('\n'.join(FAILED) or 'passed' + ('' if chromium else ', without a browser'))
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
