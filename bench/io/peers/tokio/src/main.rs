// The server of bench-io by tokio, on one thread, or as many as the variable THREADS says. main PORT echo|stream
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

static BLOCK: [u8; 64 * 1024] = [0; 64 * 1024];

async fn echo(mut peer: TcpStream) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        let n = peer.read(&mut bytes).await?;
        if n == 0 {
            return Ok(());
        }
        peer.write_all(&bytes[..n]).await?;
    }
}

async fn stream(mut peer: TcpStream) -> io::Result<()> {
    loop {
        let mut left = peer.read_u64_le().await?;
        while left > 0 {
            left -= peer.write(&BLOCK[..left.min(BLOCK.len() as u64) as usize]).await? as u64;
        }
    }
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    if let Ok(threads) = std::env::var("THREADS") {
        builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads.parse().unwrap());
    }
    builder.enable_io().build()?.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(format!("127.0.0.1:{}", words[1]).parse().unwrap())?;
        let door: TcpListener = socket.listen(65535)?;
        eprintln!("listening on {}", door.local_addr()?);
        loop {
            let (peer, _) = door.accept().await?;
            peer.set_nodelay(true)?;
            if words[2] == "stream" {
                tokio::spawn(stream(peer));
            } else {
                tokio::spawn(echo(peer));
            }
        }
    })
}
