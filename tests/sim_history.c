/* Histories of operations (src/sim/operations.c). With arguments, a simulation of a replicated register whose history a
 * checker reads (tests/sim_porcupine.sh): "FOLDER" or "FOLDER stale" behind "--"; each seed writes
 * FOLDER/SEED.jsonl. */
#include "capture.h"
#include "check.h"

#include <aco/sim.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* ---- A register with a copy: reads of the copy are stale ---- */

enum { CLIENTS = 4, OPERATIONS = 8, KEYS = 2 };

typedef struct store {
    aco_sim_t *sim;
    aco_sim_history_t *history;
    int reads_copy;
    int64_t value[KEYS], copy[KEYS];
    int64_t written;      /* how many values were: each is new */
    int64_t processes;
} store_t;

static void wait_a_while(const store_t *store)
{
    aco_sleep((int64_t)aco_sim_random(store->sim, 20) * ACO_MILLISECOND);
}

static const char *json_of(int64_t value, char text[24])
{
    snprintf(text, 24, "%lld", (long long)value);
    return text;
}

/* The copy follows later. */
static void *follow(void *arg)
{
    store_t *store = arg;
    for (int i = 0; i < 20; i++) {
        wait_a_while(store);
        memcpy(store->copy, store->value, sizeof store->copy);
    }
    return NULL;
}

static void write_new(store_t *store, int64_t process, int key, const char *name)
{
    int64_t value = ++store->written;
    char text[24];
    CHECK_EQ(aco_sim_history_add(store->history, ACO_SIM_INVOKE, process, "write", name, json_of(value, text)), 0);
    wait_a_while(store);
    store->value[key] = value;
    wait_a_while(store);
    CHECK_EQ(aco_sim_history_add(store->history, ACO_SIM_OK, process, "write", name, text), 0);
}

/* The answer is lost: the write was made, or was not. */
static void lose_answer(store_t *store, int64_t process, int key, const char *name)
{
    int64_t value = ++store->written;
    char text[24];
    CHECK_EQ(aco_sim_history_add(store->history, ACO_SIM_INVOKE, process, "write", name, json_of(value, text)), 0);
    wait_a_while(store);
    if (aco_sim_random(store->sim, 2))
        store->value[key] = value;
    CHECK_EQ(aco_sim_history_add(store->history, ACO_SIM_INFO, process, "write", name, text), 0);
}

static void read_one(store_t *store, int64_t process, int key, const char *name)
{
    char text[24];
    int64_t value;
    CHECK_EQ(aco_sim_history_add(store->history, ACO_SIM_INVOKE, process, "read", name, NULL), 0);
    wait_a_while(store);
    value = store->reads_copy ? store->copy[key] : store->value[key];
    wait_a_while(store);
    if (aco_sim_random(store->sim, 10) == 0)
        CHECK_EQ(aco_sim_history_add(store->history, ACO_SIM_FAIL, process, "read", name, NULL), 0);
    else
        CHECK_EQ(aco_sim_history_add(store->history, ACO_SIM_OK, process, "read", name, json_of(value, text)), 0);
}

static void *use_store(void *arg)
{
    static const char *const key_names[KEYS] = {"x", "y"};
    store_t *store = arg;
    int64_t process = store->processes++;
    for (int i = 0; i < OPERATIONS; i++) {
        int key = (int)aco_sim_random(store->sim, KEYS);
        switch (aco_sim_random(store->sim, 8)) {
        case 0:
            lose_answer(store, process, key, key_names[key]);
            process = store->processes++;
            break;
        case 1:
        case 2:
            write_new(store, process, key, key_names[key]);
            break;
        default:
            read_one(store, process, key, key_names[key]);
        }
    }
    return NULL;
}

static const char *folder;
static int is_stale;

static void use_register(aco_sim_t *sim, void *arg)
{
    store_t store = {.sim = sim, .reads_copy = is_stale};
    aco_t *tasks[CLIENTS + 1];
    char path[512];
    (void)arg;
    snprintf(path, sizeof path, "%s/%llu.jsonl", folder, (unsigned long long)aco_sim_seed(sim));
    store.history = aco_sim_history(sim, path);
    CHECK(store.history != NULL);
    for (int i = 0; i < CLIENTS; i++)
        tasks[i] = aco_spawn(use_store, &store, NULL);
    tasks[CLIENTS] = aco_spawn(follow, &store, NULL);
    for (int i = 0; i <= CLIENTS; i++)
        aco_join(tasks[i], NULL);
}

/* ---- Promises ---- */

static char path_of_test[64];

static void add_steps(aco_sim_t *sim, void *arg)
{
    aco_sim_history_t *history = aco_sim_history(sim, path_of_test);
    (void)arg;
    CHECK(history != NULL);
    CHECK_EQ(aco_sim_history_add(history, ACO_SIM_INVOKE, 3, "write", "x\"y", "7"), 0);
    CHECK_EQ(aco_sim_history_add(history, ACO_SIM_INVOKE, 0, "read", NULL, NULL), 0);
    aco_sleep(ACO_SECOND);
    CHECK_EQ(aco_sim_history_add(history, ACO_SIM_OK, 0, "read", NULL, "[1, 2]"), 0);
    CHECK_EQ(aco_sim_history_add(history, ACO_SIM_INFO, 3, "write", "x\"y", "7"), 0);

    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 3, "write", NULL, NULL), EINVAL); /* it is lost */
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_OK, 0, "read", NULL, NULL), EINVAL);      /* it does nothing */
    CHECK_EQ(aco_sim_history_add(history, ACO_SIM_INVOKE, 0, "read", NULL, NULL), 0);
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 0, "read", NULL, NULL), EINVAL); /* it works */
    CHECK_EQ(aco_sim_history_add(history, ACO_SIM_FAIL, 0, "read", NULL, NULL), 0);
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, -1, "read", NULL, NULL), EINVAL);
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 1 << 20, "read", NULL, NULL), EINVAL);
    FAILS_WITH(aco_sim_history_add(history, (aco_sim_step_t)4, 1, "read", NULL, NULL), EINVAL);
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 1, "", NULL, NULL), EINVAL);
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 1, NULL, NULL, NULL), EINVAL);
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 1, "read", NULL, ""), EINVAL);
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 1, "read", NULL, "1\n2"), EINVAL);
    FAILS_WITH(aco_sim_history_add(NULL, ACO_SIM_INVOKE, 1, "read", NULL, NULL), EINVAL);
    errno = 0;
    CHECK(!aco_sim_history(sim, "/nowhere/at/all") && errno == ENOENT);
    CHECK(!aco_sim_history(sim, NULL) && errno == EINVAL);
    CHECK(!aco_sim_history(NULL, path_of_test) && errno == EINVAL);
}

static void lines_are_json(void)
{
    static const char wanted[] =
        "{\"index\":0,\"time\":0,\"type\":\"invoke\",\"process\":3,\"f\":\"write\",\"key\":\"x\\\"y\",\"value\":7}\n"
        "{\"index\":1,\"time\":0,\"type\":\"invoke\",\"process\":0,\"f\":\"read\",\"value\":null}\n"
        "{\"index\":2,\"time\":1000000000,\"type\":\"ok\",\"process\":0,\"f\":\"read\",\"value\":[1, 2]}\n"
        "{\"index\":3,\"time\":1000000000,\"type\":\"info\",\"process\":3,\"f\":\"write\",\"key\":\"x\\\"y\","
        "\"value\":7}\n"
        "{\"index\":4,\"time\":1000000000,\"type\":\"invoke\",\"process\":0,\"f\":\"read\",\"value\":null}\n"
        "{\"index\":5,\"time\":1000000000,\"type\":\"fail\",\"process\":0,\"f\":\"read\",\"value\":null}\n";
    char text[sizeof wanted + 64] = "";
    FILE *file;
    snprintf(path_of_test, sizeof path_of_test, "/tmp/acorn-sim-history-%d", (int)getpid());
    CHECK_EQ(aco_sim_run(add_steps, NULL, 2, NULL, &(aco_sim_options_t){.check = 1}), 0); /* the last run's stay */
    file = fopen(path_of_test, "r");
    CHECK(file && fread(text, 1, sizeof text - 1, file) == sizeof wanted - 1 && strcmp(text, wanted) == 0);
    if (file)
        fclose(file);
    unlink(path_of_test);
}

static void fill_disk(aco_sim_t *sim, void *arg)
{
    aco_sim_history_t *history = aco_sim_history(sim, "/dev/full");
    (void)arg;
    FAILS_WITH(aco_sim_history_add(history, ACO_SIM_INVOKE, 1, "read", NULL, NULL), ENOSPC);
}

static void fail_with_history(aco_sim_t *sim, void *arg)
{
    aco_sim_history_t *history = aco_sim_history(sim, "/dev/null");
    (void)arg;
    CHECK_EQ(aco_sim_history_add(history, ACO_SIM_INVOKE, 1, "cas", "k", "[1,2]"), 0);
    aco_sim_fail(sim, "on purpose");
}

static void failures_are_told(void)
{
    aco_sim_options_t options = {.events = 5};
    aco_sim_stats_t stats;
    capture();
    FAILS_WITH(aco_sim_run(fill_disk, NULL, 1, &stats, NULL), ECANCELED);
    CHECK(strstr(stats.reason, "a history cannot be written: ") == stats.reason);
    FAILS_WITH(aco_sim_run(fail_with_history, NULL, 1, &stats, &options), ECANCELED);
    CHECK(strstr(release(), "task 1: history: process 1: invoke cas k [1,2]\n") != NULL);
}

int main(int argc, char **argv)
{
    int own = 1;
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (own + 1 < argc) {
        folder = argv[own + 1];
        is_stale = own + 2 < argc;
        return aco_sim_main(argc, argv, use_register, NULL, NULL) || check_failures;
    }
    lines_are_json();
    failures_are_told();
    return check_result("sim_history");
}
