/* Tasks inside GLib's main loop: a source that runs them when there are events or a deadline is over.
 *
 *   cc io_glib.c $(pkg-config --cflags --libs acorn_io glib-2.0) */
#include <aco/io.h>

#include <glib.h>
#include <stdio.h>
#include <sys/socket.h>

static GMainLoop *loop;
static GSource *tasks;
static aco_t *parked;

/* GLib calls it when the descriptor is readable, or at the source's ready time. */
static gboolean step(GSource *source, GSourceFunc callback, gpointer data)
{
    int64_t next;
    int more = aco_run_ready(&next);
    (void)callback, (void)data;
    if (more < 0)
        fprintf(stderr, "%s\n", aco_error_message());
    if (more <= 0) /* no tasks are left */
        g_main_loop_quit(loop);
    g_source_set_ready_time(source, next == ACO_FOREVER ? -1 : (next + 999) / 1000); /* both clocks are the system's */
    return G_SOURCE_CONTINUE;
}

/* To be called after a callback has woken or spawned tasks. */
static void run_tasks_soon(void)
{
    g_source_set_ready_time(tasks, 0);
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

static gboolean on_timer(gpointer data)
{
    (void)data;
    aco_unpark(parked);
    run_tasks_soon();
    return G_SOURCE_REMOVE;
}

static void *asks(void *fd)
{
    char answer[6] = "";
    parked = aco_get_co();
    g_timeout_add(2, on_timer, NULL);
    aco_park("the loop's timer");
    printf("woken by GLib's timer\n");
    aco_sleep(5 * ACO_MILLISECOND);
    aco_io_write_all((int)(intptr_t)fd, "hello", 5);
    aco_io_read_exactly((int)(intptr_t)fd, answer, 5);
    printf("answer: %s\n", answer);
    aco_io_shutdown((int)(intptr_t)fd, SHUT_WR);
    return NULL;
}

int main(void)
{
    static GSourceFuncs functions = {NULL, NULL, step, NULL, NULL, NULL};
    aco_options_t detached = {0};
    int pair[2];
    detached.flags = ACO_DETACHED;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || aco_io_adopt(pair[0]) != 0 || aco_io_adopt(pair[1]) != 0)
        return 1;
    aco_spawn(echo, (void *)(intptr_t)pair[0], &detached);
    aco_spawn(asks, (void *)(intptr_t)pair[1], &detached);
    loop = g_main_loop_new(NULL, FALSE);
    tasks = g_source_new(&functions, sizeof(GSource));
    g_source_add_unix_fd(tasks, aco_io_poll_fd(), G_IO_IN);
    g_source_attach(tasks, NULL);
    run_tasks_soon();
    g_main_loop_run(loop);
    printf("the loop has ended\n");
    g_source_unref(tasks);
    g_main_loop_unref(loop);
    aco_io_close(pair[0]);
    aco_io_close(pair[1]);
    return 0;
}
