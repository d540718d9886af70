/* A directory tree as a sequence: a generator walks it, recursively, and a plain loop prints what comes.
 *
 *   directory_walk DIRECTORY [LIMIT]
 *
 * The loop ends after LIMIT entries, if there is one, with the walk some directories deep. aco_generator_close()
 * unwinds it then, and each call's cleanup attribute closes its directory. That is why this file is compiled with
 * -fexceptions. */
#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64 /* else readdir() may fail on a large file number on 32-bit systems */
#define _DARWIN_C_SOURCE /* macOS: O_NOFOLLOW is POSIX, but hidden without */
#include "aco.h"
#include "aco/generator.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "aco_assert_override.h"

/* What the generator makes. It stands in the generator's frame and changes with the next entry. */
typedef struct entry {
    char path[PATH_MAX];
    struct stat status;
    int error; /* an errno: this is a directory that could not be read, or an entry that has vanished */
} entry_t;

static int open_directories;

static DIR *directory_open(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (directory)
        open_directories++;
    else if (fd >= 0)
        close(fd);
    return directory;
}

static void directory_close(DIR **directory)
{
    if (!*directory)
        return;
    closedir(*directory);
    open_directories--;
}

/* The entries of the directory e->path: `name` in the directory `parent`. */
static void walk(aco_yielder_t *y, entry_t *e, int parent, const char *name)
{
    __attribute__((cleanup(directory_close))) DIR *directory = directory_open(parent, name);
    const struct dirent *found;
    size_t length = strlen(e->path);
    if (!directory) {
        e->error = errno;
        aco_generate(y, e);
        return;
    }
    while ((found = readdir(directory)) != NULL) {
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        int needed = snprintf(e->path + length, sizeof e->path - length, "/%s", found->d_name);
        if (needed < 0 || (size_t)needed >= sizeof e->path - length)
            e->error = ENAMETOOLONG;
        else
            e->error = fstatat(dirfd(directory), found->d_name, &e->status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
        aco_generate(y, e);
        if (!e->error && S_ISDIR(e->status.st_mode))
            walk(y, e, dirfd(directory), found->d_name);
        e->path[length] = '\0';
    }
}

ACO_GENERATOR(tree, y, root)
{
    entry_t e = {.error = 0};
    int length = snprintf(e.path, sizeof e.path, "%s", (const char *)root);
    if (length >= 0 && (size_t)length < sizeof e.path)
        walk(y, &e, AT_FDCWD, root);
}

/* How many entries could not be read; -1: no generator. */
static int list(char *root, long limit)
{
    long files = 0, directories = 0, errors = 0, seen = 0;
    long long bytes = 0;
    aco_generator_t g;
    if (aco_generator_open(&g, tree, root, NULL) != 0) {
        fprintf(stderr, "%s\n", aco_error_message());
        return -1;
    }
    while (seen < limit && aco_generator_next(&g)) {
        const entry_t *e = g.value;
        seen++;
        if (e->error) {
            errors++;
            fprintf(stderr, "%s: %s\n", e->path, strerror(e->error));
            continue;
        }
        directories += S_ISDIR(e->status.st_mode) != 0;
        files += S_ISREG(e->status.st_mode) != 0;
        bytes += S_ISREG(e->status.st_mode) ? (long long)e->status.st_size : 0;
        printf("%s\n", e->path);
    }
    printf("%ld directories, %ld files of %lld bytes%s\n", directories, files, bytes,
           seen == limit ? ", and perhaps more" : "");
    printf("directories open: %d", open_directories);
    aco_generator_close(&g);
    printf(", after the close %d\n", open_directories);
    assert(open_directories == 0);
    return errors != 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: directory_walk DIRECTORY [LIMIT]\n");
        return 2;
    }
    return list(argv[1], argc > 2 ? strtol(argv[2], NULL, 10) : LONG_MAX) != 0;
}
