#!/usr/bin/env python3
"""page.py PROGRAM [NODE] [CHROMIUM]: the live page of acorn_debug, of PROGRAM (problems.c), is up to date, its JSON
says what is wrong there, as acorn_top does, and its script (in NODE, if given) finds what it should. CHROMIUM, if
given, shows it: with all tables, in two widths, and nothing refused by the page's own policy."""
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
    for _ in range(60):
        late = json.loads(get(base, '/debug/pprof/late?seconds=1&json=1'))
        state = json.loads(get(base, '/debug/state'))
        is_late = any(stack['state'] == 'ran long' and stack['task'] == 'reports' for stack in late['stacks'])
        if is_late and any('for mutex' in stack['for'] and stack['n'] > 20 for stack in state['stacks']):
            break
    check('late', is_late, late)
    check('the culprit is first', late['stacks'] and late['stacks'][0]['state'] == 'ran long', late)
    check('three threads', state['threads_in_all'] == 3, state)
    check('tasks wait for the lock', any('for mutex' in stack['for'] and stack['n'] > 20 for stack in state['stacks']),
          state)
    check('a stack of sessions', any(stack['task'].startswith('session') for stack in state['stacks']), state)
    check('a group of 200', any(scope['is_group'] and scope['running'] == 200 for scope in state['scopes']), state)
    check('a listener', any(one.get('own', '').startswith('127.') for one in state['connections']), state)
    check('bounded', len(state['oldest']) <= 200 and len(state['stacks']) <= 300)
    check('the lock and what its holder waits for', any(
        stack.get('for_lock', 0) > 20 and re.search(r'which waits at \S*problems.c:\d+ for time to pass', stack['for'])
        for stack in state['stacks']), state)
    check('its age', state['age_ms'] > 0, state)
    few = json.loads(get(base, '/debug/state?filter=sensor'))
    check('filter', 20 <= few['matching'] < 30 < few['tasks'], few)


def in_terminal(base):
    done = subprocess.run([sys.executable, ROOT / 'tools/acorn_top.py', '--once', '--filter', 'order', base],
                          capture_output=True, text=True, check=False, timeout=60)
    for text in ('debug_problems', ' with "order"', 'write_audit < handle_order', 'for mutex'):
        check(f'acorn_top: no {text}', text in done.stdout, done.stdout + done.stderr)


# What the page would find, after three looks at nothing wrong, after one or two, and after five at what is wrong.
FINDS = r"""
new Function(require('fs').readFileSync(0, 'utf8')); // the whole is a script
make = (tag, attributes, ...inside) => [attributes && attributes.href, ...inside].filter(one => one).join('|');
let clock = 0;
performance = {now: () => clock};
function later() {
  clock += 2000;
  noteChanges();
}
const stack = {n: 9, state: 'waits', oldest_ms: 5000, for: 'for mutex 0x10, held by coroutine 0x20', at: 'a.c:1',
  frames: [1], stack_used: 8192, stack_size: 65536};
function lookTimes(n, step) {
  for (let i = 0; i < n; i++) {
    before.sums.set('acorn_offload_queued', step * i * 10);
    const n = 100 + step * 100 * i;
    state = {age_ms: 1e4, threads: [{thread: 7, late: 5000 + step * i, tasks: n, spawned: 200 + 100 * i}],
      stacks: [stack, {n, state: 'waits', for: 'for event 0x30', oldest_ms: 1e6, at: 'b.c:2 & c', frames: [2]}]};
    later();
  }
}
before = {now: 0, sums: new Map()};
looks = 4; // no first ones
lookTimes(3, 0);
for (const n of [40, 50, 60, 70]) {
  state.stacks[1].n = n; // fell from 100, and grows again
  later();
}
console.log('nothing:', findings().length);
changes.clear();
looks = 0;
lookTimes(1, 0);
console.log('first:', findings().join('; '));
state = {...state, threads: [{thread: 7, late: 0, tasks: 1000, spawned: 1010}], stacks: [{...state.stacks[1], n: 900}]};
changes.clear();
later();
state.stacks[0].n += 40;
state.threads[0].tasks += 40;
state.threads[0].spawned += 41;
later();
console.log('second:', findings().join('; '));
state.threads[0].tasks -= 30; // others end
state.threads[0].spawned += 30;
later();
console.log('no leak:', findings().length);
changes.clear();
Object.assign(stack, {n: 200, for_lock: 200, stack_used: 65536});
lookTimes(5, 1);
const bucket = (code, le, n) =>
  `rpc_server_call_duration_seconds_bucket{rpc_method="a.B/C",rpc_response_status_code="${code}",le="${le}"} ${n}\n`;
const ended = code => bucket(code, '0.001', 0) + bucket(code, '0.01', 8) + bucket(code, '+Inf', 10) +
  `rpc_server_call_duration_seconds_count{rpc_method="a.B/C",rpc_response_status_code="${code}"} 10\n`;
const inFlight = 'acorn_grpc_calls_in_flight{end="server",rpc_method="a.B/C"} 3\n';
const sayRpcs = () => console.log('grpc:', JSON.stringify({...rpcs[0], most: 0}), quantile(rpcs[0], 0.5),
  quantile(rpcs[0], 0.99), sinceWhen(rpcLooks));
takeRpcs(ended('OK') + ended('NOT_FOUND') + inFlight);
sayRpcs();
rpcLooks[0].now = performance.now() - 4000;
takeRpcs(ended('OK') + ended('NOT_FOUND') + ended('ABORTED').replace('"0.001"} 0', '"0.001"} 8') + inFlight);
sayRpcs();
state.threads.push({thread: 8, answers: false, task: 'hog', frames: [3]});
console.log(findings().join('\n'));
causes.set(7, {task: 'reports', longest: 129e6, frames: [4]});
stack.for = 'for mutex 0x10, held by coroutine 0x21';
later();
console.log('then:', findings().join('; '));
"""


def finds(node, base):
    script = re.search(r'<script>(.*)</script>', get(base, '/'), re.DOTALL).group(1)
    with tempfile.NamedTemporaryFile('w', suffix='.js', encoding='utf-8') as file:
        file.write(script[:script.index('for (const name in tabs)')] + FINDS)
        file.flush()
        done = subprocess.run([node, file.name], input=script, capture_output=True, text=True, check=False,
                              timeout=60)
    for text in ('nothing: 0\n', 'first: Tasks of thread 7 wake over 10 ms late: 5000 times since it began. What runs ',
                 'second: Tasks in 0x2 become more and more: 940, +', '; of all 1051 tasks that were spawned, 11 have',
                 'no leak: 0\n', 'is looked for.| |#flames:late|', 'Thread 8 is stalled: ',
                 '200 tasks in 0x1 wait for a lock, up to 5.0 s: all of them for mutex 0x10, held by coroutine 0x20. '
                 'This holder has had it for ', '| |#tasks:mutex%200x10|', 'then: Tasks of thread 7 ',
                 ', because task "reports" runs up to 129 ms without giving way, in 0x4.',
                 'held by coroutine 0x21. Its holder changes from look to look: a slow queue.',
                 'has touched 64 of 64 KiB of its stack', '#flames:stacks',
                 'Tasks in 0x2 become more and more: 500, +', '#tasks:b.c%3A2%20%26%20c|',
                 'The queue of blocking work grows: 40, +', '{"end":"server","method":"a.B/C","calls":20,"errors":10,'
                 '"running":3,"most":0} 6.63 ms > 10 ms since the start\n', '"calls":10,"errors":10,'
                 '"running":3,"most":0} < 1 ms > 10 ms the last 4'):
        check(f'findings: no {text}', text in done.stdout, done.stdout + done.stderr)
    check('six findings', len(done.stdout.splitlines()) == 13, done.stdout)


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
            finds(node, base)
        if chromium:
            is_shown(chromium, base, 'overview', 1200, '<canvas', 'write_audit ← handle_order', 'watch_session',
                     ' tasks in write_audit ← handle_order wait for a lock, up to ')
            is_shown(chromium, base, 'tasks', 390, 'watch_session', 'session 0', 'accept_sessions')
            is_shown(chromium, base, 'groups', 1200, 'begun by shop')
            is_shown(chromium, base, 'others', 390, 'Read in this order', 'wait for each other in a circle')
            is_shown(chromium, base, 'connections', 390, '127.0.0.1:')
        served.communicate('\n')
    check('ends', served.returncode == 0, served.returncode)
    print('\n'.join(FAILED) or 'passed' + ('' if chromium else ', without a browser'))
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
