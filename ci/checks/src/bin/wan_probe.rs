//! What a network does to datagrams: `wan_probe serve ADDRESS` sends each back, `wan_probe ask ADDRESS COUNT MICROSECONDS` sends so many,
//! one every so often, and says what came back. Run by `ci/testbed check`.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", address] => serve(address),
        ["ask", address, count, gap] => {
            ask(address, count.parse()?, Duration::from_micros(gap.parse()?))
        }
        _ => bail!("usage: wan_probe serve ADDRESS | ask ADDRESS COUNT MICROSECONDS"),
    }
}

fn serve(address: &str) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(address).with_context(|| format!("listening at {address}"))?;
    let mut bytes = [0; LENGTH];
    loop {
        let (length, from) = socket.recv_from(&mut bytes)?;
        socket.send_to(&bytes[..length], from)?;
    }
}

fn ask(address: &str, count: usize, gap: Duration) -> anyhow::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    let reader = socket.try_clone()?;
    reader.set_read_timeout(Some(Duration::from_secs(1)))?;
    let start = Instant::now();
    let sender = std::thread::spawn(move || -> anyhow::Result<()> {
        for number in 0..count {
            let due = start + gap * number as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            socket.send(&datagram(number as u64, start.elapsed()))?;
        }
        Ok(())
    });
    let mut times: Vec<Option<Duration>> = vec![None; count];
    let (mut doubled, mut overtaken, mut torn, mut newest) = (0, 0, 0, None);
    let mut bytes = [0; LENGTH];
    while let Ok(length) = reader.recv(&mut bytes) {
        let now = start.elapsed();
        let (number, sent) = heading(&bytes);
        if length != LENGTH || bytes != datagram(number, sent) || number >= count as u64 {
            torn += 1;
            continue;
        }
        let time = &mut times[number as usize];
        if time.is_some() {
            doubled += 1;
            continue;
        }
        *time = Some(now - sent);
        if Some(number) < newest {
            overtaken += 1;
        }
        newest = newest.max(Some(number));
    }
    sender.join().expect("the sender does not panic")?;
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort();
    let at = |part: f64| match times.len() {
        0 => 0.0,
        all => times[((all - 1) as f64 * part) as usize].as_secs_f64() * 1e3,
    };
    println!(
        "sent {count} lost {} torn {torn} doubled {doubled} overtaken {overtaken} least {:.2} median {:.2} p99 {:.2}",
        count - times.len() - torn.min(count - times.len()),
        at(0.0),
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// A datagram whose every byte can be told from its number and time.
fn datagram(number: u64, sent: Duration) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..16].copy_from_slice(&(sent.as_nanos() as u64).to_le_bytes());
    let mut rng = fastrand::Rng::with_seed(number ^ sent.as_nanos() as u64);
    rng.fill(&mut bytes[16..]);
    bytes
}

fn heading(bytes: &[u8; LENGTH]) -> (u64, Duration) {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    (word(0), Duration::from_nanos(word(8)))
}

const LENGTH: usize = 256;
