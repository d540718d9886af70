// Judges of acorn_grpc by grpc-java's interoperability cases, those of compression too, which grpc-go lacks.
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

    @Override
    protected boolean metricsExpected() { // the server's are not in this process
        return false;
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
        run("empty_unary", Judge::emptyUnary);
        run("large_unary", Judge::largeUnary);
        run("client_streaming", Judge::clientStreaming);
        run("server_streaming", Judge::serverStreaming);
        run("ping_pong", Judge::pingPong);
        run("empty_stream", Judge::emptyStream);
        run("full_duplex_call", Judge::fullDuplexCallShouldSucceed);
        run("half_duplex_call", Judge::halfDuplexCallShouldSucceed);
        run("flow_control", Judge::serverStreamingShouldBeFlowControlled);
        run("cancel_after_begin", Judge::cancelAfterBegin);
        run("cancel_after_first_response", Judge::cancelAfterFirstResponse);
        run("timeout_on_sleeping_server", Judge::timeoutOnSleepingServer);
        run("custom_metadata", Judge::customMetadata);
        run("status_code_and_message", Judge::statusCodeAndMessage);
        run("special_status_message", Judge::specialStatusMessage);
        run("unimplemented_method", Judge::unimplementedMethod);
        run("unimplemented_service", Judge::unimplementedService);
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
