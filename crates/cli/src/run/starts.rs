//! What agents are told when the job starts.

use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use anyhow::Context;
use mizzen_agent::hide_memory;
use mizzen_config::JobFile;
use mizzen_identity::Authority;
use mizzen_proto::boot::{AGENT_FD, Part, Secret, Start, ToAgent};

use super::job::Job;
use super::networks;
use super::options::Run;
use crate::hosts::Host;

/// What each agent is told to start. Checked here to fit a frame, so that later nothing can fail.
pub(super) fn starts(
    options: &Run,
    file: Option<&JobFile>,
    hosts: &[Host],
    job: &Job,
) -> anyhow::Result<Vec<Option<ToAgent>>> {
    let mut job_id = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut job_id))
        .context("no random numbers from /dev/urandom")?;
    let authority = authority(options, hosts, job_id)?;
    let networks::Layout {
        networks,
        spans,
        is_gateway,
        channels,
    } = networks::networks(file, hosts, job)?;
    let mut networks = networks.into_iter();
    let secret = || match &authority {
        Some(authority) => Secret::new(authority.to_secret().as_bytes().to_vec()),
        None => Secret::default(),
    };
    let cwd = std::env::current_dir()
        .context("the working directory does not exist; change to one that does")?;
    let env = std::env::vars_os().filter(|(name, _)| name != AGENT_FD);
    let env: Vec<_> = env
        .map(|(name, value)| (name.into_vec(), value.into_vec()))
        .collect();
    let (program, args) = options
        .program
        .split_first()
        .context("no program is given")?;
    let mut starts = Vec::new();
    for (i, host) in hosts.iter().enumerate() {
        let mut start = ToAgent::Start(Box::new(Start {
            job: u128::from_be_bytes(job_id),
            size: job.size(),
            host: host.name.clone(),
            hosts: u32::try_from(hosts.len()).context("too many hosts")?,
            bind: host.bind.clone(),
            ranks: job.ranks_of(i),
            program: program.clone().into_vec(),
            args: args.iter().map(|arg| arg.clone().into_vec()).collect(),
            env: env.clone(),
            cwd: cwd.clone().into_os_string().into_vec(),
            on_death: options.on_death(),
            networks: networks.next().unwrap_or_default(),
            spans: spans.clone(),
            others: channels[i].others.clone(),
            channels: channels[i].channels.clone(),
            is_gateway: is_gateway[i],
            show_paths: options.show_paths,
            overdue_ms: options.overdue_ms(),
            cluster: options.cluster.clone(),
            part: Part {
                number: u32::try_from(i).context("too many hosts")?,
                pace: options.preset(),
                max_restarts: options.max_restarts,
                placed: if i == 0 {
                    placed(hosts.len(), job)
                } else {
                    vec![]
                },
            },
            // As long as the secret, which is put in when there is no copy to be forgotten.
            authority: Secret::new(vec![0; secret().as_bytes().len()]),
        }));
        start
            .encode(&mut Vec::new())
            .context("the arguments and the environment are too long; give fewer")?;
        if let ToAgent::Start(start) = &mut start {
            start.authority = secret();
        }
        starts.push(Some(start));
    }
    Ok(starts)
}

/// How many ranks each host has.
fn placed(hosts: usize, job: &Job) -> Vec<u32> {
    let count = |host| u32::try_from(job.ranks_of(host).len()).unwrap_or(u32::MAX);
    (0..hosts).map(count).collect()
}

/// Who will certify the processes, if they meet over a network.
fn authority(options: &Run, hosts: &[Host], job: [u8; 16]) -> anyhow::Result<Option<Authority>> {
    if hosts.len() < 2 {
        return Ok(None);
    }
    hide_memory();
    let authority = Authority::new(&options.cluster, job);
    authority.map(Some).context("the job has no authority")
}
