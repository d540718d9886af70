"""What holds between any two calls, no matter who made the calls before: the induction's hypothesis. prove.py shows
that each call keeps it; explore.py shows that it holds in every state that can be reached.

Each invariant is a function of a machine and one coroutine, thread or stack."""
from machine import CO, ST, TH


def implies(a, b):
    return b | (a == False)  # noqa: E712: on z3's terms too


def no(a):
    return a == False  # noqa: E712


def active(m, c):
    return (m.doing[c] == m.RUNS) | (m.doing[c] == m.WAITS)


def started(m, c):
    return m.life[c] == m.STARTED


def waiting_status(m, c):
    return (m.status[c] == m.RESUMING) | (m.status[c] == m.RESUMING_SAVED)


# ---- Who runs, and who waits for whom ----

def running_names_who_runs(m, t):
    co = m.running[t]
    return implies(co != m.nil, (m.doing[co] == m.RUNS) & (m.on[co] == t))


def who_runs_is_named(m, c):
    return implies(m.doing[c] == m.RUNS, (m.running[m.on[c]] == c) & (m.on[c] != m.nobody))


def resuming_is_the_resumer(m, t):
    co = m.running[t]
    cleans = m.cleaning[co] & (m.resuming[t] == m.trap)
    chain = no(m.cleaning[co]) & (m.resuming[t] == m.by[co])
    return implies(co != m.nil, cleans | chain) & implies(co == m.nil, m.resuming[t] == m.nil)


def outer_is_the_resumer(m, c):
    return implies(m.doing[c] == m.WAITS, (m.cleaning[c] & (m.outer[c] == m.trap))
                   | (no(m.cleaning[c]) & (m.outer[c] == m.by[c])))


def kept_is_the_resumer(m, c):
    return implies(m.cleaning[c], active(m, c) & (m.kept[c] == m.by[c]) & m.instrumented[c])


def the_resumer_waits(m, c):
    by = m.by[c]
    inner = ((m.doing[by] == m.WAITS) & (m.on[by] == m.on[c]) & (m.awaits[by] == c)
             & (m.depth[c] == m.depth[by] + 1) & (by != m.trap))
    by_root = (m.root_awaits[m.on[c]] == c) & (m.depth[c] == 1) & (m.running[m.on[c]] != m.nil)
    return implies(active(m, c), ((by != m.nil) & inner) | ((by == m.nil) & by_root))


def who_waits_is_a_resumer(m, c):
    awaited = m.awaits[c]
    return implies(m.doing[c] == m.WAITS, active(m, awaited) & (m.by[awaited] == c) & (m.on[awaited] == m.on[c])
                   & (m.running[m.on[c]] != m.nil))


def who_runs_is_the_innermost(m, c):
    return implies(m.doing[c] == m.WAITS, (m.depth[c] < m.depth[m.running[m.on[c]]]) & (m.depth[c] >= 1))


def the_chain_ends_at_the_thread(m, t):
    co = m.root_awaits[t]
    return implies(m.running[t] != m.nil, active(m, co) & (m.by[co] == m.nil) & (m.on[co] == t))


# ---- Where the contexts are ----

def context_of_the_idle(m, c):
    at = (((m.life[c] == m.NEW) & (m.ctx[c] == m.BEGIN))
          | (started(m, c) & (m.ctx[c] == m.left_at[c]) & (m.ctx[c] != m.BEGIN)))
    return implies((m.doing[c] == m.IDLE) & ((m.life[c] == m.NEW) | started(m, c)), at)


def context_of_the_waiting(m, c):
    t = m.on[c]
    recorded = (m.resumer[t] == m.left_at[c]) & (m.status[c] != m.RESUMING_SAVED)
    evicted = (m.resumer[t] == m.TRAMPOLINE) & (m.ctx[c] == m.left_at[c]) & (m.status[c] == m.RESUMING_SAVED)
    here = m.resuming[t] == c
    return implies(m.doing[c] == m.WAITS, (here & (recorded | evicted)) | (no(here) & (m.ctx[c] == m.left_at[c])))


def context_of_the_thread(m, t):
    at = (((m.resuming[t] == m.nil) & (m.resumer[t] == m.root_left_at[t]))
          | ((m.resuming[t] != m.nil) & (m.root[t] == m.root_left_at[t])))
    return implies(m.running[t] != m.nil, at)


def the_trap_is_set(m, t):
    return implies(m.resuming[t] == m.trap, m.resumer[t] == m.TRAPPED)


def the_trap_stays(m, c):
    return implies(c == m.trap, (m.ctx[c] == m.TRAPPED) & (m.status[c] == m.SUSPENDED))


def contexts_are_of_user_code(m, c):
    k = m.left_at[c]
    return implies(started(m, c) & (m.doing[c] != m.RUNS), (k != m.TRAMPOLINE) & (k != m.TRAPPED) & (k != m.BEGIN))


def contexts_of_threads_too(m, t):
    k = m.root_left_at[t]
    return implies(m.running[t] != m.nil, (k != m.TRAMPOLINE) & (k != m.TRAPPED) & (k != m.BEGIN))


# ---- Where the frames are ----

def saved_frames(m, c):
    return implies((m.status[c] == m.SAVED) | (m.status[c] == m.RESUMING_SAVED), m.area[c] == m.left_with[c])


def frames_in_place(m, c):
    in_place = (m.status[c] == m.SUSPENDED) | (m.status[c] == m.RESUMING) | (m.status[c] == m.TASK)
    return implies(started(m, c) & in_place & (m.doing[c] != m.RUNS), m.content[m.stack[c]] == m.left_with[c])


def a_stack_is_its_owners(m, c):
    in_place = (m.status[c] == m.SUSPENDED) | (m.status[c] == m.RESUMING) | (m.status[c] == m.TASK)
    return implies((c != m.nil) & (c != m.trap) & (in_place | (m.private[m.stack[c]] & (m.status[c] == m.ENDED))),
                   m.owner[m.stack[c]] == c)


def an_owner_has_frames(m, s):
    co = m.owner[s]
    in_place = (m.status[co] == m.SUSPENDED) | (m.status[co] == m.RESUMING)
    shared = (in_place & started(m, co)) | (m.left[co] & (m.status[co] == m.DESTROYED))
    private = (in_place | (m.status[co] == m.TASK) | (m.status[co] == m.ENDED)) & no(m.left[co])
    return implies(co != m.nil, (m.stack[co] == s) & (co != m.trap)
                   & ((m.private[s] & private) | (no(m.private[s]) & shared)))


# ---- The state byte says what is true ----

def status_of_life(m, c):
    private, status = m.private[m.stack[c]], m.status[c]
    unstarted = (private & ((status == m.SUSPENDED) | (status == m.TASK))) | (no(private) & (status == m.READY))
    new = (m.life[c] == m.NEW) & (m.doing[c] == m.IDLE) & unstarted
    idle = started(m, c) & (m.doing[c] == m.IDLE) & ((status == m.SUSPENDED) | (status == m.SAVED) | (status == m.TASK))
    runs = started(m, c) & (m.doing[c] == m.RUNS) & ((status == m.SUSPENDED) | (status == m.TASK))
    waits = started(m, c) & (m.doing[c] == m.WAITS) & (waiting_status(m, c) | (status == m.TASK))
    over = (m.doing[c] == m.IDLE) & (((m.life[c] == m.DONE) & (status == m.ENDED))
                                     | ((m.life[c] == m.DELETED) & (status == m.DESTROYED))
                                     | ((m.life[c] == m.UNBORN) & (status == m.NONE)))
    return implies((c != m.nil) & (c != m.trap), new | idle | runs | waits | over)


def nil_and_trap_do_nothing(m, c):
    return implies((c == m.nil) | (c == m.trap), (m.doing[c] == m.IDLE) & (m.life[c] == m.UNBORN) & no(m.cleaning[c])
                   & no(m.left[c])) & implies(c == m.nil, m.status[c] == m.NONE)


def private_frames_stay(m, c):
    return implies(m.private[m.stack[c]] & (c != m.nil) & (c != m.trap),
                   no((m.status[c] == m.SAVED) | (m.status[c] == m.RESUMING_SAVED) | (m.status[c] == m.READY)
                      | m.left[c]))


def tasks_are_private(m, c):
    return implies(m.status[c] == m.TASK, m.private[m.stack[c]] & (m.thread[m.stack[c]] != m.nobody))


def tasks_are_resumed_by_the_root(m, c):
    return implies(active(m, c) & (m.status[c] == m.TASK),
                   (m.by[c] == m.nil) & (m.turn[m.on[c]] == c) & (m.thread[m.stack[c]] == m.on[c]))


def left_are_destroyed(m, c):
    return implies(m.left[c], m.status[c] == m.DESTROYED)


# ---- A share stack belongs to one thread ----

def a_share_stack_has_a_thread(m, c):
    s = m.stack[c]
    return implies(started(m, c) & no(m.private[s]),
                   (m.thread[s] != m.nobody) & implies(m.doing[c] != m.IDLE, m.thread[s] == m.on[c]))


# ---- Where the environments are ----

def environment_of_the_idle(m, c):
    return implies(started(m, c) & (m.doing[c] == m.IDLE) & m.own_fp[c], m.fp[c] == m.left_env[c])


def environment_of_the_resumer(m, c):
    """It is in the thread's record while its coroutine has its own environment, runs, and is not in the trap; else it
    is saved with the resumer."""
    t, by = m.on[c], m.by[c]
    recorded = (m.doing[c] == m.RUNS) & no(m.cleaning[c])
    of_root = ((recorded & (m.resumer_fp[t] == m.root_left_env[t]))
               | (no(recorded) & (m.root_fp[t] == m.root_left_env[t])))
    of_another = (recorded & (m.resumer_fp[t] == m.left_env[by])) | (no(recorded) & (m.fp[by] == m.left_env[by]))
    return implies(active(m, c) & m.own_fp[c], ((by == m.nil) & of_root) | ((by != m.nil) & of_another))


INVARIANTS = [
    (TH, running_names_who_runs), (CO, who_runs_is_named), (TH, resuming_is_the_resumer), (CO, outer_is_the_resumer),
    (CO, kept_is_the_resumer),
    (CO, the_resumer_waits), (CO, who_waits_is_a_resumer), (CO, who_runs_is_the_innermost),
    (TH, the_chain_ends_at_the_thread),
    (CO, context_of_the_idle), (CO, context_of_the_waiting), (TH, context_of_the_thread), (TH, the_trap_is_set),
    (CO, the_trap_stays),
    (CO, contexts_are_of_user_code), (TH, contexts_of_threads_too),
    (CO, saved_frames), (CO, frames_in_place), (CO, a_stack_is_its_owners), (ST, an_owner_has_frames),
    (CO, status_of_life), (CO, nil_and_trap_do_nothing), (CO, private_frames_stay), (CO, tasks_are_private),
    (CO, tasks_are_resumed_by_the_root), (CO, left_are_destroyed),
    (CO, a_share_stack_has_a_thread), (CO, environment_of_the_idle), (CO, environment_of_the_resumer),
]
