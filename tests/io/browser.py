#!/usr/bin/env python3
"""browser.py SERVER [CHROMIUM]: HTTP/2 by TLS of acorn_http as a browser meets it: CHROMIUM shows browser.html, which
SERVER (tests/http2_browser.c) serves. Its script asks for much at once, leaves early and talks by WebSocket, and tells
what was wrong. Exit 77: there is no Chromium."""
import pathlib
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).with_name('browser.html')
LIMIT_S = 120


def main():
    server, chromium = (sys.argv[1:] + [''])[:2]
    if not chromium:
        print('skipped: there is no Chromium')
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, \
         subprocess.Popen([server, PAGE], stdout=subprocess.PIPE, text=True) as served:
        site = f'https://{served.stdout.readline().strip()}/'
        with open(f'{folder}/log', 'w', encoding='utf-8') as log, \
             subprocess.Popen([chromium, '--headless', '--no-sandbox', '--disable-gpu', '--ignore-certificate-errors',
                               '--no-proxy-server', f'--user-data-dir={folder}/profile', '--enable-logging=stderr',
                               '--remote-debugging-port=0', site], stdout=log, stderr=log) as browser:
            try:
                said, _ = served.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                served.kill()
                said = 'it does not end'
            browser.terminate()
        said = said.strip()
        print(said if said == 'passed' else said + '\n' + pathlib.Path(folder, 'log').read_text(encoding='utf-8'))
    return said != 'passed'


if __name__ == '__main__':
    sys.exit(main())
