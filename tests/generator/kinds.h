/* What the generated functions are made of: with PLAIN defined a generator is a function that fills an array, without
 * it a generator of either kind. Included twice by each generated file, so without a guard. */
#undef NAME
#undef OWN
#undef IN_STACK
#undef OWN_YIELDER
#undef IN_STACK_YIELDER
#undef EMIT_OWN
#undef EMIT_IN_STACK
#undef OWN_EACH
#undef OWN_END
#undef OWN_LEAVE
#undef IN_STACK_EACH
#undef IN_STACK_END
#undef IN_STACK_LEAVE
#undef PAUSE
#undef PAUSE_INLINE

#ifdef PLAIN

#define NAME(name) plain_##name
#define OWN(name) static NOINLINE void name(values_t *y, void *arg)
#define IN_STACK(name) OWN(name)
#define OWN_YIELDER values_t *y
#define IN_STACK_YIELDER values_t *y
#define EMIT_OWN(v) add_value(y, (uint32_t)(v))
#define EMIT_IN_STACK(v) EMIT_OWN(v)
#define OWN_EACH(g, name, arg, v)                                                                                      \
    {                                                                                                                  \
        values_t g;                                                                                                    \
        g.count = 0;                                                                                                   \
        name(&g, arg);                                                                                                 \
        for (unsigned g##_at = 0; g##_at < g.count; g##_at++) {                                                        \
            const uint32_t v = g.values[g##_at];
#define OWN_END(g, how)                                                                                                \
        }                                                                                                              \
    }
#define OWN_LEAVE(g, how)
#define IN_STACK_EACH OWN_EACH
#define IN_STACK_END OWN_END
#define IN_STACK_LEAVE OWN_LEAVE
#define PAUSE()
#define PAUSE_INLINE()

#else

#define NAME(name) live_##name
#define OWN(name) ACO_GENERATOR(name, y, arg)
#define IN_STACK(name) ACO_IN_STACK_GENERATOR(name, y, arg)
#define OWN_YIELDER aco_yielder_t *y
#define IN_STACK_YIELDER aco_in_stack_yielder_t *y
#define EMIT_OWN(v) aco_generate(y, (void *)(uintptr_t)(uint32_t)(v))
#define EMIT_IN_STACK(v) aco_generate_in_stack(y, (void *)(uintptr_t)(uint32_t)(v))
#define OWN_EACH(g, name, arg, v)                                                                                      \
    {                                                                                                                  \
        aco_generator_t g;                                                                                             \
        if (aco_generator_open(&g, name, arg, NULL) != 0)                                                              \
            refused();                                                                                                 \
        while (aco_generator_next(&g)) {                                                                               \
            const uint32_t v = (uint32_t)(uintptr_t)g.value;
#define OWN_END(g, how)                                                                                                \
        }                                                                                                              \
        aco_generator_##how(&g);                                                                                       \
    }
#define OWN_LEAVE(g, how) aco_generator_##how(&g);
#define IN_STACK_EACH(g, name, arg, v)                                                                                 \
    {                                                                                                                  \
        int g##_more;                                                                                                  \
        aco_in_stack_t g;                                                                                              \
        aco_in_stack_open(&g, name, arg);                                                                              \
        while ((g##_more = aco_in_stack_next(&g)) > 0) {                                                               \
            const uint32_t v = (uint32_t)(uintptr_t)g.value;
#define IN_STACK_END(g, how)                                                                                           \
        }                                                                                                              \
        if (g##_more < 0 || aco_in_stack_##how(&g) != 0)                                                               \
            refused();                                                                                                 \
    }
#define IN_STACK_LEAVE(g, how)                                                                                         \
    if (aco_in_stack_##how(&g) != 0)                                                                                   \
        refused();
#define PAUSE() pause_now()
#define PAUSE_INLINE()                                                                                                 \
    do {                                                                                                               \
        if (may_pause())                                                                                               \
            aco_yield();                                                                                               \
    } while (0)

#endif
