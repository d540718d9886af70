#!/usr/bin/python3
"""Lab: where the CPU time of 1 MB over TLS goes, beside Go's server, and what was tried. Server and client (wrk, eight
connections) share two processors; a number is the median of the rounds, in microseconds of the server's CPU time for a
request.

    make bench-http BENCH='--quick --only tls-1m'; python3 bench/lab/tls_megabyte.py [ROUNDS]

Zen 5 beside other builds, OpenSSL 3.0.19, Go 1.26.8, 2026-11-29, nine rounds:

                           user   system   both
    acorn                   266      279    553
    acorn, AES-128-GCM      260      267    534
    Go                      217      342    547

- The two do not do the same work: TLS lets the server choose the cipher. Go's chooses AES-128-GCM. OpenSSL's takes the
  client's first choice, which is AES-256-GCM for clients that use OpenSSL, as wrk does. `openssl speed` encrypts
  records of 16 KiB at 4.8 to 5.1 GB/s by AES-256 and at 5.2 to 5.5 by AES-128.
- Samples of the first row (perf, cpu-clock): kernel 49 %, libcrypto 40 %, libc 4 % (half of it OpenSSL's copy of each
  record into its own buffer), the server and Acorn 4 %, libssl 3 %. So a mend in Acorn can gain 4 %.
- Every send() has one whole record, and none is cut short (strace: 10957 of 10957). So Acorn's own buffer for what the
  kernel does not take is not used, and costs nothing.
- Tried: MSG_MORE for each record but the last one of a body, so that the kernel makes larger segments: 580 instead of
  583 us, 14 rounds. Not kept.
"""
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import building, http_servers  # noqa: E402

BUILD = building.ROOT / "build" / "bench" / "gcc"
TICKS = os.sysconf("SC_CLK_TCK")
OPENSSL = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = default\n[default]\n" \
          "Ciphersuites = TLS_AES_128_GCM_SHA256\n"


def cpu_us(pid):
    """(user, system)"""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [int(ticks) / TICKS * 1e6 for ticks in fields[11:13]]


def wrk(port, seconds):
    """How many requests were answered."""
    said = building.output_of("wrk", "-t1", "-c8", f"-d{seconds}s", f"https://localhost:{port}/1m")
    return int(re.search(r"(\d+) requests in", said)[1])


@contextlib.contextmanager
def started(server, arguments, environment):
    process = subprocess.Popen([server.path, "0", *arguments], env={**server.environment, **environment}, text=True,
                               stderr=subprocess.PIPE)
    try:
        yield process.pid, re.search(r"\d{4,5}", process.stderr.readline())[0]
    finally:
        process.kill()
        process.wait()


def measure(server, arguments, environment):
    with started(server, arguments, environment) as (pid, port):
        wrk(port, 1)
        before = cpu_us(pid)
        requests = wrk(port, 2)
        return [(after - start) / requests for start, after in zip(before, cpu_us(pid))]


def main():
    servers = http_servers.Servers(BUILD)
    with tempfile.NamedTemporaryFile("w", suffix=".cnf") as config:
        config.write(OPENSSL)
        config.flush()
        contenders = {"acorn": (http_servers.ACORN, {}), "Go": (http_servers.GO, {}),
                      "acorn, AES-128-GCM": (http_servers.ACORN, {"OPENSSL_CONF": config.name})}
        found = {name: [] for name in contenders}
        for turn in range(int(sys.argv[1]) if len(sys.argv) > 1 else 9):
            for name in list(contenders)[::-1 if turn % 2 else 1]:
                kind, environment = contenders[name]
                found[name].append(measure(servers.server(kind), servers.arguments(with_tls=True), environment))
    for name, rounds in found.items():
        user, system = (statistics.median(column) for column in zip(*rounds))
        print(f"{name:20} user {user:4.0f}  system {system:4.0f}  both {statistics.median(map(sum, rounds)):4.0f}")


if __name__ == "__main__":
    main()
