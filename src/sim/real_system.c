/* The system's table as it was before: what a simulation itself does in the real world. calls.c stores it. */
#include "sim/world.h"

#include <errno.h>

aco__system_t aco__sim_real;

int aco__sim_write_real(int file, const char *text, size_t n, int64_t at)
{
    for (size_t written = 0; written < n;) {
        ssize_t done = at < 0 ? aco__sim_real.write(file, text + written, n - written)
                              : aco__sim_real.pwrite(file, text + written, n - written, at + (int64_t)written);
        if (done == 0 || (done < 0 && errno != EINTR))
            return -1;
        written += done > 0 ? (size_t)done : 0;
    }
    return 0;
}
