/* A hooked task (aco/hook.h) on a connection of TLS (aco/tls.h). What OpenSSL locks while it reads or writes blocks the
 * thread: no other task runs in the middle of that, as it may enter the same connection in the other direction. */
#define _GNU_SOURCE
#include "hook_tests.h"
#include "tls_tests.h"

#include <pthread.h>

enum { LOOKS = 2000 }; /* under load each is a time slice */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int turns, is_counting, is_held, is_wanted; /* atomic */

static void *takes_turns(void *unused)
{
    while (is_counting) {
        __atomic_fetch_add(&turns, 1, __ATOMIC_SEQ_CST);
        aco_task_yield();
    }
    return unused;
}

/* A thread that has the lock for a while when it is wanted, or until another task runs, which is the fault. */
static void *holds_lock(void *unused)
{
    int before;
    pthread_rwlock_rdlock(&lock);
    __atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&is_wanted, __ATOMIC_SEQ_CST))
        sched_yield();
    before = __atomic_load_n(&turns, __ATOMIC_SEQ_CST);
    for (int i = 0; i < LOOKS && __atomic_load_n(&turns, __ATOMIC_SEQ_CST) == before; i++)
        sched_yield();
    pthread_rwlock_unlock(&lock);
    return unused;
}

/* OpenSSL calls this in the middle of its work, for each message. */
static void takes_lock(int written, int version, int type, const void *p, size_t n, SSL *ssl, void *arg)
{
    int before = turns;
    (void)written, (void)version, (void)type, (void)p, (void)n, (void)ssl, (void)arg;
    if (is_wanted)
        return;
    __atomic_store_n(&is_wanted, 1, __ATOMIC_SEQ_CST);
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    CHECK_EQ(turns, before);
}

/* The same lock in the same task, outside of OpenSSL: other tasks run. */
static void waits_for_lock(void)
{
    pthread_t thread;
    int before;
    is_held = is_wanted = 0;
    CHECK_EQ(pthread_create(&thread, NULL, holds_lock, NULL), 0);
    while (!__atomic_load_n(&is_held, __ATOMIC_SEQ_CST))
        aco_task_yield();
    before = turns;
    __atomic_store_n(&is_wanted, 1, __ATOMIC_SEQ_CST);
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    CHECK(turns > before);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void uses_connection(aco_tls_t *tls, int writes)
{
    pthread_t thread;
    char byte = 'x';
    begin();
    is_held = is_wanted = 0;
    CHECK_EQ(pthread_create(&thread, NULL, holds_lock, NULL), 0);
    while (!__atomic_load_n(&is_held, __ATOMIC_SEQ_CST))
        aco_task_yield();
    SSL_set_msg_callback(aco_tls_ssl(tls), takes_lock);
    CHECK_EQ(writes ? aco_tls_write(tls, &byte, 1) : aco_tls_read(tls, &byte, 1), 1);
    SSL_set_msg_callback(aco_tls_ssl(tls), NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(is_wanted);
    waits_for_lock();
    CHECK_EQ(aco_hook_end(), 0);
}

static void reads(aco_tls_t *tls)
{
    uses_connection(tls, 0);
}

static void writes(aco_tls_t *tls)
{
    uses_connection(tls, 1);
}

static void reads_plainly(aco_tls_t *tls)
{
    char byte;
    CHECK_EQ(aco_tls_read(tls, &byte, 1), 1);
}

static void writes_plainly(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_write(tls, "x", 1), 1);
}

static void *test_locks(void *unused)
{
    end_t c = {.config = client_that_trusts(&root), .host = "a.test", .act = reads};
    end_t s = {.config = server_with(0, &good), .act = writes_plainly};
    aco_t *other;
    is_counting = 1;
    other = beside(takes_turns, NULL);
    succeed(&c, &s);
    c.act = reads_plainly;
    s.act = writes;
    succeed(&c, &s);
    is_counting = 0;
    join(other);
    destroy_configs(&c, &s);
    return unused;
}

int main(void)
{
    static const aco_function_t tests[] = {test_locks};
    run_tls_tests(tests, sizeof tests / sizeof *tests);
    free_certificates();
    return check_result("hook_tls");
}
