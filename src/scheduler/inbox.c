/* Messages from other threads: a list that any thread adds to and the scheduler's thread empties as a whole.
 *
 * A poster claims the post (`next` is not NULL any more), adds it, and then looks whether the thread is asleep. The
 * thread says that it is going to sleep and then looks into the inbox. All of that is sequentially consistent, so one
 * of the two sees the other: no post is slept over. */
#include "scheduler/inbox.h"
#include "scheduler/wait.h"
#include "system/point.h"

#include "os/clock.h"
#include "os/os.h"

static aco__post_t end_of_list; /* `next` of the last post; a claimed one has it too */

static aco__post_t *next_of(const aco__post_t *post)
{
    return __atomic_load_n(&post->next, __ATOMIC_RELAXED);
}

static void set_next(aco__post_t *post, aco__post_t *next)
{
    __atomic_store_n(&post->next, next, __ATOMIC_RELAXED);
}

/* The post is no longer under way: what is posted from now on counts anew. */
static void release(aco__post_t *post)
{
    aco__store_then_load(&post->next, NULL);
}

/* If the thread says that it is asleep, wakes it. Returns whether it did. */
static int wake_sleeper(aco__tasks_t *s)
{
    aco__poller_t *poller;
    if (!__atomic_load_n(&s->is_asleep, __ATOMIC_SEQ_CST) || !__atomic_exchange_n(&s->is_asleep, 0, __ATOMIC_SEQ_CST))
        return 0;
    if (s->wake)
        aco__os_call(s->wake, s->wake_ctx);
    if ((poller = __atomic_load_n(&s->poller, __ATOMIC_ACQUIRE)) != NULL)
        poller->wake(poller);
    aco__os_wake(&s->is_asleep); /* also then: it may wait without the hook */
    return 1;
}

/* `wakes`: the poller in any case, also if the thread does not say that it is asleep. */
static void add_post(aco__tasks_t *s, aco__post_t *post, int wakes)
{
    aco__post_t *next = NULL;
    aco__poller_t *poller;
    ACO__POINT();
    if (!__atomic_compare_exchange_n(&post->next, &next, &end_of_list, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    ACO__NO_SWITCH_BEGIN(); /* a call that wakes does not wait, and the thread must not end in between */
    __atomic_fetch_add(&s->posting, 1, __ATOMIC_RELAXED); /* once it is posted, the thread may end */
    next = __atomic_load_n(&s->inbox, __ATOMIC_RELAXED);
    do
        set_next(post, next ? next : &end_of_list);
    while (!__atomic_compare_exchange_n(&s->inbox, &next, post, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    ACO__POINT();
    if (!wake_sleeper(s) && wakes && (poller = __atomic_load_n(&s->poller, __ATOMIC_SEQ_CST)) != NULL)
        poller->wake(poller);
    __atomic_fetch_sub(&s->posting, 1, __ATOMIC_RELEASE);
    ACO__NO_SWITCH_END();
}

void aco__inbox_post(aco__tasks_t *s, aco__post_t *post)
{
    add_post(s, post, 0);
}

void aco__inbox_ask(aco__tasks_t *s, aco__post_t *post)
{
    add_post(s, post, 1);
}

static void set_posts(aco__tasks_t *s, aco__post_t *first)
{
    s->posts = first == &end_of_list ? NULL : first;
}

/* Moves the inbox to the end of s->posts, in the order of posting. */
static void collect(aco__tasks_t *s)
{
    aco__post_t *post = __atomic_exchange_n(&s->inbox, NULL, __ATOMIC_SEQ_CST), *list = &end_of_list, *last;
    while (post && post != &end_of_list) {
        aco__post_t *before = next_of(post);
        set_next(post, list);
        list = post;
        post = before;
    }
    if (list == &end_of_list)
        return;
    if (!s->posts) {
        s->posts = list;
        return;
    }
    for (last = s->posts; next_of(last) != &end_of_list; last = next_of(last))
        ;
    set_next(last, list);
}

/* Removes the first post and returns it; NULL: there is none. */
static aco__post_t *take_post(aco__tasks_t *s)
{
    aco__post_t *post = s->posts;
    ACO__ASSERT(aco__tasks(aco__self()) == s); /* `posts` is the scheduler's own */
    if (!post) {
        collect(s);
        post = s->posts;
    }
    if (!post)
        return NULL;
    ACO__ASSERT(next_of(post) != NULL); /* the post was claimed */
    set_posts(s, next_of(post));
    release(post);
    return post;
}

int aco__inbox_run(aco__thread_t *self, aco__tasks_t *s)
{
    aco__post_t *post;
    size_t left = 0;
    int any = 0;
    if (aco_likely(aco__inbox_is_empty(s)))
        return 0;
    collect(s);
    for (post = s->posts; post && post != &end_of_list; post = next_of(post))
        left++;
    for (; left && (post = take_post(s)) != NULL; left--, any = 1) { /* what comes meanwhile waits a round */
        void (*message)(aco__thread_t *, aco__post_t *) = __atomic_load_n(&post->run, __ATOMIC_RELAXED);
        message(self, post);
    }
    return any;
}

#ifdef ACO__INVARIANTS
void aco__inbox_check(const aco__tasks_t *s)
{
    const aco__post_t *slow = s->posts;
    int odd = 0;
    for (const aco__post_t *post = s->posts; post && post != &end_of_list; odd = !odd) {
        post = next_of(post);
        ACO__ASSERT(post != NULL); /* each is claimed until it is taken */
        ACO__ASSERT(post != slow); /* the list ends */
        if (odd)
            slow = next_of(slow);
    }
}
#endif

void aco__inbox_forget(aco__tasks_t *s, aco__post_t *post)
{
    while (aco__is_posted(post)) { /* not in the inbox yet: the poster has claimed it and is about to add it */
        aco__post_t *before = NULL, *found;
        collect(s);
        for (found = s->posts; found && found != &end_of_list && found != post; found = next_of(found))
            before = found;
        if (found == post && before)
            set_next(before, next_of(post));
        else if (found == post)
            set_posts(s, next_of(post));
        else if (s->process == aco__os_process_number()) /* else the poster is not in this child of fork() */
            continue;
        release(post);
    }
}

void aco__inbox_filter(aco__tasks_t *s, int (*unwanted)(const aco__post_t *post, const void *arg), const void *arg)
{
    aco__post_t *before = NULL, *post, *next;
    if (aco_likely(aco__inbox_is_empty(s)))
        return;
    collect(s);
    for (post = s->posts; post && post != &end_of_list; post = next) {
        next = next_of(post);
        if (!unwanted(post, arg)) {
            before = post;
            continue;
        }
        if (before)
            set_next(before, next);
        else
            set_posts(s, next);
        release(post);
    }
}

static int has_posts(const void *s)
{
    return !aco__inbox_is_empty(s);
}

int aco__inbox_spin(aco__tasks_t *s, int64_t now, int64_t until)
{
    return aco__spin_until(&s->spin, has_posts, s, aco__os_now, now, until);
}

int aco__inbox_sleeps(aco__tasks_t *s)
{
    ACO__ASSERT(!aco__in_turn(s)); /* a task that runs is not slept over */
    aco__store_then_load(&s->is_asleep, 1);
    ACO__POINT();
    if (!__atomic_load_n(&s->inbox, __ATOMIC_SEQ_CST) && !s->posts)
        return 1;
    aco__inbox_awake(s);
    return 0;
}

void aco__inbox_awake(aco__tasks_t *s)
{
    __atomic_store_n(&s->is_asleep, 0, __ATOMIC_SEQ_CST);
}

/* In a child of fork() there are no other threads, whatever the count says. */
void aco__inbox_close(aco__tasks_t *s)
{
    while (__atomic_load_n(&s->posting, __ATOMIC_ACQUIRE) && s->process == aco__os_process_number())
        aco__os_sleep_until(aco__os_now() + 1000);
}

/* A poster that still saw the thread asleep had added its post before, and itself to `posting`. What is posted while
 * the function changes wakes nobody: then this does. */
void aco__inbox_wake_by(aco__tasks_t *s, void (*wake)(void *ctx), void *ctx)
{
    uint32_t was_asleep = __atomic_exchange_n(&s->is_asleep, 0, __ATOMIC_SEQ_CST);
    (void)__atomic_load_n(&s->inbox, __ATOMIC_SEQ_CST);
    aco__inbox_close(s);
    s->wake = wake;
    s->wake_ctx = ctx;
    if (!was_asleep)
        return;
    aco__store_then_load(&s->is_asleep, 1);
    if (__atomic_load_n(&s->inbox, __ATOMIC_SEQ_CST))
        (void)wake_sleeper(s);
}

/* ---- Calls of aco_post() ---- */

typedef struct posted_call {
    aco__post_t post;
    void (*fn)(void *arg);
    void *arg;
} posted_call_t;

static void run_posted(aco__thread_t *self, aco__post_t *post)
{
    posted_call_t call = *(posted_call_t *)(void *)post;
    (void)self;
    aco__memory_free(post, sizeof call);
    call.fn(call.arg);
}

int aco__inbox_call(aco__tasks_t *s, void (*fn)(void *arg), void *arg)
{
    posted_call_t *call;
    size_t sz = sizeof *call;
    call = aco__memory_new(&sz);
    if (!call)
        return aco__fail_memory(0, "aco_post", sizeof *call);
    call->post.next = NULL;
    call->post.run = run_posted;
    call->fn = fn;
    call->arg = arg;
    aco__inbox_post(s, &call->post);
    return 0;
}

void aco__inbox_drop(aco__tasks_t *s)
{
    aco__post_t *post;
    while ((post = take_post(s)) != NULL)
        if (post->run == run_posted)
            aco__memory_free(post, sizeof(posted_call_t));
}
