#!/usr/bin/env python3
"""What steals and wakes would do with more threads than this machine has: a discrete-event simulation of
src/threads/search.c and group.c, with costs that bench/threads/costs.c measured once, or measures now. A model, not a
measurement: it knows cache lines that one thread has at a time, and nothing of memory, frequency or other processes.

    bench/threads/simulate.py [--costs PROGRAM] [--threads N,N,...] [--only TEXT]

Simulated are: a thread's own deque, scans of all others' from the next one on, steals of half of what there is, 32 at
most, the counts of sleepers and searchers, one wake for each submission while none searches, wakes by a searcher that
has found something, sleep and its latency, and the count of a group's members. Each of these shared words is a line:
who uses it waits for those before, and pays a transfer if another thread had it last.

Speed against one thread, with the costs below:             8 threads     64     256
    one thread submits 20 000 times 1 us of work                  6.5   11.0     9.0
    skynet, 100 000 leaves                                        6.1    7.2     6.1
"""
import argparse
import heapq
import random
import subprocess

# Nanoseconds, medians of five runs of bench/threads/costs.c on two processors of a virtual machine (Rocket Lake).
# `task` is a task's start and end.
COSTS = {'task': 30, 'submit': 13, 'line': 64, 'wake': 12562, 'latency': 37775}
STOLEN, ATTEMPTS, CHILDREN = 32, 4, 10


class Line:
    """A cache line that is written."""
    def __init__(self, costs):
        self.transfer, self.free_at, self.owner = costs['line'], 0.0, None

    def use(self, thread, now):
        """When the thread has it and has written it."""
        begin = max(now, self.free_at)
        self.free_at = begin + (self.transfer if self.owner is not thread else 1)
        self.owner = thread
        return self.free_at


class Group:
    """Members that have not ended. `waiter`: a thread and what it does when they have."""
    def __init__(self, costs, members, waiter, then):
        self.line, self.left, self.waiter, self.then = Line(costs), members, waiter, then


class Thread:
    def __init__(self, number, costs):
        self.number, self.items, self.ready = number, [], []  # items: (work ns, children's depth, group)
        self.top = Line(costs)
        self.state, self.spent = 'asleep', {'work': 0.0, 'tasks': 0.0, 'group': 0.0, 'steal': 0.0, 'asleep': 0.0}
        self.epoch = 0
        self.ends = {}  # with batched ends: group -> members that have ended here and are not subtracted yet


class Simulation:
    """`next_steps`: 'ends' subtracts ends of a group's members in batches; 'random' begins scans at a random victim;
    'wakes' lets an eighth of the threads search before a submission wakes nobody."""
    def __init__(self, number, costs, next_steps=(), seed=1):
        self.costs, self.next_steps, self.random = costs, next_steps, random.Random(seed)
        self.threads = [Thread(i, costs) for i in range(number)]
        self.counts = Line(costs)  # of sleepers and searchers
        self.sleepers, self.searchers, self.stored = number - 1, 0, 0  # stored: items in all deques
        self.now, self.events, self.sequence, self.is_over = 0.0, [], 0, False
        self.asleep = set(range(1, number))
        self.steals = self.wakes = 0

    def at(self, time, thread, action):
        self.sequence += 1
        heapq.heappush(self.events, (time, self.sequence, thread, action))

    def spend(self, thread, what, until, now):
        thread.spent[what] += until - now
        return until

    # ---- what threads do; each takes the time and returns a later one ----

    def wake_one(self, thread, now):
        most = len(self.threads) // 8 if 'wakes' in self.next_steps else 0
        if not self.sleepers or self.searchers > most:
            return now
        now = self.counts.use(thread, now)
        woken = self.threads[min(self.asleep)]
        self.asleep.discard(woken.number)
        self.sleepers -= 1
        self.searchers += 1
        self.wakes += 1
        woken.state = 'searching'
        self.at(now + self.costs['wake'] + self.costs['latency'], woken, self.search)
        return now + self.costs['wake']

    def submit(self, thread, item, now):
        now = begin = self.spend(thread, 'group', item[2].line.use(thread, now), now)
        thread.items.append(item)
        self.stored += 1
        now = self.wake_one(thread, now + self.costs['submit'])
        thread.spent['tasks'] += now - begin
        return now

    def end_members(self, thread, group, number, now):
        now = self.spend(thread, 'group', group.line.use(thread, now), now)
        group.left -= number
        if not group.left:
            waiter = group.waiter
            if waiter is thread:
                thread.ready.append(group.then)
            else:
                self.at(now + self.costs['line'], waiter, ('ready', group.then))
        return now

    def flush(self, thread, now):
        for group, number in list(thread.ends.items()):
            del thread.ends[group]
            now = self.end_members(thread, group, number, now)
        return now

    def end_member(self, thread, group, now):
        if 'ends' not in self.next_steps or group.waiter is thread:
            return self.end_members(thread, group, 1, now)
        thread.ends[group] = thread.ends.get(group, 0) + 1
        return now if thread.items else self.flush(thread, now)

    def run_item(self, thread, item, now):
        work, depth, group = item
        now = self.spend(thread, 'tasks', now + self.costs['task'], now)
        now = self.spend(thread, 'work', now + work, now)
        if not depth:
            return self.end_member(thread, group, now)
        children = Group(self.costs, CHILDREN, thread, lambda t, when: self.end_member(t, group, when))
        for _ in range(CHILDREN):
            now = self.submit(thread, (0, depth - 1, children), now)
        return now

    def go_on(self, thread):
        """The thread has a processor: what can run, or its own items, or others'."""
        now = self.now
        if thread.ready:
            now = self.spend(thread, 'tasks', now + self.costs['submit'], now)
            now = thread.ready.pop()(thread, now)
        elif thread.items:
            self.stored -= 1
            now = self.run_item(thread, thread.items.pop(), now)
        else:
            now = self.flush(thread, now)
            self.searchers += 1
            now = self.spend(thread, 'steal', self.counts.use(thread, now), now)
            thread.state, thread.epoch = 'searching', 0
            self.at(now, thread, self.search)
            return
        self.at(now, thread, self.go_on)

    def victims(self, thread):
        first = self.random.randrange(len(self.threads)) if 'random' in self.next_steps else thread.number + 1
        return (self.threads[(first + i) % len(self.threads)] for i in range(len(self.threads)))

    def search(self, thread):
        """One scan: up to the first victim that has something; or all, and then again or asleep."""
        now = self.now
        looked = 0
        if thread.ready:
            self.searchers -= 1
            self.at(self.counts.use(thread, now), thread, self.go_on)
            return
        for victim in self.victims(thread) if self.stored else ():
            if victim is thread:
                continue
            looked += 1
            if victim.items:
                now = self.spend(thread, 'steal', now + looked * self.costs['line'], now)
                self.at(now, thread, lambda t, v=victim: self.steal(t, v))
                return
        looked = len(self.threads) - 1
        thread.epoch += 1
        now = self.spend(thread, 'steal', now + looked * self.costs['line'], now)
        if thread.epoch < ATTEMPTS:
            self.at(now, thread, self.search)
            return
        now = self.spend(thread, 'steal', self.counts.use(thread, now), now)
        self.searchers -= 1
        if self.stored:  # the look after it has said that it sleeps
            self.searchers += 1
            thread.epoch = 0
            self.at(now, thread, self.search)
            return
        thread.state = 'asleep'
        self.sleepers += 1
        self.asleep.add(thread.number)

    def steal(self, thread, victim):
        now = self.now
        number = min(STOLEN, (len(victim.items) + 1) // 2)
        for _ in range(number):
            now = self.spend(thread, 'steal', victim.top.use(thread, now), now)
        if not number:
            self.at(now, thread, self.search)
            return
        self.steals += 1
        first, thread.items = victim.items[0], victim.items[1:number]
        del victim.items[:number]
        self.stored -= 1
        thread.ready.append(lambda t, when: self.run_item(t, first, when))  # nobody can steal that one again
        self.searchers -= 1
        now = self.spend(thread, 'steal', self.counts.use(thread, now), now)
        if self.stored:
            now = self.wake_one(thread, now)
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
                    thread.state = 'searching'
                    self.asleep.discard(thread.number)
                    self.sleepers -= 1
                    self.searchers += 1
                    self.at(self.now + self.costs['latency'], thread, self.search)
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
        for _ in range(size):
            now = simulation.submit(thread, (work, 0, group), now)
        return now

    def begin(simulation, thread):
        simulation.at(next_batch(simulation, thread, batches, 0.0), thread, simulation.go_on)
    return begin


def skynet(depth, work):
    def begin(simulation, thread):
        def over(_, when):
            simulation.is_over = True
            return when
        group = Group(simulation.costs, 1, thread, over)
        simulation.at(simulation.submit(thread, (work, depth, group), 0.0), thread, simulation.go_on)
    return begin


PROGRAMS = {  # name: what begins it, and how many leaves
    'work 1 us, 1000 at a time': (work_of(5, 1000, 1000), 5000),
    'work 1 us, 20000 at a time': (work_of(1, 20000, 1000), 20000),
    'skynet, 100000 leaves': (skynet(5, 0), 100000)}


def measured(program):
    """The costs that bench/threads/costs.c prints as lines "name nanoseconds"."""
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {**COSTS, **{name: float(ns) for name, ns in map(str.split, output.splitlines())}}


def rows(name, numbers, costs, next_steps=()):
    """Of each number of threads: ns for a leaf, speed against one thread, where the threads' time goes."""
    begin, leaves = PROGRAMS[name]
    alone = None
    for number in numbers:
        simulation = Simulation(number, costs, next_steps)
        took = simulation.run(begin)
        alone = alone or took
        spent = {what: sum(thread.spent[what] for thread in simulation.threads) for what in simulation.threads[0].spent}
        share = {what: 100 * ns / (took * number) for what, ns in spent.items()}
        share['asleep'] = max(0.0, 100 - share['work'] - share['tasks'] - share['group'] - share['steal'])
        yield number, took / leaves, alone / took, share, simulation.steals, simulation.wakes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--costs', metavar='PROGRAM', help='measures the costs anew')
    parser.add_argument('--threads', default='1,2,8,64,256')
    parser.add_argument('--only', metavar='TEXT', default='')
    args = parser.parse_args()
    costs = measured(args.costs) if args.costs else COSTS
    print('costs, ns: ' + ', '.join(f'{name} {ns:.0f}' for name, ns in costs.items()))
    for name in PROGRAMS:
        for next_steps in ((), ('wakes',), ('wakes', 'ends', 'random')):
            if args.only not in name:
                continue
            print(f'\n{name}{" with " + ", ".join(next_steps) if next_steps else ""}\n'
                  'threads  ns/leaf  speed  work%  tasks%  group%  steal%  other%  steals  wakes')
            for number, ns, speed, share, steals, wakes in rows(name, map(int, args.threads.split(',')), costs,
                                                                next_steps):
                print(f'{number:7} {ns:8.1f} {speed:6.1f} ' + ' '.join(
                    f'{share[what]:6.1f} ' for what in ('work', 'tasks', 'group', 'steal', 'asleep')) +
                    f'{steals:6} {wakes:6}')


if __name__ == '__main__':
    main()
