/* Coroutines by the million: Acorn on a share stack. What is measured: memory_scale.h. With SCALE_ACO_ENTRY the entry functions
 * are marked by ACO_ENTRY, where the compiler has an attribute for it. */
#include "bench.h"

#include <aco.h>

typedef aco_t co_t;
#ifdef SCALE_ACO_ENTRY
#define IMPL "acorn, ACO_ENTRY"
/* The attribute stands in a declaration of its own: the definition has it from there. */
#define SCALE_HOLDER(bytes)                                                                                            \
    static ACO_ENTRY void hold_##bytes(void);                                                                          \
    COPYING_HOLDER(bytes)
#define SCALE_ENTRY_POINT(bytes) ACO_ENTRY_POINT(hold_##bytes)
typedef aco_cofuncp_t co_entry_t;
#else
#define IMPL "acorn"
#endif
#define SCALE_PREFETCH
#define SCALE_LARGE_PAGES

static aco_t *main_co;
static aco_share_stack_t *share_stack;

static void co_prepare(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    share_stack = aco_share_stack_new(64 << 10);
}

BENCH_INLINE co_t *co_new(size_t save_sz, void (*entry)(void), size_t tag)
{
    return aco_create(main_co, share_stack, save_sz, entry, (void *)tag);
}

BENCH_INLINE void co_resume(co_t *co)
{
    aco_resume(co);
}

BENCH_INLINE void co_prefetch(const co_t *co)
{
    aco_prefetch(co);
}

BENCH_INLINE void co_prefetch_more(const co_t *co)
{
    aco_prefetch_stack(co);
}

BENCH_INLINE size_t co_copied(const co_t *co)
{
    return co->save_stack.max_cpsz;
}

BENCH_INLINE void co_destroy(co_t *co)
{
    aco_destroy(co);
}

BENCH_INLINE uint64_t copying_tag(void)
{
    return (uintptr_t)aco_get_arg();
}

BENCH_INLINE void copying_yield(void)
{
    aco_yield();
}

#ifdef SCALE_ACO_ENTRY
#define SCALE_OWN_MAIN
#endif
#include "memory_scale.h"

#ifdef SCALE_ACO_ENTRY
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

int main(int argc, char **argv)
{
    if (sizeof TEXT(ACO_ENTRY) == 1) {
        bench_json_missing("scale", IMPL, "{}", "ACO_ENTRY is empty: this compiler has no attribute for it");
        return 0;
    }
    return scale_main(argc, argv);
}
#endif
