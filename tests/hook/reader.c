/* A client library that knows nothing of tasks: calls read(). */
#include <string.h>
#include <unistd.h>

ssize_t reader_read(int fd, void *p, size_t n);
void *reader_calls(void);

ssize_t reader_read(int fd, void *p, size_t n)
{
    return read(fd, p, n);
}

/* Which read() that is. */
void *reader_calls(void)
{
    ssize_t (*call)(int, void *, size_t) = read;
    void *address;
    memcpy(&address, &call, sizeof address);
    return address;
}
