/* Hooks of look-ups: libc's own, on a thread of the pool. What is asked for is copied: a call whose scope has ended
 * leaves its job behind. */
#include "libc/hooked.h"
#include "libc/libc.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <arpa/inet.h>
#include <sys/socket.h>

const char aco__hooks_of_names = 1;

typedef struct look_up_job {
    struct addrinfo hints, *found;
    const char *host, *port; /* in `text`, or NULL */
    int has_hints, result, error;
    size_t sz;
    char text[];
} look_up_job_t;

static void *look_up_name(void *arg)
{
    look_up_job_t *job = arg;
    job->result = aco__libc()->getaddrinfo(job->host, job->port, job->has_hints ? &job->hints : NULL, &job->found);
    job->error = errno;
    return job;
}

static void free_look_up(void *arg, void *result)
{
    look_up_job_t *job = arg;
    if (result && job->result == 0)
        freeaddrinfo(job->found);
    aco__service_free(job, job->sz);
}

static const char *copy_text(char **room, const char *text)
{
    char *copy = *room;
    size_t n = text ? strlen(text) + 1 : 0;
    if (!text)
        return NULL;
    memcpy(copy, text, n);
    *room += n;
    return copy;
}

static look_up_job_t *look_up_new(const char *host, const char *port, const struct addrinfo *hints)
{
    size_t sz = sizeof(look_up_job_t) + (host ? strlen(host) + 1 : 0) + (port ? strlen(port) + 1 : 0);
    look_up_job_t *job = aco__service_new(&sz, "libc's getaddrinfo()");
    char *room;
    if (!job)
        return NULL;
    room = job->text;
    job->sz = sz;
    job->has_hints = hints != NULL;
    if (hints) {
        job->hints.ai_flags = hints->ai_flags;
        job->hints.ai_family = hints->ai_family;
        job->hints.ai_socktype = hints->ai_socktype;
        job->hints.ai_protocol = hints->ai_protocol;
    }
    job->host = copy_text(&room, host);
    job->port = copy_text(&room, port);
    return job;
}

/* Whether the answer needs neither the network nor a file. */
static int is_numeric(const char *host, const char *port)
{
    unsigned char address[sizeof(struct in6_addr)];
    return (!host || inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1) &&
           (!port || !port[strspn(port, "0123456789")]);
}

ACO__HOOK(int, getaddrinfo,
          (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found))
{
    look_up_job_t *job;
    int error = errno, result;
    if (!aco__hooked() || is_numeric(host, port))
        return aco__libc()->getaddrinfo(host, port, hints, found);
    job = look_up_new(host, port, hints);
    if (!job)
        return EAI_MEMORY;
    switch (aco__hook_offload(ACO__LOOK_UP, look_up_name, job, NULL, free_look_up, "libc's getaddrinfo()")) {
    case HOOK_BLOCKS:
        return aco__libc()->getaddrinfo(host, port, hints, found);
    case HOOK_GIVES_UP:
        return EAI_SYSTEM;
    default:
        break;
    }
    result = job->result;
    if (result == 0)
        *found = job->found;
    errno = result == EAI_SYSTEM ? job->error : error;
    aco__service_free(job, job->sz);
    return result;
}

typedef struct name_job {
    struct sockaddr_storage address;
    socklen_t length, host_room, port_room;
    int flags, result, error;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    size_t sz;
} name_job_t;

static void *find_name(void *arg)
{
    name_job_t *job = arg;
    job->result = aco__libc()->getnameinfo((const struct sockaddr *)&job->address, job->length, job->host,
                                           job->host_room, job->port, job->port_room, job->flags);
    job->error = errno;
    return job;
}

static void free_name_job(void *arg, void *result)
{
    (void)result;
    aco__service_free(arg, ((name_job_t *)arg)->sz);
}

static name_job_t *name_job_new(const struct sockaddr *address, socklen_t length, socklen_t host_room,
                                socklen_t port_room, int flags)
{
    size_t sz = sizeof(name_job_t);
    name_job_t *job = aco__service_allocate(&sz, "libc's getnameinfo()");
    if (!job)
        return NULL;
    memcpy(&job->address, address, length);
    job->length = length;
    job->host_room = host_room < sizeof job->host ? host_room : (socklen_t)sizeof job->host;
    job->port_room = port_room < sizeof job->port ? port_room : (socklen_t)sizeof job->port;
    job->flags = flags;
    job->sz = sz;
    return job;
}

/* Whether the call needs a look-up. */
static int asks_for_name(socklen_t length, const char *host, const char *port, int flags)
{
    return ((host && !(flags & NI_NUMERICHOST)) || (port && !(flags & NI_NUMERICSERV))) &&
           length <= sizeof(struct sockaddr_storage);
}

ACO__HOOK(int, getnameinfo,
          (const struct sockaddr *address, socklen_t length, char *host, socklen_t host_room, char *port,
           socklen_t port_room, int flags))
{
    name_job_t *job;
    int error = errno, result;
    if (!aco__hooked() || !asks_for_name(length, host, port, flags))
        return aco__libc()->getnameinfo(address, length, host, host_room, port, port_room, flags);
    job = name_job_new(address, length, host ? host_room : 0, port ? port_room : 0, flags);
    if (!job)
        return EAI_MEMORY;
    switch (aco__hook_offload(ACO__LOOK_UP, find_name, job, NULL, free_name_job, "libc's getnameinfo()")) {
    case HOOK_BLOCKS:
        return aco__libc()->getnameinfo(address, length, host, host_room, port, port_room, flags);
    case HOOK_GIVES_UP:
        return EAI_SYSTEM;
    default:
        break;
    }
    result = job->result;
    if (result == 0 && host && job->host_room)
        memcpy(host, job->host, strlen(job->host) + 1);
    if (result == 0 && port && job->port_room)
        memcpy(port, job->port, strlen(job->port) + 1);
    errno = result == EAI_SYSTEM ? job->error : error;
    aco__service_free(job, job->sz);
    return result;
}
