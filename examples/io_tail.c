/* tail -f of many files: io_tail FILE... prints what is added to them from now on, with the file's name before each
 * piece. Of a file that becomes shorter it prints what is there. Ctrl-C ends it. */
#include <aco/group.h>
#include <aco/io.h>
#include <aco/process.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static void follow(const char *name, int file, int changes)
{
    char bytes[4096];
    off_t at = lseek(file, 0, SEEK_END);
    printf("following %s\n", name);
    fflush(stdout);
    do {
        struct stat status;
        ssize_t n;
        if (fstat(file, &status) == 0 && status.st_size < at)
            at = lseek(file, 0, SEEK_SET);
        while ((n = aco_io_read(file, bytes, sizeof bytes)) > 0) { /* a file never waits */
            printf("%s: %.*s", name, (int)n, bytes);
            at += n;
        }
        fflush(stdout);
    } while (aco_io_read(changes, bytes, sizeof bytes) > 0); /* this does; what has changed does not matter */
}

static void *follow_one(void *name)
{
    int file = open(name, O_RDONLY | O_CLOEXEC), changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (file >= 0 && changes >= 0 && aco_io_adopt(changes) == 0 && inotify_add_watch(changes, name, IN_MODIFY) >= 0)
        follow(name, file, changes);
    else
        perror(name);
    if (file >= 0)
        aco_io_close(file);
    if (changes >= 0)
        aco_io_close(changes);
    return NULL;
}

static void *follow_all(void *arg)
{
    aco_interrupt_t ctrl_c;
    aco_group_t group;
    if (aco_interrupt_begin(&ctrl_c, (const int[]){SIGINT, SIGTERM}, 2) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (char **name = arg; *name; name++)
        aco_group_spawn(&group, follow_one, *name, NULL);
    aco_group_end(&group);
    aco_interrupt_end(&ctrl_c);
    printf("ended\n");
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {.flags = ACO_DETACHED};
    (void)argc;
    return aco_spawn(follow_all, argv + 1, &detached) && aco_run() == 0 ? 0 : 1;
}
