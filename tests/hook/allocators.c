/* allocators: a program whose malloc() is another library's (allocators.py). It calls hooked functions before any
 * constructor has run, and from a thread that begins there. Then hooked tasks of several threads wait, lock and
 * allocate; the program forks, and exits while a thread allocates. With an argument it forks then, too: the allocator
 * can that. With LINKED it is linked with acorn_hook; else that is preloaded. */
#define _GNU_SOURCE
#include <aco/hook.h>
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, TASKS = 8, ROUNDS = 20, BLOCKS = 64 };

/* ---- Blocks of memory that threads pass on ---- */

static void *shared_blocks[BLOCKS]; /* atomic */

static void allocate_some(unsigned seed)
{
    void *(*volatile allocate)(size_t) = malloc; /* in a program at a fixed address a stub */
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t sz = (seed * 2654435761U + i * 40503U) % 4000 + 1;
        char *block = i % 8 ? allocate(sz) : realloc(malloc(1), sz);
        memset(block, (int)i, sz);
        free(__atomic_exchange_n(&shared_blocks[(seed + i) % BLOCKS], block, __ATOMIC_ACQ_REL));
    }
}

/* ---- Before constructors ---- */

#define FAILS(call) FAILS_WITH(call, EBADF)

static void call_descriptors(void)
{
    struct iovec part = {&part, 1};
    struct msghdr message = {0};
    struct mmsghdr messages = {0};
    struct sockaddr_storage address = {0};
    struct epoll_event event;
    struct flock range = {0};
    socklen_t length = sizeof address;
    off_t offset = 0;
    char byte = 0;
    address.ss_family = AF_UNIX;
    FAILS(read(-1, &byte, 1));
    FAILS(write(-1, &byte, 1));
    FAILS(readv(-1, &part, 1));
    FAILS(writev(-1, &part, 1));
    FAILS(pread(-1, &byte, 1, 0));
    FAILS(pread64(-1, &byte, 1, 0));
    FAILS(pwrite(-1, &byte, 1, 0));
    FAILS(pwrite64(-1, &byte, 1, 0));
    FAILS(preadv(-1, &part, 1, 0));
    FAILS(preadv64(-1, &part, 1, 0));
    FAILS(pwritev(-1, &part, 1, 0));
    FAILS(pwritev64(-1, &part, 1, 0));
    FAILS(sendfile(-1, -1, &offset, 1));
    FAILS(sendfile64(-1, -1, NULL, 1));
    FAILS(recv(-1, &byte, 1, 0));
    FAILS(recvfrom(-1, &byte, 1, 0, (struct sockaddr *)&address, &length));
    FAILS(recvmsg(-1, &message, 0));
    FAILS(recvmmsg(-1, &messages, 1, 0, NULL));
    FAILS(send(-1, &byte, 1, 0));
    FAILS(sendto(-1, &byte, 1, 0, (struct sockaddr *)&address, sizeof address.ss_family));
    FAILS(sendmsg(-1, &message, 0));
    FAILS(sendmmsg(-1, &messages, 1, 0));
    FAILS(connect(-1, (struct sockaddr *)&address, sizeof address.ss_family));
    FAILS(accept(-1, NULL, NULL));
    FAILS(accept4(-1, NULL, NULL, SOCK_CLOEXEC));
    FAILS(epoll_wait(-1, &event, 1, 0));
    FAILS(epoll_pwait(-1, &event, 1, 0, NULL));
    FAILS(fsync(-1));
    FAILS(fdatasync(-1));
    FAILS(close(-1));
    FAILS(dup2(-1, 0));
    FAILS(dup3(-1, 0, O_CLOEXEC));
    FAILS(flock(-1, LOCK_EX));
    FAILS(fcntl(-1, F_SETLK, &range));
    FAILS(lockf(-1, F_TEST, 1));
    FAILS(lockf64(-1, F_TEST, 1));
    FAILS(openat(-1, "file", O_RDONLY));
    FAILS(openat64(-1, "file", O_RDONLY));
}

static void call_files(void)
{
    int ends[2], fd = open("/dev/null", O_RDWR | O_CLOEXEC), other = open64("/dev/null", O_RDONLY);
    struct pollfd p = {0, POLLIN, 0};
    char text[3] = "";
    CHECK(fd >= 0 && other >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CHECK_EQ(dup2(fd, other), other);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(close(other), 0);
    FAILS_WITH(creat("/no/such/folder/file", 0600), ENOENT);
    FAILS_WITH(creat64("/no/such/folder/file", 0600), ENOENT);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], "ab", 2), 2);
    p.fd = ends[0];
    CHECK_EQ(poll(&p, 1, -1), 1);
    CHECK_EQ(ppoll(&p, 1, NULL, NULL), 1);
    CHECK_EQ(read(ends[0], text, 2), 2);
    CHECK(!strcmp(text, "ab"));
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
}

static void call_times_and_children(void)
{
    struct timespec none = {0, 0};
    struct timeval no_time = {0, 0};
    struct addrinfo hints = {0}, *list = NULL;
    char port[8] = "";
    CHECK_EQ(nanosleep(&none, NULL), 0);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &none, NULL), 0);
    CHECK_EQ(usleep(0), 0);
    CHECK_EQ(sleep(0), 0);
    CHECK_EQ(sched_yield(), 0);
    CHECK_EQ(select(0, NULL, NULL, NULL, &no_time), 0);
    CHECK_EQ(pselect(0, NULL, NULL, NULL, &none, NULL), 0);
    FAILS_WITH(wait(NULL), ECHILD);
    FAILS_WITH(waitpid(-1, NULL, 0), ECHILD);
    FAILS_WITH(wait4(-1, NULL, 0, NULL), ECHILD);
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    CHECK_EQ(getaddrinfo("127.0.0.1", "80", &hints, &list), 0);
    if (list) {
        CHECK_EQ(getnameinfo(list->ai_addr, list->ai_addrlen, NULL, 0, port, sizeof port, NI_NUMERICSERV), 0);
        CHECK(!strcmp(port, "80"));
        freeaddrinfo(list);
    }
}

static void call_locks(int type)
{
    struct timespec past = {1, 0};
    pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_settype(&attributes, type), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_trylock(&mutex), type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY);
    if (type == PTHREAD_MUTEX_RECURSIVE)
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    if (type == PTHREAD_MUTEX_ERRORCHECK)
        CHECK_EQ(pthread_mutex_lock(&mutex), EDEADLK);
    if (type == PTHREAD_MUTEX_NORMAL)
        CHECK_EQ(pthread_mutex_timedlock(&mutex, &past), ETIMEDOUT);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    if (type == PTHREAD_MUTEX_ERRORCHECK)
        CHECK_EQ(pthread_mutex_unlock(&mutex), EPERM);
    CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void call_other_locks(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec past = {1, 0};
    sem_t semaphore;
    CHECK_EQ(pthread_rwlock_rdlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    CHECK_EQ(sem_init(&semaphore, 0, 1), 0);
    CHECK_EQ(sem_wait(&semaphore), 0);
    FAILS_WITH(sem_timedwait(&semaphore, &past), ETIMEDOUT);
}

static void call_all(void)
{
    call_descriptors();
    call_files();
    call_locks(PTHREAD_MUTEX_NORMAL);
    call_locks(PTHREAD_MUTEX_RECURSIVE);
    call_locks(PTHREAD_MUTEX_ERRORCHECK);
    call_other_locks();
    allocate_some(1);
}

static pthread_t early_thread;
static int early_calls, early_is_over; /* atomic */

static void *calls_meanwhile(void *unused)
{
    do {
        call_files();
        call_locks(PTHREAD_MUTEX_NORMAL);
        allocate_some(2);
        __atomic_fetch_add(&early_calls, 1, __ATOMIC_RELAXED);
    } while (!__atomic_load_n(&early_is_over, __ATOMIC_RELAXED));
    return unused;
}

static void calls_first(void)
{
    alarm(60);
    call_all();
    call_times_and_children();
    CHECK_EQ(pthread_create(&early_thread, NULL, calls_meanwhile, NULL), 0);
    while (!__atomic_load_n(&early_calls, __ATOMIC_RELAXED))
        sched_yield();
}
__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(void) = calls_first;

/* ---- Hooked tasks ---- */

typedef struct team {
    int ends[2];
    pthread_mutex_t mutexes[3];
    pthread_rwlock_t lock;
    sem_t semaphore;
    int holders[4];
} team_t;

static int (*hook_begin)(void), (*hook_active)(void);

static void find_hooks(void)
{
#ifdef LINKED
    hook_begin = aco_hook_begin;
    hook_active = aco_hook_active;
#else
    void *symbol = dlsym(RTLD_DEFAULT, "aco_hook_begin");
    memcpy(&hook_begin, &symbol, sizeof symbol); /* ISO C does not convert it */
    symbol = dlsym(RTLD_DEFAULT, "aco_hook_active");
    memcpy(&hook_active, &symbol, sizeof symbol);
#endif
}

static void begin(void)
{
    if (hook_begin() == 0)
        return;
    fprintf(stderr, "%s\n", aco_error_message());
    abort();
}

/* Waits with the lock held: no other task has it then. */
static void hold(int *holders)
{
    CHECK_EQ((*holders)++, 0);
    usleep(1);
    allocate_some(3);
    CHECK_EQ(--*holders, 0);
}

static void *locks(void *arg)
{
    team_t *team = arg;
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        int kind = round % 4;
        if (kind == 3) {
            CHECK_EQ(pthread_rwlock_wrlock(&team->lock), 0);
            hold(&team->holders[kind]);
            CHECK_EQ(pthread_rwlock_unlock(&team->lock), 0);
        } else {
            CHECK_EQ(pthread_mutex_lock(&team->mutexes[kind]), 0);
            hold(&team->holders[kind]);
            CHECK_EQ(pthread_mutex_unlock(&team->mutexes[kind]), 0);
        }
    }
    return NULL;
}

static void *reads(void *arg)
{
    team_t *team = arg;
    char *block = malloc(100000);
    size_t total = 0;
    ssize_t n;
    begin();
    while ((n = read(team->ends[0], block, 100000)) > 0)
        total += (size_t)n;
    CHECK_EQ(total, ROUNDS * 100000);
    free(block);
    return NULL;
}

static void *writes(void *arg)
{
    team_t *team = arg;
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        char *block = calloc(1, 100000);
        CHECK_EQ(write(team->ends[1], block, 100000), 100000);
        free(block);
        sched_yield();
    }
    CHECK_EQ(close(team->ends[1]), 0);
    return NULL;
}

static void *allocates(void *arg)
{
    team_t *team = arg;
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        allocate_some((unsigned)i);
        CHECK_EQ(sem_wait(&team->semaphore), 0);
        usleep(1);
        CHECK_EQ(sem_post(&team->semaphore), 0);
    }
    return NULL;
}

static void spawn(aco_function_t function, team_t *team)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    CHECK(aco_spawn(function, team, &detached) != NULL);
}

static void make_team(team_t *team)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    CHECK_EQ(pipe(team->ends), 0);
    CHECK_EQ(pthread_rwlock_init(&team->lock, NULL), 0);
    CHECK_EQ(sem_init(&team->semaphore, 0, 1), 0);
    for (int i = 0; i < 3; i++) {
        pthread_mutexattr_t attributes;
        CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
        CHECK_EQ(pthread_mutexattr_settype(&attributes, types[i]), 0);
        CHECK_EQ(pthread_mutex_init(&team->mutexes[i], &attributes), 0);
    }
}

static void *runs_a_team(void *unused)
{
    team_t team = {0};
    make_team(&team);
    spawn(reads, &team);
    spawn(writes, &team);
    for (int i = 0; i < TASKS; i++) {
        spawn(locks, &team);
        spawn(allocates, &team);
    }
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(close(team.ends[0]), 0);
    return unused;
}

static void run_teams(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, runs_a_team, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- fork() and exit() ---- */

static void wait_for(pid_t child)
{
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void *forks(void *unused)
{
    pid_t child;
    begin();
    for (int i = 0; i < 4; i++) {
        child = fork();
        if (child == 0) {
            CHECK(hook_active());
            call_all();
            if (i % 2)
                exit(check_failures != 0);
            _exit(check_failures != 0);
        }
        wait_for(child);
    }
    return unused;
}

static void *allocates_forever(void *unused)
{
    for (unsigned i = 0;; i++) {
        allocate_some(i);
        __atomic_fetch_add(&early_calls, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

static void allocate_meanwhile(void)
{
    pthread_t thread;
    int before = __atomic_load_n(&early_calls, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_create(&thread, NULL, allocates_forever, NULL), 0);
    while (__atomic_load_n(&early_calls, __ATOMIC_RELAXED) == before)
        sched_yield();
}

static void calls_last(void)
{
    call_files();
    call_locks(PTHREAD_MUTEX_RECURSIVE);
    allocate_some(4);
}

int main(int argc, char **argv)
{
    (void)argv;
    CHECK(dlerror() == NULL); /* the look-ups leave nothing behind */
    CHECK_EQ(atexit(calls_last), 0);
    __atomic_store_n(&early_is_over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(early_thread, NULL), 0);
    find_hooks();
    call_all();
    run_teams();
    spawn(forks, NULL);
    CHECK_EQ(aco_run(), 0);
    allocate_meanwhile();
    if (argc > 1)
        spawn(forks, NULL);
    CHECK_EQ(aco_run(), 0);
    return check_result("allocators");
}
