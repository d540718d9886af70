// Judges of acorn_grpc by grpc-java's interoperability cases of compression, which grpc-go lacks.
//
//     java Judge.java client PORT   the cases against a server at this port
//     java Judge.java server        a server for a client's cases; it says on stdout where it listens

import io.grpc.ManagedChannelBuilder;
import io.grpc.ServerBuilder;
import io.grpc.ServerInterceptors;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.testing.integration.AbstractInteropTest;
import io.grpc.testing.integration.TestServiceImpl;
import java.util.concurrent.Executors;

public class Judge extends AbstractInteropTest {
    private static int port;

    @Override
    protected ManagedChannelBuilder<?> createChannelBuilder() {
        return NettyChannelBuilder.forAddress("127.0.0.1", port).usePlaintext();
    }

    private interface Case {
        void run(Judge judge) throws Exception;
    }

    private static void run(String name, Case each) throws Exception {
        Judge judge = new Judge();
        judge.setUp();
        each.run(judge);
        judge.tearDown();
        System.out.println("ok " + name);
    }

    private static void client() throws Exception {
        run("client_compressed_unary", judge -> judge.clientCompressedUnary(true));
        run("server_compressed_unary", Judge::serverCompressedUnary);
        run("client_compressed_streaming", judge -> judge.clientCompressedStreaming(true));
        run("server_compressed_streaming", Judge::serverCompressedStreaming);
    }

    private static void server() throws Exception {
        int at = ServerBuilder.forPort(0)
            .addService(ServerInterceptors.intercept(
                new TestServiceImpl(Executors.newScheduledThreadPool(1)), TestServiceImpl.interceptors()))
            .build().start().getPort();
        System.out.println("127.0.0.1:" + at);
        Thread.currentThread().join();
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("server"))
            server();
        port = Integer.parseInt(args[1]);
        client();
        System.exit(0);
    }
}
