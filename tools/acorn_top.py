#!/usr/bin/env python3
"""acorn_top.py [--once] [--filter TEXT] PID|PORT|URL: what the tasks of a program do, in a terminal.

The program uses acorn_debug (docs/see-inside.md). Of a process the port is found by its listening sockets. Keys: q
ends, f enters a filter, p pauses; with --once, or without a terminal, the state is printed once."""
import argparse
import curses
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import json

PERIOD_S = 2
OWN = re.compile(r'^(aco_|_?aco__|__|clone|start_thread|0x)')  # the library's functions, and those below


def get(url, body=None, limit=10):
    with urllib.request.urlopen(url, data=body, timeout=limit) as page:
        return page.read().decode()


def ports_of(process):
    """The ports on which a process listens at loopback addresses, or at all."""
    inodes = set()
    for fd in os.listdir(f'/proc/{process}/fd'):
        try:
            target = os.readlink(f'/proc/{process}/fd/{fd}')
        except OSError:
            continue
        if target.startswith('socket:['):
            inodes.add(target[8:-1])
    for table, host in (('tcp', '127.0.0.1'), ('tcp6', '[::1]')):
        with open(f'/proc/{process}/net/{table}', encoding='ascii') as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[3] == '0A' and fields[9] in inodes:
                    yield f'http://{host}:{int(fields[1].rsplit(":", 1)[1], 16)}'


def base_of(target):
    if not target.isdigit():
        return target.rstrip('/') if '//' in target else f'http://{target}'.rstrip('/')
    if os.path.isdir(f'/proc/{target}/fd'):
        for base in ports_of(target):
            try:
                if json.loads(get(f'{base}/debug/state'))['pid'] == int(target):
                    return base
            except (OSError, ValueError, KeyError, urllib.error.URLError):
                continue
    return f'http://127.0.0.1:{target}'


def time_text(ms):
    return f'{ms} ms' if ms < 1000 else f'{ms / 1000:.1f} s' if ms < 120000 else f'{ms // 60000} min'


class View:
    """The program at an address, and what was seen of it."""

    def __init__(self, base, text):
        self.base, self.filter = base, text
        self.names, self.before = {}, {}

    def look_up(self, stacks):
        wanted = sorted({frame for stack in stacks for frame in stack.get('frames', [])} - self.names.keys())[:5000]
        if not wanted:
            return
        self.names.update((frame, f'{frame:#x}') for frame in wanted)
        for line in get(f'{self.base}/debug/pprof/symbol', '+'.join(f'{frame:#x}' for frame in wanted).encode()
                        ).splitlines():
            address, _, name = line.partition(' ')
            if address.startswith('0x'):
                self.names[int(address, 16)] = name

    def stack_text(self, stack):
        names = [self.names.get(frame, '?') for frame in stack.get('frames', [])]
        own = [name for name in names if not OWN.match(name)]
        return ' < '.join((own or names)[:4])

    def growth(self, stack, now):
        key = stack['state'], tuple(stack['frames'])
        first, since = self.before.setdefault(key, (stack['n'], now))
        more = stack['n'] - first
        return f'{more / (now - since):+.1f}/s' if abs(more) > 5 + stack['n'] / 20 and now > since else ''

    def lines(self):
        """(text, is important) for each line."""
        now = time.monotonic()
        state = json.loads(get(f'{self.base}/debug/state?filter={urllib.parse.quote(self.filter)}'))
        self.look_up(state['stacks'] + state['threads'])
        yield (f'{state["program"]} ({state["pid"]}): {state["tasks"]} tasks, {state["threads_in_all"]} threads'
               + (f'; {state["matching"]} with "{self.filter}"' if self.filter else '')
               + ('; not all tasks were seen' if state['unfinished'] else ''), True)
        yield '', False
        yield f'{"THREAD":>8} {"TASKS":>8} {"SPAWNED":>10} {"TURNS":>12} {"LATE":>8}', False
        for one in state['threads']:
            yield (f'{one["thread"]:>8} {one["tasks"]:>8} {one["spawned"]:>10} {one["turns"]:>12} {one["late"]:>8}',
                   False)
            if one.get('answers') is False:
                yield f'         does not give way: {one.get("task", "")} {self.stack_text(one)}', True
        yield '', False
        yield f'{"TASKS":>8} {"GROWTH":>10} {"OLDEST":>8} {"STATE":<14} {"STACK":<40} EXAMPLE', False
        for stack in state['stacks']:
            oldest = time_text(stack['oldest_ms']) if stack['state'] == 'waits' else ''
            example = ', '.join(filter(None, (stack.get('task'), stack.get('route'), stack.get('for'),
                                              os.path.basename(stack.get('at', '')))))
            yield (f'{stack["n"]:>8} {self.growth(stack, now):>10} {oldest:>8} {stack["state"]:<14} '
                   f'{self.stack_text(stack):<40} {example}', False)


def safe_lines(view):
    try:
        return list(view.lines())
    except urllib.error.HTTPError as error:
        return [('a profile is being made' if error.code == 429 else f'{view.base}: {error}', True)]
    except (OSError, ValueError) as error:
        return [(f'{view.base}: {error}', True)]


def printable(text):
    return ''.join(c if c.isprintable() else '?' for c in text)


def show(screen, lines):
    screen.erase()
    height, width = screen.getmaxyx()
    for i, (text, is_important) in enumerate(lines[:height - 1]):
        screen.addnstr(i, 0, printable(text), width - 1, curses.A_BOLD if is_important else 0)
    screen.addnstr(height - 1, 0, 'q: quit  f: filter  p: pause', width - 1, curses.A_DIM)
    screen.refresh()


def ask_filter(screen):
    curses.echo()
    screen.timeout(-1)
    height, _ = screen.getmaxyx()
    screen.move(height - 1, 0)
    screen.clrtoeol()
    screen.addstr(height - 1, 0, 'filter: ')
    text = screen.getstr(height - 1, 8, 31).decode(errors='replace')
    curses.noecho()
    return text


def live(screen, view):
    is_paused = False
    curses.curs_set(0)
    while True:
        if not is_paused:
            show(screen, safe_lines(view))
        screen.timeout(PERIOD_S * 1000)
        key = screen.getch()
        if key == ord('q'):
            return
        if key == ord('p'):
            is_paused = not is_paused
        elif key == ord('f'):
            view.filter = ask_filter(screen)


def main():
    parser = argparse.ArgumentParser(description='What the tasks of a program with acorn_debug do.')
    parser.add_argument('target', help='the number of a process, a port, or an address')
    parser.add_argument('--filter', default='', help='tasks whose name, route, place or object contains this')
    parser.add_argument('--once', action='store_true', help='print the state once')
    given = parser.parse_args()
    view = View(base_of(given.target), given.filter)
    if not given.once and sys.stdout.isatty():
        try:
            curses.wrapper(live, view)
        except KeyboardInterrupt:
            pass
        return 0
    try:
        for text, _ in view.lines():
            print(printable(text).rstrip())
    except (OSError, ValueError) as error:
        print(f'acorn_top: {view.base}: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
