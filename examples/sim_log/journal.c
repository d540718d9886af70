/* What a node of the log has on its disk: a file of records, of which the newest counts. */
#include "log.h"

#include "aco/file.h"
#include "aco/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

typedef struct record {
    uint32_t sum; /* of what follows. A crash may leave a part of a record */
    int32_t vote;
    int64_t term;
    int64_t index; /* 0: no entry, but term and vote */
    entry_t entry;
} record_t;

static uint32_t sum_of(const record_t *record)
{
    const unsigned char *p = (const unsigned char *)record + sizeof record->sum;
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < sizeof *record - sizeof record->sum; i++)
        sum = (sum ^ p[i]) * 16777619u;
    return sum;
}

static void write_record(node_t *node, record_t *record)
{
    size_t done = 0;
    record->sum = sum_of(record);
    while (!node->is_broken && done < sizeof *record) {
        ssize_t n = aco_file_write(node->journal, (char *)record + done, sizeof *record - done);
        if (n <= 0)
            node->is_broken = 1;
        else
            done += (size_t)n;
    }
    node->is_unsynced = 1;
}

void journal_note_term(node_t *node)
{
    record_t record;
    memset(&record, 0, sizeof record);
    record.term = node->term;
    record.vote = fault == VOTE_IS_FORGOTTEN ? -1 : node->vote;
    write_record(node, &record);
}

void journal_note_entry(node_t *node, int64_t index)
{
    record_t record;
    memset(&record, 0, sizeof record);
    record.index = index;
    record.entry = node->entries[index];
    write_record(node, &record);
}

void journal_sync(node_t *node)
{
    if (node->is_broken || !node->is_unsynced)
        return;
    while (aco_file_sync(node->journal) != 0)
        if (fault != FAILED_SYNC_IS_REPEATED) {
            node->is_broken = 1;
            return;
        }
    node->is_unsynced = 0;
}

/* 1; 0: the file ends here, perhaps in a part of a record; -1: it cannot be read. */
static int read_record(int fd, record_t *record)
{
    size_t done = 0;
    while (done < sizeof *record) {
        ssize_t n = aco_file_read(fd, (char *)record + done, sizeof *record - done);
        if (n <= 0)
            return (int)n;
        done += (size_t)n;
    }
    return record->sum == sum_of(record);
}

static int read_all(node_t *node)
{
    record_t record;
    int good, fd = aco_file_open("journal", O_RDONLY, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    while ((good = read_record(fd, &record)) == 1)
        if (record.index == 0) {
            node->term = record.term;
            node->vote = record.vote;
        } else {
            node->last = record.index;
            node->entries[record.index] = record.entry;
        }
    aco_io_close(fd);
    return good;
}

static int sync_names(void)
{
    int fd = aco_file_open("/", O_RDONLY, 0), done;
    if (fd < 0)
        return -1;
    done = aco_file_sync(fd);
    aco_io_close(fd);
    return done;
}

/* Why anew: what was read may not be durable, if an fsync() failed before; and there may be a part of a record. */
void journal_open(node_t *node)
{
    node->journal = -1;
    node->is_broken = read_all(node) != 0;
    if (!node->is_broken)
        node->journal = aco_file_open("journal.new", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    if (node->journal < 0) {
        node->is_broken = 1;
        return;
    }
    journal_note_term(node);
    for (int64_t i = 1; i <= node->last; i++)
        journal_note_entry(node, i);
    journal_sync(node);
    if (!node->is_broken && (aco_file_rename("journal.new", "journal") != 0 || sync_names() != 0))
        node->is_broken = 1;
}

void journal_close(node_t *node)
{
    if (node->journal >= 0)
        aco_io_close(node->journal);
}
