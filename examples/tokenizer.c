/* A tokenizer for C: a generator of tokens, with a function for each kind that yields from inside.
 *
 *   tokenizer FILE
 *
 * Between two tokens this tokenizer remembers only the place in its code where it waits. directive() shows it: it needs
 * no flags to know the name of a header or the directive's end. The consumer counts the tokens and lists the functions
 * that the file defines. */
#include "aco.h"
#include "aco/generator.h"

#include <ctype.h>
#include <stdio.h>

#include "aco_assert_override.h"

enum { IDENTIFIER, NUMBER, STRING, CHARACTER, HEADER, PUNCTUATOR, COMMENT, UNKNOWN, KINDS };
static const char *const kind_names[KINDS] = {"identifiers", "numbers",     "strings",  "characters",
                                              "headers",     "punctuators", "comments", "unknown"};

typedef struct token {
    int kind;
    const char *text; /* in the file's text, not terminated */
    size_t length;
} token_t;

/* The text ends in a NUL, at which every loop below stops. */
typedef struct source {
    const char *at;
} source_t;

static int is(const token_t *t, const char *text)
{
    return strlen(text) == t->length && memcmp(text, t->text, t->length) == 0;
}

/* Yields what stands from the present place up to `end`. */
static void token(aco_yielder_t *y, source_t *s, int kind, const char *end)
{
    token_t t = {kind, s->at, (size_t)(end - s->at)};
    s->at = end;
    aco_generate(y, &t);
}

static int begins_identifier(char c)
{
    return c == '_' || isalpha((unsigned char)c);
}

static int continues_identifier(char c)
{
    return c == '_' || isalnum((unsigned char)c);
}

static void identifier(aco_yielder_t *y, source_t *s)
{
    const char *end = s->at;
    while (continues_identifier(*end))
        end++;
    token(y, s, IDENTIFIER, end);
}

/* As the C standard's "preprocessing number", which is more than what numbers look like: 0x1p-3, 1.5e+10f, 10UL. */
static void number(aco_yielder_t *y, source_t *s)
{
    const char *end = s->at + 1;
    while (continues_identifier(*end) || *end == '.' || ((*end == '+' || *end == '-') && strchr("eEpP", end[-1])))
        end++;
    token(y, s, NUMBER, end);
}

/* The end of what stands between two quotes. */
static const char *quoted(const char *from)
{
    const char *end = from + 1;
    while (*end && *end != '\n' && *end != *from)
        end += end[0] == '\\' && end[1] ? 2 : 1;
    return *end == *from ? end + 1 : end;
}

static void string(aco_yielder_t *y, source_t *s)
{
    token(y, s, STRING, quoted(s->at));
}

static void character(aco_yielder_t *y, source_t *s)
{
    token(y, s, CHARACTER, quoted(s->at));
}

static void comment(aco_yielder_t *y, source_t *s)
{
    const char *end = s->at[1] == '*' ? strstr(s->at + 2, "*/") : s->at + strcspn(s->at, "\n");
    token(y, s, COMMENT, !end ? s->at + strlen(s->at) : *end == '*' ? end + 2 : end);
}

static void punctuator(aco_yielder_t *y, source_t *s)
{
    static const char *const several[] = {
        "%:%:", "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
        "*=",   "/=",  "%=",  "+=",  "-=", "&=", "^=", "|=", "##", "<:", ":>", "<%", "%>", "%:"};
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        if (strncmp(s->at, several[i], strlen(several[i])) == 0) {
            token(y, s, PUNCTUATOR, s->at + strlen(several[i]));
            return;
        }
    token(y, s, strchr("[](){}.&*+-~!/%<>^|?:;=,#", *s->at) ? PUNCTUATOR : UNKNOWN, s->at + 1);
}

/* Skips blanks; line ends as well, or only those that a backslash takes away. */
static void blanks(source_t *s, const char *which)
{
    for (;;) {
        s->at += strspn(s->at, which);
        if (s->at[0] != '\\' || s->at[1] != '\n')
            return;
        s->at += 2;
    }
}

static void any(aco_yielder_t *y, source_t *s)
{
    if (begins_identifier(*s->at))
        identifier(y, s);
    else if (isdigit((unsigned char)s->at[0]) || (s->at[0] == '.' && isdigit((unsigned char)s->at[1])))
        number(y, s);
    else if (*s->at == '"')
        string(y, s);
    else if (*s->at == '\'')
        character(y, s);
    else if (s->at[0] == '/' && (s->at[1] == '/' || s->at[1] == '*'))
        comment(y, s);
    else
        punctuator(y, s);
}

/* #include <header>, or all tokens up to the end of the line. */
static void directive(aco_yielder_t *y, source_t *s)
{
    punctuator(y, s);
    blanks(s, " \t");
    int includes = strncmp(s->at, "include", 7) == 0 && !continues_identifier(s->at[7]);
    if (includes) {
        identifier(y, s);
        blanks(s, " \t");
        size_t length = *s->at == '<' ? strcspn(s->at, ">\n") : 0;
        if (length && s->at[length] == '>')
            token(y, s, HEADER, s->at + length + 1);
    }
    for (blanks(s, " \t"); *s->at && *s->at != '\n'; blanks(s, " \t"))
        any(y, s);
}

ACO_GENERATOR(tokens, y, text)
{
    static const char white[] = " \t\n\r\f\v";
    source_t s = {text};
    for (blanks(&s, white); *s.at; blanks(&s, white))
        if (*s.at == '#') /* this loop sees one at the beginning of a line only: directive() takes the line */
            directive(y, &s);
        else
            any(y, &s);
}

/* Tells from the tokens outside of all braces which functions are defined: NAME ( … ) {. */
typedef struct outline {
    int depth; /* of brackets of all kinds */
    token_t before, name;
} outline_t;

static void outline_add(outline_t *o, const token_t *t)
{
    if (t->kind == COMMENT)
        return;
    if (o->depth == 0 && is(t, "(") && o->before.kind == IDENTIFIER)
        o->name = o->before;
    if (o->depth == 0 && is(t, "{") && is(&o->before, ")"))
        printf("  %.*s()\n", (int)o->name.length, o->name.text);
    if (t->kind == PUNCTUATOR && t->length == 1)
        o->depth += strchr("([{", *t->text) ? 1 : strchr(")]}", *t->text) ? -1 : 0;
    o->before = *t; /* a copy: the token itself is the generator's */
}

static void survey(char *text)
{
    long counts[KINDS] = {0};
    const char *end = text;
    outline_t o = {.before = {KINDS, "", 0}};
    aco_generator_t g;
    assert(aco_generator_open(&g, tokens, text, NULL) == 0);
    while (aco_generator_next(&g)) {
        const token_t *t = g.value;
        while (end < t->text) /* nothing but blanks is left out */
            assert(strchr(" \t\n\r\f\v\\", *end++));
        end = t->text + t->length;
        counts[t->kind]++;
        outline_add(&o, t);
    }
    aco_generator_close(&g);
    assert(end[strspn(end, " \t\n\r\f\v\\")] == '\0');
    for (int kind = 0; kind < KINDS; kind++)
        printf("%6ld %s\n", counts[kind], kind_names[kind]);
    printf("brackets left open: %d\n", o.depth);
}

/* The file's contents and a NUL; the caller frees them. */
static char *contents(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
    if (text) {
        rewind(file);
        text[fread(text, 1, (size_t)size, file)] = '\0';
    }
    if (file)
        fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    char *text = argc == 2 ? contents(argv[1]) : NULL;
    if (!text) {
        fprintf(stderr, argc == 2 ? "tokenizer: %s: cannot be read\n" : "usage: %s FILE\n", argv[argc == 2]);
        return 2;
    }
    survey(text);
    free(text);
    return 0;
}
