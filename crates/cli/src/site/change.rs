//! `mizzen site add` and `mizzen site revoke`: whom this site believes.

use anyhow::{bail, ensure};
use mizzen_config::{NewSite, SiteFile};
use mizzen_identity::{Pin, pin_of_certificate};

use super::folder::{FILE, SITE_CERTIFICATE};
use super::options::{Add, Revoke};

pub(super) fn add(options: &Add) -> anyhow::Result<()> {
    let folder = options.at.folder();
    let (text, file) = folder.site_file()?;
    let (name, key) = (&options.name, options.pin.to_string());
    let path = folder.file(FILE);
    ensure!(
        !file.revoked.contains(&key),
        "{key} is revoked here, so it would not be believed; if that was a mistake, remove it from `revoked` in {}",
        path.display()
    );
    let own = pin_of_certificate(&folder.certificate(SITE_CERTIFICATE)?)?;
    ensure!(
        options.pin != own,
        "{own} is the key of this site itself; `mizzen site show` at the other site prints the one to add"
    );
    let new = NewSite {
        name: name.clone(),
        key,
        reach: options.reach.clone(),
        exports: options.exports.clone(),
    };
    let changed = SiteFile::add(&path.to_string_lossy(), &text, &new)?;
    if changed == text {
        println!("Site \"{name}\" was believed with this key before; nothing is changed.");
        return Ok(());
    }
    folder.replace_file(&changed)?;
    match file.site(name) {
        None => println!(
            "Site \"{name}\" is believed when it shows the key {}.",
            options.pin
        ),
        Some(known) if known.keys.contains(&new.key) => {
            println!("What was said about site \"{name}\" is added.")
        }
        Some(_) => println!(
            "Site \"{name}\" is believed with the key {}, too. When it does not use the old one any more, revoke that.",
            options.pin
        ),
    }
    let exports = SiteFile::parse(FILE, &changed)?;
    if exports
        .site(name)
        .is_some_and(|site| site.exports.is_empty())
    {
        println!(
            "No job may be met with it yet: `mizzen site add {name} {} --export JOB`.",
            options.pin
        );
    }
    Ok(())
}

pub(super) fn revoke(options: &Revoke) -> anyhow::Result<()> {
    let folder = options.at.folder();
    let (text, file) = folder.site_file()?;
    let whom = &options.whom;
    let pins = match (whom.parse::<Pin>(), file.site(whom)) {
        (Ok(pin), _) => vec![pin.to_string()],
        (Err(_), Some(site)) => site.keys.clone(),
        (Err(error), None) if whom.contains(':') => bail!("\"{whom}\" is not a pin: {error}"),
        (Err(_), None) => bail!(
            "no site called \"{whom}\" is listed in {}; `mizzen site show` shows those that are",
            folder.file(FILE).display()
        ),
    };
    let path = folder.file(FILE);
    let changed = SiteFile::revoke(&path.to_string_lossy(), &text, &pins)?;
    if changed == text {
        println!("\"{whom}\" was revoked before; nothing is changed.");
        return Ok(());
    }
    folder.replace_file(&changed)?;
    for pin in &pins {
        println!("{pin} is not believed any more.");
    }
    println!("Other sites do not know: tell them.");
    Ok(())
}
