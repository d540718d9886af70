/* hiredis by its asynchronous calls, without hooks: io_redis PORT. A task for each direction waits for the connection
 * and calls hiredis, which calls back.
 *
 *   cc io_redis.c $(pkg-config --cflags --libs acorn_io hiredis) */
#include <aco/io.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

/* A direction of a connection: its task waits for events while hiredis wants them, else it parks. */
typedef struct side {
    redisAsyncContext *redis; /* NULL: the connection is over */
    aco_t *task;
    int fd, is_writer, is_wanted, is_waiting;
} side_t;
typedef struct adapter {
    side_t reader, writer;
} adapter_t;

static void *serve_side(void *arg)
{
    side_t *side = arg;
    while (side->redis) {
        int failed;
        if (!side->is_wanted) {
            aco_park("hiredis");
            continue;
        }
        failed = side->is_writer ? aco_io_wait_writable(side->fd) : aco_io_wait_readable(side->fd);
        if (side->redis && side->is_wanted && !failed)
            (side->is_writer ? redisAsyncHandleWrite : redisAsyncHandleRead)(side->redis);
    }
    return NULL;
}

static void want(side_t *side, int is_wanted)
{
    side->is_wanted = is_wanted;
    if (is_wanted)
        aco_unpark(side->task);
}

static void add_read(void *adapter)
{
    want(&((adapter_t *)adapter)->reader, 1);
}

static void delete_read(void *adapter)
{
    want(&((adapter_t *)adapter)->reader, 0);
}

static void add_write(void *adapter)
{
    want(&((adapter_t *)adapter)->writer, 1);
}

static void delete_write(void *adapter)
{
    want(&((adapter_t *)adapter)->writer, 0);
}

/* The connection is over; hiredis closes its descriptor next. */
static void clean_up(void *arg)
{
    adapter_t *adapter = arg;
    side_t *sides[] = {&adapter->reader, &adapter->writer};
    aco_io_release(adapter->reader.fd); /* wakes who waits for it */
    for (int i = 0; i < 2; i++) {
        sides[i]->redis = NULL;
        aco_unpark(sides[i]->task);
    }
}

static void attach(redisAsyncContext *redis, adapter_t *adapter)
{
    side_t *sides[] = {&adapter->reader, &adapter->writer};
    for (int i = 0; i < 2; i++) {
        *sides[i] = (side_t){redis, NULL, redis->c.fd, i == 1, 0, 0};
        sides[i]->task = aco_spawn(serve_side, sides[i], NULL);
    }
    redis->ev.data = adapter;
    redis->ev.addRead = add_read;
    redis->ev.delRead = delete_read;
    redis->ev.addWrite = add_write;
    redis->ev.delWrite = delete_write;
    redis->ev.cleanup = clean_up;
}

/* ---- The program ---- */

static void on_answer(redisAsyncContext *redis, void *answer, void *unused)
{
    const redisReply *reply = answer;
    (void)unused;
    printf("answer: %s\n", reply && reply->str ? reply->str : redis->errstr);
    redisAsyncDisconnect(redis);
}

static void *client(void *port)
{
    static adapter_t adapter;
    redisAsyncContext *redis = redisAsyncConnect("127.0.0.1", atoi(port));
    if (!redis || redis->err)
        return NULL;
    attach(redis, &adapter);
    redisAsyncCommand(redis, NULL, NULL, "SET greeting hello");
    redisAsyncCommand(redis, on_answer, NULL, "GET greeting");
    aco_join(adapter.reader.task, NULL);
    aco_join(adapter.writer.task, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    return argc > 1 && aco_spawn(client, argv[1], NULL) && aco_run() == 0 ? 0 : 1;
}
