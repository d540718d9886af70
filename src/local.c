/* What few coroutines have: a name, a slot, coroutine-local values. It stands in an extra record: that of a private coroutine at
 * the top of its stack, that of another one in memory of its own, with the pointer to it behind the save area. */
#include "os.h"
#include "track.h"

#include <errno.h>
#include <string.h>

/* ---- The extra record ---- */

static aco__extra_t **pointer_behind_area(const aco_t *co)
{
    return (aco__extra_t **)(void *)((char *)co->save_stack.ptr + co->save_stack.sz);
}

aco__extra_t *aco__extra_of(const aco_t *co)
{
    if (!(co->aco__state & ACO__EXTRA))
        return NULL;
    return aco__has(co, ACO__PRIVATE) ? aco__stack_extra(co->share_stack) : *pointer_behind_area(co);
}

aco__extra_t *aco__extra(const aco_t *co)
{
    const aco__thread_t *self;
    if (co)
        return aco__extra_of(co);
    self = aco__self();
    return self->rare && self->rare->has_main_extra ? &self->rare->main_extra : NULL;
}

aco__extra_t *aco__extra_make(aco_t *co)
{
    aco__extra_t *extra = aco__extra(co);
    size_t sz = sizeof *extra;
    if (extra)
        return extra;
    if (!co) {
        aco__rare_t *rare = aco__rare();
        if (!rare)
            return NULL;
        rare->has_main_extra = 1;
        return &rare->main_extra;
    }
    if (aco__has(co, ACO__PRIVATE)) {
        extra = aco__stack_extra(co->share_stack);
    } else {
        extra = aco__memory_new(&sz);
        if (!extra)
            return NULL;
        memset(extra, 0, sizeof *extra);
        if (aco__phase(co) == ACO__MAIN || aco__save_area_reserve(co) != 0) {
            aco__memory_free(extra, sz);
            return NULL;
        }
        *pointer_behind_area(co) = extra;
    }
    aco__set_state_byte(co, co->aco__state | ACO__EXTRA);
    return extra;
}

void aco__values_free(aco__extra_t *extra)
{
    for (size_t i = 0; i < extra->values_sz / sizeof *extra->values; i++)
        if (extra->values[i].size)
            aco__memory_free(extra->values[i].value, extra->values[i].size);
    if (extra->values)
        aco__memory_free(extra->values, extra->values_sz);
    extra->values = NULL;
    extra->values_sz = 0;
}

void aco__extra_clear(aco_t *co)
{
    aco__extra_t *extra = aco__extra(co);
    if (!extra)
        return;
    if (extra->usage) /* it is made as new before it ever ran */
        aco__usage_end(co, extra);
    aco__values_free(extra);
    extra->slot = NULL;
    memset(extra->exceptions, 0, sizeof extra->exceptions);
}

void aco__extra_free(aco_t *co)
{
    aco__extra_t *extra = aco__extra(co);
    if (!extra)
        return;
    aco__values_free(extra);
    while (extra->deferred) {
        aco__deferred_t *next = extra->deferred->next;
        aco__memory_free(extra->deferred, sizeof *next);
        extra->deferred = next;
    }
    memset(extra, 0, sizeof *extra);
    if (!aco__has(co, ACO__PRIVATE)) {
        aco__memory_free(extra, sizeof *extra);
        co->save_stack.sz += sizeof(void *);
    }
    aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__EXTRA);
}

/* ---- Name and slot ---- */

void aco__name(aco__extra_t *extra, const char *name)
{
    char kept[ACO_NAME_SIZE] = {0}; /* `name` may be part of the old one */
    for (int i = 0; i < ACO_NAME_SIZE - 1 && name[i]; i++)
        kept[i] = name[i];
    memcpy(extra->name, kept, sizeof kept);
    aco__observe_name(extra);
}

const char *aco_name(const aco_t *co)
{
    aco__extra_t *extra = co ? aco__extra(co) : NULL;
    return extra ? extra->name : "";
}

static int no_memory(const char *call)
{
    return aco__refuse_memory(0, call, sizeof(aco__extra_t));
}

int aco_set_name(aco_t *co, const char *name)
{
    aco__extra_t *extra;
    if (!co || !name || !co->share_stack)
        return aco__refuse(0, EINVAL, "aco_set_name", co, !co ? "the coroutine is NULL" : !name ? "the name is NULL" : "is a main coroutine");
    if (aco__phase(co) == ACO__GONE)
        return aco__refuse(0, ESRCH, "aco_set_name", co, "was destroyed");
    extra = aco__extra_make(co);
    if (!extra)
        return no_memory("aco_set_name");
    aco__name(extra, name);
    return 0;
}

/* Main coroutine objects stand for their thread's own flow of control. */
static aco_t *meant(const aco_t *co)
{
    if (!co)
        co = aco__running();
    return co && co->share_stack ? (aco_t *)(uintptr_t)co : NULL;
}

void *aco_slot(const aco_t *co)
{
    aco__extra_t *extra = aco__extra(meant(co));
    return extra ? extra->slot : NULL;
}

int aco_set_slot(aco_t *co, void *p)
{
    aco__extra_t *extra;
    if (co && aco__phase(co) == ACO__GONE)
        return aco__refuse(0, ESRCH, "aco_set_slot", co, "was destroyed");
    extra = aco__extra_make(meant(co));
    if (!extra)
        return no_memory("aco_set_slot");
    extra->slot = p;
    return 0;
}

/* ---- Coroutine-local storage ---- */

/* A key in use has an odd generation, atomic: set after its destructor. */
static struct {
    uint32_t generation;
    void (*destructor)(void *); /* atomic */
} keys[ACO_KEYS];
static unsigned keys_tried; /* where to look first; atomic */

enum { DESTRUCTOR_ROUNDS = 4 };

int aco_key_create(aco_key_t *key, void (*destructor)(void *))
{
    if (!key)
        return aco__refuse(0, EINVAL, "aco_key_create", NULL, "the key is NULL");
    for (unsigned n = 0; n < ACO_KEYS; n++) {
        unsigned i = __atomic_fetch_add(&keys_tried, 1, __ATOMIC_RELAXED) % ACO_KEYS;
        uint32_t generation = __atomic_load_n(&keys[i].generation, __ATOMIC_RELAXED);
        if (generation % 2 == 0 && __atomic_compare_exchange_n(&keys[i].generation, &generation, generation + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&keys[i].destructor, destructor, __ATOMIC_RELEASE);
            key->index = i;
            key->generation = generation + 1;
            return 0;
        }
    }
    return aco__refuse(0, EAGAIN, "aco_key_create", NULL, "all %d keys are in use", ACO_KEYS);
}

static int is_key(aco_key_t key)
{
    return key.index < ACO_KEYS && key.generation % 2 == 1 && __atomic_load_n(&keys[key.index].generation, __ATOMIC_ACQUIRE) == key.generation;
}

int aco_key_delete(aco_key_t key)
{
    uint32_t generation = key.generation;
    if (!is_key(key) ||
        !__atomic_compare_exchange_n(&keys[key.index].generation, &generation, generation + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return aco__refuse(0, EINVAL, "aco_key_delete", NULL, "not a key in use");
    return 0;
}

/* The value's place, or NULL. */
static aco__value_t *place(aco__extra_t *extra, uint32_t index)
{
    return extra && index < extra->values_sz / sizeof *extra->values ? &extra->values[index] : NULL;
}

void *aco_get_local(aco_key_t key)
{
    aco__value_t *value = place(aco__extra(meant(NULL)), key.index);
    return value && value->generation == key.generation && is_key(key) ? value->value : NULL;
}

/* NULL and errno when there is no memory. */
static aco__value_t *place_make(aco_t *co, uint32_t index)
{
    aco__extra_t *extra = aco__extra_make(co);
    if (extra && !place(extra, index)) {
        size_t sz = (index + 4) * sizeof(aco__value_t);
        aco__value_t *values = aco__memory_new(&sz);
        if (!values)
            return NULL;
        sz -= sz % sizeof *values;
        memset(values, 0, sz);
        if (extra->values) {
            memcpy(values, extra->values, extra->values_sz);
            aco__memory_free(extra->values, extra->values_sz);
        }
        extra->values = values;
        extra->values_sz = sz;
    }
    return place(extra, index);
}

int aco_set_local(aco_key_t key, void *p)
{
    aco__value_t *value;
    if (!is_key(key))
        return aco__refuse(0, EINVAL, "aco_set_local", NULL, "not a key in use");
    value = place_make(meant(NULL), key.index);
    if (!value)
        return no_memory("aco_set_local");
    value->value = p;
    value->generation = key.generation;
    return 0;
}

void aco__values_destroy(aco__extra_t *extra)
{
    int again = 1;
    for (int round = 0; round < DESTRUCTOR_ROUNDS && again; round++) {
        again = 0;
        for (uint32_t i = 0; place(extra, i); i++) {
            aco__value_t *at = place(extra, i);
            aco_key_t key = {i, at->generation};
            void *value = at->value;
            void (*destructor)(void *);
            if (!value || at->size || !is_key(key))
                continue;
            destructor = __atomic_load_n(&keys[i].destructor, __ATOMIC_ACQUIRE);
            at->value = NULL;
            if (destructor) {
                destructor(value); /* may set values, and so move them */
                again = 1;
            }
        }
    }
}

void *aco__local(aco__local_t *local, const char *name)
{
    aco_t *co = meant(NULL);
    aco__value_t *value;
    if (aco_unlikely(!__atomic_load_n(&local->made, __ATOMIC_ACQUIRE))) {
        aco_key_t key = {0, 0};
        aco__os_lock();
        if (!local->made && aco_key_create(&key, NULL) != 0)
            aco__die("ACO_LOCAL", co, "%s: all %d keys are in use", name, ACO_KEYS);
        if (!local->made) {
            local->index = key.index;
            local->generation = key.generation;
            __atomic_store_n(&local->made, 1, __ATOMIC_RELEASE);
        }
        aco__os_unlock();
    }
    value = place(aco__extra(co), local->index);
    if (aco_unlikely(!value || value->generation != local->generation)) {
        size_t sz = local->size;
        void *p = aco__memory_new(&sz);
        value = p ? place_make(co, local->index) : NULL;
        if (!value || sz > UINT32_MAX)
            aco__die("ACO_LOCAL", co, "%s: no memory for %zu bytes", name, local->size);
        memset(p, 0, sz);
        value->value = p;
        value->size = (uint32_t)sz;
        value->generation = local->generation;
    }
    return value->value;
}
