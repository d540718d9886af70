#!/usr/bin/env python3
"""signals.py LIBRARY...: preloads acorn_hook and main_in_task.c, so that whole programs run in a hooked task, and looks
at whether signals end their waits: Python's alarms, and SIGTERM for idle servers, those of nginx, squid and tinyproxy
that are installed. Each would wait for ever."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ports import kept_port

LIMIT_S = 60

ALARMS = r'''
import os, select, signal, socket, time
class Ended(Exception):
    pass
def end(number, frame):
    raise Ended
signal.signal(signal.SIGALRM, end)
pair, pipe = socket.socketpair(), os.pipe()
epoll = select.epoll()
waits = [lambda: time.sleep(1000), lambda: select.select([], [], []), lambda: pair[0].recv(1),
         lambda: os.read(pipe[0], 1), lambda: epoll.poll(1000), lambda: select.poll().poll(),
         lambda: signal.siginterrupt(signal.SIGALRM, False) or time.sleep(1000)]
for wait in waits:
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        wait()
    except Ended:
        signal.setitimer(signal.ITIMER_REAL, 0)
        continue
    os._exit(1)
'''


def tinyproxy(folder, port):
    with open(folder + '/conf', 'w', encoding='ascii') as conf:
        conf.write(f'Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 5\n')
    return ['-d', '-c', folder + '/conf']


def nginx(folder, port):
    with open(folder + '/conf', 'w', encoding='ascii') as conf:
        conf.write(f'daemon off; master_process off; pid {folder}/pid; error_log stderr;\n'
                   f'events {{}} http {{ access_log off; server {{ listen 127.0.0.1:{port}; }} }}\n')
    return ['-c', folder + '/conf', '-p', folder]


def squid(folder, port):
    with open(folder + '/conf', 'w', encoding='ascii') as conf:
        conf.write(f'http_port 127.0.0.1:{port}\npid_filename {folder}/pid\naccess_log none\ncache deny all\n'
                   f'cache_log {folder}/log\nshutdown_lifetime 1 second\n')
    return ['-N', '-f', folder + '/conf']


def await_server(server, port):
    """Until it accepts, and so is idle soon."""
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(('127.0.0.1', port)) == 0:
                return True
    return False


def ends_by_sigterm(name, arguments, environment):
    program = shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/usr/local/sbin')
    if not program:
        print(f'skipped: {name} is not installed')
        return True
    with tempfile.TemporaryDirectory() as folder:
        port = kept_port()
        command = [program, *arguments(folder, port)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as server:
            try:
                is_up = await_server(server, port)
                server.send_signal(signal.SIGTERM)
                server.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                is_up = False
                server.kill()
    print(f'{name}: {"ended" if is_up else "FAILED"}')
    return is_up


def main():
    environment = {**os.environ, 'LD_PRELOAD': ':'.join(sys.argv[1:])}
    alarms = subprocess.run([os.path.realpath(sys.executable), '-S', '-c', ALARMS], env=environment, timeout=LIMIT_S,
                            check=False)
    print(f'alarms: {alarms.returncode}')
    servers = [ends_by_sigterm(arguments.__name__, arguments, environment) for arguments in (tinyproxy, nginx, squid)]
    return 0 if alarms.returncode == 0 and all(servers) else 1


if __name__ == '__main__':
    sys.exit(main())
