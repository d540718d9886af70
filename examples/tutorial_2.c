/* Tutorial 2: three coroutines take turns; one has a private stack, two share another.
 *
 * The code of a coroutine does not show on which kind of stack it runs, with one exception: on a stack that is shared,
 * the address of a local variable is of use only while its own coroutine runs. While it is suspended, other coroutines'
 * frames stand there. What several coroutines use belongs on the heap, or in the caller as here. */
#include "aco.h"

#include <stdio.h>
#include <string.h>

#include "aco_assert_override.h"

typedef struct reading {
    const char *name;
    const char *text;
    size_t letters; /* the result */
} reading_t;

/* Says the text word by word, one to a resume. */
static void reader(void)
{
    reading_t *reading = aco_get_arg();
    char word[16]; /* its bytes are saved and restored when the stack is shared */
    size_t letters = 0;

    for (const char *next = reading->text; *next;) {
        size_t length = strcspn(next, " ");
        assert(length < sizeof word);
        memcpy(word, next, length);
        word[length] = '\0';
        next += length + (next[length] == ' ');
        aco_yield();
        assert(strlen(word) == length);
        letters += length;
        printf("%s: %s\n", reading->name, word);
    }
    reading->letters = letters;
    aco_exit();
}

enum { READERS = 3 };

int main(void)
{
    reading_t readings[READERS] = {
        {"private", "she sells sea shells", 0},
        {"shared 1", "peter piper picked a peck", 0},
        {"shared 2", "how much wood", 0},
    };
    const size_t letters[READERS] = {17, 21, 11};
    aco_t *co[READERS];
    int running = READERS;

    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *own = aco_share_stack_new(0), *shared = aco_share_stack_new(0);
    for (int i = 0; i < READERS; i++)
        co[i] = aco_create(main_co, i == 0 ? own : shared, 0, reader, &readings[i]);

    while (running > 0) {
        for (int i = 0; i < READERS; i++) {
            if (co[i]->is_end)
                continue;
            aco_resume(co[i]);
            running -= co[i]->is_end;
        }
    }

    for (int i = 0; i < READERS; i++) {
        printf("%s has ended: %zu letters, frames saved %zu times\n", readings[i].name, readings[i].letters,
               co[i]->save_stack.ct_save);
        assert(readings[i].letters == letters[i]);
        assert((co[i]->save_stack.ct_save > 0) == (co[i]->share_stack == shared));
        aco_destroy(co[i]);
    }
    aco_share_stack_destroy(own);
    aco_share_stack_destroy(shared);
    aco_destroy(main_co);
    return 0;
}
