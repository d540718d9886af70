/* Sizes by measurement: a few coroutines that go deep and many that do not, first on the stacks that they get by
 * default, then on what a trial run has shown them to need.
 *
 *   text in pieces --> PARSERS parsers --> amounts --> accounts
 *
 * A parser computes sums such as (7+(7+(7+7)));, by recursion, and waits for the next piece of its text wherever it is
 * used up: deep inside. An account waits for an amount, adds it to its balance, and waits again: its frame is all it
 * has. */
#include "aco.h"
#include "aco/pool.h"

#include <ctype.h>
#include <stdio.h>

#include "aco_assert_override.h"

enum { PARSERS = 4, NESTED = 200, PIECE = 100, AMOUNTS = 1000, TRIAL_ACCOUNTS = 500, ACCOUNTS = 4000 };

typedef struct parser {
    aco_t *co;
    const char *at, *end; /* what is left of the piece */
    long value, values;   /* the last one, and how many there were */
    int closed;           /* there will be no more text */
} parser_t;

typedef struct plan {
    aco_options_t parsers, accounts;
} plan_t;

/* ---- The few ---- */

static char next(const parser_t *p)
{
    while (p->at == p->end && !p->closed)
        aco_yield();
    return p->closed ? 0 : *p->at;
}

static long sum(parser_t *p);

static long term(parser_t *p) /* a number, or a sum in parentheses */
{
    long value = 0;
    if (next(p) == '(') {
        p->at++;
        value = sum(p);
        assert(next(p) == ')');
        p->at++;
    }
    for (; isdigit((unsigned char)next(p)); p->at++)
        value = 10 * value + (*p->at - '0');
    return value;
}

static long sum(parser_t *p)
{
    long value = term(p);
    while (next(p) == '+') {
        p->at++;
        value += term(p);
    }
    return value;
}

static void *parse(void *arg)
{
    parser_t *p = arg;
    while (next(p)) {
        p->value = sum(p);
        assert(next(p) == ';');
        p->at++;
        p->values++;
        aco_yield();
    }
    return NULL;
}

/* ---- The many ---- */

static void *keep_account(void *total)
{
    long balance = 0;
    for (const long *amount; (amount = aco_yield_value(NULL)) != NULL;)
        balance += *amount;
    *(long *)total += balance;
    return NULL;
}

/* ---- A run ---- */

static aco_t *started(aco_function_t fn, void *arg, const aco_options_t *options)
{
    aco_t *co = aco_new(fn, arg, options);
    if (!co)
        fprintf(stderr, "%s\n", aco_error_message());
    assertptr(co);
    aco_send(co, NULL);
    return co;
}

/* (n+(n+ … (n+n)));, NESTED parentheses. Returns its length. */
static int write_sum(char *text, int n)
{
    char *to = text;
    for (int i = 0; i < NESTED; i++)
        to += sprintf(to, "(%d+", n);
    to += sprintf(to, "%d", n);
    for (int i = 0; i < NESTED; i++)
        *to++ = ')';
    *to++ = ';';
    return (int)(to - text);
}

static size_t resident(void)
{
    size_t total, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        assert(fscanf(file, "%zu %zu", &total, &pages) == 2);
        fclose(file);
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* All parsers take a piece each in turn, and each amount goes to the next account. Prints the balances' sum; returns
 * the memory that all coroutines took, in bytes. */
static size_t run(const char *what, const plan_t *plan, int accounts)
{
    static aco_t *account[ACCOUNTS];
    static char text[PARSERS][NESTED * 8 + 16];
    parser_t parser[PARSERS] = {{0}};
    long total = 0;
    size_t before = resident(), used;
    for (int i = 0; i < PARSERS; i++)
        parser[i].co = started(parse, &parser[i], &plan->parsers);
    for (int i = 0; i < accounts; i++)
        account[i] = started(keep_account, &total, &plan->accounts);

    for (int amounts = 0; amounts < AMOUNTS;) {
        int length[PARSERS];
        for (int i = 0; i < PARSERS; i++)
            length[i] = write_sum(text[i], (amounts + i) % 7);
        for (int from = 0; from < length[0]; from += PIECE)
            for (int i = 0; i < PARSERS; i++) {
                parser_t *p = &parser[i];
                p->at = text[i] + from;
                p->end = text[i] + (from + PIECE < length[i] ? from + PIECE : length[i]);
                aco_send(p->co, NULL);
            }
        for (int i = 0; i < PARSERS; i++)
            aco_send(account[amounts++ % accounts], &parser[i].value);
    }
    used = resident() - before;

    for (int i = 0; i < PARSERS; i++) {
        parser[i].closed = 1;
        aco_send(parser[i].co, NULL);
        assert(parser[i].co->is_end && parser[i].values == AMOUNTS / PARSERS);
        aco_destroy(parser[i].co);
    }
    for (int i = 0; i < accounts; i++) {
        aco_send(account[i], NULL);
        assert(account[i]->is_end);
        aco_destroy(account[i]);
    }
    printf("%s: %d accounts hold %ld\n", what, accounts, total);
    return used;
}

/* ---- What to change ---- */

static int choose(const aco_stack_usage_t *usage, void *arg)
{
    plan_t *plan = arg;
    if (strcmp(usage->name, "parser") == 0) {
        plan->parsers.stack_size = 2 * usage->deepest; /* is made a power of two */
        printf("parsers go %zu KiB deep\n", usage->deepest / 1024);
    } else if (usage->advice == ACO_STACK_BETTER_SHARED) {
        plan->accounts.stack = aco_share_stack_new(0);
        plan->accounts.save_size = usage->most_live;
        printf("accounts have %zu bytes to copy\n", usage->most_live);
    }
    return 0;
}

int main(void)
{
    const aco_pool_options_t few = {.most_stacks = PARSERS};
    plan_t trial = {.parsers = {.name = "parser"}, .accounts = {.name = "account"}}, defaults = {{0}, {0}},
           chosen = {{0}, {0}};
    aco_pool_stats_t stats;
    size_t before, after;

    aco_stack_measure(1);
    run("trial", &trial, TRIAL_ACCOUNTS);
    aco_stack_measure(0);
    assert(aco_stack_report(stdout) == 0);

    aco_pool_trim(NULL); /* what the trial left shall not help the next run */
    before = run("by default", &defaults, ACCOUNTS);
    aco_pool_trim(NULL);

    aco_stack_usage(choose, &chosen);
    chosen.parsers.pool = aco_pool_new(&few);
    assertptr(chosen.parsers.pool);
    after = run("as measured", &chosen, ACCOUNTS);
    assert(aco_pool_stats(chosen.parsers.pool, &stats) == 0);
    printf("the parsers' pool: %zu KiB of addresses in %zu region\n", stats.reserved / 1024, stats.regions);

    printf("memory: %zu KiB by default, %zu KiB as measured%s\n", before / 1024, after / 1024,
           after * 4 < before ? ": less than a quarter" : "");
    assert(aco_pool_destroy(chosen.parsers.pool) == 0);
    if (chosen.accounts.stack)
        aco_share_stack_destroy(chosen.accounts.stack);
    return 0;
}
