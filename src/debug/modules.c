/* The program and its libraries in memory, and the names of their functions: of all that the file has symbols for,
 * which dladdr() does not know. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#define _FILE_OFFSET_BITS 64
#include "debug/modules.h"
#include "system/system.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SYMBOLS = 4 << 20, MOST_BYTES = 512 << 20 };

typedef struct function_symbol {
    uintptr_t at, size;
    uint32_t name; /* in the names */
} function_symbol_t;

typedef struct aco__symbols {
    function_symbol_t *at;
    size_t n;
    char *names;
    size_t names_size;
} symbols_t;

/* ---- What is in memory ---- */

static void read_build_id(aco__module_t *module, const struct dl_phdr_info *info, const ElfW(Phdr) * part)
{
    const char *p = (const char *)(info->dlpi_addr + part->p_vaddr), *end = p + part->p_memsz;
    while (p + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const void *)p;
        const char *name = p + sizeof *note, *id = name + ((note->n_namesz + 3) & ~3u);
        size_t n = note->n_descsz < (ACO__BUILD_ID_TEXT - 1) / 2 ? note->n_descsz : (ACO__BUILD_ID_TEXT - 1) / 2;
        if (id + note->n_descsz > end)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            // cppcheck-suppress knownConditionTrueFalse ; the note is memory that it does not know
            for (size_t i = 0; i < n; i++)
                snprintf(module->build_id + 2 * i, 3, "%02x", (unsigned)(unsigned char)id[i]);
            return;
        }
        p = id + ((note->n_descsz + 3) & ~3u);
    }
}

/* The file that is mapped at `at`, of which the loader may know a name that was relative to another folder; the
 * kernel's own library has none. NULL: unknown. */
static char *mapped_path(uintptr_t at)
{
    char line[4096 + 128], *path = NULL;
    FILE *maps = aco__system.fopen("/proc/self/maps", "re");
    while (maps && !path && fgets(line, sizeof line, maps)) {
        char *end;
        uintptr_t from = (uintptr_t)strtoull(line, &end, 16), to = *end ? (uintptr_t)strtoull(end + 1, &end, 16) : 0;
        char *name = strchr(line, '/');
        if (at < from || at >= to || !name)
            continue;
        name[strcspn(name, "\n")] = 0;
        path = strdup(name);
    }
    if (maps)
        (void)fclose(maps);
    return path;
}

static char *path_of(const struct dl_phdr_info *info, uintptr_t from)
{
    char path[4096];
    ssize_t n;
    if (info->dlpi_name && info->dlpi_name[0]) {
        char *mapped = info->dlpi_name[0] == '/' ? NULL : mapped_path(from);
        return mapped ? mapped : strdup(info->dlpi_name);
    }
    n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return strdup("");
    path[n] = 0;
    return strdup(path);
}

static int add_module(struct dl_phdr_info *info, size_t sz, void *arg)
{
    aco__modules_t *modules = arg;
    (void)sz;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        aco__module_t *module;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        if (modules->n == modules->room) {
            size_t room = modules->room ? 2 * modules->room : 32;
            aco__module_t *at = realloc(modules->at, room * sizeof *at);
            if (!at)
                return 1;
            modules->at = at;
            modules->room = room;
        }
        module = &modules->at[modules->n];
        *module = (aco__module_t){0};
        module->bias = info->dlpi_addr;
        module->from = info->dlpi_addr + part->p_vaddr;
        module->to = module->from + part->p_memsz;
        module->offset = part->p_offset;
        module->path = path_of(info, module->from);
        if (!module->path)
            return 1;
        for (int k = 0; k < info->dlpi_phnum; k++)
            if (info->dlpi_phdr[k].p_type == PT_NOTE && !module->build_id[0])
                read_build_id(module, info, &info->dlpi_phdr[k]);
        modules->n++;
    }
    return 0;
}

void aco__modules_read(aco__modules_t *modules)
{
    *modules = (aco__modules_t){0};
    dl_iterate_phdr(add_module, modules);
}

void aco__modules_free(aco__modules_t *modules)
{
    for (size_t i = 0; i < modules->n; i++) {
        free(modules->at[i].path);
        if (modules->at[i].symbols) {
            free(modules->at[i].symbols->at);
            free(modules->at[i].symbols->names);
            free(modules->at[i].symbols);
        }
    }
    free(modules->at);
    *modules = (aco__modules_t){0};
}

aco__module_t *aco__module_of(aco__modules_t *modules, const void *address)
{
    for (size_t i = 0; i < modules->n; i++)
        if ((uintptr_t)address >= modules->at[i].from && (uintptr_t)address < modules->at[i].to)
            return &modules->at[i];
    return NULL;
}

/* ---- What is in the file ---- */

/* `n` bytes of the file in new memory; NULL: they are not there. */
static void *file_part(int fd, uint64_t offset, uint64_t n)
{
    char *p;
    uint64_t done = 0;
    if (!n || n > MOST_BYTES || (p = calloc(1, (size_t)n)) == NULL)
        return NULL;
    while (done < n) {
        ssize_t got = aco__system.pread(fd, p + done, (size_t)(n - done), (int64_t)(offset + done));
        if (got <= 0) {
            free(p);
            return NULL;
        }
        done += (uint64_t)got;
    }
    return p;
}

static int compare_functions(const void *a, const void *b)
{
    const function_symbol_t *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Takes the functions of a table of symbols, sorted. */
static void take_functions(symbols_t *symbols, const ElfW(Sym) * table, size_t n)
{
    symbols->at = malloc(n * sizeof *symbols->at);
    if (!symbols->at)
        return;
    for (size_t i = 0; i < n; i++) {
        int type = table[i].st_info & 15;
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || !table[i].st_value || table[i].st_shndx == SHN_UNDEF ||
            table[i].st_name >= symbols->names_size)
            continue;
        symbols->at[symbols->n].at = (uintptr_t)table[i].st_value;
        symbols->at[symbols->n].size = (uintptr_t)table[i].st_size;
        symbols->at[symbols->n++].name = table[i].st_name;
    }
    if (symbols->n)
        qsort(symbols->at, symbols->n, sizeof *symbols->at, compare_functions);
}

/* The section of this type, or NULL. */
static const ElfW(Shdr) * section(const ElfW(Shdr) * sections, size_t n, uint32_t type)
{
    for (size_t i = 0; i < n; i++)
        if (sections[i].sh_type == type && sections[i].sh_link < n)
            return &sections[i];
    return NULL;
}

static void read_sections(symbols_t *symbols, int fd, const ElfW(Shdr) * sections, size_t n)
{
    const ElfW(Shdr) *of = section(sections, n, SHT_SYMTAB), *names;
    ElfW(Sym) * table;
    size_t count;
    of = of ? of : section(sections, n, SHT_DYNSYM);
    if (!of || of->sh_size / sizeof *table > MOST_SYMBOLS)
        return;
    names = &sections[of->sh_link];
    count = (size_t)(of->sh_size / sizeof *table);
    table = file_part(fd, of->sh_offset, of->sh_size);
    symbols->names = file_part(fd, names->sh_offset, names->sh_size);
    symbols->names_size = (size_t)names->sh_size;
    if (table && symbols->names) {
        symbols->names[symbols->names_size - 1] = 0;
        take_functions(symbols, table, count);
    }
    free(table);
}

static void read_symbols(symbols_t *symbols, int fd)
{
    ElfW(Ehdr) head;
    ElfW(Shdr) * sections;
    if (aco__system.pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof *sections)
        return;
    sections = file_part(fd, head.e_shoff, (uint64_t)head.e_shnum * sizeof *sections);
    if (sections)
        read_sections(symbols, fd, sections, head.e_shnum);
    free(sections);
}

/* The module's symbols, read once. */
static const symbols_t *symbols_of(aco__module_t *module)
{
    int fd;
    if (module->was_read)
        return module->symbols;
    module->was_read = 1;
    fd = module->path[0] == '/' ? aco__system.open(module->path, O_RDONLY | O_CLOEXEC) : -1; /* else: any file's name */
    if (fd < 0)
        return NULL;
    module->symbols = calloc(1, sizeof *module->symbols);
    if (module->symbols)
        read_symbols(module->symbols, fd);
    aco__system.close(fd);
    return module->symbols;
}

const char *aco__function_at(aco__module_t *module, const void *address, uintptr_t *start)
{
    const symbols_t *symbols = module ? symbols_of(module) : NULL;
    uintptr_t at = module ? (uintptr_t)address - module->bias : 0;
    size_t low = 0, high = symbols ? symbols->n : 0;
    while (low < high) { /* the first symbol beyond */
        size_t middle = low + (high - low) / 2;
        if (symbols->at[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || (symbols->at[low - 1].size && at - symbols->at[low - 1].at >= symbols->at[low - 1].size))
        return NULL;
    *start = symbols->at[low - 1].at + module->bias;
    return symbols->names + symbols->at[low - 1].name;
}
