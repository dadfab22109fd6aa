//! Inputs that honest encoders write, one of each kind: from these the search begins.

use mizzen_proto::boot;
use mizzen_proto::credit::WINDOW;
use mizzen_proto::id::{
    BodyId, Incarnation, MailboxId, OfferId, PingToken, ProcessId, Rank, StreamId,
};
use mizzen_proto::rollcall::{Down, Kind, Operation, Place, Present, Wait};
use mizzen_proto::wire::{Frame, VERSION};

const P: ProcessId = ProcessId::new(Rank(0), Incarnation(0));
const Q: ProcessId = ProcessId::new(Rank(1), Incarnation(2));
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let (to, stream) = (MailboxId(2), StreamId(3));
    let (offer, body) = (OfferId(4), BodyId(5));
    let token = PingToken(6);
    [
        Frame::Hello {
            version: VERSION,
            from: P,
            to: Q,
            window: WINDOW,
        },
        Frame::Post {
            to,
            stream,
            message: b"message",
        },
        Frame::Offer {
            to,
            stream,
            offer,
            body_len: 100_000,
            head: b"head",
        },
        Frame::Push {
            to,
            stream,
            offer,
            body_len: 100_000,
            head: b"head",
        },
        Frame::Returned { bytes: 100_000 },
        Frame::Accept { offer, body },
        Frame::Pull {
            offer,
            body,
            from: 4096,
            len: 4096,
        },
        Frame::Decline { offer },
        Frame::Retract { offer },
        Frame::Credit {
            to,
            credits: WINDOW,
        },
        Frame::Gone { mailbox: to },
        Frame::Bye,
        Frame::Ping { token },
        Frame::Pong { token },
    ]
    .iter()
    .map(Frame::to_vec)
    .collect()
}

pub(crate) fn link() -> Vec<Vec<u8>> {
    // A hello, then one frame each; and some of our own doing before and after.
    let raw = |frame: Vec<u8>| [vec![1], with_len(0, &frame), vec![22, 9, 22, 9]].concat();
    let mut all: Vec<_> = frames().into_iter().map(raw).collect();
    // The peer's frame, as the engine models it: where to, length, numbers.
    for kind in 0..12 {
        let theirs = [1, kind, 1, 5, 0, 1, 0, 9, 0];
        let receive = [10, 0, 19, 0, 13, 0, 22, 200];
        let post = [6, 1, 4, 0xfc, 0, 0, 2, 0, 0, 0, 0, 0, kind];
        all.push(
            [
                &[1][..],
                &post,
                &post,
                &theirs,
                &receive,
                &[18, 0, 17, 22, 9],
            ]
            .concat(),
        );
        let burst = [5, 0, 4, kind | 0x80, 9, 0, 1, 5, 0, 1, 0, 1, 0, 0, 0];
        all.push([&[1][..], &burst, &receive].concat());
        // To a mailbox that is not there, for as long as the peer likes; what is asked for never comes.
        let endless = [5, 0xff, 7, kind | 0x80, 9, 0, 99, 0, 0, 1, 0, 1, 0, 0, 0];
        all.push([&[1][..], &endless, &endless, &endless].concat());
    }
    all
}

pub(crate) fn identity() -> Vec<Vec<u8>> {
    use mizzen_identity::{Authority, Identity, Keys};
    let (cluster, job) = ("seed", [3; 16]);
    let mut all = Vec::new();
    let who = Identity::new(cluster, job, 1, 2).map(|who| who.to_string());
    all.extend(who.map(|who| [&[0], who.as_bytes()].concat()));
    let authority = Authority::new(cluster, job);
    all.extend(authority.map(|one| [&[1], one.to_secret().as_bytes()].concat()));
    all.extend(Keys::generate().map(|keys| [&[2], &keys.request()[..]].concat()));
    all.extend(flights().unwrap_or_default());
    all
}

/// What both ends of a handshake say, as each hears it.
fn flights() -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    use mizzen_identity::{Authority, Bond, Identity, Shaking};
    let authority = Authority::new("seed", [3; 16])?;
    let who = |rank| Identity::new("seed", [3; 16], rank, 0);
    let bond = |rank, ours: &str, theirs: &str| -> Result<_, Box<dyn std::error::Error>> {
        let (peer, ours, theirs) = (who(rank)?, ours.into(), theirs.into());
        Ok(Bond { peer, ours, theirs })
    };
    let mut one = Shaking::dial(&authority.credentials(&who(0)?)?, bond(1, "0", "1")?)?;
    let mut other = Shaking::accept(&authority.credentials(&who(1)?)?, bond(0, "1", "0")?)?;
    let hello = one.begin()?;
    let answer = other.take(&hello)?.unwrap_or_default();
    let proof = one.take(&answer)?.unwrap_or_default();
    Ok(vec![
        [&[4], &hello[..]].concat(),
        [&[3], &answer[..]].concat(),
        [&[4], &proof[..]].concat(),
    ])
}

pub(crate) fn boot() -> Vec<Vec<u8>> {
    use boot::{Boot, Death, FromAgent, FromProcess, ToAgent, ToProcess, Unreachable};
    let (rank, incarnation) = (1, 2);
    let locator = || "10.0.0.1:99".to_owned();
    let text = || "has waited".to_owned();
    let present = || a_present().encode();
    let progress = || boot::Progress {
        name: "tiles".to_owned(),
        number: 3,
        done: 5,
        total: 10,
        per_1000_s: 2500,
        left_ms: Some(2000),
        ranks_at_work: 2,
        works_itself: true,
        is_over: false,
    };
    let (host, bind) = ("a".to_owned(), "10.0.0.1".to_owned());
    let (job, size, hosts) = (7, 4, 2);
    let networks = || vec![boot::Network::plain()];
    let spans = || {
        vec![boot::Span {
            network: "fast".into(),
            hosts: vec![(0, 2), (5, 6)],
            trusted: true,
        }]
    };
    let channels = || {
        vec![boot::Channel {
            name: "bulk".into(),
            ranks: vec![(0, 2)],
            networks: vec!["site".into()],
            is_joined: false,
        }]
    };
    let (cluster, authority) = ("local".to_owned(), vec![5; 40]);
    let mut all = vec![a_present().encode()];
    for packet in [
        ToProcess::Boot(Box::new(Boot {
            job,
            rank,
            size,
            incarnation,
            host: host.clone(),
            hosts,
            number: 1,
            bind: bind.clone(),
            networks: networks(),
            spans: spans(),
            others: vec![boot::Network::plain()],
            channels: channels(),
            pace: boot::Preset::Default,
            show_paths: true,
            overdue_ms: 10_000,
            cluster: cluster.clone(),
            authority: authority.clone(),
        })),
        ToProcess::Peer {
            rank,
            incarnation,
            pid: 4711,
            started: 815,
        },
        ToProcess::Address {
            rank,
            incarnation,
            locator: locator(),
        },
        ToProcess::Unreachable {
            rank,
            reason: Unreachable::Left,
        },
        ToProcess::Died {
            rank,
            incarnation,
            how: Death::Signal(9),
        },
        ToProcess::Joined { rank, incarnation },
        ToProcess::Epoch { epoch: 7 },
        ToProcess::RollCall,
        ToProcess::Fenced {
            first: rank,
            last: rank,
            incarnation,
        },
        ToProcess::Certificate {
            certificate: vec![2; 300],
        },
    ] {
        all.push(encoded(|out| packet.encode(out)));
    }
    for packet in [
        FromProcess::Ready { locator: locator() },
        FromProcess::Reach { rank },
        FromProcess::Leaving,
        FromProcess::Waiting { text: text() },
        FromProcess::Path { text: text() },
        FromProcess::Progress(progress()),
        FromProcess::Present { present: present() },
        FromProcess::Overdue { millis: 10_000 },
        FromProcess::Certify {
            request: vec![1; 97],
        },
    ] {
        all.push(encoded(|out| packet.encode(out)));
    }
    let start = boot::Start {
        job,
        size,
        host,
        hosts,
        bind,
        ranks: vec![1, 3],
        program: b"/bin/true".to_vec(),
        args: vec![b"-v".to_vec()],
        env: vec![(b"A".to_vec(), b"b".to_vec())],
        cwd: b"/".to_vec(),
        on_death: boot::OnDeath::Restart,
        part: boot::Part {
            number: 1,
            pace: boot::Preset::Fast,
            max_restarts: 3,
            placed: vec![],
        },
        networks: networks(),
        spans: spans(),
        others: vec![boot::Network::plain()],
        channels: channels(),
        is_gateway: true,
        show_paths: false,
        overdue_ms: 0,
        cluster,
        authority: boot::Secret::new(authority),
    };
    for frame in [
        ToAgent::Start(Box::new(start)),
        ToAgent::Signal {
            number: 15,
            origin: boot::SignalOrigin::Terminal,
        },
        ToAgent::Located {
            rank,
            incarnation,
            locator: locator(),
        },
        ToAgent::Root { locator: locator() },
        ToAgent::Interrupt { number: 2 },
        ToAgent::Stop { code: 1 },
        ToAgent::Room { bytes: 1 << 16 },
        ToAgent::RollCall { call: 3 },
        ToAgent::Topology {
            rank,
            from: 0,
            total: 9,
            bytes: vec![1; 9],
        },
    ] {
        all.push(encoded(|out| frame.encode(out)));
    }
    for frame in [
        FromAgent::Hello {
            version: boot::VERSION,
        },
        FromAgent::Output {
            rank,
            stream: boot::Stream::Err,
            bytes: b"line\n".to_vec(),
        },
        FromAgent::Started {
            rank,
            incarnation,
            pid: 77,
        },
        FromAgent::Ready {
            rank,
            incarnation,
            locator: locator(),
        },
        FromAgent::Listening { locator: locator() },
        FromAgent::News { news: vec![1; 9] },
        FromAgent::Pulse,
        FromAgent::Present {
            call: 3,
            rank,
            incarnation,
            condition: boot::Condition::Stopped,
            present: Some(present()),
        },
        FromAgent::Called { call: 3 },
        FromAgent::Overdue {
            rank,
            millis: 10_000,
        },
        FromAgent::AskTopology { rank, from: 7 },
        FromAgent::Fenced { text: text() },
        FromAgent::Waiting { rank, text: text() },
        FromAgent::Progress {
            rank,
            progress: progress(),
        },
        FromAgent::Locate { rank, incarnation },
        FromAgent::Error { text: text() },
    ] {
        all.push(encoded(|out| frame.encode(out)));
    }
    all
}

fn a_present() -> Present {
    let wait = Wait {
        kind: Kind::Group,
        what: "in barrier for rank 2".to_owned(),
        whom: vec![2, 1],
        at: Some(Place {
            file: "src/main.rs".to_owned(),
            line: 7,
        }),
        millis: 10_100,
        thread: "main".to_owned(),
        serves: false,
        operation: Some(Operation {
            group: "all".to_owned(),
            number: 3,
            name: "barrier".to_owned(),
        }),
    };
    Present {
        waits: vec![wait],
        left_out: 1,
        down: vec![Down {
            rank: 1,
            millis: 900,
        }],
    }
}

pub(crate) fn headers() -> Vec<Vec<u8>> {
    let mut all = vec![
        crate::tcp::hello(1, 50, 60, 1),
        crate::tcp::hello(2, 60, 50, 2),
    ];
    for kind in 1..=5 {
        let body = if kind == 1 { 0 } else { 9 };
        all.push(tcp_header(kind, 100, body));
    }
    // Packets between processes of a host: a kind, and words.
    all.push([&[0, 1][..], &Q.to_u64().to_le_bytes()].concat());
    all.push([&[1][..], &7_u64.to_le_bytes(), &9_u64.to_le_bytes()].concat());
    all.push([&[2][..], &7_u64.to_le_bytes(), &3_u32.to_le_bytes()].concat());
    all.push([&[3][..], &7_u64.to_le_bytes(), &[1]].concat());
    all.push([&[4][..], &7_u64.to_le_bytes()].concat());
    all.push([&[5][..], &7_u64.to_le_bytes()].concat());
    all.push([&[6][..], &4_u32.to_le_bytes(), &4096_u64.to_le_bytes()].concat());
    all.extend([vec![8], vec![9]]);
    all.push([&[10][..], &4_u32.to_le_bytes()].concat());
    all
}

pub(crate) fn tcp() -> Vec<Vec<u8>> {
    let frame = |bytes: &[u8]| [tcp_header(1, bytes.len() as u32, 0), bytes.to_vec()].concat();
    let piece = |kind, bytes: &[u8]| {
        let header = tcp_header(kind, bytes.len() as u32, 9);
        [header, bytes.to_vec()].concat()
    };
    let peer = |events: &[Vec<u8>]| [vec![0], events.concat()].concat();
    let write = |bytes: &[u8]| with_len(0, bytes);
    let place = |len: u8| vec![4, 9, len, 0];
    vec![
        [vec![1], crate::tcp::hello(1, 60, 50, 1)].concat(),
        [vec![1], b"GET / HTTP/1.1\r\n".to_vec()].concat(),
        peer(&[write(&frame(b"")), write(&frame(b"frame"))]),
        peer(&[write(&[frame(b"two"), frame(b"at once")].concat())]),
        peer(&[write(&frame(b"cut")[..10]), write(&frame(b"cut")[10..])]),
        peer(&[
            place(6),
            write(&[piece(2, b"bod"), piece(3, b"ies")].concat()),
        ]),
        peer(&[write(&piece(5, b"pushed")), place(6), write(&frame(b"x"))]),
        peer(&[write(&piece(4, b"pu")), place(6), write(&piece(5, b"shed"))]),
        peer(&[write(&piece(3, b"nobody asked"))]),
        peer(&[vec![6, 9, 0], vec![7], write(&frame(b"late"))]),
    ]
}

pub(crate) fn config() -> Vec<Vec<u8>> {
    [
        "[[network]]\nname = \"site\"\n",
        "# Both networks of the site.\n[[network]]\nname = \"site\"\ndriver = \"tcp\"\nhosts = [\"a\", \"b\"]\n\
         interfaces = [\"eth0\", \"10.1.0.0/16\", \"fd00::/8\"]\nsecurity = \"tls\"\nport = 4711\n\n\
         [[network]]\nname = \"fast\"\ndriver = \"ofi\"\nprovider = \"tcp;ofi_rxm\"\nsecurity = \"trusted\"\n",
        "[[network]]\nnam = \"site\"\n",
        "[[network]]\nname = 'a'\nport = 99999\n",
        "name = \"a\"\ngateway = \"gw1\"\nlisten = \"0.0.0.0:4433\"\nrevoked = [\"sha256:\
         5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\"]\n\n[[site]]\nname = \"b\"\nkeys = [\"sha256:\
         0707070707070707070707070707070707070707070707070707070707070707\"]\nreach = [\"gw.b.example:4433\"]\n\
         exports = [\"render\", \"tiles-*\"]\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub(crate) fn lane() -> Vec<Vec<u8>> {
    let announce = |kind: u8, len: u8, offset: u32, extent: u32| {
        let tag = [5, 0];
        let words = [offset.to_le_bytes(), extent.to_le_bytes()].concat();
        [&[3, 0, kind, len][..], &tag, &words, &[0]].concat()
    };
    let all = [
        announce(1, 8, 0, 0),
        announce(2, 0, 0, 64),
        announce(2, 0, 200, 56),
        announce(2, 0, 200, 57),
        announce(3, 0, 0, 0),
        announce(9, 0, 0, 0),
        announce(1, 57, 0, 0),
        // The slot changes while it is read.
        [
            vec![6, 72, 0, 0, 0, 8, 0],
            vec![0xff; 8],
            announce(2, 0, 0, 8),
        ]
        .concat(),
        vec![
            10, 40, 5, 0, 9, 0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 10, 40, 5, 0,
        ],
        vec![13, 40, 12, 0, 0, 0, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 13, 40],
        vec![14, 3, 9, 14, 8, 9],
        vec![15, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0],
        vec![3, 0, 1, 13, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 5, 0, 0, 13],
    ];
    let lap: Vec<u8> = (0..20).flat_map(|_| announce(1, 8, 0, 0)).collect();
    let together = all.concat();
    all.into_iter().chain([lap, together]).collect()
}

pub(crate) fn message() -> Vec<Vec<u8>> {
    let ticket = |slab: u32, offset: u64, len: u64| {
        let mut bytes = [slab.to_le_bytes(), 3_u32.to_le_bytes()].concat();
        for word in [offset, len, 1_u64] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    };
    let post = |lane: u8, tag: u16, bytes: &[u8], unpack: &[u8]| {
        let tag = tag.to_le_bytes();
        [&[lane, tag[0], tag[1]][..], &with_len(0, bytes), unpack].concat()
    };
    let network = |flags: u16, bytes: &[u8], unpack: &[u8]| {
        let flags = flags.to_le_bytes();
        let len = (bytes.len() as u16).to_le_bytes();
        [&[0, flags[0], flags[1], len[0], len[1]][..], bytes, unpack].concat()
    };
    let poke = |place: u8, offset: u32, bytes: &[u8]| {
        let offset = offset.to_le_bytes();
        let len = (bytes.len() as u16).to_le_bytes();
        [&[1, place][..], &offset, &len, bytes].concat()
    };
    // Two pieces of 8 and 3 bytes; one of them lent; a message in a message.
    let two = [&[2, 32, 12][..], &[7; 11]].concat();
    let lent = [&[2, 32, 0x81, 1][..], &[7; 8], &ticket(0, 4096, 64)].concat();
    let inner = [&[1, 48][..], &[0], &two[..11]].concat();
    let long = [&[1, 0xe0, 3][..], &[7; 120]].concat();
    let mut all = Vec::new();
    for lane in [2, 3] {
        all.push(post(lane, 1, &[7; 8], &[0]));
        all.push(post(lane, 0, &two, &[0, 1, 13]));
        all.push(post(lane, 0, &two, &[12, 5, 8, 5, 3, 14, 13]));
        all.push(post(lane, 2, &lent, &[0, 6]));
        all.push(post(
            lane,
            64,
            &[&ticket(1, 8192, 64)[..], &[7; 8]].concat(),
            &[0, 7],
        ));
        all.push(post(lane, 4, &ticket(0, 0, 15), &[11, 2]));
        all.push(post(lane, 0, &long, &[2, 12, 3, 12, 8, 12, 9]));
        // The manifest of a long message in a slab: how much is there, then slab, place and loan of its chunk.
        let manifest = [
            &poke(2, 0, &100_u64.to_le_bytes())[..],
            &poke(2, 64, &(5_u64 << 32).to_le_bytes()),
            &poke(2, 72, &4096_u64.to_le_bytes()),
            &poke(2, 4096, &[1, 0x88, 3]),
            &post(lane, 32, &ticket(0, 0, 101), &[4, 8, 13]),
        ];
        all.push(manifest.concat());
        // The table changes between two pieces.
        all.push(post(
            lane,
            0,
            &long,
            &[
                &[15, lane - 2, 0x41, 0x04, 0, 0, 4, 0][..],
                &[0xff; 4],
                &[2],
            ]
            .concat(),
        ));
    }
    all.push(network(1, &[7; 8], &[0]));
    all.push(network(0, &two, &[0, 1]));
    all.push(network(2, &[&[2, 32, 33][..], &[7; 16]].concat(), &[0, 6]));
    all.push(network(0, &inner, &[10, 0, 11]));
    // Lengths whose sum is more than there are numbers.
    let longest = [&[0xfc][..], &[0xff; 8], &[1]].concat();
    let huge = [&[5][..], &longest.repeat(5)].concat();
    all.push(network(0, &huge, &[2]));
    // A serde value, alone and among others, and asked for as what it is not; a mark that there is not.
    all.push(network(129, &[3, b'a', b'b', b'c'], &[8, 0]));
    all.push(network(0, &[1, 18, 3, b'a', b'b', b'c'], &[1, 8]));
    all.push(network(0x0f01, &[7; 8], &[0]));
    all.push(post(2, 8, &[1, 0, 0, 0], &[]));
    // A lane says that a message came over a network, and makes its lent piece longer than there are bytes.
    let foreign = [&[1, 0xe1, 3][..], &[7; 120]].concat();
    all.push(post(
        3,
        16,
        &foreign,
        &[15, 1, 0x41, 0x04, 0, 0, 2, 0, 0xa1, 6, 6],
    ));
    // Mailboxes that are not there.
    let nobody = |to: u8| [2, 1, 0, to, 1, 0, 7];
    all.push((1..15).flat_map(nobody).collect());
    all
}

pub(crate) fn doctor() -> Vec<Vec<u8>> {
    crate::doctor::seeds()
}

fn tcp_header(kind: u8, len: u32, body: u64) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(len.to_le_bytes());
    bytes.extend(body.to_le_bytes());
    bytes
}

/// A byte, then bytes with their number before.
fn with_len(first: u8, bytes: &[u8]) -> Vec<u8> {
    [&[first][..], &(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), boot::TooLarge>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out).expect("short enough");
    out
}
