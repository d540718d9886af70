/* libpq by its asynchronous calls, without hooks: io_postgres PORT. The task waits for the connection's descriptor.
 *
 *   cc io_postgres.c $(pkg-config --cflags --libs acorn_io libpq) */
#include <aco/io.h>
#include <libpq-fe.h>
#include <stdio.h>

static PGconn *connect_to(const char *port)
{
    char text[100];
    PGconn *c;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    snprintf(text, sizeof text, "host=127.0.0.1 port=%s user=postgres dbname=postgres", port);
    c = PQconnectStart(text);
    while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
        int failed = next == PGRES_POLLING_READING ? aco_io_wait_readable(PQsocket(c))
                                                   : aco_io_wait_writable(PQsocket(c));
        next = failed ? PGRES_POLLING_FAILED : PQconnectPoll(c);
    }
    PQsetnonblocking(c, 1);
    return c;
}

/* The result of one statement; NULL: it failed, or a scope has ended. */
static PGresult *execute(PGconn *c, const char *sql)
{
    PGresult *result = NULL, *next;
    int unsent;
    if (!PQsendQuery(c, sql))
        return NULL;
    while ((unsent = PQflush(c)) > 0)
        if (aco_io_wait_writable(PQsocket(c)) != 0)
            return NULL;
    do {
        while (!unsent && PQisBusy(c))
            if (aco_io_wait_readable(PQsocket(c)) != 0 || !PQconsumeInput(c))
                return NULL;
        next = unsent ? NULL : PQgetResult(c);
        if (next) {
            PQclear(result);
            result = next;
        }
    } while (next);
    return result;
}

static void *query(void *port)
{
    PGconn *c = connect_to(port);
    PGresult *result = PQstatus(c) == CONNECTION_OK ? execute(c, "SELECT 'hello', pg_sleep(0.1)") : NULL;
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        printf("answer: %s\n", PQgetvalue(result, 0, 0));
    else
        fprintf(stderr, "%s\n", PQerrorMessage(c));
    PQclear(result);
    PQfinish(c);
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    for (int i = 0; i < 3 && argc > 1; i++) /* at the same time */
        aco_spawn(query, argv[1], &detached);
    return aco_run() == 0 ? 0 : 1;
}
