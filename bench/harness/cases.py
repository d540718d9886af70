"""The cases of bench/run.py: the switch matrix, and measurements of the native API."""
ACORN = "acorn"
CALL, CLASSIC, CALLBACK = "empty call", "classic switch", "callback"
BOOST_FIBER, BOOST_COROUTINE, BOOST_TASK = "Boost.Context fiber", "Boost.Coroutine2", "Boost.Fiber"
COROSENSEI, TOKIO, GO, CPP20 = "corosensei", "tokio", "Go", "C++20 generator"
MANY = 10000  # from this number of coroutines on, making them takes longer than measuring: fewer rounds


# ---- The switch matrix ----

class Case:
    """One row group: a command line of the matrix programs (bench/matrix.h)."""
    programs = None  # all programs of the matrix take part

    def __init__(self, name, number, order="-"):
        self.name, self.number, self.order = name, number, order

    @property
    def arguments(self):
        return [self.name, str(self.number), self.order]

    @property
    def params(self):
        if self.name == "flat":
            return {"coroutines": self.number, "order": {"rr": "round robin", "random": "random order"}[self.order]}
        return {"depth": self.number} if self.name == "nested" else {}

    @property
    def title(self):
        if self.name == "flat" and self.number == 1:
            return "flat loop, 1 coroutine"
        if self.name == "flat":
            return f"flat loop, {self.number} coroutines, {self.params['order']}"
        if self.name == "nested":
            return f"yield nested {self.number} call{'s' if self.number > 1 else ''} deep"
        return "passing a value each way"


ONE = Case("flat", 1, "rr")
EIGHT = Case("flat", 8, "rr")
SIXTY_FOUR = Case("flat", 64, "rr")
NESTED = {depth: Case("nested", depth) for depth in (1, 4, 16)}
CASES = [ONE,
         EIGHT, SIXTY_FOUR, Case("flat", 1000, "rr"), Case("flat", 100000, "rr"),
         *(Case("flat", number, "random") for number in (8, 64, 1000, 100000)),
         *NESTED.values(), Case("value", 1)]


# ---- Native cases ----

class Line:
    """One measurement of a native case, by a program that uses bench/native.h.

    `limit` is the number to reach for the ratio to the case's base: a number, or numbers by compiler. `most_ns` is the
    one for the nanoseconds themselves."""

    def __init__(self, what, program, name, number=1, limit=None, impl=ACORN, most_ns=None):
        self.what, self.program, self.arguments = what, program, [name, str(number), "-"]
        self.limit, self.impl, self.most_ns = limit, impl, most_ns

    def limit_for(self, compiler):
        return self.limit.get(compiler.split()[0]) if isinstance(self.limit, dict) else self.limit


class NativeCase:
    """Measurements that are compared with a base: the first line, or the fastest of the first `bases` lines.

    `loop` and `cycle` measure an empty loop and one cycle. With them the table also shows times in cycles, less the
    loop."""
    number = 1

    def __init__(self, name, title, *lines, params=None, bases=1, loop=None, cycle=None):
        self.name, self.title, self.params = name, title, params or {}
        self.lines = [*lines, *(line for line in (loop, cycle) if line)]
        self.bases, self.loop, self.cycle = lines[:bases], loop, cycle
        self.programs = []  # programs.find_native() fills it


def in_cycles():
    """What a NativeCase needs for times in cycles."""
    return {"loop": Line("an empty loop", "scheduler", "empty_loop", impl="processor"),
            "cycle": Line("one cycle", "scheduler", "cycle", 100, impl="processor")}


ROUND_TRIP = "resume and yield"
ELEMENTS = 100000
DISCS = 20
MOVES = 2 ** DISCS - 1
NODES = 1000000

SWITCHES = [
    NativeCase("native_send", "native: a value each way",
               Line(ROUND_TRIP, "acorn", "resume"),
               Line("aco_send and aco_yield_value", "acorn", "send", limit=1.10)),
    NativeCase("native_nested", "native: resume from inside a coroutine",
               Line(ROUND_TRIP, "acorn", "resume"),
               Line("resume and yield, nested", "acorn", "nested", limit=2.50)),
    NativeCase("native_transfer", "native: transfer, 2 coroutines",
               Line(ROUND_TRIP, "acorn", "resume"),
               Line("aco_yield_to", "acorn", "transfer", 2, limit=0.70), params={"coroutines": 2}),
    *(NativeCase("native_transfer", f"native: transfer, ring of {n} coroutines",
                 Line(f"resume and yield, {n} in turn", "acorn", "resume_several", n),
                 Line("aco_yield_to", "acorn", "transfer", n, limit=0.70), params={"coroutines": n}) for n in (10, 64)),
    NativeCase("native_call", "native: call, a coroutine's whole life",
               Line("with_stack, resume, return", "corosensei", "call", impl=COROSENSEI),
               Line("new, send, return, destroy", "acorn", "call", limit=1.60),  # until 0.2 1.30: docs/benchmarks.md
               Line("restart, send, return", "acorn", "restart", limit=1.30),
               Line("made on a pooled stack, resume, return", "boost", "call", impl=BOOST_FIBER)),
    NativeCase("native_own_exceptions", "native: exceptions of one's own",
               Line(ROUND_TRIP, "cpp", "resume"),
               Line("aco::coroutine<>", "cpp", "coroutine", limit=1.60),
               Line("aco::coroutine<>, ACO_SHARED_EXCEPTIONS", "cpp", "coroutine_shared", limit=1.30),
               Line("resume and yield, ACO_OWN_EXCEPTIONS", "cpp", "own_exceptions")),
    NativeCase("native_coroutine", "native: C++ coroutine",
               Line(ROUND_TRIP, "cpp", "resume"),
               Line("aco::coroutine<>", "cpp", "coroutine", limit=1.60),
               Line("aco::coroutine, a value each way", "cpp", "coroutine_value", limit=1.60)),
]
GENERATORS = [
    NativeCase("native_generator", f"native: C++ generator, a tree of {NODES} nodes",
               Line("visit with a callback", "cpp", "visit", NODES),
               Line("aco::generator, recursive function", "cpp", "generator", NODES, limit=2.00),
               Line("aco::generator for each node, yield_from", "cpp", "generators", NODES), params={"nodes": NODES}),
    NativeCase("generator_sum", "generator: sum of sequence",
               Line("for loop", "generators", "sequence_for", ELEMENTS, impl=CPP20),
               Line("while loop", "generators", "sequence_while", ELEMENTS, impl=CPP20),
               Line("own-stack generator", "generator", "sequence", ELEMENTS, limit={"gcc": 0.95, "clang": 1.20}),
               Line("in-stack generator", "generator", "sequence_in_stack", ELEMENTS),
               Line("aco_send and aco_yield_value", "generator", "sequence_yield", ELEMENTS),
               Line("function that calls back", "generator", "sequence_call", ELEMENTS, impl=CALLBACK),
               Line("Coroutine", "corosensei", "sequence", ELEMENTS, impl=COROSENSEI),
               Line("pull_type", "boost_generators", "sequence", ELEMENTS, impl=BOOST_COROUTINE),
               params={"elements": ELEMENTS}, bases=2),
    NativeCase("generator_hanoi", f"generator: Hanoi({DISCS})",
               Line("recursion and callback", "generator", "hanoi_call", MOVES, impl=CALLBACK),
               Line("own-stack generator", "generator", "hanoi", MOVES, limit=1.80),
               Line("in-stack generator", "generator", "hanoi_in_stack", MOVES, limit=1.80),
               Line("aco_send and aco_yield_value", "generator", "hanoi_yield", MOVES),
               Line("Coroutine", "corosensei", "hanoi", MOVES, impl=COROSENSEI),
               Line("pull_type", "boost_generators", "hanoi", MOVES, impl=BOOST_COROUTINE),
               Line("a generator for each call", "generators", "hanoi", MOVES, impl=CPP20), params={"discs": DISCS}),
    NativeCase("generator_hanoi_boost", f"generator: Hanoi({DISCS}) beside Boost",
               Line("pull_type", "boost_generators", "hanoi", MOVES, impl=BOOST_COROUTINE),
               Line("own-stack generator", "generator", "hanoi", MOVES, limit=0.50),
               Line("in-stack generator", "generator", "hanoi_in_stack", MOVES, limit=0.50), params={"discs": DISCS}),
]
SCHEDULERS = [
    *(NativeCase("scheduler_ring", f"scheduler: ring of {n}",
                 Line("next of the ring", "classic_ring", "ring", n, impl=CLASSIC),
                 Line("aco_task_yield", "scheduler", "ring", n, limit=limit),
                 Line("aco_task_yield_call, preserve_none", "scheduler", "ring_preserve_none", n),
                 Line("aco_task_yield_call", "scheduler-plain", "ring_call", n),
                 Line("this_fiber::yield", "boost_scheduler", "ring", n, impl=BOOST_TASK),
                 Line("runtime.Gosched", "go", "ring", n, impl=GO),
                 Line("task::yield_now", "tokio", "ring", n, impl=TOKIO), params={"tasks": n}, **in_cycles())
      for n, limit in ((10, 0.70), (100, 0.70), (10000, 0.90))),
    *(NativeCase("scheduler_ring_live", f"scheduler: ring of {n}, four values live across the yield",
                 Line("next of the ring", "classic_ring", "ring_live", n, impl=CLASSIC),
                 Line("aco_task_yield", "scheduler", "ring_live", n),
                 Line("aco_task_yield_call, preserve_none", "scheduler", "ring_preserve_none_live", n),
                 Line("aco_task_yield_call", "scheduler-plain", "ring_call_live", n), params={"tasks": n})
      for n in (10, 100, 10000)),
    NativeCase("scheduler_ping_pong", "scheduler: channel ping-pong",
               Line("unbuffered channels", "go", "ping_pong", impl=GO),
               Line("unbuffered channels", "scheduler", "ping_pong", limit=0.10),
               Line("unbuffered_channel", "boost_scheduler", "ping_pong", impl=BOOST_TASK),
               Line("mpsc::channel(1)", "tokio", "ping_pong", impl=TOKIO)),
    *(NativeCase("scheduler_spawn", f"scheduler: spawn + run + join{text}",
                 Line("go, WaitGroup", "go", "spawn", n, impl=GO),
                 Line("aco_spawn, aco_join", "scheduler", "spawn", n, limit=limit),
                 Line("fiber, join", "boost_scheduler", "spawn", n, impl=BOOST_TASK),
                 Line("spawn, await", "tokio", "spawn", n, impl=TOKIO), params={"tasks": n})
      for n, text, limit in ((1, "", 0.10), (50, ", 50 at once", None), (1000, ", 1000 at once", None))),
    NativeCase("scheduler_group", "scheduler: group of 1000 (Boost.Fiber has no groups: bare fibers)",
               Line("aco_spawn, aco_join", "scheduler", "spawn", 1000),
               Line("aco_group_spawn, aco_group_end", "scheduler", "group", 1000, limit=1.15),
               Line("fiber, join", "boost_scheduler", "spawn", 1000, impl=BOOST_TASK),
               Line("WaitGroup and context, as errgroup", "go", "group", 1000, impl=GO),
               Line("JoinSet", "tokio", "group", 1000, impl=TOKIO), params={"tasks": 1000}),
    *(NativeCase("scheduler_cancel", f"scheduler: spawn, sleep and cancel a group of {n} (Boost.Fiber cannot cancel)",
                 Line("WaitGroup and context, as errgroup", "go", "cancel", n, impl=GO),
                 Line("aco_scope_cancel", "scheduler", "cancel", n),
                 Line("aco_scope_cancel, on a share stack", "scheduler", "cancel_shared", n),
                 Line("JoinSet::abort_all", "tokio", "cancel", n, impl=TOKIO), params={"tasks": n})
      for n in (1000, 10000)),
    NativeCase("scheduler_timeout", "scheduler: channel ping-pong, with a time limit for what comes back",
               Line("unbuffered channels, no limit", "scheduler", "ping_pong"),
               Line("aco_scope_begin, aco_scope_end", "scheduler", "timeout_scope"),
               Line("aco_channel_receive_until", "scheduler", "timeout"),
               Line("context.WithTimeout", "go", "timeout", impl=GO),
               Line("pop_wait_for", "boost_scheduler", "timeout", impl=BOOST_TASK),
               Line("time::timeout", "tokio", "timeout", impl=TOKIO)),
]
AWAITS = [
    NativeCase("await_ready", "await: what does not wait",
               Line("aco::await, ready", "await", "ready", most_ns=20),
               Line("aco::await, completes at once", "await", "at_once"),
               Line("co_await of an aco::async", "await", "call")),
    *(NativeCase("await_yield", f"await: yields of {n}",
                 Line("tasks, aco::yield", "await", "yield_tasks", n),
                 Line("members, aco::async_yield", "await", "yield_members", n, limit=1.00), params={"members": n})
      for n in (2, 100)),
    NativeCase("await_ping_pong", "await: ping-pong",
               Line("tasks, unbuffered channels", "await", "ping_pong_channels"),
               Line("tasks, aco::await", "await", "ping_pong_tasks"),
               Line("members, unbuffered channels", "await", "ping_pong_member_channels", limit=1.00),
               Line("members, co_await", "await", "ping_pong_members", limit=1.00)),
]
NATIVE = SWITCHES + GENERATORS + SCHEDULERS + AWAITS
