//! The sentences about a hang, and the rows of its table.

use std::time::Duration;

use mizzen_proto::rollcall::{Cause, Class, End, Place, Standing, Wait};

use super::told::Hang;

/// What the user is told: where the waiting ends, the odd one out first, then who waits where.
pub(crate) fn sentences(hang: &Hang) -> Vec<String> {
    let Some(longest) = hang.report.longest else {
        return vec!["nobody waits for anybody.".to_owned()];
    };
    let mut lines = vec![format!(
        "why nothing happens (the longest wait is {}):",
        span(longest)
    )];
    let ends = &hang.report.ends;
    lines.extend(ends.iter().take(MOST_ENDS).map(|end| sentence(hang, end)));
    if ends.len() > MOST_ENDS {
        let more = ends.len() - MOST_ENDS;
        lines.push(format!("there are {more} more that others wait for."));
    }
    let told = |class: &&Class| class.wait.is_some();
    let classes: Vec<&Class> = hang.report.classes.iter().filter(told).collect();
    let shown = classes.iter().take(MOST_CLASSES);
    lines.extend(shown.map(|class| format!("  {}", line(class))));
    if classes.len() > MOST_CLASSES {
        let more = classes.len() - MOST_CLASSES;
        lines.push(format!(
            "  {more} more kinds of waits; `mizzen why {}` shows all.",
            hang.pid
        ));
    }
    lines
}

/// A row of the table for each class of ranks: who, how they are, for what they wait, where, in what, and since when.
pub(crate) fn rows(hang: &Hang) -> Vec<[String; 6]> {
    let row = |class: &Class| {
        let wait = class.wait.as_ref();
        let operation = wait.and_then(|wait| wait.operation.as_ref());
        let operation = operation.map(|of| format!("{} of {}", of.number, of.group));
        [
            list(&class.ranks),
            state(class.standing).to_owned(),
            wait.map_or(String::new(), |wait| wait.what.clone()),
            wait.and_then(|wait| wait.at.as_ref())
                .map_or(String::new(), at),
            operation.unwrap_or_default(),
            wait.map_or(String::new(), |wait| lasting(class, wait)),
        ]
    };
    hang.report.classes.iter().map(row).collect()
}

/// Where waiting ends.
fn sentence(hang: &Hang, end: &End) -> String {
    let held = |whom: &str| match &end.held[..] {
        [] => ".".to_owned(),
        [one] => format!("; rank {one} waits for {whom}."),
        more => format!("; ranks {} wait for {whom}.", list(more)),
    };
    match end.cause {
        Cause::Session => {
            let [a, b] = end.ranks[..] else {
                return String::new();
            };
            let down = span(end.down.unwrap_or_default());
            format!(
                "the connection between {} and {} has been down for {down}{}",
                whom(hang, a),
                whom(hang, b),
                held("what goes over it")
            )
        }
        Cause::Cycle => {
            let steps = end.steps.iter().take(MOST_STEPS);
            let steps = steps.map(|step| {
                let place = step
                    .wait
                    .at
                    .as_ref()
                    .map(|place| format!(" at {}", at(place)));
                let place = place.unwrap_or_default();
                format!("rank {} waits {}{place}", step.rank, step.wait.what)
            });
            let steps: Vec<String> = steps.collect();
            let more = match end.steps.len().saturating_sub(MOST_STEPS) {
                0 => String::new(),
                more => format!(", and so on, {more} more"),
            };
            format!("a cycle: {}{more}{}", steps.join(", "), held("them"))
        }
        Cause::Service(standing) => {
            let who = whom(hang, end.ranks[0]);
            let does = match end.steps.first() {
                Some(step) => {
                    let place = step.wait.at.as_ref();
                    let place = place.map(|place| format!(" at {}", at(place)));
                    format!("waits {}{}", step.wait.what, place.unwrap_or_default())
                }
                None => predicate(standing).to_owned(),
            };
            format!(
                "{who} does not answer a call: its service {does}{}",
                held("it")
            )
        }
        Cause::Rank(standing) => {
            let who = match &end.ranks[..] {
                [one] => whom(hang, *one),
                more => format!("ranks {}", list(more)),
            };
            let one = end.ranks.len() == 1;
            let does = match (standing, end.steps.first()) {
                (Standing::Waits, Some(step)) => {
                    let place = step.wait.at.as_ref();
                    let place = place.map(|place| format!(" at {}", at(place)));
                    let verb = if one { "waits" } else { "wait" };
                    let (what, place) = (&step.wait.what, place.unwrap_or_default());
                    format!("{verb} {what}{place}, for {}", span(step.wait.millis))
                }
                (standing, _) => predicate(standing).to_owned(),
            };
            format!("{who} {does}{}", held("it"))
        }
    }
}

/// "ranks 0–2 wait 12 s in barrier for rank 3 at src/main.rs:7 (operation 3 of the group of all)".
fn line(class: &Class) -> String {
    let Some(wait) = &class.wait else {
        return String::new();
    };
    let (who, verb) = match &class.ranks[..] {
        [one] => (format!("rank {one}"), "waits"),
        more => (format!("ranks {}", list(more)), "wait"),
    };
    let mut line = format!("{who} {verb} {} {}", lasting(class, wait), wait.what);
    if let Some(place) = &wait.at {
        line += &format!(" at {}", at(place));
    }
    if let Some(of) = &wait.operation {
        line += &format!(" (operation {} of {})", of.number, of.group);
    }
    if wait.thread != MAIN {
        line += &format!(" in thread {:?}", wait.thread);
    }
    line + "."
}

fn whom(hang: &Hang, rank: u32) -> String {
    let place = hang.places.get(rank as usize);
    let host = place.and_then(|place| hang.hosts.get(*place));
    let host = host.map_or("?", String::as_str);
    match hang.pids.get(rank as usize) {
        Some(Some(pid)) => format!("rank {rank} on {host} (pid {pid})"),
        _ => format!("rank {rank} on {host}"),
    }
}

/// What a rank does that holds up others.
fn predicate(standing: Standing) -> &'static str {
    match standing {
        Standing::Stopped => "is stopped, by a signal or a debugger",
        Standing::Stuck => "is in a call of its operating system that does not return",
        Standing::Silent => "runs, and does not answer",
        Standing::Unheard => "cannot be asked: its host does not answer",
        Standing::Unjoined => "has not joined the job",
        Standing::Left => "has left the job",
        Standing::Computes => "computes, and waits for nobody",
        Standing::Sleeps => "sleeps, and waits for nobody in the job",
        Standing::Waits => "waits",
    }
}

/// The same in a word.
fn state(standing: Standing) -> &'static str {
    match standing {
        Standing::Stopped => "stopped",
        Standing::Stuck => "stuck in the kernel",
        Standing::Silent => "silent",
        Standing::Unheard => "host silent",
        Standing::Unjoined => "not joined",
        Standing::Left => "left",
        Standing::Computes => "computes",
        Standing::Sleeps => "sleeps",
        Standing::Waits => "waits",
    }
}

fn at(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}

/// How long those of a class have waited.
fn lasting(class: &Class, wait: &Wait) -> String {
    let (shortest, longest) = (span(class.shortest), span(wait.millis));
    match shortest == longest {
        true => longest,
        false => format!("{shortest} to {longest}"),
    }
}

fn span(millis: u64) -> String {
    let whole = Duration::from_millis(millis);
    match whole.as_secs() {
        ..10 => format!("{:.1} s", whole.as_secs_f64()),
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// "0–2, 4 and 7": neighbours as ranges. Not all, if there are many.
fn list(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*rank) => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let more = runs.len().saturating_sub(MOST_RUNS);
    let shown = runs.iter().take(MOST_RUNS).map(|(first, last)| {
        if first == last {
            first.to_string()
        } else if first + 1 == *last {
            format!("{first}, {last}")
        } else {
            format!("{first}–{last}")
        }
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if more > 0 {
        text += &format!(" and others, {} in all", ranks.len());
    }
    text
}

/// The name of the first thread of a program.
const MAIN: &str = "main";
/// More than these would bury the first.
const MOST_ENDS: usize = 4;
const MOST_CLASSES: usize = 8;
const MOST_STEPS: usize = 8;
const MOST_RUNS: usize = 12;

#[cfg(test)]
mod tests {
    use mizzen_proto::boot::Condition;
    use mizzen_proto::rollcall::{Attendance, Down, Kind, Operation, Present, Report};

    use super::*;

    fn wait(what: &str, whom: &[u32], line: u32) -> Wait {
        Wait {
            kind: Kind::Message,
            what: what.to_owned(),
            whom: whom.to_vec(),
            at: Some(Place {
                file: "src/main.rs".to_owned(),
                line,
            }),
            millis: 12_300,
            thread: MAIN.to_owned(),
            serves: false,
            operation: None,
        }
    }

    fn waiting(rank: u32, wait: Wait) -> Attendance {
        let present = Present {
            waits: vec![wait],
            ..Present::default()
        };
        Attendance::new(rank, Condition::Sleeps, Some(present))
    }

    fn hang(all: &[Attendance]) -> Hang {
        Hang {
            pid: 99,
            program: "laplace".to_owned(),
            seconds: 20,
            hosts: vec!["a".to_owned(), "b".to_owned()],
            places: (0..all.len()).map(|rank| rank % 2).collect(),
            pids: (0..).take(all.len()).map(|rank| Some(100 + rank)).collect(),
            report: Report::of(all),
        }
    }

    #[test]
    fn the_odd_one_out_is_named_before_those_who_wait() {
        let in_barrier = || Wait {
            kind: Kind::Group,
            operation: Some(Operation {
                group: "the group of all".to_owned(),
                number: 17,
                name: "barrier".to_owned(),
            }),
            ..wait("in barrier for rank 3, member 3", &[3], 12)
        };
        let all: Vec<_> = (0..6)
            .map(|rank| match rank {
                3 => Attendance::new(3, Condition::Stopped, None),
                rank => waiting(rank, in_barrier()),
            })
            .collect();
        assert_eq!(
            sentences(&hang(&all)),
            [
                "why nothing happens (the longest wait is 12 s):",
                "rank 3 on b (pid 103) is stopped, by a signal or a debugger; ranks 0–2, 4, 5 wait for it.",
                "  ranks 0–2, 4, 5 wait 12 s in barrier for rank 3, member 3 at src/main.rs:12 (operation 17 of the group of all).",
            ]
        );
        let [stopped, waits] = &rows(&hang(&all))[..] else {
            panic!("two classes")
        };
        assert_eq!(stopped[..2], ["3", "stopped"]);
        assert_eq!(waits[3..5], ["src/main.rs:12", "17 of the group of all"]);
    }

    #[test]
    fn a_cycle_is_named_as_one() {
        let all = [
            waiting(0, wait("for a message of rank 1", &[1], 3)),
            waiting(1, wait("for a message of rank 0", &[0], 9)),
        ];
        assert_eq!(
            sentences(&hang(&all))[1],
            "a cycle: rank 0 waits for a message of rank 1 at src/main.rs:3, \
             rank 1 waits for a message of rank 0 at src/main.rs:9."
        );
    }

    #[test]
    fn a_session_that_is_down_is_named() {
        let mut all = [
            waiting(0, wait("for a message of rank 1", &[1], 3)),
            Attendance::new(1, Condition::Computes, Some(Present::default())),
        ];
        let down = Down {
            rank: 0,
            millis: 4_250,
        };
        all[1].present.down.push(down);
        assert_eq!(
            sentences(&hang(&all))[1],
            "the connection between rank 0 on a (pid 100) and rank 1 on b (pid 101) has been down for 4.2 s; \
             rank 0 waits for what goes over it."
        );
    }

    #[test]
    fn nobody_waits_is_a_sentence() {
        let all = [Attendance::new(
            0,
            Condition::Computes,
            Some(Present::default()),
        )];
        assert_eq!(sentences(&hang(&all)), ["nobody waits for anybody."]);
    }

    #[test]
    fn many_ranks_are_not_all_listed() {
        let ranks: Vec<u32> = (0..100).map(|rank| rank * 2).collect();
        assert!(list(&ranks).ends_with("22 and others, 100 in all"));
        assert_eq!(list(&[4, 5, 6, 9]), "4–6, 9");
    }

    #[test]
    fn what_a_launcher_says_is_checked_and_commands_no_terminal() {
        let mut told = hang(&[waiting(0, wait("x\x1b[2J\n", &[], 1))]);
        let bytes = serde_json::to_vec(&told).unwrap();
        let heard = Hang::decode(&bytes).unwrap();
        let class = &heard.report.classes[0];
        assert_eq!(class.wait.as_ref().unwrap().what, "x[2J");
        told.report.classes[0].ranks = vec![7];
        assert!(Hang::decode(&serde_json::to_vec(&told).unwrap()).is_err());
        assert!(Hang::decode(b"{}").is_err());
    }
}
