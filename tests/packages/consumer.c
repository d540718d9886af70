/* What each package is tried with (tests/packages/run.sh): one call of every library that it brings. */
#include <aco/generator.h>
#include <aco/http.h>
#include <aco/io.h>
#include <aco/scheduler.h>
#include <aco/threads.h>
#ifdef CONSUMER_TLS
#include <aco/tls.h>
#endif
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

ACO_GENERATOR(two, y, arg)
{
    aco_generate(y, arg);
    aco_generate(y, arg);
}

static void *echo(void *fd)
{
    char text[8];
    ssize_t n = aco_io_read(*(int *)fd, text, sizeof text);
    return n > 0 && aco_io_write(*(int *)fd, text, (size_t)n) == n ? fd : NULL;
}

static void *ask(void *fd)
{
    char text[8] = {0};
    if (aco_io_write(*(int *)fd, "acorn", 6) != 6 || aco_io_read(*(int *)fd, text, sizeof text) != 6)
        return NULL;
    return strcmp(text, "acorn") == 0 ? fd : NULL;
}

static int over_a_socket(void)
{
    int pair[2];
    void *asked = NULL, *echoed = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || aco_io_adopt(pair[0]) != 0 || aco_io_adopt(pair[1]) != 0)
        return -1;
    aco_t *one = aco_spawn(ask, &pair[0], NULL), *other = aco_spawn(echo, &pair[1], NULL);
    if (aco_run() != 0 || aco_join(one, &asked) != 0 || aco_join(other, &echoed) != 0)
        return -1;
    return asked && echoed && aco_io_close(pair[0]) == 0 && aco_io_close(pair[1]) == 0 ? 0 : -1;
}

static int add(size_t from, size_t to, void *sum)
{
    __atomic_fetch_add((size_t *)sum, to - from, __ATOMIC_RELAXED);
    return 0;
}

static void *on_threads(void *sum)
{
    return aco_parallel_for(0, 1000, 10, add, sum) == 0 ? sum : ACO_ERROR;
}

static int generated(void)
{
    aco_generator_t g;
    int n = 0;
    if (aco_generator_open(&g, two, &n, NULL) != 0)
        return -1;
    while (aco_generator_next(&g))
        ++*(int *)g.value;
    aco_generator_close(&g);
    return n;
}

int main(void)
{
    size_t sum = 0;
    aco_http_client_t *client = NULL;
    if (generated() != 2 || over_a_socket() != 0 || aco_threads_run(2, on_threads, &sum, NULL) != 0 || sum != 2000)
        return fprintf(stderr, "%s\n", aco_error_message()), 1;
    if (!(client = aco_http_client_new(NULL)))
        return fprintf(stderr, "%s\n", aco_error_message()), 1;
    aco_http_client_destroy(client);
#ifdef CONSUMER_TLS
    aco_tls_config_t *config = aco_tls_config_new(0);
    if (!config || aco_tls_config_destroy(config) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), 1;
#endif
    printf("consumer of acorn %s: good\n", ACORN_VERSION_STRING);
    return 0;
}
