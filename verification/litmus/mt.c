/* src/threads/mt_sync.c: what a lock or a channel gives to one whose wait fails at that moment is not lost, and is
 * given once; and what is written before is seen after. The small lock of an object is the checker's here (run.py);
 * lock.c has the real one. */
#include "threads/mt_sync.c"
#include "threads/mt_channel.c"

#include "fakes.c"

enum { MOST = 2 };

static aco_mt_mutex_t mutex;
static aco_mt_semaphore_t semaphore;
static aco_mt_channel_t *channel;
static int data[MOST], inside, got;

/* ---- Answers: a wait is told; or it fails at any time before, or while it is being told ---- */

int aco__answer_prepare(aco__answer_t *answer, const char *call)
{
    (void)call;
    memset(answer, 0, sizeof *answer);
    return 0;
}

int aco__answer_wait(aco__answer_t *answer, const char *call, const char *what, int64_t deadline, const char *location,
                     aco__waiter_t *more)
{
    (void)more;
    (void)call;
    if (deadline == ACO_FOREVER) {
        aco__answer_await(answer, what, location);
        return 0;
    }
    if (__atomic_load_n(&answer->is_told, __ATOMIC_ACQUIRE))
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

void aco__answer_await(aco__answer_t *answer, const char *what, const char *location)
{
    (void)what;
    (void)location;
    litmus_wait((const uint32_t *)(const void *)&answer->is_told);
}

void aco__answer_tell(aco__answer_t *answer)
{
    litmus_assert(__atomic_exchange_n(&answer->is_told, 1, __ATOMIC_RELEASE) == 0);
}

aco_t *aco_get_co(void)
{
    return (aco_t *)(void *)&mutex; /* the callers are tasks */
}

/* ---- The cases ---- */

static void begin(void)
{
    memset(&mutex, 0, sizeof mutex);
    memset(&semaphore, 0, sizeof semaphore);
    memset(data, 0, sizeof data);
    inside = got = 0;
    channel = aco_mt_channel_new(0, sizeof(int));
}

static void use_mutex(int64_t deadline)
{
    if (aco_mt_mutex_lock_until_at(&mutex, deadline, NULL) != 0)
        return;
    litmus_assert(inside++ == 0);
    litmus_write(&data[0], litmus_read(&data[0]) + 1);
    inside--;
    got++;
    litmus_assert(aco_mt_mutex_unlock(&mutex) == 0);
}

/* The second thread's wait may fail. */
static void lock(int t)
{
    use_mutex(t == 1 ? 1 : ACO_FOREVER);
}

static void end_lock(void)
{
    litmus_assert(!mutex.aco__is_locked && !mutex.aco__waiters.first);
    litmus_assert(data[0] == got);
    litmus_outcome((uint64_t)got);
}

/* Two wait, one may fail; one unit is given. */
static void units(int t)
{
    if (t == 0) {
        aco_mt_semaphore_release(&semaphore);
    } else if (aco_mt_semaphore_acquire_until_at(&semaphore, 1, NULL) == 0) {
        got++;
    }
}

static void end_units(void)
{
    litmus_assert(got + (int)semaphore.aco__value == 1 && !semaphore.aco__waiters.first);
    litmus_outcome((uint64_t)got);
}

/* Both sides' waits may fail: either both have success, or none. */
static void elements(int t)
{
    int element = 7;
    if (t == 0) {
        litmus_write(&data[0], 1);
        data[1] += aco_mt_channel_send_until_at(channel, &element, 1, NULL) == 0;
    } else if (element = 0, aco_mt_channel_receive_until_at(channel, &element, 1, NULL) == 0) {
        litmus_assert(element == 7 && litmus_read(&data[0]) == 1);
        got++;
    }
}

static void end_elements(void)
{
    litmus_assert(got == data[1]);
    litmus_outcome((uint64_t)got);
}

const litmus_case_t litmus_cases[] = {
    {"mt.mutex", 3, begin, lock, end_lock},
    {"mt.semaphore", 3, begin, units, end_units},
    {"mt.channel", 2, begin, elements, end_elements},
    {0}};
