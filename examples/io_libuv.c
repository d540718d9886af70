/* Tasks inside libuv's loop: aco_run_ready() runs what can run, before each time that the loop waits.
 *
 *   cc io_libuv.c $(pkg-config --cflags --libs acorn_io libuv) */
#include <aco/io.h>

#include <stdio.h>
#include <sys/socket.h>
#include <uv.h>

static uv_prepare_t before_waiting;
static uv_poll_t events;
static uv_timer_t deadline, ours;
static aco_t *parked;

static void nothing(uv_poll_t *handle, int status, int what) /* it ends the loop's wait, that is all */
{
    (void)handle, (void)status, (void)what;
}

static void due(uv_timer_t *handle)
{
    (void)handle;
}

static void step(uv_prepare_t *handle)
{
    int64_t next, left;
    int more = aco_run_ready(&next);
    if (more < 0)
        fprintf(stderr, "%s\n", aco_error_message());
    if (more <= 0) { /* no tasks are left */
        uv_prepare_stop(handle);
        uv_poll_stop(&events);
        uv_timer_stop(&deadline);
        return;
    }
    left = next - aco_now();
    if (next == ACO_FOREVER)
        uv_timer_stop(&deadline);
    else
        uv_timer_start(&deadline, due, left > 0 ? (uint64_t)((left + 999999) / 1000000) : 0, 0);
}

/* ---- The program ---- */

static void *echo(void *fd)
{
    char bytes[100];
    ssize_t n;
    while ((n = aco_io_read((int)(intptr_t)fd, bytes, sizeof bytes)) > 0)
        aco_io_write_all((int)(intptr_t)fd, bytes, (size_t)n);
    return NULL;
}

static void on_timer(uv_timer_t *handle)
{
    (void)handle;
    aco_unpark(parked);
}

static void *asks(void *fd)
{
    char answer[6] = "";
    parked = aco_get_co();
    uv_timer_start(&ours, on_timer, 2, 0);
    aco_park("the loop's timer");
    printf("woken by libuv's timer\n");
    aco_sleep(5 * ACO_MILLISECOND);
    aco_io_write_all((int)(intptr_t)fd, "hello", 5);
    aco_io_read_exactly((int)(intptr_t)fd, answer, 5);
    printf("answer: %s\n", answer);
    aco_io_shutdown((int)(intptr_t)fd, SHUT_WR);
    return NULL;
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    aco_options_t detached = {0};
    int pair[2];
    detached.flags = ACO_DETACHED;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || aco_io_adopt(pair[0]) != 0 || aco_io_adopt(pair[1]) != 0)
        return 1;
    aco_spawn(echo, (void *)(intptr_t)pair[0], &detached);
    aco_spawn(asks, (void *)(intptr_t)pair[1], &detached);
    uv_poll_init(loop, &events, aco_io_poll_fd());
    uv_poll_start(&events, UV_READABLE, nothing);
    uv_timer_init(loop, &deadline);
    uv_prepare_init(loop, &before_waiting);
    uv_prepare_start(&before_waiting, step);
    uv_timer_init(loop, &ours);
    uv_run(loop, UV_RUN_DEFAULT);
    printf("the loop has ended\n");
    aco_io_close(pair[0]);
    aco_io_close(pair[1]);
    return 0;
}
