/* A strict reader of JSON (RFC 8259), which walks over a text. */
#include "grpc/json_reader.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 32, MOST_EXPONENT = 400, MOST_WRITTEN = 1 << 20 };

void aco__json_fail(aco__json_t *json, const char *reason)
{
    if (!json->fault)
        json->fault = reason;
}

char aco__json_peek(aco__json_t *json)
{
    json->at += strspn(json->at, " \t\r\n");
    return json->fault ? 0 : *json->at;
}

/* Takes this byte, behind space. Whether it is there. */
static int take(aco__json_t *json, char c)
{
    if (aco__json_peek(json) != c || !c)
        return 0;
    json->at++;
    return 1;
}

/* ---- Strings ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The four digits at `at`; less than 0: there are not so many. */
static int32_t hex4_of(const char *at)
{
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        if (digit_of(at[i]) < 0)
            return -1;
        code = code << 4 | digit_of(at[i]);
    }
    return code;
}

/* Takes what stands behind "\u": one code, or the two of a surrogate pair. Less than 0: a fault. */
static int32_t take_code(aco__json_t *json)
{
    int32_t code = hex4_of(json->at), low;
    json->at += code < 0 ? 0 : 4;
    if (code >> 10 != 0xd800 >> 10)
        return code >> 10 == 0xdc00 >> 10 || !code ? -1 : code;
    low = json->at[0] == '\\' && json->at[1] == 'u' ? hex4_of(json->at + 2) : -1;
    if (low >> 10 != 0xdc00 >> 10)
        return -1;
    json->at += 6;
    return 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
}

static size_t put_utf8(char *to, int32_t code)
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const int first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    *to = (char)(first[n] | code);
    return n;
}

/* Takes one character of a string, perhaps escaped. Stores up to four bytes, and returns how many; 0: a fault. */
static size_t take_character(aco__json_t *json, char to[4])
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *escape;
    int32_t code;
    *to = *json->at;
    if ((unsigned char)*to >= ' ' && *to != '\\') {
        json->at++;
        return 1;
    }
    escape = *to == '\\' && json->at[1] ? strchr(escapes, json->at[1]) : NULL;
    if (escape) {
        *to = meanings[escape - escapes];
        json->at += 2;
        return 1;
    }
    if (*to != '\\' || json->at[1] != 'u') {
        aco__json_fail(json, *to == '\\' ? "there is no such escape" : "a string ends within its line");
        return 0;
    }
    json->at += 2;
    code = take_code(json);
    if (code >= 0)
        return put_utf8(to, code);
    aco__json_fail(json, "this escape is no character");
    return 0;
}

/* Takes a string, of which it stores what has room. Whether all of it had. */
static int take_string(aco__json_t *json, char *text, size_t size)
{
    size_t n = 0, more;
    int has_room = 1;
    char bytes[4];
    if (!take(json, '"'))
        aco__json_fail(json, "a string is due");
    while (!json->fault && *json->at != '"') {
        more = take_character(json, bytes);
        has_room = has_room && more < size - n;
        if (!has_room)
            continue;
        memcpy(text + n, bytes, more);
        n += more;
    }
    text[n] = 0;
    json->at += json->fault ? 0 : 1;
    return has_room;
}

void aco__json_string(aco__json_t *json, char *text, size_t size)
{
    if (!take_string(json, text, size))
        aco__json_fail(json, "this string is too long");
}

/* ---- Numbers and names ---- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes digits, of which there must be some, behind those of `value`. Those that make no difference to a double are
 * left out. The power of ten that the value is to be multiplied by is added to `*exponent`. */
static double take_digits(aco__json_t *json, double value, int are_places, int *exponent)
{
    if (!is_digit(*json->at))
        aco__json_fail(json, "a digit is due");
    for (; is_digit(*json->at); json->at++)
        if (value < 1e18) {
            value = 10 * value + (*json->at - '0');
            *exponent -= are_places;
        } else {
            *exponent += !are_places;
        }
    return value;
}

/* The number behind "e", at most MOST_WRITTEN: more than any text has digits. */
static int take_exponent(aco__json_t *json)
{
    int left_out = 0;
    const int is_less = *json->at == '-';
    double exponent;
    json->at += *json->at == '+' || is_less;
    exponent = take_digits(json, 0, 0, &left_out);
    exponent = exponent < MOST_WRITTEN ? exponent : MOST_WRITTEN;
    return is_less ? -(int)exponent : (int)exponent;
}

static double scaled(double value, int exponent)
{
    double power = 1;
    for (int i = abs(exponent) < MOST_EXPONENT ? abs(exponent) : MOST_EXPONENT; i > 0; i--)
        power *= 10;
    return value == 0 ? 0 : exponent < 0 ? value / power : value * power;
}

double aco__json_number(aco__json_t *json)
{
    const int is_less = take(json, '-');
    int exponent = 0;
    double value = 0;
    if (!is_digit(is_less ? *json->at : aco__json_peek(json)))
        aco__json_fail(json, "a number is due");
    else if (json->at[0] == '0' && is_digit(json->at[1]))
        aco__json_fail(json, "a number begins with 0");
    if (json->fault)
        return 0;
    value = take_digits(json, value, 0, &exponent);
    if (*json->at == '.') {
        json->at++;
        value = take_digits(json, value, 1, &exponent);
    }
    if ((*json->at | 32) == 'e') {
        json->at++;
        exponent += take_exponent(json);
    }
    value = scaled(value, exponent);
    return is_less ? -value : value;
}

static int take_word(aco__json_t *json, const char *word)
{
    const size_t n = strlen(word);
    if (aco__json_peek(json) != *word || strncmp(json->at, word, n) != 0)
        return 0;
    json->at += n;
    return 1;
}

int aco__json_bool(aco__json_t *json)
{
    const int is_true = take_word(json, "true");
    if (!is_true && !take_word(json, "false"))
        aco__json_fail(json, "true or false is due");
    return is_true;
}

/* ---- Objects and arrays ---- */

int aco__json_next(aco__json_t *json, char open, int *count, char key[JSON_KEY])
{
    const char close = open == '{' ? '}' : ']';
    if (!*count && !take(json, open))
        aco__json_fail(json, open == '{' ? "an object is due" : "an array is due");
    if (json->fault || take(json, close))
        return 0;
    if (*count && !take(json, ','))
        aco__json_fail(json, "a comma is due, or the end of the object or array");
    ++*count;
    if (open == '{') {
        (void)take_string(json, key, JSON_KEY);
        if (!take(json, ':'))
            aco__json_fail(json, "a colon is due");
    }
    return !json->fault;
}

static void skip_within(aco__json_t *json, int depth)
{
    const char open = aco__json_peek(json);
    char key[JSON_KEY];
    int count = 0;
    if (open == '"')
        (void)take_string(json, key, sizeof key);
    else if ((open == '{' || open == '[') && depth == MOST_DEPTH)
        aco__json_fail(json, "too many objects and arrays in each other");
    else if (open == '{' || open == '[')
        while (aco__json_next(json, open, &count, key))
            skip_within(json, depth + 1);
    else if (open == '-' || is_digit(open))
        (void)aco__json_number(json);
    else if (!take_word(json, "null") && !take_word(json, "true") && !take_word(json, "false"))
        aco__json_fail(json, "a value is due");
}

void aco__json_skip(aco__json_t *json)
{
    skip_within(json, 0);
}
