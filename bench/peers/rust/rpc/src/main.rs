//! Remote calls over loopback TCP between two processes: `peer-rpc tonic|tarpc`.
//!
//! A call carries a body and returns it. Prints `R rtt <size> <ns>`, the full round trip. One thread each, tokio's
//! current-thread runtime: the fastest of the runtimes for one call at a time.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use peer_common::{limit_time, pin, repetitions, report};
use serde_bytes::ByteBuf;
use tarpc::tokio_serde::formats::Bincode;
use tonic::{Request, Response, Status};

const SIZES: [usize; 6] = [0, 8, 1 << 10, 64 << 10, 1 << 20, 4 << 20];
const LONGEST: usize = 64 << 20;

mod grpc {
    tonic::include_proto!("echo");
}

struct Echo;

#[tonic::async_trait]
impl grpc::echo_server::Echo for Echo {
    async fn call(
        &self,
        request: Request<grpc::Payload>,
    ) -> Result<Response<grpc::Payload>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}

#[tarpc::service]
trait Tarpc {
    /// `ByteBuf`, because bincode would encode a `Vec<u8>` byte by byte.
    async fn call(body: ByteBuf) -> ByteBuf;
}

impl Tarpc for std::sync::Arc<Echo> {
    async fn call(self, _: tarpc::context::Context, body: ByteBuf) -> ByteBuf {
        body
    }
}

fn main() {
    limit_time();
    let words: Vec<String> = std::env::args().collect();
    let kind = words[1].as_str();
    let server = words.get(2);
    pin(if server.is_some() { "CORE_B" } else { "CORE_A" });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if let Some(port) = server {
        let address = SocketAddr::from(([127, 0, 0, 1], port.parse().expect("a port")));
        return runtime.block_on(async {
            if kind == "tonic" {
                serve_tonic(address).await
            } else {
                serve_tarpc(address).await
            }
        });
    }
    let port = 20000 + std::process::id() % 20000;
    let program = std::env::current_exe().expect("a path");
    let mut server = Command::new(program)
        .args([kind, &port.to_string()])
        .spawn()
        .expect("a process");
    std::thread::sleep(Duration::from_millis(300));
    runtime.block_on(async {
        if kind == "tonic" {
            call_tonic(port).await
        } else {
            call_tarpc(port).await
        }
    });
    server.kill().expect("it runs until now");
    server.wait().expect("it ends");
}

async fn serve_tonic(address: SocketAddr) {
    let service = grpc::echo_server::EchoServer::new(Echo).max_decoding_message_size(LONGEST);
    tonic::transport::Server::builder()
        .add_service(service)
        .serve(address)
        .await
        .expect("it serves");
}

async fn serve_tarpc(address: SocketAddr) {
    use tarpc::server::{BaseChannel, Channel};
    let mut incoming = tarpc::serde_transport::tcp::listen(address, Bincode::default)
        .await
        .expect("it listens");
    incoming.config_mut().max_frame_length(LONGEST);
    while let Some(Ok(transport)) = incoming.next().await {
        transport.get_ref().set_nodelay(true).expect("a socket");
        let requests =
            BaseChannel::with_defaults(transport).execute(std::sync::Arc::new(Echo).serve());
        tokio::spawn(requests.for_each(|answer| async {
            tokio::spawn(answer);
        }));
    }
}

async fn call_tonic(port: u32) {
    let client = grpc::echo_client::EchoClient::connect(format!("http://127.0.0.1:{port}")).await;
    let client = client
        .expect("the server is there")
        .max_decoding_message_size(LONGEST);
    for size in SIZES {
        let body = Bytes::from(vec![1; size]);
        round_trips(size, || {
            let (mut client, body) = (client.clone(), body.clone());
            async move {
                client
                    .call(grpc::Payload { body })
                    .await
                    .expect("an answer");
            }
        })
        .await;
    }
}

async fn call_tarpc(port: u32) {
    let mut connecting =
        tarpc::serde_transport::tcp::connect(format!("127.0.0.1:{port}"), Bincode::default);
    connecting.config_mut().max_frame_length(LONGEST);
    let transport = connecting.await.expect("the server is there");
    transport.get_ref().set_nodelay(true).expect("a socket");
    let client = TarpcClient::new(Default::default(), transport).spawn();
    for size in SIZES {
        let body = ByteBuf::from(vec![1; size]);
        round_trips(size, || {
            let (client, body) = (client.clone(), body.clone());
            async move {
                client
                    .call(tarpc::context::current(), body)
                    .await
                    .expect("an answer");
            }
        })
        .await;
    }
}

async fn round_trips<F: Future<Output = ()>>(size: usize, call: impl Fn() -> F) {
    let mut count = 50;
    for seconds in [0.0, 0.25] {
        let start = Instant::now();
        for _ in 0..count {
            call().await;
        }
        let elapsed = start.elapsed().as_secs_f64();
        if seconds > 0.0 {
            report("rtt", size, elapsed / count as f64 * 1e9);
        }
        count = repetitions(elapsed, count, 0.25);
    }
}
