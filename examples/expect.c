/* Runs a program and checks how it ends and what it prints.
 *
 *   expect exit|abort [-o|-e|-O|-E TEXT]... -- PROGRAM [ARGUMENT]...
 *
 * exit: it must exit with status 0. abort: it must die by SIGABRT; on Windows, end as abort() ends a program there.
 * Each -o TEXT must be in its standard output, each -e TEXT in its standard error, behind the one before it; -O and -E
 * TEXT must not be there. The exit status is 0 if all of that holds; else the program's output and what was wrong with
 * it are printed. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdint.h>
#else
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { LIMIT_S = 50 };

typedef struct stream {
    const char *name;
    FILE *file;
    char *text;
    const char *from; /* where the next TEXT may begin */
} stream_t;

__attribute__((noreturn)) static void die(const char *what)
{
    perror(what);
    exit(2);
}

#ifdef _WIN32
/* The run time's tmpfile() is in the root folder. */
static FILE *temporary(void)
{
    char *name = _tempnam(NULL, "expect");
    FILE *file = name ? fopen(name, "w+tD") : NULL; /* text; goes as it is closed */
    free(name);
    return file;
}
#else
static FILE *temporary(void)
{
    return tmpfile();
}
#endif

static void stream_open(stream_t *s, const char *name)
{
    s->name = name;
    s->file = temporary();
    if (!s->file)
        die("tmpfile");
}

static void stream_read(stream_t *s)
{
    long size = fseek(s->file, 0, SEEK_END) == 0 ? ftell(s->file) : -1;
    s->text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
    if (!s->text)
        die(s->name);
    rewind(s->file);
    /* On Windows text has fewer characters. */
    if (fread(s->text, 1, (size_t)size, s->file) < (size_t)size && ferror(s->file))
        die(s->name);
    s->from = s->text;
    fclose(s->file);
}

#ifdef _WIN32
enum { ABORTED = 3 };

static int run(char **command, FILE *out, FILE *err)
{
    int own_out = _dup(1), own_err = _dup(2);
    intptr_t status;
    _dup2(_fileno(out), 1);
    _dup2(_fileno(err), 2);
    status = _spawnvp(_P_WAIT, command[0], (const char *const *)command);
    _dup2(own_out, 1);
    _dup2(own_err, 2);
    if (status == -1)
        die(command[0]);
    return (int)status;
}

static int ended(const char *how, int status)
{
    if (status == (strcmp(how, "abort") == 0 ? ABORTED : 0))
        return 1;
    fprintf(stderr, "expect: it ended with status %#x\n", (unsigned)status);
    return 0;
}
#else
static int run(char **command, FILE *out, FILE *err)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(LIMIT_S); /* outlives exec: a program that hangs dies by SIGALRM */
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        execvp(command[0], command);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) != pid)
        die("waitpid");
    return status;
}

/* Whether the program ended as it should. */
static int ended(const char *how, int status)
{
    if (strcmp(how, "abort") == 0 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT : status == 0)
        return 1;
    fprintf(stderr, "expect: it ended by %s %d\n", WIFSIGNALED(status) ? "signal" : "exit with status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return 0;
}

#endif

static int has(stream_t *s, const char *text)
{
    const char *found = strstr(s->from, text);
    if (!found) {
        fprintf(stderr, "expect: standard %s lacks, in this order: %s\n", s->name, text);
        return 0;
    }
    s->from = found + strlen(text);
    return 1;
}

static int has_not(const stream_t *s, const char *text)
{
    if (!strstr(s->text, text))
        return 1;
    fprintf(stderr, "expect: standard %s has: %s\n", s->name, text);
    return 0;
}

int main(int argc, char **argv)
{
    stream_t out, err;
    int command = 2, good;
    while (command < argc && strcmp(argv[command], "--") != 0)
        command += 2;
    if (command + 1 >= argc || (strcmp(argv[1], "exit") != 0 && strcmp(argv[1], "abort") != 0)) {
        fprintf(stderr, "usage: expect exit|abort [-o|-e|-O|-E TEXT]... -- PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    stream_open(&out, "output");
    stream_open(&err, "error");
    int status = run(argv + command + 1, out.file, err.file);
    stream_read(&out);
    stream_read(&err);
    printf("%s", out.text);
    fflush(stdout);
    fprintf(stderr, "%s", err.text);

    good = ended(argv[1], status);
    for (int i = 2; i < command; i += 2) {
        stream_t *s = strchr("oO", argv[i][1]) ? &out : &err;
        good &= strchr("oe", argv[i][1]) ? has(s, argv[i + 1]) : has_not(s, argv[i + 1]);
    }
    free(out.text);
    free(err.text);
    return good ? 0 : 1;
}
