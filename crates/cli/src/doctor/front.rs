//! The front end: starts the sides, asks them, and shows what they found.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;

use super::examined::{Clock, Connection, Examined, Host};
use super::options::Doctor;
use super::reach::BUDGET;
use super::remarks::remarks;
use super::report::{Answer, Report, Request, Target, Verdict};
use super::show;
use super::site::site;
use super::talk::Talk;
use crate::hosts;
use crate::run::Link;

/// Looks at what was asked for. It succeeds unless something is bad.
pub(crate) fn doctor(options: &Doctor) -> anyhow::Result<ExitCode> {
    if let Some(other) = &options.site {
        return site(options, other);
    }
    let mut hosts = options.hosts()?;
    let local = hosts.is_empty();
    if local {
        hosts.push(hosts::this_host());
    }
    let mut talk = Talk::new(start(options, &hosts, local)?);
    let patience = Duration::from_secs(options.patience);
    let examined = examine(&mut talk, &hosts, local, patience);
    let remarks = remarks(&examined);
    let text = if options.json {
        show::json(&examined, &remarks)?
    } else {
        show::text(&examined, &remarks)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let bad = remarks.iter().any(|remark| remark.verdict == Verdict::Bad);
    Ok(if bad {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A side on each host.
fn start(
    options: &Doctor,
    hosts: &[hosts::Host],
    local: bool,
) -> anyhow::Result<Vec<Result<Link, String>>> {
    if local {
        let name = hosts.first().map(|host| host.name.clone());
        return Ok(vec![Ok(Link::here(name.unwrap_or_default(), ROLE)?)]);
    }
    let path = match &options.agent_path {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .context("the path of this command is not known; give --agent-path")?,
    };
    let link = |host: &hosts::Host| {
        let link = match host.is_here(&options.remote_shell) {
            true => Link::here(host.name.clone(), ROLE),
            false => Link::remote(
                host.name.clone(),
                &host.reached_as,
                &options.remote_shell,
                &path,
                ROLE,
            ),
        };
        link.map_err(|error| format!("{error:#}"))
    };
    Ok(hosts.iter().map(link).collect())
}

fn examine(talk: &mut Talk, hosts: &[hosts::Host], local: bool, patience: Duration) -> Examined {
    let reports = look(talk, hosts, patience);
    let clocks: Vec<Option<Clock>> = match local {
        true => vec![None; hosts.len()],
        false => (0..hosts.len())
            .map(|index| clock(talk, index, hosts.len()))
            .collect(),
    };
    let connections = connect(talk, hosts, &reports);
    let hosts = hosts.iter().zip(reports).zip(clocks).enumerate();
    let hosts = hosts.map(|(index, ((host, report), clock))| {
        // A side may fail after its report too.
        let failure = talk.failure(index).map(str::to_owned);
        let failure = match report {
            None => {
                failure.or_else(|| Some("it gave another answer than was asked for".to_owned()))
            }
            Some(_) => failure,
        };
        Host {
            name: host.name.clone(),
            bind: host.bind.clone(),
            failure,
            clock,
            report,
        }
    });
    Examined {
        hosts: hosts.collect(),
        connections,
    }
}

fn look(talk: &mut Talk, hosts: &[hosts::Host], patience: Duration) -> Vec<Option<Report>> {
    let ask = |host: &hosts::Host| {
        let bind = host.bind.clone();
        Some(Request::Look { bind })
    };
    let requests: Vec<Option<Request>> = hosts.iter().map(ask).collect();
    let answers = talk.ask(&requests, Instant::now() + patience);
    let report = |answer| match answer {
        Some(Answer::Looked(report)) => Some(report),
        _ => None,
    };
    answers.into_iter().map(report).collect()
}

/// Asks a host for its time: the answer that came fastest says most.
fn clock(talk: &mut Talk, index: usize, hosts: usize) -> Option<Clock> {
    let mut requests = vec![None; hosts];
    requests[index] = Some(Request::Clock);
    let mut best: Option<Clock> = None;
    for _ in 0..CLOCK_ROUNDS {
        let before = now_ns()?;
        let start = Instant::now();
        let answers = talk.ask(&requests, start + CLOCK);
        let took = u64::try_from(start.elapsed().as_nanos()).ok()?;
        let Some(Some(Answer::Clock(theirs))) = answers.get(index) else {
            return best;
        };
        let ours = i128::from(before) + i128::from(took / 2);
        let ahead = i128::from(*theirs) - ours;
        let clock = Clock {
            ahead_ns: i64::try_from(ahead).unwrap_or(if ahead > 0 { i64::MAX } else { i64::MIN }),
            uncertain_ns: took / 2,
        };
        if best.is_none_or(|best| clock.uncertain_ns < best.uncertain_ns) {
            best = Some(clock);
        }
    }
    best
}

/// Has each host connect to each other.
fn connect(talk: &mut Talk, hosts: &[hosts::Host], reports: &[Option<Report>]) -> Vec<Connection> {
    let targets: Vec<Target> = hosts
        .iter()
        .zip(reports)
        .filter_map(|(host, report)| {
            let report = report.as_ref().filter(|report| report.port != 0)?;
            Some(Target {
                host: host.name.clone(),
                addresses: report.addresses.clone(),
                port: report.port,
                token: report.token.clone(),
            })
        })
        .collect();
    let ask = |host: &hosts::Host| {
        let others = targets.iter().filter(|target| target.host != host.name);
        let targets: Vec<Target> = others.cloned().collect();
        (!targets.is_empty()).then_some(Request::Reach { targets })
    };
    let requests: Vec<Option<Request>> = hosts.iter().map(ask).collect();
    let answers = talk.ask(&requests, Instant::now() + BUDGET + MARGIN);
    let mut connections = Vec::new();
    for (host, answer) in hosts.iter().zip(answers) {
        let Some(Answer::Reached(tries)) = answer else {
            continue;
        };
        connections.extend(tries.into_iter().map(|attempt| Connection {
            from: host.name.clone(),
            attempt,
        }));
    }
    connections
}

fn now_ns() -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(now.as_nanos()).ok()
}

/// What a side is run as.
const ROLE: &str = "doctor-side";

/// How long a host has to say what time it is, and how often it is asked.
const CLOCK: Duration = Duration::from_secs(5);
const CLOCK_ROUNDS: usize = 5;

/// How much longer than connecting the answer may take.
const MARGIN: Duration = Duration::from_secs(7);
