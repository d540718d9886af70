/* What the fuzz targets share: the input, verdicts, and a main() that replays inputs. A target defines FUZZ_NAME, a
 * string, before it includes this, and after it
 *   fuzz_actor()   who runs, a number for messages
 *   fuzz_input()   one input: it takes bytes by next() until is_over(), and leaves nothing behind
 *
 * With libFuzzer that is all (run.sh). With FUZZ_REPLAY there is a main():
 *   PROGRAM FILE|DIRECTORY...          replays inputs, the files of a directory in any order
 *   PROGRAM --random COUNT [SEED]      makes up inputs; the one that fails is left in the file fuzz-NAME-failed
 * FUZZ_TRACE=1 in the environment prints every operation. */
#ifndef FUZZ_H
#define FUZZ_H

#include "../../tests/random.h"
#include "../../tests/sanitizers.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* AddressSanitizer cannot follow copied frames. Under it a request for a share stack gets a private stack. */
#ifndef FUZZ_COPYING
#define FUZZ_COPYING !UNDER_ASAN
#endif

#define OUTLINE static __attribute__((noinline))
#define UNUSED __attribute__((unused))

static int fuzz_actor(void);
static void fuzz_input(void);

/* ---- The input ---- */

static const uint8_t *input;
static size_t input_sz, at;

static unsigned next(void)
{
    return at < input_sz ? input[at++] : 0;
}

static int is_over(void)
{
    return at >= input_sz;
}

/* ---- Verdicts ---- */

__attribute__((noreturn, format(printf, 2, 3))) OUTLINE void fail(int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "fuzz/" FUZZ_NAME ":%d: byte %zu of %zu, actor %d: ", line, at, input_sz, fuzz_actor());
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

#define EXPECT(what)                                                                                                   \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            fail(__LINE__, "not so: %s", #what);                                                                       \
    } while (0)

/* Whether a call did what it had to: `error` is 0, or the errno with which it must have failed. */
UNUSED OUTLINE void expect(int line, const char *call, int failed, int error)
{
    size_t length = strlen(call);
    int got = errno;
    if (!failed && error)
        fail(line, "%s did not fail: errno %d expected", call, error);
    if (failed && !error)
        fail(line, "%s failed: %s", call, aco_error_message());
    if (failed && got != error)
        fail(line, "%s failed with errno %d, not %d: %s", call, got, error, aco_error_message());
    if (failed && (strncmp(aco_error_message(), call, length) != 0 ||
                   strncmp(aco_error_message() + length, ": ", 2) != 0))
        fail(line, "%s failed with the message of another: %s", call, aco_error_message());
}

#define EXPECT_INT(call, args, error) expect(__LINE__, #call, (errno = 0, call args) != 0, error)
#define EXPECT_POINTER(call, args, error) expect(__LINE__, #call, (errno = 0, call args) == ACO_ERROR, error)

static int tracing;

#define TRACE(...)                                                                                                     \
    do {                                                                                                               \
        if (tracing)                                                                                                   \
            trace(__VA_ARGS__);                                                                                        \
    } while (0)

/* ---- What libFuzzer calls ---- */

#ifndef FUZZ_REPLAY
/* libFuzzer's alarm asks whether an input hangs. Its handler runs on the current stack, where the signal's frame, with
 * the vector registers in it, may not fit. From now on it runs on the alternate stack that the sanitizer has set. */
static void move_alarm_aside(void)
{
    static int is_moved;
    struct sigaction action;
    if (!is_moved && sigaction(SIGALRM, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO)) {
        action.sa_flags |= SA_ONSTACK;
        sigaction(SIGALRM, &action, NULL);
    }
    is_moved = 1;
}
#endif

#ifdef __cplusplus
extern "C"
#endif
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);
#ifdef __cplusplus
extern "C"
#endif
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
    tracing = getenv("FUZZ_TRACE") != NULL;
#ifndef FUZZ_REPLAY
    move_alarm_aside();
#endif
    input = bytes;
    input_sz = sz;
    at = 0;
    fuzz_input();
    return 0;
}

/* ---- Without libFuzzer ---- */

#ifdef FUZZ_REPLAY

static unsigned replayed;
static const char *path_now; /* NULL: the input is made up */

/* The input that is replayed ends the process: says which, and keeps one that was made up. */
static void died(int signal_number)
{
    static const char kept[] = "fuzz-" FUZZ_NAME "-failed";
    FILE *file = path_now ? NULL : fopen(kept, "wb");
    if (file) {
        fwrite(input, 1, input_sz, file);
        fclose(file);
    }
    fprintf(stderr, "fuzz_" FUZZ_NAME ": signal %d at byte %zu of %s\n", signal_number, at, path_now ? path_now : kept);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_for_death(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM};
    static char stack[64 << 10];
    stack_t aside;
    struct sigaction action;
    memset(&aside, 0, sizeof aside);
    aside.ss_sp = stack;
    aside.ss_size = sizeof stack;
    memset(&action, 0, sizeof action);
    action.sa_handler = died;
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&aside, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static void replay_file(const char *path)
{
    static uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t sz;
    if (!file) {
        perror(path);
        exit(1);
    }
    sz = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    path_now = path;
    LLVMFuzzerTestOneInput(bytes, sz);
    replayed++;
}

static void replay(const char *path)
{
    static char name[4096];
    DIR *directory = opendir(path);
    struct dirent *e;
    if (!directory) {
        replay_file(path);
        return;
    }
    while ((e = readdir(directory)) != NULL)
        if (e->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, e->d_name);
            replay_file(name);
        }
    closedir(directory);
}

/* Inputs made up at random. */
static void make_up(unsigned long inputs, uint64_t seed)
{
    static uint8_t bytes[600];
    for (unsigned long i = 0; i < inputs; i++) {
        random_t r = {seed * 1000003 + i};
        size_t sz = 20 + i % (sizeof bytes - 20);
        for (size_t n = 0; n < sz; n++) {
            uint64_t z = draw(&r);
            bytes[n] = (uint8_t)(z >> 60 < 8 ? z & 0xe3 : z); /* few coroutines, so that they meet */
        }
        LLVMFuzzerTestOneInput(bytes, sz);
        replayed++;
    }
}

int main(int argc, char **argv)
{
    watch_for_death();
    if (argc >= 3 && strcmp(argv[1], "--random") == 0)
        make_up(strtoul(argv[2], NULL, 10), argc > 3 ? strtoul(argv[3], NULL, 10) : 1);
    else
        for (int i = 1; i < argc; i++)
            replay(argv[i]);
    printf("%u inputs replayed\n", replayed);
    return replayed == 0;
}

#endif
#endif
