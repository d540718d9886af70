/* clients CLIENT ADDRESS TASKS [unhooked]: so many tasks of one thread use a client library that knows nothing of them.
 * CLIENT: redis, postgres, mariadb (ADDRESS: a port of this machine), curl (a URL) or sqlite (a file to make). Prints
 * how long they took. clients.py starts the servers. Exit 77: built without this library. */
#define _GNU_SOURCE
#include <aco/hook.h>
#include <aco/sync.h>
#include "check.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef HAVE_REDIS
#include <hiredis/hiredis.h>
#endif
#ifdef HAVE_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef HAVE_MARIADB
#include <mysql.h>
#endif
#ifdef HAVE_CURL
#include <curl/curl.h>
#endif
#ifdef HAVE_SQLITE
#include <sqlite3.h>
#endif

static const char *address;
static long tasks, failures_said;
static int is_hooked = 1;
static aco_barrier_t barrier; /* between connecting, asking and ending */
static int64_t asked_at, answered_at;

static void failed(const char *what, const char *why)
{
    CHECK(!"a client's call");
    if (failures_said++ < 5)
        fprintf(stderr, "%s: %s\n", what, why);
}

static void all_are_connected(void)
{
    CHECK(aco_barrier_wait(&barrier) >= 0);
    if (!asked_at)
        asked_at = aco_now();
}

static void all_have_answers(void)
{
    CHECK(aco_barrier_wait(&barrier) >= 0);
    if (!answered_at)
        answered_at = aco_now();
}

#ifdef HAVE_REDIS
static void use_redis(long i)
{
    redisContext *c = redisConnect("127.0.0.1", atoi(address));
    redisReply *reply;
    if (!c || c->err)
        failed("redisConnect", c ? c->errstr : "no memory");
    all_are_connected();
    for (int round = 0; round < 3; round++) {
        reply = redisCommand(c, "SET key%ld value%ld.%d", i, i, round);
        CHECK(reply && reply->type == REDIS_REPLY_STATUS);
        freeReplyObject(reply);
    }
    reply = redisCommand(c, "BLPOP nothing%ld 0.1", i); /* the server answers after 0.1 s */
    CHECK(reply && reply->type == REDIS_REPLY_NIL);
    freeReplyObject(reply);
    reply = redisCommand(c, "GET key%ld", i);
    if (!reply || reply->type != REDIS_REPLY_STRING)
        failed("redisCommand", c->errstr);
    else
        CHECK_EQ(atol(reply->str + 5), i);
    freeReplyObject(reply);
    all_have_answers();
    redisFree(c);
}
#endif

#ifdef HAVE_POSTGRES
static void use_postgres(long i)
{
    char text[100];
    PGconn *c;
    PGresult *result;
    snprintf(text, sizeof text, "host=127.0.0.1 port=%s user=postgres dbname=postgres", address);
    c = PQconnectdb(text);
    if (PQstatus(c) != CONNECTION_OK)
        failed("PQconnectdb", PQerrorMessage(c));
    all_are_connected();
    snprintf(text, sizeof text, "SELECT pg_sleep(0.1), %ld", i);
    result = PQexec(c, text);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        failed("PQexec", PQerrorMessage(c));
    else
        CHECK_EQ(atol(PQgetvalue(result, 0, 1)), i);
    all_have_answers();
    PQclear(result);
    PQfinish(c);
}
#endif

#ifdef HAVE_MARIADB
static void use_mariadb(long i)
{
    char text[100];
    MYSQL *c = mysql_init(NULL);
    MYSQL_RES *result;
    MYSQL_ROW row;
    if (!mysql_real_connect(c, "127.0.0.1", "root", "", NULL, (unsigned)atoi(address), NULL, 0))
        failed("mysql_real_connect", mysql_error(c));
    all_are_connected();
    snprintf(text, sizeof text, "SELECT SLEEP(0.1), %ld", i);
    if (mysql_query(c, text) != 0)
        failed("mysql_query", mysql_error(c));
    result = mysql_store_result(c);
    all_have_answers();
    row = result ? mysql_fetch_row(result) : NULL;
    CHECK(row != NULL);
    if (row)
        CHECK_EQ(atol(row[1]), i);
    mysql_free_result(result);
    mysql_close(c);
}
#endif

#ifdef HAVE_CURL
static size_t take(char *bytes, size_t size, size_t n, void *arg)
{
    *(size_t *)arg += size * n;
    CHECK(size * n <= 6 && memcmp(bytes, "hello\n", size * n) == 0);
    return size * n;
}

static void use_curl(long i)
{
    CURL *curl = curl_easy_init();
    size_t got = 0;
    CURLcode code;
    (void)i;
    all_are_connected();
    curl_easy_setopt(curl, CURLOPT_URL, address);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &got);
    for (int round = 0; round < 3; round++) {
        code = curl_easy_perform(curl);
        if (code != CURLE_OK)
            failed("curl_easy_perform", curl_easy_strerror(code));
    }
    CHECK_EQ(got, 18);
    all_have_answers();
    curl_easy_cleanup(curl);
}
#endif

#ifdef HAVE_SQLITE
static void run_sql(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        failed(sql, message ? message : "?");
    sqlite3_free(message);
}

static int is_count(void *expected, int n, char **values, char **names)
{
    (void)names;
    CHECK(n == 1 && atol(values[0]) == *(long *)expected);
    return 0;
}

/* Each has its own connection; the file is the same, so they wait for its lock. */
static void use_sqlite(long i)
{
    sqlite3 *db;
    char sql[100];
    long one = 1;
    if (sqlite3_open(address, &db) != SQLITE_OK)
        failed("sqlite3_open", sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, 100000);
    if (i == 0)
        run_sql(db, "CREATE TABLE rows (task INTEGER, text TEXT)");
    all_are_connected();
    snprintf(sql, sizeof sql, "INSERT INTO rows VALUES (%ld, hex(randomblob(3000)))", i);
    run_sql(db, sql);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM rows WHERE task = %ld", i);
    CHECK_EQ(sqlite3_exec(db, sql, is_count, &one, NULL), SQLITE_OK);
    all_have_answers();
    sqlite3_close(db);
}
#endif

static const struct {
    const char *name;
    void (*use)(long i);
} clients[] = {
#ifdef HAVE_REDIS
    {"redis", use_redis},
#endif
#ifdef HAVE_POSTGRES
    {"postgres", use_postgres},
#endif
#ifdef HAVE_MARIADB
    {"mariadb", use_mariadb},
#endif
#ifdef HAVE_CURL
    {"curl", use_curl},
#endif
#ifdef HAVE_SQLITE
    {"sqlite", use_sqlite},
#endif
    {"", NULL}};
static void (*use)(long i);

static void *client(void *i)
{
    if (is_hooked && aco_hook_begin() != 0)
        failed("aco_hook_begin", aco_error_message());
    use((long)(intptr_t)i);
    return NULL;
}

static void prepare(void)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
#ifdef HAVE_CURL
    curl_global_init(CURL_GLOBAL_DEFAULT);
#endif
#ifdef HAVE_MARIADB
    mysql_library_init(0, NULL, NULL);
#endif
}

int main(int argc, char **argv)
{
    aco_options_t detached = {0};
    int64_t start;
    if (argc < 4)
        return 2;
    for (size_t i = 0; clients[i].use; i++)
        if (strcmp(argv[1], clients[i].name) == 0)
            use = clients[i].use;
    if (!use)
        return 77;
    address = argv[2];
    tasks = atol(argv[3]);
    is_hooked = argc == 4;
    prepare();
    barrier.count = (size_t)tasks;
    detached.flags = ACO_DETACHED;
    start = aco_now();
    for (long i = 0; i < tasks; i++)
        CHECK(aco_spawn(client, (void *)(intptr_t)i, &detached) != NULL);
    if (aco_run() != 0)
        failed("aco_run", aco_error_message());
    printf("%s: %ld tasks connected in %.3f s, had their answers after %.3f s, ended after %.3f s\n", argv[1], tasks,
           (double)(asked_at - start) / 1e9, (double)(answered_at - asked_at) / 1e9,
           (double)(aco_now() - answered_at) / 1e9);
    return check_result(argv[1]);
}
