/* What is promised of generators of both kinds (include/aco/generator.h). Included by generator.c for each: KIND()
 * names what is here, the other macros stand for the types and calls. */

/* ---- Values ---- */

GENERATOR(KIND(counts), y, arg)
{
    for (intptr_t i = 1; i <= (intptr_t)arg; i++)
        GENERATE(y, (void *)i);
}

GENERATOR(KIND(makes_null), y, arg)
{
    GENERATE(y, NULL);
    GENERATE(y, arg);
    GENERATE(y, NULL);
}

GENERATOR(KIND(makes_none), y, arg)
{
    ++*(int *)arg;
}

/* Promises: one value after another, NULL among them; what has ended stays ended, and may be closed as often as one
 * likes. */
FRAME void KIND(values)(void)
{
    int runs = 0;
    GENERATOR_T g;
    OPEN(&g, KIND(counts), (void *)5);
    for (intptr_t i = 1; i <= 5; i++) {
        CHECK_EQ(NEXT(&g), 1);
        CHECK_EQ((intptr_t)g.value, i);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(NEXT(&g), 0);
    CLOSE(&g);
    CLOSE(&g);
    DROP(&g);
    CHECK_EQ(NEXT(&g), 0);

    OPEN(&g, KIND(makes_null), &runs);
    CHECK(NEXT(&g) == 1 && g.value == NULL);
    CHECK(NEXT(&g) == 1 && g.value == &runs);
    CHECK(NEXT(&g) == 1 && g.value == NULL);
    CHECK_EQ(NEXT(&g), 0);
    CLOSE(&g);

    OPEN(&g, KIND(makes_none), &runs);
    CHECK_EQ(runs, 0); /* suspended before its beginning */
    CHECK_EQ(NEXT(&g), 0);
    CHECK_EQ(NEXT(&g), 0);
    CHECK_EQ(runs, 1);
    CLOSE(&g);
}

/* Promise: one that is closed or dropped before its first value never runs. */
FRAME void KIND(not_begun)(void)
{
    int runs = 0;
    GENERATOR_T g;
    OPEN(&g, KIND(makes_none), &runs);
    CLOSE(&g);
    CHECK_EQ(NEXT(&g), 0);
    OPEN(&g, KIND(makes_none), &runs);
    DROP(&g);
    CHECK_EQ(NEXT(&g), 0);
    CHECK_EQ(runs, 0);
}

/* ---- Ending early ---- */

FRAME void KIND(innermost)(YIELDER_T *y)
{
    CLEANED(a);
    {
        CLEANED(b);
        GENERATE(y, y);
        KEEP_FRAME;
    }
    KEEP_FRAME;
}

FRAME void KIND(between)(YIELDER_T *y, int n)
{
    CLEANED(c);
    if (n)
        KIND(between)(y, n - 1);
    else
        KIND(innermost)(y);
    KEEP_FRAME;
}

GENERATOR(KIND(has_frames), y, arg)
{
    CLEANED(d);
    GENERATE(y, arg);
    {
        CLEANED(e);
        KIND(between)(y, 2);
    }
    GENERATE(y, arg);
}

/* Promise: closing runs the cleanup attributes, innermost first, wherever the generator is; dropping runs none. */
FRAME void KIND(early_end)(void)
{
    GENERATOR_T g;
    OPEN(&g, KIND(has_frames), NULL);
    CHECK_EQ(NEXT(&g), 1);
    CLOSE(&g);
    LOGGED("d");
    CHECK_EQ(NEXT(&g), 0);
    OPEN(&g, KIND(has_frames), NULL);
    CHECK(NEXT(&g) == 1 && NEXT(&g) == 1);
    LOGGED("");
    CLOSE(&g);
    LOGGED("baccced");
    OPEN(&g, KIND(has_frames), NULL);
    CHECK(NEXT(&g) == 1 && NEXT(&g) == 1 && NEXT(&g) == 1);
    LOGGED("baccce");
    CLOSE(&g);
    LOGGED("d");
    OPEN(&g, KIND(has_frames), NULL);
    CHECK(NEXT(&g) == 1 && NEXT(&g) == 1);
    DROP(&g);
    LOGGED("");
    OPEN(&g, KIND(has_frames), NULL);
    while (NEXT(&g))
        ;
    LOGGED("baccced");
    CLOSE(&g);
    LOGGED("");
}

FRAME int KIND(leave_in_the_middle)(int n)
{
    GENERATOR_T g;
    CLEANED(f);
    OPEN(&g, KIND(has_frames), NULL);
    while (NEXT(&g))
        if (n-- == 0) {
            CLOSE(&g);
            return 1;
        }
    return 0;
}

FRAME void KIND(early_returns)(void)
{
    CHECK_EQ(KIND(leave_in_the_middle)(0), 1);
    LOGGED("df");
    CHECK_EQ(KIND(leave_in_the_middle)(1), 1);
    LOGGED("bacccedf");
    CHECK_EQ(KIND(leave_in_the_middle)(3), 0);
    LOGGED("bacccedf");
}

/* A cleanup that makes a value. */
static void KIND(generate_one)(YIELDER_T *const *y)
{
    GENERATE(*y, NULL);
}

GENERATOR(KIND(generates_in_cleanup), y, arg)
{
    __attribute__((cleanup(KIND(generate_one)))) YIELDER_T *again = y;
    GENERATE(y, arg);
    (void)again;
}

FRAME void KIND(close_one_that_generates)(void)
{
    GENERATOR_T g;
    OPEN(&g, KIND(generates_in_cleanup), NULL);
    CHECK_EQ(NEXT(&g), 1);
    CLOSE(&g);
}

/* Promise: they must not yield. In one that ends by itself it is an ordinary value. */
FRAME void KIND(cleanup_that_generates)(void)
{
    GENERATOR_T g;
    OPEN(&g, KIND(generates_in_cleanup), &g);
    CHECK(NEXT(&g) == 1 && NEXT(&g) == 1 && NEXT(&g) == 0);
    CLOSE(&g);
    ABORTS(KIND(close_one_that_generates), CLOSE_NAME, NULL, "yields in its cleanup");
}

/* ---- Several ---- */

GENERATOR(KIND(doubles_of), y, arg)
{
    GENERATOR_T inner;
    CLEANED(g);
    OPEN(&inner, KIND(counts), arg);
    while (NEXT(&inner))
        GENERATE(y, (void *)((intptr_t)inner.value * 2));
    CLOSE(&inner);
}

GENERATOR(KIND(doubles_of_doubles), y, arg)
{
    GENERATOR_T inner;
    CLEANED(h);
    OPEN(&inner, KIND(doubles_of), arg);
    while (NEXT(&inner))
        GENERATE(y, (void *)((intptr_t)inner.value * 2));
    CLOSE(&inner);
}

/* A generator may consume another. */
FRAME void KIND(nested)(void)
{
    GENERATOR_T g;
    intptr_t i = 0;
    OPEN(&g, KIND(doubles_of_doubles), (void *)10);
    while (NEXT(&g))
        CHECK_EQ((intptr_t)g.value, 4 * ++i);
    CHECK_EQ(i, 10);
    CLOSE(&g);
    LOGGED("gh");
}

/* Every consumer's frame has a suspended generator below it. */
FRAME intptr_t KIND(recursive_consumers)(int depth, intptr_t n)
{
    GENERATOR_T g;
    intptr_t sum = 0;
    OPEN(&g, KIND(counts), (void *)n);
    while (NEXT(&g)) {
        if (depth && (intptr_t)g.value == n / 2)
            sum += KIND(recursive_consumers)(depth - 1, n);
        sum += (intptr_t)g.value;
    }
    CLOSE(&g);
    return sum;
}

FRAME void KIND(recursion)(void)
{
    enum { DEEP = 300 };
    CHECK_EQ(KIND(recursive_consumers)(DEEP - 1, 5), DEEP * 15);
}

typedef struct KIND(tree) {
    struct KIND(tree) *left, *right;
    int key;
} KIND(tree_t);

FRAME void KIND(walk)(YIELDER_T *y, KIND(tree_t) *tree)
{
    if (!tree)
        return;
    KIND(walk)(y, tree->left);
    GENERATE(y, tree);
    KIND(walk)(y, tree->right);
    KEEP_FRAME;
}

GENERATOR(KIND(in_order), y, arg)
{
    KIND(walk)(y, arg);
}

/* A list to the left and one to the right: as deep as it has nodes. */
FRAME void KIND(trees)(void)
{
    /* On Power each level takes up to 800 bytes of 256 KiB: all registers that the ABI preserves. */
    enum { NODES = 600 };
    static KIND(tree_t) nodes[NODES];
    GENERATOR_T g;
    int next = 0;
    for (int i = 0; i < NODES; i++)
        nodes[i] = (KIND(tree_t)){i && i < NODES / 2 ? &nodes[i - 1] : NULL,
                                  i >= NODES / 2 && i + 1 < NODES ? &nodes[i + 1] : NULL, i};
    nodes[NODES / 2].left = &nodes[NODES / 2 - 1];
    OPEN(&g, KIND(in_order), &nodes[NODES / 2]);
    while (NEXT(&g))
        CHECK_EQ(((const KIND(tree_t) *)g.value)->key, next++);
    CHECK_EQ(next, NODES);
    CLOSE(&g);
}

FRAME void KIND(hanoi)(YIELDER_T *y, int n, intptr_t from, intptr_t to)
{
    if (!n)
        return;
    KIND(hanoi)(y, n - 1, from, 3 - from - to);
    GENERATE(y, (void *)(from * 3 + to));
    KIND(hanoi)(y, n - 1, 3 - from - to, to);
    KEEP_FRAME;
}

GENERATOR(KIND(moves), y, arg)
{
    KIND(hanoi)(y, (int)(intptr_t)arg, 0, 2);
}

/* The moves are legal, and all discs arrive. */
FRAME void KIND(towers)(void)
{
    enum { DISCS = 10 };
    unsigned pegs[3] = {(1u << DISCS) - 1, 0, 0}, moves = 0;
    GENERATOR_T g;
    OPEN(&g, KIND(moves), (void *)DISCS);
    for (; NEXT(&g); moves++) {
        unsigned *from = &pegs[(intptr_t)g.value / 3], *to = &pegs[(intptr_t)g.value % 3], disc = *from & -*from;
        CHECK(disc && (*to & (disc - 1)) == 0);
        *from ^= disc;
        *to ^= disc;
    }
    CLOSE(&g);
    CHECK_EQ(moves, (1u << DISCS) - 1);
    CHECK_EQ(pegs[2], (1u << DISCS) - 1);
}

/* ---- Frames ---- */

GENERATOR(KIND(has_everything), y, arg)
{
    const intptr_t n = (intptr_t)arg;
    __attribute__((aligned(32))) volatile char lines[33];
    __attribute__((aligned(64))) volatile char line[65];
    double half = 0.5, third = (double)n / 3.0;
    long double quarter = 0.25L;
    CHECK((uintptr_t)lines % 32 == 0 && (uintptr_t)line % 64 == 0);
    for (int i = 0; i < 33; i++)
        lines[i] = (char)i;
    for (int i = 0; i < 65; i++)
        line[i] = (char)(i * 3);
    for (intptr_t i = 1; i <= n; i++) {
        volatile char *room = __builtin_alloca((size_t)i);
        volatile uint32_t array[i];
        room[i - 1] = (char)i;
        array[i - 1] = (uint32_t)i;
        GENERATE(y, (void *)(mix(i, 2, 3, 4.0, 5, 6, 7, 8.0, 9, 10) - mix(0, 2, 3, 4.0, 5, 6, 7, 8.0, 9, 10)));
        CHECK(room[i - 1] == (char)i && array[i - 1] == (uint32_t)i);
        half += 1.0;
        quarter += 1.0L;
    }
    check_print(half, (double)quarter, "%.1f %.2f", (double)n + 0.5, (double)n + 0.25);
    CHECK(third * 3.0 > (double)n - 0.001 && third * 3.0 < (double)n + 0.001);
    for (int i = 0; i < 33; i++)
        CHECK_EQ(lines[i], (char)i);
    for (int i = 0; i < 65; i++)
        CHECK_EQ(line[i], (char)(i * 3));
}

/* Over-aligned locals, alloca(), arrays of variable length, floating point, arguments on the stack, a variable number
 * of them: all of it in the consumer and in the generator. */
FRAME void KIND(frames)(int n, long double long_double)
{
    __attribute__((aligned(32))) volatile char lines[33];
    __attribute__((aligned(64))) volatile char line[65];
    volatile char *room = __builtin_alloca((size_t)n);
    volatile uint16_t before[n];
    double half = 0.5;
    float eighth = 0.125f;
    intptr_t i = 0;
    GENERATOR_T g;
    CHECK((uintptr_t)lines % 32 == 0 && (uintptr_t)line % 64 == 0);
    for (int at = 0; at < 33; at++)
        lines[at] = (char)(at * 5);
    for (int at = 0; at < 65; at++)
        line[at] = (char)(at * 7);
    room[n - 1] = 'r';
    before[n - 1] = 4711;
    OPEN(&g, KIND(has_everything), (void *)(intptr_t)n);
    while (NEXT(&g)) {
        i++;
        CHECK_EQ((intptr_t)g.value, mix(i, 1, 1, 1.0, 1, 1, 1, 1.0, 1, 1) - mix(0, 1, 1, 1.0, 1, 1, 1, 1.0, 1, 1));
        {
            volatile uint32_t array[i + 3]; /* gone before the next value */
            array[i + 2] = (uint32_t)i;
            CHECK_EQ(mix(i, 2, 3, 4.0, 5, 6, 7, 8.0, 9, 10), mix(array[i + 2], 2, 3, 4.0, 5, 6, 7, 8.0, 9, 10));
        }
        half += 1.0;
        eighth += 1.0f;
        long_double += 1.0L;
        check_print(half, (double)eighth, "%.1f %.3f", (double)i + 0.5, (double)i + 0.125);
    }
    CLOSE(&g);
    CHECK_EQ(i, n);
    CHECK(long_double == (long double)n + 1.0L);
    CHECK(room[n - 1] == 'r' && before[n - 1] == 4711);
    for (int at = 0; at < 33; at++)
        CHECK_EQ(lines[at], (char)(at * 5));
    for (int at = 0; at < 65; at++)
        CHECK_EQ(line[at], (char)(at * 7));
}

typedef struct KIND(triple) {
    uintptr_t words[3];
} KIND(triple_t);

/* Needs no alignment: compilers that know it call it with an odd number of words on the stack, and take them off
 * later. */
FRAME uintptr_t KIND(middle_of)(KIND(triple_t) triple)
{
    __asm__ volatile("" : : "m"(triple));
    return triple.words[1];
}

GENERATOR(KIND(calls_before), y, arg)
{
    for (uintptr_t i = 1; i <= (uintptr_t)arg; i++)
        GENERATE(y, (void *)KIND(middle_of)((KIND(triple_t)){{0, i, 0}}));
    KIND(middle_of)((KIND(triple_t)){{0, 1, 0}});
}

/* The generator's stack use does not change the alignment of its consumer's calls. */
FRAME void KIND(aligned_calls)(void)
{
    char text[40];
    int i = 0;
    GENERATOR_T g;
    OPEN(&g, KIND(calls_before), (void *)4);
    while (NEXT(&g)) {
        i++;
        snprintf(text, sizeof text, "%.1f %.1f", (double)i, 0.5);
        CHECK_EQ(text[0], '0' + i);
        CHECK_EQ((intptr_t)g.value, i);
    }
    snprintf(text, sizeof text, "%.1f", (double)i);
    CHECK_EQ(text[0], '4');
    CLOSE(&g);
}

static inline __attribute__((always_inline)) intptr_t KIND(inlined_sum)(intptr_t n)
{
    intptr_t sum = 0;
    GENERATOR_T g;
    OPEN(&g, KIND(counts), (void *)n);
    while (NEXT(&g))
        sum += (intptr_t)g.value;
    CLOSE(&g);
    return sum;
}

static inline __attribute__((always_inline)) intptr_t KIND(inlined_first)(intptr_t n)
{
    intptr_t first;
    GENERATOR_T g;
    OPEN(&g, KIND(counts), (void *)n);
    first = NEXT(&g) ? (intptr_t)g.value : 0;
    DROP(&g);
    return first;
}

/* A function that opens and closes may be inlined, into a loop and into arguments of calls. */
FRAME void KIND(inlined)(int n)
{
    for (intptr_t i = 0; i < n; i++)
        CHECK_EQ(mix(KIND(inlined_sum)(i), KIND(inlined_first)(i), 0, 0, 0, 0, 0, KIND(inlined_sum)(3),
                     KIND(inlined_sum)(i), KIND(inlined_first)(i)),
                 mix(i * (i + 1) / 2, i > 0, 0, 0, 0, 0, 0, 6, i * (i + 1) / 2, i > 0));
}

GENERATOR(KIND(rounds), y, arg)
{
    CHECK_EQ(fegetround(), FE_UPWARD);
    GENERATE(y, arg);
    CHECK_EQ(fegetround(), FE_DOWNWARD);
    fesetround(FE_TOWARDZERO);
}

/* Promise: it runs in its consumer's floating-point environment. */
FRAME void KIND(environment)(void)
{
    GENERATOR_T g;
    fesetround(FE_UPWARD);
    OPEN(&g, KIND(rounds), NULL);
    CHECK_EQ(NEXT(&g), 1);
    fesetround(FE_DOWNWARD);
    CHECK_EQ(NEXT(&g), 0);
    CHECK_EQ(fegetround(), FE_TOWARDZERO);
    fesetround(FE_TONEAREST);
    CLOSE(&g);
}

/* ---- In coroutines ---- */

GENERATOR(KIND(looks_around), y, arg)
{
    CHECK(aco_get_co() == arg);
    CHECK(!aco_is_in_main_co());
    CHECK_EQ(aco_state(arg), ACO_STATE_RUNNING);
    GENERATE(y, aco_get_co());
    TRY_TO_DEFER(arg);
    CHECK(aco_get_co() == arg);
}

static void *KIND(consume_looking)(void *arg)
{
    GENERATOR_T g;
    OPEN(&g, KIND(looks_around), aco_get_co());
    CHECK(NEXT(&g) == 1 && g.value == aco_get_co());
    aco_yield();
    CHECK_EQ(NEXT(&g), 0);
    CLOSE(&g);
    return arg;
}

/* Promise: a generator is not a coroutine: aco_get_co() is its consumer's, and so is what it defers, if it can. */
FRAME void KIND(whose_it_is)(const aco_options_t *options)
{
    aco_t *co = aco_new(KIND(consume_looking), &co, options);
    aco_resume(co);
    CHECK(aco_send(co, NULL) == &co);
    LOGGED(DEFERRED);
    aco_destroy(co);
}

/* What fills the stack that others share. */
static void *KIND(fills)(void *arg)
{
    volatile char bytes[10000];
    for (;;) {
        for (unsigned i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)0xa5;
        aco_yield();
        CHECK(bytes[9999] == (char)0xa5);
    }
    return arg;
}

static void *KIND(consume_yielding)(void *arg)
{
    volatile uint32_t words[50];
    intptr_t sum = 0;
    GENERATOR_T g, inner;
    for (unsigned i = 0; i < 50; i++)
        words[i] = i;
    OPEN(&g, KIND(has_everything), (void *)20);
    while (NEXT(&g)) {
        aco_yield();
        OPEN(&inner, KIND(counts), g.value);
        while (NEXT(&inner)) {
            if ((intptr_t)inner.value % 4 == 0)
                aco_yield();
            sum += (intptr_t)inner.value;
        }
        CLOSE(&inner);
    }
    CLOSE(&g);
    for (unsigned i = 0; i < 50; i++)
        CHECK_EQ(words[i], i);
    CHECK_EQ(sum, 20 * 21 * 22 / 6);
    return arg;
}

/* Generators below and beside the frames of several coroutines whose consumers yield, copied to and fro on a share
 * stack. */
FRAME void KIND(many_coroutines)(const aco_options_t *options)
{
    enum { COROUTINES = 5 };
    aco_t *co[COROUTINES], *fills = aco_new(KIND(fills), NULL, options);
    int running = COROUTINES;
    for (int i = 0; i < COROUTINES; i++)
        co[i] = aco_new(KIND(consume_yielding), &running, options);
    while (running) {
        for (int i = 0; i < COROUTINES; i++)
            if (!co[i]->is_end) {
                aco_resume(co[i]);
                running -= co[i]->is_end;
            }
        aco_resume(fills);
    }
    for (int i = 0; i < COROUTINES; i++) {
        CHECK(aco_result(co[i]) == &running);
        aco_destroy(co[i]);
    }
    CHECK_EQ(aco_cancel(fills), 0);
    aco_destroy(fills);
}

/* ---- A coroutine that is cancelled, or yields, in its generator ---- */

FRAME void KIND(yields_deep)(int n)
{
    CLEANED(i);
    if (n)
        KIND(yields_deep)(n - 1);
    else
        aco_yield();
    KEEP_FRAME;
}

GENERATOR(KIND(yields), y, arg)
{
    CLEANED(j);
    GENERATE(y, arg);
    KIND(yields_deep)(2);
    GENERATE(y, arg);
    aco_yield();
}

GENERATOR(KIND(consumes_yields), y, arg)
{
    GENERATOR_T g;
    CLEANED(k);
    OPEN(&g, KIND(yields), arg);
    while (NEXT(&g)) {
        CLEANED(l);
        GENERATE(y, g.value);
    }
    CLOSE(&g);
}

FRAME void KIND(consume_in_frame)(void *arg)
{
    GENERATOR_T g;
    CLEANED(m);
    defer_log("1");
    OPEN(&g, KIND(consumes_yields), arg);
    while (NEXT(&g)) {
        CLEANED(n);
        CHECK(g.value == arg);
        note('v');
    }
    CLOSE(&g);
    CHECK_EQ(aco_defer_pop(0), 0);
    KEEP_FRAME;
}

static void *KIND(yields_in_generator)(void *arg)
{
    CLEANED(o);
    defer_log("2");
    KIND(consume_in_frame)(arg);
    KEEP_FRAME;
    return arg;
}

/* Promises: a generator may yield for the coroutine that consumes it; cancelled there, the generators are unwound, then
 * the consumers, each frame with its deferred calls first. */
FRAME void KIND(yield_and_cancel)(const aco_options_t *options)
{
    aco_t *co = aco_new(KIND(yields_in_generator), &co, options);
    aco_resume(co);
    LOGGED("vnl");
    aco_resume(co);
    LOGGED("iiivnl");
    CHECK(aco_send(co, NULL) == &co);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    LOGGED("jkmo2");
    for (int at = 0; at < 2; at++) {
        CHECK_EQ(aco_restart(co, KIND(yields_in_generator), &co), 0);
        for (int i = 0; i <= at; i++)
            aco_resume(co);
        LOGGED(at ? "vnliiivnl" : "vnl");
        CHECK_EQ(aco_cancel(co), 0);
        CHECK_EQ(aco_state(co), ACO_STATE_DONE);
        LOGGED(at ? "jk1m2o" : "iiijk1m2o");
    }
    aco_destroy(co);
}

static void *KIND(yields_while_consuming)(void *arg)
{
    GENERATOR_T g;
    CLEANED(p);
    OPEN(&g, KIND(has_frames), arg);
    CHECK_EQ(NEXT(&g), 1);
    aco_yield();
    CLOSE(&g);
    return arg;
}

/* A coroutine that is cancelled while its generator is suspended does not touch the generator. */
FRAME void KIND(cancel_beside)(const aco_options_t *options)
{
    aco_t *co = aco_new(KIND(yields_while_consuming), NULL, options);
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("p");
    aco_destroy(co);
}
