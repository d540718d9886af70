"""headers.py: the public C headers keep the rules of docs/architecture.md, "Names and arguments". Prints each
declaration that breaks one. First plants a violation of each rule, which must be found: and no other with it."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

EXCEPTIONS = {
    ("aco_mem_new", "new returns the object"): "libaco's name",
    ("aco_io_reader_until_at", "until takes a deadline"): "it reads until a delimiter",
    ("aco_sleep_at", "no duration in a wait"): "a sleep is one",
    ("aco_sleep_until_at", "until has a plain form"): "that of a sleep has a duration",
    ("aco_process_end_at", "no duration in a wait"): "the time between two signals",
    ("aco_tasks_dump_on", "object first"): "the report's place, not an object",
    ("aco_sim_random", "returns"): "a number of 64 bits; it cannot fail",
    ("aco_sim_seed", "returns"): "the same",
    ("aco_sim_at", "at takes a place, last"): "at a time",
}

DECLARATION = re.compile(
    r"\b(?:ACO_API|ACO__CALL)\b([^;{}()]*(?:\(\([^()]*\)\)[^;{}()]*)?)\b(aco_\w+)"
    r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
NAME = re.compile(r"\(\*(\w+)\)|(\w+)(?:\[\])?$")
MACRO = re.compile(r"^#define (aco_\w+)\(([^()]*)\)((?:.*\\\n)*.*)", re.M)
RETURNS = re.compile(r"(int|void|int64_t|s?size_t|ptrdiff_t|aco_state_t|.*\*)$")
OBJECT = re.compile(r"(const )?aco_(?!.*(options|stats|status|entry|info|usage|config)_t)(\w+_)?t \*\w+$")
DESCRIPTOR = re.compile(r"int (fd|listener)$")
OPTIONS = re.compile(r"aco_(\w+_)?options_t \*")


def split(parameters):
    """At the commas outside of parentheses."""
    depth, all_of_them = 0, [""]
    for letter in parameters:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            all_of_them.append("")
        else:
            all_of_them[-1] += letter
    return [" ".join(one.split()) for one in all_of_them if one.strip() not in ("", "void")]


class Headers:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        self.macros = {}
        for name, parameters, body in MACRO.findall(text):
            self.macros[name] = split(parameters), " ".join(body.replace("\\", " ").split())
        text = re.sub(r"(?m)^[ \t]*#(?:.*\\\n)*.*", "", text)
        self.calls = {}
        for before, name, parameters in DECLARATION.findall(text):
            returns = " ".join(re.sub(r"__attribute__\(\(.*?\)\)", "", before).split())
            self.calls[name] = returns, split(parameters)
        self.structures = dict(
            re.findall(r"typedef struct (aco_\w*(?:options|http_call))_s \{(.*?)\n\} \1_t;", text, re.S))

    def names(self, call):
        """The names of a call's parameters; of a macro's, too. None: there is no such call."""
        if call in self.macros:
            return self.macros[call][0]
        if call in self.calls:
            return [NAME.search(one).group(0).strip("(*)[]") for one in self.calls[call][1]]
        return None


def broken(headers):
    """Yields (call, rule) for each rule that a call breaks."""
    for call, (returns, parameters) in headers.calls.items():
        own = parameters[:-1] if call.endswith("_at") else parameters
        subjects = [one for one in own if OBJECT.match(one)] + [one for one in own if DESCRIPTOR.match(one)]
        if subjects and own[0] not in subjects:
            yield call, "object first"
        if not RETURNS.match(returns):
            yield call, "returns"
        made = re.match(r"(aco_\w+)_new2?$", call)
        if made and returns != made.group(1) + "_t *":
            yield call, "new returns the object"
        options = [i for i, one in enumerate(own) if OPTIONS.search(one)]
        if options and options != [len(own) - 1]:
            yield call, "options last"
        if any(not own[i].startswith("const ") for i in options):
            yield call, "options const"
        if any(not own[i].endswith(" *options") for i in options):
            yield call, "options by name"
        yield from broken_waits(headers, call, parameters, own)
        yield from broken_tries(headers, call, returns)
    for name, fields in headers.structures.items():
        if "aco__reserved" not in fields:
            yield name + "_t", "options can grow"


def broken_waits(headers, call, parameters, own):
    has_place = bool(parameters) and parameters[-1] == "const char *location"
    if has_place != call.endswith("_at"):
        yield call, "at takes a place, last"
    elif has_place:
        short = call[:-len("_at")]
        passing = [
            name for name, (given, body) in headers.macros.items()
            if body == f"{call}({', '.join(given + ['ACO_PLACE'])})" and len(given) == len(own)
        ]
        if headers.names(short) is None or not any(name.startswith(short) for name in passing):
            yield call, "at has a macro"
    if ("int64_t deadline" in parameters) != (own[-1:] == ["int64_t deadline"]):
        yield call, "deadline last"
    if re.search("_until(_at)?$", call):
        if own[-1:] != ["int64_t deadline"]:
            yield call, "until takes a deadline"
        elif headers.names(re.sub("_until(_at)?$", "", call)) != headers.names(call)[:len(own) - 1]:
            yield call, "until has a plain form"
    if has_place and any(re.search(r"\b(timeout\w*|\w+_ns|ns)$", one) for one in own):
        yield call, "no duration in a wait"


def broken_tries(headers, call, returns):
    words = call.split("_")
    if any(re.match("try.", word) for word in words):
        yield call, "try is a word"
    elif "try" in words:
        waits = call.replace("try_", "", 1)
        if headers.names(waits) != headers.names(call) or returns != "int":
            yield call, "try has a waiting form"


PLANTED = (  # a header and the rule that it breaks
    ("ACO_API int aco_give(int64_t n, aco_group_t *group);", "object first"),
    ("ACO_API unsigned aco_give(void);", "returns"),
    ("ACO_API int aco_thing_new(size_t n);", "new returns the object"),
    ("ACO_API int aco_give(const aco_give_options_t *options, int n);", "options last"),
    ("ACO_API int aco_give(int n, aco_give_options_t *options);", "options const"),
    ("ACO_API int aco_give(int n, const aco_give_options_t *opts);", "options by name"),
    ("typedef struct aco_give_options_s {\n    int n;\n} aco_give_options_t;", "options can grow"),
    ("typedef struct aco_http_call_s {\n    int n;\n} aco_http_call_t;", "options can grow"),
    ("ACO_API int aco_give(int n, const char *location);", "at takes a place, last"),
    ("ACO_API int aco_give_at(const char *location, int n);", "at takes a place, last"),
    ("ACO_API int aco_give_at(int n, const char *location);", "at has a macro"),
    ("ACO_API int aco_give_at(int n, int m, const char *location);\n"
     "#define aco_give(n, m) aco_give_at(m, n, ACO_PLACE)", "at has a macro"),
    ("ACO_API int aco_give(int64_t deadline, int n);", "deadline last"),
    ("ACO_API int aco_give(int n);\nACO_API int aco_give_until(int n);", "until takes a deadline"),
    ("ACO_API int aco_give_until(int n, int64_t deadline);", "until has a plain form"),
    ("ACO_API int aco_give(int m);\nACO_API int aco_give_until(int n, int64_t deadline);", "until has a plain form"),
    ("ACO_API int aco_give_at(int n, int64_t timeout_ns, const char *location);\n"
     "#define aco_give(n, timeout_ns) aco_give_at(n, timeout_ns, ACO_PLACE)", "no duration in a wait"),
    ("ACO_API int aco_trygive(int n);", "try is a word"),
    ("ACO_API int aco_try_give(int n);", "try has a waiting form"),
    ("ACO_API int aco_give(int n);\nACO_API int aco_try_give(int n, int m);", "try has a waiting form"),
)


def main():
    wrong = []
    for text, rule in PLANTED:
        found = [seen for _, seen in broken(Headers(text))]
        if found != [rule]:
            wrong.append(f"planted: {rule}: found {found} in {text}")
    text = ""
    for path in sorted(glob.glob(ROOT + "/include/aco.h") + glob.glob(ROOT + "/include/aco/*.h")):
        with open(path, encoding="utf-8") as file:
            text += file.read()
    headers, excepted = Headers(text), set()
    for found in broken(headers):
        excepted.add(found)
        if found not in EXCEPTIONS:
            wrong.append("%s: %s" % found)
    wrong += ["%s: %s: an exception that is none" % one for one in EXCEPTIONS if one not in excepted]
    print("\n".join(wrong + [f"headers: {len(headers.calls)} calls, {len(headers.structures)} structures of options, "
                             f"{len(wrong)} errors"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
