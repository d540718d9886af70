/* Connected streams of TLS (include/aco/tls.h): their ends, peers that send something else, scopes, several tasks with
 * one connection, new keys, renegotiation. */
#define _GNU_SOURCE
#include <aco/sync.h>
#include "tls_tests.h"

/* ---- Ends ---- */

enum { MUCH = 300000 };
static char much[MUCH], got_much[MUCH];

static void shuts_then_reads(aco_tls_t *tls)
{
    ssize_t n = 1;
    size_t got = 0;
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_WR), 0);
    FAILS_WITH(aco_tls_write(tls, "x", 1), EPIPE);
    FAILS_WITH(aco_tls_write_all(tls, "x", 1), EPIPE);
    memset(got_much, 0, sizeof got_much);
    while (n > 0 && got < MUCH) {
        n = aco_tls_read(tls, got_much + got, MUCH - got);
        got += n > 0 ? (size_t)n : 0;
    }
    CHECK_EQ(got, MUCH);
    CHECK(memcmp(much, got_much, MUCH) == 0);
    reads_end(tls);
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_WR), 0); /* again */
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0);
}

static void writes_after_the_end(aco_tls_t *tls)
{
    size_t done = 1;
    reads_end(tls);
    CHECK_EQ(aco_tls_write_all_done(tls, much, MUCH, &done), MUCH);
    CHECK_EQ(done, MUCH);
}

static void shuts_both_ways(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0); /* drops what comes */
    reads_end(tls);
}

static void cuts(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_write(tls, "part", 4), 4);
    CHECK_EQ(shutdown(aco_tls_fd(tls), SHUT_RDWR), 0); /* behind TLS's back */
}

static void notices_cut(aco_tls_t *tls)
{
    char text[8];
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 4);
    FAILS_WITH(aco_tls_read(tls, text, sizeof text), ECONNRESET);
    CHECK(strstr(aco_error_message(), "the stream ended without close_notify") != NULL);
}

static void notices_gone(aco_tls_t *tls)
{
    int n = 0;
    errno = 0;
    while (n < 100 && aco_tls_write(tls, much, MUCH) > 0) /* no SIGPIPE */
        n++;
    CHECK(n < 100 && (errno == EPIPE || errno == ECONNRESET));
    FAILS_WITH(aco_tls_write(tls, much, MUCH), ECONNABORTED);
}

/* The peer has sent its end, and closed. */
static void writes_to_closed(aco_tls_t *tls)
{
    reads_end(tls);
    while (aco_tls_write_all(tls, "x", 1) == 1)
        aco_task_yield();
    CHECK(errno == EPIPE || errno == ECONNRESET);
    FAILS_WITH(aco_tls_write(tls, "x", 1), ECONNABORTED);
}

static void *ends(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = shuts_then_reads};
    end_t s = {.config = server_with(0, &good), .act = writes_after_the_end};
    (void)unused;
    succeed(&c, &s);
    c.act = shuts_both_ways;
    succeed(&c, &s);
    c.act = notices_cut;
    s.act = cuts;
    succeed(&c, &s);
    c.act = cuts;
    s.act = notices_cut;
    succeed(&c, &s);
    c.act = reads_end;
    s.act = NULL; /* aco_tls_close() sends the end */
    succeed(&c, &s);
    c.act = notices_gone;
    succeed(&c, &s);
    c.act = writes_to_closed;
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- As streams of aco/stream.h ---- */

static void talks_by_stream(aco_tls_t *tls)
{
    aco_stream_t *stream = aco_tls_stream(tls);
    struct iovec parts[] = {{(char[]){"he"}, 2}, {(char[]){"llo"}, 3}, {much, MUCH}};
    char text[8] = "";
    size_t done = 0;
    CHECK(aco_tls_of_stream(stream) == tls);
    CHECK(strcmp(aco_stream_protocol(stream), "h2") == 0);
    CHECK_EQ(aco_stream_fd(stream), aco_tls_fd(tls));
    CHECK_EQ(aco_stream_write_parts(stream, parts, 3), 0);
    CHECK_EQ(aco_stream_shutdown(stream), 0);
    FAILS_WITH(aco_stream_write_all_done(stream, "x", 1, &done), EPIPE);
    CHECK_EQ(aco_stream_wait_readable(stream), 0);
    CHECK_EQ(aco_stream_read_exactly(stream, text, 5), 5);
    CHECK(memcmp(text, "HELLO", 5) == 0);
    memset(got_much, 0, MUCH);
    CHECK_EQ(aco_stream_read_exactly(stream, got_much, MUCH), MUCH);
    CHECK(memcmp(much, got_much, MUCH) == 0);
    CHECK_EQ(aco_stream_read(stream, text, 1), 0);
}

static void answers_by_stream(aco_tls_t *tls)
{
    aco_stream_t *stream = aco_tls_stream(tls);
    char text[8] = "";
    CHECK_EQ(aco_stream_read_exactly(stream, text, 5), 5);
    CHECK_EQ(aco_stream_read_exactly(stream, got_much, MUCH), MUCH);
    CHECK(memcmp(text, "hello", 5) == 0 && memcmp(much, got_much, MUCH) == 0);
    CHECK_EQ(aco_stream_read(stream, text, 1), 0);
    CHECK_EQ(aco_stream_write_all(stream, "HELLO", 5), 5);
    CHECK_EQ(aco_stream_write_all(stream, much, MUCH), MUCH);
}

/* It is joined with an end of memory; at the other end is an echo. */
static void *echoes_in_memory(void *end)
{
    char text[5];
    ssize_t n;
    while ((n = aco_stream_read(end, text, sizeof text)) > 0)
        CHECK_EQ(aco_stream_write_all(end, text, (size_t)n), n);
    aco_stream_close(end);
    return NULL;
}

static void joins(aco_tls_t *tls)
{
    aco_stream_t *ends[2];
    uint64_t copied[2];
    aco_group_t group;
    CHECK_EQ(aco_stream_pair(ends, 100), 0);
    CHECK(aco_tls_of_stream(ends[0]) == NULL && errno == ENOTSUP);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, echoes_in_memory, ends[1]);
    CHECK_EQ(aco_stream_copy_both_ways(aco_tls_stream(tls), ends[0], copied), 0);
    CHECK(copied[0] == 5 && copied[1] == 5);
    aco_group_end(&group);
    aco_stream_close(ends[0]);
}

static void is_joined(aco_tls_t *tls)
{
    char text[5] = "";
    CHECK_EQ(aco_tls_write_all(tls, "hello", 5), 5);
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_WR), 0);
    CHECK_EQ(aco_stream_read_exactly(aco_tls_stream(tls), text, 5), 5);
    CHECK(memcmp(text, "hello", 5) == 0);
    reads_end(tls);
}

static void *accepts_and_cuts(void *server)
{
    const end_t *s = server;
    aco_stream_t *stream = aco_tls_stream(aco_tls_accept(s->fd, s->config));
    CHECK(stream != NULL);
    CHECK_EQ(aco_stream_write_all(stream, "part", 4), 4);
    aco_stream_abort(stream);
    return NULL;
}

static void *as_streams(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = talks_by_stream};
    end_t s = {.config = server_with(0, &good), .act = answers_by_stream};
    aco_group_t group;
    aco_stream_t *stream;
    char text[8];
    int pair[2];
    CHECK_EQ(aco_tls_config_alpn(c.config, "h2,http/1.1"), 0);
    CHECK_EQ(aco_tls_config_alpn(s.config, "h2,http/1.1"), 0);
    succeed(&c, &s);
    c.act = is_joined;
    s.act = joins;
    succeed(&c, &s);
    make_pair(pair, SOCK_STREAM);
    s.fd = pair[1];
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, accepts_and_cuts, &s);
    stream = aco_tls_stream(aco_tls_connect(pair[0], c.host, c.config));
    CHECK(stream != NULL);
    CHECK_EQ(aco_stream_read_exactly(stream, text, 4), 4);
    FAILS_WITH(aco_stream_read(stream, text, 1), EPROTO); /* an alert */
    aco_stream_close(stream);
    aco_group_end(&group);
    errno = ENOENT;
    CHECK(aco_tls_stream(NULL) == NULL && errno == ENOENT);
    destroy_configs(&c, &s);
    return unused;
}

/* ---- Peers that do not speak TLS ---- */

typedef struct raw {
    int fd, reads_first;
    const char *text;
} raw_t;

static void *sends_text(void *arg)
{
    const raw_t *raw = arg;
    char bytes[4096];
    if (raw->reads_first)
        CHECK(aco_io_read(raw->fd, bytes, sizeof bytes) > 0);
    CHECK_EQ(aco_io_write_all(raw->fd, raw->text, strlen(raw->text)), (ssize_t)strlen(raw->text));
    CHECK_EQ(aco_io_close(raw->fd), 0);
    return NULL;
}

static void meet_raw(end_t *end, const char *text, int error, const char *message)
{
    aco_group_t group;
    raw_t raw = {.text = text, .reads_first = !end->is_server};
    int pair[2];
    make_pair(pair, SOCK_STREAM);
    raw.fd = pair[0];
    end->fd = pair[1];
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, sends_text, &raw);
    member(&group, be_end, end);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(end->error, error);
    if (!strstr(end->message, message))
        fprintf(stderr, "wanted \"%s\", it was \"%s\"\n", message, end->message);
    CHECK(strstr(end->message, message) != NULL);
}

static void *strangers(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root)};
    end_t s = {.config = server_with(0, &good), .is_server = 1};
    (void)unused;
    meet_raw(&s, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", EPROTO, "protocol: http request");
    meet_raw(&s, "nothing that anybody has ever heard of", EPROTO, "protocol: ");
    meet_raw(&s, "", ECONNRESET, "the stream ended in the handshake");
    meet_raw(&s, "\x16\x03\x01\x02", ECONNRESET, "the stream ended in the handshake");
    meet_raw(&c, "HTTP/1.1 400 Bad Request\r\n\r\n", EPROTO, "a.test: protocol: wrong version number");
    meet_raw(&c, "", ECONNRESET, "a.test: the stream ended in the handshake");
    destroy_configs(&c, &s);
    return NULL;
}

/* TCP's reset. */
static void *reset(void *unused)
{
    struct linger at_once = {1, 0};
    end_t s = {.config = server_with(0, &good), .is_server = 1};
    int pair[2];
    (void)unused;
    make_tcp(pair);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    CHECK_EQ(aco_io_close(pair[0]), 0);
    s.fd = pair[1];
    be_end(&s);
    CHECK_EQ(s.error, ECONNRESET);
    CHECK(strstr(s.message, "aco_tls_accept: descriptor ") && strstr(s.message, strerror(ECONNRESET)));
    CHECK_EQ(aco_tls_config_destroy(s.config), 0);
    return NULL;
}

/* ---- Scopes ---- */

static void *scopes_in_handshakes(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root)};
    end_t s = {.config = server_with(0, &good), .is_server = 1};
    end_t *const both[] = {&c, &s};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        aco_scope_t scope;
        aco_group_t group;
        int pair[2];
        make_pair(pair, SOCK_STREAM);
        both[i]->fd = pair[1];
        aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
        be_end(both[i]); /* it closes pair[1] */
        aco_scope_end(&scope);
        CHECK_EQ(both[i]->error, ETIMEDOUT);
        CHECK_EQ(aco_io_close(pair[0]), 0);

        make_pair(pair, SOCK_STREAM);
        both[i]->fd = pair[1];
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, be_end, both[i]);
        aco_task_yield();
        CHECK_EQ(aco_scope_cancel(&group.scope), 0);
        CHECK_EQ(aco_group_end(&group), 0);
        CHECK_EQ(both[i]->error, ECANCELED);
        CHECK_EQ(aco_io_close(pair[0]), 0);
    }
    destroy_configs(&c, &s);
    return NULL;
}

static aco_event_t may_go_on = ACO_EVENT_INIT;

static void is_silent(aco_tls_t *tls)
{
    (void)tls;
    CHECK_EQ(aco_event_wait(&may_go_on), 0);
}

static void is_late(aco_tls_t *tls)
{
    char byte;
    size_t done = 0;
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_tls_read(tls, &byte, 1), ETIMEDOUT);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND));
    for (int i = 0; i < 1000 && done == (i ? MUCH : 0); i++) /* until no buffer has room */
        errno = 0, (void)aco_tls_write_all_done(tls, much, MUCH, &done);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(done < MUCH);
    aco_scope_end(&scope);
    FAILS_WITH(aco_tls_write(tls, &byte, 1), ECONNABORTED); /* in the middle of a record */
    CHECK(strstr(aco_error_message(), "it has failed before") != NULL);
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_tls_read(tls, &byte, 1), ETIMEDOUT); /* reads go on */
    FAILS_WITH(aco_tls_wait_readable(tls), ETIMEDOUT);
    aco_scope_end(&scope);
    aco_event_set(&may_go_on);
}

static void shuts_in_vain(aco_tls_t *tls)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_tls_shutdown(tls, SHUT_RDWR), ETIMEDOUT);
    aco_scope_end(&scope);
    aco_event_set(&may_go_on);
}

static void *scopes(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = is_late};
    end_t s = {.config = server_with(0, &good), .act = is_silent};
    (void)unused;
    aco_event_reset(&may_go_on);
    succeed(&c, &s);
    c.act = shuts_in_vain;
    aco_event_reset(&may_go_on);
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Several tasks with one connection ---- */

typedef struct use {
    aco_tls_t *tls;
    char letter;
    int error;
    size_t n;
} use_t;

enum { PIECE = 40000, PIECES = 20 }; /* more than the buffers of a socket */

static void *writes_pieces(void *arg)
{
    const use_t *use = arg;
    char *piece = malloc(PIECE);
    memset(piece, use->letter, PIECE);
    for (int i = 0; i < PIECES; i++)
        CHECK_EQ(aco_tls_write_all(use->tls, piece, PIECE), PIECE);
    free(piece);
    return NULL;
}

/* Pieces are whole: each write_all() has its turn. */
static void *reads_pieces(void *arg)
{
    use_t *use = arg;
    char bytes[3000], last = 0;
    size_t run = 0, n = 0, most = 2 * (size_t)PIECE * PIECES;
    while (n < most) {
        ssize_t got = aco_tls_read(use->tls, bytes, sizeof bytes);
        CHECK(got > 0);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++, run++, n++)
            if (bytes[i] != last) {
                CHECK(run % PIECE == 0);
                last = bytes[i];
                run = 0;
            }
    }
    return NULL;
}

static void is_duplex(aco_tls_t *tls)
{
    use_t uses[3] = {{tls, 'a', 0, 0}, {tls, 'b', 0, 0}, {tls, 0, 0, 0}};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_pieces, &uses[0]);
    member(&group, reads_pieces, &uses[2]);
    member(&group, writes_pieces, &uses[1]);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0);
}

/* Counts what it reads, until the end or a failure. */
static void *reads_some(void *arg)
{
    use_t *use = arg;
    char bytes[100];
    ssize_t n;
    while ((n = aco_tls_read(use->tls, bytes, sizeof bytes)) > 0)
        use->n += (size_t)n;
    use->error = n < 0 ? errno : 0;
    return NULL;
}

static void *writes_until_closed(void *arg)
{
    use_t *use = arg;
    while (aco_tls_write(use->tls, much, MUCH) > 0)
        ;
    use->error = errno;
    return NULL;
}

static void has_two_readers(aco_tls_t *tls)
{
    use_t uses[2] = {{tls, 0, -1, 0}, {tls, 0, -1, 0}};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_some, &uses[0]);
    member(&group, reads_some, &uses[1]);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(uses[0].n + uses[1].n, MUCH);
    CHECK(uses[0].error == 0 && uses[1].error == 0);
}

static void sends_much(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_write_all(tls, much, MUCH), MUCH);
}

/* be_end() closes the connection when this returns, while the three wait. */
static aco_t *users[4];
static use_t uses_of_closed[4];

static void is_closed_in_use(aco_tls_t *tls)
{
    const aco_function_t fns[] = {reads_some, reads_some, writes_until_closed, writes_until_closed};
    for (int i = 0; i < 4; i++) {
        uses_of_closed[i] = (use_t){tls, 0, -1, 0};
        users[i] = aco_spawn(fns[i], &uses_of_closed[i], NULL);
        CHECK(users[i] != NULL);
    }
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
}

static void stays_until_joined(aco_tls_t *tls)
{
    (void)tls;
    while (!users[3] || aco_state(users[3]) != ACO_STATE_DONE)
        CHECK_EQ(aco_sleep(ACO_MILLISECOND / 10), 0);
}

static void *shared_use(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = is_duplex};
    end_t s = {.config = server_with(0, &good), .act = is_duplex};
    (void)unused;
    succeed(&c, &s);
    c.act = has_two_readers;
    s.act = sends_much;
    succeed(&c, &s);
    c.act = is_closed_in_use;
    s.act = stays_until_joined;
    succeed(&c, &s);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(aco_join(users[i], NULL), 0);
        CHECK_EQ(uses_of_closed[i].error, ECANCELED);
    }
    destroy_configs(&c, &s);
    return NULL;
}

/* Reads of what has come already let other tasks run. */
static void *counts_turns(void *arg)
{
    size_t *turns = arg;
    while (*turns < SIZE_MAX / 2) {
        ++*turns;
        aco_task_yield();
    }
    return NULL;
}

static void reads_by_bytes(aco_tls_t *tls)
{
    size_t turns = 0;
    char byte;
    aco_t *counter;
    CHECK_EQ(aco_tls_wait_readable(tls), 0);
    counter = aco_spawn(counts_turns, &turns, NULL);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(aco_tls_read(tls, &byte, 1), 1);
    CHECK(turns >= 1000 / 64 && turns <= 1000 / 8);
    turns = SIZE_MAX / 2;
    CHECK_EQ(aco_join(counter, NULL), 0);
}

static void sends_a_record(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_write_all(tls, much, 1000), 1000);
}

static void *fairness(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = reads_by_bytes};
    end_t s = {.config = server_with(0, &good), .act = sends_a_record};
    (void)unused;
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

enum { CONNECTIONS = 8, ROUNDS = 40 };
static aco_tls_t *connections[CONNECTIONS];
static int connected, others_turns;

/* The last one uses all the connections in turn; the others count their own turns meanwhile. */
static void writes_in_turn(aco_tls_t *tls)
{
    connections[connected++] = tls;
    while (connected < CONNECTIONS || (connected == CONNECTIONS && tls != connections[CONNECTIONS - 1])) {
        others_turns++;
        aco_task_yield();
    }
    if (connected > CONNECTIONS)
        return;
    others_turns = 0;
    for (int i = 0; i < CONNECTIONS * ROUNDS; i++)
        CHECK_EQ(aco_tls_write(connections[i % CONNECTIONS], "x", 1), 1);
    CHECK(others_turns >= CONNECTIONS * ROUNDS / 128);
    connected++;
}

static void reads_all(aco_tls_t *tls)
{
    char bytes[64];
    while (aco_tls_read(tls, bytes, sizeof bytes) > 0)
        ;
}

static void *meets(void *configs)
{
    end_t c = {.host = "a.test", .config = ((aco_tls_config_t **)configs)[0], .act = writes_in_turn};
    end_t s = {.config = ((aco_tls_config_t **)configs)[1], .act = reads_all};
    succeed(&c, &s);
    return NULL;
}

/* A task that goes round many connections gives turns as one that uses one of them. */
static void *fairness_of_many(void *unused)
{
    aco_tls_config_t *configs[] = {client_that_trusts(&root), server_with(0, &good)};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < CONNECTIONS; i++)
        CHECK(aco_group_spawn(&group, meets, configs, NULL) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(aco_tls_config_destroy(configs[0]), 0);
    CHECK_EQ(aco_tls_config_destroy(configs[1]), 0);
    return unused;
}

/* ---- Records without bytes ---- */

/* So many new keys, or their requests, in one piece: the first bytes of `much` follow. */
static void sends_keys(aco_tls_t *tls, int n, int kind)
{
    SSL *ssl = aco_tls_ssl(tls);
    BIO *to_fd = SSL_get_wbio(ssl), *memory = BIO_new(BIO_s_mem());
    char *bytes;
    long length;
    CHECK(BIO_up_ref(to_fd));
    SSL_set0_wbio(ssl, memory);
    for (int i = 0; i < n; i++)
        CHECK(SSL_key_update(ssl, kind) == 1 && SSL_do_handshake(ssl) == 1);
    CHECK_EQ(SSL_write(ssl, much, 10), 10);
    length = BIO_get_mem_data(memory, &bytes);
    CHECK_EQ(aco_io_write_all(aco_tls_fd(tls), bytes, (size_t)length), length);
    SSL_set0_wbio(ssl, to_fd);
}

static void floods_with_keys(aco_tls_t *tls)
{
    sends_keys(tls, 10000, SSL_KEY_UPDATE_NOT_REQUESTED);
    CHECK_EQ(aco_tls_read(tls, got_much, 1), 0);
}

static void is_flooded(aco_tls_t *tls)
{
    size_t turns = 0;
    aco_t *counter;
    CHECK_EQ(aco_io_wait_readable(aco_tls_fd(tls)), 0);
    counter = aco_spawn(counts_turns, &turns, NULL);
    CHECK_EQ(aco_tls_read(tls, got_much, 10), 10);
    CHECK(turns >= 5);
    turns = SIZE_MAX / 2;
    CHECK_EQ(aco_join(counter, NULL), 0);
}

/* A request for new keys comes while a record is half written: the answer must wait. */
static void asks_for_keys(aco_tls_t *tls)
{
    size_t got = 0;
    ssize_t n = 1;
    aco_sleep(2 * ACO_MILLISECOND); /* the other end's writer waits */
    sends_keys(tls, 2, SSL_KEY_UPDATE_REQUESTED);
    while (n > 0) {
        n = aco_tls_read(tls, got_much + got, MUCH - got);
        got += n > 0 ? (size_t)n : 0;
    }
    CHECK(n == 0 && got == MUCH && memcmp(much, got_much, MUCH) == 0);
}

static void *writes_much(void *tls)
{
    CHECK_EQ(aco_tls_write_all(tls, much, MUCH), MUCH);
    return NULL;
}

static void is_asked_for_keys(aco_tls_t *tls)
{
    char bytes[20];
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_much, tls);
    CHECK_EQ(aco_tls_read(tls, bytes, sizeof bytes), 10);
    CHECK(memcmp(bytes, much, 10) == 0);
    CHECK_EQ(aco_group_end(&group), 0);
}

static void *new_keys(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = floods_with_keys};
    end_t s = {.config = server_with(0, &good), .act = is_flooded};
    (void)unused;
    succeed(&c, &s);
    c.act = asks_for_keys;
    s.act = is_asked_for_keys;
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- What a connection tells and permits ---- */

static void is_asked(aco_tls_t *tls)
{
    char name[8];
    FAILS_WITH(aco_tls_shutdown(tls, SHUT_RD), EINVAL);
    FAILS_WITH(aco_tls_peer_name(tls, name, 7), ENOSPC);
    CHECK_EQ(aco_tls_peer_name(tls, name, 8), 0);
    CHECK_EQ(aco_tls_read(tls, name, 0), 0);
    CHECK_EQ(aco_tls_write(tls, name, 0), 0);
    CHECK_EQ(SSL_get_fd(aco_tls_ssl(tls)), aco_tls_fd(tls));
    CHECK_EQ(SSL_get_security_level(aco_tls_ssl(tls)), 2);
    CHECK(SSL_get_options(aco_tls_ssl(tls)) & SSL_OP_NO_COMPRESSION);
    ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR); /* what others leave in the queue is not taken for its own */
    reads_end(tls);
}

/* The peer does not. */
static void renegotiates(aco_tls_t *tls)
{
    SSL_clear_options(aco_tls_ssl(tls), SSL_OP_NO_RENEGOTIATION);
    CHECK_EQ(SSL_renegotiate(aco_tls_ssl(tls)), 1);
    FAILS_WITH(aco_tls_write(tls, "x", 1), EPROTO);
    CHECK(strstr(aco_error_message(), "no renegotiation") != NULL);
}

static void reads_what_comes(aco_tls_t *tls)
{
    use_t use = {tls, 0, 0, 0};
    reads_some(&use);
    CHECK_EQ(use.n, 0);
}

static void asks_for_renegotiation(aco_tls_t *tls)
{
    char byte;
    SSL_clear_options(aco_tls_ssl(tls), SSL_OP_NO_RENEGOTIATION);
    CHECK_EQ(SSL_renegotiate(aco_tls_ssl(tls)), 1);
    CHECK_EQ(aco_tls_write(tls, "x", 1), 1);
    FAILS_WITH(aco_tls_read(tls, &byte, 1), EPROTO);
    CHECK(strstr(aco_error_message(), "no renegotiation") != NULL);
}

static void reads_one_byte(aco_tls_t *tls)
{
    char byte;
    CHECK_EQ(aco_tls_read(tls, &byte, 1), 1);
    FAILS_WITH(aco_tls_read(tls, &byte, 1), EPROTO);
}

static void *defaults(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = is_asked};
    end_t s = {.config = server_with(0, &good)};
    (void)unused;
    succeed(&c, &s);
    only_version(c.config, TLS1_2_VERSION);
    c.act = renegotiates;
    s.act = reads_what_comes;
    succeed(&c, &s);
    c.act = reads_one_byte;
    s.act = asks_for_renegotiation;
    succeed(&c, &s);
    CHECK(SSL_CTX_set_min_proto_version(aco_tls_config_context(c.config), TLS1_1_VERSION));
    CHECK(SSL_CTX_set_max_proto_version(aco_tls_config_context(c.config), TLS1_1_VERSION));
    SSL_CTX_set_security_level(aco_tls_config_context(c.config), 0);
    CHECK(SSL_CTX_set_cipher_list(aco_tls_config_context(c.config), "ALL"));
    meet(&c, &s);
    CHECK_EQ(s.error, EPROTO);
    CHECK(strstr(s.message, "unsupported protocol") != NULL);
    destroy_configs(&c, &s);
    return NULL;
}

/* The system's defaults become weak; those of this library must not. Before anything else of OpenSSL. */
static void weaken_system(void)
{
    char path[64];
    FILE *file = new_file(path, "openssl.cnf");
    SSL_CTX *systems;
    fputs("openssl_conf = all\n[all]\nssl_conf = programs\n[programs]\nsystem_default = weak\n"
          "[weak]\nCipherString = DEFAULT@SECLEVEL=0\nOptions = Compression\nMinProtocol = TLSv1\n",
          file);
    fclose(file);
    CHECK_EQ(setenv("OPENSSL_CONF", path, 1), 0);
    systems = SSL_CTX_new(TLS_method());
    CHECK_EQ(SSL_CTX_get_security_level(systems), 0);
    CHECK(!(SSL_CTX_get_options(systems) & SSL_OP_NO_COMPRESSION));
    SSL_CTX_free(systems);
}

int main(void)
{
    static const aco_function_t tests[] = {ends,   as_streams, strangers, reset, scopes_in_handshakes,
                                           scopes, shared_use, defaults};
    static const aco_function_t in_kernel[] = {fairness, new_keys, fairness_of_many}; /* tasks count turns */
    weaken_system();
    for (int i = 0; i < MUCH; i++)
        much[i] = (char)(i * 7 + i / 1000);
    run_tls_tests(tests, sizeof tests / sizeof *tests);
    if (!IS_SIMULATED)
        run_tests(in_kernel, sizeof in_kernel / sizeof *in_kernel, count_descriptors());
    free_certificates();
    return check_result("tls_streams");
}
