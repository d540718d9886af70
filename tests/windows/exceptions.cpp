/* Promise: handlers find exceptions in coroutines wherever the stacks lie, and ACO_OWN_EXCEPTIONS keeps them apart. */
#include "aco.h"
#include "check.h"

static int caught;

static void *catches_twice(void *)
{
    for (int i = 0; i < 2; i++) {
        try {
            throw i;
        } catch (int n) {
            caught += n == i;
        }
        aco_yield();
    }
    return nullptr;
}

static void *yields_in_catch(void *arg)
{
    try {
        throw arg;
    } catch (void *) {
        aco_yield();
        try {
            throw;
        } catch (void *p) {
            caught += p == arg;
        }
    }
    return nullptr;
}

int main(void)
{
    aco_options_t own = {};
    aco_t *co[32], *a, *b;
    for (aco_t *&c : co)
        c = aco_new(catches_twice, nullptr, nullptr);
    for (int i = 0; i < 2; i++)
        for (aco_t *c : co)
            aco_send(c, nullptr);
    CHECK(caught == 64);
    for (aco_t *c : co)
        aco_destroy(c);
    own.flags = ACO_OWN_EXCEPTIONS;
    a = aco_new(yields_in_catch, &a, &own);
    b = aco_new(yields_in_catch, &b, &own);
    aco_send(a, nullptr);
    aco_send(b, nullptr);
    try {
        throw 2;
    } catch (int n) {
        aco_send(a, nullptr);
        CHECK(n == 2);
    }
    aco_send(b, nullptr);
    CHECK(caught == 66);
    return check_result("exceptions");
}
