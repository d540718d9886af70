/* Descriptors that go along with bytes by a unix socket. Who receives the first byte of their message gets them. What
 * finds no room in the control buffer is closed, and MSG_CTRUNC says so. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#include "sim/passed.h"
#include "sim/world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PASSED = 253 }; /* Linux's SCM_MAX_FD */

static void close_passed(aco_sim_t *sim, aco__sim_file_t *file)
{
    if (--file->descriptors == 0)
        aco__sim_file_close(sim, file);
}

void aco__sim_passed_drop(aco_sim_t *sim, aco__sim_passed_t *passed)
{
    int error = errno;
    for (size_t i = 0; passed && i < passed->count; i++)
        close_passed(sim, passed->files[i]);
    free(passed);
    errno = error;
}

/* Adds the descriptors of one control message. 0, or -1 and errno. */
static int add_rights(aco_sim_t *sim, const struct cmsghdr *head, aco__sim_passed_t *passed)
{
    size_t n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (n > MOST_PASSED - passed->count)
        return aco__sim_fail_with(passed->count ? ETOOMANYREFS : EINVAL);
    for (size_t i = 0; i < n; i++) {
        aco__sim_file_t *file;
        int fd;
        memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
        file = aco__sim_file_of(sim, fd, "sendmsg");
        if (!file)
            return -1;
        file->descriptors++;
        passed->files[passed->count++] = file;
    }
    return 0;
}

int aco__sim_passed_take(aco_sim_t *sim, const struct msghdr *message, aco__sim_passed_t **passed)
{
    struct msghdr *own = (struct msghdr *)(uintptr_t)message; /* CMSG_NXTHDR() wants it, and changes nothing */
    int failed = 0;
    *passed = NULL;
    if (!message->msg_controllen)
        return 0;
    *passed = calloc(1, sizeof **passed + MOST_PASSED * sizeof *(*passed)->files);
    if (!*passed)
        return aco__sim_fail_with(ENOMEM);
    for (struct cmsghdr *head = CMSG_FIRSTHDR(own); head && !failed; head = CMSG_NXTHDR(own, head)) {
        if (head->cmsg_len < CMSG_LEN(0) ||
            head->cmsg_len > own->msg_controllen - (size_t)((char *)head - (char *)own->msg_control))
            failed = aco__sim_fail_with(EINVAL);
        else if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            failed = add_rights(sim, head, *passed);
        else
            failed = aco__sim_fail_with(aco__sim_refuse(sim, "sendmsg"));
    }
    if (!failed && (*passed)->count)
        return 0;
    aco__sim_passed_drop(sim, *passed);
    *passed = NULL;
    return failed;
}

void aco__sim_passed_append(aco__sim_passed_t **list, aco__sim_passed_t *passed, size_t at, size_t n)
{
    if (!passed)
        return;
    while (*list)
        list = &(*list)->next;
    passed->at = at;
    passed->n = n;
    *list = passed;
}

size_t aco__sim_passed_limit(const aco__sim_passed_t *list, size_t n)
{
    return list && n > list->at + list->n ? list->at + list->n : n;
}

/* Gives them descriptors in the control buffer, as many as have room there and as are free. How many. */
static size_t open_passed(aco_sim_t *sim, const aco__sim_passed_t *passed, struct msghdr *message, int flags)
{
    int fd_flags = (flags & MSG_CMSG_CLOEXEC) ? FD_CLOEXEC : 0;
    size_t room = message->msg_control ? message->msg_controllen : 0, n = 0, space;
    struct cmsghdr *head = message->msg_control;
    for (; n < passed->count && room >= CMSG_LEN((n + 1) * sizeof(int)); n++) {
        int fd = aco__sim_file_open(sim, passed->files[n], fd_flags, "recvmsg");
        if (fd < 0)
            break;
        memcpy(CMSG_DATA(head) + n * sizeof fd, &fd, sizeof fd);
    }
    if (!n)
        return 0;
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(n * sizeof(int));
    space = CMSG_SPACE(n * sizeof(int));
    space = space < room ? space : room;
    message->msg_control = (char *)message->msg_control + space;
    message->msg_controllen -= space;
    return n;
}

void aco__sim_passed_receive(aco_sim_t *sim, aco__sim_passed_t **list, size_t n, struct msghdr *message, int flags)
{
    aco__sim_passed_t *first = *list;
    if (first && first->at && first->at >= n && !(flags & MSG_PEEK)) /* who peeks into a stream sees them from afar */
        first = NULL;
    if (first && open_passed(sim, first, message, flags) < first->count)
        message->msg_flags |= MSG_CTRUNC;
    if (flags & MSG_PEEK)
        return;
    if (first) {
        *list = first->next;
        aco__sim_passed_drop(sim, first);
    }
    for (aco__sim_passed_t *next = *list; next; next = next->next) {
        ACO__ASSERT(next->at >= n);
        next->at -= n;
    }
}

void aco__sim_passed_close(aco_sim_t *sim, aco__sim_passed_t **list)
{
    for (aco__sim_passed_t *first; (first = *list) != NULL;) {
        *list = first->next;
        aco__sim_passed_drop(sim, first);
    }
}

void aco__sim_passed_free(aco__sim_passed_t **list)
{
    for (aco__sim_passed_t *next; *list; *list = next) {
        next = (*list)->next;
        free(*list);
    }
}
