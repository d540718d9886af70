#!/usr/bin/env python3
"""What steals and wakes would do with more threads than this machine has: a discrete-event simulation of
src/threads/search.c and submit.c, with costs that bench/threads/costs.c measured once, or measures now. A model, not a
measurement: it knows cache lines that one thread writes at a time, and nothing of memory, frequency or other processes.

    bench/threads/simulate.py [--costs PROGRAM] [--threads N,N,...] [--only TEXT] [--rules NAME,NAME,...] [--seeds N]

Simulated are: a thread's own deque, rows of items that end as one member of their group, the count that a group's own
thread keeps for itself, scans of all others' deques from the next one on, steals of half of what there is, 32 at most,
the time that a lone item is left to its thread, the counts of sleepers and searchers, one wake for each submission
while none searches, wakes by a searcher that has found something, sleep and its latency. Each of these shared words is
a line: who writes it waits for those before, and pays a transfer if another thread had it last; who reads it pays one
if it was written since.

`--rules`, whom a searcher wakes that has found something while more is left:
    chain   one thread, if it was the only searcher; before, `sleepers` and `searchers` were in one line, too
    more    the same, and one more if it has found many items (wake_more() in search.c)
"""
import argparse
import collections
import heapq
import random
import subprocess

# Nanoseconds, medians of five runs of bench/threads/costs.c on two processors of a virtual machine (Rocket Lake).
# `task` is a task's start and end; `latency` has `wake` in it.
COSTS = {'task': 30, 'submit': 13, 'line': 64, 'wake': 12562, 'latency': 37775}
STOLEN, ATTEMPTS, LEFT_NS, ROW, CHILDREN = 32, 4, 5000, 32, 10
ITEMS_EACH = 16
RULES = ('chain', 'more')


class Line:
    """A cache line."""
    def __init__(self, costs):
        self.transfer, self.free_at, self.owner, self.readers = costs['line'], 0.0, None, set()

    def write(self, thread, now):
        """When the thread has it and has written it."""
        begin = max(now, self.free_at)
        self.free_at = begin + (self.transfer if self.owner is not thread or self.readers else 1)
        self.owner = thread
        self.readers.clear()
        return self.free_at

    def read(self, thread, now):
        if self.owner is thread or thread in self.readers:
            return now + 1
        self.readers.add(thread)
        return max(now, self.free_at) + self.transfer


class Group:
    """Members that have not ended, on other threads too. `waiter`: its thread and what that does when they have."""
    def __init__(self, costs, members, waiter, then):
        self.line, self.left, self.waiter, self.then = Line(costs), members, waiter, then


class Thread:
    def __init__(self, number, costs):
        self.number, self.items, self.ready = number, [], []  # items: (work ns, children's depth, group)
        self.bottom, self.top, self.flag = Line(costs), Line(costs), Line(costs)
        self.state = 'asleep'
        self.spent = {'work': 0.0, 'tasks': 0.0, 'group': 0.0, 'steal': 0.0, 'wake': 0.0}
        self.attempt = 0
        self.row, self.ended = None, 0  # the group whose members run in a row, and how many of them have ended


class Simulation:
    def __init__(self, number, costs, rule, seed):
        self.costs, self.rule, self.random = costs, rule, random.Random(seed)
        self.threads = [Thread(i, costs) for i in range(number)]
        self.sleepers_line = Line(costs)
        self.searchers_line = Line(costs) if rule == 'more' else self.sleepers_line
        self.sleepers, self.searchers, self.stored = number - 1, 0, 0  # stored: items in all deques
        self.now, self.events, self.sequence, self.is_over = 0.0, [], 0, False
        self.asleep = set(range(1, number))
        self.steals = self.wakes = 0

    def at(self, time, thread, action):
        self.sequence += 1
        heapq.heappush(self.events, (time, self.sequence, thread, action))

    def latency(self):
        return self.costs['latency'] * self.random.uniform(0.8, 1.2)

    def spend(self, thread, what, until, now):
        thread.spent[what] += until - now
        return until

    # ---- what threads do; each takes the time and returns a later one ----

    def wake(self, thread, now):
        """Wakes a sleeper, of whom there is one."""
        begin = now
        now = self.searchers_line.write(thread, now)
        woken = self.threads[min(self.asleep)]
        for other in self.threads[:woken.number]:
            now = other.flag.read(thread, now)
        now = self.sleepers_line.write(thread, woken.flag.write(thread, now))
        self.asleep.discard(woken.number)
        self.sleepers -= 1
        self.searchers += 1
        self.wakes += 1
        woken.state, woken.attempt = 'searching', 0
        self.at(now + self.latency(), woken, self.search)
        return self.spend(thread, 'wake', now + self.costs['wake'], begin)

    def wake_one(self, thread, now):
        now = self.sleepers_line.read(thread, now)
        if not self.sleepers:
            return now
        now = self.searchers_line.read(thread, now)
        return now if self.searchers else self.wake(thread, now)

    def stop_searching(self, thread, found, now):
        self.searchers -= 1
        now = self.spend(thread, 'steal', self.searchers_line.write(thread, now), now)
        if not self.searchers and self.stored:
            now = self.wake_one(thread, now)
        awake = len(self.threads) - self.sleepers
        if self.rule == 'more' and self.sleepers and self.searchers < min(found // ITEMS_EACH, awake // 2 + 1):
            now = self.wake(thread, now)
        return now

    def submit(self, thread, item, now):
        begin = now
        thread.items.append(item)
        now = thread.bottom.write(thread, now)
        self.stored += 1
        now = self.spend(thread, 'tasks', now + self.costs['submit'], begin)
        return self.wake_one(thread, now)

    def submit_all(self, thread, number, item, now):
        """One after the other, while others go on; then the task waits for the group. Returns nothing."""
        if number:
            now = self.submit(thread, item, now)
            self.at(now, thread, lambda t: self.submit_all(t, number - 1, item, self.now))
        else:
            now = self.spend(thread, 'group', item[2].line.write(thread, now), now)
            self.at(now, thread, self.go_on)

    def end_members(self, thread, group, number, now):
        now = self.spend(thread, 'group', group.line.write(thread, now), now)
        group.left -= number
        if group.left:
            return now
        waiter = group.waiter
        if waiter is thread:
            thread.ready.append(group.then)
            return now
        self.at(now + self.costs['line'], waiter, ('ready', group.then))
        return self.spend(thread, 'wake', now + self.costs['wake'], now) if waiter.state == 'asleep' else now

    def end_row(self, thread, now):
        group, number = thread.row, thread.ended
        thread.row, thread.ended = None, 0
        return self.end_members(thread, group, number, now) if group else now

    def run_item(self, thread, item, now):
        work, depth, group = item
        if thread.row is not group:
            now = self.end_row(thread, now)
        now = self.spend(thread, 'tasks', now + self.costs['task'], now)
        now = self.spend(thread, 'work', now + work, now)
        if not depth:
            thread.row, thread.ended = group, thread.ended + 1
            return now if thread.ended < ROW else self.end_row(thread, now)
        now = self.end_row(thread, now)  # it waits
        children = Group(self.costs, CHILDREN, thread, lambda t, when: self.end_members(t, group, 1, when))
        return self.submit_all(thread, CHILDREN, (0, depth - 1, children), now)

    def go_on(self, thread):
        """The thread has a processor: what can run, or its own items, or others'."""
        now = self.now
        if thread.ready:
            now = self.spend(thread, 'tasks', self.end_row(thread, now) + self.costs['submit'], now)
            now = thread.ready.pop()(thread, now)
        elif thread.items:
            self.stored -= 1
            now = self.spend(thread, 'steal', thread.top.read(thread, now), now)
            now = self.run_item(thread, thread.items.pop(), thread.bottom.write(thread, now))
        elif thread.row:
            now = self.end_row(thread, now)
        else:
            self.begin_search(thread, now)
            return
        if now is not None:
            self.at(now, thread, self.go_on)

    def begin_search(self, thread, now):
        self.searchers += 1
        now = self.spend(thread, 'steal', self.searchers_line.write(thread, now), now)
        thread.state, thread.attempt = 'searching', 0
        self.at(now, thread, self.search)

    def search(self, thread):
        """One scan: up to the first victim that has something; or all, and then again or asleep."""
        now, number = self.now, len(self.threads)
        if thread.ready:
            thread.state = 'busy'
            self.at(self.stop_searching(thread, 0, now), thread, self.go_on)
            return
        now = self.sleepers_line.read(thread, now)  # what others have submitted stands there, too
        for i in range(1, number):
            victim = self.threads[(thread.number + i) % number]
            now = victim.bottom.read(thread, victim.top.read(thread, now))
            if len(victim.items) >= (1 if thread.attempt else 2):
                now = self.spend(thread, 'steal', now, self.now)
                self.at(now, thread, lambda t, v=victim: self.steal(t, v))
                return
        thread.attempt += 1
        if thread.attempt == 1 and self.stored:
            now += LEFT_NS
        if thread.attempt < ATTEMPTS:
            self.at(self.spend(thread, 'steal', now, self.now), thread, self.search)
            return
        now = thread.flag.write(thread, self.sleepers_line.write(thread, now))
        now = self.spend(thread, 'steal', self.searchers_line.write(thread, now), self.now)
        self.searchers -= 1
        if self.stored:  # the look after it has said that it sleeps
            self.begin_search(thread, now)
            return
        thread.state = 'asleep'
        self.sleepers += 1
        self.asleep.add(thread.number)

    def steal(self, thread, victim):
        now = self.now
        found = len(victim.items)
        number = min(STOLEN, (found + 1) // 2)
        for _ in range(number):
            now = self.spend(thread, 'steal', victim.top.write(thread, now), now)
        if not number:
            self.at(now, thread, self.search)
            return
        self.steals += 1
        first, thread.items = victim.items[0], victim.items[1:number]
        del victim.items[:number]
        now = thread.bottom.write(thread, now)
        self.stored -= 1
        thread.ready.append(lambda t, when: self.run_item(t, first, when))  # nobody can steal that one again
        now = self.stop_searching(thread, found, now)
        thread.state = 'busy'
        self.at(now, thread, self.go_on)

    # ---- the whole ----

    def run(self, begin):
        first = self.threads[0]
        first.state = 'busy'
        begin(self, first)
        while self.events and not self.is_over:
            self.now, _, thread, action = heapq.heappop(self.events)
            if isinstance(action, tuple):  # another thread has ended what this one waits for
                thread.ready.append(action[1])
                if thread.state == 'asleep':
                    thread.state = 'busy'
                    self.asleep.discard(thread.number)
                    self.sleepers -= 1
                    self.at(self.now + self.latency(), thread, self.go_on)
                continue
            action(thread)
        return self.now


# ---- The programs of threads-acorn ----

def work_of(batches, size, work):
    """One thread submits so many at a time, and waits for them."""
    def next_batch(simulation, thread, left, now):
        if not left:
            simulation.is_over = True
            return now
        group = Group(simulation.costs, size, thread, lambda t, when: next_batch(simulation, t, left - 1, when))
        return simulation.submit_all(thread, size, (work, 0, group), now)

    return lambda simulation, thread: next_batch(simulation, thread, batches, 0.0)


def skynet(depth, work):
    def begin(simulation, thread):
        def over(_, when):
            simulation.is_over = True
            return when
        group = Group(simulation.costs, 1, thread, over)
        simulation.submit_all(thread, 1, (work, depth, group), 0.0)
    return begin


PROGRAMS = {  # name: what begins it, and how many leaves
    'work 1 us, 1000 at a time': (work_of(5, 1000, 1000), 5000),
    'work 1 us, 20000 at a time': (work_of(1, 20000, 1000), 20000),
    'work 100 us, 1000 at a time': (work_of(1, 1000, 100000), 1000),
    'skynet, 100000 leaves': (skynet(5, 0), 100000)}


def measured(program):
    """The costs that bench/threads/costs.c prints as lines "name nanoseconds"."""
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {**COSTS, **{name: float(ns) for name, ns in map(str.split, output.splitlines())}}


def rows(name, numbers, costs, rule, seeds):
    """Of each number of threads: ns for a leaf, speed against one thread, where the threads' time goes. Means of
    simulations whose latencies differ by up to a fifth."""
    begin, leaves = PROGRAMS[name]
    alone = None
    for number in numbers:
        took, spent, counts = 0.0, collections.Counter(), collections.Counter()
        for seed in range(seeds):
            simulation = Simulation(number, costs, rule, seed)
            took += simulation.run(begin) / seeds
            counts.update(steals=simulation.steals, wakes=simulation.wakes)
            for thread in simulation.threads:
                spent.update(thread.spent)
        alone = alone or took
        share = {what: 100 * ns / (took * seeds * number) for what, ns in spent.items()}
        share['asleep'] = max(0.0, 100 - sum(share.values()))
        yield number, took / leaves, alone / took, share, counts['steals'] // seeds, counts['wakes'] // seeds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--costs', metavar='PROGRAM', help='measures the costs anew')
    parser.add_argument('--threads', default='1,2,8,64,256')
    parser.add_argument('--rules', default=','.join(RULES))
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--only', metavar='TEXT', default='')
    args = parser.parse_args()
    costs = measured(args.costs) if args.costs else COSTS
    print('costs, ns: ' + ', '.join(f'{name} {ns:.0f}' for name, ns in costs.items()))
    for name in PROGRAMS:
        for rule in args.rules.split(',') if args.only in name else ():
            print(f'\n{name}, {rule}\n'
                  'threads  ns/leaf  speed  work%  tasks%  group%  steal%  wake%  asleep%  steals  wakes')
            numbers = map(int, args.threads.split(','))
            for number, ns, speed, share, steals, wakes in rows(name, numbers, costs, rule, args.seeds):
                print(f'{number:7} {ns:8.1f} {speed:6.1f} ' + ' '.join(
                    f'{share[what]:6.1f} ' for what in ('work', 'tasks', 'group', 'steal', 'wake', 'asleep')) +
                    f'{steals:6} {wakes:6}')


if __name__ == '__main__':
    main()
