#!/usr/bin/env python3
"""grpc_peers.py FOLDER SERVER CLIENT GREETER...: acorn_grpc with grpcio as the client of SERVER (tests/grpc_server.c),
as the server of CLIENT (tests/grpc_client.c), and as the client of the greeters of examples/grpc, which their clients
call, too. grpcio comes from PyPI into a virtual environment in FOLDER. Exit 77: it cannot be had."""
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import from_pypi


def raises(code, call):
    try:
        result = call()
        list(result) if hasattr(result, '__next__') else None
    except grpc.RpcError as error:
        assert error.code() == code, error
        return error
    raise AssertionError(f'{code} did not come')


def test_unary(channel):
    echo = channel.unary_unary('/test.Test/Echo')
    for data in b'', b'hello', bytes(1 << 20), os.urandom(300000):
        assert echo(data) == data
    futures = [echo.future(bytes([i])) for i in range(200)]
    assert [future.result() for future in futures] == [bytes([i]) for i in range(200)]


def test_streams(channel):
    chat = channel.stream_stream('/test.Test/Chat')
    call = chat(iter([b'a', b'', b'b' * 100000] * 50))
    assert [len(each) for each in call] == [1, 0, 100000] * 50
    assert dict(call.trailing_metadata())['x-count'] == '150'
    assert list(channel.unary_stream('/test.Test/Many')(b'\xff')) == [b'message'] * 255
    assert list(chat(iter([]))) == []
    # one answer before the next question
    said = threading.Semaphore(0)
    def questions():
        for i in range(20):
            yield bytes([i])
            assert said.acquire(timeout=60)
    for i, each in enumerate(chat(questions())):
        assert each == bytes([i])
        said.release()


def test_ends(channel):
    ended = threading.Event()
    def open_end():
        yield b'x'
        ended.wait(10)
    sleeps = channel.unary_unary('/test.Test/Sleeps')
    raises(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: sleeps(b'', timeout=0.05))
    call = sleeps.future(b'')
    call.cancel()
    call = channel.stream_stream('/test.Test/Chat')(open_end())
    assert next(call) == b'x'
    call.cancel()
    raises(grpc.StatusCode.CANCELLED, lambda: next(call))
    ended.set()
    assert channel.unary_unary('/test.Test/Echo')(b'still') == b'still'


def test_statuses(channel):
    error = raises(grpc.StatusCode.NOT_FOUND, lambda: channel.unary_unary('/test.Test/Fails')(b''))
    assert error.details() == '\t100 % of ☺\n'
    assert dict(error.trailing_metadata())['grpc-status-details-bin'] == b'\0\1'
    raises(grpc.StatusCode.UNIMPLEMENTED, lambda: channel.unary_unary('/test.Test/Nothing')(b''))
    raises(grpc.StatusCode.UNIMPLEMENTED, lambda: channel.unary_unary('/test.Nobody/Echo')(b''))
    raises(grpc.StatusCode.RESOURCE_EXHAUSTED,
           lambda: channel.unary_unary('/test.Test/Echo')(bytes((1 << 20) + 1)))
    raises(grpc.StatusCode.NOT_FOUND, lambda: channel.unary_unary('/grpc.health.v1.Health/Check')(b'\x0a\1x'))
    assert channel.unary_unary('/grpc.health.v1.Health/Check')(b'') == b'\x08\1'
    watch = channel.unary_stream('/grpc.health.v1.Health/Watch')(b'')
    assert next(watch) == b'\x08\1'
    watch.cancel()


def test_metadata(channel):
    sent = (('x-text', 'some text'), ('x-bytes-bin', bytes(range(256))), ('x-bytes-bin', b''))
    response, call = channel.unary_unary('/test.Test/Metadata').with_call(b'm', metadata=sent)
    assert response == b'm'
    assert dict(call.initial_metadata())['x-text'] == 'some text'
    assert [value for name, value in call.trailing_metadata() if name == 'x-bytes-bin'] == [bytes(range(256)), b'']


def test_gzip(channel):
    data = b'text ' * 50000
    for compression in grpc.Compression.Gzip, grpc.Compression.NoCompression:
        assert channel.unary_unary('/test.Test/EchoPacked')(data, compression=compression) == data
        call = channel.stream_stream('/test.Test/Chat')(iter([data, b'', data]), compression=compression)
        assert list(call) == [data, b'', data]
    raises(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: channel.unary_unary('/test.Test/Echo')(
        bytes(2 << 20), compression=grpc.Compression.Gzip))
    raises(grpc.StatusCode.UNIMPLEMENTED, lambda: channel.unary_unary('/test.Test/Echo')(
        data, compression=grpc.Compression.Deflate))


def text(word):
    """A message whose field 1 is this text."""
    return bytes([10, len(word)]) + word.encode()


def test_greeter(channel):
    hello = channel.unary_unary('/helloworld.Greeter/SayHello')
    assert hello(text('you')) == text('Hello you')
    raises(grpc.StatusCode.INVALID_ARGUMENT, lambda: hello(b''))
    assert channel.unary_unary('/grpc.health.v1.Health/Check')(b'') == b'\x08\1'


def test_greeter_in_c(channel):
    hello = channel.unary_unary('/helloworld.Greeter/SayHello')
    for wrong in text('a' * 101), b'\xff', b'\x0a\x05ab':
        raises(grpc.StatusCode.INVALID_ARGUMENT, lambda: hello(wrong))
    assert hello(text('a' * 100)) == text('Hello ' + 'a' * 100)


def test_greeter_of_protoc(channel):
    names = [text('you'), text('all')]
    assert list(channel.unary_stream('/helloworld.Greeter/SayMany')(names[0])) == [text('Hello you')] * 3
    assert channel.stream_unary('/helloworld.Greeter/SayToAll')(iter(names)) == text('Hello you, all')
    replies = list(channel.stream_stream('/helloworld.Greeter/Chat')(iter(names)))
    assert replies == [text('Hello you'), text('Hello all')]
    raises(grpc.StatusCode.INTERNAL, lambda: channel.unary_unary('/helloworld.Greeter/SayHello')(b'\xff'))
    service = channel.stream_stream('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')
    assert b'helloworld.Greeter' in next(service(iter([b'\x3a\0'])))
    assert b'HelloRequest' in next(service(iter([b'\x22\x12helloworld.Greeter'])))


class Methods:
    """Those of tests/grpc_client.c."""

    def Echo(self, message, context):
        return message

    def Chat(self, messages, context):
        count = 0
        for count, message in enumerate(messages, 1):
            yield message
        context.set_trailing_metadata((('x-count', str(count)),))

    def Many(self, message, context):
        for _ in range(message[0]):
            yield b'message'

    def Metadata(self, message, context):
        sent = context.invocation_metadata()
        context.send_initial_metadata([each for each in sent if each[0] == 'x-text'])
        context.set_trailing_metadata([each for each in sent if each[0] == 'x-bytes-bin'])
        return message

    def Fails(self, message, context):
        context.set_trailing_metadata((('grpc-status-details-bin', b'\0\1'), ('x-why', 'none')))
        context.abort(grpc.StatusCode.NOT_FOUND, '\t100 % of ☺\n')

    def FailsLate(self, message, context):
        yield b'one'
        context.abort(grpc.StatusCode.ABORTED, 'too late')

    def Sleeps(self, message, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait(10)
        return b''


def handlers():
    methods = Methods()
    kinds = {'Chat': grpc.stream_stream_rpc_method_handler, 'Many': grpc.unary_stream_rpc_method_handler,
             'FailsLate': grpc.unary_stream_rpc_method_handler}
    return grpc.method_handlers_generic_handler('test.Test', {
        name: kinds.get(name, grpc.unary_unary_rpc_method_handler)(getattr(methods, name))
        for name in vars(Methods) if not name.startswith('_')})


def check_client(command, compression):
    server = grpc.server(ThreadPoolExecutor(max_workers=12), compression=compression)
    server.add_generic_rpc_handlers((handlers(),))
    port = server.add_insecure_port('127.0.0.1:0')
    server.start()
    try:
        subprocess.run([*command, f'127.0.0.1:{port}'], check=True, timeout=60)
        print('a client ok', flush=True)
    finally:
        server.stop(0)


def check_greeter_client(address, greeter):
    client = os.path.basename(greeter).replace('_nanopb', '').replace('greeter', 'greeter_client')
    client = os.path.join(os.path.dirname(greeter), client)
    said = subprocess.run([client, address, 'you'], check=True, timeout=60, stdout=subprocess.PIPE, text=True).stdout
    of_all_kinds = 'Hello you\n' * 4 + 'Hello you, all\nHello you 0\nHello you 1\nHello you 2\n'
    assert said == ('Hello you\n' if greeter.endswith('_c') else of_all_kinds), said
    print('its client ok', flush=True)


def said(name, words):
    """A Said of examples/grpc/chat.proto."""
    return b''.join(bytes([8 * i + 2, len(word)]) + word for i, word in enumerate((b'room', name, words), 1) if word)


def test_chat(channel):
    join = channel.stream_stream('/chat.Chat/Join')
    ended = threading.Event()
    def says(name, *words):
        yield said(name, b'')
        yield from (said(b'', word) for word in words)
        ended.wait(10)
    hears = join(says(b'one'))
    assert next(hears) == said(b'one', b'')
    talks = join(says(b'two', b'hello', b'bye'))
    assert next(talks) == said(b'two', b'')
    assert [next(hears), next(hears)] == [said(b'two', b'hello'), said(b'two', b'bye')]
    talks.cancel()
    ended.set()
    assert not list(hears)
    raises(grpc.StatusCode.INVALID_ARGUMENT, lambda: join(iter([said(b'', b'')])))


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def check_gateway(gateway, address):
    """Its greeter, and one that is not there."""
    with subprocess.Popen([gateway, '0', address], stdout=subprocess.PIPE, text=True) as process:
        try:
            url = f'http://{process.stdout.readline().split()[-1]}/hello'
            assert status_of(f'{url}/you') == (200, b'Hello you\n')
        finally:
            process.kill()
    with socket.socket() as nobody:
        nobody.bind(('127.0.0.1', 0))
        with subprocess.Popen([gateway, '0', f'127.0.0.1:{nobody.getsockname()[1]}'], stdout=subprocess.PIPE,
                              text=True) as process:
            try:
                url = f'http://{process.stdout.readline().split()[-1]}/hello'
                assert status_of(f'{url}/you')[0] == 503
            finally:
                process.kill()
    print('a gateway ok', flush=True)


def check(command, *tests):
    """Runs the tests with a server, which says at the end of its first line where it listens."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            address = process.stdout.readline().split()[-1]
            with grpc.insecure_channel(address) as channel:
                for test in tests:
                    test(channel)
                    print(test.__name__, 'ok', flush=True)
            if test_greeter in tests:
                check_greeter_client(address, command[0])
            gateway = os.path.join(os.path.dirname(command[0]), 'example_gateway')
            if test_greeter_of_protoc in tests and os.path.exists(gateway):
                check_gateway(gateway, address)
        finally:
            process.kill()


def main():
    check([sys.argv[2], 'serve'], test_unary, test_streams, test_ends, test_statuses, test_metadata, test_gzip)
    for compression in grpc.Compression.NoCompression, grpc.Compression.Gzip:
        check_client([sys.argv[3]], compression)
    for greeter in sys.argv[4:]:
        if os.path.basename(greeter) == 'example_grpc_chat':
            check([greeter, '0'], test_chat)
            continue
        check([greeter, '0'], test_greeter, test_greeter_in_c if greeter.endswith('_c') else test_greeter_of_protoc)


try:
    import grpc
except ImportError:
    from_pypi.enter(sys.argv[1], 'grpcio==1.66.2')
    print('skipped: grpcio is not to be had')
    sys.exit(77)
if __name__ == '__main__':
    main()
