/* A shortened run as a file: lines with a name and a value. A list of choices is numbers; 0x12 stands for twelve zeros.
 *
 *   acorn simulation: a run in short
 *   program: sim_pool broken
 *   seed: 20
 *   turn_ns: 0
 *   max_turns: 10000000
 *   reason: the answer to another question
 *   order: 0x3 1 0x7 2
 *   ...
 *   end
 */
#include "sim/decision_file.h"

#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char title[] = "acorn simulation: a run in short";

/* ---- Writing ---- */

/* As one line. */
static void write_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, "%s: ", name);
    for (; *text; text++)
        putc(iscntrl((unsigned char)*text) ? ' ' : *text, file);
    putc('\n', file);
}

static void write_choices(FILE *file, const aco__sim_choices_t *choices)
{
    for (size_t i = 0, zeros; i < choices->n; i += zeros ? zeros : 1) {
        for (zeros = 0; i + zeros < choices->n && !choices->values[i + zeros];)
            zeros++;
        if (zeros > 1)
            fprintf(file, " 0x%zu", zeros);
        else
            fprintf(file, " %" PRIu64, choices->values[i]);
    }
}

static void write_all_lines(FILE *file, const aco__sim_recorded_t *recorded)
{
    fprintf(file, "%s\n", title);
    write_text(file, "program", recorded->program);
    fprintf(file, "seed: %" PRIu64 "\nturn_ns: %" PRId64 "\nmax_turns: %" PRIu64 "\n", recorded->seed,
            recorded->turn_ns, recorded->max_turns);
    write_text(file, "reason", recorded->reason);
    for (int i = 0; i < ACO__SIM_SOURCES; i++) {
        fprintf(file, "%s:", aco__sim_source_names[i]);
        write_choices(file, &recorded->decisions.of[i]);
        putc('\n', file);
    }
    fprintf(file, "end\n");
}

int aco__sim_recorded_write(const aco__sim_recorded_t *recorded, const char *path)
{
    int is_stdout = strcmp(path, "-") == 0, failed;
    FILE *file = is_stdout ? stdout : aco__system.fopen(path, "w");
    if (!file)
        return -1;
    write_all_lines(file, recorded);
    failed = fflush(file) != 0 || ferror(file);
    if (!is_stdout && fclose(file) != 0)
        failed = 1;
    return failed ? -1 : 0;
}

/* ---- Reading ---- */

/* All of the file, with a 0 behind it; NULL and errno. */
static char *read_whole(const char *path)
{
    enum { READ_STEP = 1 << 16, MOST = 1 << 26 };
    FILE *file = aco__system.fopen(path, "r");
    char *text = NULL, *larger;
    size_t n = 0, got = 1;
    if (!file)
        return NULL;
    while (got > 0 && n < MOST) {
        larger = realloc(text, n + READ_STEP + 1);
        if (!larger)
            break;
        text = larger;
        got = fread(text + n, 1, READ_STEP, file);
        n += got;
        text[n] = 0;
    }
    if (got > 0 || ferror(file)) { /* also a folder */
        free(text);
        text = NULL;
        errno = got > 0 ? EFBIG : EIO;
    }
    (void)fclose(file);
    return text;
}

/* What stands behind "NAME:" at the begin of a line, up to the line's end; NULL: there is none. */
static char *value_of(char *text, const char *name)
{
    size_t n = strlen(name);
    for (char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            return line + n + 1 + (line[n + 1] == ' ');
    return NULL;
}

static int read_text(char *text, const char *name, char *result, size_t size)
{
    const char *value = value_of(text, name);
    size_t n = value ? strcspn(value, "\n") : size;
    if (n >= size)
        return -1;
    memcpy(result, value, n);
    result[n] = 0;
    return 0;
}

static int read_value(char *text, const char *name, uint64_t *result)
{
    const char *value = value_of(text, name);
    char *end = NULL;
    errno = 0;
    if (!value || !isdigit((unsigned char)*value))
        return -1;
    *result = strtoull(value, &end, 10);
    return errno || *end != '\n' ? -1 : 0;
}

/* One number, or "0xN" for N zeros. Returns how many it stands for; 0: neither. */
static size_t read_choice(char **at, uint64_t *value)
{
    int are_zeros = strncmp(*at, "0x", 2) == 0;
    char *digits = *at + (are_zeros ? 2 : 0);
    errno = 0;
    if (!isdigit((unsigned char)*digits))
        return 0;
    *value = strtoull(digits, at, 10);
    if (errno || (**at != ' ' && **at != '\n'))
        return 0;
    if (!are_zeros)
        return 1;
    return *value <= UINT32_MAX ? (size_t)*value : 0;
}

/* Appends `n` choices. The rest of a long row of zeros may be left out: all choices beyond the end are 0. */
static int append_choices(aco__sim_choices_t *choices, uint64_t value, size_t n)
{
    enum { MOST = 1 << 24 };
    uint64_t *larger = choices->n + n > MOST ? NULL : realloc(choices->values, (choices->n + n) * sizeof *larger);
    if (!larger)
        return -1;
    choices->values = larger;
    while (n-- > 0)
        choices->values[choices->n++] = value;
    return 0;
}

static int read_choices(char *text, const char *name, aco__sim_choices_t *choices)
{
    char *at = value_of(text, name);
    while (at && *at != '\n' && *at) {
        uint64_t value;
        int are_zeros = strncmp(at, "0x", 2) == 0;
        size_t n = read_choice(&at, &value);
        if (!n || append_choices(choices, are_zeros ? 0 : value, n) != 0)
            return -1;
        at += *at == ' ';
    }
    return at && *at == '\n' ? 0 : -1;
}

/* 0, or -1: it is damaged. */
static int read_all(aco__sim_recorded_t *recorded, char *text)
{
    uint64_t turn_ns;
    if (strncmp(text, title, sizeof title - 1) != 0 || !strstr(text, "\nend\n") ||
        read_text(text, "program", recorded->program, sizeof recorded->program) != 0 ||
        read_text(text, "reason", recorded->reason, sizeof recorded->reason) != 0 ||
        read_value(text, "seed", &recorded->seed) != 0 || read_value(text, "turn_ns", &turn_ns) != 0 ||
        read_value(text, "max_turns", &recorded->max_turns) != 0)
        return -1;
    if (!recorded->seed || turn_ns > (uint64_t)ACO_SECOND || !recorded->max_turns)
        return -1;
    recorded->turn_ns = (int64_t)turn_ns;
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        if (read_choices(text, aco__sim_source_names[i], &recorded->decisions.of[i]) != 0)
            return -1;
    return 0;
}

int aco__sim_recorded_read(aco__sim_recorded_t *recorded, const char *path, const char *program, const char *call)
{
    char why[2 * ACO__SIM_PROGRAM + 128], *text;
    int done;
    memset(recorded, 0, sizeof *recorded);
    recorded->decisions.replays = 1;
    text = read_whole(path);
    if (!text) {
        int error = errno;
        snprintf(why, sizeof why, "%.400s cannot be read: %s", path, strerror(error));
        return aco__service_fail(error, call, why);
    }
    done = read_all(recorded, text);
    free(text);
    if (done != 0) {
        snprintf(why, sizeof why, "%.400s has no run in short, or it is damaged", path);
        return aco__service_fail(EINVAL, call, why);
    }
    if (strcmp(recorded->program, program) != 0) {
        snprintf(why, sizeof why, "%.200s is of another program: \"%.300s\", and not \"%.300s\"", path,
                 recorded->program, program);
        return aco__service_fail(EINVAL, call, why);
    }
    return 0;
}

void aco__sim_recorded_free(aco__sim_recorded_t *recorded)
{
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        free(recorded->decisions.of[i].values);
    memset(recorded, 0, sizeof *recorded);
}
