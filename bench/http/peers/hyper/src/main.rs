// The server of bench-http by hyper and tokio, without files and TLS: main PORT; see ../../../server_acorn.c.
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::CONTENT_TYPE;
use hyper::{body::Incoming, server::conn::{http1, http2}, service::service_fn, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{convert::Infallible, io};

static BLOCK: [u8; 1 << 20] = [0; 1 << 20];

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (kind, body) = match request.uri().path() {
        "/hello" => ("text/plain", Bytes::from_static(b"Hello, world")),
        "/4k" => ("application/octet-stream", Bytes::from_static(&BLOCK[..4096])),
        "/1m" => ("application/octet-stream", Bytes::from_static(&BLOCK)),
        _ => return Ok(Response::builder().status(404).body(Full::default()).unwrap()),
    };
    Ok(Response::builder().header(CONTENT_TYPE, kind).body(Full::new(body)).unwrap())
}

fn main() -> io::Result<()> {
    let threads: usize = std::env::var("THREADS").map_or(1, |text| text.parse().unwrap());
    let is_http2 = std::env::var("HTTP2").is_ok();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    if threads > 1 {
        builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads);
    }
    builder.enable_io().build()?.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        let port = std::env::args().nth(1).unwrap();
        socket.bind(format!("127.0.0.1:{port}").parse().unwrap())?;
        let door = socket.listen(65535)?;
        eprintln!("listening on {}", door.local_addr()?);
        loop {
            let (peer, _) = door.accept().await?;
            peer.set_nodelay(true)?;
            if is_http2 {
                let mut http = http2::Builder::new(TokioExecutor::new());
                http.max_concurrent_streams(100);
                tokio::spawn(http.serve_connection(TokioIo::new(peer), service_fn(answer)));
            } else {
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(peer), service_fn(answer)));
            }
        }
    })
}
