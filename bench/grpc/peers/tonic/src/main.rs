// The server of bench-grpc by tonic: grpc-server-tonic PORT; see ../../../server_acorn.cpp. What tonic-build would write
// for echo.proto is written here, since it would need protoc.
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_stream::{Stream, StreamExt};
use tonic::body::BoxBody;
use tonic::codec::ProstCodec;
use tonic::{Request, Response, Status, Streaming};
use tower::service_fn;

#[derive(Clone, PartialEq, prost::Message)]
struct Echo {
    #[prost(string, tag = "1")]
    message: String,
}

type Echoes = Pin<Box<dyn Stream<Item = Result<Echo, Status>> + Send>>;

async fn unary(request: Request<Echo>) -> Result<Response<Echo>, Status> {
    Ok(Response::new(Echo { message: request.into_inner().message }))
}

async fn stream(request: Request<Streaming<Echo>>) -> Result<Response<Echoes>, Status> {
    let echoes = request.into_inner().map(|each| each.map(|request| Echo { message: request.message }));
    Ok(Response::new(Box::pin(echoes)))
}

#[derive(Clone)]
struct Service;

impl tonic::server::NamedService for Service {
    const NAME: &'static str = "grpc.examples.echo.Echo";
}

impl tower::Service<http::Request<BoxBody>> for Service {
    type Response = http::Response<BoxBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<BoxBody>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Echo, Echo>::default());
            Ok(match request.uri().path() {
                "/grpc.examples.echo.Echo/UnaryEcho" => grpc.unary(service_fn(unary), request).await,
                "/grpc.examples.echo.Echo/BidirectionalStreamingEcho" => {
                    grpc.streaming(service_fn(stream), request).await
                }
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let door = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("a listener");
    eprintln!("listening on {}", door.local_addr().unwrap());
    let clients = tokio_stream::wrappers::TcpListenerStream::new(door)
        .map(|client| client.and_then(|socket| socket.set_nodelay(true).map(|()| socket)));
    tonic::transport::Server::builder().add_service(Service).serve_with_incoming(clients).await.unwrap();
}
