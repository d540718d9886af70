/* Permutations: a recursive function hands them out one by one, to a loop that may stop when it has what it wants.
 *
 * The recursion is the one that would print them. It yields from its innermost call, which costs one switch at any
 * depth. These generators live on their consumer's stack and need no memory. */
#include "aco.h"
#include "aco/in_stack_generator.h"

#include <stdio.h>

#include "aco_assert_override.h"

enum { MOST = 9 };

typedef struct arrangement {
    const char *letters;
    char made[MOST + 1];
    size_t number;
    unsigned used; /* letters: a bit each */
} arrangement_t;

/* Tries each letter that is left in this place, and all that can follow. */
static void arrange(aco_in_stack_yielder_t *y, arrangement_t *a, size_t place)
{
    if (place == a->number)
        aco_generate_in_stack(y, a->made);
    for (size_t i = 0; i < a->number; i++) {
        if (a->used & 1u << i)
            continue;
        a->used |= 1u << i;
        a->made[place] = a->letters[i];
        arrange(y, a, place + 1);
        a->used &= ~(1u << i);
    }
}

/* Its values point into its own frame, where each stands until the next is asked for. */
ACO_IN_STACK_GENERATOR(permutations, y, letters)
{
    arrangement_t a = {.letters = letters, .number = strlen(letters)};
    assert(a.number <= MOST);
    arrange(y, &a, 0);
}

static void print_all(char *letters, int expected)
{
    char before[MOST + 1] = "";
    int count = 0;
    aco_in_stack_t g;
    aco_in_stack_open(&g, permutations, letters);
    while (aco_in_stack_next(&g) > 0) {
        const char *made = g.value;
        assert(strcmp(before, made) < 0); /* in the order of the dictionary */
        strcpy(before, made);
        printf("%s%s", count++ ? " " : "", made);
    }
    assert(aco_in_stack_close(&g) == 0);
    printf("\n");
    assert(count == expected);
}

/* Whether for each n its first n digits are a multiple of n. */
static int is_polydivisible(const char *digits)
{
    long value = 0;
    for (long n = 1; digits[n - 1]; n++) {
        value = 10 * value + digits[n - 1] - '0';
        if (value % n != 0)
            return 0;
    }
    return 1;
}

/* How many permutations it took to find one; 0: there is none. */
static long find(char *digits, int (*wanted)(const char *), char *found)
{
    long tried = 0;
    aco_in_stack_t g;
    *found = '\0';
    aco_in_stack_open(&g, permutations, digits);
    while (!*found && aco_in_stack_next(&g) > 0) {
        tried++;
        if (wanted(g.value))
            strcpy(found, g.value);
    }
    /* In the middle of it, if one was found. Its frames hold nothing that must be given back. */
    assert(aco_in_stack_drop(&g) == 0);
    return *found ? tried : 0;
}

int main(void)
{
    char letters[] = "abc", digits[] = "123456789", found[MOST + 1];
    print_all(letters, 6);
    long tried = find(digits, is_polydivisible, found);
    printf("%s, after %ld of 362880\n", found, tried);
    assert(strcmp(found, "381654729") == 0);
    return 0;
}
