//! Client that uses tokio. `tokio-client HOST:PORT TEXT` sends a text to an echo server and prints the answer.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a client of the command line")]

use std::process::ExitCode;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [host, text] = arguments.as_slice() else { return ExitCode::from(2) };
    match echoed(host, text).await {
        Ok(answer) => {
            println!("{}", String::from_utf8_lossy(&answer));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tokio-client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn echoed(host: &str, text: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}
