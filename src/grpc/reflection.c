/* The reflection service, as v1 and v1alpha, which have the same messages: which services there are, and the files that
 * describe them. */
#include "grpc/grpc_server.h"

#include <string.h>

typedef struct aco__grpc_file {
    struct aco__grpc_file *next;
    const char *descriptor, *name, *package;
    size_t n, name_n, package_n;
    size_t sz;
    int is_sent; /* in the reply that is made */
} aco__grpc_file_t;

typedef struct aco__grpc_reflection {
    aco__grpc_file_t *first;
    size_t sz;
} aco__grpc_reflection_t;

/* Fields of FileDescriptorProto and what is in it. */
enum { FILE_NAME = 1, FILE_PACKAGE, FILE_DEPENDENCY, FILE_MESSAGE, FILE_ENUM, FILE_SERVICE, FILE_EXTENSION };
enum { MESSAGE_FIELD = 2, MESSAGE_NESTED = 3, MESSAGE_ENUM = 4, MESSAGE_EXTENSION = 6 };
/* Of ServerReflectionRequest and ServerReflectionResponse. */
enum { ASKS_FILE = 3, ASKS_SYMBOL, ASKS_EXTENSION, ASKS_NUMBERS, ASKS_SERVICES };
enum { TELLS_REQUEST = 2, TELLS_FILES = 4, TELLS_SERVICES = 6, TELLS_ERROR = 7 };

static aco__grpc_file_t *find_file(const aco__grpc_reflection_t *reflection, const char *name, size_t n)
{
    aco__grpc_file_t *file = reflection->first;
    while (file && (file->name_n != n || memcmp(file->name, name, n) != 0))
        file = file->next;
    return file;
}

/* ---- Symbols ---- */

/* What is left of the symbol behind `name` and a dot, or the end. NULL: it begins otherwise. */
static const char *behind(const char *symbol, const char *end, const char *name, size_t n)
{
    if ((size_t)(end - symbol) < n || memcmp(symbol, name, n) != 0)
        return NULL;
    symbol += n;
    return symbol == end ? symbol : *symbol == '.' ? symbol + 1 : NULL;
}

/* The name that a descriptor begins with. */
static void name_of(const char *p, size_t n, const char **name, size_t *name_n)
{
    const char *at = p, *value;
    size_t length;
    unsigned field;
    *name = "";
    *name_n = 0;
    while (aco__grpc_next_field(&at, p + n, &field, &value, &length) > 0)
        if (field == 1 && value) {
            *name = value;
            *name_n = length;
            return;
        }
}

/* Whether a descriptor of this kind (a field of the file) defines the rest of a symbol. Nesting is that of the symbol:
 * it is bounded by it. */
static int defines(unsigned kind, const char *p, size_t n, const char *symbol, const char *end)
{
    const char *name, *at = p, *value;
    size_t name_n, length;
    unsigned field;
    name_of(p, n, &name, &name_n);
    if (!name_n || !(symbol = behind(symbol, end, name, name_n)))
        return 0;
    if (symbol == end)
        return 1;
    while (aco__grpc_next_field(&at, p + n, &field, &value, &length) > 0) {
        const unsigned inner = kind != FILE_MESSAGE      ? FILE_EXTENSION
                               : field == MESSAGE_NESTED ? FILE_MESSAGE
                                                         : FILE_ENUM;
        const int may = kind == FILE_MESSAGE ? field >= MESSAGE_FIELD && field <= MESSAGE_EXTENSION && field != 5
                                             : field == 2; /* methods, values */
        if (may && value && defines(inner, value, length, symbol, end))
            return 1;
    }
    return 0;
}

static int file_defines(const aco__grpc_file_t *file, const char *symbol, const char *end)
{
    const char *at = file->descriptor, *value;
    size_t n;
    unsigned field;
    if (file->package_n && (!(symbol = behind(symbol, end, file->package, file->package_n)) || symbol == end))
        return 0;
    while (aco__grpc_next_field(&at, file->descriptor + file->n, &field, &value, &n) > 0)
        if (field >= FILE_MESSAGE && field <= FILE_EXTENSION && value && defines(field, value, n, symbol, end))
            return 1;
    return 0;
}

/* ---- Replies ---- */

/* The file, and all that it imports and the server knows. */
static void put_file(aco__grpc_reflection_t *reflection, aco__grpc_file_t *file, aco__grpc_bytes_t *files)
{
    aco__grpc_file_t *other;
    const char *at = file->descriptor, *value;
    size_t n;
    unsigned field;
    if (file->is_sent)
        return;
    file->is_sent = 1;
    aco__grpc_put_bytes(files, 1, file->descriptor, file->n);
    while (aco__grpc_next_field(&at, file->descriptor + file->n, &field, &value, &n) > 0)
        if (field == FILE_DEPENDENCY && value && (other = find_file(reflection, value, n)) != NULL)
            put_file(reflection, other, files);
}

static void put_services(const aco__grpc_reflection_t *reflection, aco__grpc_bytes_t *list)
{
    for (const aco__grpc_file_t *file = reflection->first; file; file = file->next) {
        const char *at = file->descriptor, *value, *name;
        size_t n, name_n;
        unsigned field;
        while (aco__grpc_next_field(&at, file->descriptor + file->n, &field, &value, &n) > 0) {
            aco__grpc_bytes_t full = {0}, service = {0};
            char *room;
            if (field != FILE_SERVICE || !value)
                continue;
            name_of(value, n, &name, &name_n);
            room = aco__grpc_room(&full, file->package_n + 1 + name_n);
            if (room) {
                const size_t dot = file->package_n ? 1 : 0;
                memcpy(room, file->package, file->package_n);
                memcpy(room + file->package_n, ".", dot);
                memcpy(room + file->package_n + dot, name, name_n);
                aco__grpc_put_bytes(&service, 1, room, file->package_n + dot + name_n);
                aco__grpc_put_bytes(list, 1, service.p, service.n);
            }
            list->has_failed |= full.has_failed | service.has_failed;
            aco__grpc_free(&full);
            aco__grpc_free(&service);
        }
    }
}

static void put_error(aco__grpc_bytes_t *reply, int status, const char *message)
{
    aco__grpc_bytes_t error = {0};
    aco__grpc_put_number(&error, 1, (uint64_t)status);
    aco__grpc_put_bytes(&error, 2, message, strlen(message));
    aco__grpc_put_bytes(reply, TELLS_ERROR, error.p, error.n);
    reply->has_failed |= error.has_failed;
    aco__grpc_free(&error);
}

static void put_answer(aco__grpc_reflection_t *reflection, aco__grpc_bytes_t *reply, unsigned asks, const char *p,
                       size_t n)
{
    aco__grpc_bytes_t answer = {0};
    aco__grpc_file_t *file = NULL;
    if (asks == ASKS_FILE)
        file = find_file(reflection, p, n);
    else if (asks == ASKS_SYMBOL)
        for (file = reflection->first; file && !file_defines(file, p, p + n);)
            file = file->next;
    if (asks == ASKS_SERVICES) {
        put_services(reflection, &answer);
        aco__grpc_put_bytes(reply, TELLS_SERVICES, answer.p, answer.n);
    } else if (file) {
        for (aco__grpc_file_t *each = reflection->first; each; each = each->next)
            each->is_sent = 0;
        put_file(reflection, file, &answer);
        aco__grpc_put_bytes(reply, TELLS_FILES, answer.p, answer.n);
    } else {
        put_error(reply, asks ? ACO_GRPC_NOT_FOUND : ACO_GRPC_INVALID_ARGUMENT, asks ? "not found" : "nothing asked");
    }
    reply->has_failed |= answer.has_failed;
    aco__grpc_free(&answer);
}

/* Answers one request of the stream. 0, or -1 and errno. */
ACO__SWITCHES
static int answer_one(aco_grpc_call_t *call, aco__grpc_reflection_t *reflection, const char *request, size_t request_n)
{
    aco__grpc_bytes_t reply = {0};
    const char *at = request, *value, *p = "";
    size_t length, n = 0;
    unsigned field, asks = 0;
    int more, result;
    while ((more = aco__grpc_next_field(&at, request + request_n, &field, &value, &length)) > 0)
        if (field >= ASKS_FILE && field <= ASKS_SERVICES && value) {
            asks = field;
            p = value;
            n = length;
        }
    if (more < 0) {
        errno = EINVAL;
        return -1;
    }
    aco__grpc_put_bytes(&reply, TELLS_REQUEST, request, request_n);
    put_answer(reflection, &reply, asks, p, n);
    errno = ENOMEM;
    result = reply.has_failed ? -1 : aco_grpc_write_at(call, reply.p, reply.n, ACO_PLACE);
    aco__grpc_free(&reply);
    return result;
}

ACO__SWITCHES static int reflect(aco_grpc_call_t *call, void *reflection)
{
    const void *request;
    size_t n;
    int more;
    while ((more = aco_grpc_read_at(call, &request, &n, ACO_PLACE)) > 0)
        if (answer_one(call, reflection, request, n) != 0)
            return ACO_GRPC_FROM_ERRNO;
    return more == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

/* ---- Files ---- */

static void free_reflection(aco__grpc_reflection_t *reflection)
{
    while (reflection->first) {
        aco__grpc_file_t *file = reflection->first;
        reflection->first = file->next;
        aco__service_free(file, file->sz);
    }
    aco__service_free(reflection, reflection->sz);
}

static int begin_reflection(aco_grpc_server_t *server)
{
    size_t sz = sizeof(aco__grpc_reflection_t);
    aco__grpc_reflection_t *reflection = server->reflection;
    if (reflection)
        return 0;
    reflection = aco__service_new(&sz, "aco_grpc_server_add_file");
    if (!reflection)
        return -1;
    reflection->sz = sz;
    server->reflection = reflection;
    server->free_reflection = free_reflection;
    if (aco_grpc_server_add(server, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", reflect, reflection))
        return -1;
    return aco_grpc_server_add(server, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", reflect,
                               reflection);
}

/* Stores what the file is called. 0; -1: it is no descriptor of a file. */
static int understand(aco__grpc_file_t *file)
{
    const char *at = file->descriptor, *value;
    size_t n;
    unsigned field;
    int more;
    file->name = file->package = "";
    while ((more = aco__grpc_next_field(&at, file->descriptor + file->n, &field, &value, &n)) > 0) {
        if (field == FILE_NAME && value) {
            file->name = value;
            file->name_n = n;
        } else if (field == FILE_PACKAGE && value) {
            file->package = value;
            file->package_n = n;
        }
    }
    return more == 0 && file->name_n ? 0 : -1;
}

int aco_grpc_server_add_file(aco_grpc_server_t *server, const void *descriptor, size_t n)
{
    static const char caller[] = "aco_grpc_server_add_file";
    aco__grpc_file_t *file, known = {0};
    size_t sz = sizeof *file;
    known.descriptor = descriptor;
    known.n = n;
    if (understand(&known) != 0)
        return aco__service_fail(EINVAL, caller, "it is no FileDescriptorProto");
    if (begin_reflection(server) != 0)
        return -1;
    if (find_file(server->reflection, known.name, known.name_n))
        return 0;
    file = aco__service_allocate(&sz, caller);
    if (!file)
        return -1;
    *file = known;
    file->sz = sz;
    file->next = server->reflection->first;
    server->reflection->first = file;
    return 0;
}
