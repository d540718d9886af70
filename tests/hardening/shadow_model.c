/* shadow_model [-without ADDRESS] [-most N] MAIN PROGRAM [ARGUMENT...]: runs PROGRAM, linked with -no-pie, one
 * instruction at a time and does what an x86-64 processor and Linux do for a program with shadow stacks (CET SS). From
 * main(), at the address MAIN, until it returns, in all threads. The shadow stacks are kept here; in the program
 * nothing is mapped at their addresses, so that whatever else touches them ends it:
 *
 *   call                   pushes the return address; `ret` pops it and compares
 *   rdssp, incssp          as they are
 *   rstorssp, saveprevssp  with tokens: to be found where they say that they are, and used once
 *   map_shadow_stack(), munmap() of such a one; a new thread has its own
 *
 * -without: the instruction at ADDRESS does nothing: a seeded fault. -most: the kernel gives at most N shadow stacks;
 * with 0 it knows of none. Not known: signals, and longjmp() of a C library without -fcf-protection.
 *
 * Exit: the program's status; 3 where the processor would have raised an exception, which is told on stderr, or where
 * shadow stacks are left over at the end. Sources: Intel SDM volume 2; Linux, arch/x86/kernel/shstk.c. */
#include "step.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { MAPS = 256, THREADS = 64, PAGE = 4096, THREADS_WORDS = 1 << 16, PAGES = 1024, SYS_MAP_SHADOW_STACK = 453 };

typedef unsigned long word_t;

static struct map {
    word_t begin, end; /* addresses; nothing is there in the program's memory. 0: free */
    word_t *words;
    int is_threads;
} maps[MAPS];

static struct thread {
    pid_t pid; /* 0: free */
    word_t ssp;
    struct map *own;
    int calls; /* the instruction that is under way is a call */
} threads[THREADS];

static pid_t process;
static word_t without, most = MAPS, rip;

__attribute__((noreturn, format(printf, 1, 2))) static void exception(const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    fprintf(stderr, "shadow_model: at %#lx: ", rip);
    vfprintf(stderr, what, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    kill(process, SIGKILL);
    exit(3);
}

/* ---- Shadow stacks ---- */

static struct map *map_new(word_t sz, int is_threads)
{
    static word_t next = 1ul << 44; /* far from where Linux puts things */
    for (struct map *m = maps; m < maps + MAPS; m++)
        if (!m->begin) {
            *m = (struct map){next, next + sz, calloc(1, sz), is_threads};
            next += sz + PAGE;
            return m;
        }
    return NULL;
}

static void map_free(struct map *m)
{
    free(m->words);
    *m = (struct map){0};
}

static struct map *map_at(word_t address)
{
    for (struct map *m = maps; m < maps + MAPS; m++)
        if (m->begin && address >= m->begin && address < m->end)
            return m;
    return NULL;
}

static word_t live_maps(void)
{
    word_t n = 0;
    for (struct map *m = maps; m < maps + MAPS; m++)
        n += m->begin && !m->is_threads;
    return n;
}

static word_t *at(word_t address)
{
    struct map *m = map_at(address);
    if (!m || address % 8)
        exception("page fault or #GP: %#lx is not a shadow stack's", address);
    return m->words + (address - m->begin) / 8;
}

static void push(struct thread *t, word_t value)
{
    t->ssp -= 8;
    *at(t->ssp) = value;
}

static void restore(struct thread *t, word_t address)
{
    word_t *token = at(address);
    if ((*token & 3) != 1 || (((*token & ~1ul) - 8) & ~7ul) != address)
        exception("#CP: rstorssp: %#lx holds %#lx, no restore token", address, *token);
    *token = t->ssp | 3;
    t->ssp = address;
}

static void save_previous(struct thread *t)
{
    word_t token = *at(t->ssp), old = token & ~3ul;
    if (!(token & 2))
        exception("#GP: saveprevssp: %#lx holds %#lx, no previous-ssp token", t->ssp, token);
    t->ssp += 8;
    *at(old - 8) = old | 1;
}

static void drop(struct thread *t, word_t n)
{
    n &= 255;
    if (n) {
        at(t->ssp);
        at(t->ssp + 8 * (n - 1));
        t->ssp += 8 * n;
    }
}

/* ---- Instructions ---- */

/* 16 bytes of the program's code. */
static const unsigned char *code_at(word_t address)
{
    static struct page {
        word_t address;
        unsigned char bytes[PAGE + 16];
    } pages[PAGES];
    struct page *page = &pages[address / PAGE % PAGES];
    if (page->address != address / PAGE * PAGE) {
        struct iovec here = {page->bytes, sizeof page->bytes},
                     there = {(void *)(address / PAGE * PAGE), sizeof page->bytes};
        page->address = address / PAGE * PAGE;
        /* Fewer bytes where nothing is mapped behind the page. */
        if (process_vm_readv(process, &here, 1, &there, 1, 0) < PAGE)
            fail("process_vm_readv");
    }
    return page->bytes + address % PAGE;
}

typedef unsigned long long reg_t;

static reg_t *reg(struct user_regs_struct *r, unsigned number)
{
    reg_t *const regs[] = {&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi, &r->rdi,
                           &r->r8,  &r->r9,  &r->r10, &r->r11, &r->r12, &r->r13, &r->r14, &r->r15};
    return regs[number];
}

/* The address of a memory operand whose ModRM byte is at `p`; *length becomes its bytes. Without an index register,
 * which nothing of ours has here. */
static word_t operand(struct user_regs_struct *r, const unsigned char *p, unsigned rex, unsigned *length)
{
    unsigned mod = *p >> 6, base = *p & 7;
    int32_t far;
    *length = 1;
    if (base == 4) {
        if (p[1] >> 3 != 4)
            exception("an operand with an index register");
        base = p[1] & 7;
        *length = 2;
    }
    if (mod == 0 && base == 5)
        exception("an operand relative to rip");
    word_t address = *reg(r, base + (rex & 1) * 8);
    if (mod == 1)
        address += (word_t)(signed char)p[(*length)++];
    if (mod == 2) {
        memcpy(&far, p + *length, sizeof far);
        address += (word_t)far;
        *length += 4;
    }
    return address;
}

/* Does an instruction for shadow stacks: its length; 0: it is none. */
static unsigned do_shadow(struct thread *t, struct user_regs_struct *r, const unsigned char *code, int for_nothing)
{
    const unsigned char *p = code;
    unsigned rex = 0, length = 1;
    if (*p++ != 0xf3)
        return 0;
    if ((*p & 0xf0) == 0x40)
        rex = *p++;
    if (*p++ != 0x0f)
        return 0;
    unsigned wide = rex & 8, modrm = p[1], operation = modrm >> 3 & 7, is_register = modrm >= 0xc0;
    reg_t *which = reg(r, (modrm & 7) + (rex & 1) * 8);
    if (*p == 0x1e && operation == 1 && is_register) {
        if (!for_nothing)
            *which = wide ? t->ssp : t->ssp & 0xffffffff;
    } else if (*p == 0xae && operation == 5 && is_register) {
        if (!for_nothing)
            drop(t, *which);
    } else if (*p == 0x01 && modrm == 0xea) {
        if (!for_nothing)
            save_previous(t);
    } else if (*p == 0x01 && operation == 5 && !is_register) {
        word_t address = operand(r, p + 1, rex, &length);
        if (!for_nothing)
            restore(t, address);
    } else {
        return 0;
    }
    return (unsigned)(p - code) + 1 + length;
}

/* Does what the kernel does about shadow stacks: 1; 0: it is something else. */
static int do_syscall(struct user_regs_struct *r)
{
    struct map *m = map_at(r->rdi);
    if (r->rax == SYS_MAP_SHADOW_STACK) {
        word_t sz = (r->rsi + PAGE - 1) / PAGE * PAGE;
        if (r->rdi || r->rdx != 1 || !sz || r->rsi % 8)
            exception("map_shadow_stack(%#llx, %#llx, %#llx) is not what is modelled", r->rdi, r->rsi, r->rdx);
        if (live_maps() >= most || !(m = map_new(sz, 0))) {
            r->rax = (reg_t)(most ? -ENOMEM : -EOPNOTSUPP);
            return 1;
        }
        *at(m->end - 8) = m->end | 1;
        r->rax = m->begin;
        return 1;
    }
    if (r->rax != SYS_munmap || !m)
        return 0;
    if (r->rdi != m->begin || r->rsi != m->end - m->begin)
        exception("munmap() of a part of a shadow stack");
    for (struct thread *t = threads; t < threads + THREADS; t++)
        if (t->pid && t->ssp > m->begin && t->ssp <= m->end)
            exception("munmap() of a shadow stack in use");
    map_free(m);
    r->rax = 0;
    return 1;
}

static int is_prefix(unsigned char byte)
{
    return byte && memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3", byte, 10) != NULL;
}

/* What the next instruction, which the processor will do, does besides. */
static void look(struct thread *t, const struct user_regs_struct *r, const unsigned char *code)
{
    while (is_prefix(*code))
        code++;
    if ((*code & 0xf0) == 0x40)
        code++;
    t->calls = *code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2);
    if (*code == 0xc3 || *code == 0xc2) {
        word_t back = word_at(t->pid, r->rsp), shadow = *at(t->ssp);
        t->ssp += 8;
        if (back != shadow)
            exception("#CP: ret to %#lx, and %#lx is on the shadow stack", back, shadow);
    }
}

static void get(struct thread *t, struct user_regs_struct *r)
{
    if (ptrace(PTRACE_GETREGS, t->pid, NULL, r) != 0)
        fail("PTRACE_GETREGS");
}

/* The thread has done an instruction. Does those that follow and are not the processor's. 1: it has come to `end`. */
static int go_on(struct thread *t, word_t end)
{
    struct user_regs_struct r;
    unsigned length;
    int changed = 0;
    get(t, &r);
    if (t->calls)
        push(t, word_at(t->pid, r.rsp));
    for (;; r.rip += length, changed = 1) {
        const unsigned char *code = code_at(rip = r.rip);
        length = 0;
        if (code[0] == 0x0f && code[1] == 0x05)
            length = do_syscall(&r) ? 2 : 0;
        if (!length)
            length = do_shadow(t, &r, code, rip == without);
        if (!length)
            break;
    }
    if (changed && ptrace(PTRACE_SETREGS, t->pid, NULL, &r) != 0)
        fail("PTRACE_SETREGS");
    if (rip == end)
        return 1;
    look(t, &r, code_at(rip));
    return 0;
}

static struct thread *thread_of(pid_t pid)
{
    struct thread *free_one = NULL;
    for (struct thread *t = threads; t < threads + THREADS; t++) {
        if (t->pid == pid)
            return t;
        if (!t->pid && !free_one)
            free_one = t;
    }
    if (!free_one)
        fail("threads");
    *free_one = (struct thread){.pid = pid, .own = map_new(THREADS_WORDS * 8ul, 1)};
    free_one->ssp = free_one->own->end;
    return free_one;
}

static void run(struct thread *t, int request, int signal)
{
    if (ptrace(request, t->pid, NULL, (void *)(long)signal) != 0 && errno != ESRCH)
        fail("ptrace");
}

int main(int argc, char **argv)
{
    int status, request = PTRACE_SINGLESTEP;
    struct thread *first;
    word_t back;
    for (; argc > 2 && *argv[1] == '-'; argv += 2, argc -= 2)
        *(argv[1][1] == 'w' ? &without : &most) = strtoul(argv[2], NULL, 0);
    if (argc < 3)
        return 2;
    process = load(argv + 2);
    back = enter(process, strtoul(argv[1], NULL, 16));
    if (ptrace(PTRACE_SETOPTIONS, process, NULL, PTRACE_O_TRACECLONE) != 0)
        fail("PTRACE_SETOPTIONS");
    first = thread_of(process);
    push(first, back);
    if (!go_on(first, back))
        run(first, PTRACE_SINGLESTEP, 0);
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0)
            fail("waitpid");
        struct thread *t = thread_of(pid);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (pid == process)
                return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            map_free(t->own);
            t->pid = 0;
        } else if (WSTOPSIG(status) != SIGTRAP || status >> 16) {
            /* A signal, a new thread, or news of one: no instruction ran. */
            int signal = WSTOPSIG(status);
            run(t, request, signal == SIGTRAP || signal == SIGSTOP ? 0 : signal);
        } else {
            if (request == PTRACE_SINGLESTEP && go_on(t, back) && pid == process) {
                if (live_maps())
                    exception("%lu shadow stacks are left over", live_maps());
                request = PTRACE_CONT;
            }
            run(t, request, 0);
        }
    }
}
