/* libcurl by its multi interface, without hooks: io_curl URL... One task drives all transfers: libcurl tells which
 * descriptors it waits for, each has a task that waits, and libcurl is told of the events.
 *
 *   cc io_curl.c $(pkg-config --cflags --libs acorn_io libcurl) */
#include <aco/io.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

/* A descriptor of libcurl's, and the task that waits for it. */
typedef struct watch {
    curl_socket_t fd;
    int what; /* CURL_POLL_…; CURL_POLL_REMOVE: libcurl does not want it any more */
    aco_t *task;
    struct watch *next; /* of those that are ready */
    int is_ready;
} watch_t;

static CURLM *multi;
static aco_t *driver;
static watch_t *ready;
static int64_t deadline = ACO_FOREVER;

static void *watches(void *arg)
{
    watch_t *watch = arg;
    while (watch->what != CURL_POLL_REMOVE) {
        int failed = watch->what == CURL_POLL_OUT ? aco_io_wait_writable(watch->fd) : aco_io_wait_readable(watch->fd);
        if (watch->what == CURL_POLL_REMOVE || failed)
            break;
        watch->is_ready = 1;
        watch->next = ready;
        ready = watch;
        aco_unpark(driver);
        while (watch->is_ready) /* until libcurl has been told */
            aco_park("libcurl");
    }
    free(watch);
    return NULL;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *unused, void *arg)
{
    watch_t *watch = arg;
    aco_options_t detached = {0};
    (void)easy, (void)unused;
    detached.flags = ACO_DETACHED;
    if (watch && watch->what != what) { /* the wait for the other event ends */
        watch->what = CURL_POLL_REMOVE;
        aco_io_release(fd);
        watch = NULL;
    }
    if (!watch && what != CURL_POLL_REMOVE) {
        watch = calloc(1, sizeof *watch);
        watch->fd = fd;
        watch->what = what;
        watch->task = aco_spawn(watches, watch, &detached);
    }
    curl_multi_assign(multi, fd, what == CURL_POLL_REMOVE ? NULL : watch);
    return 0;
}

static int on_timer(CURLM *unused, long ms, void *unused2)
{
    (void)unused, (void)unused2;
    deadline = ms < 0 ? ACO_FOREVER : aco_after(ms * ACO_MILLISECOND);
    return 0;
}

/* Tells libcurl of one event, and lets its task go on. */
static void tell(watch_t *watch, int *running)
{
    ready = watch->next;
    if (watch->what != CURL_POLL_REMOVE)
        curl_multi_socket_action(multi, watch->fd, watch->what == CURL_POLL_OUT ? CURL_CSELECT_OUT : CURL_CSELECT_IN,
                                 running);
    watch->is_ready = 0;
    aco_unpark(watch->task);
}

static void *drive(void *unused)
{
    int running = 1;
    do {
        while (ready)
            tell(ready, &running);
        if (deadline <= aco_now()) {
            deadline = ACO_FOREVER;
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        if (running && !ready)
            aco_park_until("libcurl", deadline);
    } while (running);
    return unused;
}

int main(int argc, char **argv)
{
    CURLMsg *message;
    int left, failed = 0;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    for (int i = 1; i < argc; i++) {
        CURL *easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_URL, argv[i]);
        curl_multi_add_handle(multi, easy); /* sets the timer */
    }
    printf("answer: ");
    driver = aco_spawn(drive, NULL, NULL);
    if (!driver || aco_run() != 0)
        return 1;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        CURL *easy = message->easy_handle;
        failed |= message->data.result != CURLE_OK;
        curl_multi_remove_handle(multi, easy);
        curl_easy_cleanup(easy);
    }
    curl_multi_cleanup(multi);
    return failed;
}
