/* Service configs (docs/grpc.md): each that is wrong is refused, with place and reason in aco_error_message(). */
#include "check.h"

#include "aco/grpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int error_of(const char *config)
{
    const aco_grpc_channel_options_t options = {.service_config = config};
    aco_grpc_channel_t *channel = aco_grpc_channel_new("h:1", &options);
    const int error = channel ? 0 : errno;
    aco_grpc_channel_destroy(channel);
    return error;
}

/* ---- The text ---- */

typedef struct wrong {
    const char *config;
    int line, column;
    const char *reason;
} wrong_t;

static void expect_wrong(const wrong_t *wrong)
{
    char text[256];
    (void)snprintf(text, sizeof text, "service_config, line %d, column %d: %s", wrong->line, wrong->column,
                   wrong->reason);
    CHECK_EQ(error_of(wrong->config), EINVAL);
    if (strstr(aco_error_message(), text))
        return;
    fprintf(stderr, "%s\nis not \"%s\"\nof \"%s\"\n", aco_error_message(), text, wrong->config);
    CHECK(!"the message");
}
#define EXPECT_WRONG(table) \
    do { \
        for (size_t i = 0; i < sizeof(table) / sizeof(table)[0]; i++) \
            expect_wrong(&(table)[i]); \
    } while (0)

static void test_json(void)
{
    static const wrong_t table[] = {
        {"", 1, 1, "an object is due"},
        {"[]", 1, 1, "an object is due"},
        {"{", 1, 2, "a string is due"},
        {"{\"a\"", 1, 5, "a colon is due"},
        {"{\"a\":", 1, 6, "a value is due"},
        {"{\"a\":1", 1, 7, "a comma is due"},
        {"{\"a\":1,}", 1, 8, "a string is due"},
        {"{\"a\":[1,]}", 1, 9, "a value is due"},
        {"{\"a\":tru}", 1, 6, "a value is due"},
        {"{}\n x", 2, 2, "something follows"},
        {"{}{}", 1, 3, "something follows"},
        {"{a:1}", 1, 2, "a string is due"},
        {"{'a':1}", 1, 2, "a string is due"},
        {"{\"a\":01}", 1, 6, "a number begins with 0"},
        {"{\"a\":-}", 1, 7, "a number is due"},
        {"{\"a\":+1}", 1, 6, "a value is due"},
        {"{\"a\":.5}", 1, 6, "a value is due"},
        {"{\"a\":1.}", 1, 8, "a digit is due"},
        {"{\"a\":1e}", 1, 8, "a digit is due"},
        {"{\"a\":1e+}", 1, 9, "a digit is due"},
        {"{\"a\":NaN}", 1, 6, "a value is due"},
        {"{\"a\":\"\n\"}", 1, 7, "a string ends within its line"},
        {"{\"a\":\"b", 1, 8, "a string ends within its line"},
        {"{\"a\":\"\\x\"}", 1, 7, "there is no such escape"},
        {"{\"a\":\"\\", 1, 7, "there is no such escape"},
        {"{\"a\":\"\\u12g4\"}", 1, 9, "this escape is no character"},
        {"{\"a\":\"\\u0000\"}", 1, 13, "this escape is no character"},
        {"{\"a\":\"\\udc00\"}", 1, 13, "this escape is no character"},
        {"{\"a\":\"\\ud800x\"}", 1, 13, "this escape is no character"},
        {"{\"a\":\"\\ud800\\u0041\"}", 1, 13, "this escape is no character"},
        {"{/* no */}", 1, 2, "a string is due"},
    };
    EXPECT_WRONG(table);
    CHECK_EQ(error_of("\t{\r\n \"a\" : [ -0.5E-3, 1e999, \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\", {} ] } "),
             0);
    CHECK_EQ(error_of("{\"a long key, of more bytes than any name that is known, which is cut but read\":0}"), 0);
}

/* So many arrays in each other, in a member that is skipped. */
static int error_at_depth(int depth)
{
    char text[256] = "{\"a\":";
    size_t n = strlen(text);
    memset(text + n, '[', (size_t)depth);
    memset(text + n + depth, ']', (size_t)depth);
    memcpy(text + n + 2 * depth, "}", 2);
    return error_of(text);
}

static void test_sizes(void)
{
    enum { MOST = 1 << 16 };
    char *text = malloc(MOST + 2);
    CHECK(text != NULL);
    CHECK_EQ(error_at_depth(32), 0);
    CHECK_EQ(error_at_depth(33), EINVAL);
    memset(text, ' ', MOST + 1);
    text[0] = '{';
    text[MOST - 1] = '}';
    text[MOST] = 0;
    CHECK_EQ(error_of(text), 0);
    text[MOST] = ' ';
    text[MOST + 1] = 0;
    CHECK_EQ(error_of(text), EINVAL);
    CHECK(strstr(aco_error_message(), "64 KiB") != NULL);
    free(text);
}

/* ---- The fields ---- */

#define CONFIG(fields) "{\"methodConfig\":[{" fields "}]}" /* its fields begin in column 19 */
#define RETRY(attempts, first, longest, growth, statuses) \
    CONFIG("\"retryPolicy\":\n{\"maxAttempts\":" attempts ",\"initialBackoff\":" first ",\n\"maxBackoff\":" longest \
           ",\n\"backoffMultiplier\":" growth ",\n\"retryableStatusCodes\":" statuses "}")

static void test_retry_policy(void)
{
    static const wrong_t table[] = {
        {RETRY("1", "\"1s\"", "\"1s\"", "2", "[14]"), 2, 16, "maxAttempts: a whole number of at least 2 is due"},
        {RETRY("2.5", "\"1s\"", "\"1s\"", "2", "[14]"), 2, 16, "maxAttempts: a whole number"},
        {RETRY("\"2\"", "\"1s\"", "\"1s\"", "2", "[14]"), 2, 16, "maxAttempts: a number is due"},
        {RETRY("2", "\"0s\"", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a time above 0 is due, as \"0.5s\""},
        {RETRY("2", "\"1\"", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a time"},
        {RETRY("2", "\"1ms\"", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a time"},
        {RETRY("2", "\".s\"", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a time"},
        {RETRY("2", "\"s\"", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a time"},
        {RETRY("2", "\"-1s\"", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a time"},
        {RETRY("2", "\"0.1234567891s\"", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a time"},
        {RETRY("2", "1", "\"1s\"", "2", "[14]"), 2, 35, "initialBackoff: a string is due"},
        {RETRY("2", "\"1s\"", "\"x\"", "2", "[14]"), 3, 14, "maxBackoff: a time above 0 is due"},
        {RETRY("2", "\"1s\"", "\"1s\"", "0", "[14]"), 4, 21, "backoffMultiplier: a number of at least 0.001 is due"},
        {RETRY("2", "\"1s\"", "\"1s\"", "-2", "[14]"), 4, 21, "backoffMultiplier: a number"},
        {RETRY("2", "\"1s\"", "\"1s\"", "2", "[]"), 5, 24, "retryableStatusCodes: at least one status is due"},
        {RETRY("2", "\"1s\"", "\"1s\"", "2", "\"ABORTED\""), 5, 24, "retryableStatusCodes: an array is due"},
        {RETRY("2", "\"1s\"", "\"1s\"", "2", "[\"BUSY\"]"), 5, 25, "retryableStatusCodes: there is no such status"},
        {RETRY("2", "\"1s\"", "\"1s\"", "2", "[14,17]"), 5, 28, "retryableStatusCodes: a status is due"},
        {RETRY("2", "\"1s\"", "\"1s\"", "2", "[1e20]"), 5, 25, "retryableStatusCodes: a status is due"},
        {CONFIG("\"retryPolicy\":{\"maxAttempts\":2}"), 1, 33, "initialBackoff: it is missing in this object"},
        {CONFIG("\"retryPolicy\":7"), 1, 33, "retryPolicy: an object is due"},
        {CONFIG("\"hedgingPolicy\":{}"), 1, 35, "hedgingPolicy: calls are not hedged"},
    };
    EXPECT_WRONG(table);
    CHECK_EQ(error_of(RETRY("5e0", "\"315576000000.999999999s\"", "\"0.000000001s\"", "1e300", "[\"OK\",16]")), 0);
    CHECK_EQ(error_of(RETRY("1e17", "\".1s\"", "\"9999999999s\"", "0.001", "[0]")), 0);
}

/* Digits that a double cannot hold neither change a number nor make it one that is none. */
static void test_long_numbers(void)
{
    static const struct {
        const char *begin, digit, *end;
        int error;
    } table[] = {
        {"2.", '0', "", 0},         /* it is whole */
        {"2", '0', "e-1000", 0},    /* it is 2 */
        {"2", '0', "e-1001", EINVAL},
        {"0.", '0', "2e1001", 0},
        {"0.", '0', "1e1001", EINVAL},
        {"2", '0', "", 0},          /* more than 5 is 5 */
        {"1.", '9', "e-1", EINVAL},
    };
    char digits[1001], text[2048];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        memset(digits, table[i].digit, 1000);
        digits[1000] = 0;
        (void)snprintf(text, sizeof text, RETRY("%s%s%s", "\"1s\"", "\"1s\"", "2", "[14]"), table[i].begin, digits,
                       table[i].end);
        CHECK_EQ(error_of(text), table[i].error);
    }
}

static void test_method_config(void)
{
    static const wrong_t table[] = {
        {CONFIG("\"name\":[{\"method\":\"M\"}]"), 1, 27, "name: a method without a service"},
        {CONFIG("\"name\":[{},\n{\"service\":\"\"}]"), 2, 1, "name: this name has a config already"},
        {CONFIG("\"name\":[{\"service\":\"S\"}]},\n{\"name\":[{\"service\":\"S\"}]"), 2, 10, "name: this name"},
        {CONFIG("\"name\":{}"), 1, 26, "name: an array is due"},
        {CONFIG("\"name\":[{\"service\":1}]"), 1, 38, "service: a string is due"},
        {CONFIG("\"waitForReady\":1"), 1, 34, "waitForReady: true or false is due"},
        {CONFIG("\"waitForReady\":null"), 1, 34, "waitForReady: true or false is due"},
        {CONFIG("\"timeout\":\"-1s\""), 1, 29, "timeout: a time is due, as \"0.5s\""},
        {CONFIG("\"timeout\":\"1s\",\"timeout\":\"1s\""), 1, 44, "timeout: it is there twice"},
        {CONFIG("\"maxRequestMessageBytes\":0"), 1, 44, "maxRequestMessageBytes: a number of bytes is due, at least 1"},
        {CONFIG("\"maxResponseMessageBytes\":1.5"), 1, 45, "maxResponseMessageBytes: a number of bytes"},
    };
    EXPECT_WRONG(table);
    CHECK_EQ(
        error_of(CONFIG("\"name\":[{\"service\":\"S\"},{\"service\":\"S\",\"method\":\"M\"},{}],\"timeout\":\"0s\"")),
        0);
    CHECK_EQ(error_of(CONFIG("\"maxRequestMessageBytes\":1e15,\"maxResponseMessageBytes\":4294967296")), 0);
    CHECK_EQ(error_of("{\"methodConfig\":[{},{}]}"), 0);
}

static void test_channel(void)
{
    static const wrong_t table[] = {
        {"{\"retryThrottling\":{\"maxTokens\":0,\"tokenRatio\":1}}", 1, 33, "maxTokens: a whole number of 1 to 1000"},
        {"{\"retryThrottling\":{\"maxTokens\":1001,\"tokenRatio\":1}}", 1, 33, "maxTokens: a whole number of 1"},
        {"{\"retryThrottling\":{\"maxTokens\":1,\"tokenRatio\":0}}", 1, 48, "tokenRatio: a number of at least 0.001"},
        {"{\"retryThrottling\": {\"maxTokens\":1}}", 1, 20, "tokenRatio: it is missing in this object"},
        {"{\"loadBalancingConfig\":[]}", 1, 24, "loadBalancingConfig: none is known: pick_first, round_robin"},
        {"{\"loadBalancingConfig\":[{\"grpclb\":{}}]}", 1, 24, "loadBalancingConfig: none is known"},
        {"{\"loadBalancingConfig\":[{}]}", 1, 27, "loadBalancingConfig: an object with one policy is due"},
        {"{\"loadBalancingPolicy\":\"x\"}", 1, 24, "loadBalancingPolicy: it is not known"},
    };
    static const aco_grpc_policy_t policy = {.timeout = 1};
    aco_grpc_channel_options_t options = {.policies = &policy, .policy_count = 1, .service_config = "{}"};
    EXPECT_WRONG(table);
    CHECK_EQ(error_of("{\"retryThrottling\":{\"maxTokens\":1000,\"tokenRatio\":1e6}}"), 0);
    CHECK_EQ(error_of("{\"loadBalancingConfig\":[{\"x\":{}},{\"pick_first\":{\"shuffleAddressList\":true}}]}"), 0);
    CHECK_EQ(error_of("{\"loadBalancingPolicy\":\"ROUND_ROBIN\"}"), 0);
    CHECK(aco_grpc_channel_new("h:1", &options) == NULL);
    CHECK_EQ(errno, EINVAL);
    options = (aco_grpc_channel_options_t){.service_config = "{\"methodConfig\":[{\"name\":[{\"service\":\"S\"}]}]}"};
    CHECK(aco_grpc_channel_new("no target", &options) == NULL); /* the config is freed, too */
}

int main(void)
{
    test_json();
    test_sizes();
    test_retry_policy();
    test_long_numbers();
    test_method_config();
    test_channel();
    return check_result("grpc_service_config");
}
