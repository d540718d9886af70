/* Names, slots and coroutine-local values: what the user stores in a coroutine's cold data. */
#include "coroutine/locals.h"

#include "aco/detail/for_libraries.h"
#include "aco/detail/inspect.h"

#include <string.h>

void aco__cold_clear(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    if (!cold)
        return;
    ACO__ASSERT(!cold->deferred); /* made when it ended, if it ever ran */
    if (cold->usage) /* it is restarted before it ever ran */
        aco__usage_end(co, cold);
    aco__values_free(cold);
    cold->slot = NULL;
    cold->work = NULL;
    memset(&cold->exceptions, 0, sizeof cold->exceptions);
}

/* ---- Name and slot ---- */

void aco__name(aco__cold_t *cold, const char *name)
{
    char kept[ACO_NAME_SIZE] = {0}; /* `name` may be part of the old name */
    for (int i = 0; i < ACO_NAME_SIZE - 1 && name[i]; i++)
        kept[i] = name[i];
    memcpy(cold->name, kept, sizeof kept);
    aco__sanitize_named(cold);
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
        return aco__fail(0, EINVAL, "aco_set_name", co,
                         !co ? "the coroutine is NULL" : !name ? "the name is NULL" : "is a main coroutine");
    if (aco__status(co) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, "aco_set_name", co, "was destroyed");
    cold = aco__cold_make(co);
    if (!cold)
        return no_memory("aco_set_name");
    aco__name(cold, name);
    return 0;
}

const char **aco__work_place(void)
{
    const aco__thread_t *self = aco__self();
    aco_t *task = self->running ? self->task : NULL;
    aco__cold_t *cold = NULL;
    int error = errno;
    if (task && task->share_stack && aco__is_task(task))
        cold = aco__cold_make(task);
    errno = error;
    return cold ? &cold->work : NULL;
}

/* The coroutine that `co` names, or NULL for the root context. NULL names the running coroutine; a main coroutine
 * object names the root context. */
static aco_t *data_owner(const aco_t *co)
{
    if (!co)
        co = aco__running();
    return co && co->share_stack ? (aco_t *)(uintptr_t)co : NULL;
}

void *aco_slot(const aco_t *co)
{
    aco__cold_t *cold = aco__cold(data_owner(co));
    return cold ? cold->slot : NULL;
}

int aco_set_slot(aco_t *co, void *p)
{
    aco__cold_t *cold;
    if (co && aco__status(co) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, "aco_set_slot", co, "was destroyed");
    cold = aco__cold_make(data_owner(co));
    if (!cold)
        return no_memory("aco_set_slot");
    cold->slot = p;
    return 0;
}

/* ---- Coroutine-local storage ---- */

/* A key in use has an odd generation, which is atomic. aco_local_key_create() sets it before the destructor. */
static struct {
    uint32_t generation;
    void (*destructor)(void *); /* atomic */
} keys[ACO_LOCAL_KEYS];
static unsigned keys_tried; /* where the next search starts; atomic */

enum { DESTRUCTOR_ROUNDS = 4 };

int aco_local_key_create(aco_local_key_t *key, void (*destructor)(void *))
{
    if (!key)
        return aco__fail(0, EINVAL, "aco_local_key_create", NULL, "the key is NULL");
    for (unsigned n = 0; n < ACO_LOCAL_KEYS; n++) {
        unsigned i = __atomic_fetch_add(&keys_tried, 1, __ATOMIC_RELAXED) % ACO_LOCAL_KEYS;
        uint32_t generation = __atomic_load_n(&keys[i].generation, __ATOMIC_RELAXED);
        if (generation % 2 == 0 &&
            __atomic_compare_exchange_n(&keys[i].generation, &generation, generation + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&keys[i].destructor, destructor, __ATOMIC_RELEASE);
            key->index = i;
            key->generation = generation + 1;
            return 0;
        }
    }
    return aco__fail(0, EAGAIN, "aco_local_key_create", NULL, "all %d keys are in use", ACO_LOCAL_KEYS);
}

static int is_key(aco_local_key_t key)
{
    return key.index < ACO_LOCAL_KEYS && key.generation % 2 == 1 &&
        __atomic_load_n(&keys[key.index].generation, __ATOMIC_ACQUIRE) == key.generation;
}

int aco_local_key_delete(aco_local_key_t key)
{
    uint32_t generation = key.generation;
    if (!is_key(key) ||
        !__atomic_compare_exchange_n(&keys[key.index].generation, &generation, generation + 1, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return aco__fail(0, EINVAL, "aco_local_key_delete", NULL, "not a key in use");
    return 0;
}

/* The value at this key's index, or NULL. */
static aco__value_t *value_of_key(aco__cold_t *cold, uint32_t index)
{
    return cold && index < cold->values_n ? &cold->values[index] : NULL;
}

void *aco__local_of(const aco_t *co, aco_local_key_t key)
{
    aco__value_t *value = value_of_key(aco__cold(data_owner(co)), key.index);
    return value && value->generation == key.generation && is_key(key) ? value->value : NULL;
}

void *aco_get_local(aco_local_key_t key)
{
    return aco__local_of(NULL, key);
}

/* The same, created if needed. NULL and errno without memory. */
static aco__value_t *value_of_key_make(aco_t *co, uint32_t index)
{
    aco__cold_t *cold = aco__cold_make(co);
    if (cold && !value_of_key(cold, index)) {
        size_t sz = (index + 4) * sizeof(aco__value_t);
        aco__value_t *values = aco__memory_new(&sz);
        if (!values)
            return NULL;
        memset(values, 0, sz);
        if (cold->values) {
            ACO__ASSERT(cold->values_n < sz / sizeof *values);
            memcpy(values, cold->values, cold->values_n * sizeof *values);
            aco__memory_free(cold->values, cold->values_n * sizeof *values);
        }
        cold->values = values;
        cold->values_n = (uint16_t)(sz / sizeof *values);
        ACO__ASSERT(cold->values_n == sz / sizeof *values); /* ACO_LOCAL_KEYS and what the slab adds */
    }
    return value_of_key(cold, index);
}

/* 0, or -1 and errno: no memory. */
static int set_value(aco_t *co, aco_local_key_t key, void *p)
{
    aco__value_t *value = value_of_key_make(co, key.index);
    if (!value)
        return no_memory("aco_set_local");
    value->value = p;
    value->generation = key.generation;
    return 0;
}

int aco_set_local(aco_local_key_t key, void *p)
{
    if (!is_key(key))
        return aco__fail(0, EINVAL, "aco_set_local", NULL, "not a key in use");
    return set_value(data_owner(NULL), key, p);
}

/* ---- The inherited value ---- */

int aco__inherits;
static aco_local_key_t inherited_key; /* these are set before aco__inherits, and then stay */
static const aco__inheritance_t *inherited_by;

void aco__inherit(aco_local_key_t key, const aco__inheritance_t *by)
{
    inherited_key = key;
    inherited_by = by;
    __atomic_store_n(&aco__inherits, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&aco__notes_spawns, 1, __ATOMIC_RELEASE);
}

void *aco__inherited_copy(void)
{
    void *own = __atomic_load_n(&aco__inherits, __ATOMIC_ACQUIRE) ? aco__local_of(NULL, inherited_key) : NULL;
    return own ? inherited_by->copy(own) : NULL;
}

void aco__inherited_drop(void *copy)
{
    if (copy)
        inherited_by->drop(copy);
}

void aco__inherited_give(aco_t *co, void *copy)
{
    int error = errno;
    if (copy && set_value(co ? co : data_owner(NULL), inherited_key, copy) != 0)
        inherited_by->drop(copy);
    errno = error;
}

void aco__values_destroy(aco__cold_t *cold)
{
    int again = 1;
    for (int round = 0; round < DESTRUCTOR_ROUNDS && again; round++) {
        again = 0;
        for (uint32_t i = 0; value_of_key(cold, i); i++) {
            aco__value_t *at = value_of_key(cold, i);
            aco_local_key_t key = {i, at->generation};
            void *value = at->value;
            void (*destructor)(void *);
            if (!value || at->size || !is_key(key))
                continue;
            destructor = __atomic_load_n(&keys[i].destructor, __ATOMIC_ACQUIRE);
            at->value = NULL;
            if (destructor) {
                destructor(value); /* may set values and so move the array */
                again = 1;
            }
        }
    }
}

void *aco__local(aco__local_t *local, const char *name)
{
    aco_t *co = data_owner(NULL);
    aco__value_t *value;
    if (aco_unlikely(!__atomic_load_n(&local->made, __ATOMIC_ACQUIRE))) {
        aco_local_key_t key = {0, 0};
        aco__lock();
        if (!local->made && aco_local_key_create(&key, NULL) != 0)
            aco__die("ACO_LOCAL", co, "%s: all %d keys are in use", name, ACO_LOCAL_KEYS);
        if (!local->made) {
            local->index = key.index;
            local->generation = key.generation;
            __atomic_store_n(&local->made, 1, __ATOMIC_RELEASE);
        }
        aco__unlock();
    }
    value = value_of_key(aco__cold(co), local->index);
    if (aco_unlikely(!value || value->generation != local->generation)) {
        size_t sz = local->size;
        void *p = aco__memory_new(&sz);
        value = p ? value_of_key_make(co, local->index) : NULL;
        if (!value || sz > UINT32_MAX)
            aco__die("ACO_LOCAL", co, "%s: no memory for %zu bytes", name, local->size);
        memset(p, 0, sz);
        value->value = p;
        value->size = (uint32_t)sz;
        value->generation = local->generation;
    }
    return value->value;
}

static void root_values_destroy(aco__scratch_t *scratch)
{
    aco__values_destroy(&scratch->root_cold);
    aco__values_free(&scratch->root_cold);
}

ACO__AT_LOAD static void register_root_values(void)
{
    aco__upcalls.root_values_destroy = root_values_destroy;
}
