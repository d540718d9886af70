/* write_fully() in tasks of tasks.h: each send waits until its connection is ready, so the other tasks run. C11 and
 * C++17. */
#include "tasks.h"

#include "sending.h"

/* Two paths to the same wait. The assembly comment keeps the compiler from merging their functions. */
#define WAY(way) \
    TASK_LAYER void wait_for_ready_##way(connection_t *c) \
    { \
        __asm__ volatile("# " #way : : "r"(c)); \
        tasks_yield(); \
    } \
    TASK_LAYER size_t send_when_ready_##way(connection_t *c, const char *data, size_t size) \
    { \
        wait_for_ready_##way(c); \
        return send_some(c, data, size); \
    } \
    TASK_LAYER void write_fully_##way(connection_t *c, const char *data, size_t size) \
    { \
        while (size > 0) { \
            size_t sent = send_when_ready_##way(c, data, size); \
            data += sent; \
            size -= sent; \
        } \
    }
WAY(one)
WAY(other)

static sending_t *mixed; /* every second one of these connections takes the other path */

static void *sender(void *arg)
{
    connection_t *c = (connection_t *)arg;
    if (mixed && (c - mixed->connections) % 2)
        write_fully_other(c, c->data, c->size);
    else
        write_fully_one(c, c->data, c->size);
    return NULL;
}

BENCH_INLINE void write_fully_run(void *made, size_t rounds)
{
    sending_t *s = (sending_t *)made;
    for (; rounds; rounds--) {
        sending_begin(s);
        tasks_run(sender, s->connections, sizeof s->connections[0], SENDERS);
        sending_check(s);
    }
}
NATIVE_RUN(write_fully_run)

static void *mixed_make(unsigned placement, size_t number)
{
    mixed = (sending_t *)sending_make(placement, number);
    return mixed;
}

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"write_fully", sending_make, NATIVE_ALL(write_fully_run)},
        {"write_fully_mixed", mixed_make, NATIVE_ALL(write_fully_run)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    return tasks_main(argc, argv, cases);
}
