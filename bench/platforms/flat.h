/* A flat loop of round trips, whose instructions count.py counts. Included last: the program has defined flat_t, flat_start()
 * and flat_round_trip(). */
#include <stdlib.h>

/* round_trips: objects.py looks at its code. */
__attribute__((noinline)) void round_trips(flat_t *flat, long n);
__attribute__((noinline)) void round_trips(flat_t *flat, long n)
{
    for (long i = 0; i < n; i++)
        flat_round_trip(flat);
}

int main(int argc, char **argv)
{
    flat_t *flat = flat_start();
    if (argc != 2 || !flat)
        return 1;
    round_trips(flat, atol(argv[1]));
    return 0;
}
