/* What went wrong, in one line. */
#include "tls/connection.h"
#include "tls/openssl_error.h"

#include "aco/detail/poller.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_REASON = 480 };

/* The word for a verification that failed; NULL: OpenSSL's text is enough. */
static const char *word_for(long verified)
{
    switch (verified) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "not valid yet";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "wrong host";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        return "self-signed";
    case X509_V_ERR_CERT_REVOKED:
        return "revoked";
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK:
        return "weak";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
        return "no CRL";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return "untrusted";
    default:
        return NULL;
    }
}

static const char *or_unknown(const char *text)
{
    return text ? text : "unknown reason";
}

int aco__tls_fail_with(const aco_tls_t *tls, const char *call, int error, const char *reason)
{
    char line[LONGEST_REASON];
    if (tls->host)
        snprintf(line, sizeof line, "%.253s: %s", tls->host, reason);
    else
        snprintf(line, sizeof line, "descriptor %d: %s", tls->stream.fd, reason);
    return aco__service_fail(error, call, line);
}

static int fail_certificate(const aco_tls_t *tls, const char *call)
{
    char reason[200];
    long verified = SSL_get_verify_result(tls->ssl);
    const char *word = word_for(verified);
    snprintf(reason, sizeof reason, "certificate refused%s%s: %s", word ? ", " : "", word ? word : "",
             X509_verify_cert_error_string(verified));
    return aco__tls_fail_with(tls, call, EACCES, reason);
}

static int fail_protocol(const aco_tls_t *tls, const char *call, unsigned long code)
{
    char text[200];
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return fail_certificate(tls, call);
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        return aco__tls_fail_with(tls, call, EACCES, "the peer has no certificate");
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return aco__tls_fail_with(tls, call, ECONNRESET,
                                  tls->is_connected ? "the stream ended without close_notify"
                                                    : "the stream ended in the handshake");
    if (reason >= SSL_AD_REASON_OFFSET)
        snprintf(text, sizeof text, "the peer sent the alert: %s",
                 SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
    else
        snprintf(text, sizeof text, "protocol: %s", or_unknown(ERR_reason_error_string(code)));
    return aco__tls_fail_with(tls, call, EPROTO, text);
}

/* The outermost error, which was raised last, says most. */
int aco__tls_fail(const aco_tls_t *tls, const char *call, int why)
{
    unsigned long code = ERR_peek_last_error();
    int error = tls->system_error ? tls->system_error : ECONNRESET;
    if (why == SSL_ERROR_SSL)
        (void)fail_protocol(tls, call, code);
    else if (why != SSL_ERROR_SYSCALL)
        aco__tls_fail_with(tls, call, EPROTO, "a callback wants to wait");
    else if (tls->is_connected && (error == EPIPE || error == ETIMEDOUT)) /* no message, as of descriptors */
        errno = error;
    else
        aco__tls_fail_with(tls, call, error, strerror(error));
    error = errno;
    ERR_clear_error();
    errno = error;
    return -1;
}

/* The innermost error, which was raised first, tells of the file. OpenSSL 3.0 raises none for lack of memory. */
int aco__tls_fail_config(const char *call, const char *file)
{
    char line[LONGEST_REASON];
    unsigned long code = ERR_peek_error();
    int lacks_memory = !code || ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
    int error = ERR_SYSTEM_ERROR(code) ? ERR_GET_REASON(code) : lacks_memory ? ENOMEM : EINVAL;
    const char *reason = !code || ERR_SYSTEM_ERROR(code) ? strerror(error) : or_unknown(ERR_reason_error_string(code));
    ERR_clear_error();
    snprintf(line, sizeof line, "%.200s%s%s", file ? file : "", file ? ": " : "", reason);
    return aco__service_fail(error, call, line);
}
