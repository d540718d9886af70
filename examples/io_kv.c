/* A key-value server: io_kv [PORT]. It knows PING, SET, GET and DEL of Redis's protocol, so redis-cli can talk to it,
 * and so can people: "SET key value". Ctrl-C ends it. */
#include <aco/group.h>
#include <aco/io_buffer.h>
#include <aco/process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BUCKETS = 1024, LONGEST = 16384, MOST_WORDS = 8 };

typedef struct entry {
    struct entry *next;
    char *value;
    char key[];
} entry_t;

static entry_t *buckets[BUCKETS]; /* of this thread alone: no lock */

/* Where the entry of this key is, or would be. */
static entry_t **find(const char *key)
{
    unsigned hash = 5381;
    for (const char *c = key; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    entry_t **at = &buckets[hash % BUCKETS];
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static int set(const char *key, const char *value)
{
    entry_t **at = find(key);
    char *copy = strdup(value);
    if (copy && !*at && (*at = calloc(1, sizeof **at + strlen(key) + 1)) != NULL)
        strcpy((*at)->key, key);
    if (!copy || !*at)
        return free(copy), -1;
    free((*at)->value);
    (*at)->value = copy;
    return 0;
}

static int del(const char *key)
{
    entry_t **at = find(key), *entry = *at;
    if (!entry)
        return 0;
    *at = entry->next;
    free(entry->value);
    free(entry);
    return 1;
}

static int answer(aco_io_writer_t *out, char **words, int n)
{
    if (strcasecmp(words[0], "PING") == 0)
        return aco_io_writer_print(out, "+PONG\r\n");
    if (strcasecmp(words[0], "SET") == 0 && n == 3)
        return aco_io_writer_print(out, set(words[1], words[2]) == 0 ? "+OK\r\n" : "-ERR no memory\r\n");
    if (strcasecmp(words[0], "GET") == 0 && n == 2) {
        const entry_t *entry = *find(words[1]);
        return entry ? aco_io_writer_print(out, "$%zu\r\n%s\r\n", strlen(entry->value), entry->value)
                     : aco_io_writer_print(out, "$-1\r\n");
    }
    if (strcasecmp(words[0], "DEL") == 0 && n == 2)
        return aco_io_writer_print(out, ":%d\r\n", del(words[1]));
    return aco_io_writer_print(out, "-ERR unknown command or number of arguments\r\n");
}

/* Copies a word to *room, which moves on. 0, or -1: no room. */
static int keep(char **room, const char *end, const char *word, size_t n, char **kept)
{
    if ((size_t)(end - *room) <= n)
        return -1;
    *kept = memcpy(*room, word, n);
    (*kept)[n] = 0;
    *room += n + 1;
    return 0;
}

/* Reads a command: "*N", and N times "$LENGTH" and the word; or words on a line. The number of words; 0: the client is
 * gone; -1: it is not understood. */
static int read_command(aco_io_reader_t *in, char **words, char *room, const char *end)
{
    char *line;
    if (aco_io_reader_line(in, &line) < 0 || !line)
        return 0;
    if (*line != '*') {
        int n = 0;
        for (char *save, *word = strtok_r(line, " ", &save); word && n < MOST_WORDS; word = strtok_r(NULL, " ", &save))
            if (keep(&room, end, word, strlen(word), &words[n++]) != 0)
                return -1;
        return n ? n : -1;
    }
    long n = strtol(line + 1, NULL, 10);
    if (n < 1 || n > MOST_WORDS)
        return -1;
    for (long i = 0; i < n; i++) {
        if (aco_io_reader_line(in, &line) < 0 || !line)
            return 0;
        long length = *line == '$' ? strtol(line + 1, NULL, 10) : -1;
        const char *word;
        if (length < 0 || length > LONGEST - 2 || aco_io_reader_peek(in, (size_t)length + 2, &word) < length + 2 ||
            keep(&room, end, word, (size_t)length, &words[i]) != 0)
            return -1;
        aco_io_reader_consume(in, (size_t)length + 2);
    }
    return (int)n;
}

static void *serve_one(void *connection)
{
    int fd = (int)(intptr_t)connection, n = 0;
    char *words[MOST_WORDS], *room = malloc(LONGEST);
    aco_io_reader_t in;
    aco_io_writer_t out;
    aco_io_reader_open(&in, fd, NULL, LONGEST);
    aco_io_writer_open(&out, fd, NULL, LONGEST + 32);
    while (room && (n = read_command(&in, words, room, room + LONGEST)) > 0)
        if (answer(&out, words, n) != 0 || (in.begin == in.end && aco_io_writer_flush(&out) != 0))
            break;
    if (n < 0 && aco_io_writer_print(&out, "-ERR protocol\r\n") == 0)
        aco_io_writer_flush(&out);
    aco_io_reader_close(&in);
    aco_io_writer_close(&out);
    free(room);
    aco_io_close(fd);
    return NULL;
}

static void *serve(void *port)
{
    int fd, listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_interrupt_t ctrl_c;
    aco_group_t connections;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0 ||
        aco_interrupt_begin(&ctrl_c, (const int[]){SIGINT, SIGTERM}, 2) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    fprintf(stderr, "listening on %s\n", address);
    aco_group_begin(&connections, ACO_KEEP_GOING);
    while ((fd = aco_io_accept(listener)) >= 0)
        if (!aco_group_spawn(&connections, serve_one, (void *)(intptr_t)fd, NULL))
            aco_io_close(fd);
    aco_group_end(&connections);
    aco_interrupt_end(&ctrl_c);
    aco_io_close(listener);
    for (int i = 0; i < BUCKETS; i++)
        while (buckets[i])
            del(buckets[i]->key);
    fprintf(stderr, "ended\n");
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {.flags = ACO_DETACHED};
    return aco_spawn(serve, argc > 1 ? argv[1] : "6379", &detached) && aco_run() == 0 ? 0 : 1;
}
