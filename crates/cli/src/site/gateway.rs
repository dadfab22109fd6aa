//! `mizzen gateway`: lets jobs of this site and of others meet, until it is ended.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use mizzen_config::SiteFile;
use mizzen_site::{Pace, Setup};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::folder::{FILE, Folder};
use super::show::{credentials, ends_soon};
use crate::run::say;

/// Serves for ever, by what the folder says at each moment.
pub(super) fn gateway(folder: &Folder) -> anyhow::Result<()> {
    raise_descriptors();
    let news = Arc::new(News::new()?);
    let (mut text, mut file) = folder.site_file()?;
    let credentials = credentials(folder, &file)?;
    if ends_soon(&credentials) {
        say("the certificate of this gateway ends within a month: certify it again before.");
    }
    let gateway = mizzen_site::Gateway::open(Setup {
        file: file.clone(),
        credentials,
        pace: Pace::default(),
        news: {
            let news = Arc::clone(&news);
            Arc::new(move |clause| news.tell(format!("{clause}.")))
        },
    })?;
    let outside = match gateway.outside() {
        Some(at) => format!("other sites connect at {at}"),
        None => "it dials outwards only".to_owned(),
    };
    let (name, inside) = (&file.name, gateway.inside());
    say(&format!(
        "the gateway of site \"{name}\" serves its jobs at {inside}; {outside}."
    ));
    if file.inside.ip().is_unspecified() && file.listen.is_some() {
        say(&format!(
            "warning: whoever reaches this host at port {} can ask for other sites as a job of this one; let `inside` in the site's \
             file be an address that only this site reaches.",
            file.inside.port()
        ));
    }
    let mut complaint = String::new();
    // Closed while the file is read: there must always be a descriptor for that.
    let mut spare = File::open("/dev/null").ok();
    loop {
        thread::sleep(LOOK);
        drop(spare.take());
        let followed = follow(folder, &gateway, &news, &mut text, &mut file);
        spare = File::open("/dev/null").ok();
        match followed {
            Ok(()) => complaint.clear(),
            Err(error) => {
                let said = format!("{error:#}. What was read before still holds.");
                if said != complaint {
                    news.tell(said.clone());
                    complaint = said;
                }
            }
        }
    }
}

/// Tells whoever runs the gateway what happens, without ever waiting for them: not everybody who makes news means well.
struct News {
    lines: SyncSender<String>,
    missed: Arc<AtomicU64>,
}

impl News {
    fn new() -> anyhow::Result<Self> {
        let (lines, told) = mpsc::sync_channel::<String>(MAX_NEWS);
        let missed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&missed);
        let tell = move || {
            for line in told {
                say(&line);
                let missed = counted.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    say(&format!("{missed} more things happened than can be told."));
                }
                thread::sleep(NEWS_PAUSE);
            }
        };
        let thread = thread::Builder::new().name("news".into());
        thread.spawn(tell).context("no thread for the news")?;
        Ok(Self { lines, missed })
    }

    fn tell(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A gateway needs four descriptors for each connection that it passes on.
fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it is not allowed, less is carried.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Does what the file says, if it says something else than before.
fn follow(
    folder: &Folder,
    gateway: &mizzen_site::Gateway,
    news: &News,
    text: &mut String,
    file: &mut SiteFile,
) -> anyhow::Result<()> {
    let (new_text, new) = folder.site_file()?;
    if *text == new_text {
        return Ok(());
    }
    let shown = folder.file(FILE);
    let ended = gateway
        .replace(new.clone())
        .with_context(|| format!("{} cannot be followed", shown.display()))?;
    *text = new_text;
    let ends = match ended {
        0 => String::new(),
        1 => "; one connection that it does not allow any more has ended".to_owned(),
        count => format!("; {count} connections that it does not allow any more have ended"),
    };
    news.tell(format!(
        "{} has changed, and holds from now on{ends}.",
        shown.display()
    ));
    let doors = |file: &SiteFile| {
        let names = (file.name.clone(), file.gateway.clone());
        (names, file.listen, file.inside)
    };
    if doors(file) != doors(&new) {
        let sentence = "its names and where it listens are those from before, until the gateway is started again.";
        news.tell(sentence.to_owned());
    }
    *file = new;
    Ok(())
}

/// How often the file is looked at: what it revokes is gone within two seconds.
const LOOK: Duration = Duration::from_millis(500);
/// News that wait to be told.
const MAX_NEWS: usize = 256;
/// Between two of them: nobody fills a disk with what is told of strangers.
const NEWS_PAUSE: Duration = Duration::from_millis(20);
