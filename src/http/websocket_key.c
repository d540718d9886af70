/* The answer to the key of WebSocket's handshake: base64 of the SHA-1 of the key and of a text of the standard. */
#include "http/websocket_key.h"
#include "http/base64.h"

#include <string.h>

static uint32_t rotated(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

/* Of SHA-1: adds 64 bytes to the hash. */
static void add_block(uint32_t h[5], const unsigned char *p)
{
    uint32_t w[80], v[5];
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotated(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((v[1] & v[2]) | (~v[1] & v[3])) + 0x5a827999
                     : i < 40 ? (v[1] ^ v[2] ^ v[3]) + 0x6ed9eba1
                     : i < 60 ? ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + 0x8f1bbcdc
                              : (v[1] ^ v[2] ^ v[3]) + 0xca62c1d6;
        uint32_t next = rotated(v[0], 5) + f + v[4] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotated(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (int i = 0; i < 5; i++)
        h[i] += v[i];
}

char *aco__http_put_accepted(char *at, const char *key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char text[128] = {0}, hash[20];
    size_t n = HTTP_WEBSOCKET_KEY + sizeof guid - 1;
    memcpy(text, key, HTTP_WEBSOCKET_KEY);
    memcpy(text + HTTP_WEBSOCKET_KEY, guid, sizeof guid - 1);
    text[n] = 0x80;
    text[126] = (unsigned char)(n * 8 >> 8);
    text[127] = (unsigned char)(n * 8);
    add_block(h, text);
    add_block(h, text + 64);
    for (size_t i = 0; i < 20; i++)
        hash[i] = (unsigned char)(h[i / 4] >> (24 - i % 4 * 8));
    return aco__http_put_base64(at, hash, sizeof hash);
}
