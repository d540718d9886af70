/* Routes: which handler a request gets, and what stands around it. */
#include "http/request.h"
#include "http/route.h"
#include "http/server.h"
#include "http/text.h"

#include "aco/detail/http_observer.h"
#include "aco/detail/inspect.h"

#include <stdio.h>
#include <string.h>

static int check_table(const aco_http_route_t *routes, const char *call)
{
    for (const aco_http_route_t *route = routes; route && route->path; route++) {
        size_t params = 0;
        for (const char *at = route->path; *at; at++) {
            if (*at == '{' && (!strchr(at, '}') || strchr(at, '}') == at + 1))
                return aco__service_fail(EINVAL, call, "a route has a name without an end");
            params += *at == '{' || *at == '*';
        }
        if (params > HTTP_PARAMS || !route->handler)
            return aco__service_fail(EINVAL, call, "a route has no handler, or more than 8 names");
    }
    return 0;
}

int aco__http_check_routes(const aco_http_route_t *routes, const aco_http_group_t *groups, const char *call)
{
    __atomic_fetch_add(&aco__http_tables_begun, 1, __ATOMIC_RELEASE);
    if (check_table(routes, call) != 0)
        return -1;
    for (; groups && groups->routes; groups++)
        if (check_table(groups->routes, call) != 0)
            return -1;
    return 0;
}

static void add_param(aco__http_match_t *match, const char *name, size_t name_n, const char *value)
{
    ACO__ASSERT(match->param_count < HTTP_PARAMS);
    match->params[match->param_count].name = name;
    match->params[match->param_count].name_n = name_n;
    match->params[match->param_count++].value = value;
}

/* Whether a path fits a route's, and its parts that have names. 1, 0; -1 and errno. */
static int fits(aco__http_exchange_t *x, const char *pattern)
{
    aco__http_match_t *match = &x->match;
    const char *path = x->is.path;
    match->param_count = 0;
    for (;;) {
        size_t name_n, n;
        char *value;
        for (; *pattern != '{' && (*pattern != '*' || pattern[1]); pattern++, path++) {
            if (*pattern != *path)
                return 0;
            if (!*pattern)
                return 1;
        }
        if (*pattern == '*') {
            add_param(match, "*", 1, path);
            return 1;
        }
        name_n = strcspn(pattern, "}");
        n = strcspn(path, "/");
        value = n ? aco_http_request_allocate(&x->is, n + 1) : NULL;
        if (!value)
            return n ? -1 : 0;
        *aco__http_put(value, path, n) = 0;
        add_param(match, pattern + 1, name_n - 1, value);
        path += n;
        pattern += name_n + 1;
    }
}

static int takes_method(const char *wanted, const aco__http_exchange_t *x)
{
    return !wanted || strcmp(wanted, x->is.method) == 0 || (x->is_head && strcmp(wanted, "GET") == 0);
}

/* The first of these routes that fits. NULL: none does; or match->status tells of an error. */
static const aco_http_route_t *find(aco__http_exchange_t *x, const aco_http_route_t *route)
{
    aco__http_match_t *match = &x->match;
    for (; route && route->path; route++) {
        int fit = fits(x, route->path);
        if (fit < 0) {
            match->status = 500;
            return NULL;
        }
        if (!fit)
            continue;
        if (takes_method(route->method, x))
            return route;
        if (match->allow_count < sizeof match->allow / sizeof match->allow[0])
            match->allow[match->allow_count++] = route->method;
    }
    return NULL;
}

/* 0, or -1 and errno. */
static int add_allow(aco__http_exchange_t *x)
{
    const aco__http_match_t *match = &x->match;
    char text[128];
    size_t n = 0;
    for (size_t i = 0; i < match->allow_count; i++) {
        int has_head = strcmp(match->allow[i], "GET") == 0;
        int part =
            snprintf(text + n, sizeof text - n, "%s%s%s", i ? ", " : "", match->allow[i], has_head ? ", HEAD" : "");
        if (part < 0 || (size_t)part >= sizeof text - n)
            break;
        n += (size_t)part;
    }
    text[n] = 0;
    return aco_http_reply_header(&x->is, "Allow", text);
}

void aco__http_refuse(aco__http_exchange_t *x, int status, const char *location)
{
    if (status == 405 && add_allow(x) != 0)
        status = 500;
    (void)aco__http_answer(x, status, location);
}

ACO__SWITCHES static void call_route(aco__http_exchange_t *x)
{
    const aco_http_route_t *route = x->is.route;
    if (!x->match.in_handler)
        (void)aco_http_next(&x->is);
    else if (route)
        route->handler(&x->is, route->arg);
}

/* The same while somebody looks. */
ACO__SWITCHES static void call_route_seen(aco__http_exchange_t *x)
{
    const aco__http_tracer_t *tracer = __atomic_load_n(&aco__http_tracer, __ATOMIC_ACQUIRE);
    const char **work = x->work_known ? *x->work_known : NULL;
    if (!work && (work = aco__work_place()) != NULL && x->work_known)
        *x->work_known = work;
    x->is_seen = 1;
    __atomic_fetch_add(&aco__http_requests_begun, 1, __ATOMIC_RELAXED);
    if (work)
        __atomic_store_n(work, x->is.route ? x->is.route->path : NULL, __ATOMIC_RELAXED);
    if (tracer)
        x->span = tracer->request_begins(&x->is);
    call_route(x);
    if (work)
        __atomic_store_n(work, NULL, __ATOMIC_RELAXED);
}

static int somebody_looks(void)
{
    return __atomic_load_n(&aco__http_observer, __ATOMIC_RELAXED) != NULL ||
           __atomic_load_n(&aco__http_tracer, __ATOMIC_RELAXED) != NULL;
}

int aco__http_call_route(aco__http_exchange_t *x)
{
    const aco_http_server_options_t *options = &x->server->options;
    const aco_http_group_t *group = options->groups;
    aco__http_match_t *match = &x->match;
    const aco_http_route_t *route;
    match->status = 0;
    match->left[0] = options->middleware;
    match->left[1] = NULL;
    route = find(x, options->routes);
    for (; !route && !match->status && group && group->routes; group++) {
        route = find(x, group->routes);
        match->left[1] = route ? group->middleware : NULL;
    }
    x->is.route = route;
    if (!route) {
        match->status = match->status ? match->status : match->allow_count ? 405 : 404;
        match->param_count = 0; /* of one that has fitted half */
    }
    match->in_handler = !match->left[0] && !match->left[1];
    if (aco_unlikely(somebody_looks()))
        call_route_seen(x);
    else
        call_route(x);
    return match->in_handler ? match->status : 0;
}

int aco_http_next(aco_http_request_t *request)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco__http_match_t *match = &x->match;
    if (match->in_handler)
        return aco__service_fail(EINVAL, "aco_http_next", "the caller is no middleware");
    for (size_t i = 0; i < 2; i++) {
        const aco_http_middleware_t *next = match->left[i];
        if (next && next->run) {
            match->left[i]++;
            next->run(request, next->arg);
            match->left[i] = next; /* the caller may call again */
            return 0;
        }
    }
    match->in_handler = 1;
    if (request->route)
        request->route->handler(request, request->route->arg);
    else if (!x->reply.has_begun)
        aco__http_refuse(x, match->status, "an HTTP server");
    match->in_handler = 0;
    return 0;
}

const char *aco_http_request_param(aco_http_request_t *request, const char *name)
{
    const aco__http_match_t *match = &aco__http_exchange_of(request)->match;
    size_t n = strlen(name);
    for (size_t i = 0; i < match->param_count; i++)
        if (match->params[i].name_n == n && memcmp(match->params[i].name, name, n) == 0)
            return match->params[i].value;
    return NULL;
}
