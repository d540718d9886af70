#!/usr/bin/env python3
"""http_nginx.py COMPRESSION: replies of aco_http_compress() and aco_http_reply_file() beside those of nginx for the
same files and requests: gzip, Vary, ETag, ranges, conditions. COMPRESSION is tests/http_compression.c, which serves a
folder when it has arguments. What differs, and may, is in `differs()`. Exit 77: nginx is not here."""
import contextlib
import gzip
import http.client
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ports import kept_port

LIMIT_S = 30
TEXT = b"".join(b"%d is a number of a text, and not the last one.\n" % i for i in range(2000))
FILES = {"text.txt": TEXT, "page.html": b"<p>" + TEXT, "code.js": TEXT[:5000], "small.txt": b"small", "empty.txt": b"",
         "data.bin": TEXT, "picture.png": TEXT, "exact.txt": b"x" * 1024, "below.txt": b"x" * 1023}
ACCEPTED = [None, "gzip", "GZIP", "gzip;q=0", "gzip;q=0.000", "gzip;q=0.5, deflate", "deflate", "identity", "*",
            "*;q=0", "gzip, *;q=0", " deflate ,gzip ; q=1.0", "x-gzip", "gzipped", ""]
RANGES = ["bytes=0-99", "bytes=-5", "bytes=500000-", "bytes=9-3", "lines=1-2"]
CONFIGURATION = """
daemon off; worker_processes 1; master_process off; pid {folder}/pid; error_log {folder}/error crit;
events {{ worker_connections 64; }}
http {{
    types {{ text/plain txt; text/html html; text/javascript js; image/png png; }}
    default_type application/octet-stream; access_log off; max_ranges 1;
    {temporary}
    gzip on; gzip_min_length 1024; gzip_vary on; gzip_http_version 1.0; gzip_proxied any;
    gzip_types text/plain text/javascript;
    server {{ listen 127.0.0.1:{port}; location /files/ {{ alias {folder}/files/; }} }}
}}
"""


@contextlib.contextmanager
def ours(program, folder):
    with subprocess.Popen([program, "serve", f"{folder}/files"], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline().strip().rsplit(":", 1)[1])
        finally:
            process.kill()


@contextlib.contextmanager
def nginx(folder):
    port = kept_port()
    temporary = "".join(f"{name}_temp_path {folder}/temporary; "
                        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(f"{folder}/nginx.conf", "w", encoding="ascii") as file:
        file.write(CONFIGURATION.format(folder=folder, port=port, temporary=temporary))
    with subprocess.Popen([NGINX, "-p", folder, "-e", f"{folder}/error", "-c", f"{folder}/nginx.conf"]) as process:
        try:
            while process.poll() is None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
            assert process.poll() is None, "nginx does not run"
            yield port
        finally:
            process.kill()


def ask(port, method, path, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body


def told(reply, body, method):
    """What a client or a cache makes of the reply."""
    coding, tag = reply.getheader("Content-Encoding"), reply.getheader("ETag") or ""
    if reply.status >= 400:
        return {"status": reply.status, "range": reply.getheader("Content-Range")}
    return {
        "status": reply.status,
        "coding": coding,
        "vary": (reply.getheader("Vary") or "").lower(),
        "tag": re.sub(r'".+"', "tag", tag),
        "length": reply.getheader("Content-Length") is not None and reply.status != 304,
        "ranges": reply.getheader("Accept-Ranges"),
        "range": reply.getheader("Content-Range"),
        "changed": reply.getheader("Last-Modified"),
        "body": gzip.decompress(body) if coding == "gzip" and method != "HEAD" else body,
    }


def differs(theirs, here, headers):
    """What differs without a reason."""
    what = {key for key in theirs.keys() | here.keys() if theirs.get(key) != here.get(key)}
    statuses = theirs["status"], here["status"]
    if here["status"] in (206, 304):
        what.discard("ranges")  # nginx says it with 200 only
        if here["vary"]:
            what.discard("vary")  # also of files that are too short to be compressed: more than nginx says, never less
    if statuses == (304, 304):
        what.discard("tag")  # weak if the client takes gzip, also of short files: 304 compares weakly
    if headers.get("Accept-Encoding") == "*" and here.get("coding") == "gzip":
        return what - {"coding", "length", "ranges", "tag"}  # nginx does not know it
    if "Range" in headers and here["status"] in (206, 416) and theirs.get("coding") == "gzip":
        return set()  # a part of a file is sent as it is; nginx ignores the range, and compresses all of it
    if statuses == (200, 416) and here["range"] == "bytes */0":
        return set()  # nothing of an empty file can be asked for (RFC 9110, 14.1.2)
    if headers.get("Range") == "bytes=9-3" and statuses == (416, 200):
        return set()  # it is wrong, so it is ignored (RFC 9110, 14.2)
    return what


def compare(ports, method, path, *lists):
    """The same request to both, with headers that may have to be their own (tags)."""
    both = [told(*ask(port, method, path, headers), method) for port, headers in zip(ports, lists)]
    what = differs(*both, lists[0])
    if not what:
        return 0
    print(method, path, lists[0], {key: [str(one.get(key))[:60] for one in both] for key in sorted(what)})
    return 1


def test_all(ports):
    wrong = 0
    for name in [*FILES, "none.txt"]:
        path = f"/files/{name}"
        for method in ("GET", "HEAD"):
            for accepted in ACCEPTED:
                wrong += compare(ports, method, path, *[{"Accept-Encoding": accepted}] * 2)
        for asked in RANGES:
            for accepted in (None, "gzip"):
                wrong += compare(ports, "GET", path, *[{"Accept-Encoding": accepted, "Range": asked}] * 2)
        if name == "none.txt":
            continue
        for accepted in (None, "gzip"):  # the tag of this reply, in conditions of the next request
            first = [ask(port, "GET", path, {"Accept-Encoding": accepted})[0] for port in ports]
            tags = [reply.getheader("ETag") for reply in first]
            date = first[0].getheader("Last-Modified")
            for condition, values in (("If-None-Match", tags), ("If-None-Match", ['"other"'] * 2),
                                      ("If-None-Match", ["*"] * 2), ("If-Modified-Since", [date] * 2),
                                      ("If-Match", ['"other"'] * 2), ("If-Unmodified-Since", [date] * 2)):
                wrong += compare(ports, "GET", path, *[{"Accept-Encoding": accepted, condition: value}
                                                       for value in values])
            wrong += compare(ports, "GET", path, *[{"Range": "bytes=0-9", "If-Range": tag} for tag in tags])
    assert not wrong, f"{wrong} replies differ"


NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
if not NGINX:
    print("skipped: nginx is not here")
    sys.exit(77)
with tempfile.TemporaryDirectory() as root:
    os.chmod(root, 0o755)
    os.mkdir(f"{root}/files")
    for file_name, content in FILES.items():
        with open(f"{root}/files/{file_name}", "wb") as out:
            out.write(content)
    with nginx(root) as nginx_port, ours(os.path.abspath(sys.argv[1]), root) as our_port:
        test_all([nginx_port, our_port])
print("nginx agrees")
