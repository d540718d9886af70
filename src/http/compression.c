/* The middleware that asks for compressed replies: compress.c makes them. */
#include "http/reply.h"
#include "http/request.h"

void aco_http_compress(aco_http_request_t *request, void *compression)
{
    static const aco_http_compression_t defaults;
    aco__http_exchange_of(request)->reply.compression = compression ? compression : &defaults;
    (void)aco_http_next(request);
}
