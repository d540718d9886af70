"""What bench/threads/ measures: submissions, divided work, channels, and what idle threads cost."""
from .io_running import Case, Goal
from .threads_programs import ACORN, ASYNC, AWAIT, BOOST, GO, TBB, TOKIO, with_threads

TASKS = (ACORN, GO, TOKIO, BOOST)
BOUND = (ACORN, GO, TOKIO)  # with a way to give a task a thread
LEAST = 1000  # of one thread's submissions that are joined together


def goals(two, *more):
    """Against Go and tokio, on two threads."""
    mine = with_threads(ACORN, 2)
    return [*(Goal('ns', mine, two, with_threads(peer, 2)) for peer in (GO, TOKIO)), *more]


AS_TBB = [Goal('ns', with_threads(ACORN, threads), 1.2, with_threads(TBB, threads)) for threads in (1, 2)]
TWICE = Goal('ns', with_threads(ACORN, 2), round(1 / 1.9, 3), with_threads(ACORN, 1))
TABLES = (  # case, title, what is counted, how many, contenders, goals
    ('empty', 'Submit and join, nothing to do', 'ns for a task', 1000000, (*TASKS, TBB, ASYNC), goals(0.5, *AS_TBB)),
    ('work', 'Submit and join, 1 us of work', 'ns for a task', 1000000, (*TASKS, TBB, ASYNC), [TWICE]),
    ('skynet', 'Skynet, ten children each', 'ns for a leaf', 1000000, (*TASKS, TBB), goals(0.5, *AS_TBB)),
    ('tree', 'A sum by halves', 'ns for a number', 1000000, (*TASKS, TBB), AS_TBB),
    ('pingpong', 'Ping-pong through channels', 'ns for a message', 200000, TASKS, goals(1.0)),
    ('across', 'Ping-pong between two threads', 'ns for a message', 100000, BOUND, goals(1.0)),
    ('many', 'A channel with four senders and four receivers', 'ns for a message', 1000000, TASKS, goals(1.0)))
PARTS = {ASYNC: 0.01, BOOST: 0.1}  # of the work, where all of it takes too long or too much memory


def cases(programs):
    for case, title, unit, number, peers, wanted in TABLES:
        contenders = {with_threads(peer, threads): (peer, threads) for peer in peers
                      for threads in ((1, 2) if peer != ASYNC and case != 'across' else (2,))}

        def measure(name, contenders=contenders, case=case, number=number):
            peer, threads = contenders[name]
            n = max(LEAST, int(number * programs.part * PARTS.get(peer, 1)))
            return {'ns': programs.ns(peer, threads, case, n)}

        yield Case(case, title, list(contenders), measure, {'ns': unit}, 'ns', with_threads(GO, 2), wanted)

    channels, awaits, members = 'channels', 'aco::await', 'co_await in members'
    ways = {channels: (ACORN, 'across'), awaits: (AWAIT, 'tasks'), members: (AWAIT, 'members')}

    def measure_await(name):
        peer, case = ways[name]
        return {'ns': programs.ns(peer, 2, case, int(100000 * programs.part))}

    yield Case('await', 'Completions from another thread, there and back', list(ways), measure_await,
               {'ns': 'ns for a message'}, 'ns', channels,
               [Goal('ns', way, 1.20, channels) for way in (awaits, members)])

    alone, beside = 'alone', 'beside an idle thread'

    def measure_idle(name):
        return {'ns': programs.ns(ACORN, 1 if name == alone else 2, 'yields', int(50000000 * programs.part))}

    yield Case('idle', 'Turns of two tasks on a busy thread', [alone, beside], measure_idle, {'ns': 'ns for a turn'},
               'ns', alone, [Goal('ns', beside, 1.02, alone)])
