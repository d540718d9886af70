/* A handshake in a simulation repeats: OpenSSL's random numbers are those of the system's table, and no ticket tells
 * the real time. Other threads, and this one without a run, get what they got before. */
#define _GNU_SOURCE /* CLOCK_REALTIME */
#include "tls/random.h"
#include "system/system.h"

#include "aco/detail/chooser.h"

#include <openssl/rand.h>

#if defined(__linux__) && !defined(OPENSSL_NO_DEPRECATED_3_0)
/* RAND_METHOD is deprecated, but a provider would need a context of OpenSSL's for itself. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static RAND_METHOD former;

static int draw_bytes(unsigned char *p, int n)
{
    return aco__chooser_is_there() ? aco__system.getrandom(p, (size_t)n, 0) == n : former.bytes(p, n);
}

/* It stays: a run's end is not known here. */
static void set_method(void)
{
    static RAND_METHOD method;
    const RAND_METHOD *known = RAND_get_rand_method();
    if (!known)
        return;
    former = method = *known;
    method.bytes = method.pseudorand = draw_bytes;
    (void)RAND_set_rand_method(&method);
}

#pragma GCC diagnostic pop

void aco__tls_seed_random(void)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
    if (aco__chooser_is_there())
        (void)CRYPTO_THREAD_run_once(&once, set_method);
}
#else
void aco__tls_seed_random(void)
{
}
#endif

/* A ticket has the time in seconds, encrypted, and the server compares it with the real time: so it is to last. */
static int date_ticket(SSL *ssl, void *unused)
{
    enum { LASTS = INT32_MAX };
    SSL_SESSION *session = SSL_get_session(ssl);
    struct timespec now;
    (void)unused;
    if (aco__system.clock_gettime(CLOCK_REALTIME, &now) == 0) {
        SSL_SESSION_set_time(session, (long)now.tv_sec);
        SSL_SESSION_set_timeout(session, LASTS);
    }
    return 1;
}

void aco__tls_date_tickets(SSL_CTX *context)
{
    if (aco__chooser_is_there())
        SSL_CTX_set_session_ticket_cb(context, date_ticket, NULL, NULL);
}
