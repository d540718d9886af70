"""wrong_callables.py COMPILER INCLUDE FILE: the compiler must refuse FILE, and say for each call of it what the comment
behind the call has, in one line of its own."""
import re
import subprocess
import sys

compiler, include, path = sys.argv[1:]
version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
limit = ["-ferror-limit=0"] if "clang" in version else []
done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", include, *limit, path], capture_output=True,
                      text=True)
said = [line for line in done.stderr.splitlines() if "static assertion failed" in line]
with open(path, encoding="utf-8") as file:
    wanted = re.findall(r"; +// (.*)", file.read())
missing = [message for message in wanted if not any(message in line for line in said)]
for message in missing:
    print("no line says:", message)
print(f"{len(wanted)} messages wanted, {len(missing)} missing")
sys.exit(1 if missing or not wanted or done.returncode == 0 else 0)
