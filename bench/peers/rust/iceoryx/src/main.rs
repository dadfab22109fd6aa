//! iceoryx2, publish-subscribe: `peer-iceoryx processes|threads small|copies|hand`.
//!
//! As its authors measure it: the next sample is loaned while the last one travels, the subscriber's queue holds one
//! sample and may overflow (in a ping-pong it never does). The rate is measured without loss, on a deeper queue.
//!
//! - `small`, `copies`: written from the user's memory into the loan, copied out of the sample (`lat`, `rate`);
//! - `hand`: the payload is used where it is; of each message the first eight bytes are written and read.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::sample_mut::SampleMut;
use peer_common::{LARGE, SMALL, Side, latency, limit_time, pin, rate};

type Kind = ipc::Service;

/// Samples that the lossless queue holds; deeper ones were not faster.
const DEEP: usize = 1024;

#[derive(Clone, Copy, PartialEq)]
enum Payload {
    Copied,
    InPlace,
}

#[derive(Clone, Copy, PartialEq)]
enum Queue {
    Newest,
    Lossless,
}

/// One side's publisher and subscriber.
struct Ports {
    publisher: Publisher<Kind, [u8], ()>,
    subscriber: Subscriber<Kind, [u8], ()>,
    ahead: Option<SampleMut<Kind, [u8], ()>>,
    payload: Payload,
}

impl Ports {
    fn open(name: &str, first: bool, largest: usize, payload: Payload, queue: Queue) -> Self {
        let node = NodeBuilder::new().create::<Kind>().expect("a node");
        let service = |way: &str| {
            node.service_builder(
                &ServiceName::new(&format!("{name}/{largest}/{way}")).expect("a valid name"),
            )
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(queue == Queue::Newest)
            .subscriber_max_buffer_size(if queue == Queue::Newest { 1 } else { DEEP })
            .max_publishers(1)
            .max_subscribers(1)
            .history_size(0)
            .open_or_create()
            .expect("a service")
        };
        let (there, back) = (service("there"), service("back"));
        let (out, into) = if first {
            (&there, &back)
        } else {
            (&back, &there)
        };
        let publisher = out
            .publisher_builder()
            .initial_max_slice_len(largest)
            .max_loaned_samples(2)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()
            .expect("a publisher");
        let subscriber = into.subscriber_builder().create().expect("a subscriber");
        let start = Instant::now();
        while out.dynamic_config().number_of_subscribers() == 0
            || into.dynamic_config().number_of_publishers() == 0
        {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "the other side did not come"
            );
            thread::sleep(Duration::from_millis(1));
        }
        // Both sides have seen each other before the first message.
        thread::sleep(Duration::from_millis(50));
        Self {
            publisher,
            subscriber,
            ahead: None,
            payload,
        }
    }

    fn loan(&self, size: usize) -> SampleMut<Kind, [u8], ()> {
        let loan = self
            .publisher
            .loan_slice_uninit(size)
            .expect("a free sample");
        // SAFETY: any byte is a valid `u8`, and the memory was mapped zeroed or written before.
        unsafe { loan.assume_init() }
    }
}

impl Side for Ports {
    fn send(&mut self, bytes: &[u8]) {
        let ahead = self
            .ahead
            .take()
            .filter(|sample| sample.payload().len() == bytes.len());
        let mut sample = ahead.unwrap_or_else(|| self.loan(bytes.len()));
        let written = if self.payload == Payload::InPlace {
            8
        } else {
            bytes.len()
        };
        sample.payload_mut()[..written].copy_from_slice(&bytes[..written]);
        sample.send().expect("the subscriber is there");
        self.ahead = Some(self.loan(bytes.len()));
    }

    fn receive(&mut self, into: &mut [u8]) {
        let sample = loop {
            if let Some(sample) = self.subscriber.receive().expect("the publisher is there") {
                break sample;
            }
        };
        let read = if self.payload == Payload::InPlace {
            8
        } else {
            into.len()
        };
        into[..read].copy_from_slice(&sample.payload()[..read]);
    }
}

fn main() {
    limit_time();
    set_log_level(LogLevel::Error);
    let words: Vec<String> = std::env::args().collect();
    let (place, test) = (words[1].as_str(), words[2].as_str());
    if let Some(name) = words.get(3) {
        return measure(test, name, false);
    }
    let name = format!("peer-{}", std::process::id());
    if place == "threads" {
        thread::scope(|scope| {
            scope.spawn(|| measure(test, &name, false));
            measure(test, &name, true);
        });
    } else {
        let program = std::env::current_exe().expect("a path");
        let mut other = Command::new(program)
            .args([place, test, &name])
            .spawn()
            .expect("a process");
        measure(test, &name, true);
        other.wait().expect("it ends");
    }
}

fn measure(test: &str, name: &str, first: bool) {
    pin(if first { "CORE_A" } else { "CORE_B" });
    match test {
        "small" => {
            let mut ports = Ports::open(name, first, 512, Payload::Copied, Queue::Newest);
            SMALL
                .iter()
                .for_each(|size| latency(&mut ports, first, "lat", *size, 0.12));
            let mut ports = Ports::open(name, first, 65, Payload::Copied, Queue::Lossless);
            rate(&mut ports, first, 8, 0.035);
        }
        "copies" => {
            let mut ports = Ports::open(name, first, 4 << 20, Payload::Copied, Queue::Newest);
            LARGE
                .iter()
                .for_each(|size| latency(&mut ports, first, "lat", *size, 0.06));
        }
        "hand" => {
            let mut ports = Ports::open(name, first, 64 << 20, Payload::InPlace, Queue::Newest);
            [64 << 10, 1 << 20, 64 << 20]
                .iter()
                .for_each(|size| latency(&mut ports, first, "hand", *size, 0.12));
        }
        other => panic!("unknown test {other}"),
    }
    // The other side may still be reading the last message.
    thread::sleep(Duration::from_millis(50));
}
