//! `mizzen site show`: names and keys of this site, the sites that it believes, and what to type there.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use anyhow::ensure;
use mizzen_config::SiteFile;
use mizzen_identity::{Pin, SiteCredentials, Sites, pin_of_certificate};
use mizzen_site::believed;

use super::folder::{FILE, Folder, GATEWAY_CERTIFICATE, SITE_CERTIFICATE};

/// When somebody should be told that a certificate ends.
const SOON: Duration = Duration::from_secs(30 * 24 * 3600);

pub(super) fn show(folder: &Folder) -> anyhow::Result<()> {
    let (_, file) = folder.site_file()?;
    let of_site = folder.certificate(SITE_CERTIFICATE)?;
    let of_gateway = folder.certificate(GATEWAY_CERTIFICATE)?;
    let pins = (
        pin_of_certificate(&of_site)?,
        pin_of_certificate(&of_gateway)?,
    );
    print!("{}", text(&file, pins)?);
    if let Some(key) = folder.site_key()? {
        let shown = folder.file(SITE_CERTIFICATE);
        ensure!(
            key.pin() == pins.0,
            "{} is not of the key beside it; restore both from one copy",
            shown.display()
        );
    }
    let credentials = credentials(folder, &file)?;
    if ends_soon(&credentials) {
        println!("\nThe certificate of this gateway ends within a month: certify it again before.");
    }
    Ok(())
}

/// What the gateway of a folder proves itself with, if all of it belongs together.
pub(super) fn credentials(folder: &Folder, file: &SiteFile) -> anyhow::Result<SiteCredentials> {
    let credentials = SiteCredentials::new(
        folder.gateway_key()?.keys(),
        folder.certificate(GATEWAY_CERTIFICATE)?,
        folder.certificate(SITE_CERTIFICATE)?,
        Sites::new(believed(file)?),
    )?;
    let name = credentials.name();
    ensure!(
        (name.site(), name.gateway()) == (&file.name[..], &file.gateway[..]),
        "{} says that this is gateway \"{}\" of site \"{}\", and its certificate says {name}; names are chosen by `mizzen site init`",
        folder.file(FILE).display(),
        file.gateway,
        file.name
    );
    Ok(credentials)
}

/// Whether somebody should be told that the certificate ends.
pub(super) fn ends_soon(credentials: &SiteCredentials) -> bool {
    credentials.valid_at(SystemTime::now() + SOON).is_err()
}

fn text(file: &SiteFile, (site, gateway): (Pin, Pin)) -> anyhow::Result<String> {
    let mut text = String::new();
    let listen = match file.listen {
        Some(address) => address.to_string(),
        None => "nowhere: it dials outwards only".to_owned(),
    };
    writeln!(text, "site     {}", file.name)?;
    writeln!(text, "key      {site}")?;
    writeln!(text, "gateway  {}", file.gateway)?;
    writeln!(text, "key      {gateway}")?;
    writeln!(text, "listens  {listen}")?;
    writeln!(text, "inside   {}", file.inside)?;
    if let Some(proxy) = &file.proxy {
        writeln!(text, "proxy    {proxy}")?;
    }
    writeln!(text)?;
    if file.sites.is_empty() {
        writeln!(
            text,
            "No other site is believed. Add one with `mizzen site add NAME PIN`."
        )?;
    }
    for peer in &file.sites {
        writeln!(text, "believes {}", peer.name)?;
        for key in &peer.keys {
            let revoked = if file.revoked.contains(key) {
                "  revoked"
            } else {
                ""
            };
            writeln!(text, "  key    {key}{revoked}")?;
        }
        writeln!(text, "  reach  {}", or(&peer.reach, "they connect to us"))?;
        writeln!(
            text,
            "  jobs   {}",
            or(&peer.exports, "none may be met with it")
        )?;
    }
    let listed = |pin: &&String| !file.sites.iter().any(|peer| peer.keys.contains(pin));
    for pin in file.revoked.iter().filter(listed) {
        writeln!(text, "revoked  {pin}")?;
    }
    let (reach, note) = reach(file.listen);
    writeln!(
        text,
        "\nTo have another site believe this one, somebody there types this{note}, with --export and the name of each job that may be met added:"
    )?;
    writeln!(text, "  mizzen site add {} {site}{reach}", file.name)?;
    Ok(text)
}

/// How others say where this gateway is, and what they have to fill in.
fn reach(listen: Option<SocketAddr>) -> (String, &'static str) {
    match listen {
        None => (String::new(), ""),
        Some(address) if address.ip().is_unspecified() => (
            format!(" --reach HOST:{}", address.port()),
            ", with the name of this host for HOST",
        ),
        Some(address) => (format!(" --reach {address}"), ""),
    }
}

fn or(words: &[String], none: &str) -> String {
    match words {
        [] => none.to_owned(),
        words => words.join(", "),
    }
}
