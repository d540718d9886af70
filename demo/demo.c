/* One million coroutines read a text together. Each walks its share word by word, one word for each resume, in turn
 * with all others. Each coroutine's count and hash of words are compared with those of a plain loop.
 *
 *   demo [-n COROUTINES] [FILE ...]       without a file: the system's licence texts
 *
 * Exit status: 0, 1 if a result differs, 2 if there is nothing to read. */
#include "../bench/bench.h"

#include <aco.h>

#include <glob.h>
#include <sys/stat.h>

#define LICENCES "/usr/share/common-licenses/*"
enum { SHARE_AT_LEAST = 640, STACK = 64 << 10, LINE = 256, ENOUGH_TO_MEASURE = 100000 };

/* What is known of a share: filled in by the coroutine that walks it, and by the plain loop. */
typedef struct share {
    uint64_t hash;
    size_t words;
} share_t;

static unsigned char *text; /* its first bytes stand behind its end once more, then a 0: no share needs to wrap */
static size_t text_sz, files;
static size_t shares, share_sz;
static share_t *walked;     /* by the coroutines */

/* ---- Words: runs of letters and digits; every byte of UTF-8 beyond ASCII counts as a letter ---- */

static inline int is_word(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

static inline uint64_t hash_start(void)
{
    return UINT64_C(0xcbf29ce484222325); /* FNV-1a */
}

static inline uint64_t hash_byte(uint64_t hash, unsigned char c)
{
    return (hash ^ c) * UINT64_C(0x100000001b3);
}

/* Share k: the words that begin between these two. The shares of a long text do not overlap, those of a short one do.
 * */
static const unsigned char *share_begin(size_t k)
{
    return text + (size_t)((double)text_sz / (double)shares * (double)k);
}

static const unsigned char *share_end(size_t k)
{
    if (share_sz == SHARE_AT_LEAST)
        return share_begin(k) + SHARE_AT_LEAST;
    return k + 1 < shares ? share_begin(k + 1) : text + text_sz;
}

/* Past the rest of a word that began in the share before. */
static inline const unsigned char *skip_rest(const unsigned char *p)
{
    while (p > text && is_word(p[-1]) && is_word(*p))
        p++;
    return p;
}

/* ---- The coroutine ---- */

static void walk(void)
{
    share_t *share = aco_get_arg();
    size_t k = (size_t)(share - walked), words = 0;
    const unsigned char *p = skip_rest(share_begin(k)), *end = share_end(k);
    uint64_t hash = hash_start();
    for (;;) {
        while (p < end && !is_word(*p))
            p++;
        if (p >= end)
            break;
        for (; is_word(*p); p++)
            hash = hash_byte(hash, *p);
        hash = hash_byte(hash, ' ');
        words++;
        aco_yield();
    }
    share->hash = hash;
    share->words = words;
    aco_exit();
}

/* ---- The plain loop: the same shares byte by byte ---- */

static share_t read_plainly(size_t k)
{
    share_t share = {hash_start(), 0};
    const unsigned char *begin = share_begin(k), *end = share_end(k);
    int before = begin > text && is_word(begin[-1]), counting = 0;
    for (const unsigned char *p = begin; p < end || (counting && is_word(*p)); p++) {
        int now = is_word(*p);
        if (now && !before) {
            counting = 1;
            share.words++;
        }
        if (now && counting)
            share.hash = hash_byte(share.hash, *p);
        if (!now && counting) {
            share.hash = hash_byte(share.hash, ' ');
            counting = 0;
        }
        before = now;
    }
    if (counting)
        share.hash = hash_byte(share.hash, ' ');
    return share;
}

/* ---- Output ---- */

/* 1234567 as 1,234,567; eight results are valid at a time. */
static const char *grouped(size_t n)
{
    static char buffers[8][32];
    static unsigned next;
    char digits[32], *out = buffers[next++ % 8], *o = out;
    int length = snprintf(digits, sizeof digits, "%zu", n);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *o++ = ',';
        *o++ = digits[i];
    }
    *o = 0;
    return out;
}

/* One line that is rewritten on a terminal; elsewhere a line for every quarter. */
static void progress(size_t done, size_t total, size_t alive)
{
    static size_t quarters;
    static double last;
    double now = bench_now();
    if (isatty(STDOUT_FILENO)) {
        if (done < total && now - last < 1e8)
            return;
        last = now;
        printf("\r  walking     %3.0f %%, %s coroutines alive\033[K", 100.0 * (double)done / (double)total,
               grouped(alive));
        if (done == total)
            printf("\r\033[K");
    } else if (done * 4 / total > quarters && done < total) {
        quarters = done * 4 / total;
        printf("  walking     %3.0f %%, %s coroutines alive\n", 100.0 * (double)done / (double)total, grouped(alive));
    }
    fflush(stdout);
}

/* The first words of a share, as its coroutine met them. */
static void print_example(size_t k)
{
    char line[60];
    size_t n = 0;
    for (const unsigned char *p = skip_rest(share_begin(k)); p < share_end(k) && n < sizeof line - 1; p++)
        if (is_word(*p) || (n > 0 && line[n - 1] != ' '))
            line[n++] = is_word(*p) ? (char)*p : ' ';
    line[n] = 0;
    printf("  example     coroutine %s: %zu words, hash %016llx, \"%s...\"\n", grouped(k), walked[k].words,
           (unsigned long long)walked[k].hash, line);
}

/* ---- The text ---- */

static void append_file(const char *name)
{
    struct stat st;
    FILE *f = fopen(name, "rb");
    if (!f || fstat(fileno(f), &st) != 0 || S_ISDIR(st.st_mode)) {
        fprintf(stderr, "demo: %s: %s\n", name, f ? "is a directory" : strerror(errno));
        exit(2);
    }
    for (size_t room = text_sz + 1, got = 1; got > 0; text_sz += got) {
        if (room - text_sz < LINE) {
            room = room * 2 + (size_t)st.st_size + 2 * LINE;
            text = realloc(text, room);
            if (!text) {
                fprintf(stderr, "demo: no memory for %zu bytes of text\n", room);
                exit(2);
            }
        }
        got = fread(text + text_sz, 1, room - text_sz - 1, f);
    }
    text[text_sz++] = '\n'; /* the last word ends here */
    fclose(f);
    files++;
}

static const char *text_name = "as given"; /* for the report */

static void read_licences(void)
{
    glob_t found;
    struct stat st;
    text_name = LICENCES " (make demo TEXT='FILE ...' takes others)";
    if (glob(LICENCES, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (lstat(found.gl_pathv[i], &st) == 0 && S_ISREG(st.st_mode)) /* links name the same texts again */
                append_file(found.gl_pathv[i]);
        globfree(&found);
    }
    if (files == 0) {
        fprintf(stderr, "demo: nothing matches " LICENCES "; give a text: demo FILE\n");
        exit(2);
    }
}

static void prepare_shares(void)
{
    share_sz = text_sz / shares > SHARE_AT_LEAST ? text_sz / shares : SHARE_AT_LEAST;
    unsigned char *longer = realloc(text, text_sz + SHARE_AT_LEAST + 1);
    if (!longer) {
        fprintf(stderr, "demo: no memory for the text\n");
        exit(2);
    }
    text = longer;
    for (size_t i = 0; i < SHARE_AT_LEAST; i++)
        text[text_sz + i] = text[i];
    text[text_sz + SHARE_AT_LEAST] = 0;
}

/* ---- The main job ---- */

/* Memory that counts as used from the start, so that it is not taken for the coroutines'. */
static void *table(size_t n, size_t sz)
{
    void *p = bench_alloc(n * sz);
    memset(p, 0xff, n * sz);
    return p;
}

typedef struct walked {
    size_t words;   /* resumes that consumed one */
    size_t at_once; /* coroutines suspended in the middle of their shares */
    size_t rss;     /* and the memory in use then */
} walked_t;

/* Resumes all in turn until none is left. */
static walked_t walk_all(aco_t **co, size_t total)
{
    walked_t result = {0, 0, 0};
    size_t alive = shares;
    while (alive > 0) {
        size_t still = 0;
        for (size_t i = 0; i < alive; i++) {
            aco_resume(co[i]);
            if (co[i]->is_end)
                aco_destroy(co[i]);
            else
                co[still++] = co[i];
        }
        alive = still;
        if (result.words == 0) {
            result.at_once = alive;
            result.rss = bench_rss();
        }
        result.words += alive;
        progress(result.words, total, alive);
    }
    return result;
}

/* What two walkers copy at a switch: the save area that a million of them should have. */
static size_t bytes_copied(aco_t *main_co, aco_share_stack_t *stack)
{
    size_t copied;
    aco_t *co[2];
    for (int i = 0; i < 2; i++)
        co[i] = aco_create(main_co, stack, 0, walk, &walked[(size_t)i * (shares - 1)]);
    for (int i = 0; i < 4; i++)
        if (!co[i % 2]->is_end)
            aco_resume(co[i % 2]);
    copied = co[0]->save_stack.max_cpsz;
    aco_destroy(co[0]);
    aco_destroy(co[1]);
    return copied;
}

static int check(const share_t *expected)
{
    size_t wrong = 0, first = 0;
    for (size_t k = shares; k-- > 0;)
        if (walked[k].words != expected[k].words || walked[k].hash != expected[k].hash) {
            wrong++;
            first = k;
        }
    if (wrong == 0) {
        printf("  check       OK: all %s word counts and hashes equal the plain loop's\n", grouped(shares));
        return 0;
    }
    printf("  check       FAILED: %s results differ, first that of coroutine %s: %zu words, hash %016llx; plain loop: "
           "%zu, %016llx\n", grouped(wrong), grouped(first), walked[first].words,
           (unsigned long long)walked[first].hash, expected[first].words, (unsigned long long)expected[first].hash);
    return 1;
}

static void describe(size_t words)
{
    printf("Acorn demo: %s coroutines read a text together, word by word, in turn\n", grouped(shares));
    printf("  text        %s bytes in %zu file%s, %s\n", grouped(text_sz), files, files == 1 ? "" : "s", text_name);
    if (share_sz > SHARE_AT_LEAST)
        printf("  slices      %s slices of about %s bytes, side by side; %s words in all\n", grouped(shares),
               grouped(share_sz), grouped(words));
    else
        printf("  slices      %s slices of %d bytes, evenly spread over the text; it is short, so they overlap:\n"
               "              %s words in all\n", grouped(shares), SHARE_AT_LEAST, grouped(words));
}

static int run(void)
{
    share_t *expected = table(shares, sizeof *expected);
    aco_t **co = table(shares, sizeof *co);
    size_t words = 0;
    walked = table(shares, sizeof *walked);
    double start = bench_now();
    for (size_t k = 0; k < shares; k++) {
        expected[k] = read_plainly(k);
        words += expected[k].words;
    }
    double plain = (bench_now() - start) / 1e9;
    if (words == 0) {
        fprintf(stderr, "demo: the text has no words\n");
        return 2;
    }
    describe(words);

    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(STACK);
    size_t copied = bytes_copied(main_co, stack), baseline = bench_rss();
    start = bench_now();
    for (size_t k = 0; k < shares; k++)
        co[k] = aco_create(main_co, stack, copied, walk, &walked[k]);
    double made = (bench_now() - start) / 1e9;
    start = bench_now();
    walked_t all = walk_all(co, words);
    double took = (bench_now() - start) / 1e9, bytes = (double)all.rss - (double)baseline;

    printf("  coroutines  made in %.2f s; %s of them suspended at once, on one stack of %d KiB\n", made,
           grouped(all.at_once), STACK >> 10);
    if (all.at_once >= ENOUGH_TO_MEASURE)
        printf("  memory      %.0f bytes for each by RSS, %.0f MB in all\n", bytes / (double)all.at_once, bytes / 1e6);
    printf("  walk        %s words in %.2f s: %.1f million words per second, %.0f ns for each: resume,\n"
           "              its word, yield, and %zu bytes of stack out and in (a plain loop needs %.2f s)\n",
           grouped(all.words), took, (double)all.words / took / 1e6, took * 1e9 / (double)all.words, copied, plain);
    print_example(shares / 2);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    free(co);
    int result = check(expected);
    free(expected);
    free(walked);
    free(text);
    return result;
}

int main(int argc, char **argv)
{
    int option;
    shares = 1000000;
    while ((option = getopt(argc, argv, "n:")) != -1)
        if (option != 'n' || (shares = strtoul(optarg, NULL, 10)) == 0) {
            fprintf(stderr, "usage: %s [-n COROUTINES] [FILE ...]\n", argv[0]);
            return 2;
        }
    for (int i = optind; i < argc; i++)
        append_file(argv[i]);
    if (files == 0)
        read_licences();
    prepare_shares();
    return run();
}
