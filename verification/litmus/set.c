/* src/threads/deque.c, search.c, group.c and set.c, from where a set's threads run to where they end: all that is
 * submitted runs once, before its group has ended; each thread that sleeps is woken when it must be; the set ends, and
 * not before all has run.
 *
 * The scheduler below them is a small one, in this file, with the calls of aco/detail/worker.h. A task is a function
 * call: one that waits for an answer runs others until it has it. A post is one read-modify-write, and the thread
 * sleeps until there is one; inbox.c here shows that real posts are as good. */
#include "threads/deque.c"
#include "threads/search.c"
#include "threads/submit.c"
#include "threads/set.c"
#include "threads/stop.c"
#include "threads/cpus.c"

#include "fakes.c"

enum { WORKERS = 3, SPAWNED = 16, WAKE = 1, CANCEL = 2, ANSWER = 4, MOST = 4 };

typedef struct fake {
    aco__worker_t *worker;
    uint32_t posted;        /* WAKE, CANCEL, ANSWER. Atomic */
    struct { aco_function_t fn; void *arg; } spawned[SPAWNED];
    int first, count;       /* of `spawned` */
    size_t tasks;
    aco__answer_t *answer;  /* told, and not read yet. Atomic */
} fake_t;

char aco_error_mark; /* of ACO_ERROR */
static fake_t fakes[WORKERS];
static aco_threads_t *threads;
static int n, submits, data[MOST], runs[MOST], results_seen;

/* ---- The scheduler ---- */

static fake_t *fake(void)
{
    return &fakes[litmus_self()];
}

static void post(fake_t *to, uint32_t what)
{
    __atomic_fetch_or(&to->posted, what, __ATOMIC_ACQ_REL);
}

static void run_posts(void)
{
    uint32_t posted = __atomic_exchange_n(&fake()->posted, 0, __ATOMIC_ACQ_REL);
    aco__set_worker_t *worker = (aco__set_worker_t *)(void *)fake()->worker;
    if (posted & CANCEL)
        worker->cancel_post.run(NULL, &worker->cancel_post);
    if (posted & ANSWER)
        __atomic_load_n(&fake()->answer, __ATOMIC_ACQUIRE)->is_told = 1;
}

/* One round of aco_run(): runs what can run, or sleeps. 0: no task is left. */
static int run_round(void)
{
    fake_t *me = fake();
    aco__worker_t *worker = me->worker;
    if (!me->tasks && !worker->stays(worker))
        return 0;
    if (me->count) {
        int ready = me->count;
        run_posts();
        worker->round(worker);
        while (ready--) {
            int at = me->first++ % SPAWNED;
            me->count--;
            me->spawned[at].fn(me->spawned[at].arg);
            me->tasks--;
        }
    } else if (!worker->idle(worker)) {
        litmus_wait(&me->posted);
        run_posts();
        worker->awake(worker);
    }
    return 1;
}

int aco_run(void)
{
    while (run_round())
        ;
    return 0;
}

int aco__worker_install(aco__worker_t *worker, const char *call)
{
    (void)call;
    fake()->worker = worker;
    worker->scheduler = (struct aco__tasks *)(void *)fake();
    return 0;
}

void aco__worker_close(void) {}
void aco__worker_remove(aco__worker_t *worker, int has_failed) { (void)worker, (void)has_failed; }
aco__worker_t *aco__worker(void) { return fake()->worker; }
size_t aco__worker_tasks(void) { return fake()->tasks; }

static aco_t *spawn(aco_function_t fn, void *arg)
{
    fake_t *me = fake();
    int at = (me->first + me->count++) % SPAWNED;
    litmus_assert(me->count <= SPAWNED);
    me->spawned[at].fn = fn;
    me->spawned[at].arg = arg;
    me->tasks++;
    return (aco_t *)(void *)me;
}

/* ---- What else the set calls ---- */

aco_t *aco_spawn(aco_function_t fn, void *arg, const aco_options_t *options)
{
    (void)options;
    return spawn(fn, arg);
}

int aco_detach(aco_t *task)
{
    (void)task;
    return 0;
}

void aco__member_begin(aco__member_t *member, int64_t deadline)
{
    (void)member;
    (void)deadline;
}

int aco__member_is_like_new(const aco__member_t *member)
{
    (void)member;
    return 1;
}

/* The task that runs is not counted any more. */
int aco__member_is_alone(void)
{
    return !fake()->count && !__atomic_load_n(&fake()->posted, __ATOMIC_RELAXED);
}

void aco__member_end(aco__member_t *member) { (void)member; }
void aco__scope_end_early(aco_scope_t *scope, int error) { scope->error = error; }
void aco__scope_end_all(aco_scope_t *all, int error) { all->error = error; }
void aco__listen(aco__listener_t *listener, int for_good) { (void)listener, (void)for_good; }
void aco__listen_end(aco__listener_t *listener) { (void)listener; }
int aco__listen_tell(const aco__listener_t *listener, int signal, int32_t sender)
{
    (void)listener, (void)signal, (void)sender;
    return 0;
}
/* No value is inherited here. */
int aco__inherits;
void *aco__inherited_copy(void) { return NULL; }
void aco__inherited_drop(void *copy) { (void)copy; }
void aco__inherited_give(aco_t *co, void *copy) { (void)co, (void)copy; }
int aco_scope_cancel(aco_scope_t *scope) { (void)scope; return 0; }
const aco_scope_t *aco_scope_ended_by(const aco_scope_t *scope) { (void)scope; return NULL; }
int64_t aco_deadline(void) { return ACO_FOREVER; }
int aco__mt_scope_check(const aco_scope_t *scope, const char *call) { (void)scope; (void)call; return 0; }
void aco__mt_scope_end(aco_scope_t *scope) { scope->aco__task = NULL; }

int aco__mt_scope_begin(aco_scope_t *scope, int64_t deadline, int is_told, const char *call, const char *location)
{
    (void)deadline;
    (void)is_told;
    (void)call;
    (void)location;
    memset(scope, 0, sizeof *scope);
    scope->aco__task = (aco_t *)(void *)fake(); /* aco_submit() sees that the group has not ended */
    return 0;
}

int aco__answer_prepare(aco__answer_t *answer, const char *call)
{
    (void)call;
    answer->is_told = answer->is_claimed = 0;
    answer->scheduler = (struct aco__tasks *)(void *)fake();
    return 0;
}

int aco__answer_wait(aco__answer_t *answer, const char *call, const char *what, int64_t deadline, const char *location,
                     aco__waiter_t *more)
{
    (void)more;
    (void)call;
    (void)what;
    (void)deadline;
    (void)location;
    while (!answer->is_told)
        litmus_assert(run_round());
    return 0;
}

void aco__answer_await(aco__answer_t *answer, const char *what, const char *location)
{
    aco__answer_wait(answer, NULL, what, 0, location, NULL);
}

void aco__answer_tell(aco__answer_t *answer)
{
    fake_t *to = (fake_t *)(void *)answer->scheduler;
    if (to == fake()) {
        answer->is_told = 1;
        return;
    }
    __atomic_store_n(&to->answer, answer, __ATOMIC_RELEASE);
    post(to, ANSWER);
}

void aco__answer_post(struct aco__tasks *scheduler, aco__post_t *message)
{
    const fake_t *to = (const fake_t *)(const void *)scheduler;
    post((fake_t *)(void *)scheduler, message == &((aco__set_worker_t *)(void *)to->worker)->wake_post ? WAKE : CANCEL);
}

void aco__answer_forget(struct aco__tasks *scheduler, aco__post_t *message)
{
    (void)scheduler;
    (void)message;
}

/* ---- The cases ---- */

static void *item(void *arg)
{
    int *at = arg;
    litmus_assert(litmus_read(at) == 1); /* the submitter's write is seen */
    litmus_write(at, 2);
    runs[at - data]++;
    return arg;
}

static void check_results(void)
{
    for (int i = 0; i < submits; i++)
        litmus_assert(litmus_read(&data[i]) == 2); /* the member's is, too: the group has ended */
    results_seen = 1;
}

static void *submits_all(void *arg)
{
    aco_mt_group_t group;
    (void)arg;
    aco_mt_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < submits; i++) {
        litmus_write(&data[i], 1);
        litmus_assert(aco_submit(&group, item, &data[i], NULL) == 0);
    }
    litmus_assert(aco_mt_group_end(&group) == 0);
    check_results();
    return NULL;
}

static void *submits_to(void *arg)
{
    const aco_submit_options_t last = {.where = ACO_SUBMIT_TO, .thread = n - 1};
    aco_mt_group_t group;
    (void)arg;
    aco_mt_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < submits; i++) {
        litmus_write(&data[i], 1);
        litmus_assert(aco_submit(&group, item, &data[i], &last) == 0);
    }
    litmus_assert(aco_mt_group_end(&group) == 0);
    check_results();
    return NULL;
}

static void begin_with(int workers, int items)
{
    memset(fakes, 0, sizeof fakes);
    memset(data, 0, sizeof data);
    memset(runs, 0, sizeof runs);
    memset(&threads_lock, 0, sizeof threads_lock);
    results_seen = 0;
    n = workers;
    submits = items;
    threads = new_set(workers, NULL, NULL, 0, "litmus");
    threads->go = 1;
    for (int i = 0; i < workers; i++) {
        fakes[i].worker = &worker_in(threads, i, "litmus")->base;
        fakes[i].worker->scheduler = (struct aco__tasks *)(void *)&fakes[i];
        aco__threads_open(threads->workers[i]);
    }
}

/* As thread_main() does after all are there. */
static void run_thread_of_set(int t, aco_function_t root)
{
    aco__set_worker_t *worker = threads->workers[t];
    if (t == 0)
        spawn(root, NULL);
    worker->is_counted = 1;
    (void)run_worker(worker);
}

static void begin_two_one(void) { begin_with(2, 1); }
static void begin_two_two(void) { begin_with(2, 2); }
static void begin_three_one(void) { begin_with(3, 1); }
static void run_submits(int t) { run_thread_of_set(t, submits_all); }
static void run_submits_to(int t) { run_thread_of_set(t, submits_to); }

static void end(void)
{
    litmus_assert(results_seen);
    litmus_assert(threads->busy == 0 && threads->searching == 0 && threads->sleeping == 0);
    for (int i = 0; i < submits; i++)
        litmus_assert(runs[i] == 1);
}

const litmus_case_t litmus_cases[] = {
    {"set.one", 2, begin_two_one, run_submits, end},
    {"set.sent", 2, begin_two_one, run_submits_to, end},
    {"set.two", 2, begin_two_two, run_submits, end},
    {"set.three", 3, begin_three_one, run_submits, end},
    {0}};
