//! `mizzen gateway`: lets jobs of this site and of others meet, until it is ended.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use mizzen_config::SiteFile;
use mizzen_site::{Pace, Setup};

use super::folder::{FILE, Folder};
use super::show::{credentials, ends_soon};
use crate::run::say;

/// Serves for ever, by what the folder says at each moment.
pub(super) fn gateway(folder: &Folder) -> anyhow::Result<()> {
    let (mut text, mut file) = folder.site_file()?;
    let credentials = credentials(folder, &file)?;
    if ends_soon(&credentials) {
        say("the certificate of this gateway ends within a month: certify it again before.");
    }
    let gateway = mizzen_site::Gateway::open(Setup {
        file: file.clone(),
        credentials,
        pace: Pace::default(),
        news: Arc::new(|clause| say(&format!("{clause}."))),
    })?;
    let outside = match gateway.outside() {
        Some(at) => format!("other sites connect at {at}"),
        None => "it dials outwards only".to_owned(),
    };
    let (name, inside) = (&file.name, gateway.inside());
    say(&format!(
        "the gateway of site \"{name}\" serves its jobs at {inside}; {outside}."
    ));
    let mut complaint = String::new();
    loop {
        thread::sleep(LOOK);
        match follow(folder, &gateway, &mut text, &mut file) {
            Ok(()) => complaint.clear(),
            Err(error) => {
                let said = format!("{error:#}. What was read before still holds.");
                if said != complaint {
                    say(&said);
                    complaint = said;
                }
            }
        }
    }
}

/// Does what the file says, if it says something else than before.
fn follow(
    folder: &Folder,
    gateway: &mizzen_site::Gateway,
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
    say(&format!(
        "{} has changed, and holds from now on{ends}.",
        shown.display()
    ));
    let doors = |file: &SiteFile| {
        let names = (file.name.clone(), file.gateway.clone());
        (names, file.listen, file.inside)
    };
    if doors(file) != doors(&new) {
        say(
            "its names and where it listens are those from before, until the gateway is started again.",
        );
    }
    *file = new;
    Ok(())
}

/// How often the file is looked at: what it revokes is gone within two seconds.
const LOOK: Duration = Duration::from_millis(500);
