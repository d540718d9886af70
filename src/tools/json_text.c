/* Text as the inside of a JSON string, for traces and histories. */
#include "base/invariants.h"

#include "aco/detail/for_libraries.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The number of bytes of the UTF-8 character at `s`; 0 if it is none. */
static unsigned utf8_length(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned length = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = length > 1 ? s[0] & (0x7fu >> length) : s[0];
    for (unsigned i = 1; i < length; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    return code < least[length] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : length;
}

const char *aco__json_text(const char *s, char *json, size_t size)
{
    enum { LONGEST = 6 }; /* of what stands for a character */
    char *to = json;
    ACO__ASSERT(size > LONGEST);
    for (const unsigned char *p = (const unsigned char *)s; *p && (size_t)(to - json) < size - LONGEST;) {
        unsigned length = utf8_length(p);
        if (*p == '"' || *p == '\\')
            *to++ = '\\';
        if (length == 0 || *p < 0x20 || *p == 0x7f) {
            to += snprintf(to, 7, "\\u%04x", length ? *p : 0xfffdu);
            p += 1;
        } else {
            memcpy(to, p, length);
            to += length;
            p += length;
        }
    }
    *to = 0;
    return json;
}
