/* A call, of a server or a client: call.c has its messages, metadata.c its metadata. */
#ifndef ACO_GRPC_CALL_H
#define ACO_GRPC_CALL_H

#include "base/invariants.h"
#include "service/blocks.h"

#include "aco/detail/for_libraries.h"
#include "aco/grpc.h"

#include <errno.h>

enum {
    GRPC_PREFIX = 5, /* bytes before a message: a flag, and the length */
    GRPC_SMALL = 128, /* bytes of the buffer that a waiting call keeps, */
    GRPC_LARGER = 2048, /* and of the next one */
    GRPC_KEPT = 16384, /* of a larger one that is kept while messages come */
    GRPC_MAX_MESSAGE = 4 << 20, /* the default */
    GRPC_LEAST_COMPRESSED = 64,
    GRPC_MESSAGE = 1024, /* bytes of grpc-message */
    GRPC_DETAILS = 2048,
    GRPC_TRAILERS = 2048, /* bytes of trailing metadata */
    GRPC_METADATA = 6144,
    GRPC_TIMEOUT = 16 /* bytes of grpc-timeout */
};

/* How a side of a call sends and gets bytes. */
typedef struct aco__grpc_side {
    /* The next bytes, as aco_http_request_read(). */
    ACO__SWITCHES ssize_t (*read)(aco_grpc_call_t *call, void *p, size_t n, const char *location);
    /* Sends the head, once, before the first message. 0, or -1 and errno. */
    ACO__SWITCHES int (*begin)(aco_grpc_call_t *call, const char *location);
    ACO__SWITCHES int (*write)(aco_grpc_call_t *call, const void *p, size_t n, const char *location);
    /* What was written is sent soon. 0, or -1 and errno. */
    ACO__SWITCHES int (*push)(aco_grpc_call_t *call, const char *location);
    /* The peer's metadata. NULL: there is none yet, or an error. */
    const aco_http_header_t *(*metadata)(aco_grpc_call_t *call, size_t *count);
    /* Counts more or less bytes of messages that are held. 0; -1 and errno: they are too many. NULL: nobody counts. */
    int (*count)(aco_grpc_call_t *call, ptrdiff_t n);
} aco__grpc_side_t;

/* Metadata to send. */
typedef struct aco__grpc_field {
    struct aco__grpc_field *next;
    const char *name, *value; /* as they are sent */
} aco__grpc_field_t;

typedef struct aco__grpc_fields {
    aco__grpc_field_t *first, **end;
    size_t n; /* bytes of them */
} aco__grpc_fields_t;

/* Bytes that grow. All zeros are none. */
typedef struct aco__grpc_bytes {
    char *p;
    size_t n, room;
    int has_failed; /* no memory: nothing is put any more */
} aco__grpc_bytes_t;

struct aco_grpc_call_s {
    const aco__grpc_side_t *side;
    const char *method;
    struct aco__grpc_seen *seen; /* seen.c's; NULL: nobody looks */
    aco__block_t *blocks; /* memory that lives as long as the call */
    /* Reading: */
    char *in; /* the buffer: `small`, or memory of its own */
    size_t in_begin, in_end, in_room;
    unsigned char is_drained; /* the last part that was read is all that had come */
    size_t taken; /* bytes of the last message, which the caller still has */
    size_t max_message;
    size_t max_written; /* bytes of a message */
    size_t held; /* bytes that side->count() was told of */
    aco__grpc_bytes_t plain; /* the last message, decompressed */
    int read_error;
    const char *read_reason; /* of messages that are wrong */
    unsigned char is_miscounted; /* the peer has sent no message or several where one was due */
    unsigned char peer_compresses; /* its grpc-encoding is gzip */
    /* Writing: */
    aco__grpc_fields_t metadata, trailers;
    unsigned char has_begun; /* the metadata were sent */
    unsigned char may_compress; /* the peer takes gzip */
    unsigned char compresses; /* the next messages */
    unsigned char has_coding; /* the head said that messages may be compressed */
    int write_error;
    aco__grpc_bytes_t packed; /* a compressed message */
    struct aco__grpc_gzip **gzip; /* its server's or channel's */
    /* The status: */
    const char *message, *details; /* as they are sent; NULL: none */
    /* A server's: */
    aco_http_request_t *request;
    unsigned char has_put; /* metadata, all or some: they cannot be put once more */
    aco_scope_t deadline;
    char small[GRPC_SMALL];
};

/* ---- call.c ---- */
/* Begins a call in memory that is zeroed; `side` and `method` are set. Its end frees its memory. */
ACO__HIDDEN void aco__grpc_call_begin(aco_grpc_call_t *call);
ACO__HIDDEN void aco__grpc_call_end(aco_grpc_call_t *call);
/* Sends the head, unless it was sent. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__grpc_begin_once(aco_grpc_call_t *call, const char *location);
/* Tells the side how much memory messages that are read take by now. 0, or -1 and errno. */
static inline int aco__grpc_count_held(aco_grpc_call_t *call)
{
    const size_t now = (call->in != call->small ? call->in_room : 0) + call->plain.room;
    const ptrdiff_t more = (ptrdiff_t)(now - call->held);
    call->held = now;
    return more && call->side->count ? call->side->count(call, more) : 0;
}
/* Memory that lives as long as the call. NULL and errno. */
static inline void *aco__grpc_allocate(aco_grpc_call_t *call, size_t n)
{
    return aco__block_new(&call->blocks, n, "gRPC");
}
/* aco_grpc_status_of_errno(); but of a wrong number of messages UNIMPLEMENTED: the method is one of another kind. */
ACO__HIDDEN int aco__grpc_status_of(const aco_grpc_call_t *call, int error);

/* ---- bytes.c ---- */
/* Room for `n` bytes more, behind the last one. NULL: no memory. */
ACO__HIDDEN char *aco__grpc_room(aco__grpc_bytes_t *bytes, size_t n);
ACO__HIDDEN void aco__grpc_free(aco__grpc_bytes_t *bytes);
/* A field of a protobuf message: bytes, or a number. */
ACO__HIDDEN void aco__grpc_put_bytes(aco__grpc_bytes_t *bytes, unsigned field, const void *p, size_t n);
ACO__HIDDEN void aco__grpc_put_number(aco__grpc_bytes_t *bytes, unsigned field, uint64_t number);
/* The next field of the protobuf message at *at, which ends at `end`. Stores its number; and its bytes and their
 * length, or its value in *n with *p NULL. 1; 0: the end; -1: it is no protobuf. */
ACO__HIDDEN int aco__grpc_next_field(const char **at, const char *end, unsigned *field, const char **p, size_t *n);

/* ---- metadata.c ---- */
/* Nanoseconds of a grpc-timeout; -1: it is none. */
ACO__HIDDEN int64_t aco__grpc_timeout(const char *text);
/* Puts it in `text`, rounded up. */
ACO__HIDDEN void aco__grpc_put_timeout(char text[GRPC_TIMEOUT], int64_t ns);
/* Whether the list of codings has gzip. */
ACO__HIDDEN int aco__grpc_lists_gzip(const char *list);
/* Of these three the text says so if there is no memory. The text with escapes, cut: */
ACO__HIDDEN const char *aco__grpc_escape(aco_grpc_call_t *call, const char *text);
/* The text without escapes; what is none stays: */
ACO__HIDDEN const char *aco__grpc_unescape(aco_grpc_call_t *call, const char *text);
/* A copy that lives as long as the call: */
ACO__HIDDEN const char *aco__grpc_keep_text(aco_grpc_call_t *call, const char *text);
/* The bytes as base64. NULL and errno: no memory. */
ACO__HIDDEN const char *aco__grpc_base64(aco_grpc_call_t *call, const void *p, size_t n);
/* Whether it is "/package.Service/Method". */
ACO__HIDDEN int aco__grpc_is_path(const char *path);
/* The first name among these fields, or the one behind `name`: each once, those that a program can send. NULL: there
 * are no more. */
ACO__HIDDEN const char *aco__grpc_next_name(const aco_http_header_t *fields, size_t count, const char *name);
/* The i-th value with this name among these fields. As aco_grpc_metadata(). */
ACO__HIDDEN const void *aco__grpc_find(aco_grpc_call_t *call, const aco_http_header_t *fields, size_t count,
                                       const char *name, size_t i, size_t *n);

/* ---- gzip.c ---- */
/* Stores `n` bytes compressed in call->packed, or decompressed in call->plain. 0, or -1 and errno: EMSGSIZE (beyond
 * max_message), ENOBUFS (beyond the server's max_buffered), EBADMSG, ENOMEM. */
ACO__HIDDEN int aco__grpc_pack(aco_grpc_call_t *call, const void *p, size_t n);
ACO__HIDDEN int aco__grpc_unpack(aco_grpc_call_t *call, const void *p, size_t n);
/* NULL: nothing happens. */
ACO__HIDDEN void aco__grpc_gzip_free(struct aco__grpc_gzip *gzip);

#endif
