/* The small lock of src/threads/mt_sync.c: one thread at a time, and each sees what the one before has written. */
#include "threads/mt_sync.c"

#include "litmus.h"

static aco__mt_t shared;
static int data;

static void begin(void)
{
    memset(&shared, 0, sizeof shared);
    data = 0;
}

static void add(int t)
{
    (void)t;
    aco__mt_lock(&shared);
    litmus_write(&data, litmus_read(&data) + 1);
    aco__mt_unlock(&shared);
}

static void end_two(void)
{
    litmus_assert(data == 2);
}

const litmus_case_t litmus_cases[] = {
    {"lock.two", 2, begin, add, end_two},
    {0}};
