/* An echo server on every core, for lines: threads_echo [PORT [THREADS [DRAIN_MS [one]]]].
 *
 * Each thread has a listener of its own, all on one port (SO_REUSEPORT): the kernel spreads the connections by a hash
 * of their addresses, and each stays on its thread. Few of them may be spread badly. So with "one" there is one
 * listener, and each connection goes to the thread that has the fewest.
 *
 * Ctrl-C: no connection is accepted any more, those without a line under way are closed at once, and the others when
 * their line was answered; what is left after DRAIN_MS milliseconds, or after another Ctrl-C, is cancelled. */
#include <aco/io_buffer.h>
#include <aco/threads.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static aco_mt_group_t connections;
static int has_one_listener;

/* Between lines, also a stop ends the wait. */
static int has_request(aco_io_reader_t *in)
{
    const char *bytes;
    aco_stop_t idle;
    ssize_t n;
    aco_stop_begin(&idle, ACO_FOREVER);
    n = aco_io_reader_peek(in, 1, &bytes);
    aco_stop_end(&idle);
    return n > 0;
}

static void *echo(void *connection)
{
    int fd = (int)(intptr_t)connection;
    aco_io_reader_t in;
    char *line;
    ssize_t n;
    aco_io_adopt(fd); /* from now on it is this thread's */
    aco_io_reader_open(&in, fd, NULL, 4096);
    while (has_request(&in) && (n = aco_io_reader_until(&in, '\n', &line)) > 0)
        if (aco_io_write_all(fd, line, (size_t)n) < 0)
            break;
    aco_io_reader_close(&in);
    aco_io_close(fd);
    return NULL;
}

static int give_away(int fd)
{
    aco_submit_options_t options = {0};
    options.where = has_one_listener ? ACO_SUBMIT_EVENLY : ACO_SUBMIT_TO;
    options.thread = aco_threads_index();
    aco_io_release(fd);
    return aco_submit(&connections, echo, (void *)(intptr_t)fd, &options);
}

static void accept_all(int listener)
{
    aco_stop_t accepting;
    int fd;
    aco_stop_begin(&accepting, ACO_FOREVER);
    while ((fd = aco_io_accept(listener)) >= 0)
        if (give_away(fd) != 0)
            aco_io_close(fd);
    aco_stop_end(&accepting);
    aco_io_close(listener);
}

static int listen_on(const char *port)
{
    aco_io_options_t options = {0};
    options.flags = has_one_listener ? 0 : ACO_IO_REUSEPORT;
    return aco_io_listen("tcp", "127.0.0.1", port, &options);
}

static void *listen_too(void *port)
{
    int listener = listen_on(port);
    if (listener < 0)
        return ACO_ERROR;
    accept_all(listener);
    return NULL;
}

static void *serve(void *port)
{
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = listen_on(port), threads = aco_threads_count(aco_threads_current()), failed;
    aco_submit_options_t to = {0};
    aco_mt_group_t listeners;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), ACO_ERROR;
    aco_mt_group_begin(&connections, ACO_KEEP_GOING);
    aco_mt_group_begin(&listeners, ACO_CANCEL_ON_FAILURE);
    to.where = ACO_SUBMIT_TO;
    for (to.thread = 1; to.thread < threads && !has_one_listener; to.thread++)
        aco_submit(&listeners, listen_too, strrchr(address, ':') + 1, &to);
    fprintf(stderr, "listening on %s\n", address);
    accept_all(listener);
    failed = aco_mt_group_end(&listeners);
    aco_mt_group_end(&connections);
    return failed ? ACO_ERROR : NULL;
}

int main(int argc, char **argv)
{
    aco_threads_options_t options = {0};
    int failed;
    options.flags = ACO_THREADS_FIRST_ONLY | ACO_THREADS_INTERRUPTIBLE;
    options.drain_ns = (argc > 3 ? atoll(argv[3]) : 5000) * ACO_MILLISECOND;
    has_one_listener = argc > 4 && strcmp(argv[4], "one") == 0;
    failed = aco_threads_run(argc > 2 ? atoi(argv[2]) : 0, serve, argc > 1 ? argv[1] : "7000", &options);
    fprintf(stderr, "ended\n");
    return failed && errno != EINTR;
}
