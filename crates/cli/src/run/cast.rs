//! The hosts, ranks and networks of a job: of one launcher, or of both halves together.

use std::fmt::Write;
use std::os::unix::net::UnixStream;

use anyhow::{Context, ensure};
use mizzen_config::{DEFAULT_CHANNEL, JobFile, limits};
use mizzen_proto::boot::{self, MAX_PROCESSES, ToAgent};

use super::links::Link;
use super::networks;
use super::options::Run;
use crate::hosts::{Host, deal, this_host};

/// Who takes part.
pub(super) struct Cast {
    pub(super) hosts: Vec<Host>,
    /// The host of each rank.
    pub(super) places: Vec<usize>,
    pub(super) file: Option<JobFile>,
    /// What the hosts of a job that is met are told besides.
    meeting: Option<Doors>,
}

/// One half of a job that is met.
pub(super) struct Half<'a> {
    pub(super) site: &'a str,
    pub(super) processes: u32,
    pub(super) hosts: Vec<Host>,
    /// Where the gateway of its site is, for its hosts.
    pub(super) door: String,
}

/// What is known of the way between two halves.
pub(super) struct Way {
    /// The connections that their gateways have.
    pub(super) streams: u8,
    /// What it carries, in Mbit/s.
    pub(super) rate: Option<u64>,
}

/// The half of each host, and the doors of the sites.
struct Doors {
    network: String,
    /// For each host: its door, and the meeting as its site calls it.
    of_hosts: Vec<boot::Door>,
    /// How many hosts at the beginning are of the leader's half, then of the other, then the two gateways.
    halves: [usize; 2],
}

impl Cast {
    /// What the options of one launcher say.
    pub(super) fn alone(options: &Run) -> anyhow::Result<Self> {
        let hosts = own_hosts(options)?;
        Ok(Self {
            places: deal(options.processes, options.carriers()).collect(),
            hosts,
            file: networks::read(options)?,
            meeting: None,
        })
    }

    /// Both halves of a job: the leader's hosts, the other's, and a gateway of each, on the first host of its half.
    pub(super) fn of_halves(
        job: &str,
        leader: Half<'_>,
        other: Half<'_>,
        way: &Way,
    ) -> anyhow::Result<Self> {
        let size = leader.processes.checked_add(other.processes);
        ensure!(
            size.is_some_and(|size| size <= MAX_PROCESSES),
            "both halves together want more than {MAX_PROCESSES} processes"
        );
        let halves = [leader.hosts.len(), other.hosts.len()];
        let places = deal(leader.processes, halves[0]);
        let others = deal(other.processes, halves[1]).map(|host| halves[0] + host);
        let places: Vec<usize> = places.chain(others).collect();
        let door = |half: &Half<'_>, met: &Half<'_>| boot::Door {
            at: half.door.clone(),
            meeting: format!("{job}@{}", met.site),
        };
        let doors = [door(&leader, &other), door(&other, &leader)];
        let sites = [leader.site, other.site];
        let gateways = [&leader, &other].map(|half| {
            let mut name = "gateway".to_owned();
            while half.hosts.iter().any(|host| host.name == name) {
                name.push('-');
            }
            Host {
                name: format!("{}:{name}", half.site),
                ..half.hosts[0].clone()
            }
        });
        let mut hosts = Vec::new();
        for half in [leader, other] {
            hosts.extend(half.hosts.into_iter().map(|host| Host {
                name: format!("{}:{}", half.site, host.name),
                ..host
            }));
        }
        hosts.extend(gateways);
        let network = BETWEEN.to_owned();
        let text = file(sites, &hosts, halves, way);
        let is_leaders = |host: usize| host < halves[0] || host == halves[0] + halves[1];
        let of_hosts = (0..hosts.len()).map(|host| doors[usize::from(!is_leaders(host))].clone());
        Ok(Self {
            places,
            file: Some(JobFile::parse("", text).context("the networks of both halves")?),
            meeting: Some(Doors {
                network,
                of_hosts: of_hosts.collect(),
                halves,
            }),
            hosts,
        })
    }

    /// Whether the other launcher starts the agent of this host.
    fn is_far(&self, host: usize) -> bool {
        self.meeting.as_ref().is_some_and(|doors| {
            let [ours, theirs] = doors.halves;
            (ours..ours + theirs).contains(&host) || host == ours + theirs + 1
        })
    }

    /// Starts the agents, or takes those that the other launcher starts: `far` has a stream for each of these, in order.
    pub(super) fn links(&self, options: &Run, far: Vec<UnixStream>) -> anyhow::Result<Vec<Link>> {
        let starter = Starter::new(options, self.hosts.len())?;
        let mut far = far.into_iter();
        let link = |(number, host): (usize, &Host)| match self.is_far(number) {
            true => {
                let stream = far.next().context("a stream is missing")?;
                Link::far(host.name.clone(), stream)
            }
            false => starter.start(host),
        };
        self.hosts.iter().enumerate().map(link).collect()
    }

    /// Puts into what agents are told what only this job has.
    pub(super) fn complete(&self, starts: &mut [Option<ToAgent>]) {
        let Some(doors) = &self.meeting else {
            return;
        };
        for (number, start) in starts.iter_mut().enumerate() {
            let Some(ToAgent::Start(start)) = start else {
                continue;
            };
            for network in start
                .networks
                .iter_mut()
                .filter(|network| network.name == doors.network)
            {
                network.door = Some(doors.of_hosts[number].clone());
            }
            if self.is_far(number) {
                // Its own launcher knows what to run there, and our environment is nobody's business.
                start.program = b"-".to_vec();
                (start.args, start.env) = (Vec::new(), Vec::new());
                start.cwd = b"/".to_vec();
            }
        }
    }
}

/// Starts agents of this launcher's own.
pub(super) struct Starter<'a> {
    options: &'a Run,
    agent_path: std::path::PathBuf,
    is_alone: bool,
}

impl<'a> Starter<'a> {
    pub(super) fn new(options: &'a Run, hosts: usize) -> anyhow::Result<Self> {
        let agent_path = match &options.agent_path {
            Some(path) => path.clone(),
            None => std::env::current_exe()
                .context("the path of this command is not known; give --agent-path")?,
        };
        Ok(Self {
            options,
            agent_path,
            is_alone: hosts == 1,
        })
    }

    pub(super) fn start(&self, host: &Host) -> anyhow::Result<Link> {
        let is_here = self.options.hosts.is_empty() || host.is_here(&self.options.remote_shell);
        let name = host.name.clone();
        match (is_here, self.is_alone) {
            (true, true) => Link::local(name),
            (true, false) => Link::here(name, "agent"),
            (false, _) => Link::remote(
                name,
                &host.reached_as,
                &self.options.remote_shell,
                &self.agent_path,
                "agent",
            ),
        }
    }
}

/// The hosts of one launcher: those of its options, or this one.
pub(super) fn own_hosts(options: &Run) -> anyhow::Result<Vec<Host>> {
    let hosts = options.hosts()?;
    Ok(match hosts.is_empty() {
        true => vec![this_host()],
        false => hosts,
    })
}

/// The job's file that two halves would have written, had they known each other.
fn file(sites: [&str; 2], hosts: &[Host], halves: [usize; 2], way: &Way) -> String {
    let (leaders, rest) = hosts.split_at(halves[0]);
    let (others, gateways) = rest.split_at(halves[1]);
    let names = |hosts: &[&[Host]]| {
        let all = hosts.iter().flat_map(|hosts| hosts.iter());
        let quoted: Vec<String> = all.map(|host| format!("{:?}", host.name)).collect();
        quoted.join(", ")
    };
    let clusters = [
        (
            network_of(sites[0], "half-1"),
            names(&[leaders, &gateways[..1]]),
        ),
        (
            network_of(sites[1], "half-2"),
            names(&[others, &gateways[1..]]),
        ),
    ];
    let between = names(&[gateways]);
    let mut text = format!(
        "[[network]]\nname = \"{BETWEEN}\"\nhosts = [{between}]\nstreams = {}\n",
        way.streams
    );
    if let Some(rate) = way.rate {
        // A text takes everything.
        let _ = writeln!(text, "rate = {rate}");
    }
    for (site, hosts) in &clusters {
        let _ = writeln!(text, "[[network]]\nname = \"{site}\"\nhosts = [{hosts}]");
        let _ = writeln!(text, "[[cluster]]\nname = \"{site}\"\nhosts = [{hosts}]");
    }
    text
}

/// What the network and the cluster of a half are called: as its site, if that fits.
fn network_of<'a>(site: &'a str, otherwise: &'a str) -> &'a str {
    let is_taken = [BETWEEN, DEFAULT_CHANNEL, "half-1", "half-2"].contains(&site);
    match site.len() <= limits::NAME && !is_taken {
        true => site,
        false => otherwise,
    }
}

/// The network between the gateways of both halves.
const BETWEEN: &str = "between";

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: Way = Way {
        streams: 4,
        rate: Some(1000),
    };

    fn half<'a>(site: &'a str, hosts: &[&str]) -> Half<'a> {
        Half {
            site,
            processes: 3,
            hosts: hosts.iter().map(|name| Host::new(name, "")).collect(),
            door: "10.0.0.1:4434".to_owned(),
        }
    }

    #[test]
    fn ranks_are_those_of_one_half_then_of_the_other() {
        let cast =
            Cast::of_halves("render", half("a", &["x", "y"]), half("b", &["x"]), &WAY).unwrap();
        assert_eq!(cast.places, [0, 0, 1, 2, 2, 2]);
        let names: Vec<&str> = cast.hosts.iter().map(|host| &host.name[..]).collect();
        assert_eq!(names, ["a:x", "a:y", "b:x", "a:gateway", "b:gateway"]);
        let file = cast.file.as_ref().unwrap();
        assert_eq!(
            file.gateways(DEFAULT_CHANNEL, &names),
            ["a:gateway", "b:gateway"]
        );
        assert_eq!(file.cluster_of("b:x"), Some("b"));
        let far: Vec<bool> = (0..5).map(|host| cast.is_far(host)).collect();
        assert_eq!(far, [false, false, true, false, true]);
        let doors = &cast.meeting.as_ref().unwrap().of_hosts;
        let meetings: Vec<&str> = doors.iter().map(|door| &door.meeting[..]).collect();
        assert_eq!(
            meetings,
            ["render@b", "render@b", "render@a", "render@b", "render@a"]
        );
    }

    /// Names of sites may be longer than those of networks, and mean something else there.
    #[test]
    fn any_two_sites_may_meet() {
        let long = "x".repeat(63);
        for (one, other) in [
            ("a", &long[..]),
            ("between", "default"),
            ("half-1", "half-2"),
        ] {
            let (leader, follower) = (half(one, &["gateway"]), half(other, &["gateway", "y"]));
            let cast = Cast::of_halves("render", leader, follower, &WAY).unwrap();
            let names: Vec<&str> = cast.hosts.iter().map(|host| &host.name[..]).collect();
            let file = cast.file.as_ref().unwrap();
            assert_eq!(
                file.gateways(DEFAULT_CHANNEL, &names).len(),
                2,
                "{one} {other}"
            );
            assert!(names.iter().all(|name| file.cluster_of(name).is_some()));
        }
    }
}
