/* A member of a ring of members, of which one is the list's head. */
#ifndef ACO_LINKS_H
#define ACO_LINKS_H

#include <stddef.h>

typedef struct aco__links {
    struct aco__links *next, *before; /* NULL: in no ring */
} aco__links_t;

#define ACO__LINKED(links, type, field) ((type *)(void *)((char *)(links) - offsetof(type, field)))

/* Each member of a list; `head` has no side effects. */
#define ACO__EACH_LINKED(type, member, head, field) \
    for (type *member = ACO__LINKED((head)->next, type, field); &member->field != (head); \
         member = ACO__LINKED(member->field.next, type, field))

static inline void aco__links_empty(aco__links_t *head)
{
    head->next = head->before = head;
}

/* The first member; NULL: none. */
static inline aco__links_t *aco__links_first(const aco__links_t *head)
{
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed was removed, so it is not `next`
    return head->next == head ? NULL : head->next;
}

static inline void aco__links_append(aco__links_t *head, aco__links_t *member)
{
    member->next = head;
    member->before = head->before;
    head->before->next = member;
    head->before = member;
}

static inline void aco__links_remove(aco__links_t *member)
{
    if (!member->next)
        return;
    member->next->before = member->before;
    member->before->next = member->next;
    member->next = member->before = NULL;
}

#endif
