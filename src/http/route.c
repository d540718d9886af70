/* Routes: which handler a request gets. */
#include "http/request.h"
#include "http/route.h"
#include "http/server.h"
#include "http/text.h"

#include <stdio.h>
#include <string.h>

int aco__http_check_routes(const aco_http_route_t *routes, const char *call)
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
    while (*pattern) {
        size_t name_n = *pattern == '{' ? strcspn(pattern, "}") : 0, n;
        char *value;
        if (*pattern == '*' && !pattern[1]) {
            add_param(match, "*", 1, path);
            return 1;
        }
        if (!name_n) {
            if (*pattern++ != *path++)
                return 0;
            continue;
        }
        n = strcspn(path, "/");
        value = n ? aco_http_request_allocate(&x->is, n + 1) : NULL;
        if (!value)
            return n ? -1 : 0;
        *aco__http_put(value, path, n) = 0;
        add_param(match, pattern + 1, name_n - 1, value);
        path += n;
        pattern += name_n + 1;
    }
    return !*path;
}

static int takes_method(const char *wanted, const aco__http_exchange_t *x)
{
    return !wanted || strcmp(wanted, x->is.method) == 0 || (x->is_head && strcmp(wanted, "GET") == 0);
}

int aco__http_call_route(aco__http_exchange_t *x)
{
    const aco_http_route_t *route = x->server->options.routes;
    aco__http_match_t *match = &x->match;
    for (; route && route->path; route++) {
        int fit = fits(x, route->path);
        if (fit < 0)
            return 500;
        if (!fit)
            continue;
        if (takes_method(route->method, x)) {
            route->handler(&x->is, route->arg);
            return 0;
        }
        if (match->allow_count < sizeof match->allow / sizeof match->allow[0])
            match->allow[match->allow_count++] = route->method;
    }
    return match->allow_count ? 405 : 404;
}

void aco__http_add_allow(aco__http_exchange_t *x)
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
    (void)aco_http_reply_header(&x->is, "Allow", text);
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
