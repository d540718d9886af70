/* src/threads/deque.c: each item is taken once, whole, and by a thread that sees what was written before the push. With
 * a first array of two items (run.py), so that three grow it or use a slot again. */
#include "threads/deque.c"

#include "fakes.c"

enum { MOST = 4, WORDS = 4 };
_Static_assert(sizeof(aco__item_t) == WORDS * sizeof(uintptr_t), "an item is looked at word by word");

static aco__deque_t deque;
static int data[MOST], taken[MOST], pushes, pops, steals;

static void begin(void)
{
    memset(&deque, 0, sizeof deque);
    memset(data, 0, sizeof data);
    memset(taken, 0, sizeof taken);
    aco__deque_open(&deque);
}

static void push(int i)
{
    aco__item_t item;
    for (size_t word = 0; word < WORDS; word++)
        ((uintptr_t *)&item)[word] = (uintptr_t)i + 1;
    litmus_write(&data[i], i + 1);
    litmus_assert(aco__deque_push(&deque, &item) == 0);
}

static void take(const aco__item_t *item)
{
    int i = (int)(uintptr_t)item->arg - 1;
    litmus_assert(i >= 0 && i < pushes);
    for (size_t word = 0; word < WORDS; word++)
        litmus_assert(((const uintptr_t *)item)[word] == (uintptr_t)i + 1);
    litmus_assert(litmus_read(&data[i]) == i + 1);
    litmus_assert(taken[i]++ == 0);
}

static void own(void)
{
    aco__item_t item;
    for (int i = 0; i < pushes; i++)
        push(i);
    for (int i = 0; i < pops; i++)
        if (aco__deque_pop(&deque, &item))
            take(&item);
}

static void steal(void)
{
    aco__item_t item;
    for (int i = 0; i < steals; i++)
        if (aco__deque_steal(&deque, &item) > 0)
            take(&item);
}

static void end(void)
{
    aco__item_t item;
    uint64_t outcome = 0;
    for (int i = 0; i < pushes; i++)
        outcome |= (uint64_t)taken[i] << i;
    litmus_outcome(outcome);
    while (aco__deque_pop(&deque, &item))
        take(&item);
    for (int i = 0; i < pushes; i++)
        litmus_assert(taken[i] == 1);
}

#define CASE(name, pushes_, pops_, steals_)                          \
    static void name(int t)                                          \
    {                                                                \
        pushes = pushes_, pops = pops_, steals = steals_;            \
        if (t)                                                       \
            steal();                                                 \
        else                                                         \
            own();                                                   \
    }
CASE(last, 1, 1, 1)
CASE(two, 2, 2, 2)
CASE(grows, 3, 1, 1)
CASE(again, 3, 2, 2)

const litmus_case_t litmus_cases[] = {
    {"deque.last", 3, begin, last, end},   /* the owner and two thieves want one item */
    {"deque.two", 2, begin, two, end},
    {"deque.grow", 3, begin, grows, end},   /* or a slot is used again while a thief reads there */
    {"deque.again", 2, begin, again, end},
    {0}};
