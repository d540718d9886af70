/* Promises: a link of the simulated network loses, repeats, reorders and resets as it is told to, at its bandwidth. */
#include "check.h"
#include "sim_ends.h"

#include "aco/io.h"
#include "aco/sim.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RUNS = 200, BYTES = 20000, SMALL = 3000, DATAGRAMS = 100 };
static const aco_sim_range_t exact = {ACO_MILLISECOND, ACO_MILLISECOND};

static void set_link(aco_sim_t *sim, aco_sim_link_t link)
{
    CHECK(aco_sim_link(sim, "*", "*", &link) == 0);
}

/* ---- Streams ---- */

static char byte_at(int i)
{
    return (char)(i * 7 + i / 256);
}

static void *send_all(void *arg)
{
    char buffer[BYTES];
    for (int i = 0; i < BYTES; i++)
        buffer[i] = byte_at(i);
    CHECK_EQ(aco_io_write_all((int)(intptr_t)arg, buffer, BYTES), BYTES);
    CHECK(aco_io_shutdown((int)(intptr_t)arg, SHUT_WR) == 0);
    return NULL;
}

static void receive_all(int fd)
{
    char buffer[1000];
    int n = 0, wrong = 0;
    ssize_t got;
    while ((got = aco_io_read(fd, buffer, sizeof buffer)) > 0)
        for (int i = 0; i < got; i++, n++)
            wrong += buffer[i] != byte_at(n);
    CHECK(got == 0 && n == BYTES && !wrong);
}

/* Both ways at once. */
static void stream_whole(aco_sim_t *sim, void *arg)
{
    ends_t ends;
    aco_t *senders[2];
    int64_t began;
    set_link(sim, *(aco_sim_link_t *)arg);
    ends = connect_ends();
    began = aco_now();
    senders[0] = aco_spawn(send_all, (void *)(intptr_t)ends.client, NULL);
    senders[1] = aco_spawn(send_all, (void *)(intptr_t)ends.server, NULL);
    receive_all(ends.server);
    receive_all(ends.client);
    CHECK(aco_join(senders[0], NULL) == 0 && aco_join(senders[1], NULL) == 0);
    CHECK(aco_now() > began);
    close_ends(&ends);
}

/* Requests are repeated for 127 seconds. */
static void dial_nobody(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL);
    int64_t began = aco_now();
    (void)arg;
    set_link(sim, (aco_sim_link_t){.loss = 1});
    CHECK(aco_io_dial("tcp", "127.0.0.1", "80", NULL) == -1 && errno == ETIMEDOUT);
    CHECK_EQ(aco_now() - began, 127 * ACO_SECOND);
    CHECK(aco_io_close(listener) == 0);
}

/* Ten timeouts from 202 milliseconds, twice as long each, and six of two minutes. */
static void lose_a_connection(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    int64_t began;
    char byte;
    (void)arg;
    set_link(sim, (aco_sim_link_t){.latency = exact, .loss = 1});
    CHECK_EQ(aco_io_write(ends.client, "lost", 4), 4);
    began = aco_now();
    CHECK(aco_io_read(ends.client, &byte, 1) == -1 && errno == ETIMEDOUT);
    CHECK_EQ(aco_now() - began, 202 * ACO_MILLISECOND * 1023 + 720 * ACO_SECOND);
    CHECK(aco_io_write(ends.client, "", 1) == -1 && errno == EPIPE);
    set_link(sim, (aco_sim_link_t){.latency = exact});
    CHECK_EQ(aco_io_write(ends.server, "late", 4), 4); /* it knows nothing yet */
    CHECK(aco_io_read(ends.server, &byte, 1) == -1 && errno == ECONNRESET);
    close_ends(&ends);
}

/* What was sent in vain for a minute arrives when the link is as it was. */
static void recover(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    char text[5] = {0};
    (void)arg;
    set_link(sim, (aco_sim_link_t){.loss = 1});
    CHECK_EQ(aco_io_write(ends.client, "one", 3), 3);
    CHECK_EQ(aco_io_write(ends.client, "t", 1), 1);
    CHECK(aco_io_shutdown(ends.client, SHUT_WR) == 0);
    CHECK(aco_sleep(60 * ACO_SECOND) == 0);
    CHECK(aco_io_recv(ends.server, text, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    set_link(sim, (aco_sim_link_t){.loss = 0});
    CHECK_EQ(aco_io_read_exactly(ends.server, text, 5), 4);
    CHECK(memcmp(text, "onet", 4) == 0);
    close_ends(&ends);
}

/* Nobody repeats a reset: the other end learns of it when it sends. */
static void lose_a_reset(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    char byte;
    (void)arg;
    CHECK_EQ(aco_io_write(ends.client, "", 1), 1);
    CHECK(aco_io_wait_readable(ends.server) == 0);
    set_link(sim, (aco_sim_link_t){.loss = 1});
    CHECK(aco_io_close(ends.server) == 0);
    ends.server = -1;
    set_link(sim, (aco_sim_link_t){.loss = 0});
    CHECK(aco_sleep(60 * ACO_SECOND) == 0);
    CHECK(aco_io_recv(ends.client, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK_EQ(aco_io_write(ends.client, "", 1), 1);
    CHECK(aco_io_read(ends.client, &byte, 1) == -1 && errno == ECONNRESET);
    close_ends(&ends);
}

static void reset_in_the_middle(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    char byte;
    (void)arg;
    set_link(sim, (aco_sim_link_t){.resets = 1});
    CHECK_EQ(aco_io_write(ends.client, "", 1), 1);
    CHECK(aco_io_read(ends.server, &byte, 1) == -1 && errno == ECONNRESET);
    CHECK(aco_io_read(ends.client, &byte, 1) == -1 && errno == ECONNRESET);
    close_ends(&ends);
}

/* ---- Bandwidth ---- */

static void fill_a_stream(aco_sim_t *sim, void *arg)
{
    static char bytes[SMALL];
    ends_t ends = connect_ends();
    int64_t began;
    (void)arg;
    set_link(sim, (aco_sim_link_t){.latency = exact, .bandwidth = 1000000, .queue = 1000});
    began = aco_now();
    CHECK_EQ(aco_io_write_all(ends.client, bytes, SMALL), SMALL);
    CHECK_EQ(aco_io_read_exactly(ends.server, bytes, SMALL), SMALL);
    CHECK_EQ(aco_now() - began, SMALL * ACO_MICROSECOND + ACO_MILLISECOND);
    close_ends(&ends);
}

/* ---- Datagrams ---- */

typedef struct pair {
    int a, b;
} pair_t;

static pair_t bind_pair(aco_sim_t *sim, aco_sim_link_t link)
{
    pair_t pair = {aco_io_bind("udp", "127.0.0.1", "53", NULL), aco_io_dial("udp", "127.0.0.1", "53", NULL)};
    CHECK(pair.a >= 0 && pair.b >= 0);
    set_link(sim, link);
    return pair;
}

static void close_pair(pair_t pair)
{
    CHECK(aco_io_close(pair.a) == 0 && aco_io_close(pair.b) == 0);
}

/* Sends numbers, and counts those that have arrived in the end; *late: how many came behind a higher one. */
static int count_arrivals(pair_t pair, int *late)
{
    unsigned char number, highest = 0;
    int n = 0;
    *late = 0;
    for (number = 1; number <= DATAGRAMS; number++)
        CHECK_EQ(aco_io_send(pair.b, &number, 1, 0), 1);
    CHECK(aco_sleep(60 * ACO_SECOND) == 0);
    for (; aco_io_recv(pair.a, &number, 1, MSG_DONTWAIT) == 1; n++) {
        *late += number < highest;
        highest = number > highest ? number : highest;
    }
    CHECK_EQ(errno, EAGAIN);
    return n;
}

static void send_datagrams(aco_sim_t *sim, void *arg)
{
    const aco_sim_link_t *link = arg;
    pair_t pair = bind_pair(sim, *link);
    int late, n = count_arrivals(pair, &late);
    if (link->duplicates == 1)
        CHECK_EQ(n, 2 * DATAGRAMS);
    else if (link->loss == 0.5)
        CHECK(n > DATAGRAMS / 5 && n < DATAGRAMS * 4 / 5);
    else
        CHECK_EQ(n, link->loss == 1 ? 0 : DATAGRAMS);
    CHECK(link->reordering ? late > 0 : !late);
    close_pair(pair);
}

/* Three fit; one more each millisecond. */
static void fill_a_queue(aco_sim_t *sim, void *arg)
{
    static char bytes[1000];
    pair_t pair = bind_pair(sim, (aco_sim_link_t){.latency = exact, .bandwidth = 1000000, .queue = 3000});
    int64_t began = aco_now();
    (void)arg;
    for (int i = 0; i < 5; i++)
        CHECK_EQ(aco_io_send(pair.b, bytes, sizeof bytes, 0), sizeof bytes);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(aco_io_recv(pair.a, bytes, sizeof bytes, 0), sizeof bytes);
        CHECK_EQ(aco_now() - began, (i + 1) * ACO_MILLISECOND);
    }
    CHECK(aco_sleep(ACO_SECOND) == 0);
    CHECK(aco_io_recv(pair.a, bytes, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close_pair(pair);
}

/* ---- Mistakes ---- */

static void mistake_links(aco_sim_t *sim, void *arg)
{
    static const aco_sim_link_t wrong[] = {
        {.loss = -0.1},           {.loss = 1.1},     {.resets = 2}, {.duplicates = -1},
        {.reordering = 1.5},      {.bandwidth = -1}, {.queue = -1}, {.queue = (int64_t)1 << 31},
        {.bandwidth = INT64_MAX},
    };
    double nothing = 0;
    (void)arg;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        FAILS_WITH(aco_sim_link(sim, "*", "*", &wrong[i]), EINVAL);
    FAILS_WITH(aco_sim_link(sim, "*", "*", &(aco_sim_link_t){.loss = nothing / nothing}), EINVAL);
}

int main(void)
{
    aco_sim_link_t lossy = {.loss = 0.1}, narrow = {.bandwidth = 100000, .queue = 2000}, worse = {.loss = 0.2};
    aco_sim_link_t none = {.latency = exact, .loss = 1}, half = {.latency = exact, .loss = 0.5};
    aco_sim_link_t twice = {.latency = exact, .duplicates = 1}, mixed = {.latency = exact, .reordering = 0.5};
    aco_sim_link_t plain = {.latency = exact};
    sim_alarm(60);
    lossy.bandwidth = 1000000;
    passes(stream_whole, &lossy, RUNS);
    passes(stream_whole, &narrow, RUNS / 10);
    passes(stream_whole, &worse, RUNS / 10);
    passes(dial_nobody, NULL, RUNS / 10);
    passes(lose_a_connection, NULL, RUNS / 10);
    passes(recover, NULL, RUNS / 10);
    passes(lose_a_reset, NULL, RUNS / 10);
    passes(reset_in_the_middle, NULL, RUNS / 10);
    passes(fill_a_stream, NULL, RUNS);
    passes(send_datagrams, &plain, RUNS / 10);
    passes(send_datagrams, &none, RUNS / 10);
    passes(send_datagrams, &half, RUNS / 10);
    passes(send_datagrams, &twice, RUNS / 10);
    passes(send_datagrams, &mixed, RUNS / 10);
    passes(fill_a_queue, NULL, RUNS / 10);
    passes(mistake_links, NULL, 1);
    return check_result("sim_link");
}
