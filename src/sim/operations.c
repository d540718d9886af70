/* Histories of operations. Each step is written at once: so the file has all of them even if the process dies. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "sim/grow.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

enum { MOST_PROCESSES = 1 << 20, STEP_LINE = 4096, STEP_WORD = 256 };

/* What a process does. */
typedef enum process_state { IDLE = 0, WORKS, LOST } process_state_t;

struct aco_sim_history_s {
    aco_sim_t *sim;
    aco_sim_history_t *next;
    int file;
    uint64_t steps;
    unsigned char *processes; /* process_state_t, by number */
    size_t room;
};

static const char *const step_names[] = {"invoke", "ok", "fail", "info"};

aco_sim_history_t *aco_sim_history(aco_sim_t *sim, const char *path)
{
    static const char call[] = "aco_sim_history";
    aco_sim_history_t *history;
    if (!sim || sim != aco_sim_current() || !path) {
        (void)aco__service_fail(EINVAL, call, path ? "it is not the run of the calling thread" : "the path is NULL");
        return NULL;
    }
    history = calloc(1, sizeof *history);
    if (!history) {
        (void)aco__service_fail(ENOMEM, call, "no memory");
        return NULL;
    }
    history->file = aco__sim_real.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (history->file < 0) {
        int error = errno;
        free(history);
        (void)aco__service_fail(error, call, "the file cannot be made");
        return NULL;
    }
    history->sim = sim;
    history->next = sim->histories;
    sim->histories = history;
    return history;
}

void aco__sim_histories_end(aco_sim_t *sim)
{
    while (sim->histories) {
        aco_sim_history_t *history = sim->histories;
        sim->histories = history->next;
        (void)aco__sim_real.close(history->file);
        free(history->processes);
        free(history);
    }
}

/* NULL without memory. */
static unsigned char *state_of(aco_sim_history_t *history, size_t process)
{
    unsigned char *processes = aco__sim_grown(history->processes, &history->room, process + 1, 1);
    if (!processes)
        return NULL;
    history->processes = processes;
    return &processes[process];
}

/* What is wrong with the step; NULL: nothing. */
static const char *check_step(aco_sim_step_t step, int64_t process, const char *f, const char *value)
{
    if (step > ACO_SIM_INFO)
        return "the step is unknown";
    if (process < 0 || process >= MOST_PROCESSES)
        return "the process is negative or too large";
    if (!f || !*f)
        return "the operation has no name";
    for (const char *at = value; at && *at; at++)
        if ((unsigned char)*at < ' ')
            return "the value is not on one line";
    return value && !*value ? "the value is empty" : NULL;
}

static const char *check_order(aco_sim_step_t step, unsigned char state)
{
    if (state == LOST)
        return "the process ended with ACO_SIM_INFO: another number must go on";
    if (step == ACO_SIM_INVOKE)
        return state == WORKS ? "the process has an operation that has not ended" : NULL;
    return state == WORKS ? NULL : "the process has no operation";
}

/* Its length; STEP_LINE or more: there is no room. */
static size_t write_line(const aco_sim_history_t *history, aco_sim_step_t step, int64_t process, const char *f,
                         const char *key, const char *value, char line[STEP_LINE])
{
    char f_text[STEP_WORD], key_text[STEP_WORD];
    return (size_t)snprintf(line, STEP_LINE,
                            "{\"index\":%" PRIu64 ",\"time\":%" PRId64 ",\"type\":\"%s\",\"process\":%" PRId64
                            ",\"f\":\"%s\"%s%s%s,\"value\":%s}\n",
                            history->steps, history->sim->now, step_names[step], process,
                            aco__json_text(f, f_text, sizeof f_text), key ? ",\"key\":\"" : "",
                            key ? aco__json_text(key, key_text, sizeof key_text) : "", key ? "\"" : "",
                            value ? value : "null");
}

static void note_step(aco_sim_t *sim, aco_sim_step_t step, int64_t process, const char *f, const char *key,
                      const char *value)
{
    char text[ACO__SIM_NOTE_TEXT];
    if (!sim->notes.is_wanted)
        return;
    snprintf(text, sizeof text, "process %" PRId64 ": %s %s%s%s%s%s", process, step_names[step], f, key ? " " : "",
             key ? key : "", value ? " " : "", value ? value : "");
    aco__sim_note(sim, ACO__NOTED_OPERATION, 0, 0, text);
}

int aco_sim_history_add(aco_sim_history_t *history, aco_sim_step_t step, int64_t process, const char *f,
                        const char *key, const char *value)
{
    static const char call[] = "aco_sim_history_add";
    const char *wrong = history ? check_step(step, process, f, value) : "the history is NULL";
    unsigned char *state;
    char line[STEP_LINE];
    size_t n;
    if (wrong)
        return aco__service_fail(EINVAL, call, wrong);
    state = state_of(history, (size_t)process);
    if (!state)
        return aco__service_fail(ENOMEM, call, "no memory");
    wrong = check_order(step, *state);
    n = wrong ? 0 : write_line(history, step, process, f, key, value, line);
    if (wrong || n >= STEP_LINE)
        return aco__service_fail(EINVAL, call, wrong ? wrong : "the value is too long");
    if (aco__sim_write_real(history->file, line, n, -1) != 0) {
        int error = errno;
        aco__sim_fail(history->sim, "a history cannot be written: %s", strerror(error));
        return aco__service_fail(error, call, "the file cannot be written");
    }
    history->steps++;
    *state = step == ACO_SIM_INVOKE ? WORKS : step == ACO_SIM_INFO ? LOST : IDLE;
    note_step(history->sim, step, process, f, key, value);
    return 0;
}
