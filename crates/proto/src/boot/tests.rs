use super::*;
use proptest::prelude::*;

fn death() -> impl Strategy<Value = Death> {
    prop_oneof![
        any::<u8>().prop_map(Death::Exit),
        any::<u8>().prop_map(Death::Signal),
        Just(Death::HostLost)
    ]
}

fn unreachable() -> impl Strategy<Value = Unreachable> {
    prop_oneof![
        Just(Unreachable::NoSuchRank),
        Just(Unreachable::Dead),
        Just(Unreachable::Left)
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        Just(Condition::Computes),
        Just(Condition::Sleeps),
        Just(Condition::Stopped),
        Just(Condition::Stuck),
        Just(Condition::Ended),
        Just(Condition::Unknown),
    ]
}

fn locator() -> impl Strategy<Value = String> {
    "\\PC{0,64}"
}

fn waiting() -> impl Strategy<Value = String> {
    "(?s).{0,100}"
}

fn blob() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..40)
}

fn progress() -> impl Strategy<Value = Progress> {
    let items = any::<(u64, u64, u64)>();
    let rest = (any::<Option<u64>>(), 0..=MAX_PROCESSES, any::<[bool; 2]>());
    ("\\PC{0,16}", any::<u32>(), items, rest).prop_map(
        |(name, number, (a, b, per_1000_s), (left_ms, ranks_at_work, [works_itself, is_over]))| {
            Progress {
                name,
                number,
                done: a.min(b),
                total: a.max(b),
                per_1000_s,
                left_ms,
                ranks_at_work,
                works_itself,
                is_over,
            }
        },
    )
}

fn boot() -> impl Strategy<Value = Boot> {
    let names = ("\\PC{0,60}", "\\PC{0,60}");
    let place = any::<[prop::sample::Index; 2]>();
    (
        any::<u128>(),
        1..=MAX_PROCESSES,
        any::<u32>(),
        names,
        place,
        ("[a-z]{1,9}", any::<[u8; 32]>()),
    )
        .prop_map(
            |(job, size, incarnation, (host, bind), [rank, hosts], (cluster, authority))| {
                let hosts = 1 + hosts.index(size as usize) as u32;
                Boot {
                    job,
                    rank: rank.index(size as usize) as u32,
                    size,
                    incarnation,
                    host,
                    hosts,
                    number: hosts - 1,
                    bind,
                    networks: vec![a_network(), Network::plain()],
                    spans: vec![a_span(), a_span()],
                    others: vec![a_network()],
                    channels: vec![a_channel(), a_channel()],
                    pace: Preset::Patient,
                    show_paths: size % 2 == 0,
                    overdue_ms: u64::from(incarnation),
                    cluster,
                    authority: if hosts > 1 { authority.into() } else { vec![] },
                }
            },
        )
}

fn start() -> impl Strategy<Value = Start> {
    let args = prop::collection::vec(blob(), 0..5);
    let env = prop::collection::vec((blob(), blob()), 0..5);
    let ranks = prop::collection::vec(any::<u32>(), 0..8);
    let on_death = prop_oneof![
        Just(OnDeath::Stop),
        Just(OnDeath::Continue),
        Just(OnDeath::Restart)
    ];
    (boot(), blob(), args, env, blob(), ranks, on_death).prop_map(
        |(boot, program, args, env, cwd, ranks, on_death)| {
            let mut ranks: Vec<u32> = ranks.iter().map(|r| r % boot.size).collect();
            ranks.push(boot.rank);
            ranks.sort_unstable();
            ranks.dedup();
            let part = Part {
                number: boot.hosts - 1,
                pace: Preset::Patient,
                max_restarts: boot.incarnation,
                placed: if boot.hosts == 1 {
                    vec![boot.size]
                } else {
                    vec![]
                },
            };
            Start {
                part,
                job: boot.job,
                size: boot.size,
                host: boot.host,
                hosts: boot.hosts,
                bind: boot.bind,
                ranks,
                program,
                args,
                env,
                cwd,
                on_death,
                networks: boot.networks,
                spans: boot.spans,
                others: boot.others,
                channels: boot.channels,
                is_gateway: boot.show_paths,
                show_paths: boot.show_paths,
                overdue_ms: boot.overdue_ms,
                cluster: boot.cluster,
                authority: Secret::new(boot.authority),
            }
        },
    )
}

fn to_process() -> impl Strategy<Value = ToProcess> {
    prop_oneof![
        boot().prop_map(|boot| ToProcess::Boot(Box::new(boot))),
        any::<(u32, u32, u32, u64)>().prop_map(|(rank, incarnation, pid, started)| {
            ToProcess::Peer {
                rank,
                incarnation,
                pid,
                started,
            }
        }),
        (any::<u32>(), any::<u32>(), locator()).prop_map(|(rank, incarnation, locator)| {
            ToProcess::Address {
                rank,
                incarnation,
                locator,
            }
        }),
        (any::<u32>(), unreachable())
            .prop_map(|(rank, reason)| ToProcess::Unreachable { rank, reason }),
        (any::<u32>(), any::<u32>(), death()).prop_map(|(rank, incarnation, how)| {
            ToProcess::Died {
                rank,
                incarnation,
                how,
            }
        }),
        any::<(u32, u32)>().prop_map(|(rank, incarnation)| ToProcess::Joined { rank, incarnation }),
        blob().prop_map(|certificate| ToProcess::Certificate { certificate }),
        (any::<u32>(), any::<u32>(), locator()).prop_map(|(host, life, locator)| {
            ToProcess::Gateway {
                host,
                life,
                locator,
            }
        }),
        Just(ToProcess::Last),
        Just(ToProcess::RollCall),
        (any::<u32>(), any::<u32>(), blob()).prop_map(|(from, total, bytes)| ToProcess::Topology {
            from,
            total,
            bytes
        }),
        any::<u64>().prop_map(|epoch| ToProcess::Epoch { epoch }),
        any::<(u32, u32, u32)>().prop_map(|(first, last, incarnation)| ToProcess::Fenced {
            first,
            last,
            incarnation,
        }),
    ]
}

fn from_process() -> impl Strategy<Value = FromProcess> {
    prop_oneof![
        locator().prop_map(|locator| FromProcess::Ready { locator }),
        any::<u32>().prop_map(|rank| FromProcess::Reach { rank }),
        Just(FromProcess::Leaving),
        Just(FromProcess::AskLast),
        any::<u32>().prop_map(|from| FromProcess::AskTopology { from }),
        waiting().prop_map(|text| FromProcess::Waiting { text }),
        progress().prop_map(FromProcess::Progress),
        blob().prop_map(|request| FromProcess::Certify { request }),
        blob().prop_map(|present| FromProcess::Present { present }),
        any::<u64>().prop_map(|millis| FromProcess::Overdue { millis }),
    ]
}

fn to_agent() -> impl Strategy<Value = ToAgent> {
    let origin = prop_oneof![Just(SignalOrigin::Terminal), Just(SignalOrigin::Process)];
    prop_oneof![
        start().prop_map(|start| ToAgent::Start(Box::new(start))),
        (any::<u8>(), origin).prop_map(|(number, origin)| ToAgent::Signal { number, origin }),
        (any::<u32>(), any::<u32>(), locator()).prop_map(|(rank, incarnation, locator)| {
            ToAgent::Located {
                rank,
                incarnation,
                locator,
            }
        }),
        (any::<u32>(), unreachable())
            .prop_map(|(rank, reason)| ToAgent::Unreachable { rank, reason }),
        locator().prop_map(|locator| ToAgent::Root { locator }),
        any::<u8>().prop_map(|number| ToAgent::Interrupt { number }),
        any::<u8>().prop_map(|code| ToAgent::Stop { code }),
        any::<u32>().prop_map(|bytes| ToAgent::Room { bytes }),
        any::<u32>().prop_map(|call| ToAgent::RollCall { call }),
    ]
}

fn from_agent() -> impl Strategy<Value = FromAgent> {
    let stream = prop_oneof![Just(Stream::Out), Just(Stream::Err)];
    prop_oneof![
        any::<u32>().prop_map(|version| FromAgent::Hello { version }),
        (any::<u32>(), stream, blob()).prop_map(|(rank, stream, bytes)| FromAgent::Output {
            rank,
            stream,
            bytes
        }),
        any::<(u32, u32, u32)>().prop_map(|(rank, incarnation, pid)| FromAgent::Started {
            rank,
            incarnation,
            pid
        }),
        (any::<u32>(), any::<u32>(), locator()).prop_map(|(rank, incarnation, locator)| {
            FromAgent::Ready {
                rank,
                incarnation,
                locator,
            }
        }),
        any::<(u32, u32)>().prop_map(|(rank, incarnation)| FromAgent::Locate { rank, incarnation }),
        locator().prop_map(|locator| FromAgent::Listening { locator }),
        blob().prop_map(|news| FromAgent::News { news }),
        Just(FromAgent::Pulse),
        (any::<[u32; 3]>(), condition(), proptest::option::of(blob())).prop_map(
            |([call, rank, incarnation], condition, present)| FromAgent::Present {
                call,
                rank,
                incarnation,
                condition,
                present,
            }
        ),
        any::<u32>().prop_map(|call| FromAgent::Called { call }),
        any::<(u32, u64)>().prop_map(|(rank, millis)| FromAgent::Overdue { rank, millis }),
        any::<(u32, u32)>().prop_map(|(rank, from)| FromAgent::AskTopology { rank, from }),
        waiting().prop_map(|text| FromAgent::Fenced { text }),
        (any::<u32>(), waiting()).prop_map(|(rank, text)| FromAgent::Waiting { rank, text }),
        (any::<u32>(), progress())
            .prop_map(|(rank, progress)| FromAgent::Progress { rank, progress }),
        "\\PC{0,100}".prop_map(|text| FromAgent::Error { text }),
    ]
}

/// Checks that every beginning of a message, and the message with more behind it, is refused.
fn only_whole<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T, DecodeError>) {
    for end in 0..bytes.len() {
        assert_eq!(
            decode(&bytes[..end]).err(),
            Some(DecodeError::Truncated),
            "cut at {end}"
        );
    }
    let longer = [bytes, &[0]].concat();
    assert_eq!(decode(&longer).err(), Some(DecodeError::TrailingBytes));
}

proptest! {
    #[test]
    fn packets_to_processes_come_back(message in to_process()) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        prop_assert_eq!(ToProcess::decode(&bytes), Ok(message));
        only_whole(&bytes, ToProcess::decode);
    }

    #[test]
    fn packets_from_processes_come_back(message in from_process()) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        prop_assert_eq!(FromProcess::decode(&bytes), Ok(message));
        only_whole(&bytes, FromProcess::decode);
    }

    #[test]
    fn frames_to_agents_come_back(messages in proptest::collection::vec(to_agent(), 1..4)) {
        let mut stream = Vec::new();
        for message in &messages {
            message.encode(&mut stream).unwrap();
        }
        let mut rest = &stream[..];
        for message in messages {
            let (content, taken) = split_frame(rest).unwrap().unwrap();
            prop_assert_eq!(ToAgent::decode(content), Ok(message));
            only_whole(content, ToAgent::decode);
            for end in 0..taken {
                prop_assert_eq!(split_frame(&rest[..end]), Ok(None));
            }
            rest = &rest[taken..];
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn frames_from_agents_come_back(message in from_agent()) {
        let mut stream = Vec::new();
        message.encode(&mut stream).unwrap();
        let (content, taken) = split_frame(&stream).unwrap().unwrap();
        prop_assert_eq!(taken, stream.len());
        prop_assert_eq!(FromAgent::decode(content), Ok(message));
        only_whole(content, FromAgent::decode);
    }

    /// Whatever is accepted means one thing: it encodes to the bytes it came from.
    #[test]
    fn foreign_bytes_are_refused_or_understood(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..20) {
        let bytes = [&[kind], &bytes[..]].concat();
        let mut again = Vec::new();
        if let Ok(message) = ToProcess::decode(&bytes) {
            message.encode(&mut again).unwrap();
            prop_assert_eq!(&again, &bytes);
        }
        again.clear();
        if let Ok(message) = FromProcess::decode(&bytes) {
            message.encode(&mut again).unwrap();
            prop_assert_eq!(&again, &bytes);
        }
        again.clear();
        if let Ok(message) = ToAgent::decode(&bytes) {
            message.encode(&mut again).unwrap();
            prop_assert_eq!(&again[FRAME_HEADER..], &bytes);
        }
        again.clear();
        if let Ok(message) = FromAgent::decode(&bytes) {
            message.encode(&mut again).unwrap();
            prop_assert_eq!(&again[FRAME_HEADER..], &bytes);
        }
        let _ = split_frame(&bytes);
    }

    #[test]
    fn a_changed_byte_does_no_harm(message in start(), at: proptest::sample::Index, value: u8) {
        let mut stream = Vec::new();
        ToAgent::Start(Box::new(message)).encode(&mut stream).unwrap();
        let at = FRAME_HEADER + at.index(stream.len() - FRAME_HEADER);
        stream[at] = value;
        let _ = ToAgent::decode(&stream[FRAME_HEADER..]);
    }
}

fn a_span() -> Span {
    Span {
        network: "fast".into(),
        hosts: vec![(0, 2), (4, 9)],
        trusted: true,
    }
}

fn a_boot() -> Boot {
    Boot {
        job: 1,
        rank: 2,
        size: 4,
        incarnation: 0,
        host: "h1".into(),
        hosts: 2,
        number: 1,
        bind: String::new(),
        networks: vec![Network::plain(), a_network()],
        spans: vec![],
        others: vec![],
        channels: vec![],
        pace: Preset::Default,
        show_paths: true,
        overdue_ms: 10_000,
        cluster: "local".into(),
        authority: vec![0xCD; 400],
    }
}

fn a_start() -> Start {
    Start {
        job: 1,
        size: 4,
        host: "h1".into(),
        hosts: 2,
        bind: String::new(),
        ranks: vec![2, 3],
        program: b"program".to_vec(),
        args: vec![],
        env: vec![],
        cwd: b"/".to_vec(),
        on_death: OnDeath::Stop,
        part: Part {
            number: 1,
            pace: Preset::Fast,
            max_restarts: 7,
            placed: vec![],
        },
        networks: vec![Network::plain(), a_network()],
        spans: vec![],
        others: vec![],
        channels: vec![],
        is_gateway: false,
        show_paths: true,
        overdue_ms: 10_000,
        cluster: "local".into(),
        authority: Secret::new(vec![0xAB; 32]),
    }
}

#[test]
fn a_message_beyond_its_limit_is_not_encoded() {
    let mut out = b"before".to_vec();
    let locator = "x".repeat(MAX_LOCATOR + 1);
    assert_eq!(
        FromProcess::Ready { locator }.encode(&mut out),
        Err(TooLarge)
    );
    let host = "x".repeat(MAX_HOST + 1);
    assert_eq!(
        ToProcess::Boot(Box::new(Boot { host, ..a_boot() })).encode(&mut out),
        Err(TooLarge)
    );
    let text = "x".repeat(MAX_WAITING + 1);
    assert_eq!(
        FromProcess::Waiting { text: text.clone() }.encode(&mut out),
        Err(TooLarge)
    );
    assert_eq!(
        FromAgent::Waiting { rank: 0, text }.encode(&mut out),
        Err(TooLarge)
    );
    let bytes = vec![0; MAX_OUTPUT + 1];
    assert_eq!(
        FromAgent::Output {
            rank: 0,
            stream: Stream::Out,
            bytes
        }
        .encode(&mut out),
        Err(TooLarge)
    );
    let args = vec![vec![]; MAX_LIST + 1];
    assert_eq!(
        ToAgent::Start(Box::new(Start { args, ..a_start() })).encode(&mut out),
        Err(TooLarge)
    );
    let args = vec![vec![0; MAX_FRAME / 2]; 3];
    assert_eq!(
        ToAgent::Start(Box::new(Start { args, ..a_start() })).encode(&mut out),
        Err(TooLarge)
    );
    assert_eq!(out, b"before");
}

#[test]
fn the_largest_packet_fits_the_limit() {
    let mut out = Vec::new();
    let longest = "x".repeat(MAX_HOST);
    ToProcess::Boot(Box::new(Boot {
        host: longest.clone(),
        bind: longest,
        networks: vec![full_network(); MAX_NETWORKS],
        others: vec![full_network(); MAX_NETWORKS],
        spans: vec![
            Span {
                network: "x".repeat(64),
                hosts: vec![(0, 1); MAX_RANGES / MAX_SPANS],
                trusted: false,
            };
            MAX_SPANS
        ],
        channels: vec![
            Channel {
                name: "x".repeat(64),
                ranks: vec![(0, 1); MAX_RANGES / MAX_CHANNELS],
                networks: vec![],
                is_joined: true,
            };
            MAX_CHANNELS
        ],
        show_paths: true,
        overdue_ms: 10_000,
        cluster: "x".repeat(MAX_CLUSTER),
        authority: vec![0; MAX_CERTIFICATE],
        ..a_boot()
    }))
    .encode(&mut out)
    .unwrap();
    let certificate = vec![0; MAX_CERTIFICATE];
    let packet = ToProcess::Certificate { certificate };
    packet.encode(&mut out).unwrap();
    let request = vec![0; MAX_REQUEST];
    FromProcess::Certify { request }.encode(&mut out).unwrap();
    FromProcess::Ready {
        locator: "x".repeat(MAX_LOCATOR),
    }
    .encode(&mut out)
    .unwrap();
}

#[test]
fn a_length_beyond_its_limit_is_refused_before_it_is_awaited() {
    assert_eq!(
        split_frame(&u32::MAX.to_le_bytes()),
        Err(DecodeError::Limit)
    );
    assert_eq!(
        split_frame(b"Welcome to host h1\n"),
        Err(DecodeError::Limit)
    );
    let ready = [&[1][..], &u32::MAX.to_le_bytes()].concat();
    assert_eq!(FromProcess::decode(&ready), Err(DecodeError::Limit));
    let waiting = [&[4, 1, 2, 0, 0][..], &[b'x'; MAX_WAITING + 1]].concat();
    assert_eq!(FromProcess::decode(&waiting), Err(DecodeError::Limit));
    let certify = [&[5, 1, 1, 0, 0][..], &[0; MAX_REQUEST + 1]].concat();
    assert_eq!(FromProcess::decode(&certify), Err(DecodeError::Limit));
    let certificate = [&[7, 1, 8, 0, 0][..], &[0; MAX_CERTIFICATE + 1]].concat();
    assert_eq!(ToProcess::decode(&certificate), Err(DecodeError::Limit));
    assert_eq!(
        FromProcess::decode(&vec![1; MAX_PACKET + 1]),
        Err(DecodeError::Limit)
    );
}

#[test]
fn identities_that_contradict_themselves_are_refused() {
    let wrong_boots = [
        Boot {
            rank: 4,
            ..a_boot()
        },
        Boot {
            size: 0,
            rank: 0,
            ..a_boot()
        },
        Boot {
            size: MAX_PROCESSES + 1,
            ..a_boot()
        },
        Boot {
            hosts: 0,
            ..a_boot()
        },
        Boot {
            hosts: 5,
            ..a_boot()
        },
        Boot {
            authority: vec![],
            ..a_boot()
        },
        Boot {
            hosts: 1,
            ..a_boot()
        },
    ];
    for boot in wrong_boots {
        let mut bytes = Vec::new();
        ToProcess::Boot(Box::new(boot)).encode(&mut bytes).unwrap();
        assert_eq!(ToProcess::decode(&bytes), Err(DecodeError::Value));
    }
    let wrong_starts = [
        Start {
            ranks: vec![],
            ..a_start()
        },
        Start {
            ranks: vec![3, 2],
            ..a_start()
        },
        Start {
            ranks: vec![2, 2],
            ..a_start()
        },
        Start {
            ranks: vec![2, 4],
            ..a_start()
        },
        Start {
            hosts: 0,
            ..a_start()
        },
        Start {
            authority: Secret::default(),
            ..a_start()
        },
        Start {
            hosts: 1,
            ..a_start()
        },
    ];
    // Who is no gateway carries ranks, and so does the first host.
    let no_gateway = Start {
        ranks: vec![],
        spans: vec![a_span()],
        ..a_start()
    };
    let first = Start {
        ranks: vec![],
        spans: vec![a_span()],
        is_gateway: true,
        part: Part {
            number: 0,
            placed: vec![0, 4],
            ..a_start().part
        },
        ..a_start()
    };
    for start in wrong_starts.into_iter().chain([no_gateway, first]) {
        let mut bytes = Vec::new();
        ToAgent::Start(Box::new(start)).encode(&mut bytes).unwrap();
        assert_eq!(
            ToAgent::decode(&bytes[FRAME_HEADER..]),
            Err(DecodeError::Value)
        );
    }
}

#[test]
fn hosts_without_ranks_are_gateways() {
    let start = Start {
        hosts: 9,
        ranks: vec![],
        spans: vec![a_span()],
        is_gateway: true,
        ..a_start()
    };
    let mut bytes = Vec::new();
    let frame = ToAgent::Start(Box::new(start));
    frame.encode(&mut bytes).unwrap();
    assert_eq!(ToAgent::decode(&bytes[FRAME_HEADER..]), Ok(frame));
}

#[test]
fn progress_that_contradicts_itself_is_refused() {
    let wrong = [
        Progress {
            done: 11,
            ..a_progress()
        },
        Progress {
            ranks_at_work: MAX_PROCESSES + 1,
            ..a_progress()
        },
    ];
    for progress in wrong {
        let mut bytes = Vec::new();
        let packet = FromProcess::Progress(progress);
        packet.encode(&mut bytes).unwrap();
        assert_eq!(FromProcess::decode(&bytes), Err(DecodeError::Value));
    }
    let name = "x".repeat(MAX_MAP_NAME + 1);
    let progress = Progress {
        name,
        ..a_progress()
    };
    let packet = FromProcess::Progress(progress);
    assert_eq!(packet.encode(&mut Vec::new()), Err(TooLarge));
}

fn a_progress() -> Progress {
    Progress {
        name: "tiles".into(),
        number: 0,
        done: 5,
        total: 10,
        per_1000_s: 2500,
        left_ms: Some(2000),
        ranks_at_work: 2,
        works_itself: true,
        is_over: false,
    }
}

#[test]
fn text_is_utf8() {
    let ready = [&[1, 1, 0, 0, 0, 0xFF][..]].concat();
    assert_eq!(FromProcess::decode(&ready), Err(DecodeError::Value));
}

#[test]
fn secrets_are_not_printed() {
    let secret = "171"; // 0xAB
    assert!(!format!("{:?}", a_start()).contains(secret));
    assert!(!format!("{:?}", a_start().authority).contains(secret));
}

fn a_channel() -> Channel {
    Channel {
        name: "bulk".into(),
        ranks: vec![(0, 2), (5, 6)],
        networks: vec!["fast-1".into(), "site".into()],
        is_joined: true,
    }
}

#[test]
fn channels_are_bounded_and_named_as_networks_are() {
    let encoded = |channels: Vec<Channel>| {
        let mut boot = a_boot();
        boot.channels = channels;
        let mut bytes = Vec::new();
        ToProcess::Boot(Box::new(boot))
            .encode(&mut bytes)
            .map(|()| bytes)
    };
    let with = |change: fn(&mut Channel)| {
        let mut channel = a_channel();
        change(&mut channel);
        vec![channel]
    };
    let long = |channel: &mut Channel| channel.networks = vec!["a".into(); MAX_OWN_DRIVERS + 1];
    assert!(encoded(with(long)).is_err());
    assert!(encoded(with(|channel| channel.ranks = vec![(0, 1); MAX_RANGES + 1])).is_err());
    assert!(encoded(vec![a_channel(); MAX_OWN_DRIVERS / 2 + 1]).is_err());
    let elsewhere = Channel {
        networks: vec![],
        ..a_channel()
    };
    assert!(encoded(vec![elsewhere.clone(); MAX_CHANNELS]).is_ok());
    assert!(encoded(vec![elsewhere; MAX_CHANNELS + 1]).is_err());
    let refused: [fn(&mut Channel); 4] = [
        |channel| channel.name = "a=b".into(),
        |channel| channel.networks = vec!["".into()],
        |channel| channel.ranks = vec![(3, 3)],
        |channel| channel.ranks = vec![(0, MAX_PROCESSES + 1)],
    ];
    for change in refused {
        let bytes = encoded(with(change)).unwrap();
        assert_eq!(ToProcess::decode(&bytes), Err(DecodeError::Value));
    }
}

fn a_topology() -> Topology {
    Topology {
        networks: vec![NetworkOf {
            name: "site".into(),
            driver: "tcp".into(),
            is_sealed: true,
            latency: 8_000,
            rate: 1 << 30,
        }],
        channels: vec![ChannelOf {
            name: "default".into(),
            parts: vec![(0, vec![(0, 2)])],
        }],
        hosts: vec![HostOf {
            name: "h1".into(),
            cluster: "west".into(),
            ranks: vec![(0, 4)],
            networks: vec![0],
            is_gateway: false,
        }],
    }
}

#[test]
fn a_topology_comes_back_and_one_that_names_no_network_is_refused() {
    let bytes = a_topology().encode().unwrap();
    assert_eq!(Topology::decode(&bytes), Ok(a_topology()));
    for len in 0..bytes.len() {
        assert!(Topology::decode(&bytes[..len]).is_err(), "{len} bytes");
    }
    let refused: [fn(&mut Topology); 4] = [
        |topology| topology.hosts[0].networks = vec![1],
        |topology| topology.channels[0].parts[0].0 = 1,
        |topology| topology.hosts[0].ranks = vec![(4, 4)],
        |topology| topology.hosts[0].ranks = vec![(0, MAX_PROCESSES + 1)],
    ];
    for change in refused {
        let mut topology = a_topology();
        change(&mut topology);
        let bytes = topology.encode().unwrap();
        assert_eq!(Topology::decode(&bytes), Err(DecodeError::Value));
    }
}

fn a_network() -> Network {
    Network {
        name: "fast-1".into(),
        carrier: Carrier::Ofi {
            provider: "tcp;ofi_rxm".into(),
        },
        interfaces: vec!["eth0".into(), "10.1.0.0/16".into()],
        trusted: true,
        streams: 4,
        pace: 1 << 27,
        door: Some(Door {
            at: "[::1]:4434".into(),
            meeting: "render@b".into(),
        }),
    }
}

fn full_network() -> Network {
    Network {
        name: "x".repeat(64),
        carrier: Carrier::Ofi {
            provider: "y".repeat(64),
        },
        interfaces: vec!["z".repeat(64); MAX_INTERFACES],
        trusted: true,
        streams: MAX_STREAMS,
        pace: u64::MAX,
        door: Some(Door {
            at: "d".repeat(64),
            meeting: "m".repeat(127),
        }),
    }
}

#[test]
fn a_network_needs_a_name_that_a_locator_can_hold() {
    for name in ["", "a=b", "A", "a;b", "a b", "ü"] {
        let mut boot = a_boot();
        boot.networks[0].name = name.into();
        let mut bytes = Vec::new();
        ToProcess::Boot(Box::new(boot)).encode(&mut bytes).unwrap();
        assert_eq!(ToProcess::decode(&bytes), Err(DecodeError::Value), "{name}");
    }
}

#[test]
fn networks_are_bounded() {
    let mut boot = a_boot();
    boot.networks = vec![Network::plain(); MAX_NETWORKS + 1];
    assert!(
        ToProcess::Boot(Box::new(boot))
            .encode(&mut Vec::new())
            .is_err()
    );
    let mut boot = a_boot();
    boot.networks[0].interfaces = vec![String::new(); MAX_INTERFACES + 1];
    assert!(
        ToProcess::Boot(Box::new(boot))
            .encode(&mut Vec::new())
            .is_err()
    );
    let mut boot = a_boot();
    boot.networks[0].streams = MAX_STREAMS + 1;
    let mut bytes = Vec::new();
    ToProcess::Boot(Box::new(boot)).encode(&mut bytes).unwrap();
    assert_eq!(ToProcess::decode(&bytes), Err(DecodeError::Value));
}

#[test]
fn a_part_that_does_not_fit_its_job_is_refused() {
    let part = |number, placed: &[u32]| Part {
        number,
        placed: placed.to_vec(),
        ..a_start().part
    };
    let decoded = |part: Part| {
        let mut bytes = Vec::new();
        let start = Start { part, ..a_start() };
        ToAgent::Start(Box::new(start)).encode(&mut bytes).unwrap();
        ToAgent::decode(&bytes[FRAME_HEADER..]).is_ok()
    };
    for good in [part(1, &[]), part(0, &[2, 2]), part(0, &[1, 3])] {
        assert!(decoded(good));
    }
    let bad = [
        part(2, &[]),
        part(1, &[2, 2]),
        part(0, &[]),
        part(0, &[4]),
        part(0, &[2, 1]),
        part(0, &[4, 0]),
        part(0, &[u32::MAX, 5]),
    ];
    for bad in bad {
        assert!(!decoded(bad.clone()), "{bad:?}");
    }
}
