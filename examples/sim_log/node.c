/* A node of the replicated log: one task, which takes one message after the other. */
#include "log.h"

#include "aco/io.h"
#include "aco/scheduler.h"

#include <errno.h>
#include <string.h>

enum { MAJORITY = NODES / 2 + 1, HEARTBEAT_MS = 100, PATIENCE_MS = 400 };

fault_t fault;

/* ---- Messages ---- */

static void send_to(node_t *node, const message_t *message, const struct sockaddr *to, socklen_t length)
{
    if (!(fault == SYNC_IS_LATE && message->kind == APPENDED))
        journal_sync(node); /* nothing is said that a crash could take back */
    if (!node->is_broken)
        (void)aco_io_sendto(node->socket, message, sizeof *message, 0, to, length); /* may get lost, as all others */
}

static message_t new_message(const node_t *node, int kind)
{
    message_t message;
    memset(&message, 0, sizeof message);
    message.kind = kind;
    message.from = node->number;
    message.term = node->term;
    return message;
}

static void tell(node_t *node, int other, const message_t *message)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (aco_io_address_of_text("udp", node->addresses[other], LOG_PORT, &address, &length) == 0)
        send_to(node, message, (struct sockaddr *)&address, length);
}

static void tell_all(node_t *node, const message_t *message)
{
    for (int i = 0; i < NODES; i++)
        if (i != node->number)
            tell(node, i, message);
}

/* ---- Terms and votes ---- */

static void be_patient(node_t *node)
{
    node->wakes_at = aco_now() + (PATIENCE_MS + random_below(PATIENCE_MS)) * ACO_MILLISECOND;
}

static void enter_term(node_t *node, int64_t term, int32_t vote)
{
    node->term = term;
    node->vote = vote;
    node->role = FOLLOWS;
    journal_note_term(node);
}

static void ask_for_votes(node_t *node)
{
    message_t message;
    enter_term(node, node->term + 1, node->number);
    node->role = IS_CANDIDATE;
    node->voters = 1 << node->number;
    be_patient(node);
    message = new_message(node, ASK_FOR_VOTE);
    message.index = node->last;
    message.index_term = node->entries[node->last].term;
    tell_all(node, &message);
}

static int is_as_new(const node_t *node, const message_t *asked)
{
    int64_t term = node->entries[node->last].term;
    return asked->index_term > term || (asked->index_term == term && asked->index >= node->last);
}

static void on_ask_for_vote(node_t *node, const message_t *asked)
{
    message_t vote = new_message(node, VOTE);
    vote.is_good = asked->term == node->term && (node->vote < 0 || node->vote == asked->from) &&
                   (fault == ANY_LOG_WINS || is_as_new(node, asked));
    if (vote.is_good && node->vote < 0) {
        node->vote = asked->from;
        journal_note_term(node);
        be_patient(node);
    }
    tell(node, asked->from, &vote);
}

static void on_vote(node_t *node, const message_t *vote)
{
    if (node->role != IS_CANDIDATE || !vote->is_good || (vote->term != node->term && fault != OLD_VOTE_COUNTS))
        return;
    node->voters |= 1 << vote->from; /* a message may come twice */
    if (__builtin_popcount((unsigned)node->voters) < MAJORITY)
        return;
    node->role = LEADS;
    observe_leader(node);
    for (int i = 0; i < NODES; i++) {
        node->next[i] = node->last + 1;
        node->matches[i] = 0;
    }
    node->wakes_at = aco_now(); /* all shall know */
}

/* ---- The state, and answers ---- */

static void answer(node_t *node, const struct session *session, int is_good)
{
    message_t message = new_message(node, ANSWER);
    message.is_good = is_good;
    message.index = session->index;
    message.entry.command = session->command;
    send_to(node, &message, (const struct sockaddr *)&session->address, session->length);
}

static void apply(node_t *node, int64_t index)
{
    const command_t *command = &node->entries[index].command;
    struct session *session = &node->sessions[command->client];
    int was_repeated = command->number <= session->command.number && fault != REPEAT_IS_DONE_AGAIN;
    if (!was_repeated) {
        if (command->is_write)
            node->value = command->value;
        session->command = *command;
        session->command.value = node->value;
        session->index = index;
    }
    observe_applied(node, index, command, was_repeated);
    if (node->role == LEADS && session->length > 0 && session->command.number == command->number)
        answer(node, session, 1);
}

static void commit(node_t *node, int64_t index)
{
    if (index > node->committed)
        node->committed = index;
    while (node->applied < node->committed)
        apply(node, ++node->applied);
}

/* ---- The log ---- */

static void send_entry(node_t *node, int other)
{
    message_t message = new_message(node, APPEND);
    message.index = node->next[other] - 1;
    message.index_term = node->entries[message.index].term;
    message.committed = node->committed;
    message.has_entry = node->next[other] <= node->last;
    if (message.has_entry)
        message.entry = node->entries[node->next[other]];
    tell(node, other, &message);
}

static void send_entries(node_t *node)
{
    node->wakes_at = aco_now() + HEARTBEAT_MS * ACO_MILLISECOND;
    for (int i = 0; i < NODES; i++)
        if (i != node->number)
            send_entry(node, i);
}

static void append(node_t *node, int64_t index, const entry_t *entry)
{
    if (index <= node->last && node->entries[index].term == entry->term && fault != LATE_APPEND_SHORTENS)
        return; /* it is there */
    node->entries[index] = *entry;
    node->last = index;
    journal_note_entry(node, index);
}

static void on_append(node_t *node, const message_t *message)
{
    message_t appended = new_message(node, APPENDED);
    int fits = message->index <= node->last &&
               (fault == END_IS_NOT_COMPARED || node->entries[message->index].term == message->index_term);
    if (message->term == node->term) {
        node->role = FOLLOWS;
        be_patient(node);
        appended.is_good = fits;
        appended.index = message->index - 1; /* if it does not fit, try one entry earlier */
    }
    if (appended.is_good) {
        if (message->has_entry)
            append(node, message->index + 1, &message->entry);
        appended.index = message->index + message->has_entry;
        commit(node, message->committed < appended.index ? message->committed : appended.index);
    }
    tell(node, message->from, &appended);
}

static int majority_has(const node_t *node, int64_t index)
{
    int n = 1;
    for (int i = 0; i < NODES; i++)
        n += i != node->number && node->matches[i] >= index;
    return n >= MAJORITY;
}

static void on_appended(node_t *node, const message_t *message)
{
    int other = message->from;
    int64_t index = node->last;
    if (node->role != LEADS || message->term != node->term)
        return;
    if (message->is_good) {
        node->matches[other] = message->index > node->matches[other] ? message->index : node->matches[other];
        node->next[other] = node->matches[other] + 1;
    } else if (message->index >= node->matches[other] && message->index + 1 < node->next[other]) {
        node->next[other] = message->index + 1;
    } else {
        return; /* it is late */
    }
    while (index > node->committed && !majority_has(node, index))
        index--;
    if (node->entries[index].term == node->term || fault == OLD_TERM_IS_COMMITTED)
        commit(node, index);
    if (node->next[other] <= node->last)
        send_entry(node, other);
}

/* ---- Clients ---- */

static void on_request(node_t *node, const message_t *message, const struct sockaddr_storage *from, socklen_t length)
{
    const command_t *command = &message->entry.command;
    struct session *session = &node->sessions[command->client], other;
    session->address = other.address = *from;
    session->length = other.length = length;
    other.command = *command;
    other.command.value = node->value;
    other.index = node->applied;
    if (node->role != LEADS || node->last == MOST_ENTRIES) {
        answer(node, &other, 0);
    } else if (fault == READ_IS_LOCAL && !command->is_write) {
        answer(node, &other, 1);
    } else {
        append(node, node->last + 1, &(entry_t){node->term, *command});
        observe_taken(node);
        send_entries(node);
    }
}

/* ---- The node ---- */

static void handle(node_t *node, const message_t *message, const struct sockaddr_storage *from, socklen_t length)
{
    if (message->kind != REQUEST && message->term > node->term) {
        enter_term(node, message->term, -1);
        be_patient(node);
    }
    switch (message->kind) {
    case ASK_FOR_VOTE:
        on_ask_for_vote(node, message);
        break;
    case VOTE:
        on_vote(node, message);
        break;
    case APPEND:
        on_append(node, message);
        break;
    case APPENDED:
        on_appended(node, message);
        break;
    case REQUEST:
        on_request(node, message, from, length);
        break;
    case ANSWER:
        break;
    }
}

static void take_message(node_t *node)
{
    message_t message;
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    ssize_t n;
    if (aco_now() >= node->wakes_at || aco_io_wait_readable_until(node->socket, node->wakes_at) != 0) {
        if (node->role == LEADS)
            send_entries(node);
        else
            ask_for_votes(node);
        return;
    }
    n = aco_io_recvfrom(node->socket, &message, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    if (n == (ssize_t)sizeof message)
        handle(node, &message, &from, length);
}

static void start(node_t *node)
{
    int number = node->number;
    const char *const *addresses = node->addresses;
    memset(node, 0, sizeof *node);
    node->number = number;
    node->addresses = addresses;
    node->vote = -1;
    journal_open(node);
    node->socket = aco_io_bind("udp", node->addresses[number], LOG_PORT, NULL);
    if (node->socket < 0)
        node->is_broken = 1;
    be_patient(node);
}

void *log_node(void *arg)
{
    node_t *node = arg;
    for (;;) {
        start(node);
        while (!node->is_broken)
            take_message(node);
        if (node->socket >= 0)
            aco_io_close(node->socket);
        journal_close(node);
        aco_sleep(ACO_SECOND / 10);
    }
    return NULL;
}
