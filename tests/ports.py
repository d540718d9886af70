"""Ports for servers that cannot say which one they have got."""
import socket
import sys

KEPT = []


def kept_port():
    """A port of 127.0.0.1 where nobody listens. Until this process ends the system gives it to no other socket, but a
    server that sets SO_REUSEADDR can listen there: a socket that does not listen is bound to it."""
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(('127.0.0.1', 0))
    port = door.getsockname()[1]
    if sys.platform == 'linux':
        KEPT.append(door)
    else:  # elsewhere nobody can listen beside it
        door.close()
    return port
