/* The compiled copy() of src/stack/copy.c, of every short size and of some longer ones: it copies [0, size), and
 * nothing else. */
#include "stack/copy.c"

#include "../../../tests/check.h"
#include "../../../tests/random.h"

enum { MOST = 4 * SHORT_COPY, MARGIN = 64 };

static unsigned char from[MOST + 2 * MARGIN], to[MOST + 2 * MARGIN];

static void try_size(size_t size, random_t *r)
{
    unsigned char was[sizeof to], read[sizeof from];
    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (unsigned char)draw(r);
        to[i] = (unsigned char)(from[i] ^ (1 + below(r, 255))); /* other than what it must become */
    }
    memcpy(was, to, sizeof to);
    memcpy(read, from, sizeof from);
    copy(to + MARGIN, from + MARGIN, size);
    for (size_t i = 0; i < sizeof to; i++)
        if (to[i] != (i >= MARGIN && i < MARGIN + size ? from[i] : was[i])) {
            CHECK_EQ(size, -1); /* the size at which it fails */
            return;
        }
    CHECK(memcmp(read, from, sizeof from) == 0);
}

int main(void)
{
    random_t r = {1};
    for (size_t size = 0; size <= MOST; size += size < 2 * SHORT_COPY ? 1 : 61)
        try_size(size, &r);
    return check_result("copying");
}
