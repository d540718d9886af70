/* A parser for input that comes in pieces.
 *
 * The parser is a plain recursive one that asks for the next character. Its caller is the kind of function that an
 * event loop calls with whatever the network has brought. The parser is a coroutine: where a piece ends it yields, in
 * the middle of whatever it was doing, and the callback's next piece is what aco_yield_value() returns. No state
 * machine, no buffering. */
#include "aco.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "aco_assert_override.h"

typedef struct piece {
    const char *bytes;
    size_t size; /* 0: end of input */
} piece_t;

typedef struct parser {
    piece_t *piece; /* the callback's, which waits while we read it */
    int c;          /* the next character, EOF at the end */
    long sum;       /* of all numbers: the result */
    int depth, deepest;
} parser_t;

static void advance(parser_t *p)
{
    if (p->piece->size == 0)
        p->piece = aco_yield_value(NULL);
    p->c = p->piece->size ? (p->piece->size--, (unsigned char)*p->piece->bytes++) : EOF;
}

static int accept(parser_t *p, int c)
{
    if (p->c != c)
        return 0;
    advance(p);
    return 1;
}

static int number(parser_t *p)
{
    long sign = accept(p, '-') ? -1 : 1, n = 0;
    if (!isdigit(p->c))
        return 0;
    for (; isdigit(p->c); advance(p))
        n = 10 * n + (p->c - '0');
    p->sum += sign * n;
    return 1;
}

/* value: number | '[' [value {',' value}] ']' */
static int value(parser_t *p)
{
    if (!accept(p, '['))
        return number(p);
    if (++p->depth > p->deepest)
        p->deepest = p->depth;
    if (p->c != ']')
        do
            if (!value(p))
                return 0;
        while (accept(p, ','));
    p->depth--;
    return accept(p, ']');
}

/* Its result is an error message, or NULL. */
static void *parse(void *arg)
{
    parser_t *p = arg;
    p->piece = aco_yield_value(NULL); /* the value that starts a coroutine reaches nobody: wait for the first piece */
    advance(p);
    return value(p) && p->c == EOF ? NULL : "syntax error";
}

/* What the event loop calls. Whether more input is wanted. */
static int on_data(aco_t *co, const char *bytes, size_t size)
{
    piece_t piece = {bytes, size};
    aco_send(co, &piece);
    return aco_state(co) != ACO_STATE_DONE;
}

/* Feeds `text` in pieces of `size` bytes. Then the input ends, or the connection is lost. Returns an error or NULL. */
static const char *run(parser_t *p, const char *text, size_t size, int lost)
{
    const char *error = "connection lost";
    aco_t *co = aco_new(parse, p, NULL);
    int more = 1;
    assert(co);
    aco_send(co, NULL);
    for (size_t left = strlen(text); more && left; left -= size, text += size) {
        size = size < left ? size : left;
        more = on_data(co, text, size);
    }
    if (more && !lost)
        more = on_data(co, NULL, 0);
    if (!more)
        error = aco_result(co);
    assert(aco_cancel(co) == 0); /* ends it where it waits; nothing to do if it is done */
    aco_destroy(co);
    return error;
}

static void check(const char *text, int lost, const char *error, long sum, int deepest)
{
    for (size_t size = 1; size <= strlen(text); size++) {
        parser_t p = {.sum = 0};
        const char *said = run(&p, text, size, lost);
        assert(error ? said && strcmp(said, error) == 0 : !said && p.sum == sum && p.deepest == deepest);
    }
    printf("%s in pieces of 1 to %zu bytes: %s\n", text, strlen(text), error ? error : "parsed");
}

int main(void)
{
    check("[1,[22,-333],[],[[4444]]]", 0, NULL, 1 + 22 - 333 + 4444, 3);
    check("-17", 0, NULL, -17, 0);
    check("[1,[2,3]", 0, "syntax error", 0, 0);
    check("[1,,2]", 0, "syntax error", 0, 0);
    check("[[[12345678", 1, "connection lost", 0, 0);
    return 0;
}
