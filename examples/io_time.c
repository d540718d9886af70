/* A time server for datagrams: io_time [PORT]. Whoever sends one gets the time in UTC, as "2026-11-23T12:00:00Z\n". */
#include <aco/io.h>
#include <stdio.h>
#include <time.h>

static void *serve(void *port)
{
    char address[ACO_IO_ADDRESS_SIZE], text[64];
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    int fd = aco_io_bind("udp", "127.0.0.1", port, NULL);
    if (fd < 0 || aco_io_local_address(fd, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    fprintf(stderr, "listening on %s\n", address);
    while (aco_io_recvfrom(fd, text, sizeof text, 0, (struct sockaddr *)&from, &length) >= 0) {
        time_t now = time(NULL);
        struct tm utc;
        size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ\n", gmtime_r(&now, &utc));
        if (aco_io_sendto(fd, text, n, 0, (struct sockaddr *)&from, length) < 0)
            fprintf(stderr, "%s\n", aco_error_message()); /* one client's trouble */
        length = sizeof from;
    }
    aco_io_close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    return aco_spawn(serve, argc > 1 ? argv[1] : "7000", NULL) && aco_run() == 0 ? 0 : 1;
}
