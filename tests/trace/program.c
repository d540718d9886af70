/* What check.py has traced. Each part prints, as JSON on stdout, which coroutines ran: a list of [what happened, name,
 * clock]. */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/scheduler.h"
#include "../check.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The program's own record ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int lines;

static void record(const char *what, const char *name)
{
    pthread_mutex_lock(&lock);
    printf("%s\n[\"%s\", \"%s\", %" PRId64 "]", lines++ ? "," : "[", what, name, aco_now());
    pthread_mutex_unlock(&lock);
}

static aco_t *made(aco_function_t fn, void *arg, const char *name)
{
    aco_options_t options = {.name = name};
    aco_t *co = aco_new(fn, arg, name ? &options : NULL);
    CHECK(co);
    return co;
}

/* To be called where a coroutine begins, and around each switch that it makes. */
static void arrives(void)
{
    record("runs", aco_name(aco_get_co()));
}

static void leaves(void)
{
    record("stops", aco_name(aco_get_co()));
}

/* ---- Coroutines ---- */

static void *yields_twice(void *arg)
{
    for (int i = 0; i < 2; i++) {
        arrives();
        leaves();
        aco_yield();
    }
    arrives();
    leaves();
    return arg;
}

static void *resumes(void *inner)
{
    arrives();
    leaves();
    for (int i = 0; i < 3; i++) {
        aco_resume(inner);
        arrives();
        leaves();
    }
    return NULL;
}

static void *transfers(void *to)
{
    arrives();
    leaves();
    aco_yield_to(to);
    arrives();
    leaves();
    return NULL;
}

static void *is_cancelled(void *arg)
{
    arrives();
    leaves();
    aco_yield();
    return arg;
}

static void *task(void *arg)
{
    arrives();
    leaves();
    aco_task_yield();
    arrives();
    leaves();
    aco_sleep(1000);
    arrives();
    leaves();
    return arg;
}

static void *sends_task(void *channel)
{
    int element = 1;
    arrives();
    aco_channel_send(channel, &element); /* to one that waits: it goes on */
    leaves();
    return NULL;
}

static void *receives_task(void *channel)
{
    arrives();
    leaves();
    aco_channel_receive(channel, NULL);
    arrives();
    leaves();
    return NULL;
}

static void tasks_in_turn(void)
{
    aco_channel_t *channel = aco_channel_new(0, sizeof(int));
    aco_options_t options = {.flags = ACO_DETACHED};
    void *result;
    aco_t *joined;
    options.name = "first";
    CHECK(aco_spawn(task, NULL, &options));
    options.name = "second";
    CHECK(aco_spawn(task, NULL, &options));
    options.name = "receiver";
    CHECK(aco_spawn(receives_task, channel, &options));
    options.name = "sender";
    CHECK(aco_spawn(sends_task, channel, &options));
    options.name = "joined";
    options.flags = 0;
    joined = aco_spawn(task, NULL, &options);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(joined, &result), 0);
    aco_channel_destroy(channel);
}

static void libaco_entry(void)
{
    for (int i = 0; i < 3; i++) {
        arrives();
        leaves();
        aco_yield();
    }
    arrives();
    leaves();
    aco_exit();
}

/* Two that take turns on one share stack, as libaco's programs do. */
static void on_a_share_stack(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *main_co, *pair[2];
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        pair[i] = aco_create(main_co, stack, 0, libaco_entry, NULL);
        aco_set_name(pair[i], i ? "right" : "left");
    }
    while (!pair[1]->is_end)
        for (int i = 0; i < 2; i++)
            aco_resume(pair[i]);
    for (int i = 0; i < 2; i++)
        aco_destroy(pair[i]);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

static void everything(void)
{
    aco_t *inner = made(yields_twice, NULL, "inner"), *outer = made(resumes, inner, "outer");
    aco_t *to = made(yields_twice, NULL, "to"), *from = made(transfers, to, "from");
    aco_t *cancelled = made(is_cancelled, NULL, "cancelled"), *never = made(is_cancelled, NULL, "never run");
    aco_resume(outer);
    aco_resume(from);
    aco_resume(from);
    aco_resume(to);
    CHECK_EQ(aco_restart(from, yields_twice, NULL), 0);
    aco_resume(from);
    aco_resume(cancelled);
    CHECK_EQ(aco_cancel(cancelled), 0);
    CHECK_EQ(aco_cancel(never), 0);
    aco_destroy(inner), aco_destroy(outer), aco_destroy(to), aco_destroy(from), aco_destroy(cancelled),
        aco_destroy(never);
    tasks_in_turn();
    on_a_share_stack();
}

/* ---- Parts ---- */

static void strange_names(void)
{
    static const char *const names[] = {
        "\"quoted\\\"", "tab\tand\nline", "\x01\x1f\x7f", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\xbf", "bad \xff\xc3",
        "\xc0\xaf\xed\xa0\x80", "0123456789012345678901234567890\xc3\xaf",
        /* the first and the last character of each length, and those just beyond */
        "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
        "\xc1\xbf\xe0\x9f\xbf\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80\xed\xbf\xbf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        aco_t *co = made(yields_twice, NULL, names[i]);
        aco_resume(co);
        aco_destroy(co);
    }
    aco_destroy(made(yields_twice, NULL, NULL));
}

static void *on_thread(void *name)
{
    char names[2][32];
    aco_t *pair[2];
#ifdef __linux__
    pthread_setname_np(pthread_self(), name);
#endif
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "%s.%d", (char *)name, i);
        pair[i] = made(yields_twice, NULL, names[i]);
    }
    for (int n = 0; n < 3; n++)
        for (int i = 0; i < 2; i++)
            aco_resume(pair[i]);
    for (int i = 0; i < 2; i++)
        aco_destroy(pair[i]);
    return NULL;
}

static void *goes_from_thread_to_thread(void *co)
{
    aco_resume(co);
    return NULL;
}

static void threads(void)
{
    static char names[4][12] = {"worker 0", "worker 1", "worker 2", "worker 3"};
    pthread_t all[4], one;
    aco_t *wanderer = made(yields_twice, NULL, "wanderer");
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, on_thread, names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    for (int i = 0; i < 3; i++) {
        pthread_create(&one, NULL, goes_from_thread_to_thread, wanderer);
        pthread_join(one, NULL);
    }
    aco_destroy(wanderer);
}

static void *resumes_endlessly(void *co)
{
    for (;;)
        aco_resume(co);
    return NULL;
}

static void *yields_endlessly(void *arg)
{
    for (;;)
        aco_yield();
    return arg;
}

static void many(long switches)
{
    aco_t *co = made(yields_endlessly, NULL, "busy");
    while (switches--)
        aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    aco_destroy(co);
}

/* When some of the trace is in its file. */
static void is_killed(void)
{
    enum { WRITTEN = 100000 };
    struct stat trace = {0};
    pthread_t thread;
    pthread_create(&thread, NULL, resumes_endlessly, made(yields_endlessly, NULL, "busy"));
    while (stat(getenv("ACO_TRACE"), &trace) != 0 || trace.st_size < WRITTEN)
        sched_yield();
    kill(getpid(), SIGKILL);
}

/* The library's own abort, with its message. */
static void dies(void)
{
    aco_t *co = made(yields_twice, NULL, "last");
    aco_resume(co);
    aco_resume(co);
    aco_resume(co);
    record("ends", "");
    printf("]\n");
    fflush(stdout);
    aco_resume(co);
}

/* A fault in a coroutine, or a signal from outside. */
static void *volatile nowhere;

static void is_ended_by(const char *how)
{
    aco_t *co = made(yields_twice, NULL, "last");
    aco_resume(co);
    aco_resume(co);
    record("ends", "");
    printf("]\n");
    fflush(stdout);
    if (strcmp(how, "SEGV") == 0)
        *(volatile char *)nowhere = 1;
    kill(getpid(), strcmp(how, "TERM") == 0 ? SIGTERM : SIGABRT);
}

static void forks(void)
{
    aco_t *co = made(yields_twice, NULL, "before");
    pid_t child;
    aco_resume(co);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        many(100000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    aco_resume(co);
    aco_destroy(co);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "everything";
    if (strcmp(part, "everything") == 0)
        everything();
    else if (strcmp(part, "names") == 0)
        strange_names();
    else if (strcmp(part, "threads") == 0)
        threads();
    else if (strcmp(part, "many") == 0)
        many(argc > 2 ? atol(argv[2]) : 100000);
    else if (strcmp(part, "killed") == 0)
        is_killed();
    else if (strcmp(part, "dies") == 0)
        dies();
    else if (strcmp(part, "ended by") == 0)
        is_ended_by(argv[2]);
    else if (strcmp(part, "forks") == 0)
        forks();
    printf("%s]\n", lines ? "\n" : "[");
    return check_failures != 0;
}
