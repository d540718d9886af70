/* What few coroutines have: a name, a slot, coroutine-local values. It stands in an extra record: that of a private coroutine at
 * the top of its stack, that of another one in memory of its own, with the pointer to it behind the save area. */
#include "os/os.h"
#include "hooks/instrument.h"

#include <errno.h>
#include <string.h>

/* ---- The extra record ---- */

static aco__cold_t **pointer_behind_area(const aco_t *co)
{
    return (aco__cold_t **)(void *)((char *)co->save_stack.ptr + co->save_stack.sz);
}

aco__cold_t *aco__cold_of(const aco_t *co)
{
    if (!(co->aco__state & ACO__HAS_COLD))
        return NULL;
    return aco__has(co, ACO__PRIVATE) ? aco__stack_cold(co->share_stack) : *pointer_behind_area(co);
}

aco__cold_t *aco__cold(const aco_t *co)
{
    const aco__thread_t *self;
    if (co)
        return aco__cold_of(co);
    self = aco__self();
    return self->scratch && self->scratch->has_root_cold ? &self->scratch->root_cold : NULL;
}

aco__cold_t *aco__cold_make(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    size_t sz = sizeof *cold;
    if (cold)
        return cold;
    if (!co) {
        aco__scratch_t *scratch = aco__scratch();
        if (!scratch)
            return NULL;
        scratch->has_root_cold = 1;
        return &scratch->root_cold;
    }
    if (aco__has(co, ACO__PRIVATE)) {
        cold = aco__stack_cold(co->share_stack);
    } else {
        cold = aco__memory_new(&sz);
        if (!cold)
            return NULL;
        memset(cold, 0, sizeof *cold);
        if (aco__status(co) == ACO__MAIN || aco__save_area_reserve(co) != 0) {
            aco__memory_free(cold, sz);
            return NULL;
        }
        *pointer_behind_area(co) = cold;
    }
    aco__set_state_byte(co, co->aco__state | ACO__HAS_COLD);
    return cold;
}

void aco__values_free(aco__cold_t *cold)
{
    for (size_t i = 0; i < cold->values_sz / sizeof *cold->values; i++)
        if (cold->values[i].size)
            aco__memory_free(cold->values[i].value, cold->values[i].size);
    if (cold->values)
        aco__memory_free(cold->values, cold->values_sz);
    cold->values = NULL;
    cold->values_sz = 0;
}

void aco__cold_clear(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    if (!cold)
        return;
    if (cold->usage) /* it is made as new before it ever ran */
        aco__usage_end(co, cold);
    aco__values_free(cold);
    cold->slot = NULL;
    memset(cold->exceptions, 0, sizeof cold->exceptions);
}

void aco__cold_free(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    if (!cold)
        return;
    aco__values_free(cold);
    while (cold->deferred) {
        aco__deferred_t *next = cold->deferred->next;
        aco__memory_free(cold->deferred, sizeof *next);
        cold->deferred = next;
    }
    memset(cold, 0, sizeof *cold);
    if (!aco__has(co, ACO__PRIVATE)) {
        aco__memory_free(cold, sizeof *cold);
        co->save_stack.sz += sizeof(void *);
    }
    aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__HAS_COLD);
}

/* ---- Name and slot ---- */

void aco__name(aco__cold_t *cold, const char *name)
{
    char kept[ACO_NAME_SIZE] = {0}; /* `name` may be part of the old one */
    for (int i = 0; i < ACO_NAME_SIZE - 1 && name[i]; i++)
        kept[i] = name[i];
    memcpy(cold->name, kept, sizeof kept);
    aco__instrument_named(cold);
}

const char *aco_name(const aco_t *co)
{
    aco__cold_t *cold = co ? aco__cold(co) : NULL;
    return cold ? cold->name : "";
}

static int no_memory(const char *call)
{
    return aco__fail_memory(0, call, sizeof(aco__cold_t));
}

int aco_set_name(aco_t *co, const char *name)
{
    aco__cold_t *cold;
    if (!co || !name || !co->share_stack)
        return aco__fail(0, EINVAL, "aco_set_name", co, !co ? "the coroutine is NULL" : !name ? "the name is NULL" : "is a main coroutine");
    if (aco__status(co) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, "aco_set_name", co, "was destroyed");
    cold = aco__cold_make(co);
    if (!cold)
        return no_memory("aco_set_name");
    aco__name(cold, name);
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
    aco__cold_t *cold = aco__cold(meant(co));
    return cold ? cold->slot : NULL;
}

int aco_set_slot(aco_t *co, void *p)
{
    aco__cold_t *cold;
    if (co && aco__status(co) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, "aco_set_slot", co, "was destroyed");
    cold = aco__cold_make(meant(co));
    if (!cold)
        return no_memory("aco_set_slot");
    cold->slot = p;
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
        return aco__fail(0, EINVAL, "aco_key_create", NULL, "the key is NULL");
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
    return aco__fail(0, EAGAIN, "aco_key_create", NULL, "all %d keys are in use", ACO_KEYS);
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
        return aco__fail(0, EINVAL, "aco_key_delete", NULL, "not a key in use");
    return 0;
}

/* The value's place, or NULL. */
static aco__value_t *location(aco__cold_t *cold, uint32_t index)
{
    return cold && index < cold->values_sz / sizeof *cold->values ? &cold->values[index] : NULL;
}

void *aco_get_local(aco_key_t key)
{
    aco__value_t *value = location(aco__cold(meant(NULL)), key.index);
    return value && value->generation == key.generation && is_key(key) ? value->value : NULL;
}

/* NULL and errno when there is no memory. */
static aco__value_t *place_make(aco_t *co, uint32_t index)
{
    aco__cold_t *cold = aco__cold_make(co);
    if (cold && !location(cold, index)) {
        size_t sz = (index + 4) * sizeof(aco__value_t);
        aco__value_t *values = aco__memory_new(&sz);
        if (!values)
            return NULL;
        sz -= sz % sizeof *values;
        memset(values, 0, sz);
        if (cold->values) {
            memcpy(values, cold->values, cold->values_sz);
            aco__memory_free(cold->values, cold->values_sz);
        }
        cold->values = values;
        cold->values_sz = sz;
    }
    return location(cold, index);
}

int aco_set_local(aco_key_t key, void *p)
{
    aco__value_t *value;
    if (!is_key(key))
        return aco__fail(0, EINVAL, "aco_set_local", NULL, "not a key in use");
    value = place_make(meant(NULL), key.index);
    if (!value)
        return no_memory("aco_set_local");
    value->value = p;
    value->generation = key.generation;
    return 0;
}

void aco__values_destroy(aco__cold_t *cold)
{
    int again = 1;
    for (int round = 0; round < DESTRUCTOR_ROUNDS && again; round++) {
        again = 0;
        for (uint32_t i = 0; location(cold, i); i++) {
            aco__value_t *at = location(cold, i);
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
    value = location(aco__cold(co), local->index);
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
