// Judges of acorn_grpc by tonic, with messages as bytes:
//
//     judge_tonic client ADDRESS   against tests/grpc_server.c: all kinds of calls, plain and with gzip, and their ends
//     judge_tonic server           a greeter for examples/grpc/greeter_client.cpp; it says on stdout where it listens

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::uri::PathAndQuery;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_stream::{Stream, StreamExt};
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::service_fn;

#[derive(Clone, Copy, Default)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Plain;
    type Decoder = Plain;
    fn encoder(&mut self) -> Plain {
        Plain
    }
    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

// ---- The client ----

type Grpc = tonic::client::Grpc<Channel>;

fn method(name: &str) -> PathAndQuery {
    format!("/test.Test/{name}").parse().unwrap()
}

async fn unary(
    grpc: &mut Grpc,
    name: &str,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, Status> {
    grpc.ready().await.expect("a connection");
    grpc.unary(request, method(name), Plain).await
}

async fn chat(
    grpc: &mut Grpc,
    messages: impl Stream<Item = Bytes> + Send + 'static,
) -> Streaming<Bytes> {
    grpc.ready().await.expect("a connection");
    grpc.streaming(Request::new(messages), method("Chat"), Plain)
        .await
        .expect("a stream")
        .into_inner()
}

async fn many(grpc: &mut Grpc) -> Streaming<Bytes> {
    grpc.ready().await.expect("a connection");
    let request = Request::new(Bytes::from_static(b"\xff"));
    grpc.server_streaming(request, method("Many"), Plain)
        .await
        .expect("a stream")
        .into_inner()
}

async fn makes_calls(grpc: &mut Grpc) {
    for n in [0, 5, 300_000, 1 << 20] {
        let sent = Bytes::from((0..n).map(|i| (i % 251) as u8).collect::<Vec<_>>());
        let reply = unary(grpc, "Echo", Request::new(sent.clone()))
            .await
            .expect("a reply");
        assert!(reply.into_inner() == sent, "a message of {n} bytes");
    }
    let tasks: Vec<_> = (0..200u8)
        .map(|i| {
            let mut own = grpc.clone();
            tokio::spawn(async move {
                unary(&mut own, "Echo", Request::new(Bytes::from(vec![i]))).await
            })
        })
        .collect();
    for (i, task) in tasks.into_iter().enumerate() {
        assert_eq!(
            task.await.unwrap().expect("one of many").into_inner()[..],
            [i as u8]
        );
    }
}

async fn streams(grpc: &mut Grpc) {
    let replies: Vec<_> = many(grpc).await.collect().await;
    assert!(
        replies.len() == 255
            && replies
                .iter()
                .all(|each| each.as_ref().unwrap() == "message")
    );
    let sent: Vec<_> = (0..150)
        .map(|i| Bytes::from(vec![i as u8; [1, 0, 100_000][i % 3]]))
        .collect();
    let mut echoes = chat(grpc, tokio_stream::iter(sent.clone())).await;
    for each in sent {
        assert!(
            echoes.message().await.unwrap().unwrap() == each,
            "a message of a stream"
        );
    }
    assert!(echoes.message().await.unwrap().is_none());
    assert_eq!(
        echoes
            .trailers()
            .await
            .unwrap()
            .unwrap()
            .get("x-count")
            .unwrap(),
        "150"
    );
}

async fn knows_metadata(grpc: &mut Grpc) {
    let mut request = Request::new(Bytes::from_static(b"m"));
    request
        .metadata_mut()
        .insert("x-text", "some text".parse().unwrap());
    request.metadata_mut().insert_bin(
        "x-bytes-bin",
        tonic::metadata::MetadataValue::from_bytes(b"\0\x01\xff"),
    );
    let reply = unary(grpc, "Metadata", request).await.expect("a reply");
    assert_eq!(reply.metadata().get("x-text").unwrap(), "some text");
    assert_eq!(
        reply
            .metadata()
            .get_bin("x-bytes-bin")
            .unwrap()
            .to_bytes()
            .unwrap()[..],
        *b"\0\x01\xff"
    );
}

async fn ends(grpc: &mut Grpc) {
    let failed = unary(grpc, "Fails", Request::new(Bytes::new()))
        .await
        .unwrap_err();
    assert_eq!(
        (failed.code(), failed.message()),
        (Code::NotFound, "\t100 % of \u{263a}\n")
    );
    assert_eq!(failed.details(), b"\0\x01");
    let unknown = unary(grpc, "Nothing", Request::new(Bytes::new()))
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
    let large = unary(
        grpc,
        "Echo",
        Request::new(Bytes::from(vec![0; (1 << 20) + 1])),
    )
    .await
    .unwrap_err();
    assert_eq!(large.code(), Code::ResourceExhausted);
    let mut late = Request::new(Bytes::new());
    late.set_timeout(Duration::from_millis(50));
    let code = unary(grpc, "Sleeps", late).await.unwrap_err().code();
    assert!(
        code == Code::DeadlineExceeded || code == Code::Cancelled,
        "{code}"
    ); // tonic's own clock says Cancelled
    for _ in 0..50 {
        let cut = unary(grpc, "Sleeps", Request::new(Bytes::new()));
        assert!(tokio::time::timeout(Duration::from_millis(1), cut)
            .await
            .is_err());
        let mut left = many(grpc).await;
        assert_eq!(left.message().await.unwrap().unwrap(), "message");
    }
    assert_eq!(
        unary(grpc, "Echo", Request::new(Bytes::from_static(b"still")))
            .await
            .unwrap()
            .into_inner(),
        "still"
    );
}

async fn client(address: &str) {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let channel = endpoint.connect().await.expect("a connection");
    for packs in [false, true] {
        let mut grpc = Grpc::new(channel.clone());
        if packs {
            grpc = grpc
                .send_compressed(CompressionEncoding::Gzip)
                .accept_compressed(CompressionEncoding::Gzip);
        }
        makes_calls(&mut grpc).await;
        streams(&mut grpc).await;
        knows_metadata(&mut grpc).await;
        ends(&mut grpc).await;
        println!("ok, with gzip: {packs}");
    }
}

// ---- The server ----

// The text of field 1, which is all that a message has.
fn text_of(message: &Bytes) -> String {
    String::from_utf8(message[message.len().min(2)..].to_vec()).unwrap()
}

fn message_of(text: &str) -> Bytes {
    let mut message = BytesMut::new();
    message.put_slice(&[10, text.len() as u8]);
    message.put_slice(text.as_bytes());
    message.freeze()
}

fn greeting(message: &Bytes) -> Bytes {
    message_of(&format!("Hello {}", text_of(message)))
}

type Replies = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

async fn says_hello(request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    Ok(Response::new(greeting(request.get_ref())))
}

async fn says_many(request: Request<Bytes>) -> Result<Response<Replies>, Status> {
    let reply = greeting(request.get_ref());
    Ok(Response::new(Box::pin(tokio_stream::iter(vec![
        Ok(reply);
        3
    ]))))
}

async fn says_to_all(request: Request<Streaming<Bytes>>) -> Result<Response<Bytes>, Status> {
    let names: Vec<_> = request
        .into_inner()
        .map(|each| text_of(&each.unwrap()))
        .collect()
        .await;
    Ok(Response::new(message_of(&format!(
        "Hello {}",
        names.join(", ")
    ))))
}

async fn chats(request: Request<Streaming<Bytes>>) -> Result<Response<Replies>, Status> {
    Ok(Response::new(Box::pin(
        request
            .into_inner()
            .map(|each| each.map(|message| greeting(&message))),
    )))
}

#[derive(Clone)]
struct Greeter;

impl tonic::server::NamedService for Greeter {
    const NAME: &'static str = "helloworld.Greeter";
}

impl tower::Service<http::Request<tonic::body::BoxBody>> for Greeter {
    type Response = http::Response<tonic::body::BoxBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: http::Request<tonic::body::BoxBody>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Plain)
                .accept_compressed(CompressionEncoding::Gzip)
                .send_compressed(CompressionEncoding::Gzip);
            Ok(match request.uri().path().rsplit('/').next().unwrap() {
                "SayHello" => grpc.unary(service_fn(says_hello), request).await,
                "SayMany" => grpc.server_streaming(service_fn(says_many), request).await,
                "SayToAll" => {
                    grpc.client_streaming(service_fn(says_to_all), request)
                        .await
                }
                "Chat" => grpc.streaming(service_fn(chats), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

async fn server() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    println!("{}", listener.local_addr().unwrap());
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tonic::transport::Server::builder()
        .add_service(Greeter)
        .serve_with_incoming(incoming)
        .await
        .expect("to serve");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<_> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("client") => client(&words[2]).await,
        _ => server().await,
    }
}
