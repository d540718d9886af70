/* A text or a message that grows; and what the pages share. */
#define _GNU_SOURCE
#include "debug/page.h"
#include "system/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096, MOST_ROOM = 256 << 20 };

/* Room for `n` more bytes. */
static int has_page_room(aco__page_t *page, size_t n)
{
    size_t room = page->room ? page->room : FIRST_ROOM;
    char *at;
    if (page->is_broken || n > MOST_ROOM || page->n + n > MOST_ROOM) {
        page->is_broken = 1;
        return 0;
    }
    if (page->n + n <= page->room)
        return 1;
    while (room < page->n + n)
        room *= 2;
    at = realloc(page->at, room);
    if (!at) {
        page->is_broken = 1;
        return 0;
    }
    page->at = at;
    page->room = room;
    return 1;
}

void aco__page_add(aco__page_t *page, const void *p, size_t n)
{
    if (!n || !has_page_room(page, n))
        return;
    memcpy(page->at + page->n, p, n);
    page->n += n;
}

void aco__page_print(aco__page_t *page, const char *format, ...)
{
    char line[1024];
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0)
        aco__page_add(page, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void aco__page_free(aco__page_t *page)
{
    free(page->at);
    *page = (aco__page_t){0};
}

ACO__SWITCHES void aco__page_reply(aco_http_request_t *request, const char *type, aco__page_t *page)
{
    (void)aco_http_reply_header(request, "Cache-Control", "no-store");
    (void)aco_http_reply_header(request, "X-Content-Type-Options", "nosniff");
    if (page->is_broken)
        (void)aco_http_reply(request, 500, "text/plain", "no memory\n", 10);
    else
        (void)aco_http_reply(request, 200, type, page->at ? page->at : "", page->n);
    aco__page_free(page);
}

int aco__page_number(aco_http_request_t *request, const char *name, int missing, int most)
{
    const char *text = aco_http_request_query(request, name);
    char *end;
    long number;
    if (!text || !*text)
        return missing;
    number = strtol(text, &end, 10);
    if (*end || number < 0)
        return missing;
    return number < most ? (int)number : most;
}

/* ---- One profile at a time ---- */

enum { PATIENCE_MS = 2000, TRY_EACH_MS = 5 };

static pid_t profiler; /* the process that makes one; 0: none does. A child of fork() does not go on with it */
static const char *profile_path; /* its page; atomic, like the next */
static unsigned profile_until;   /* when it ends, in seconds on the clock of aco_now(); 0: soon */

static int take_turn(void)
{
    const pid_t own = aco__system.getpid();
    pid_t now = __atomic_load_n(&profiler, __ATOMIC_RELAXED);
    while (now != own)
        if (__atomic_compare_exchange_n(&profiler, &now, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 1;
    return 0;
}

/* `go tool pprof` shows the text for the header that servers of Go send. */
ACO__SWITCHES static void refuse(aco_http_request_t *request)
{
    const char *path = __atomic_load_n(&profile_path, __ATOMIC_ACQUIRE);
    unsigned until = __atomic_load_n(&profile_until, __ATOMIC_RELAXED), now = (unsigned)(aco_now() / ACO_SECOND);
    unsigned left = until > now ? until - now : 1;
    char text[160], seconds[16];
    int n = snprintf(text, sizeof text, "one profile at a time: %.64s is being made, for some %u s more\n",
                     path ? path : "another one", left);
    (void)snprintf(seconds, sizeof seconds, "%u", left);
    (void)aco_http_reply_header(request, "Retry-After", seconds);
    (void)aco_http_reply_header(request, "X-Go-Pprof", "1");
    (void)aco_http_reply(request, 429, "text/plain; charset=utf-8", text, (size_t)n);
}

ACO__SWITCHES int aco__profile_begin(aco_http_request_t *request, int seconds)
{
    const int64_t patience = aco_after(PATIENCE_MS * ACO_MILLISECOND);
    while (!take_turn())
        if (__atomic_load_n(&profile_until, __ATOMIC_RELAXED) || aco_now() >= patience ||
            aco_sleep(TRY_EACH_MS * ACO_MILLISECOND) != 0) {
            refuse(request);
            return 0;
        }
    __atomic_store_n(&profile_path, request->route ? request->route->path : NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&profile_until, seconds ? (unsigned)(aco_now() / ACO_SECOND) + 1 + (unsigned)seconds : 0,
                     __ATOMIC_RELAXED);
    return 1;
}

void aco__profile_end(void)
{
    __atomic_store_n(&profile_until, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&profiler, 0, __ATOMIC_RELEASE);
}
