//! `mizzen site init`: keys, certificates and the file of a new site.

use std::time::SystemTime;

use anyhow::Context;
use mizzen_config::SiteFile;
use mizzen_identity::{GATEWAY_LIFETIME, GatewayKey, GatewayName, SiteKey, certificate_to_text};

use super::folder::{FILE, GATEWAY_CERTIFICATE, GATEWAY_KEY, SITE_CERTIFICATE, SITE_KEY};
use super::options::Init;
use super::show;

pub(super) fn init(options: &Init) -> anyhow::Result<()> {
    let name = GatewayName::new(&options.name, &options.gateway)?;
    let text = file(options);
    SiteFile::parse(FILE, &text).context("the file that was to be written is wrong")?;
    let (site, gateway) = (SiteKey::generate()?, GatewayKey::generate()?);
    let now = SystemTime::now();
    let certificate = site.certify(&gateway.request(), &name, now, GATEWAY_LIFETIME)?;
    let folder = options.at.folder();
    folder.prepare()?;
    folder.write_key(SITE_KEY, &site.to_text())?;
    folder.write_key(GATEWAY_KEY, &gateway.to_text())?;
    let of_site = certificate_to_text(&site.certificate(name.site())?);
    folder.write_public(SITE_CERTIFICATE, &of_site)?;
    folder.write_public(GATEWAY_CERTIFICATE, &certificate_to_text(&certificate))?;
    // Last: a folder that has it is complete.
    folder.write_public(FILE, &text)?;
    println!(
        "Site \"{}\" is made. Keep a copy of {} where nobody else gets at it: whoever has it can be this site.",
        options.name,
        folder.file(SITE_KEY).display()
    );
    println!();
    show::show(&folder)
}

fn file(options: &Init) -> String {
    let listen = match options.listen {
        Some(address) => format!("listen = \"{address}\""),
        None => {
            "# listen = \"0.0.0.0:4433\"  # without it, this gateway dials outwards only".to_owned()
        }
    };
    format!(
        "# Who this site is, and which others it believes.\n\
         name = \"{}\"\n\
         gateway = \"{}\"\n\
         {listen}\n\
         inside = \"{}\"  # where jobs of this site ask; no other site may reach it\n\
         \n\
         # Keys that are not believed any more, of sites or of gateways. `mizzen site revoke` adds to it.\n\
         revoked = []\n\
         \n\
         # Other sites, one [[site]] each. `mizzen site add` adds to them.\n\
         #   keys: what `mizzen site show` prints there; two while a key is being replaced\n\
         #   reach: where to connect to; without it, they connect to us\n\
         #   exports: jobs that may be met with that site; without it, none\n",
        options.name, options.gateway, options.inside
    )
}
