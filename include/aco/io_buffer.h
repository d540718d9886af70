/* Buffered reading and writing of descriptors (aco/io.h) and streams (aco/stream.h). In the library acorn_io.
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
 * Buffers. A reader or a writer uses `size` bytes of the caller's memory, from open to close. With NULL instead the
 * thread lends a buffer, but only while there are bytes in it: a task that waits in an empty reader holds none. Then
 * calls may fail with ENOMEM.
 *
 * Failures. Bytes that have come stay in the reader; bytes that were not written stay in the writer. So after ETIMEDOUT
 * or ECANCELED a call can be made again. Errors are those of aco_io_read() and aco_io_write(), or of the stream, and
 * those named here.
 *
 * A reader or writer is a plain structure that must not be copied while it is open. It does not own its descriptor or
 * stream. One task at a time may use it, on the descriptor's thread. */
#ifndef ACO_IO_BUFFER_H
#define ACO_IO_BUFFER_H

#include "stream.h"

ACO__BEGIN_C

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Read-only. buffer[begin] to buffer[end - 1] have come and are not consumed yet. */
typedef struct aco_io_reader_s {
    int fd;
    int aco__is_lent;
    char *buffer; /* NULL: none is lent now */
    size_t size, begin, end;
    aco_stream_t *stream; /* NULL: the descriptor is read */
} aco_io_reader_t;

/* Begins to read `fd`. `buffer` has `size` bytes, at least 1; NULL: the thread lends it. */
ACO_API void aco_io_reader_open(aco_io_reader_t *reader, int fd, void *buffer, size_t size);
/* The same for a stream. */
ACO_API void aco_io_reader_open_stream(aco_io_reader_t *reader, aco_stream_t *stream, void *buffer, size_t size);
/* Gives up the buffer, and bytes that are not consumed yet. */
ACO_API void aco_io_reader_close(aco_io_reader_t *reader);

/* The pointers that these calls store point into the buffer. They are valid until the next call with the reader. */

/* Waits until the buffer has at least `n` bytes. They are not consumed; *bytes becomes the address of the first.
 * Returns how many bytes there are, fewer than n only at the end of the stream; on error -1 with errno ENOBUFS (`n` is
 * more than `size`). */
ACO_API ssize_t aco_io_reader_peek_at(aco_io_reader_t *reader, size_t n, const char **bytes, const char *location);
#define aco_io_reader_peek(reader, n, bytes) aco_io_reader_peek_at(reader, n, bytes, ACO_PLACE)
/* Consumes `n` bytes, or all if the buffer has fewer. */
ACO_API void aco_io_reader_consume(aco_io_reader_t *reader, size_t n);

/* Consumes the bytes up to the next `delimiter`, and the delimiter; *bytes becomes the address of the first. At the end
 * of the stream it consumes what is left, without a delimiter. Returns how many bytes it has consumed, 0 if none are
 * left; on error -1 with errno ENOBUFS (`size` bytes have come without a delimiter; they are not consumed). */
ACO_API ssize_t aco_io_reader_until_at(aco_io_reader_t *reader, char delimiter, char **bytes, const char *location);
#define aco_io_reader_until(reader, delimiter, bytes) aco_io_reader_until_at(reader, delimiter, bytes, ACO_PLACE)

/* Consumes the next line. It ends with "\n", with "\r\n" or with the stream. *line becomes its text without that end
 * but with a 0 after it; after the last line *line becomes NULL. A line and its end have at most `size` bytes; a last
 * line without an end has at most size - 1. Returns the length of the text, 0 after the last line; on error -1 with
 * errno ENOBUFS (the line is longer; it is not consumed). */
ACO_API ssize_t aco_io_reader_line_at(aco_io_reader_t *reader, char **line, const char *location);
#define aco_io_reader_line(reader, line) aco_io_reader_line_at(reader, line, ACO_PLACE)

/* Reads what there is, at most `n` bytes, as aco_io_read() does. It waits only if there is nothing. */
ACO_API ssize_t aco_io_reader_read_at(aco_io_reader_t *reader, void *p, size_t n, const char *location);
#define aco_io_reader_read(reader, p, n) aco_io_reader_read_at(reader, p, n, ACO_PLACE)
/* Reads `n` bytes, as aco_io_read_exactly() does. *done becomes the number of bytes that were consumed and stored, also
 * on error; `done` may be NULL. Returns n, or fewer at the end of the stream; on error -1 with errno. */
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
    aco_stream_t *stream; /* NULL: the descriptor is written */
} aco_io_writer_t;

ACO_API void aco_io_writer_open(aco_io_writer_t *writer, int fd, void *buffer, size_t size);
ACO_API void aco_io_writer_open_stream(aco_io_writer_t *writer, aco_stream_t *stream, void *buffer, size_t size);
/* Gives up the buffer, and bytes that were not flushed. */
ACO_API void aco_io_writer_close(aco_io_writer_t *writer);

/* Puts `n` bytes into the buffer. If they do not fit, it flushes the buffer first; more than `size` bytes it then
 * writes at once. Returns 0; on error -1 with errno: it has taken nothing from `p`, or of more than `size` bytes
 * perhaps a part. */
ACO_API int aco_io_writer_write_at(aco_io_writer_t *writer, const void *p, size_t n, const char *location);
#define aco_io_writer_write(writer, p, n) aco_io_writer_write_at(writer, p, n, ACO_PLACE)
/* Puts a text as printf() makes it into the buffer. If it does not fit, it flushes the buffer first. Returns 0; on
 * error -1 with errno ENOBUFS (`size` bytes are too few for the text and a 0), or one of vsnprintf(). */
ACO_API int aco_io_writer_print(aco_io_writer_t *writer, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Writes all bytes in the buffer. Returns 0; on error -1 with errno: bytes that were not written are still there. */
ACO_API int aco_io_writer_flush_at(aco_io_writer_t *writer, const char *location);
#define aco_io_writer_flush(writer) aco_io_writer_flush_at(writer, ACO_PLACE)

ACO__END_C

#endif
