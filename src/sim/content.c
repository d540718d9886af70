/* The bytes of a file: pages as a kernel's cache has them, and beside them a list of what was there before each change
 * that is not durable. A crash goes through the list from its end and puts back what does not survive, sector by
 * sector.
 *
 * A sector holds what it held after one of the changes: a disk writes whole sectors, in any order, of which each is the
 * cache's at some moment. Likewise the size. */
#include "sim/content.h"
#include "sim/draw.h"
#include "sim/grow.h"
#include "sim/world.h"

enum { MOST_CHANGES = 1 << 14 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many of `n` bytes lie in the page of `offset`. */
static size_t in_page(int64_t offset, size_t n)
{
    return smaller(n, ACO__SIM_PAGE - (size_t)(offset % ACO__SIM_PAGE));
}

static char *page_at(const aco__sim_content_t *content, int64_t offset)
{
    size_t page = (size_t)(offset / ACO__SIM_PAGE);
    return page < content->pages_room ? content->pages[page] : NULL;
}

/* ---- Pages ---- */

/* 0, or an errno. */
static int make_page(aco__sim_content_t *content, aco__sim_room_t *room, int64_t offset)
{
    size_t page = (size_t)(offset / ACO__SIM_PAGE);
    char **pages = aco__sim_grown(content->pages, &content->pages_room, page + 1, sizeof *pages);
    if (!pages)
        return ENOMEM;
    content->pages = pages;
    if (pages[page])
        return 0;
    if (room->capacity && room->used >= room->capacity)
        return ENOSPC;
    pages[page] = calloc(1, ACO__SIM_PAGE);
    if (!pages[page])
        return ENOMEM;
    content->pages_used++;
    room->used++;
    return 0;
}

/* How many of the bytes have pages, that were made if needed; -1 and errno if none has. */
static ssize_t make_pages(aco__sim_content_t *content, aco__sim_room_t *room, int64_t offset, size_t n)
{
    size_t done = 0;
    while (done < n) {
        int error = make_page(content, room, offset + (int64_t)done);
        if (error) {
            errno = error;
            return done ? (ssize_t)done : -1;
        }
        done += in_page(offset + (int64_t)done, n - done);
    }
    return (ssize_t)n;
}

/* Copies bytes that may lie behind the end. */
static void copy_out(const aco__sim_content_t *content, char *p, int64_t offset, size_t n)
{
    for (size_t part; n > 0; p += part, offset += (int64_t)part, n -= part) {
        const char *page = page_at(content, offset);
        part = in_page(offset, n);
        if (page)
            memcpy(p, page + offset % ACO__SIM_PAGE, part);
        else
            memset(p, 0, part);
    }
}

/* `p` NULL: zeros. What has no page gets none: it is zeros. */
static void copy_in(const aco__sim_content_t *content, const char *p, int64_t offset, size_t n)
{
    for (size_t part; n > 0; p = p ? p + part : NULL, offset += (int64_t)part, n -= part) {
        char *page = page_at(content, offset);
        part = in_page(offset, n);
        if (page && p)
            memcpy(page + offset % ACO__SIM_PAGE, p, part);
        else if (page)
            memset(page + offset % ACO__SIM_PAGE, 0, part);
    }
}

/* ---- Changes ---- */

static void free_changes(aco__sim_content_t *content, size_t from)
{
    for (size_t i = from; i < content->n; i++)
        free(content->changes[i].bytes);
    content->n = from;
}

/* The kernel has written the oldest one. */
static void drop_oldest(aco__sim_content_t *content)
{
    free(content->changes[0].bytes);
    memmove(content->changes, content->changes + 1, --content->n * sizeof *content->changes);
    if (content->lost)
        content->lost--;
}

/* Notes what the bytes and the size are before a change of them. 0, or -1 and errno. */
static int note_change(aco__sim_content_t *content, int64_t offset, size_t n)
{
    char *bytes = malloc(n ? n : 1);
    aco__sim_change_t *changes = NULL;
    if (content->n == MOST_CHANGES)
        drop_oldest(content);
    if (bytes)
        changes = aco__sim_grown(content->changes, &content->room, content->n + 1, sizeof *changes);
    if (!changes) {
        free(bytes);
        return aco__sim_fail_with(ENOMEM);
    }
    copy_out(content, bytes, offset, n);
    content->changes = changes;
    changes[content->n++] = (aco__sim_change_t){offset, content->size, n, bytes};
    return 0;
}

/* ---- Calls ---- */

size_t aco__sim_content_read(const aco__sim_content_t *content, char *p, size_t n, int64_t offset)
{
    ACO__ASSERT(offset >= 0);
    if (offset >= content->size)
        return 0;
    n = smaller(n, (size_t)(content->size - offset));
    copy_out(content, p, offset, n);
    return n;
}

ssize_t aco__sim_content_write(aco__sim_content_t *content, aco__sim_room_t *room, const char *p, size_t n,
                               int64_t offset)
{
    ssize_t fits;
    ACO__ASSERT(offset >= 0 && n > 0);
    if (offset >= ACO__SIM_LARGEST_FILE)
        return aco__sim_fail_with(EFBIG);
    fits = make_pages(content, room, offset, smaller(n, (size_t)(ACO__SIM_LARGEST_FILE - offset)));
    if (fits < 0 || note_change(content, offset, (size_t)fits) != 0)
        return -1;
    copy_in(content, p, offset, (size_t)fits);
    if (offset + fits > content->size)
        content->size = offset + fits;
    return fits;
}

static void free_pages(aco__sim_content_t *content, aco__sim_room_t *room, size_t from)
{
    for (size_t i = from; i < content->pages_room; i++) {
        if (!content->pages[i])
            continue;
        free(content->pages[i]);
        content->pages[i] = NULL;
        content->pages_used--;
        room->used--;
    }
}

/* The end of the last page before the file's end. */
static int64_t end_of_pages(const aco__sim_content_t *content)
{
    int64_t end = content->size;
    while (end > 0 && !page_at(content, end - 1))
        end = (end - 1) / ACO__SIM_PAGE * ACO__SIM_PAGE;
    return end;
}

int aco__sim_content_resize(aco__sim_content_t *content, aco__sim_room_t *room, int64_t size)
{
    int64_t end;
    if (size > ACO__SIM_LARGEST_FILE)
        return aco__sim_fail_with(EFBIG);
    end = size < content->size ? end_of_pages(content) : size;
    if (size == content->size)
        return 0;
    if (note_change(content, size, end > size ? (size_t)(end - size) : 0) != 0)
        return -1;
    if (end > size) {
        copy_in(content, NULL, size, in_page(size, (size_t)(end - size)));
        free_pages(content, room, (size_t)((size + ACO__SIM_PAGE - 1) / ACO__SIM_PAGE));
    }
    content->size = size;
    return 0;
}

/* ---- What is durable ---- */

static int touches(const aco__sim_change_t *change, int64_t sector, size_t sector_size)
{
    return change->n && change->offset / (int64_t)sector_size <= sector &&
           (change->offset + (int64_t)change->n - 1) / (int64_t)sector_size >= sector;
}

/* The part of the change in a sector that it touches: its offset in the file; *n: its size. */
static int64_t part_in(const aco__sim_change_t *change, int64_t sector, size_t sector_size, size_t *n)
{
    int64_t begin = sector * (int64_t)sector_size, end = begin + (int64_t)sector_size;
    int64_t change_end = change->offset + (int64_t)change->n;
    begin = change->offset > begin ? change->offset : begin;
    *n = (size_t)((change_end < end ? change_end : end) - begin);
    return begin;
}

static int64_t first_sector(const aco__sim_change_t *change, size_t sector_size)
{
    return change->offset / (int64_t)sector_size;
}

/* Behind the last one. */
static int64_t end_sector(const aco__sim_change_t *change, size_t sector_size)
{
    return change->n ? (change->offset + (int64_t)change->n - 1) / (int64_t)sector_size + 1
                     : first_sector(change, sector_size);
}

/* Whether one of the changes from `from` up to and without `to` has written the sector. */
static int is_written(const aco__sim_content_t *content, size_t from, size_t to, int64_t sector, size_t sector_size)
{
    for (size_t i = from; i < to; i++)
        if (touches(&content->changes[i], sector, sector_size))
            return 1;
    return 0;
}

/* A lost change of sectors that were written later has nothing to put back there. */
static void settle_lost(aco__sim_content_t *content, aco__sim_change_t *change, size_t sector_size)
{
    for (int64_t s = first_sector(change, sector_size); s < end_sector(change, sector_size); s++) {
        size_t n;
        int64_t begin = part_in(change, s, sector_size, &n);
        if (is_written(content, content->lost, content->n, s, sector_size))
            copy_out(content, change->bytes + (begin - change->offset), begin, n);
    }
    change->size = content->size;
}

void aco__sim_content_sync(aco__sim_content_t *content, size_t sector)
{
    if (content->n > content->lost)
        for (size_t i = 0; i < content->lost; i++)
            settle_lost(content, &content->changes[i], sector);
    free_changes(content, content->lost);
}

void aco__sim_content_lose(aco__sim_content_t *content)
{
    content->lost = content->n;
}

/* How a crash deals with what is not durable. */
typedef struct fate {
    enum { ALL_KEPT, ALL_LOST, A_PREFIX, EACH_SECTOR, FATES } kind;
    uint64_t draw;
} fate_t;

/* So many of the changes have reached this part of the file. */
static size_t reached(const aco__sim_content_t *content, const fate_t *fate, int64_t sector)
{
    switch (fate->kind) {
    case ALL_LOST:
        return 0;
    case ALL_KEPT:
        return content->n;
    case A_PREFIX:
        return (size_t)(fate->draw % (content->n + 1));
    default:
        return (size_t)(aco__mix(fate->draw ^ aco__mix((uint64_t)sector + 1)) % (content->n + 1));
    }
}

/* Pages that the change has freed come back, although the disk may be full. Without memory they are lost, too. */
static void make_freed_pages(aco__sim_content_t *content, aco__sim_room_t *room, const aco__sim_change_t *change)
{
    aco__sim_room_t any = {0, 0};
    (void)make_pages(content, &any, change->offset, change->n);
    room->used += any.used;
}

static void put_back(aco__sim_content_t *content, size_t number, const fate_t *fate, size_t sector_size)
{
    const aco__sim_change_t *change = &content->changes[number];
    for (int64_t s = first_sector(change, sector_size); s < end_sector(change, sector_size); s++) {
        size_t n, reach = reached(content, fate, s);
        int64_t begin = part_in(change, s, sector_size, &n);
        int survives =
            number >= content->lost ? number < reach : is_written(content, content->lost, reach, s, sector_size);
        if (!survives)
            copy_in(content, change->bytes + (begin - change->offset), begin, n);
    }
}

static int64_t size_after_crash(const aco__sim_content_t *content, const fate_t *fate)
{
    size_t reach = reached(content, fate, -1);
    if (content->lost && reach <= content->lost)
        reach = 0;
    return reach < content->n ? content->changes[reach].size : content->size;
}

static void clear_behind(aco__sim_content_t *content, aco__sim_room_t *room)
{
    if (content->size % ACO__SIM_PAGE)
        copy_in(content, NULL, content->size, in_page(content->size, ACO__SIM_PAGE));
    free_pages(content, room, (size_t)((content->size + ACO__SIM_PAGE - 1) / ACO__SIM_PAGE));
}

void aco__sim_content_crash(aco_sim_t *sim, aco__sim_content_t *content, aco__sim_room_t *room, size_t sector)
{
    fate_t fate;
    if (!content->n)
        return;
    fate.kind = aco__sim_disk_draw(sim, FATES);
    fate.draw = aco__sim_disk_draw(sim, 0);
    for (size_t i = content->n; i > 0; i--) {
        make_freed_pages(content, room, &content->changes[i - 1]);
        put_back(content, i - 1, &fate, sector);
    }
    content->size = size_after_crash(content, &fate);
    clear_behind(content, room);
    free_changes(content, 0);
    content->lost = 0;
}

void aco__sim_content_free(aco__sim_content_t *content, aco__sim_room_t *room)
{
    free_changes(content, 0);
    free_pages(content, room, 0);
    free(content->changes);
    free(content->pages);
    memset(content, 0, sizeof *content);
}
