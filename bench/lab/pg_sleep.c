/* A thousand connections to PostgreSQL ask for SELECT pg_sleep(0.1) at once: by hooked tasks, by a poll() loop on
 * libpq's asynchronous calls, by a thread for each. One line for each time: from the first question to the last answer,
 * and the CPU time of the client and of the server's processes in it. Each way has new connections, made before that,
 * and asks twice: only the first time the server's processes load their catalogs.
 *
 *   cc -O2 -Iinclude bench/lab/pg_sleep.c $(pkg-config --cflags --libs libpq) \
 *       build/dev/libacorn_hook.a build/dev/libacorn_io.a build/dev/libacorn.a -luring -lpthread -o pg_sleep
 *   pg_sleep PORT CONNECTIONS ROUNDS     (a server as in tests/hook/clients.py)
 *
 * 1000 connections, PostgreSQL 15, 2 virtual cores of a Zen 5 for client and server, 2026-11-26; seconds, median
 * (least) of 5:
 *
 *               first question   CPU of client, server   second question   CPU of client, server
 *   hooks       0.224 (0.207)    0.026   0.234           0.136 (0.131)     0.023   0.077
 *   poll()      0.218 (0.203)    0.069   0.227           0.131 (0.129)     0.021   0.076
 *   threads     0.256 (0.218)    0.052   0.248           0.152 (0.146)     0.055   0.081 */
#define _GNU_SOURCE
#include <aco/hook.h>
#include <aco/sync.h>

#include <dirent.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST = 2000 };
static const char question[] = "SELECT pg_sleep(0.1)";
static PGconn *connections[MOST];
static pthread_barrier_t start;
static int count;

static void need(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "pg_sleep: %s\n", what);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What all processes named postgres have used, in seconds. */
static double server_seconds(void)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    double sum = 0;
    while ((entry = readdir(folder))) {
        char path[300], name[32] = "";
        unsigned long long ns = 0;
        FILE *file;
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        if (atoi(entry->d_name) <= 0 || !(file = fopen(path, "r")))
            continue;
        need(fscanf(file, "%31s", name) >= 0, path);
        fclose(file);
        snprintf(path, sizeof path, "/proc/%s/schedstat", entry->d_name);
        if (strcmp(name, "postgres") != 0 || !(file = fopen(path, "r")))
            continue;
        need(fscanf(file, "%llu", &ns) == 1, path);
        fclose(file);
        sum += (double)ns / 1e9;
    }
    closedir(folder);
    return sum;
}

static void ask(PGconn *connection)
{
    PGresult *result = PQexec(connection, question);
    need(PQresultStatus(result) == PGRES_TUPLES_OK, PQerrorMessage(connection));
    PQclear(result);
}

static void *asks_hooked(void *connection)
{
    need(aco_hook_begin() == 0, aco_error_message());
    ask(connection);
    return NULL;
}

static void by_hooks(void)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    for (int i = 0; i < count; i++)
        need(aco_spawn(asks_hooked, connections[i], &detached) != NULL, "aco_spawn");
    need(aco_run() == 0, "aco_run");
}

/* Takes what has come: whether that was the answer. */
static int is_answered(PGconn *connection)
{
    PGresult *result;
    need(PQconsumeInput(connection), PQerrorMessage(connection));
    if (PQisBusy(connection))
        return 0;
    while ((result = PQgetResult(connection))) {
        need(PQresultStatus(result) == PGRES_TUPLES_OK, PQerrorMessage(connection));
        PQclear(result);
    }
    return 1;
}

static void by_poll_loop(void)
{
    static struct pollfd fds[MOST];
    int left = count;
    for (int i = 0; i < count; i++) {
        need(PQsendQuery(connections[i], question) && PQflush(connections[i]) == 0, PQerrorMessage(connections[i]));
        fds[i] = (struct pollfd){PQsocket(connections[i]), POLLIN, 0};
    }
    while (left) {
        need(poll(fds, (nfds_t)count, -1) > 0, "poll");
        for (int i = 0; i < count; i++)
            if (fds[i].revents && is_answered(connections[i])) {
                fds[i].fd = -1;
                left--;
            }
    }
}

static void *asks_on_thread(void *connection)
{
    pthread_barrier_wait(&start);
    ask(connection);
    return NULL;
}

static pthread_t threads[MOST];
static void start_threads(void)
{
    need(pthread_barrier_init(&start, NULL, (unsigned)count + 1) == 0, "a barrier");
    for (int i = 0; i < count; i++)
        need(pthread_create(&threads[i], NULL, asks_on_thread, connections[i]) == 0, "a thread");
}

static void by_threads(void)
{
    pthread_barrier_wait(&start);
    for (int i = 0; i < count; i++)
        need(pthread_join(threads[i], NULL) == 0, "pthread_join");
}

static const struct {
    const char *name;
    void (*prepare)(void), (*run)(void);
} ways[] = {{"hooks", NULL, by_hooks}, {"poll() loop", NULL, by_poll_loop}, {"threads", start_threads, by_threads}};

static void connect_all(const char *port)
{
    char text[100];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%s user=postgres dbname=postgres", port);
    for (int i = 0; i < count; i++) {
        connections[i] = PQconnectdb(text);
        need(PQstatus(connections[i]) == CONNECTION_OK, PQerrorMessage(connections[i]));
    }
}

static void measure(const char *name, const char *time_of, void (*prepare)(void), void (*run)(void))
{
    struct timespec rest = {0, 300000000}; /* for the server's processes to settle */
    double time, client, server;
    if (prepare)
        prepare();
    nanosleep(&rest, NULL);
    server = server_seconds();
    client = seconds(CLOCK_PROCESS_CPUTIME_ID);
    time = seconds(CLOCK_MONOTONIC);
    run();
    time = seconds(CLOCK_MONOTONIC) - time;
    client = seconds(CLOCK_PROCESS_CPUTIME_ID) - client;
    server = server_seconds() - server;
    printf("%-12s %-6s %.3f s, CPU of the client %.3f s, of the server %.3f s\n", name, time_of, time, client, server);
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    need(argc == 4 && (count = atoi(argv[2])) > 0 && count <= MOST, "PORT CONNECTIONS ROUNDS");
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int round = 0; round < atoi(argv[3]); round++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            connect_all(argv[1]);
            measure(ways[i].name, "first", ways[i].prepare, ways[i].run);
            measure(ways[i].name, "again", ways[i].prepare, ways[i].run);
            for (int c = 0; c < count; c++)
                PQfinish(connections[c]);
        }
    return 0;
}
