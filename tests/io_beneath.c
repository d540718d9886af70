/* Files that must be below a folder (aco_file_open_beneath() of include/aco/file.h): links that stay inside, and those
 * that lead out, with openat2() and without. */
#include "replace.h" /* first */

#include <aco/file.h>
#include "io_tests.h"

#include <stdlib.h>
#include <sys/stat.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* The errno with which it cannot be opened; 0: it can. */
static int why_not(const char *path, int links)
{
    int fd = aco_file_open_beneath(in_folder("root"), path, O_RDONLY, 0, links);
    if (fd < 0)
        return errno;
    CHECK_EQ(aco_io_close(fd), 0);
    return 0;
}

static void link_to(const char *to, const char *name)
{
    CHECK_EQ(symlink(to, in_folder(name)), 0);
}

REAL(openat2);
static int failing_openat2(int at, const char *path, const struct aco__open_how *how, size_t sz)
{
    (void)at, (void)path, (void)how, (void)sz;
    errno = ENOSYS;
    return -1;
}

/* A filter of system calls that does not know it. */
static int filtered_openat2(int at, const char *path, const struct aco__open_how *how, size_t sz)
{
    (void)at, (void)path, (void)how, (void)sz;
    errno = EPERM;
    return -1;
}

/* The file may not be opened like this; the folder may. */
static int refusing_openat2(int at, const char *path, const struct aco__open_how *how, size_t sz)
{
    (void)at, (void)how, (void)sz;
    if (strcmp(path, ".") == 0)
        return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    errno = EPERM;
    return -1;
}

/* Without openat2() no link is followed. */
static void check_beneath(int has_openat2)
{
    static const char *const inside[] = {"link", "sub/up/file", "sub/again"};
    static const char *const outside[] = {"out", "etc/passwd", "sub/out", "absolute"};
    static const char *const up[] = {"..", "../secret", "sub/../../secret", "/etc/passwd"};
    int fd;
    CHECK_EQ(why_not("file", ACO_FILE_NO_LINKS), 0);
    CHECK_EQ(why_not("sub/in", ACO_FILE_LINKS_INSIDE), 0);
    CHECK_EQ(why_not("sub/none", ACO_FILE_LINKS_INSIDE), ENOENT);
    CHECK_EQ(why_not("file/in", ACO_FILE_LINKS_INSIDE), ENOTDIR);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        CHECK_EQ(why_not(inside[i], ACO_FILE_LINKS_INSIDE) == 0, has_openat2);
        CHECK(why_not(inside[i], ACO_FILE_NO_LINKS) == (i == 1 && !has_openat2 ? ENOTDIR : ELOOP));
    }
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        if (has_openat2)
            CHECK_EQ(why_not(outside[i], ACO_FILE_LINKS_INSIDE), EXDEV);
        CHECK(why_not(outside[i], ACO_FILE_LINKS_INSIDE) != 0);
        CHECK(why_not(outside[i], ACO_FILE_NO_LINKS) != 0);
    }
    for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
        CHECK_EQ(why_not(up[i], ACO_FILE_LINKS_INSIDE), EXDEV);
        CHECK_EQ(why_not(up[i], ACO_FILE_NO_LINKS), EXDEV);
    }
    fd = aco_file_open_beneath(in_folder("root"), "new", O_RDWR | O_CREAT | O_EXCL, 0600, ACO_FILE_NO_LINKS);
    CHECK(fd >= 0);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(unlink(in_folder("root/new")), 0);
}

/* Somebody has a link lead out at the last moment: nothing was looked at before. */
static int late_openat2(int at, const char *path, const struct aco__open_how *how, size_t sz)
{
    CHECK_EQ(unlink(in_folder("real/link")), 0);
    link_to("../secret", "real/link");
    return real_openat2(at, path, how, sz);
}

static void check_swapped_link(void)
{
    aco__system.openat2 = late_openat2;
    CHECK_EQ(why_not("link", ACO_FILE_LINKS_INSIDE), EXDEV);
    aco__system.openat2 = real_openat2;
    CHECK_EQ(unlink(in_folder("real/link")), 0);
    link_to("file", "real/link");
    CHECK_EQ(why_not("link", ACO_FILE_LINKS_INSIDE), 0);
}

static void *beneath(void *unused)
{
    int has_openat2;
    CHECK_EQ(mkdir(in_folder("real"), 0700), 0);
    CHECK_EQ(mkdir(in_folder("real/sub"), 0700), 0);
    close(open(in_folder("secret"), O_WRONLY | O_CREAT, 0600));
    close(open(in_folder("real/file"), O_WRONLY | O_CREAT, 0600));
    close(open(in_folder("real/sub/in"), O_WRONLY | O_CREAT, 0600));
    link_to("real", "root"); /* the way to the folder may be one */
    link_to("file", "real/link");
    link_to("..", "real/sub/up");
    link_to("../sub/in", "real/sub/again");
    link_to("../secret", "real/out");
    link_to("/etc", "real/etc");
    link_to("../../secret", "real/sub/out");
    link_to(in_folder("real/file"), "real/absolute");
    has_openat2 = why_not("link", ACO_FILE_LINKS_INSIDE) == 0;
    if (has_openat2)
        check_beneath(1);
    else
        printf("skipped: this system has no openat2()\n");
    REPLACE(openat2);
    check_beneath(0);
    aco__system.openat2 = filtered_openat2;
    check_beneath(0);
    aco__system.openat2 = refusing_openat2;
    CHECK_EQ(why_not("file", ACO_FILE_NO_LINKS), EPERM);
    aco__system.openat2 = real_openat2;
    if (has_openat2)
        check_swapped_link();
    FAILS_WITH(aco_file_open_beneath(NULL, "a", O_RDONLY, 0, 0), EINVAL);
    FAILS_WITH(aco_file_open_beneath("/", NULL, O_RDONLY, 0, 0), EINVAL);
    FAILS_WITH(aco_file_open_beneath("/", "a", O_RDONLY, 0, 2), EINVAL);
    FAILS_WITH(aco_file_open_beneath(in_folder("nowhere"), "a", O_RDONLY, 0, 0), ENOENT);
    return unused;
}

static void remove_all(void)
{
    static const char *const names[] = {"root",      "secret",       "real/file",      "real/sub/in",
                                        "real/link", "real/sub/up",  "real/sub/again", "real/out",
                                        "real/etc",  "real/sub/out", "real/absolute"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_EQ(unlink(in_folder(names[i])), 0);
    CHECK_EQ(rmdir(in_folder("real/sub")), 0);
    CHECK_EQ(rmdir(in_folder("real")), 0);
    CHECK_EQ(rmdir(folder), 0);
}

int main(void)
{
    static const aco_function_t tests[] = {beneath};
    snprintf(folder, sizeof folder, "/tmp/acorn-io-beneath-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(setenv("ACO_FILES", "pool", 0), 0);
    CHECK(aco_io_poll_fd() >= 0);
    run_tests(tests, 1, count_descriptors());
    remove_all();
    return check_result("io_beneath");
}
