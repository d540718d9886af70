/* Base64 (RFC 4648), and credentials by it (RFC 7617). */
#include "http/base64.h"

#include <string.h>

char *aco__http_put_base64(char *at, const void *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = p;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t bits =
            (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) | (left > 2 ? from[i + 2] : 0);
        *at++ = digits[bits >> 18];
        *at++ = digits[bits >> 12 & 63];
        *at++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[bits & 63] : '=';
    }
    return at;
}

void aco__http_put_basic(char *at, const char *credentials, size_t n)
{
    memcpy(at, "Basic ", 6);
    *aco__http_put_base64(at + 6, credentials, n) = 0;
}
