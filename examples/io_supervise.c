/* A supervisor of processes: io_supervise COMMAND... runs each command by the shell, prints its lines with its number
 * before them, and starts it again if it fails, later each time, up to five times. Ctrl-C ends all. */
#include <aco/group.h>
#include <aco/io_buffer.h>
#include <aco/process.h>
#include <stdio.h>
#include <sys/wait.h>

enum { TRIES = 5 };

typedef struct job {
    int number;
    const char *command;
} job_t;

/* Whether the command has ended well, or must end because this program does. */
static int run_once(const job_t *job)
{
    aco_process_t child;
    aco_io_reader_t lines;
    char *line;
    if (aco_process_start(&child, (const char *const[]){"/bin/sh", "-c", job->command, NULL},
                          ACO_PROCESS_OUT | ACO_PROCESS_ERR_TO_OUT | ACO_PROCESS_GROUP, NULL) != 0) {
        printf("[%d] %s\n", job->number, aco_error_message());
        return 0;
    }
    aco_io_reader_open(&lines, child.out, NULL, 4096);
    while (aco_io_reader_line(&lines, &line) >= 0 && line)
        printf("[%d] %s\n", job->number, line);
    aco_io_reader_close(&lines);
    aco_process_wait(&child);                /* fails if this program must end: */
    aco_process_end(&child, 2 * ACO_SECOND); /* then the child is asked to, and at last made to */
    if (WIFEXITED(child.status))
        printf("[%d] exit %d\n", job->number, WEXITSTATUS(child.status));
    else
        printf("[%d] killed by signal %d\n", job->number, WTERMSIG(child.status));
    return child.status == 0 || aco_check_cancelled() != 0;
}

static void *supervise(void *arg)
{
    const job_t *job = arg;
    int64_t pause = 10 * ACO_MILLISECOND;
    for (int i = 0; i < TRIES; i++, pause *= 4)
        if (run_once(job) || aco_sleep(pause) != 0)
            return NULL;
    printf("[%d] gave up\n", job->number);
    return NULL;
}

static void *supervise_all(void *arg)
{
    char **commands = arg;
    job_t jobs[64];
    aco_interrupt_t ctrl_c;
    aco_group_t group;
    if (aco_interrupt_begin(&ctrl_c, (const int[]){SIGINT, SIGTERM}, 2) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 64 && commands[i]; i++) {
        jobs[i] = (job_t){i + 1, commands[i]};
        aco_group_spawn(&group, supervise, &jobs[i], NULL);
    }
    aco_group_end(&group);
    aco_interrupt_end(&ctrl_c);
    printf("all have ended\n");
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {.flags = ACO_DETACHED};
    (void)argc;
    setvbuf(stdout, NULL, _IOLBF, 0);
    return aco_spawn(supervise_all, argv + 1, &detached) && aco_run() == 0 ? 0 : 1;
}
