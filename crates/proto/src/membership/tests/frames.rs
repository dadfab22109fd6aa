//! Frames as bytes.

use std::time::Duration;

use proptest::prelude::*;

use super::bed::{Bed, CONTINUE, process};
use crate::boot::{Death, DecodeError, FRAME_HEADER, split_frame};
use crate::id::{ProcessId, Rank};
use crate::membership::*;

fn death() -> impl Strategy<Value = Death> {
    prop_oneof![
        any::<u8>().prop_map(Death::Exit),
        any::<u8>().prop_map(Death::Signal),
        Just(Death::HostLost)
    ]
}

fn life() -> impl Strategy<Value = ProcessId> {
    (0..1000u32, any::<u32>()).prop_map(|(rank, life)| process(rank, life))
}

fn agent() -> impl Strategy<Value = AgentId> {
    (any::<u32>(), 1..u32::MAX).prop_map(|(host, life)| AgentId::new(HostId(host), life))
}

fn host_end() -> impl Strategy<Value = HostEnd> {
    prop_oneof![
        Just(HostEnd::Left),
        Just(HostEnd::Silent),
        Just(HostEnd::Refused)
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Done),
        any::<u8>().prop_map(|code| Ending::Asked { code }),
        (life(), death()).prop_map(|(process, how)| Ending::Process { process, how }),
        (any::<u32>(), host_end()).prop_map(|(host, how)| Ending::Host {
            host: HostId(host),
            how
        }),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        (any::<u32>(), 0..1000u32, any::<u32>()).prop_map(|(host, first, count)| Entry::Placed {
            host: HostId(host),
            first: Rank(first),
            count
        }),
        (agent(), "\\PC{0,40}").prop_map(|(agent, locator)| Entry::HostJoined { agent, locator }),
        (agent(), host_end()).prop_map(|(agent, how)| Entry::HostEnded { agent, how }),
        life().prop_map(|process| Entry::Left { process }),
        (life(), death()).prop_map(|(process, how)| Entry::Ended { process, how }),
        (life(), any::<u32>()).prop_map(|(process, host)| Entry::Restarted {
            process,
            host: HostId(host)
        }),
        ending().prop_map(Entry::JobEnds),
        any::<u8>().prop_map(|signal| Entry::Interrupted { signal }),
    ]
}

fn millis() -> impl Strategy<Value = Duration> {
    any::<u32>().prop_map(|millis| Duration::from_millis(millis.into()))
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        (life(), any::<u32>()).prop_map(|(process, pid)| Report::Started { process, pid }),
        life().prop_map(|process| Report::Left { process }),
        (life(), death()).prop_map(|(process, how)| Report::Ended { process, how }),
        Just(Report::Bye),
    ]
}

fn plain_said() -> impl Strategy<Value = Said> {
    prop_oneof![
        (any::<u64>(), "\\PC{0,40}").prop_map(|(number, locator)| Said::Hello { number, locator }),
        (any::<u64>(), millis(), any::<u64>()).prop_map(|(number, late, reports)| Said::Beat {
            number,
            late,
            reports
        }),
        (any::<u64>(), report()).prop_map(|(number, report)| Said::Report { number, report }),
        life().prop_map(|process| Said::Unreachable { process }),
        agent().prop_map(|agent| Said::Refused { agent }),
    ]
}

fn plain_up() -> impl Strategy<Value = FromAgent> {
    let parts = (agent(), any::<u64>(), plain_said());
    parts.prop_map(|(agent, epoch, said)| FromAgent {
        agent,
        epoch: Epoch(epoch),
        said,
    })
}

fn up() -> impl Strategy<Value = FromAgent> {
    let passed = (plain_up(), plain_up()).prop_map(|(outer, inner)| FromAgent {
        said: Said::Passed(Box::new(inner)),
        ..outer
    });
    prop_oneof![plain_up(), passed]
}

/// Members as a job can have them: whatever entries fit, in any order.
fn members() -> impl Strategy<Value = Members> {
    let small = prop_oneof![
        (0..5u32, 0..20u32, 1..5u32).prop_map(|(host, first, count)| Entry::Placed {
            host: HostId(host),
            first: Rank(first),
            count
        }),
        (0..5u32, 1..3u32).prop_map(|(host, life)| Entry::HostJoined {
            agent: AgentId::new(HostId(host), life),
            locator: "here".into()
        }),
        (0..5u32, 1..3u32, host_end()).prop_map(|(host, life, how)| Entry::HostEnded {
            agent: AgentId::new(HostId(host), life),
            how
        }),
        (0..20u32, 0..2u32).prop_map(|(rank, life)| Entry::Left {
            process: process(rank, life)
        }),
        (0..20u32, 0..2u32, death()).prop_map(|(rank, life, how)| Entry::Ended {
            process: process(rank, life),
            how
        }),
        (0..20u32, 1..3u32, 0..5u32).prop_map(|(rank, life, host)| Entry::Restarted {
            process: process(rank, life),
            host: HostId(host)
        }),
    ];
    let entries = proptest::collection::vec(small, 0..80);
    (entries, proptest::option::of(ending())).prop_map(|(entries, ending)| {
        let mut members = Members::default();
        for entry in entries.into_iter().chain(ending.map(Entry::JobEnds)) {
            let before = members.clone();
            let epoch = Epoch(members.epoch().0 + 1);
            let news = News {
                epoch,
                entries: vec![entry],
            };
            if members.apply_news(&news).is_err() {
                assert_eq!(members, before, "what does not fit leaves no trace");
            }
        }
        members
    })
}

fn plain_order() -> impl Strategy<Value = Order> {
    let news = (any::<u64>(), proptest::collection::vec(entry(), 1..20));
    prop_oneof![
        (any::<u64>(), members()).prop_map(|(number, members)| Order::Welcome {
            number,
            members: Box::new(members)
        }),
        (any::<u64>(), millis(), any::<u64>()).prop_map(|(number, age, reports)| Order::Grant {
            number,
            age,
            reports
        }),
        news.prop_map(|(epoch, entries)| Order::News(News {
            epoch: Epoch(epoch),
            entries
        })),
        (agent(), "\\PC{0,40}").prop_map(|(agent, locator)| Order::Look { agent, locator }),
        host_end().prop_map(|how| Order::Over { how }),
    ]
}

fn plain_down() -> impl Strategy<Value = FromRoot> {
    let parts = (agent(), any::<u64>(), plain_order());
    parts.prop_map(|(to, epoch, said)| FromRoot {
        to,
        epoch: Epoch(epoch),
        said,
    })
}

fn down() -> impl Strategy<Value = FromRoot> {
    let passed = (plain_down(), plain_down()).prop_map(|(outer, inner)| FromRoot {
        said: Order::Pass(Box::new(inner)),
        ..outer
    });
    prop_oneof![plain_down(), passed]
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        (agent(), agent()).prop_map(|(from, to)| Between::Look { from, to }),
        plain_up().prop_map(Between::Up),
        plain_down().prop_map(Between::Down),
    ]
}

fn content(bytes: &[u8]) -> &[u8] {
    let (content, length) = split_frame(bytes).expect("a frame").expect("all of it");
    assert_eq!(length, bytes.len());
    content
}

proptest! {
    #[test]
    fn what_an_agent_says_survives_the_way(frame in up()) {
        let mut bytes = vec![];
        frame.encode(&mut bytes).expect("small");
        prop_assert_eq!(FromAgent::decode(content(&bytes)), Ok(frame));
    }

    #[test]
    fn what_the_root_says_survives_the_way(frame in down()) {
        let mut bytes = vec![];
        frame.encode(&mut bytes).expect("small");
        prop_assert_eq!(FromRoot::decode(content(&bytes)), Ok(frame));
    }

    #[test]
    fn what_agents_say_to_each_other_survives_the_way(frame in between()) {
        let mut bytes = vec![];
        frame.encode(&mut bytes).expect("small");
        prop_assert_eq!(Between::decode(content(&bytes)), Ok(frame));
    }

    #[test]
    fn what_goes_over_one_connection_is_told_apart(up in up(), down in down(), across in between()) {
        for spoken in [Spoken::Up(up), Spoken::Down(down), Spoken::Across(across)] {
            let mut bytes = vec![];
            spoken.encode(&mut bytes).expect("small");
            prop_assert_eq!(Spoken::decode(content(&bytes)), Ok(spoken));
        }
    }

    #[test]
    fn news_survive_the_way_to_the_launcher(entries in proptest::collection::vec(entry(), 1..20)) {
        let news = News { epoch: Epoch(7), entries };
        let mut bytes = vec![];
        news.encode(&mut bytes).expect("small");
        prop_assert_eq!(News::decode(&bytes), Ok(news));
        bytes.push(0);
        prop_assert!(News::decode(&bytes).is_err());
    }

    #[test]
    fn a_frame_that_is_cut_off_is_refused(frame in down(), at in any::<prop::sample::Index>()) {
        let mut bytes = vec![];
        frame.encode(&mut bytes).expect("small");
        let content = content(&bytes);
        prop_assert!(FromRoot::decode(&content[..at.index(content.len())]).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = FromAgent::decode(&bytes);
        let _ = FromRoot::decode(&bytes);
        let _ = Between::decode(&bytes);
        let _ = Spoken::decode(&bytes);
        let _ = News::decode(&bytes);
    }

    /// A frame with a wrong byte goes to the machines if it can be read: they must not fall over.
    #[test]
    fn a_frame_with_a_wrong_byte_harms_no_machine(
        ups in proptest::collection::vec((up(), any::<prop::sample::Index>(), any::<u8>()), 1..8),
        downs in proptest::collection::vec((down(), any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bed = Bed::running(2, CONTINUE);
        let now = bed.now;
        for (mut frame, at, wrong) in ups {
            frame.agent = AgentId::new(HostId(1), 1);
            let mut bytes = vec![];
            frame.encode(&mut bytes).expect("small");
            // Not the name of the agent: with that it would be ignored.
            let at = (at.index(bytes.len()) + 12).min(bytes.len() - 1);
            bytes[at] = wrong;
            if let Ok(frame) = FromAgent::decode(&bytes[FRAME_HEADER..]) {
                bed.root.handle_frame(HostId(1), frame, now);
            }
        }
        for (mut frame, at, wrong) in downs {
            frame.to = AgentId::new(HostId(1), 1);
            frame.epoch = Epoch(u64::MAX);
            let mut bytes = vec![];
            frame.encode(&mut bytes).expect("small");
            let at = (at.index(bytes.len()) + 20).min(bytes.len() - 1);
            bytes[at] = wrong;
            if let Ok(frame) = FromRoot::decode(&bytes[FRAME_HEADER..]) {
                bed.agents.get_mut(&1).expect("there").handle_root(frame, now);
            }
        }
        bed.run_ms(30_000);
    }
}

#[test]
fn a_frame_in_a_frame_in_a_frame_is_refused() {
    let agent = AgentId::new(HostId(1), 1);
    let beat = Said::Beat {
        number: 1,
        late: Duration::ZERO,
        reports: 0,
    };
    let mut said = beat;
    for _ in 0..2 {
        let frame = FromAgent {
            agent,
            epoch: Epoch(0),
            said,
        };
        said = Said::Passed(Box::new(frame));
    }
    let deep = FromAgent {
        agent,
        epoch: Epoch(0),
        said,
    };
    assert!(deep.encode(&mut vec![]).is_err());
    let mut bytes = vec![];
    for _ in 0..100_000 {
        bytes.extend([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6]);
    }
    assert_eq!(FromAgent::decode(&bytes), Err(DecodeError::Kind(6)));
}

#[test]
fn epochs_and_life_zero_and_another_version_are_refused() {
    let frame = FromAgent {
        agent: AgentId::new(HostId(1), 1),
        epoch: Epoch(0),
        said: Said::Hello {
            number: 1,
            locator: String::new(),
        },
    };
    let mut bytes = vec![];
    frame.encode(&mut bytes).expect("small");
    let content = bytes.split_off(FRAME_HEADER);
    let with = |at: usize, value: u8| {
        let mut content = content.clone();
        content[at] = value;
        FromAgent::decode(&content)
    };
    assert_eq!(with(0, 7).map(|frame| frame.agent.host), Ok(HostId(7)));
    assert_eq!(with(4, 0), Err(DecodeError::Value));
    assert_eq!(with(17, 99), Err(DecodeError::Value));
}

#[test]
fn a_snapshot_of_the_largest_job_fits_a_frame() {
    let mut members = Members::default();
    let mut epoch = 0;
    let mut apply = |entries: Vec<Entry>| {
        epoch += 1;
        let news = News {
            epoch: Epoch(epoch),
            entries,
        };
        members.apply_news(&news).expect("it fits");
    };
    let hosts = 0..MAX_HOSTS as u32;
    apply(
        hosts
            .clone()
            .map(|host| Entry::Placed {
                host: HostId(host),
                first: Rank(host * 16),
                count: 16,
            })
            .collect(),
    );
    let locator = "x".repeat(MAX_LOCATOR);
    let join = |host| Entry::HostJoined {
        agent: AgentId::new(HostId(host), 1),
        locator: locator.clone(),
    };
    apply(hosts.clone().map(join).collect());
    let how = HostEnd::Silent;
    apply(
        hosts
            .map(|host| Entry::HostEnded {
                agent: AgentId::new(HostId(host), 1),
                how,
            })
            .collect(),
    );
    assert!(members.is_over());
    let said = Order::Welcome {
        number: 1,
        members: Box::new(members.clone()),
    };
    let frame = FromRoot {
        to: AgentId::new(HostId(1), 1),
        epoch: Epoch(3),
        said,
    };
    let mut bytes = vec![];
    frame.encode(&mut bytes).expect("it fits");
    assert_eq!(FromRoot::decode(content(&bytes)), Ok(frame));
}
