/* A flat loop of round trips; tools/platforms/count.py counts its instructions. A program defines flat_t, flat_start()
 * and flat_round_trip(), and then includes this file. */
#include <stdlib.h>

/* tools/platforms/objects.py looks at the code of round_trips(). */
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
