/* src/scheduler/inbox.c: no post is slept over, none is lost, and a thread ends after its posters. */
#include "scheduler/inbox.c"

#include "litmus.h"

enum { POSTERS = 2 };

static aco__tasks_t tasks;
static aco__post_t posts[POSTERS];
static uint32_t woken, flags[POSTERS];
static int data[POSTERS], used, ran;

/* What wakes the thread: like an eventfd, it is remembered. */
void aco__os_wake(uint32_t *word)
{
    (void)word;
    __atomic_store_n(&woken, 1, __ATOMIC_SEQ_CST);
}

void aco__os_call(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

/* inbox.c waits here for what it has just read to change. */
void aco__os_sleep_until(int64_t until)
{
    (void)until;
    litmus_yield();
}

int64_t aco__os_now(void)
{
    return 0;
}

long aco__os_process_number(void)
{
    return 0;
}

static void hook(void *ctx)
{
    litmus_write(ctx, 1);
}

static void read_data(aco__thread_t *self, aco__post_t *post)
{
    (void)self;
    litmus_assert(litmus_read(&data[post - posts]) == 1);
    ran++;
}

static void read_flags(aco__thread_t *self, aco__post_t *post)
{
    (void)self;
    (void)post;
    ran = 0;
    for (int i = 0; i < POSTERS; i++)
        ran += (int)__atomic_load_n(&flags[i], __ATOMIC_SEQ_CST);
}

static void begin(void)
{
    memset(&tasks, 0, sizeof tasks);
    memset(posts, 0, sizeof posts);
    memset(data, 0, sizeof data);
    memset(flags, 0, sizeof flags);
    woken = 0;
    ran = used = 0;
}

static void end(void)
{
    litmus_assert(ran == POSTERS);
}

/* As aco_run() does, until all has been posted. */
static void sleep_and_run(void)
{
    while (ran < POSTERS)
        if (!aco__inbox_run(NULL, &tasks)) {
            if (aco__inbox_sleeps(&tasks)) {
                litmus_wait(&woken);
                __atomic_store_n(&woken, 0, __ATOMIC_SEQ_CST);
            }
            aco__inbox_awake(&tasks);
        }
}

/* Each poster has a post of its own. */
static void own(int t)
{
    if (t == 0) {
        sleep_and_run();
        return;
    }
    posts[t - 1].run = read_data;
    litmus_write(&data[t - 1], 1);
    aco__inbox_post(&tasks, &posts[t - 1]);
}

/* All post the same: one run may answer several, but the last one sees all that was there before. */
static void same(int t)
{
    posts[0].run = read_flags;
    if (t == 0) {
        sleep_and_run();
        return;
    }
    __atomic_store_n(&flags[t - 1], 1, __ATOMIC_SEQ_CST);
    aco__inbox_post(&tasks, &posts[0]);
}

/* The thread ends and its record is used for something else. */
static void closes(int t)
{
    tasks.wake = hook;
    tasks.wake_ctx = &used;
    if (t) {
        own(t);
        return;
    }
    sleep_and_run();
    aco__inbox_close(&tasks);
    litmus_write(&used, 2);
}

/* With one poster: fewer orders. */
static void one(int t)
{
    if (!t)
        ran = POSTERS - 1;
    closes(t);
}

const litmus_case_t litmus_cases[] = {
    {"inbox.own", 3, begin, own, end},
    {"inbox.same", 3, begin, same, end},
    {"inbox.closes", 2, begin, one, end},
    {0}};
