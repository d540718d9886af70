/* Simulation: a program's tasks in virtual time, in an order that a seed decides. In the library acorn_sim, beside
 * acorn, on Linux. docs/simulation.md is the guide.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void scenario(aco_sim_t *sim, void *arg) // a task; it may spawn others, wait, and call any code under test
 *   {
 *       struct account account = {0};
 *       ...
 *       if (account.balance != 0)
 *           aco_sim_fail(sim, "money is lost");
 *   }
 *   int main(int argc, char **argv)
 *   {
 *       return aco_sim_main(argc, argv, scenario, NULL, NULL);
 *   }
 *
 * A run calls the scenario as a task, and ends when all tasks have ended but those of nodes. The run's seed, a number,
 * decides all that is open: which runnable task has the next turn, what aco_sim_random() returns, what the network
 * does. So a run with the same seed of the same program does the same. Many runs with different seeds try many orders.
 *
 * Order. A schedule makes the decisions. Tasks switch where they switch otherwise: where they yield, wait or end. The
 * order in which an object serves the tasks that wait for it, and the order of timers, are those of aco/scheduler.h.
 *
 * Time. The clocks of aco_now(), aco_sleep(), deadlines and all else in Acorn's libraries stand still while tasks can
 * run. When none can, the time jumps to the next deadline. Every run begins at the same time: aco_now() returns 1000
 * seconds, and the date is the 9th of September 2001.
 *
 * Failures. A run fails if
 *   - the scenario, its code or `invariants` call aco_sim_fail();
 *   - all tasks sleep until more than thirty years after its begin;
 *   - it ends in a deadlock: aco_run() then reports what each task waits for. With threads: none can ever go on;
 *   - it has more than `max_turns` turns: it never ends, or it needs a higher limit;
 *   - messages (aco_post()) come for ever, and no task has a turn;
 *   - a task or coroutine is left that was not destroyed, joined or detached, and no node has crashed or was left; or a
 *     thread never ends;
 *   - a descriptor that the run has opened is left open;
 *   - Acorn makes a call to the system that is not simulated: see below;
 *   - a thread outside of the run calls aco_post(), aco_unpark() or aco_scope_cancel() for it;
 *   - with `check`, its repetition does something else.
 * The failure is printed on stderr, with the seed that repeats it.
 *
 * A shorter run. A run of a thousand turns explains little. With `shrink`, a failing run's decisions are recorded:
 * whose turn it was, what aco_sim_random(), ACO_MAYBE(), the network, the disks and the nemesis drew. Then hundreds of
 * runs try the simplest choice in their place: the task that has waited longest, the shortest latency, 0, the usual
 * way. What is left is written to a file, with the program, its arguments, the seed and the reason; and that run is
 * shown. Reasons that differ in numbers only are the same. Each attempt runs in a child process, which prints nothing:
 * so an attempt may die, and with runs = 1 the death of the process can be shortened, too. But scenarios must bear
 * fork(): other threads are not there. Not under ThreadSanitizer.
 *
 * Deaths. The seed is printed too if the process ends during a run: by exit() or quick_exit(), by a sanitizer, or by a
 * signal (abort(), a memory fault, timeout(1), Ctrl-C). If the program has a handler for the signal, that is called
 * first, and the seed is printed if it sets the signal to SIG_DFL. Nothing is printed after _exit() or SIGKILL, or in
 * a child process.
 *
 * The system. Acorn's libraries reach the system by one table, which a run replaces for its threads. What is simulated:
 * the clocks, sleeping, threads, signals, the network, names of hosts, pipes, files, random numbers. What goes to the
 * real system: memory pages, questions about the process and the machine (its number, limits, /proc), handlers of fatal
 * signals, and writing to stderr. Any other call fails with ENOSYS, is printed with the backtrace of its caller, and
 * fails the run. So does aco_on_idle(), whose hook would wait for the real world. Not simulated are processes, ioctl()
 * other than FIONREAD and FIONBIO, kinds of sockets other than those below, and stdio's files other than those of
 * hooked tasks. A hooked task's own calls of libc (aco/hook.h) are simulated too; those of other tasks go to the real
 * system. A call that blocks waits with all tasks of its thread. But if a call of aco/file.h must wait for the other
 * end of a named pipe, a thread of the pool waits in its place.
 *
 * The network. The calls of aco/io.h, aco/tls.h, aco/http.h and aco/websocket.h do what they do otherwise, over a
 * network that the run has for itself: TCP and UDP over IPv4 and IPv6, unix sockets. Without nodes it has one machine,
 * which has every address. What is sent travels for a time that the seed decides, and may get lost: aco_sim_link().
 * TCP's segments arrive in order, with lengths that the seed decides; datagrams may overtake each other. Buffers of TCP
 * and unix sockets have random sizes, from 4 to 256 KiB, unless SO_SNDBUF and SO_RCVBUF set them. A unix socket's bytes
 * are there at once, and its name is free when it is closed. A connection to a port without a listener is refused after
 * the way there and back. Who ends a connection of TCP first keeps its address for a minute (TIME_WAIT). Messages by
 * unix sockets may pass descriptors (SCM_RIGHTS). Not there: urgent data, other control messages, what options other
 * than SO_… of buffers, addresses and lingering do. Descriptors are real numbers, but only Acorn's calls can use them:
 * libc's fail with EBADF. A run in which all tasks wait for the network, and nothing is on its way, is a deadlock.
 * ACO_POLLER has no effect in a run.
 *
 * Nodes. aco_sim_node() makes a machine of its own, with a name and addresses, that runs a function as a task. A task
 * that it spawns belongs to it, too, and so do sockets that its tasks make. Each node has its own ports, its own
 * 127.0.0.1 and ::1, and its own names of unix sockets. The scenario, and the tasks that it spawns, are on a node named
 * "scenario" that has every address that no other node has; from 192.0.2.1 and 2001:db8::1 it reaches the others. When
 * all its tasks have ended, the run ends, and the nodes end as in a crash: so a node's function may be one that never
 * returns.
 *   What nodes share must go through the network, or the run is none of separate machines: objects of one node that
 * tasks of another wait for, lock or change. Channels and counters by which the scenario looks at nodes are fine.
 * Global variables are shared by all nodes, and so is memory. A node's state belongs into what its argument points
 * to.
 *
 * Disks. Each node has a disk, which is empty at first, and so has the scenario's machine. The calls of aco/file.h and
 * HTTP's files use the disk of the calling task's machine: a tree in memory, whose root is also the working directory.
 * The disk lasts when the node crashes: with all that was written if a process crashes (ACO_SIM_CRASH_RESET), without
 * some of it if the machine does (ACO_SIM_CRASH_SILENT). Calls have Linux's results and errors. There are files and
 * directories, of which each file has at most a gibibyte; no symbolic links, devices (a path in /dev or /sys fails the
 * run), locks or mapped files; and permissions are kept, but nobody checks them. A task that calls aco/file.h waits for
 * the disk, for a time that the seed decides: aco_sim_disk(). A read of aco/file.h may find its bytes in memory, and
 * then does not wait. What is written can be read at once. It is durable after fsync() of the file, and a name after
 * fsync() of its directory. A rename is durable after fsync() of either of its directories. When the machine crashes,
 * the seed decides for all else:
 *   - of a file, each sector has what it had after one of the writes since the last fsync(), or before the first one:
 *     so writes may be lost, torn at the bounds of sectors, or reordered. Likewise the size; what lies between the
 *     durable end and a larger size may be zeros;
 *   - each call that has changed names has happened as a whole, or not at all, in any order, except that two calls
 *     about the same name keep their order, and that a directory is moved after all calls before that.
 * The kernel's writing back is as late as can be, except that after 16384 changes of a file, or 1024 of names, the
 * oldest becomes durable.
 *
 * Threads. Sets of threads (aco/threads.h), objects between threads (aco/mt.h) and aco_offload() work in a run. The
 * scenario is a task, so what calls aco_threads_run() is an offloaded function. The run's threads are real ones, but
 * one of them goes on at a time. The seed decides which, at each turn of a task, before a call on an object between
 * threads, before a post and other calls that reach another thread, before calls to the system, and where a thread
 * waits. Nothing interrupts a thread in between. The time jumps when no thread can go on. Each thread of the run may
 * call the functions below; `invariants` is called by one of them, when no thread can go on. The run ends when the
 * tasks of the calling thread have ended; then it waits for the other threads.
 *   The nodes of aco_sim_node() are on the calling thread: a task of one that needs another thread (a set,
 * aco_offload()) makes the run fail. A node of aco_sim_node_main() has threads of its own. aco_sim_node(),
 * aco_sim_node_main(), the calls for a node, aco_sim_at() and aco_sim_nemesis() fail with EINVAL on another thread than
 * the first one.
 *
 * Threads that the program makes by itself go on as before. They cannot reach the run's tasks, and must not use an
 * aco_mt_ object that these use. One thread of the process simulates at a time. The first run of the process must not
 * begin while another thread is inside a call of Acorn.
 *
 * What a run cannot repeat: a program that reads memory addresses, uninitialised memory, the real clock, libc's random
 * numbers, or what an earlier run has left in its global variables. `check` finds most of it: in the repetition memory,
 * coroutines and stacks have other addresses, in another order. Static variables keep theirs. */
#ifndef ACO_SIM_H
#define ACO_SIM_H

#include "scheduler.h"

ACO__BEGIN_C

typedef struct aco_sim_s aco_sim_t; /* a run, while it lasts */

/* A scenario, or a check of invariants. */
typedef void (*aco_sim_function_t)(aco_sim_t *sim, void *arg);

typedef enum aco_sim_schedule_e {
    ACO_SIM_MIXED,  /* the seed chooses one of the next two */
    ACO_SIM_RANDOM, /* each task that can run is equally likely */
    ACO_SIM_PCT,    /* tasks have random priorities, and the highest one runs; at a few random turns, the running task
                       gets the lowest one. It finds faults that need a few switches at the right places. After 16384
                       turns a run goes on as with ACO_SIM_RANDOM, so that no task starves */
    ACO_SIM_FIFO    /* first in, first out, as without a simulation */
} aco_sim_schedule_t;

/* Zero in a field, or NULL for the whole structure, means the default. */
typedef struct aco_sim_options_s {
    uint64_t seed;               /* of the first run; the next ones have the next numbers. Default: 1. To repeat one
                                    run, let `runs` be 1 */
    aco_sim_schedule_t schedule;
    int changes;                 /* ACO_SIM_PCT: at most so many turns change a priority, up to 64. Default: 3 */
    int check;                   /* not 0: each seed runs twice, and both must do the same */
    int64_t turn_ns;             /* each turn takes a random time up to this, up to a second. Default: none, as above */
    uint64_t max_turns;          /* of a run. Default: 10 million */
    aco_sim_function_t invariants; /* is called whenever no task can run, and at the end of each run, with the
                                    scenario's `arg`. It must not wait. NULL: none */
    int events;                  /* so many of a run's last events are printed when it fails: which task had a turn,
                                    what it waited for, what it sent. Up to 100000. Default: none. aco_sim_main(): 20 */
    int attempts;                /* for `shrink`: at most so many runs. Default: 1000 */
    const char *shrink;          /* after a failure, a shorter run is searched that fails for the same reason, and
                                    written to this file; "-": to stdout. See above. Default: none is searched */
    const char *replay;          /* one run is made, as this file of `shrink` has it; `runs` and `schedule` do not
                                    count. Default: none */
    const char *trace;           /* the run is written to this file, in the format that Perfetto and Chrome show: a
                                    track for each task, arrows for messages. Of several runs, the one that fails; with
                                    `shrink`, the shorter one. Default: none */
    void *aco__reserved[4];      /* reserved fields are 0 */
} aco_sim_options_t;

enum { ACO_SIM_REASON_SIZE = 256 };

/* What happened in all runs together. */
typedef struct aco_sim_stats_s {
    uint64_t runs;       /* that have ended, the one that failed included. A repetition does not count */
    uint64_t turns;      /* that tasks had */
    int64_t simulated_ns; /* the virtual time that has passed; INT64_MAX if it is more */
    uint64_t hash;       /* of all decisions, times, calls to the system, bytes sent and arrivals: equal for equal
                            runs */
    uint64_t seed;       /* of the run that failed; 0: none has */
    char reason[ACO_SIM_REASON_SIZE]; /* why it failed */
    uint64_t aco__reserved[4];
} aco_sim_stats_t;

/* Runs scenario(sim, arg) `runs` times, with one seed after the other, until one run fails. If `stats` is not NULL, it
 * tells what happened. The tasks that a failed run leaves never run again, and keep their memory. Returns 0; on error
 * -1 with errno ECANCELED (a run failed), EINVAL (`scenario` is NULL, `runs` is 0, the last seed is above
 * 2^64 - 1, an option is unknown or out of range, `replay` is a file of another program or seed, or not one of
 * `shrink`), ENOENT and others (`replay` cannot be read), ENOTSUP (`shrink` with runs = 1 under ThreadSanitizer), EPERM
 * (a coroutine calls it), EBUSY (a simulation runs in the process; or the thread has tasks), ENOMEM. */
ACO_API int aco_sim_run(aco_sim_function_t scenario, void *arg, uint64_t runs, aco_sim_stats_t *stats,
                        const aco_sim_options_t *options);

/* aco_sim_run() for a program's main(), with options from the command line; `--help` lists them. Arguments behind `--`
 * are the program's own. Prints what happened, and after a failure the command that repeats it, with all arguments.
 * Returns the program's exit status: 0; 1 after a failure; 2 if an option is unknown or has a value out of range. */
ACO_API int aco_sim_main(int argc, char **argv, aco_sim_function_t scenario, aco_sim_function_t invariants, void *arg);

/* From `min` to `max`, both included; in nanoseconds. */
typedef struct aco_sim_range_s {
    int64_t min, max;
} aco_sim_range_t;

/* How a link behaves. Zero in a field means the default; chances are from 0 to 1, and 0 by default. */
typedef struct aco_sim_link_s {
    aco_sim_range_t latency; /* how long each segment or datagram travels; up to an hour. Default: from 50 microseconds
                                to 2 milliseconds */
    double loss;             /* chance that a segment, datagram, request for a connection, reset, … does not arrive. TCP
                                sends data and ends again: after 200 milliseconds and twice `latency.max`, then after
                                twice as long, up to two minutes; what follows waits for it. Lost 16 times, it ends the
                                connection with ETIMEDOUT, and the peer is not told. A request is sent again after a
                                second, then after two, four, …, and fails with ETIMEDOUT after 127 seconds. Lost
                                datagrams and resets are gone */
    double resets;           /* chance for each segment with data that it is lost, and both ends get a reset */
    double duplicates;       /* chance that a datagram arrives twice, each after its own latency */
    double reordering;       /* chance that a datagram travels longer, by up to 4 times `latency.max` */
    int64_t bandwidth;       /* bytes in a second, up to 10^12, that leave one behind the other; headers do not count.
                                Default: no limit */
    int64_t queue;           /* at most so many bytes wait to leave, up to 1 GiB. TCP waits for room. A datagram without
                                room is lost; if nothing waits, any length has room. Default: 256 KiB */
    void *aco__reserved[6];  /* reserved fields are 0 */
} aco_sim_link_t;

/* Sets how the network behaves from now on, for what is sent from `from` to `to`: names of nodes, "scenario", or "*"
 * for all, also for nodes that are made later and for what a node sends to itself. Of the calls for two nodes, the
 * latest counts. `link` NULL: the default. What is on its way is not affected. Returns 0; on error -1 with errno EINVAL
 * (`sim` is not the calling thread's run, a node is unknown, a field is out of range), ENOMEM. */
ACO_API int aco_sim_link(aco_sim_t *sim, const char *from, const char *to, const aco_sim_link_t *link);

/* Sets what the name of a host means from now on: addresses of IPv4 or IPv6 with commas between them, in the order in
 * which they are found. NULL: the name is unknown, as names are at first. All nodes know the same names. A lookup waits
 * for the way to a name server, which is on the scenario's machine, and back. If the link loses one of the two, it asks
 * again after 5 seconds, and after 5 more it fails with EAGAIN. In a run aco_io_name_cache() has no effect: nothing is
 * kept. Returns 0; on error -1 with errno EINVAL (`sim` is not the calling thread's run, the name is empty, an address
 * or above 255 bytes, an address is wrong), ENOMEM. */
ACO_API int aco_sim_name(aco_sim_t *sim, const char *name, const char *addresses);

/* From now on all that is sent from `from` to `to` is lost, or with `on` 0 is not. The names, and which call counts,
 * are as for aco_sim_link(); but a node always reaches itself. One call cuts one way only: the other way needs another
 * call. What is lost is what a link with the `loss` 1 loses: TCP sends it again, and it arrives later if the partition
 * heals in time; else the connection ends with ETIMEDOUT after 15 minutes. A connection begins only if both ways are
 * open. Acknowledgements are never lost. Returns 0; on error -1 with errno EINVAL (`sim` is not the calling thread's
 * run, a node is unknown), ENOMEM. */
ACO_API int aco_sim_partition(aco_sim_t *sim, const char *from, const char *to, int on);

/* ---- Nodes ---- */

typedef struct aco_sim_node_s aco_sim_node_t; /* until its run ends */

enum { ACO_SIM_NODE_NAME_SIZE = 32 }; /* with the 0 */

/* Makes a node and calls function(arg) as a task of it, which has the node's name. The name has up to 31 bytes.
 * `addresses` are up to 8 addresses of IPv4 and IPv6, with commas between: "10.0.0.1, fd00::1". The node sends from the
 * first one of the family. Make the nodes before the scenario listens: an address that it has is a node's from now on.
 * Returns the node; on error NULL with errno EINVAL (`sim` is not the calling thread's run, `function` is NULL, the
 * name is empty, "*" or too long, an address is none or no machine's own, there are none or too many), EEXIST (a node
 * has the name or one of the addresses), ENOMEM. */
ACO_API aco_sim_node_t *aco_sim_node(aco_sim_t *sim, const char *name, const char *addresses, aco_function_t function,
                                     void *arg);

/* The same, but calls function(arg) as a program's main(): in no task, on a thread that the node has for itself. There
 * it may call aco_run() and aco_threads_run(); tasks of the node may call aco_offload(). A thread that is made on the
 * node's threads is the node's, too. When the function returns, the other threads go on.
 *   aco_sim_crash() and aco_sim_restart() return at once, and the crash comes when each of the node's threads is at
 * rest: between two turns of its tasks, or where it waits, unless in a coroutine that may not call aco_sleep(). Until
 * then the threads go on. Then they end where they are, and no cleanup runs but destructors of what is local to a
 * thread. These run outside of the simulation and must not call what is simulated. A task that waits for an object
 * between threads (aco/mt.h) leaves its wait in the object: make such objects anew when the function is called again.
 *   Fails as aco_sim_node(). If no thread can be made, the run fails. */
ACO_API aco_sim_node_t *aco_sim_node_main(aco_sim_t *sim, const char *name, const char *addresses,
                                          void *(*function)(void *arg), void *arg);

/* Returns the node's name, which lasts as long as the node. */
ACO_API const char *aco_sim_node_name(const aco_sim_node_t *node);

/* 1 if the node is up: it was started, and has not crashed since; its tasks may have ended. Else 0. */
ACO_API int aco_sim_node_is_up(const aco_sim_node_t *node);

typedef enum aco_sim_crash_e {
    ACO_SIM_CRASH_ANY,   /* the seed chooses one of the next two */
    ACO_SIM_CRASH_RESET, /* of a process: its peers get resets, and new connections are refused. All that it wrote to
                            its disk is there */
    ACO_SIM_CRASH_SILENT /* of a machine: its peers are not told, and nothing answers. What they send is sent again, and
                            gets a reset when the node has started again; or the connection ends with ETIMEDOUT. A peer
                            that only reads waits on: the connection is half open. Its disk loses what was not durable,
                            as at aco_sim_disk_crash() */
} aco_sim_crash_t;

/* Lets the node crash when the calling task next yields, waits or ends; it may be the node's own. The node's tasks
 * never run again, and none of their cleanups does: no deferred call, no destructor. Locks that they hold stay locked;
 * who joins one gets NULL. Their sockets and files close. What they have allocated is not freed. Returns 0; on error -1
 * with errno EINVAL (it is not a node of the calling thread's run, `how` is unknown), ESRCH (it has crashed already).
 * */
ACO_API int aco_sim_crash(aco_sim_node_t *node, aco_sim_crash_t how);

/* Calls the node's function again as a task, at the time at which aco_sim_crash() works. A node that is up crashes
 * before, in a way that the seed chooses. Returns 0; on error -1 with errno EINVAL (it is not a node of the calling
 * thread's run). */
ACO_API int aco_sim_restart(aco_sim_node_t *node);

/* Suspends the node, as SIGSTOP does a process: its tasks have no turns until aco_sim_resume(). Meanwhile its sockets
 * live on, and what its tasks wait for may come; sleeps and deadlines that end meanwhile end at the resume. A task of
 * the node that calls it goes on until it next yields or waits. A suspended node may crash. Returns 0, also if it is
 * suspended, or not; on error -1 with errno EINVAL (it is not a node of the calling thread's run), and
 * aco_sim_suspend() ESRCH (it has crashed). */
ACO_API int aco_sim_suspend(aco_sim_node_t *node);
ACO_API int aco_sim_resume(aco_sim_node_t *node);

/* Sends the node a signal, as kill(2) sends one to a process. If all the node's threads block it, it waits for one that
 * takes it, as aco/process.h, aco_service_run() and ACO_THREADS_INTERRUPTIBLE do; sent again meanwhile, it is still
 * one. Else it does what it does to a process without handlers: SIGCHLD, SIGURG and SIGWINCH do nothing, and any other
 * ends the node, as a crash with ACO_SIM_CRASH_RESET. A node of aco_sim_node() cannot block signals. Returns 0; on
 * error -1 with errno EINVAL (it is not a node of the calling thread's run, no number of a signal, one that stops
 * processes or lets them go on: those are aco_sim_suspend() and aco_sim_resume()), ESRCH (the node has crashed). */
ACO_API int aco_sim_signal(aco_sim_node_t *node, int signal);

/* Sets the node's wall clock (CLOCK_REALTIME), as its tasks read it, by aco_sim_wall_time() and in what Acorn makes of
 * it, such as a Date of HTTP: it is ahead by `offset_ns`, up to ten years, or behind if that is negative; and from now
 * on also by `drift_ppm` millionths, up to 100000, of the time that passes. So a call may let it jump. The clock of
 * aco_now() is the same for all nodes: all deadlines are on it, in one order, and a task may pass one to another.
 * Returns 0; on error -1 with errno EINVAL (it is not a node of the calling thread's run, a value is out of range). */
ACO_API int aco_sim_clock(aco_sim_node_t *node, int64_t offset_ns, int drift_ppm);

/* Returns the wall time of the calling task's node, in nanoseconds since 1970. */
ACO_API int64_t aco_sim_wall_time(const aco_sim_t *sim);

/* Calls function(sim, arg) as a task of the scenario, `time_ns` after the run's begin, or at once if that has passed.
 * The run lasts so long. Returns 0; on error -1 with errno EINVAL (`sim` is not the calling thread's run, `function` is
 * NULL, the time is negative), ENOMEM. */
ACO_API int aco_sim_at(aco_sim_t *sim, int64_t time_ns, aco_sim_function_t function, void *arg);

/* For aco/sim.hpp: calls fn(arg) when the run of the calling thread has ended. 0; on error -1 with errno ENOMEM. */
ACO_API int aco__sim_at_end(aco_sim_t *sim, void (*fn)(void *arg), void *arg);

/* Kinds of faults. */
enum {
    ACO_SIM_FAULT_CRASH = 1,     /* a node crashes, and starts again */
    ACO_SIM_FAULT_SUSPEND = 2,   /* a node is suspended */
    ACO_SIM_FAULT_PARTITION = 4, /* a node is cut off from another one, or from all */
    ACO_SIM_FAULT_ONE_WAY = 8,   /* the same in one direction */
    ACO_SIM_FAULT_SLOW = 16,     /* a link between two nodes has a latency of up to some seconds, in one direction */
    ACO_SIM_FAULT_LOSS = 32,     /* or loses up to half of what is sent */
    ACO_SIM_FAULT_CLOCK = 64,    /* a wall clock jumps by up to an hour, and drifts */
    ACO_SIM_FAULT_DISK = 128,    /* a node's disk fails: EIO for some reads, writes and fsync()s; parts are moved */
    ACO_SIM_FAULT_SLOW_DISK = 256, /* or it is slow: calls take up to some seconds */
    ACO_SIM_FAULT_ALL = 511
};

/* Lets a nemesis cause faults of these kinds (ACO_SIM_FAULT_…, one or several) from now on. The seed draws which of
 * them come in this run, how often, and how long each lasts: up to 10 seconds. Of three or more nodes fewer than half
 * are down or suspended by it at a time; of two, one. The scenario's machine takes part in faults of links only. After
 * at most 32 seconds no fault begins, so that all have healed after a minute. Another call ends the faults at once, and
 * begins anew; with `faults` 0 it only ends them. Returns 0; on error -1 with errno EINVAL (`sim` is not the calling
 * thread's run, a kind is unknown), ENOMEM. */
ACO_API int aco_sim_nemesis(aco_sim_t *sim, unsigned faults);

/* ---- Disks ---- */

/* How the disk behaves. Zero in a field means the default, which for all but the first and the last is: no limit, no
 * fault. Chances are from 0 to 1, for each call; the seed decides. */
typedef struct aco_sim_disk_s {
    aco_sim_range_t latency; /* how long a task waits in each call of aco/file.h that goes to the disk; up to an hour.
                                Default: from 20 microseconds to 2 milliseconds */
    uint64_t capacity;       /* bytes, in whole pages of 4 KiB: a write that needs more gets ENOSPC */
    double read_errors;      /* the chance that a read fails with EIO */
    double write_errors;     /* likewise a write, which then does nothing */
    double sync_errors;      /* likewise fsync(). What it was to write is lost at the next crash, as on Linux, also if
                                a later fsync() succeeds. It can be read until then */
    double short_transfers;  /* the chance that a read or write moves only a part */
    int sector;              /* 512 or 4096 bytes: a crash keeps or loses a sector as a whole. Default: the seed chooses
                                one of the two for the run */
    void *aco__reserved[6];  /* reserved fields are 0 */
} aco_sim_disk_t;

/* Sets how the disk of a node behaves from now on: `node` is its name, "scenario", or "*" for all, also for nodes that
 * are made later. `disk` NULL: the default. What is on the disk stays. Returns 0; on error -1 with errno EINVAL (`sim`
 * is not the calling thread's run, the node is unknown, a field is out of range, a reserved field). */
ACO_API int aco_sim_disk(aco_sim_t *sim, const char *node, const aco_sim_disk_t *disk);

/* The calling task's machine loses its power and comes back, but only the disk is concerned: for a scenario without
 * nodes, which tries what its code finds after a crash. aco_sim_crash() lets a whole node crash. What an fsync() has
 * made durable is kept. Of all else the seed decides what is kept, as the head of this file says. Descriptors of files
 * and directories that were open fail with EIO from now on, and still must be closed; tasks go on. Returns 0; on error
 * -1 with errno EINVAL (`sim` is not the calling thread's run). */
ACO_API int aco_sim_disk_crash(aco_sim_t *sim);

/* Makes the run fail for this reason, of which the first 255 bytes count. It ends when the calling task next yields,
 * waits or ends; on another thread than the first, where that could lose its turn. If it has failed before, nothing
 * changes. Returns -1, with errno unchanged. If `sim` is NULL or not the calling thread's run, errno is EINVAL. */
ACO_API int aco_sim_fail(aco_sim_t *sim, const char *reason);

/* Returns a random number below `limit`, or of 64 bits if `limit` is 0, which the seed decides. */
ACO_API uint64_t aco_sim_random(aco_sim_t *sim, uint64_t limit);

/* Returns the run's seed. */
ACO_API uint64_t aco_sim_seed(const aco_sim_t *sim);

/* Returns the run of the calling thread; NULL: there is none. */
ACO_API aco_sim_t *aco_sim_current(void);

/* A history: what clients have asked a system for, and what they were told. Checkers read it and say whether some order
 * of the operations explains the answers (Porcupine, Knossos), or which anomaly they show (Elle). */
typedef struct aco_sim_history_s aco_sim_history_t;

typedef enum aco_sim_step_e {
    ACO_SIM_INVOKE, /* a process begins an operation */
    ACO_SIM_OK,     /* it has been done */
    ACO_SIM_FAIL,   /* it has not been done, and never will */
    ACO_SIM_INFO    /* nobody knows whether it was, or will be */
} aco_sim_step_t;

/* Begins a history of the run in the real file `path`, which is made or emptied. The run closes it at its end; then the
 * handle is invalid. NULL; errno EINVAL (`sim` is not the calling thread's run, `path` is NULL), ENOMEM, or why the
 * file cannot be made. */
ACO_API aco_sim_history_t *aco_sim_history(aco_sim_t *sim, const char *path);

/* Adds a step: a line of the file, written at once, such as
 *
 *   {"index":4,"time":1500000,"type":"ok","process":2,"f":"read","key":"x","value":7}
 *
 * with nanoseconds since the run's begin. Steps at one time happened in the order of `index`. `process`: who does it,
 * from 0 to 2^20 - 1; a process has one operation at a time, and none after ACO_SIM_INFO. `f`: which operation. `key`:
 * of what, or NULL. Of both the first 40 bytes at least are kept. `value`: JSON on one line, up to 3000 bytes, which is
 * not checked; NULL: null. Returns 0; on error -1 with errno EINVAL (a step out of order, an argument out of range),
 * ENOMEM, or why it could not be written: then the run fails, too. */
ACO_API int aco_sim_history_add(aco_sim_history_t *history, aco_sim_step_t step, int64_t process, const char *f,
                                const char *key, const char *value);

/* For the code under test: a place where a run may take the rare way. 1 with this chance, from 0 to 1, if the calling
 * thread simulates; the seed decides. Else 0. A program that contains it need not be linked with acorn_sim: there, and
 * on systems without acorn_sim, it is always 0.
 *
 *   if (queue_is_full(queue) || ACO_MAYBE(0.01))
 *       return -1; */
#define ACO_MAYBE(chance) aco__sim_maybe(chance)

/* Whether the run takes the way that has this chance. */
ACO_API int aco__sim_takes(aco_sim_t *sim, double chance);

#ifdef __linux__
/* The same functions. NULL: the program is not linked with them. */
static aco_sim_t *aco__sim_current_if_linked(void) __attribute__((weakref("aco_sim_current"), unused));
static int aco__sim_takes_if_linked(aco_sim_t *sim, double chance) __attribute__((weakref("aco__sim_takes"), unused));

ACO__FORCE_INLINE int aco__sim_maybe(double chance)
{
    aco_sim_t *sim = aco_unlikely(aco__sim_current_if_linked) ? aco__sim_current_if_linked() : NULL;
    return aco_unlikely(sim) && aco__sim_takes_if_linked(sim, chance);
}
#else
ACO__FORCE_INLINE int aco__sim_maybe(double chance)
{
    (void)chance;
    return 0;
}
#endif

ACO__END_C

#endif
