#!/usr/bin/env python3
"""http_curl.py FORMS COOKIES: what acorn_http's servers understand of curl, and curl of them: forms, cookies, events.
FORMS and COOKIES are tests/http_forms.c and http_cookies.c, which serve when they have an argument. Exit 77: curl is
not here."""
import contextlib
import email.mime.multipart
import email.mime.text
import http.client
import os
import shutil
import subprocess
import sys
import tempfile

BINARY = bytes(range(1, 256)) * 20 + b"\r\n--\r\n"


@contextlib.contextmanager
def serving(program):
    """The address that it prints."""
    with subprocess.Popen([program, "serve"], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def curl(*words):
    result = subprocess.run(["curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", "20", *words],
                            capture_output=True, check=True)
    return result.stdout


def test_forms(site):
    with open("file.bin", "wb") as file:
        file.write(BINARY)
    got = curl("-F", "a=1", "-F", "name with \"quote\"=\u00e4 b", "-F", "f=@file.bin;type=text/x;filename=x y.bin",
               site)
    fields = got.split(b";", 2)
    assert fields[0] == b"a|-|-|1" and fields[1].endswith("|-|-|\u00e4 b".encode()), got[:200]
    assert fields[2] == b"f|x y.bin|text/x|" + BINARY + b";", fields[2][:200]
    got = curl("-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", "-F", "f=@file.bin", site)
    assert got == b"f|file.bin|application/octet-stream|" + BINARY + b";", got[:200]
    got = curl("--data-urlencode", "a=b&c=d \u00e4", "--data-urlencode", "e=+", "-d", "f", site)
    assert got == "a|-|-|b&c=d \u00e4;e|-|-|+;f|-|-|;".encode(), got
    assert curl("-w", "%{http_code}", "-H", "Content-Type: text/plain", "-d", "a=1", site) == b"415"


def test_python_form(site):
    """The form of Python's library for mail."""
    form = email.mime.multipart.MIMEMultipart("form-data")
    for name in ("one", "two"):
        part = email.mime.text.MIMEText(f"the {name}", "plain", "us-ascii")
        part.add_header("Content-Disposition", "form-data", name=name)
        form.attach(part)
    head, body = form.as_bytes(policy=form.policy.clone(linesep="\r\n", max_line_length=None)).split(b"\r\n\r\n", 1)
    assert b"multipart" in head
    connection = http.client.HTTPConnection(site.removeprefix("http://"), timeout=20)
    connection.request("POST", "/", body, {"Content-Type": form["Content-Type"].replace("\n", "")})
    reply = connection.getresponse()
    assert (reply.status, reply.read()) == (
        200, b'one|-|text/plain; charset="us-ascii"|the one;two|-|text/plain; charset="us-ascii"|the two;')


def test_cookies(site):
    assert curl("-c", "jar", f"{site}/set") == b"set"
    assert curl("-b", "jar", f"{site}/cookie?name=a") == b"1"
    assert curl("-b", "jar", f"{site}/cookie?name=c") == b"none", "Max-Age=0"
    assert curl("-b", "a=x; b=y", f"{site}/cookie?name=b") == b"y"


def test_events(site):
    got = curl("-N", "-D", "-", f"{site}/events")
    assert b"text/event-stream" in got and b"\r\n\r\ndata: one\n\nid: 7\n" in got and got.endswith(b"x\n\n:\n\n")


def main():
    if not shutil.which("curl"):
        print("skipped: curl is not here")
        sys.exit(77)
    forms, cookies = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with serving(forms) as address:
            test_forms(f"http://{address}/")
            test_python_form(f"http://{address}")
        with serving(cookies) as address:
            test_cookies(f"http://{address}")
            test_events(f"http://{address}")
        os.chdir("/")
    print("forms, cookies, events: curl and Python agree")


main()
