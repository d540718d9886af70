/* Writes traces: a file in the trace event format, and probes (tools/trace.h). */
#include "tools/trace.h"

#if !defined(ACO_CONFIG_NO_TRACE) && !defined(_WIN32) /* the whole file */

#include "os/clock.h"

#include "aco/detail/for_libraries.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int traced;

/* ---- Probes: systemtap's, which perf, bpftrace and gdb know ---- */

#if defined(__has_include) && defined(__linux__)
#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#endif
#endif
#ifdef STAP_PROBE3
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* the macro passes no variable arguments */
#define PROBE(which)                                                                                                   \
    __attribute__((used, visibility("hidden"), section(".probes")))                                                    \
    unsigned short acorn_##which##_semaphore; /* the number of listeners */                                            \
    static inline void probe_##which(const aco_t *co)                                                                  \
    {                                                                                                                  \
        STAP_PROBE3(acorn, which, co, aco__cold(co)->name, aco__cold(co)->number);                                   \
    }
PROBE(create)
PROBE(resume)
PROBE(yield)
PROBE(exit)
#pragma GCC diagnostic pop

static int is_listened_to(void)
{
    const volatile unsigned short *const all[] = {&acorn_create_semaphore, &acorn_resume_semaphore,
                                                  &acorn_yield_semaphore, &acorn_exit_semaphore};
    int listeners = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        listeners += *all[i];
    return listeners > 0;
}
#else
#define PROBE(which)                                                                                                   \
    static inline void probe_##which(const aco_t *co)                                                                  \
    {                                                                                                                  \
        (void)co;                                                                                                      \
    }
PROBE(create)
PROBE(resume)
PROBE(yield)
PROBE(exit)

static int is_listened_to(void)
{
    return 0;
}
#endif

/* ---- The file ---- */

/* The end of the file. Each write adds it and the next write overwrites it, so that the file is complete between two
 * writes. A process that is killed during a write may leave an incomplete file. */
static const char ending[] = "\n]}\n";
enum { LONGEST_EVENT = 640, NAME_IN_JSON = 6 * ACO_NAME_SIZE + 1, FLUSH_NS = 100000000, ENDING = sizeof ending - 1 };

static struct {
    int is_open;
    int file;
    long process;
    int64_t began, flushed; /* times on the clock of aco_now() */
    int64_t at;             /* file offset of the ending */
    size_t used;            /* bytes of `text` */
    uint32_t coroutines;
    char text[64 << 10];
} trace;

static void flush(int64_t now)
{
    int saved = errno;
    ACO__ASSERT(trace.used + ENDING <= sizeof trace.text);
    memcpy(trace.text + trace.used, ending, ENDING);
    if (aco__os_file_write(trace.file, trace.text, trace.used + ENDING, trace.at) != 0) {
        int error = errno;
        if (aco__os_file_truncate(trace.file, trace.at) == 0)
            aco__os_file_write(trace.file, ending, ENDING, trace.at);
        trace.is_open = 0;
        aco__warn("ACO_TRACE", NULL, "the trace ends here: %s", strerror(error));
    }
    trace.at += (int64_t)trace.used;
    trace.used = 0;
    trace.flushed = now;
    errno = saved;
}

__attribute__((format(printf, 1, 2))) static void append(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    trace.used += (size_t)vsnprintf(trace.text + trace.used, sizeof trace.text - trace.used, format, args);
    va_end(args);
}

/* The calling thread's number. The first call in a thread writes the thread's name; without memory for scratch state,
 * every call does. */
static long known_thread(void)
{
    aco__scratch_t *scratch = aco__scratch();
    char name[ACO_NAME_SIZE], json[NAME_IN_JSON];
    long thread = scratch ? scratch->traced_as : 0;
    if (aco_likely(thread))
        return thread;
    thread = aco__os_thread_number();
    if (scratch)
        scratch->traced_as = thread;
    aco__os_thread_name(name, sizeof name);
    append(",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%ld,\"tid\":%ld,\"args\":{\"name\":\"%s\"}}",
           trace.process, thread, aco__json_text(name, json, sizeof json));
    return thread;
}

/* Writes an event. `rest`, if not NULL, is the format of more fields. */
static void event(char phase, const char *name, const char *rest, ...)
{
    int64_t now, since;
    va_list args;
    long thread;
    aco__os_trace_lock();
    ACO__NO_SWITCH_BEGIN();
    if (trace.is_open) {
        thread = known_thread();
        now = aco__os_now();
        since = now - trace.began;
        append(",\n{\"ph\":\"%c\",\"name\":\"%s\",\"pid\":%ld,\"tid\":%ld,\"ts\":%" PRId64 ".%03d", phase, name,
               trace.process, thread, since / 1000, (int)(since % 1000));
        if (rest) {
            va_start(args, rest);
            trace.used += (size_t)vsnprintf(trace.text + trace.used, sizeof trace.text - trace.used, rest, args);
            va_end(args);
        }
        append("}");
        if (trace.used > sizeof trace.text - 2 * LONGEST_EVENT || now - trace.flushed > FLUSH_NS)
            flush(now);
    }
    ACO__NO_SWITCH_END();
    aco__os_trace_unlock();
}

static const char *shown_name(const aco_t *co, char json[NAME_IN_JSON])
{
    const aco__cold_t *cold = aco__cold(co);
    if (cold->name[0])
        return aco__json_text(cold->name, json, NAME_IN_JSON);
    snprintf(json, NAME_IN_JSON, "coroutine %" PRIu32, cold->number);
    return json;
}

/* ---- Events ---- */

static int is_traced(const aco_t *co)
{
    const aco__cold_t *cold = aco__cold(co);
    return traced && cold && cold->number;
}

void aco__trace_new(aco_t *co)
{
    char json[NAME_IN_JSON];
    if (!traced)
        return;
    aco__cold(co)->number = __atomic_add_fetch(&trace.coroutines, 1, __ATOMIC_RELAXED);
    probe_create(co);
    event('i', "create", ",\"s\":\"t\",\"args\":{\"coroutine\":%" PRIu32 ",\"name\":\"%s\",\"address\":\"%p\"}",
          aco__cold(co)->number, shown_name(co, json), (void *)co);
}

void aco__trace_runs(const aco_t *co)
{
    char json[NAME_IN_JSON];
    if (!is_traced(co))
        return;
    probe_resume(co);
    event('B', shown_name(co, json), ",\"args\":{\"coroutine\":%" PRIu32 "}", aco__cold(co)->number);
}

void aco__trace_ended(const aco_t *co)
{
    if (!is_traced(co))
        return;
    probe_exit(co);
    event('i', "exit", ",\"s\":\"t\",\"args\":{\"coroutine\":%" PRIu32 "}", aco__cold(co)->number);
}

void aco__trace_stops(const aco_t *co)
{
    char json[NAME_IN_JSON];
    if (!is_traced(co))
        return;
    probe_yield(co);
    event('E', shown_name(co, json), NULL);
}

/* Waits are spans apart from the threads' runs: "async" events with the coroutine's number as id. */
enum { WAIT_NAME = 48 };

static const char *name_of_wait(int fd, int writes, char name[WAIT_NAME])
{
    if (fd < 0)
        return "waits for a thread";
    snprintf(name, WAIT_NAME, "waits for %s fd %d", writes ? "writable" : "readable", fd);
    return name;
}

void aco__trace_waits(const aco_t *co, int fd, int writes, const char *location)
{
    char name[WAIT_NAME], text[256], place[ACO_NAME_SIZE] = "", json[NAME_IN_JSON];
    if (!is_traced(co))
        return;
    if (location) {
        const char *slash;
        location = aco__location(location, text, sizeof text);
        slash = strrchr(location, '/');
        snprintf(place, sizeof place, "%s", slash ? slash + 1 : location);
    }
    event('b', name_of_wait(fd, writes, name),
          ",\"cat\":\"io\",\"id\":%" PRIu32 ",\"args\":{\"coroutine\":%" PRIu32 ",\"at\":\"%s\"}",
          aco__cold(co)->number, aco__cold(co)->number, aco__json_text(place, json, sizeof json));
}

void aco__trace_waited(const aco_t *co, int fd, int writes, int error)
{
    char name[WAIT_NAME];
    if (!is_traced(co))
        return;
    event('e', name_of_wait(fd, writes, name), ",\"cat\":\"io\",\"id\":%" PRIu32 ",\"args\":{\"errno\":%d}",
          aco__cold(co)->number, error);
}

/* ---- The process ---- */

static __attribute__((destructor)) void ends(void)
{
    aco__os_trace_lock();
    if (trace.is_open)
        flush(aco__os_now());
    aco__os_trace_unlock();
}

void aco__trace_end(const char *why)
{
    if (!traced)
        return;
    aco__os_trace_lock();
    if (trace.is_open)
        flush(aco__os_now());
    if (trace.is_open)
        aco__warn("ACO_TRACE", NULL, "the trace ends here: %s", why);
    trace.is_open = 0;
    aco__os_trace_unlock();
}

/* Writes what is left. Waits for another thread that is writing, but gives up after a while: that thread may be the
 * caller itself. No thread writes afterwards. */
static void process_dies(void)
{
    enum { PATIENCE_MS = 100 };
    if (!traced || !aco__os_trace_try_lock(PATIENCE_MS))
        return;
    if (trace.is_open)
        flush(0);
    trace.is_open = 0;
    aco__os_trace_unlock();
}

/* The file belongs to the parent, so the child does not write. The lock is made anew, because another thread may have
 * held it. */
static void in_child(void)
{
    trace.is_open = 0;
    aco__os_trace_lock_anew();
}

/* Makes the path: replaces the first "%p" in `pattern` by the process number. */
static void expand(const char *pattern, char *path, size_t sz)
{
    const char *number = strstr(pattern, "%p");
    if (number)
        snprintf(path, sz, "%.*s%ld%s", (int)(number - pattern), pattern, trace.process, number + 2);
    else
        snprintf(path, sz, "%s", pattern);
}

static void open_file(const char *pattern)
{
    char path[4096];
    trace.process = aco__os_process_number();
    expand(pattern, path, sizeof path);
    trace.file = aco__os_file_new(path);
    if (trace.file < 0) {
        aco__warn("ACO_TRACE", NULL, "%s: %s", path, strerror(errno));
        return;
    }
    trace.is_open = aco__os_at_fork(NULL, NULL, in_child) == 0;
    trace.began = aco__os_now();
    append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%ld,"
           "\"args\":{\"sort_index\":0}}",
           trace.process);
    flush(trace.began);
    aco__os_at_fatal_signal(process_dies);
}

/* Runs before other constructors, because they may create coroutines. */
ACO__AT_LOAD static void begins(void)
{
    const char *pattern = aco__os_environment("ACO_TRACE"); /* NULL in a setuid process: it must create no file */
    traced = is_listened_to() || (pattern && *pattern);
    if (!traced)
        return;
    aco__upcalls.instruments_all = 1;
    aco__upcalls.process_dies = process_dies;
    if (pattern && *pattern)
        open_file(pattern);
}

#endif
