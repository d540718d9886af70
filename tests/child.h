/* Runs code in a forked child and looks at how it ends and what it writes to stderr. */
#ifndef CHILD_H
#define CHILD_H

#include "check.h"
#include "sanitizers.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#if defined(_WIN32) || UNDER_TSAN /* they have no fork(), or do not follow a process with fibers through it */
#define CHILD_SKIPS 1

static int child_skipped;

static void child_say_skipped(void)
{
    printf("skipped: %d checks of how a process goes on or ends, which need fork()\n", child_skipped);
}

static inline void child_skip(void (*act)(void))
{
    (void)act;
    if (child_skipped++ == 0)
        atexit(child_say_skipped);
}

#define DIES_OF(act, signal) child_skip(act)
#define ABORTS(act, call, co, reason) ((void)(call), (void)(co), (void)(reason), child_skip(act))
#define PASSES(act) child_skip(act)
#define PRINTS(act, text) ((void)(text), child_skip(act))
#endif

#ifdef _WIN32

static inline void child_prints(const char *file, int line, void (*act)(void), const char *text)
{
    (void)file, (void)line, (void)text;
    child_skip(act);
}

#else

#include <sys/resource.h>
#include <sys/wait.h>

typedef struct child_end {
    int status;      /* as wait() gives it */
    char text[4096]; /* stderr */
} child_end_t;

/* qemu-user's own line about the signal that ended the program is not the program's. */
static inline void child_forget_emulator(char *text)
{
    char *line = strstr(text, "qemu: uncaught target signal ");
    if (line && strchr(line, '\n'))
        memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n')));
}

static inline child_end_t child_run(void (*act)(void))
{
    child_end_t end;
    size_t length = 0;
    int ends[2];
    pid_t pid;
    fflush(NULL);
    if (pipe(ends) != 0 || (pid = fork()) < 0) {
        perror("child_run");
        exit(2);
    }
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer may have taken it */
        alarm(30);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        check_failures = 0; /* the parent's are the parent's */
        act();
        _exit(__atomic_load_n(&check_failures, __ATOMIC_RELAXED) != 0);
    }
    close(ends[1]);
    for (;;) {
        char spare[256];
        int full = length == sizeof end.text - 1;
        ssize_t n = read(ends[0], full ? spare : end.text + length, full ? sizeof spare : sizeof end.text - 1 - length);
        if (n <= 0)
            break;
        if (!full)
            length += (size_t)n;
    }
    end.text[length] = 0;
    child_forget_emulator(end.text);
    close(ends[0]);
    waitpid(pid, &end.status, 0);
    return end;
}

static inline int is_one_line(const char *text)
{
    const char *newline = strchr(text, '\n');
    return newline && newline[1] == 0;
}

static inline void child_complain(const char *file, int line, const char *act, const char *wanted,
                                  const child_end_t *end)
{
    fprintf(stderr, "%s:%d: %s: wanted %s; the wait status is %#x, stderr holds \"%s\"\n", file, line, act, wanted,
            (unsigned)end->status, end->text);
    __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);
}

/* The child must die by `signal`. */
static inline void child_dies_of(const char *file, int line, const char *name, void (*act)(void), int signal)
{
    char wanted[64];
    child_end_t end = child_run(act);
    snprintf(wanted, sizeof wanted, "death by signal %d", signal);
    if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != signal)
        child_complain(file, line, name, wanted, &end);
}

/* The child must abort after exactly the line "acorn: CALL: coroutine CO: ...REASON...", without the coroutine where
 * `co` is NULL. Objects made before the fork have the same addresses in the child. */
static inline void child_aborts(const char *file, int line, const char *name, void (*act)(void), const char *call,
                                const void *co, const char *reason)
{
    char start[256], wanted[512];
    child_end_t end = child_run(act);
    size_t length = (size_t)(co ? snprintf(start, sizeof start, "acorn: %s: coroutine %p: ", call, co)
                                : snprintf(start, sizeof start, "acorn: %s: ", call));
    int named = strncmp(end.text, start, length) == 0;
    if (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && is_one_line(end.text) && named &&
        strstr(end.text + length, reason) && (co || strncmp(end.text + length, "coroutine 0x", 12) != 0))
        return;
    snprintf(wanted, sizeof wanted, "abort after one line \"%s... %s ...\"", start, reason);
    child_complain(file, line, name, wanted, &end);
}

/* The child must end well. */
static inline void child_passes(const char *file, int line, const char *name, void (*act)(void))
{
    child_end_t end = child_run(act);
    if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0)
        child_complain(file, line, name, "exit status 0", &end);
}

/* The child must end well and print just `text` and more on one line, or nothing where it is NULL. */
static inline void child_prints(const char *file, int line, void (*act)(void), const char *text)
{
    child_end_t end = child_run(act);
    if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0 &&
        (text ? is_one_line(end.text) && strstr(end.text, text) : !end.text[0]))
        return;
    child_complain(file, line, "child", text ? text : "nothing on stderr", &end);
}

#ifndef CHILD_SKIPS
#define DIES_OF(act, signal) child_dies_of(__FILE__, __LINE__, #act, act, signal)
#define ABORTS(act, call, co, reason) child_aborts(__FILE__, __LINE__, #act, act, call, co, reason)
#define PASSES(act) child_passes(__FILE__, __LINE__, #act, act)
#define PRINTS(act, text) child_prints(__FILE__, __LINE__, act, text)
#endif

#endif
#endif
