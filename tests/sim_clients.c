/* Promises: client libraries that know nothing of Acorn run in a simulation, hooked, against servers written in Acorn,
 * under latency, losses, resets, partitions and crashes. What they answer is right, and once all has healed they work.
 *
 *   sim_clients [OPTION]... -- redis|postgres|curl|curl_tls
 *
 * hiredis, libpq and libcurl. Exit 77: built without this library. */
#include "aco/hook.h"
#include "aco/http.h"
#include "aco/io.h"
#include "aco/scope.h"
#include "aco/sim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_REDIS
#include <hiredis/hiredis.h>
#endif
#ifdef HAVE_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef HAVE_CURL
#include <curl/curl.h>
#endif
#ifdef HAVE_CURL_TLS
#include "aco/tls.h"
#include "tls_certificates.h"
#endif

enum { CLIENTS = 2, CALLS = 45, LONGEST_WORD = 20000, WORD_ROOM = 64, WAIT_S = 10 };

/* What a client asks for: the server's answer has it. */
typedef struct client {
    char name[24];
    char value[WORD_ROOM];      /* of its key in redis: kept by the server's machine, whatever crashes */
    unsigned sent;              /* the number in the last value that was sent */
    unsigned calls, failures;   /* calls that were answered, and those that failed */
} client_t;

static aco_sim_t *sim;
static client_t clients[CLIENTS];
static unsigned long calls, failures; /* of all runs */
static void (*use)(client_t *client, unsigned call); /* one session */

static void wrong(const char *what, ...)
{
    char text[200];
    va_list list;
    va_start(list, what);
    vsnprintf(text, sizeof text, what, list);
    va_end(list);
    aco_sim_fail(sim, text);
}

#if defined HAVE_REDIS || defined HAVE_POSTGRES || defined HAVE_CURL
/* Some bytes that tell whose they are: "name.call." again and again. `long_one`: more than a buffer has room for. */
static void make_word(char *word, const client_t *client, unsigned call)
{
    char text[32];
    size_t n = (size_t)snprintf(text, sizeof text, "%s.%u.", client->name, call);
    size_t size = call % 3 == 0 ? LONGEST_WORD : WORD_ROOM;
    for (size_t i = 0; i < size - 1; i++)
        word[i] = text[i % n];
    word[size - 1] = 0;
}
#endif

/* ---- What the servers read ---- */

#if defined HAVE_REDIS || defined HAVE_POSTGRES
typedef struct reader {
    int fd;
    size_t at, n;
    char bytes[4096];
} reader_t;

/* The next byte; -1: the end, or a failure. */
static int next_byte(reader_t *reader)
{
    if (reader->at == reader->n) {
        ssize_t n = aco_io_read(reader->fd, reader->bytes, sizeof reader->bytes);
        if (n <= 0)
            return -1;
        reader->at = 0;
        reader->n = (size_t)n;
    }
    return (unsigned char)reader->bytes[reader->at++];
}

/* 0, or -1. */
static int next_bytes(reader_t *reader, char *to, size_t n)
{
    for (int byte; n > 0; n--) {
        if ((byte = next_byte(reader)) < 0)
            return -1;
        *to++ = (char)byte;
    }
    return 0;
}

/* Accepts for ever; each connection has a task. */
static void serve_connections(const char *port, void *(*serve)(void *fd))
{
    aco_options_t detached = {0};
    int listener = aco_io_listen("tcp", NULL, port, NULL), fd;
    detached.flags = ACO_DETACHED;
    while ((fd = aco_io_accept(listener)) >= 0)
        if (!aco_spawn(serve, (void *)(intptr_t)fd, &detached))
            aco_io_close(fd);
}
#endif

/* ---- redis ---- */

#ifdef HAVE_REDIS
/* A number and the end of its line. -1: none. */
static long next_number(reader_t *reader, int kind)
{
    long number = 0;
    int byte = next_byte(reader);
    if (byte != kind)
        return -1;
    while ((byte = next_byte(reader)) >= '0' && byte <= '9')
        number = number * 10 + byte - '0';
    return byte == '\r' && next_byte(reader) == '\n' ? number : -1;
}

/* A connection. Of a task that is killed, a leak checker may not see the arrays on its stack: this is allocated. */
typedef struct redis_session {
    reader_t reader;
    char arguments[3][LONGEST_WORD + 2];
} redis_session_t;

/* 0, or -1. */
static int next_argument(reader_t *reader, char *text)
{
    long n = next_number(reader, '$');
    if (n < 0 || n > LONGEST_WORD || next_bytes(reader, text, (size_t)n + 2) != 0)
        return -1;
    text[n] = 0;
    return 0;
}

static int reply_bulk(int fd, const char *text)
{
    char head[32];
    int n = snprintf(head, sizeof head, "$%zu\r\n", strlen(text));
    return aco_io_write_all(fd, head, (size_t)n) < 0 || aco_io_write_all(fd, text, strlen(text)) < 0 ||
                   aco_io_write_all(fd, "\r\n", 2) < 0
               ? -1
               : 0;
}

static int answer_command(int fd, const char (*arguments)[LONGEST_WORD + 2], long n)
{
    client_t *client = n > 1 && strcmp(arguments[0], "ECHO") != 0 ? &clients[atoi(arguments[1]) % CLIENTS] : NULL;
    if (n == 2 && strcmp(arguments[0], "ECHO") == 0)
        return reply_bulk(fd, arguments[1]);
    if (n == 2 && strcmp(arguments[0], "GET") == 0)
        return reply_bulk(fd, client->value);
    if (n == 3 && strcmp(arguments[0], "SET") == 0) {
        snprintf(client->value, sizeof client->value, "%s", arguments[2]);
        return aco_io_write_all(fd, "+OK\r\n", 5) < 0 ? -1 : 0;
    }
    return aco_io_write_all(fd, "-ERR unknown\r\n", 14) < 0 ? -1 : 0;
}

static void *serve_redis(void *number)
{
    redis_session_t *session = calloc(1, sizeof *session);
    const int fd = (int)(intptr_t)number;
    int goes_on = session != NULL;
    if (session)
        session->reader.fd = fd;
    while (goes_on) {
        long n = next_number(&session->reader, '*'), i = 0;
        while (i < n && i < 3 && next_argument(&session->reader, session->arguments[i]) == 0)
            i++;
        goes_on = n > 0 && i == n &&
                  answer_command(fd, (const char (*)[LONGEST_WORD + 2])session->arguments, n) == 0;
    }
    free(session);
    aco_io_close(fd);
    return NULL;
}

static void *redis_server(void *unused)
{
    serve_connections("6379", serve_redis);
    return unused;
}

/* The text of a reply, which is the caller's; NULL: the call has failed. */
static redisReply *taken(redisContext *c)
{
    void *reply = NULL;
    if (redisGetReply(c, &reply) != REDIS_OK)
        return NULL;
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
        wrong("redis: an error: %s", ((redisReply *)reply)->str);
    return reply;
}

/* Three commands at once. */
static void ask_redis(redisContext *c, client_t *client, unsigned call)
{
    char word[LONGEST_WORD];
    const int key = (int)(client - clients);
    redisReply *echoed, *set, *got;
    unsigned number = ++client->sent, value;
    make_word(word, client, call);
    redisAppendCommand(c, "ECHO %s", word);
    redisAppendCommand(c, "SET %d %u", key, number);
    redisAppendCommand(c, "GET %d", key);
    echoed = taken(c);
    set = echoed ? taken(c) : NULL;
    got = set ? taken(c) : NULL;
    if (echoed && (!echoed->str || strcmp(echoed->str, word) != 0))
        wrong("redis: %s has got the answer to another question", client->name);
    value = got && got->str ? (unsigned)atoi(got->str) : 0;
    if (got && (!value || value > client->sent)) /* one of an earlier session may come late, and overwrite it */
        wrong("redis: %s reads %u, and has written %u", client->name, value, client->sent);
    *(got ? &client->calls : &client->failures) += 1;
    if (echoed)
        freeReplyObject(echoed);
    if (set)
        freeReplyObject(set);
    if (got)
        freeReplyObject(got);
}

static void use_redis(client_t *client, unsigned call)
{
    redisContext *c = redisConnectWithTimeout("10.0.0.1", 6379, (struct timeval){WAIT_S, 0});
    if (c && !c->err && redisSetTimeout(c, (struct timeval){WAIT_S, 0}) == REDIS_OK)
        for (unsigned i = 0; i < 3 && !c->err; i++)
            ask_redis(c, client, call + i);
    else
        client->failures++;
    if (c)
        redisFree(c);
}
#endif

/* ---- PostgreSQL ---- */

#ifdef HAVE_POSTGRES
typedef struct message {
    size_t n;
    char bytes[LONGEST_WORD + 200];
} message_t;

static void put(message_t *message, const void *bytes, size_t n)
{
    memcpy(message->bytes + message->n, bytes, n);
    message->n += n;
}

static void put_number(message_t *message, uint32_t number, size_t size)
{
    uint32_t whole = htonl(number);
    put(message, (const char *)&whole + sizeof whole - size, size);
}

/* Of one type; its length is filled in when it is sent. */
static void begin_message(message_t *message, char type)
{
    message->n = 0;
    put(message, &type, 1);
    put_number(message, 0, 4);
}

static int send_message(int fd, message_t *message)
{
    uint32_t length = htonl((uint32_t)message->n - 1);
    memcpy(message->bytes + 1, &length, sizeof length);
    return aco_io_write_all(fd, message->bytes, message->n) < 0 ? -1 : 0;
}

static int send_ready(int fd, message_t *message)
{
    begin_message(message, 'Z');
    put(message, "I", 1);
    return send_message(fd, message);
}

/* "SELECT 'word'": a row with the word. */
static int answer_query(int fd, message_t *message, const char *query)
{
    const char *word = strchr(query, '\'') ? strchr(query, '\'') + 1 : query;
    size_t n = strcspn(word, "'");
    begin_message(message, 'T');
    put_number(message, 1, 2);
    put(message, "word", 5);
    put_number(message, 0, 4);
    put_number(message, 0, 2);
    put_number(message, 25, 4);
    put_number(message, 0xffff, 2);
    put_number(message, 0xffffffff, 4);
    put_number(message, 0, 2);
    if (send_message(fd, message) != 0)
        return -1;
    begin_message(message, 'D');
    put_number(message, 1, 2);
    put_number(message, (uint32_t)n, 4);
    put(message, word, n);
    if (send_message(fd, message) != 0)
        return -1;
    begin_message(message, 'C');
    put(message, "SELECT 1", 9);
    return send_message(fd, message) != 0 ? -1 : send_ready(fd, message);
}

static int welcome(int fd, message_t *message)
{
    static const char *const parameters[][2] = {
        {"server_version", "15.0"}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"}};
    begin_message(message, 'R');
    put_number(message, 0, 4);
    if (send_message(fd, message) != 0)
        return -1;
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        begin_message(message, 'S');
        put(message, parameters[i][0], strlen(parameters[i][0]) + 1);
        put(message, parameters[i][1], strlen(parameters[i][1]) + 1);
        if (send_message(fd, message) != 0)
            return -1;
    }
    return send_ready(fd, message);
}

/* The length and the body of what comes: 0, or -1. */
static int next_message(reader_t *reader, char *body, size_t room)
{
    uint32_t n = 0;
    if (next_bytes(reader, (char *)&n, sizeof n) != 0 || (n = ntohl(n)) < 4 || n - 4 >= room)
        return -1;
    body[n - 4] = 0;
    return next_bytes(reader, body, n - 4);
}

/* Neither TLS nor GSS. */
static int begin_session(reader_t *reader, message_t *message, char *body, size_t room)
{
    const uint32_t ask_for_tls = 80877103, ask_for_gss = 80877104;
    for (;;) {
        uint32_t code;
        if (next_message(reader, body, room) != 0)
            return -1;
        memcpy(&code, body, sizeof code);
        code = ntohl(code);
        if (code != ask_for_tls && code != ask_for_gss)
            return welcome(reader->fd, message);
        if (aco_io_write_all(reader->fd, "N", 1) < 0)
            return -1;
    }
}

static void *serve_postgres(void *number)
{
    reader_t reader = {.fd = (int)(intptr_t)number};
    message_t *message = malloc(sizeof *message);
    char *body = malloc(LONGEST_WORD + 100);
    int type, goes_on = message && body && begin_session(&reader, message, body, LONGEST_WORD + 100) == 0;
    while (goes_on && (type = next_byte(&reader)) == 'Q')
        goes_on = next_message(&reader, body, LONGEST_WORD + 100) == 0 &&
                  answer_query(reader.fd, message, body) == 0;
    free(message);
    free(body);
    aco_io_close(reader.fd);
    return NULL;
}

static void *postgres_server(void *unused)
{
    serve_connections("5432", serve_postgres);
    return unused;
}

static void ask_postgres(PGconn *c, client_t *client, unsigned call)
{
    char word[LONGEST_WORD], query[LONGEST_WORD + 20];
    PGresult *result;
    make_word(word, client, call);
    snprintf(query, sizeof query, "SELECT '%s'", word);
    result = PQexec(c, query);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        client->failures++;
    else if (PQntuples(result) != 1 || strcmp(PQgetvalue(result, 0, 0), word) != 0)
        wrong("postgres: %s has got the answer to another question", client->name);
    else
        client->calls++;
    PQclear(result);
}

/* libpq has no time limit for an answer: a scope ends the wait. */
static void use_postgres(client_t *client, unsigned call)
{
    aco_scope_t scope;
    PGconn *c;
    aco_scope_begin(&scope, aco_after(3 * WAIT_S * ACO_SECOND));
    c = PQconnectdb("host=10.0.0.1 port=5432 user=u dbname=d password=p connect_timeout=10 gssencmode=disable");
    if (PQstatus(c) != CONNECTION_OK)
        client->failures++;
    for (unsigned i = 0; i < 3 && PQstatus(c) == CONNECTION_OK; i++)
        ask_postgres(c, client, call + i);
    PQfinish(c);
    aco_scope_end(&scope);
}
#endif

/* ---- HTTP ---- */

#ifdef HAVE_CURL
static void echo(aco_http_request_t *request, void *arg)
{
    size_t n;
    char *body = aco_http_request_read_all(request, LONGEST_WORD, &n);
    (void)arg;
    if (body)
        aco_http_reply(request, 200, "text/plain", body, n);
}

static void serve_http(const char *port, aco_http_server_options_t *options)
{
    static const aco_http_route_t routes[] = {{"POST", "/echo", echo, NULL}, {NULL, NULL, NULL, NULL}};
    options->routes = routes;
    (void)aco_http_serve(aco_io_listen("tcp", NULL, port, NULL), options);
}

static void *http_server(void *unused)
{
    aco_http_server_options_t options = {0};
    serve_http("80", &options);
    return unused;
}

typedef struct answer {
    size_t n;
    char bytes[LONGEST_WORD];
} answer_t;

static size_t take(char *bytes, size_t size, size_t n, void *arg)
{
    answer_t *answer = arg;
    if (size * n > sizeof answer->bytes - answer->n)
        return 0;
    memcpy(answer->bytes + answer->n, bytes, size * n);
    answer->n += size * n;
    return size * n;
}

static void ask_by_curl(CURL *curl, client_t *client, unsigned call)
{
    char word[LONGEST_WORD];
    answer_t answer = {0};
    long status = 0;
    make_word(word, client, call);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, word);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    if (curl_easy_perform(curl) != CURLE_OK ||
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status != 200)
        client->failures++;
    else if (answer.n != strlen(word) || memcmp(answer.bytes, word, answer.n) != 0)
        wrong("curl: %s has got the answer to another question", client->name);
    else
        client->calls++;
}

/* It looks the name up on a thread of its own. */
static void use_curl_with(CURL *curl, const char *url, client_t *client, unsigned call)
{
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)WAIT_S);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    for (unsigned i = 0; i < 3; i++)
        ask_by_curl(curl, client, call + i);
    curl_easy_cleanup(curl);
}

static void use_curl(client_t *client, unsigned call)
{
    use_curl_with(curl_easy_init(), "http://web.example/echo", client, call);
}
#endif

/* ---- HTTPS: curl checks the certificate, by the virtual time ---- */

#ifdef HAVE_CURL_TLS
static certificate_t authority, certificate;
static void *authority_pem;
static size_t authority_size;

static void make_certificates(void)
{
    const int years = 365 * DAY;
    time_t begin_of_runs = 1000000000;
    how_t how = {.from = -9 * years, .to = 40 * years, .now = &begin_of_runs};
    FILE *file;
    make_certificate(&authority, "authority", &how);
    how.names = "DNS:web.example";
    how.issuer = &authority;
    make_certificate(&certificate, "web", &how);
    file = fopen(authority.file, "r");
    authority_pem = malloc(LONGEST_WORD);
    CHECK(file && authority_pem && (authority_size = fread(authority_pem, 1, LONGEST_WORD, file)) > 0);
    fclose(file);
}

static void free_certificates(void)
{
    free_certificate(&authority);
    free_certificate(&certificate);
    free(authority_pem);
}

/* A configuration of a server that crashes is left. */
static void *https_server(void *unused)
{
    aco_http_server_options_t options = {0};
    aco_tls_config_t *config = aco_tls_config_new(ACO_TLS_SERVER);
    if (aco_tls_config_certificate(config, certificate.file, certificate.key_file) != 0)
        wrong("the server's certificate: %s", aco_error_message());
    options.open = aco_tls_http_accept;
    options.open_arg = config;
    serve_http("443", &options);
    return unused;
}

static CURL *new_trusting(void)
{
    struct curl_blob trusted = {authority_pem, authority_size, CURL_BLOB_COPY};
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &trusted);
    curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    return curl;
}

static void use_curl_tls(client_t *client, unsigned call)
{
    client_t nobody = *client;
    if (call == 0)
        use_curl_with(new_trusting(), "https://other.example/echo", &nobody, call);
    if (nobody.calls != client->calls)
        wrong("curl: %s trusts a server by another name", client->name);
    use_curl_with(new_trusting(), "https://web.example/echo", client, call);
}
#endif

/* ---- The scenario ---- */

static const struct library {
    const char *name;
    void (*use)(client_t *client, unsigned call);
    void *(*server)(void *unused);
} libraries[] = {
#ifdef HAVE_REDIS
    {"redis", use_redis, redis_server},
#endif
#ifdef HAVE_POSTGRES
    {"postgres", use_postgres, postgres_server},
#endif
#ifdef HAVE_CURL
    {"curl", use_curl, http_server},
#endif
#ifdef HAVE_CURL_TLS
    {"curl_tls", use_curl_tls, https_server},
#endif
    {NULL, NULL, NULL}};

/* On a node of its own, which may crash and begin again. */
static void *run_client(void *arg)
{
    client_t *client = arg;
    if (aco_hook_begin() != 0)
        wrong("aco_hook_begin: %s", aco_error_message());
    for (unsigned call = 0; client->calls < CALLS; call += 3) {
        use(client, call);
        sleep(2);
    }
    return NULL;
}

static int all_have_ended(void)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].calls < CALLS)
            return 0;
    return 1;
}

static void scenario(aco_sim_t *run, void *arg)
{
    const struct library *library = arg;
    const double losses[] = {0, 0.01, 0.1}, resets[] = {0, 0, 0.01};
    aco_sim_link_t link = {.latency = {ACO_MILLISECOND, 50 * ACO_MILLISECOND}};
    sim = run;
    use = library->use;
    memset(clients, 0, sizeof clients);
    link.loss = losses[aco_sim_random(sim, 3)];
    link.resets = resets[aco_sim_random(sim, 3)];
    aco_sim_link(sim, "*", "*", &link);
    aco_sim_name(sim, "web.example", "10.0.0.1");
    aco_sim_name(sim, "other.example", "10.0.0.1");
    aco_sim_node(sim, "server", "10.0.0.1", library->server, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        char address[24];
        snprintf(clients[i].name, sizeof clients[i].name, "client%d", i);
        snprintf(address, sizeof address, "10.0.0.%d", i + 2);
        aco_sim_node(sim, clients[i].name, address, run_client, &clients[i]);
    }
    if (aco_sim_random(sim, 4))
        aco_sim_nemesis(sim, ACO_SIM_FAULT_ALL);
    for (int i = 0; i < 360 && !all_have_ended(); i++)
        aco_sleep(10 * ACO_SECOND);
    for (int i = 0; i < CLIENTS; i++) {
        calls += clients[i].calls;
        failures += clients[i].failures;
    }
    if (!all_have_ended())
        wrong("after an hour the clients have %u and %u answers", clients[0].calls, clients[1].calls);
}

int main(int argc, char **argv)
{
    int status;
    for (size_t i = 0; argc > 1 && libraries[i].name; i++)
        if (strcmp(libraries[i].name, argv[argc - 1]) == 0) {
#ifdef HAVE_CURL
            curl_global_init(CURL_GLOBAL_ALL);
#endif
#ifdef HAVE_CURL_TLS
            make_certificates();
#endif
            status = aco_sim_main(argc, argv, scenario, NULL, (void *)(uintptr_t)&libraries[i]);
            printf("%lu calls were answered, %lu failed\n", calls, failures);
#ifdef HAVE_CURL_TLS
            free_certificates();
#endif
            return status;
        }
    return argc > 1 ? 77 : 2;
}
