/* Measures the depth of stacks: high-water marks, trimming, and the report by entry function. */
#include "tools/tools.h"

#include "aco/pool.h"

#include <string.h>

/* ---- One stack ---- */

static uintptr_t page_down(const void *p)
{
    return (uintptr_t)p & ~(uintptr_t)(aco__os_page_size() - 1);
}

/* The first whole page of a stack. A canary is in the page before it. */
static char *first_page(const aco_share_stack_t *stack)
{
    return (char *)aco__round_up((uintptr_t)stack->ptr, aco__os_page_size());
}

/* What is below the first whole page cannot be measured: it counts as used once that page is, or if there is none. */
static size_t depth(const aco_share_stack_t *stack)
{
    const char *top = stack->aco__top, *from = first_page(stack);
    uintptr_t end = page_down(top);
    size_t unused = end > (uintptr_t)from ? aco__os_first_resident(from, end - (uintptr_t)from) : 0;
    return (size_t)(top - (unused ? from + unused : (const char *)stack->ptr));
}

/* 0 if `co` has a private stack; else aco__fail(). */
static int check_private(const char *call, const aco_t *co)
{
    if (!co)
        return aco__fail(0, EINVAL, call, NULL, "the coroutine is NULL");
    if (aco__status(co) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, call, co, "was destroyed");
    if (!aco__has(co, ACO__PRIVATE))
        return aco__fail(0, EINVAL, call, co, "%s",
                         co->share_stack ? "runs on a share stack: save_stack.max_cpsz is the most bytes copied"
                                         : "is a main coroutine");
    if (aco__stack_is_callers(co->share_stack))
        return aco__fail(0, EINVAL, call, co, "runs on stack_memory");
    return 0;
}

ptrdiff_t aco_stack_high_water(const aco_t *co)
{
    return check_private("aco_stack_high_water", co) != 0 ? -1 : (ptrdiff_t)depth(co->share_stack);
}

/* Discards the pages below `sp`. The frames of a suspended coroutine and the red zone below them stay. */
static void trim_below(const aco_share_stack_t *stack, const void *sp)
{
    enum { RED_ZONE = 512 }; /* the largest of any ABI */
    char *from = first_page(stack), *to = (char *)page_down((const char *)sp - RED_ZONE);
    if (from < to && !aco__stack_is_callers(stack))
        aco__os_discard(from, (size_t)(to - from), 0);
}

/* The same. If the coroutine is measured, this first records the depth. */
static void trim(const aco_t *co, const void *sp)
{
    aco__cold_t *cold = aco__cold(co);
    if (cold && cold->usage) {
        size_t bytes = depth(co->share_stack);
        if (cold->trimmed_depth < bytes)
            cold->trimmed_depth = bytes;
    }
    trim_below(co->share_stack, sp);
}

int aco_stack_trim(aco_t *co)
{
    static const char call[] = "aco_stack_trim";
    const aco__thread_t *self = aco__self();
    if (check_private(call, co) != 0)
        return -1;
    if (aco__is_task(co) && co->share_stack->aco__thread != self)
        return aco__fail(0, EPERM, call, co, "is a task of another thread");
    if (co == self->running || aco__status(co) == ACO__RESUMING || aco__task_is_resuming(self, co))
        return aco__fail(0, EBUSY, call, co, "%s",
                         co == self->running ? "is running" : "is resuming another coroutine");
    if (aco__status(co) == ACO__ENDED)
        trim(co, co->share_stack->aco__top);
    else if (co->share_stack->aco__trim_mask & ACO__TRIM_NEVER)
        return aco__fail(0, EBUSY, call, co, "is resuming another coroutine");
    else if (aco__is_on_its_stack(co, co->aco__self.sp))
        trim(co, co->aco__self.sp);
    else
        return aco__fail(0, EBUSY, call, co, "is suspended in a generator's body");
    return 0;
}

void aco__task_trim(const aco_t *co)
{
    if (aco__is_on_its_stack(co, co->aco__self.sp))
        trim(co, co->aco__self.sp);
}

/* ---- By entry function ---- */

/* `next` and the numbers are atomic. The process lock protects `name`. The other fields do not change. */
struct aco__usage {
    struct aco__usage *next;
    aco_function_t entry;
    int is_private;
    size_t made, alive, most_alive, stack_size, ended, deepest, depths, areas, switches, most_live, lives;
    char name[ACO_NAME_SIZE];
};
typedef struct aco__usage usage_t;

enum { SAVING = 1 << 20, MUCH_TO_COPY = 1000 };

static usage_t *usages, **usages_end = &usages; /* the list; changed under the process lock, read without */

static size_t get(const size_t *field)
{
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static void add_to(size_t *field, size_t by)
{
    __atomic_fetch_add(field, by, __ATOMIC_RELAXED);
}

#ifdef _WIN32
static void free_usages(void)
{
    while (usages) {
        usage_t *next = usages->next;
        aco__release(usages, sizeof *usages);
        usages = next;
    }
}

ACO__AT_LOAD static void register_usages_end(void)
{
    aco__upcalls.usages_end = free_usages;
}
#endif

static void raise_to(size_t *field, size_t to)
{
    size_t now = get(field);
    while (now < to && !__atomic_compare_exchange_n(field, &now, to, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static usage_t *known_usage(usage_t *usage, aco_function_t entry, int is_private)
{
    while (usage && (usage->entry != entry || usage->is_private != is_private))
        usage = __atomic_load_n(&usage->next, __ATOMIC_ACQUIRE);
    return usage;
}

/* NULL if there is no memory: then the coroutine is not measured. */
static usage_t *usage_of(aco_function_t entry, int is_private)
{
    usage_t *usage = known_usage(__atomic_load_n(&usages, __ATOMIC_ACQUIRE), entry, is_private), *made;
    if (usage || !(made = aco__allocate(sizeof *made))) /* without the lock: the allocator may be the user's */
        return usage;
    memset(made, 0, sizeof *made);
    made->entry = entry;
    made->is_private = is_private;
    aco__lock();
    usage = known_usage(usages, entry, is_private);
    if (!usage) {
        ACO__ASSERT(!*usages_end);
        __atomic_store_n(usages_end, made, __ATOMIC_RELEASE);
        usages_end = &made->next;
    }
    aco__unlock();
    if (!usage)
        return made;
    aco__release(made, sizeof *made);
    return usage;
}

void aco__usage_begin(aco_t *co, aco_function_t entry)
{
    aco__cold_t *cold = aco__cold_make(co);
    int is_private = aco__has(co, ACO__PRIVATE) != 0;
    if (!cold)
        return;
    cold->usage = usage_of(entry, is_private);
    if (!cold->usage)
        return;
    add_to(&cold->usage->made, 1);
    add_to(&cold->usage->alive, 1);
    raise_to(&cold->usage->most_alive, get(&cold->usage->alive));
    raise_to(&cold->usage->stack_size, aco__stack_made_with(co->share_stack));
    if (is_private)
        trim_below(co->share_stack, co->share_stack->aco__top);
    aco__set_state_byte(co, co->aco__state | ACO__INSTRUMENTED);
}

void aco__usage_left(const aco_t *co, aco__cold_t *cold, const void *sp)
{
    size_t live = (size_t)((uintptr_t)co->share_stack->aco__top - (uintptr_t)sp);
    if (!aco__is_on_its_stack(co, sp) || aco__status(co) == ACO__DESTROYED) /* in a generator's body; an ended task */
        return;
    add_to(&cold->usage->switches, 1);
    add_to(&cold->usage->lives, live);
    raise_to(&cold->usage->most_live, live);
}

void aco__usage_end(const aco_t *co, aco__cold_t *cold)
{
    usage_t *usage = cold->usage;
    cold->usage = NULL;
    ACO__ASSERT(get(&usage->alive) && usage->is_private == (aco__has(co, ACO__PRIVATE) != 0));
    add_to(&usage->alive, (size_t)-1);
    add_to(&usage->ended, 1);
    if (aco__has(co, ACO__PRIVATE)) {
        size_t bytes = depth(co->share_stack);
        bytes = bytes > cold->trimmed_depth ? bytes : cold->trimmed_depth;
        cold->trimmed_depth = 0;
        add_to(&usage->depths, bytes);
        raise_to(&usage->deepest, bytes);
    } else {
        add_to(&usage->areas, co->save_stack.sz);
    }
    if (*cold->name) {
        aco__lock();
        memcpy(usage->name, cold->name, sizeof usage->name);
        aco__unlock();
    }
}

int aco_stack_measure(int on)
{
    aco__thread_t *self = aco__self();
    if (on && !self->measures) {
        aco__thread_will_end();
        ACO__UPCALL(cache_free, (self));
        self->cached_room = 0; /* as if the cache were full: it keeps none */
        self->measures = 1;
    } else if (!on && self->measures) {
        self->cached_room = ACO__MOST_CACHED;
        self->measures = 0;
    }
    return 0;
}

static size_t mean(size_t sum, size_t n)
{
    return n ? (sum + n / 2) / n : 0;
}

static aco_stack_advice_t advice(const aco_stack_usage_t *u)
{
    size_t private_bytes = u->is_private ? u->bytes : u->other_bytes,
           shared_bytes = u->is_private ? u->other_bytes : u->bytes;
    int saves = private_bytes > shared_bytes && (private_bytes - shared_bytes) * u->most_alive >= SAVING;
    if (!u->switches) /* no switch has left it: nothing is known */
        return ACO_STACK_AS_IT_IS;
    if (u->is_private)
        return saves && u->mean_live <= MUCH_TO_COPY ? ACO_STACK_BETTER_SHARED : ACO_STACK_AS_IT_IS;
    return saves && u->mean_live <= MUCH_TO_COPY ? ACO_STACK_AS_IT_IS : ACO_STACK_BETTER_PRIVATE;
}

static aco_stack_usage_t summary(const usage_t *usage, char name[ACO_NAME_SIZE])
{
    aco_stack_usage_t u;
    size_t shared_bytes, private_bytes;
    memset(&u, 0, sizeof u);
    aco__lock();
    memcpy(name, usage->name, ACO_NAME_SIZE);
    aco__unlock();
    memcpy(&u.entry, &usage->entry, sizeof usage->entry);
    u.name = name;
    u.is_private = usage->is_private;
    u.made = get(&usage->made);
    u.most_alive = get(&usage->most_alive);
    u.stack_size = get(&usage->stack_size);
    u.deepest = get(&usage->deepest);
    u.mean_depth = mean(get(&usage->depths), get(&usage->ended));
    u.switches = get(&usage->switches);
    u.most_live = get(&usage->most_live);
    u.mean_live = mean(get(&usage->lives), u.switches);
    shared_bytes = sizeof(aco_t) +
        (u.is_private || !get(&usage->ended) ? u.most_live : mean(get(&usage->areas), get(&usage->ended)));
    private_bytes = u.mean_depth > u.most_live ? u.mean_depth : u.most_live + ACO__CACHE_LINE;
    private_bytes = ACO__PRIVATE_BLOCK + aco__round_up(private_bytes, aco__os_page_size());
    u.bytes = u.is_private ? private_bytes : shared_bytes;
    u.other_bytes = u.is_private ? shared_bytes : private_bytes;
    u.advice = advice(&u);
    return u;
}

int aco_stack_usage(int (*visit)(const aco_stack_usage_t *usage, void *arg), void *arg)
{
    int result = 0;
    if (!visit)
        return aco__fail(0, EINVAL, "aco_stack_usage", NULL, "the visitor is NULL");
    for (const usage_t *usage = __atomic_load_n(&usages, __ATOMIC_ACQUIRE); usage && !result;
         usage = __atomic_load_n(&usage->next, __ATOMIC_ACQUIRE)) {
        char name[ACO_NAME_SIZE];
        aco_stack_usage_t u = summary(usage, name);
        result = visit(&u, arg);
    }
    return result;
}

static int print_usage(const aco_stack_usage_t *u, void *to)
{
    static const char *const advices[] = {"-", "share stack", "private stack"};
    void *entry;
    memcpy(&entry, &u->entry, sizeof entry);
    return fprintf(to, "%-18p %-16.16s %-7s %9zu %9zu %9zu %9zu %9zu %11zu %9zu %9zu %9zu %9zu  %s\n", entry,
                   *u->name ? u->name : "-", u->is_private ? "private" : "share", u->made, u->most_alive, u->stack_size,
                   u->deepest, u->mean_depth, u->switches, u->most_live, u->mean_live, u->bytes, u->other_bytes,
                   advices[u->advice]) < 0
        ? -1
        : 0;
}

int aco_stack_report(FILE *to)
{
    if (!to)
        return aco__fail(0, EINVAL, "aco_stack_report", NULL, "the file is NULL");
    if (fprintf(to, "%-18s %-16s %-7s %9s %9s %9s %9s %9s %11s %9s %9s %9s %9s  %s\n", "entry function", "name",
                "stack", "made", "at once", "size", "deepest", "mean", "switches", "most live", "mean live", "bytes",
                "if other", "cheaper on") < 0)
        return -1;
    return aco_stack_usage(print_usage, to);
}
