//! A side: looks at its host, and answers the front end on standard output.
//!
//! It ends when its standard input does, whatever it is doing: then the front end is gone.

use std::io::Write;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use mizzen_proto::boot::VERSION;

use super::probe::{self, interfaces};
use super::reach::{self, Listening};
use super::report::{Answer, Finding, Report, Request};
use super::wire;

/// Answers requests until there are no more.
pub(crate) fn serve() -> anyhow::Result<()> {
    let requests = requests()?;
    let mut output = std::io::stdout();
    for request in requests {
        let mut bytes = Vec::new();
        wire::encode(&answer(request), &mut bytes).context("the answer is too long")?;
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

/// Reads requests in a thread, which ends the process when there are no more; and one that ends it when it lives too long.
fn requests() -> anyhow::Result<std::sync::mpsc::Receiver<Request>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Ok(Some(request)) = wire::read(&mut input) {
            if sender.send(request).is_err() {
                break;
            }
        }
        std::process::exit(0);
    })?;
    std::thread::Builder::new().spawn(|| {
        std::thread::sleep(LIFETIME);
        std::process::exit(1);
    })?;
    Ok(receiver)
}

fn answer(request: Request) -> Answer {
    match request {
        Request::Look { bind } => Answer::Looked(look(&bind)),
        Request::Clock => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.unwrap_or_default().as_nanos();
            Answer::Clock(u64::try_from(now).unwrap_or(u64::MAX))
        }
        Request::Reach { targets } => Answer::Reached(reach::reach(targets)),
    }
}

fn look(bind: &str) -> Report {
    let bind: Option<IpAddr> = bind.parse().ok();
    let mut findings = probe::look();
    let listening = Listening::start(bind).unwrap_or_else(|error| {
        let place = bind.map_or_else(|| "listening".to_owned(), |ip| format!("listening at {ip}"));
        findings.push(Finding::bad(
            &place,
            error.to_string(),
            "Processes of this host could not listen there, and other hosts could not reach them; check the address in --hosts.",
        ));
        Listening {
            port: 0,
            token: String::new(),
        }
    });
    Report {
        mizzen: env!("CARGO_PKG_VERSION").to_owned(),
        boot: VERSION,
        kernel: probe::kernel(),
        findings,
        addresses: interfaces::offered(bind),
        port: listening.port,
        token: listening.token,
    }
}

/// How long a side lives, if the end of its front end is not seen: longer than all that it may be asked.
const LIFETIME: Duration = Duration::from_secs(180);
