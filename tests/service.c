/* Lives of services (include/aco/service.h): each a process of its own, a copy of this program, which this program
 * starts, talks to and ends. No test waits for a time: a child says on its standard output what it has come to. */
#define _GNU_SOURCE
#include <aco/http.h>
#include <aco/service.h>

#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The service: service serve THREADS LAME-MS DRAIN-MS HAND-OVER ---- */

typedef struct configuration {
    int number, is_freed;
} configuration_t;

static configuration_t configurations[16];
static int loads;
static const char *dies_when;

static void say(const char *what, int port)
{
    char line[64];
    int n = snprintf(line, sizeof line, "%s %d\n", what, port);
    CHECK_EQ(write(STDOUT_FILENO, line, (size_t)n), n);
}

static void *load(void *arg)
{
    (void)arg;
    if (dies_when && strcmp(dies_when, "load") == 0)
        raise(SIGKILL);
    if (dies_when && strcmp(dies_when, loads ? "reload waits" : "load waits") == 0) {
        say("waits", 0);
        return aco_park("the end") == 0 ? &configurations[0] : NULL;
    }
    if (loads == 2) { /* the third one fails */
        loads++;
        errno = ENOENT;
        return NULL;
    }
    configurations[loads].number = loads + 1;
    return &configurations[loads++];
}

static void unload(void *value, void *arg)
{
    (void)arg;
    CHECK_EQ(((configuration_t *)value)->is_freed, 0);
    ((configuration_t *)value)->is_freed = 1;
}

static void tells_process(aco_http_request_t *request, void *arg)
{
    char text[32];
    (void)arg;
    snprintf(text, sizeof text, "%d\n", (int)getpid());
    aco_http_reply(request, 200, "text/plain", text, strlen(text));
}

static void tells_configuration(aco_http_request_t *request, void *service)
{
    aco_service_config_t *config = aco_service_config(service);
    const configuration_t *configuration = config->value;
    char text[32];
    CHECK(!configuration->is_freed);
    snprintf(text, sizeof text, "%d", configuration->number);
    aco_http_reply(request, 200, "text/plain", text, strlen(text));
    aco_service_config_release(config);
}

static void tells_health(aco_http_request_t *request, void *service)
{
    aco_http_reply(request, aco_service_is_stopping(service) ? 503 : 200, NULL, NULL, 0);
}

/* Goes on when the service is stopped, until it is cancelled. */
static void *stays(void *arg)
{
    FAILS_WITH(aco_park("the end of all tasks"), ECANCELED);
    return arg;
}

/* Says that the service is stopped. */
static void *hears_of_stop(void *arg)
{
    aco_stop_t stop;
    CHECK_EQ(aco_stop_begin(&stop, ACO_FOREVER), 0);
    FAILS_WITH(aco_park("the stop"), ECANCELED);
    (void)aco_stop_end(&stop);
    say("is stopped", 0);
    return arg;
}

/* A task beside the servers, which only the end of the set cancels. */
static void *lasts(void *arg)
{
    while (aco_sleep(ACO_SECOND) == 0)
        continue;
    return arg;
}

static int serve(aco_service_t *service, void *arg)
{
    const aco_http_route_t routes[] = {{"GET", "/", tells_process, NULL},
                                       {"GET", "/configuration", tells_configuration, service},
                                       {"GET", "/health", tells_health, service},
                                       {NULL, NULL, NULL, NULL}};
    static int threads_ready;
    const aco_http_server_options_t server = {.routes = routes};
    char address[ACO_IO_ADDRESS_SIZE];
    int port, listener = aco_service_listen(service, "http", "tcp", "127.0.0.1", "0", NULL);
    if (listener < 0)
        return -1;
    aco_detach(aco_spawn(lasts, NULL, NULL));
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    port = atoi(strrchr(address, ':') + 1);
    if (dies_when && strcmp(dies_when, "ready") == 0)
        raise(SIGKILL);
    if (dies_when && strcmp(dies_when, "fails") == 0) {
        errno = EPROTO;
        return -1;
    }
    if (dies_when && strcmp(dies_when, "fails without errno") == 0) {
        errno = 0;
        return -1;
    }
    if (dies_when && strcmp(dies_when, "is half ready") == 0 && aco_threads_index() == 1) {
        say("is half ready", port);
        return aco_park("the stop");
    }
    if (dies_when && strcmp(dies_when, "stays") == 0) {
        CHECK(aco_group_spawn(aco_service_group(service), stays, NULL, NULL) != NULL);
        if (aco_threads_index() == 0)
            aco_detach(aco_spawn(hears_of_stop, NULL, NULL));
    }
    if (dies_when && strcmp(dies_when, "tells") == 0)
        aco_detach(aco_spawn(hears_of_stop, NULL, NULL));
    aco_service_ready(service);
    if (__atomic_add_fetch(&threads_ready, 1, __ATOMIC_RELAXED) == *(const int *)arg)
        say("serves", port);
    return aco_http_serve(listener, &server);
}

static int be_service(char **argv)
{
    int threads = atoi(argv[2]), failed;
    const aco_service_options_t options = {.threads = threads,
                                           .lame_time = atoi(argv[3]) * ACO_MILLISECOND,
                                           .drain_time = atoi(argv[4]) * ACO_MILLISECOND,
                                           .load = load,
                                           .unload = unload,
                                           .hand_over = argv[5][0] ? argv[5] : NULL};
    dies_when = getenv("DIES_WHEN");
    failed = aco_service_run(serve, &threads, &options) != 0;
    CHECK(!failed || errno != EINTR || strstr(aco_error_message(), "aco_service_run: tasks had to be cancelled"));
    for (int i = 0; i < loads; i++)
        CHECK(!configurations[i].number || configurations[i].is_freed);
    if (check_failures)
        return 99;
    return failed ? errno : 0;
}

/* ---- What starts it ---- */

typedef struct child {
    pid_t pid;
    int out;   /* its standard output */
    int port;
} child_t;

/* `listener` becomes its descriptor 3; -1: none. */
static child_t start(int threads, const char *lame, const char *drain, const char *name, const char *dies,
                     int listener)
{
    child_t child = {0};
    char number[16], process[16];
    char *argv[] = {"service", "serve", number, (char *)(uintptr_t)lame, (char *)(uintptr_t)drain,
                    (char *)(uintptr_t)name, NULL};
    int pipes[2];
    CHECK_EQ(pipe2(pipes, O_CLOEXEC), 0);
    snprintf(number, sizeof number, "%d", threads);
    child.pid = fork();
    if (child.pid == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        snprintf(process, sizeof process, "%d", (int)getpid());
        if (dies)
            setenv("DIES_WHEN", dies, 1);
        if (getenv("WATCHDOG_USEC"))
            setenv("WATCHDOG_PID", process, 1);
        if (listener >= 0) {
            dup2(listener, 3);
            fcntl(3, F_SETFD, 0);
            setenv("LISTEN_PID", process, 1);
            setenv("LISTEN_FDS", "1", 1);
            setenv("LISTEN_FDNAMES", "http", 1);
        }
        execv("/proc/self/exe", argv);
        _exit(98);
    }
    close(pipes[1]);
    child.out = pipes[0];
    return child;
}

/* Reads a line, and the port in it. 0: the end. */
static int hears(child_t *child, const char *what)
{
    char line[64];
    size_t n = 0;
    while (n < sizeof line - 1 && read(child->out, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = 0;
    if (strncmp(line, what, strlen(what)) != 0)
        return 0;
    if (atoi(line + strlen(what)))
        child->port = atoi(line + strlen(what));
    return 1;
}

static int await_end(child_t *child)
{
    int status = -1;
    CHECK_EQ(waitpid(child->pid, &status, 0), child->pid);
    close(child->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The status of the reply, or 0; its body as a number in *number. */
static int get(int port, const char *path, int *number)
{
    char text[2048], *body;
    int fd = connect_to(port);
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    ssize_t got = 0, all = 0;
    if (fd < 0)
        return 0;
    if (send(fd, text, (size_t)n, MSG_NOSIGNAL) == n)
        while (all < (ssize_t)sizeof text - 1 && (got = recv(fd, text + all, sizeof text - 1 - (size_t)all, 0)) > 0)
            all += got;
    close(fd);
    text[all] = 0;
    body = strstr(text, "\r\n\r\n");
    if (got != 0 || !body || strncmp(text, "HTTP/1.1 ", 9) != 0)
        return 0;
    if (number)
        *number = atoi(body);
    return atoi(text + 9);
}

static void name_it(char name[32], const char *kind)
{
    snprintf(name, 32, "test-%d-%s", (int)getpid(), kind);
}

/* ---- Ends ---- */

static void ends_at_a_signal(void)
{
    child_t child = start(2, "0", "60000", "", NULL, -1);
    int number = 0;
    CHECK(hears(&child, "serves"));
    CHECK_EQ(get(child.port, "/", &number), 200);
    CHECK_EQ(number, child.pid);
    kill(child.pid, SIGTERM);
    CHECK_EQ(await_end(&child), 0);
    CHECK_EQ(connect_to(child.port), -1);
}

static void is_lame_first(void)
{
    child_t child = start(1, "600000", "600000", "", NULL, -1);
    CHECK(hears(&child, "serves"));
    CHECK_EQ(get(child.port, "/health", NULL), 200);
    kill(child.pid, SIGTERM);
    while (get(child.port, "/health", NULL) == 200) /* until the service has read the signal */
        continue;
    CHECK_EQ(get(child.port, "/health", NULL), 503);
    CHECK_EQ(get(child.port, "/", NULL), 200);
    kill(child.pid, SIGTERM); /* ends it at once */
    CHECK_EQ(await_end(&child), EINTR);
}

/* Work that does not end is cancelled, at the end of drain_time or by a second signal. */
static void cancels(const char *drain, int signals)
{
    child_t child = start(2, "0", drain, "", "stays", -1);
    CHECK(hears(&child, "serves"));
    kill(child.pid, SIGTERM);
    CHECK(hears(&child, "is stopped"));
    if (signals > 1)
        kill(child.pid, SIGTERM);
    CHECK_EQ(await_end(&child), EINTR);
}

static void fails_as_serve_does(void)
{
    child_t child = start(2, "0", "60000", "", "fails", -1);
    CHECK_EQ(await_end(&child), EPROTO);
    child = start(2, "0", "60000", "", "fails without errno", -1);
    CHECK_EQ(await_end(&child), EINVAL);
}

/* Also while a configuration is loaded that never comes. */
static void ends_while_it_loads(void)
{
    child_t child = start(2, "0", "60000", "", "load waits", -1);
    CHECK(hears(&child, "waits"));
    kill(child.pid, SIGTERM);
    CHECK_EQ(await_end(&child), 0);
    child = start(2, "0", "60000", "", "reload waits", -1);
    CHECK(hears(&child, "serves"));
    kill(child.pid, SIGHUP);
    CHECK(hears(&child, "waits"));
    kill(child.pid, SIGHUP);
    CHECK_EQ(get(child.port, "/", NULL), 200);
    kill(child.pid, SIGTERM);
    CHECK_EQ(await_end(&child), 0);
}

static void rejects(void)
{
    aco_service_options_t options = {.threads = -1};
    FAILS_WITH(aco_service_run(NULL, NULL, NULL), EINVAL);
    FAILS_WITH(aco_service_run(serve, NULL, &options), EINVAL);
    options.threads = 1;
    options.hand_over = "";
    FAILS_WITH(aco_service_run(serve, NULL, &options), EINVAL);
    options.hand_over = NULL;
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    FAILS_WITH(aco_service_run(serve, NULL, &options), EINVAL);
    FAILS_WITH(aco_service_notify(NULL), EINVAL);
    CHECK_EQ(aco_service_notify("STATUS=nobody listens"), 0);
}

/* ---- Configurations, the service manager ---- */

/* The next message to a service manager's socket; empty if none comes in time. A process that was stopped and continues
 * gets EINTR from a socket with a time limit (signal(7)). */
static void next_message(int manager, char *text, size_t sz)
{
    ssize_t n;
    do
        n = recv(manager, text, sz - 1, 0);
    while (n < 0 && errno == EINTR);
    text[n < 0 ? 0 : n] = 0;
}

/* The next message must begin so. */
static void manager_hears(int manager, const char *what)
{
    char text[256];
    next_message(manager, text, sizeof text);
    if (strncmp(text, what, strlen(what)) != 0)
        fprintf(stderr, "the manager heard \"%s\", not \"%s\"\n", text, what);
    CHECK(strncmp(text, what, strlen(what)) == 0);
}

static int begin_manager(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), length;
    char name[64];
    length = snprintf(name, sizeof name, "@test-manager-%d", (int)getpid());
    memcpy(address.sun_path, name, (size_t)length);
    address.sun_path[0] = 0;
    CHECK_EQ(bind(manager, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)), 0);
    CHECK_EQ(setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){20, 0}, sizeof(struct timeval)), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return manager;
}

static void reloads(void)
{
    int manager = begin_manager(), number = 0;
    child_t child = start(2, "0", "60000", "", NULL, -1);
    CHECK(hears(&child, "serves"));
    manager_hears(manager, "READY=1");
    CHECK_EQ(get(child.port, "/configuration", &number), 200);
    CHECK_EQ(number, 1);
    for (int i = 2; i < 5; i++) { /* the third one cannot be loaded */
        kill(child.pid, SIGHUP);
        manager_hears(manager, "RELOADING=1\nMONOTONIC_USEC=");
        manager_hears(manager, "READY=1");
        CHECK_EQ(get(child.port, "/configuration", &number), 200);
        CHECK_EQ(number, i == 3 ? 2 : i);
    }
    kill(child.pid, SIGTERM);
    manager_hears(manager, "STOPPING=1");
    CHECK_EQ(await_end(&child), 0);
    unsetenv("NOTIFY_SOCKET");
    close(manager);
}

static void shows_life(void)
{
    int manager = begin_manager();
    child_t child;
    setenv("WATCHDOG_USEC", "20000", 1);
    child = start(1, "0", "60000", "", NULL, -1);
    for (int i = 0, signs = 0; signs < 3 && i < 10; i++) { /* among them READY=1 */
        char text[64];
        next_message(manager, text, sizeof text);
        CHECK(text[0] != 0);
        signs += strncmp(text, "WATCHDOG=1", 10) == 0;
        CHECK(i < 9);
    }
    unsetenv("WATCHDOG_USEC");
    unsetenv("NOTIFY_SOCKET");
    CHECK(hears(&child, "serves"));
    kill(child.pid, SIGTERM);
    CHECK_EQ(await_end(&child), 0);
    close(manager);
}

/* What the manager waits for is not lost if it has no room at first. */
static void is_patient_with_the_manager(void)
{
    int manager = begin_manager(), filler = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), fillers = 0;
    struct sockaddr_un address;
    socklen_t length = sizeof address;
    child_t child;
    CHECK_EQ(getsockname(manager, (struct sockaddr *)&address, &length), 0);
    while (sendto(filler, "full", 4, MSG_DONTWAIT, (struct sockaddr *)&address, length) == 4)
        fillers++;
    CHECK_EQ(errno, EAGAIN);
    child = start(1, "0", "60000", "", NULL, -1);
    CHECK(hears(&child, "serves"));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(get(child.port, "/", NULL), 200);
    while (fillers-- > 0)
        manager_hears(manager, "full");
    manager_hears(manager, "READY=1");
    kill(child.pid, SIGTERM);
    CHECK_EQ(await_end(&child), 0);
    unsetenv("NOTIFY_SOCKET");
    close(filler);
    close(manager);
}

/* A socket of the manager's stays open, and works, when the service has ended. */
static void is_activated(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(listener, 100), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    for (int i = 0; i < 2; i++) {
        child_t child = start(2, "0", "60000", "", NULL, listener);
        int fd;
        CHECK(hears(&child, "serves"));
        CHECK_EQ(child.port, ntohs(address.sin_port));
        CHECK_EQ(get(child.port, "/", NULL), 200);
        kill(child.pid, SIGTERM);
        CHECK_EQ(await_end(&child), 0);
        fd = connect_to(child.port);
        CHECK(fd >= 0);
        close(fd);
    }
    close(listener);
}

/* ---- Restarts ---- */

typedef struct load_maker {
    int port, stop; /* atomic */
    long requests, lost;
} load_maker_t;

static void *make_load(void *arg)
{
    load_maker_t *maker = arg;
    while (!__atomic_load_n(&maker->stop, __ATOMIC_ACQUIRE)) {
        int is_lost = get(maker->port, "/", NULL) != 200;
        __atomic_fetch_add(&maker->requests, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&maker->lost, is_lost, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Each process takes over from the one before it, with another number of threads, while clients make at least so many
 * requests. */
static void restarts(int times, long requests)
{
    enum { CLIENTS = 4 };
    load_maker_t maker = {0};
    pthread_t clients[CLIENTS];
    char name[32];
    child_t old, new;
    name_it(name, "restarts");
    old = start(2, "600000", "60000", name, NULL, -1);
    CHECK(hears(&old, "serves"));
    maker.port = old.port;
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&clients[i], NULL, make_load, &maker);
    for (int i = 0; i < times && !check_failures; i++) {
        long before = __atomic_load_n(&maker.requests, __ATOMIC_RELAXED);
        new = start(1 + i % 3, "600000", "60000", name, NULL, -1);
        CHECK(hears(&new, "serves"));
        CHECK_EQ(new.port, old.port);
        CHECK_EQ(await_end(&old), 0); /* without lame_time */
        while (__atomic_load_n(&maker.requests, __ATOMIC_RELAXED) < before + requests)
            sched_yield();
        old = new;
    }
    __atomic_store_n(&maker.stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    kill(old.pid, SIGTERM);
    kill(old.pid, SIGINT); /* lame_time is ten minutes */
    (void)await_end(&old);
    CHECK_EQ(maker.lost, 0);
    printf("%d restarts, %ld requests, %ld lost\n", times, maker.requests, maker.lost);
}

/* A new process that ends before it is ready leaves the old one as it was. */
static void outlives_a_bad_start(void)
{
    static const char *const when[] = {"load", "ready", "fails"};
    static const int ends[] = {-SIGKILL, -SIGKILL, EPROTO};
    char name[32];
    child_t old, new;
    int number = 0;
    name_it(name, "bad");
    old = start(2, "0", "60000", name, NULL, -1);
    CHECK(hears(&old, "serves"));
    for (int i = 0; i < 3; i++) {
        new = start(2, "0", "60000", name, when[i], -1);
        CHECK_EQ(await_end(&new), ends[i]);
        CHECK_EQ(get(old.port, "/", &number), 200);
        CHECK_EQ(number, old.pid);
    }
    new = start(2, "0", "60000", name, NULL, -1);
    CHECK(hears(&new, "serves"));
    CHECK_EQ(await_end(&old), 0);
    CHECK_EQ(get(new.port, "/", &number), 200);
    CHECK_EQ(number, new.pid);
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
}

/* One that is stopped when some of its threads serve: the sockets are still the old one's. */
static void is_stopped_before_it_is_ready(void)
{
    child_t old, new;
    char name[32];
    int number = 0;
    name_it(name, "half");
    old = start(2, "0", "60000", name, NULL, -1);
    CHECK(hears(&old, "serves"));
    new = start(2, "0", "60000", name, "is half ready", -1);
    CHECK(hears(&new, "is half ready"));
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(get(old.port, "/", &number), 200);
        CHECK_EQ(number, old.pid);
    }
    kill(old.pid, SIGTERM);
    CHECK_EQ(await_end(&old), 0);
}

/* Who replaces a process may also tell it to end: its requests still have their time. */
static void retires_by_one_signal(void)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    child_t old, new;
    char name[32], text[16] = "";
    int fd;
    name_it(name, "retires");
    old = start(1, "0", "60000", name, "tells", -1);
    CHECK(hears(&old, "serves"));
    fd = connect_to(old.port);
    CHECK_EQ(send(fd, request, 10, MSG_NOSIGNAL), 10);
    new = start(1, "0", "60000", name, NULL, -1);
    CHECK(hears(&new, "serves"));
    CHECK(hears(&old, "is stopped"));
    kill(old.pid, SIGTERM);
    CHECK_EQ(send(fd, request + 10, sizeof request - 11, MSG_NOSIGNAL), (ssize_t)sizeof request - 11);
    CHECK_EQ(recv(fd, text, 12, MSG_WAITALL), 12);
    CHECK(!strcmp(text, "HTTP/1.1 200"));
    close(fd);
    CHECK_EQ(await_end(&old), 0);
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
}

/* How many descriptors of the process are for a socket of which it has one already. */
static int copies_in(pid_t process)
{
    char path[64], links[128][64];
    int copies = 0;
    for (int i = 0; i < 128; i++) {
        ssize_t n;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)process, i);
        n = readlink(path, links[i], sizeof links[i] - 1);
        links[i][n > 0 ? n : 0] = 0;
        for (int j = 0; j < i && strncmp(links[i], "socket:", 7) == 0; j++)
            copies += strcmp(links[i], links[j]) == 0;
    }
    return copies;
}

/* Nothing but the threads' listeners holds the sockets: they are closed when those are. */
static void keeps_no_copies(void)
{
    child_t old, new;
    char name[32];
    name_it(name, "copies");
    old = start(2, "0", "60000", name, NULL, -1);
    CHECK(hears(&old, "serves"));
    new = start(2, "0", "60000", name, NULL, -1);
    CHECK(hears(&new, "serves"));
    CHECK_EQ(await_end(&old), 0);
    CHECK_EQ(copies_in(new.pid), 0);
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
}

/* The manager, which told the old process of its watchdog, goes on hearing signs of life. */
static void shows_life_after_a_restart(void)
{
    int manager = begin_manager();
    child_t old, new;
    char name[32], text[64];
    name_it(name, "life");
    setenv("WATCHDOG_USEC", "20000", 1);
    old = start(1, "0", "60000", name, NULL, -1);
    CHECK(hears(&old, "serves"));
    unsetenv("WATCHDOG_USEC");
    new = start(1, "0", "60000", name, NULL, -1);
    unsetenv("NOTIFY_SOCKET");
    CHECK(hears(&new, "serves"));
    CHECK_EQ(await_end(&old), 0);
    while (recv(manager, text, sizeof text, MSG_DONTWAIT) > 0)
        continue;
    for (int i = 0; i < 3; i++)
        manager_hears(manager, "WATCHDOG=1");
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
    close(manager);
}

/* Both have the service manager's socket. */
static void takes_over_when_activated(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), number = 0;
    child_t old, new;
    char name[32];
    name_it(name, "activated");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(listener, 100), 0);
    old = start(2, "0", "60000", name, NULL, listener);
    CHECK(hears(&old, "serves"));
    new = start(2, "0", "60000", name, NULL, listener);
    CHECK(hears(&new, "serves"));
    kill(old.pid, check_failures ? SIGTERM : 0);
    CHECK_EQ(await_end(&old), 0);
    CHECK_EQ(get(new.port, "/", &number), 200);
    CHECK_EQ(number, new.pid);
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
    close(listener);
}

/* ---- An old process that this one plays ---- */

static socklen_t address_of(struct sockaddr_un *address, const char *name)
{
    int n;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    n = snprintf(address->sun_path, sizeof address->sun_path, "@acorn-hand-over-%u-%s", (unsigned)geteuid(), name);
    address->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
}

static int listen_at_name(const char *name)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const socklen_t length = address_of(&address, name);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, length), 0);
    CHECK_EQ(listen(fd, 10), 0);
    return fd;
}

static void send_with(int to, const char *text, int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights = {.bytes = {0}};
    struct iovec part = {(char *)(uintptr_t)text, strlen(text)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    rights.header.cmsg_level = SOL_SOCKET;
    rights.header.cmsg_type = SCM_RIGHTS;
    rights.header.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&rights.header), &fd, sizeof fd);
    CHECK_EQ(sendmsg(to, &message, MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* The old one no longer waits, but goes on: the new one must not do so, too. */
static void is_refused(void)
{
    char name[32];
    int fd, door;
    child_t new;
    name_it(name, "refused");
    door = listen_at_name(name);
    new = start(2, "0", "60000", name, NULL, -1);
    fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    send_with(fd, "N", door);
    CHECK_EQ(send(fd, "E", 1, MSG_NOSIGNAL), 1);
    CHECK_EQ(send(fd, "X", 1, MSG_NOSIGNAL), 1);
    CHECK_EQ(await_end(&new), ETIMEDOUT);
    close(fd);
    close(door);
}

/* The old one ends while it hands over: then there is none. */
static void outlives_a_bad_end(int messages)
{
    char name[32];
    int fd, door;
    child_t new;
    name_it(name, "bad-end");
    door = listen_at_name(name);
    new = start(2, "0", "60000", name, NULL, -1);
    fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    if (messages > 0)
        send_with(fd, "N", door);
    if (messages > 1)
        send_with(fd, "Lother tcp 127.0.0.1 0", door);
    close(door);
    close(fd);
    CHECK(hears(&new, "serves"));
    CHECK_EQ(get(new.port, "/", NULL), 200);
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
}

/* Who says nothing does not keep others from taking over. Waits for a second: it takes two processes to hand over. */
static void is_not_kept_by_silence(void)
{
    struct sockaddr_un address;
    int silent = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    child_t old, new;
    char name[32];
    name_it(name, "silent");
    old = start(1, "0", "60000", name, NULL, -1);
    CHECK(hears(&old, "serves"));
    while (connect(silent, (struct sockaddr *)&address, address_of(&address, name)) != 0)
        CHECK_EQ(errno, ECONNREFUSED);
    new = start(1, "0", "60000", name, NULL, -1);
    CHECK(hears(&new, "serves"));
    kill(old.pid, check_failures ? SIGTERM : 0);
    CHECK_EQ(await_end(&old), 0);
    kill(new.pid, SIGTERM);
    CHECK_EQ(await_end(&new), 0);
    close(silent);
}

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], "serve") == 0)
        return be_service(argv);
    ends_at_a_signal();
    is_lame_first();
    cancels("50", 1);
    cancels("600000", 2);
    fails_as_serve_does();
    rejects();
    reloads();
    shows_life();
    is_patient_with_the_manager();
    is_activated();
    ends_while_it_loads();
    outlives_a_bad_start();
    is_stopped_before_it_is_ready();
    retires_by_one_signal();
    keeps_no_copies();
    takes_over_when_activated();
    shows_life_after_a_restart();
    is_not_kept_by_silence();
    is_refused();
    for (int messages = 0; messages < 3; messages++)
        outlives_a_bad_end(messages);
    restarts(argc > 1 ? atoi(argv[1]) : 5, argc > 2 ? atol(argv[2]) : 100);
    return check_result("service");
}
