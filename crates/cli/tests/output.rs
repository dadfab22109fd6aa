//! Output that nobody reads is bounded, and holds up nothing but its writers.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use common::{Job, PATIENCE, Script, mizzen, text};

/// One process writes far more than anybody keeps, a block at a time, and counts. The other one waits for a word, and is
/// killed; if it is started again, it says so in a file.
const WRITER_AND_VICTIM: &str = r#"
if mkdir "$MIZZEN_TEST_DIR/writer" 2>/dev/null; then
  count=0
  while [ $count -lt 512 ]; do
    head -c 65535 /dev/zero | tr '\0' x
    echo
    count=$((count + 1))
    echo $count >"$MIZZEN_TEST_DIR/new" && mv "$MIZZEN_TEST_DIR/new" "$MIZZEN_TEST_DIR/count"
  done
  exec sleep 1000
fi
if mkdir "$MIZZEN_TEST_DIR/victim" 2>/dev/null; then
  while [ ! -e "$MIZZEN_TEST_DIR/go" ]; do sleep 0.02; done
  kill -9 $$
fi
: >"$MIZZEN_TEST_DIR/again"
exec sleep 1000
"#;

/// The bytes of a block, with the label of its line.
const BLOCK: usize = 65_536 + 4;

/// What launcher, agent and pipes may hold of the output, in blocks: 12 MiB, of the 32 MiB that are written.
const MOST_KEPT: usize = 192;

struct Stalled {
    job: Job,
    script: Script,
    sentences: Receiver<String>,
    written: usize,
}

impl Stalled {
    /// Starts the job, and waits until its writer cannot go on. Nobody reads its standard output.
    fn start(options: &[&str]) -> Self {
        let script = Script::new(WRITER_AND_VICTIM);
        let path = script.path();
        let mut command = mizzen(["-n", "2"].iter().chain(options).chain(&["sh", &path]));
        command.env("MIZZEN_TEST_DIR", script.directory());
        let mut job = Job::start(command);
        let stderr = BufReader::new(job.child.stderr.take().unwrap());
        let (said, sentences) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = said.send(line);
            }
        });
        let written = wait_until_blocked(&script);
        Self {
            job,
            script,
            sentences,
            written,
        }
    }

    fn kill_the_victim(&self) {
        std::fs::write(self.script.directory().join("go"), "").unwrap();
    }

    fn next_sentence(&self) -> String {
        let sentence = self.sentences.recv_timeout(PATIENCE / 3);
        sentence.expect("the death is told while nobody reads the output")
    }

    /// Reads all that was printed.
    fn read(&mut self) -> Vec<u8> {
        let mut printed = Vec::new();
        let mut stdout = self.job.child.stdout.take().unwrap();
        stdout.read_to_end(&mut printed).unwrap();
        printed
    }
}

/// Waits until the writer has not moved for a second, and returns how many blocks it wrote.
fn wait_until_blocked(script: &Script) -> usize {
    let file = script.directory().join("count");
    let deadline = Instant::now() + PATIENCE;
    let (mut count, mut since) = (0, Instant::now());
    while count == 0 || since.elapsed() < Duration::from_secs(1) {
        assert!(Instant::now() < deadline, "the writer goes on: {count}");
        let now = std::fs::read_to_string(&file).unwrap_or_default();
        let now = now.trim().parse().unwrap_or(count);
        if now != count {
            (count, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(count < MOST_KEPT, "{count} blocks are kept somewhere");
    count
}

fn a_death_ends_the_job(options: &[&str]) {
    let mut stalled = Stalled::start(options);
    stalled.kill_the_victim();
    let sentence = stalled.next_sentence();
    assert!(
        sentence.ends_with("was killed by signal 9 (SIGKILL); ended the other process."),
        "{sentence}"
    );
    // What was written is not lost, and the launcher ends when it is read.
    let printed = stalled.read();
    assert!(printed.len() >= stalled.written * BLOCK);
    let whole = |line: &[u8]| line.len() == BLOCK - 1 && line.ends_with(b"x");
    let lines: Vec<&[u8]> = printed.split(|byte| *byte == b'\n').collect();
    assert!(
        lines[..stalled.written].iter().all(|line| whole(line)),
        "{}",
        text(lines[0])
    );
    assert_eq!(stalled.job.wait(), Some(137));
    stalled.job.assert_nothing_is_left();
}

#[test]
fn a_death_ends_the_job_while_nobody_reads_its_output() {
    a_death_ends_the_job(&[]);
}

#[test]
fn a_death_on_another_host_ends_the_job_while_nobody_reads_its_output() {
    a_death_ends_the_job(&["--hosts", "h1,h2", "--remote-shell", "env"]);
}

#[test]
fn a_process_is_started_again_while_nobody_reads_the_output() {
    let mut stalled = Stalled::start(&["--on-death", "restart"]);
    stalled.kill_the_victim();
    let sentence = stalled.next_sentence();
    assert!(
        sentence.ends_with("; started it again (incarnation 1)."),
        "{sentence}"
    );
    let again = stalled.script.directory().join("again");
    let deadline = Instant::now() + PATIENCE;
    while !again.exists() {
        assert!(Instant::now() < deadline, "it was not started again");
        std::thread::sleep(Duration::from_millis(5));
    }
    stalled.job.signal(15);
    stalled.read();
    assert_eq!(stalled.job.wait(), Some(143));
    stalled.job.assert_nothing_is_left();
}
