/* Lab: what gcc keeps alive across a switch.
 *   gcc -O2 -S -o - clobber.c | less
 * libaco's benchmark holds buffers that are written and never read. An opaque call lets gcc drop them: no call can
 * reach a local array with an address that nobody has. An asm with a memory clobber is a reader of every local for
 * gcc 12, so they stay, and a share stack copies them: of libaco's co_fp_stksz_128() libaco copies 8 bytes, Acorn
 * 168. clang drops them in all forms. Buffers that are read after the switch cost the same in all forms.
 *
 *   form       the switch is                                        gcc 12 keeps the buffer   `counter` is read again
 *   clobber    an asm that clobbers memory                          yes                       yes
 *   fence      an asm between two __atomic_signal_fence()           yes                       yes
 *   operand    an asm with "+m"(*(char (*)[])p), p unknown          no                        no: wrong code
 *   call       a call                                               no                        yes
 *
 * `operand` says that the switch reaches what an unknown pointer may point to. A static variable with an address
 * that nobody has taken is not among that, but another coroutine changes it by its name. So only a call would do,
 * which costs more than the bytes. The memory clobber stays. */
#include <string.h>

static int counter; /* another function changes it */
void change(int by);
void call_switch(void *p);

void change(int by)
{
    counter += by;
}

#define CLOBBER(p) __asm__ volatile("# switch" : : "r"(p) : "memory")
#define FENCE(p)                                                                                                       \
    do {                                                                                                               \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                                       \
        __asm__ volatile("# switch" : : "r"(p));                                                                       \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                                       \
    } while (0)
#define OPERAND(p) __asm__ volatile("# switch" : "+m"(*(char (*)[])(p)))
#define CALL(p) call_switch(p)

#define FORM(name, SWITCH)                                                                                             \
    void name##_buffer(void *p);                                                                                       \
    void name##_buffer(void *p)                                                                                        \
    {                                                                                                                  \
        int buffer[28];                                                                                                \
        memset(buffer, 1, sizeof buffer);                                                                              \
        for (;;)                                                                                                       \
            SWITCH(p);                                                                                                 \
    }                                                                                                                  \
    int name##_counter(void *p);                                                                                       \
    int name##_counter(void *p)                                                                                        \
    {                                                                                                                  \
        counter = 1;                                                                                                   \
        SWITCH(p);                                                                                                     \
        return counter;                                                                                                \
    }

FORM(clobber, CLOBBER)
FORM(fence, FENCE)
FORM(operand, OPERAND)
FORM(call, CALL)
