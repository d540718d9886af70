/* Trailers of a message that comes in. Who parses it tells of their names and values in parts. */
#include "http/trailers.h"
#include "base/invariants.h"
#include "http/text.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <string.h>

/* Makes room for `n` bytes more. The program may hold a value that was found: the first memory stays when it is full,
 * and the second one has room for all there can be. 0, or -1 and errno. */
static int extend_trailers(aco__http_trailers_t *t, size_t n)
{
    size_t room = t->bytes ? HTTP_MOST_TRAILERS : n + 128;
    char *larger = aco__service_allocate(&room, "an HTTP message");
    if (!larger)
        return -1;
    ACO__ASSERT(!t->first && t->n + n <= room);
    aco__http_put(larger, t->bytes, t->n);
    t->first = t->bytes;
    t->first_room = t->room;
    t->bytes = larger;
    t->room = room;
    return 0;
}

static int append_trailer(aco__http_trailers_t *t, const char *p, size_t n)
{
    ACO__ASSERT(t->n <= HTTP_MOST_TRAILERS);
    if (n > HTTP_MOST_TRAILERS - t->n) {
        errno = EFBIG;
        return -1;
    }
    if (n > t->room - t->n && extend_trailers(t, n) != 0)
        return -1;
    aco__http_put(t->bytes + t->n, p, n);
    t->n += n;
    return 0;
}

int aco__http_add_trailer(aco__http_trailers_t *t, const char *p, size_t n, int where)
{
    if (t->at == HTTP_IN_NAME && where != HTTP_IN_NAME && append_trailer(t, "", 1) != 0)
        return -1;
    if (where == HTTP_BEHIND_VALUE) {
        char last;
        while (t->n && ((last = t->bytes[t->n - 1]) == ' ' || last == '\t'))
            t->n--;
    }
    t->at = (unsigned char)where;
    return append_trailer(t, p, where == HTTP_BEHIND_VALUE ? 1 : n);
}

const char *aco__http_find_trailer(const aco__http_trailers_t *t, const char *name)
{
    const char *at = t->bytes, *end;
    if (!at || t->at != HTTP_BEHIND_VALUE || aco__http_must_come_first(name)) /* or the last one has come in part */
        return NULL;
    end = at + t->n;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (aco__http_same(at, name))
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

void aco__http_drop_trailers(aco__http_trailers_t *t)
{
    if (t->bytes)
        aco__service_free(t->bytes, t->room);
    if (t->first)
        aco__service_free(t->first, t->first_room);
    memset(t, 0, sizeof *t);
}
