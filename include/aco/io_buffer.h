/* Buffered reading and writing of descriptors (aco/io.h). In the library acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_io_reader_t in;
 *   char *line;
 *   aco_io_reader_open(&in, fd, NULL, 4096);
 *   while (aco_io_reader_line(&in, &line) >= 0 && line)
 *       answer(line);
 *   aco_io_reader_close(&in);
 *
 * Buffers. A reader and a writer use `size` bytes of the caller's memory, from open to close; or, with NULL, a buffer
 * that the thread lends while there are bytes in it: a task that waits in a reader for more holds none. Then calls may
 * fail with ENOMEM.
 *
 * Failures. What has come stays in the reader, and what was not written in the writer: after ETIMEDOUT or ECANCELED a
 * call can be made again. Errors are those of aco_io_read() and aco_io_write(), and those named here.
 *
 * A reader or writer is a plain structure that must not be copied while it is open. It does not own its descriptor. One
 * task at a time may use it, on the descriptor's thread. */
#ifndef ACO_IO_BUFFER_H
#define ACO_IO_BUFFER_H

#include "io.h"

ACO__BEGIN_C

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Read-only. buffer[begin] to buffer[end - 1] have come and were not consumed. */
typedef struct aco_io_reader_s {
    int fd;
    int aco__is_lent;
    char *buffer; /* NULL: none is lent now */
    size_t size, begin, end;
} aco_io_reader_t;

/* `buffer` has `size` bytes, at least 1; NULL: see above. */
ACO_API void aco_io_reader_open(aco_io_reader_t *reader, int fd, void *buffer, size_t size);
/* Gives up what has come and was not consumed, and the buffer. */
ACO_API void aco_io_reader_close(aco_io_reader_t *reader);

/* The pointers that these calls store point into the buffer. They are valid until the next call with the reader. */

/* Waits until there are `n` bytes that were not consumed. Returns how many there are, at least n, or fewer at the end
 * of the stream; *bytes becomes the first one's address. -1 and errno: ENOBUFS (`n` is more than `size`). */
ACO_API ssize_t aco_io_reader_peek_at(aco_io_reader_t *reader, size_t n, const char **bytes, const char *location);
#define aco_io_reader_peek(reader, n, bytes) aco_io_reader_peek_at(reader, n, bytes, ACO_PLACE)
/* Consumes `n` bytes, at most as many as there are. */
ACO_API void aco_io_reader_consume(aco_io_reader_t *reader, size_t n);

/* Consumes all bytes up to the next `delimiter` and it: how many, *bytes is the first one's address. At the end of the
 * stream: what there is, without a delimiter; then 0. -1 and errno: ENOBUFS (`size` bytes have come without it; they
 * were not consumed). */
ACO_API ssize_t aco_io_reader_until_at(aco_io_reader_t *reader, char delimiter, char **bytes, const char *location);
#define aco_io_reader_until(reader, delimiter, bytes) aco_io_reader_until_at(reader, delimiter, bytes, ACO_PLACE)

/* Consumes the next line, which ends with "\n" or "\r\n" or the stream: its length without that; *line becomes its text
 * with a 0 after it. After the last line: 0, and *line is NULL. -1 and errno: ENOBUFS, as above; `size` is the most for
 * a line and its end, or 1 less for a last line without an end. */
ACO_API ssize_t aco_io_reader_line_at(aco_io_reader_t *reader, char **line, const char *location);
#define aco_io_reader_line(reader, line) aco_io_reader_line_at(reader, line, ACO_PLACE)

/* As aco_io_read(): what there is, at most `n` bytes; waits only if there is nothing. */
ACO_API ssize_t aco_io_reader_read_at(aco_io_reader_t *reader, void *p, size_t n, const char *location);
#define aco_io_reader_read(reader, p, n) aco_io_reader_read_at(reader, p, n, ACO_PLACE)
/* As aco_io_read_exactly(): n, or fewer at the end of the stream. -1 and errno: *done of the bytes have been consumed
 * and stored; `done` may be NULL. */
ACO_API ssize_t aco_io_reader_read_exactly_at(aco_io_reader_t *reader, void *p, size_t n, size_t *done,
                                              const char *location);
#define aco_io_reader_read_exactly(reader, p, n, done) aco_io_reader_read_exactly_at(reader, p, n, done, ACO_PLACE)

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* Read-only. buffer[0] to buffer[end - 1] have not been written yet. */
typedef struct aco_io_writer_s {
    int fd;
    int aco__is_lent;
    char *buffer; /* NULL: none is lent now */
    size_t size, end;
} aco_io_writer_t;

ACO_API void aco_io_writer_open(aco_io_writer_t *writer, int fd, void *buffer, size_t size);
/* Gives up the buffer and what was not flushed. */
ACO_API void aco_io_writer_close(aco_io_writer_t *writer);

/* Puts `n` bytes into the buffer, which is flushed before if they do not fit. What does not fit into an empty buffer is
 * written at once. 0; or -1 and errno, then nothing of `p` was taken; of more than `size` bytes, perhaps a part. */
ACO_API int aco_io_writer_write_at(aco_io_writer_t *writer, const void *p, size_t n, const char *location);
#define aco_io_writer_write(writer, p, n) aco_io_writer_write_at(writer, p, n, ACO_PLACE)
/* The same for a text as printf() makes it. -1 and errno: also ENOBUFS (`size` bytes are too few for it and a 0), those
 * of vsnprintf(). */
ACO_API int aco_io_writer_print(aco_io_writer_t *writer, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Writes all that is in the buffer. 0; or -1 and errno: what was not written is still there. */
ACO_API int aco_io_writer_flush_at(aco_io_writer_t *writer, const char *location);
#define aco_io_writer_flush(writer) aco_io_writer_flush_at(writer, ACO_PLACE)

ACO__END_C

#endif
