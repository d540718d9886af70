#!/usr/bin/env python3
"""http_curl.py FORMS COOKIES COMPRESSION: what acorn_http's servers understand of curl, and curl of them: forms,
cookies, events, compressed replies. The three are tests/http_forms.c, http_cookies.c and http_compression.c, which
serve when they have an argument. Exit 77: curl is not here."""
import contextlib
import email.mime.multipart
import email.mime.text
import gzip
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


def test_compression(site):
    version = curl("--version")
    plain = curl(f"{site}/")
    assert len(plain) == 100000
    codings = [coding for coding, name in (("gzip", b" libz"), ("br", b" brotli")) if name in version]
    protocols = ["--http1.1"] + ["--http2-prior-knowledge"] * (b" HTTP2" in version)
    for coding in codings:
        for protocol in protocols:
            words = ["-D", "head", "-H", f"Accept-Encoding: {coding}", protocol]
            raw = curl(*words, f"{site}/")
            with open("head", "rb") as file:
                head = file.read().lower()
            if b"content-encoding" not in head:
                assert raw == plain, "the library was built without this coding"
                continue
            assert f"content-encoding: {coding}\r\n".encode() in head and len(raw) < 30000, head
            assert b"content-length" not in head and b"vary: accept-encoding" in head, head
            if coding == "gzip":
                assert gzip.decompress(raw) == plain
            for path in "/", "/parts?part=1001", "/parts?part=33&long=1":
                assert curl(*words, "--compressed", f"{site}{path}") == plain, (coding, protocol, path)
            curl(*words, "-I", f"{site}/")
            with open("head", "rb") as file:
                assert f"content-encoding: {coding}\r\n".encode() in file.read().lower()
            assert curl(*words, "-b", "a=1", f"{site}/") == plain, "secrets"
            cut = subprocess.run(["curl", "-s", "--noproxy", "*", *words, "--compressed", f"{site}/short"],
                                 capture_output=True, check=False)
            assert cut.returncode != 0, "a cut reply"


def main():
    if not shutil.which("curl"):
        print("skipped: curl is not here")
        sys.exit(77)
    forms, cookies, compression = map(os.path.abspath, sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with serving(forms) as address:
            test_forms(f"http://{address}/")
            test_python_form(f"http://{address}")
        with serving(cookies) as address:
            test_cookies(f"http://{address}")
            test_events(f"http://{address}")
        with serving(compression) as address:
            test_compression(f"http://{address}")
        os.chdir("/")
    print("forms, cookies, events, compression: curl and Python agree")


main()
