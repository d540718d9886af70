/* A time limit for requests: middleware. */
#include "http/request.h"

static const char limit_place[] = "aco_http_limit_time";

/* The handler's time was over. */
ACO__SWITCHES static void be_late(aco__http_exchange_t *x, const aco_http_time_limit_t *limit)
{
    if (x->reply.has_begun) {
        if (!x->reply.has_length && !x->reply.is_bodiless) /* what else shows that the reply may lack something */
            x->reply.is_aborted = 1;
        return;
    }
    if (limit->late)
        limit->late(&x->is, limit->late_arg);
    if (!x->reply.has_begun)
        aco__http_refuse(x, 503, limit_place);
}

void aco_http_limit_time(aco_http_request_t *request, void *limit)
{
    const aco_http_time_limit_t *of = limit;
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco_scope_t scope;
    if (aco_scope_begin_at(&scope, aco_after(of->time), limit_place) != 0) {
        aco__http_refuse(x, 503, limit_place);
        return;
    }
    (void)aco_http_next(request);
    (void)aco_scope_end(&scope);
    if (scope.error == ETIMEDOUT)
        be_late(x, of);
}
