#!/usr/bin/env python3
"""live_page.py [--check]: makes src/debug/live.c of src/debug/live.html, a page that needs nothing else: its text, and
the hash of its script for the Content-Security-Policy. With --check only says whether live.c is up to date."""
import base64
import hashlib
import pathlib
import re
import sys

MOST = 106
FOLDER = pathlib.Path(__file__).parent.parent / 'src/debug'

C = r'''/* The live page. Made by tools/live_page.py of live.html: change that. */
#include "debug/live.h"

#include <string.h>

static const char live_policy[] = "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; "
                                  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                                  "script-src 'sha256-%(hash)s'";

static const char *const live_lines[] = {
%(lines)s
};

ACO__SWITCHES void aco__live_page(aco_http_request_t *request, void *unused)
{
    aco__page_t page = {0};
    (void)unused;
    for (size_t i = 0; i < sizeof live_lines / sizeof *live_lines; i++)
        aco__page_add(&page, live_lines[i], strlen(live_lines[i]));
    (void)aco_http_reply_header(request, "Content-Security-Policy", live_policy);
    aco__page_reply(request, "text/html; charset=utf-8", &page);
}
'''


def escaped(text):
    return text.replace('\\', '\\\\').replace('"', '\\"').replace('??', '?\\?')


def literal(line):
    """In lines of at most 120 columns."""
    parts = [line[i:i + MOST] for i in range(0, len(line), MOST)] or ['']
    return '\n'.join(f'    "{escaped(part)}' + ('\\n",' if i + 1 == len(parts) else '",')
                     for i, part in enumerate(parts))


def main():
    text = (FOLDER / 'live.html').read_text(encoding='utf-8')
    script = re.search(r'<script>(.*)</script>', text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    made = C % {'hash': digest, 'lines': '\n'.join(literal(line) for line in text.splitlines())}
    path = FOLDER / 'live.c'
    if '--check' not in sys.argv[1:]:
        path.write_text(made, encoding='utf-8')
    elif path.read_text(encoding='utf-8') != made:
        print('src/debug/live.c is not up to date: run tools/live_page.py')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
