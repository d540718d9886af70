/* The report at exit about coroutines and tasks that nobody destroyed or joined: in debug builds, and as
 * ACO_REPORT_FORGOTTEN says. */
#include "aco/scheduler.h"
#include "child.h"

#include <errno.h>

static void *yields(void *arg)
{
    aco_yield_value(arg);
    return arg;
}

static void *parks(void *arg)
{
    aco_park("for ever");
    return arg;
}

static void *returns(void *arg)
{
    return arg;
}

static aco_t *named(const char *name)
{
    aco_options_t o = {0};
    o.name = name;
    return aco_new(yields, NULL, &o);
}

static void forget_some(void)
{
    aco_t *kept, *destroyed;
    named("never resumed");
    kept = named("suspended");
    aco_send(kept, NULL);
    kept = named("ended");
    aco_send(kept, NULL);
    aco_send(kept, NULL);
    destroyed = named("destroyed");
    aco_destroy(destroyed);
    destroyed = aco_new(returns, NULL, NULL);
    aco_send(destroyed, NULL);
    aco_destroy(destroyed);
    aco_new(returns, NULL, NULL); /* on the cached block */
    aco_spawn(returns, NULL, NULL);
    aco_spawn(parks, NULL, NULL);
    aco_detach(aco_spawn(returns, NULL, NULL));
    aco_run();
    exit(0);
}

static void forget_with_environment(void)
{
    setenv("ACO_REPORT_FORGOTTEN", "1", 1);
    forget_some();
}

static void forget_silently(void)
{
    setenv("ACO_REPORT_FORGOTTEN", "0", 1);
    forget_some();
}

static void forget_many(void)
{
    for (int i = 0; i < 100; i++)
        aco_new(yields, NULL, NULL);
    setenv("ACO_REPORT_FORGOTTEN", "1", 1);
    exit(0);
}

static void forget_nothing(void)
{
    aco_t *co = aco_new(yields, NULL, NULL), *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *task;
    aco_send(co, NULL);
    aco_cancel(co);
    aco_destroy(co);
    aco_destroy(main_co);
    task = aco_spawn(returns, NULL, NULL);
    aco_run();
    aco_join(task, NULL);
    setenv("ACO_REPORT_FORGOTTEN", "1", 1);
    exit(0);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

static void check_reported(child_end_t end)
{
    CHECK(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0);
    CHECK_EQ(count(end.text, "acorn: exit: coroutine 0x"), 6);
    CHECK_EQ(count(end.text, ": \"never resumed\" has not ended and was not destroyed or joined; made at "), 1);
    CHECK_EQ(count(end.text, ": \"suspended\" has not ended and was not destroyed or joined; made at "), 1);
    CHECK_EQ(count(end.text, ": \"ended\" has ended and was not destroyed or joined; made at "), 1);
    CHECK_EQ(count(end.text, ": has ended and was not destroyed"), 1);
    CHECK_EQ(count(end.text, ": has not ended and was not destroyed"), 1);
    CHECK_EQ(count(end.text, ": is a task that has not ended and was not destroyed"), 1);
    CHECK_EQ(count(end.text, "test_forgotten"), ACO_DEBUG ? 7 : 1); /* one: the entry in the deadlock report */
    CHECK_EQ(count(end.text, "an unknown place"), ACO_DEBUG ? 0 : 6);
    if (check_failures)
        fprintf(stderr, "%s", end.text);
}

int main(void)
{
    child_end_t end = child_run(forget_some);
    if (ACO_DEBUG)
        check_reported(end);
    else
        CHECK(!strstr(end.text, "acorn: exit:"));
    check_reported(child_run(forget_with_environment));
    end = child_run(forget_silently);
    CHECK(!strstr(end.text, "acorn: exit:"));
    end = child_run(forget_many);
    CHECK_EQ(count(end.text, "made at "), 10);
    CHECK_EQ(count(end.text, "acorn: exit: 100 coroutines and 0 tasks in all were not destroyed or joined\n"), 1);
    end = child_run(forget_nothing);
    CHECK_EQ(strlen(end.text), 0);
    return check_result("forgotten");
}
