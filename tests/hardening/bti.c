/* Linked by -Wl,--wrap=main,-z,now to a program for AArch64 that is compiled with BTI: a processor that has BTI
 * enforces the program's landing pads from main() to exit(). The dynamic linker would do so if crt1.o and its like were
 * marked as having landing pads. Debian's are not, nor are constructors in libgcc.a, which run before main(). */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINUX_PROT_BTI = 0x10, LINUX_HWCAP2_BTI = 1 << 17 }; /* <asm/mman.h>, <asm/hwcap.h>: not everywhere */

static int protect(struct dl_phdr_info *program, size_t size, void *also)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    for (int i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &program->dlpi_phdr[i];
        uintptr_t at = program->dlpi_addr + segment->p_vaddr, start = at & ~(page - 1);
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
            mprotect((void *)start, at + segment->p_memsz - start, PROT_READ | PROT_EXEC | *(int *)also) != 0) {
            perror("bti.c: mprotect");
            abort();
        }
    }
    return 1; /* the program comes first; what it is linked to is not ours */
}

static void enforce(int bti)
{
    if (getauxval(AT_HWCAP2) & LINUX_HWCAP2_BTI)
        dl_iterate_phdr(protect, &bti);
}

int __real_main(int argc, char **argv, char **environment);
int __wrap_main(int argc, char **argv, char **environment);
int __wrap_main(int argc, char **argv, char **environment)
{
    enforce(LINUX_PROT_BTI);
    return __real_main(argc, argv, environment);
}

__attribute__((destructor)) static void end(void) /* what crtbegin.o and crti.o have run at exit has no pads */
{
    enforce(0);
}
