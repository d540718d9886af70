/* A storm of timer signals while generators of both kinds run. The handler fills a large frame on the current stack,
 * and so overwrites all that lies below the stack pointer.
 *
 * generator_signals [seconds]; ends when that time is over. */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/in_stack_generator.h"
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { HANDLER_FRAME = 4096, WORDS = 12 };

static volatile sig_atomic_t handled, handler_failures, over;

/* The next signal, from the handler's end on: even after a slow handler the program runs before the next signal. */
static void another(void)
{
    struct itimerval soon = {{0, 0}, {0, 50}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void handler(int number)
{
    volatile unsigned char frame[HANDLER_FRAME];
    (void)number;
    for (int i = 0; i < HANDLER_FRAME; i++)
        frame[i] = (unsigned char)(i ^ 0xa5);
    for (int i = 0; i < HANDLER_FRAME; i++)
        handler_failures += frame[i] != (unsigned char)(i ^ 0xa5);
    handled++;
    if (!over)
        another();
}

/* What a generator's frame and its consumer's hold. */
#define FILL(words, seed)                                                                                              \
    for (unsigned at = 0; at < WORDS; at++)                                                                            \
    (words)[at] = (seed) * (at + 1)
#define IS_WHOLE(words, seed)                                                                                          \
    do {                                                                                                               \
        for (unsigned at = 0; at < WORDS; at++)                                                                        \
            if ((words)[at] != (seed) * (at + 1))                                                                      \
                CHECK(!"a frame was changed");                                                                         \
    } while (0)

static __attribute__((noinline)) void generate_deep(aco_yielder_t *y, unsigned n)
{
    volatile unsigned words[WORDS];
    FILL(words, n);
    aco_generate(y, (void *)(uintptr_t)n);
    IS_WHOLE(words, n);
}

ACO_GENERATOR(own, y, arg)
{
    volatile unsigned words[WORDS];
    FILL(words, 3);
    for (unsigned n = (unsigned)(uintptr_t)arg; n; n--) {
        aco_generate(y, (void *)(uintptr_t)n);
        generate_deep(y, n);
    }
    IS_WHOLE(words, 3);
}

static __attribute__((noinline)) void generate_deep_in_stack(aco_in_stack_yielder_t *y, unsigned n)
{
    volatile unsigned words[WORDS];
    FILL(words, n);
    aco_generate_in_stack(y, (void *)(uintptr_t)n);
    IS_WHOLE(words, n);
}

ACO_IN_STACK_GENERATOR(in_stack, y, arg)
{
    volatile unsigned words[WORDS];
    FILL(words, 3);
    for (unsigned n = (unsigned)(uintptr_t)arg; n; n--) {
        aco_generate_in_stack(y, (void *)(uintptr_t)n);
        generate_deep_in_stack(y, n);
    }
    IS_WHOLE(words, 3);
}

static __attribute__((noinline)) void consume(unsigned n)
{
    volatile unsigned words[WORDS];
    unsigned sum = 0;
    aco_generator_t g;
    FILL(words, n);
    CHECK_EQ(aco_generator_open(&g, own, (void *)(uintptr_t)n, NULL), 0);
    while (aco_generator_next(&g))
        sum += (unsigned)(uintptr_t)g.value;
    CHECK_EQ(sum, n * (n + 1));
    IS_WHOLE(words, n);
}

static __attribute__((noinline)) void consume_in_stack(unsigned n)
{
    volatile unsigned words[WORDS];
    unsigned sum = 0;
    aco_in_stack_t g;
    FILL(words, n);
    aco_in_stack_open(&g, in_stack, (void *)(uintptr_t)n);
    while (aco_in_stack_next(&g) > 0) {
        sum += (unsigned)(uintptr_t)g.value;
        IS_WHOLE(words, n);
        if (n == 7)
            break;
    }
    if (n != 7)
        CHECK_EQ(sum, n * (n + 1));
    CHECK_EQ(aco_in_stack_drop(&g), 0);
    IS_WHOLE(words, n);
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 2);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    another();
    while (time(NULL) < end && !check_failures)
        for (unsigned n = 0; n < 200; n++) {
            consume(n);
            consume_in_stack(n);
        }
    over = 1;
    CHECK_EQ(handler_failures, 0);
    CHECK(handled > 100);
    printf("generator_signals: %d signals\n", (int)handled);
    return check_result("generator_signals");
}
