/* As the kernel does it: what happens to a file puts its watch into the epoll's list, if the events are watched.
 * epoll_wait() goes through the list and asks each file what is the case now. A level stays in the list while it
 * lasts. */
#include "sim/interest.h"
#include "sim/world.h"

#include <stdlib.h>

static const unsigned PRIVATE = EPOLLET | EPOLLONESHOT;

static unsigned wanted(const aco__sim_watch_t *watch)
{
    unsigned events = watch->event.events & ~PRIVATE;
    return events ? events | EPOLLERR | EPOLLHUP : 0; /* 0: a shot that is over */
}

static unsigned ready_events(const aco__sim_watch_t *watch)
{
    return watch->file->type->events(watch->file) & wanted(watch);
}

/* Who watches the epoll is told of each event, also while the watch is in the list: it may be an edge. */
static void put_ready(aco__sim_watch_t *watch)
{
    if (!watch->ready.next)
        aco__links_append(&watch->epoll->ready, &watch->ready);
    aco__sim_notify(&watch->epoll->file, EPOLLIN | EPOLLRDNORM);
}

void aco__sim_notify(aco__sim_file_t *file, unsigned events)
{
    aco_sim_t *sim = aco_sim_current();
    if (sim)
        sim->opened.has_news = 1;
    ACO__EACH_LINKED(aco__sim_watch_t, watch, &file->watches, of_file)
    if (events & wanted(watch))
        put_ready(watch);
}

void aco__sim_watch(aco__sim_watch_t *watch, const struct epoll_event *event)
{
    watch->event = *event;
    if (!(event->events & ~PRIVATE))
        watch->event.events |= EPOLLERR | EPOLLHUP; /* they are always watched */
    if (ready_events(watch) && !watch->ready.next)
        put_ready(watch);
}

void aco__sim_watch_free(aco__sim_watch_t *watch)
{
    aco__links_remove(&watch->of_file);
    aco__links_remove(&watch->of_epoll);
    aco__links_remove(&watch->ready);
    free(watch);
}

void aco__sim_unwatch_file(aco__sim_file_t *file)
{
    aco__links_t *links;
    while ((links = aco__links_first(&file->watches)) != NULL)
        aco__sim_watch_free(ACO__LINKED(links, aco__sim_watch_t, of_file));
}

void aco__sim_unwatch_all(aco__sim_epoll_t *epoll)
{
    aco__links_t *links;
    while ((links = aco__links_first(&epoll->watches)) != NULL)
        aco__sim_watch_free(ACO__LINKED(links, aco__sim_watch_t, of_epoll));
}

int aco__sim_collect(aco__sim_epoll_t *epoll, struct epoll_event *events, int room)
{
    aco__links_t levels, *links;
    int n = 0;
    aco__links_empty(&levels);
    while (n < room && (links = aco__links_first(&epoll->ready)) != NULL) {
        aco__sim_watch_t *watch = ACO__LINKED(links, aco__sim_watch_t, ready);
        unsigned is = ready_events(watch);
        aco__links_remove(links);
        if (!is)
            continue;
        events[n].events = is;
        events[n++].data = watch->event.data;
        if (watch->event.events & EPOLLONESHOT)
            watch->event.events &= PRIVATE;
        else if (!(watch->event.events & EPOLLET))
            aco__links_append(&levels, links);
    }
    while ((links = aco__links_first(&levels)) != NULL) { /* behind the others, for another time */
        aco__links_remove(links);
        aco__links_append(&epoll->ready, links);
    }
    return n;
}

int aco__sim_has_ready(const aco__sim_epoll_t *epoll)
{
    ACO__EACH_LINKED(aco__sim_watch_t, watch, &epoll->ready, ready)
    if (ready_events(watch))
        return 1;
    return 0;
}
