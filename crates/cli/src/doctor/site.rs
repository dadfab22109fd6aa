//! `mizzen doctor --site`: whether the way to another site is there, how far it is, and what fills it.

use std::process::ExitCode;

use anyhow::bail;
use mizzen_site::Door;

use super::options::Doctor;
use crate::distance::{LEAST, USABLE, line_of, round_trip, send_memory, streams};

/// Asks the gateway of this site. It succeeds if the other site is connected.
pub(crate) fn site(options: &Doctor, site: &str) -> anyhow::Result<ExitCode> {
    let door = Door::new(options.door);
    let (own, status) = (door.site()?, door.status()?);
    let Some(line) = line_of(&status, site) else {
        bail!(
            "site \"{own}\" does not know a site \"{site}\"; `mizzen site add` on its gateway adds it"
        );
    };
    println!("site \"{own}\" and site \"{site}\": {line}");
    let is_connected = line.starts_with("dialled");
    match line {
        line if line.starts_with("dialled by") => println!(
            "who dials: \"{site}\" dials \"{own}\", for jobs of both; the other way is used if `reach` of \"{site}\" says where to, and it can be reached there"
        ),
        line if line.starts_with("dialled") => {
            println!("who dials: \"{own}\" dials \"{site}\", for jobs of both");
        }
        _ => println!(
            "who dials: nobody yet; one of the two must be able to reach the other, and have its address in `reach`"
        ),
    }
    let memory = send_memory();
    let Some(trip) = round_trip(&status, site) else {
        println!("round trip: not measured; it is while the gateways are connected");
        return Ok(ExitCode::from(u8::from(!is_connected)));
    };
    let each = USABLE * memory as f64 * 8.0 / trip.as_secs_f64().max(1e-6) / 1e6;
    println!(
        "round trip: {:.1} ms; a connection has {:.1} MiB under way on this host (net.core.wmem_max), which is {each:.0} Mbit/s at that distance",
        trip.as_secs_f64() * 1e3,
        USABLE * memory as f64 / f64::from(1 << 20)
    );
    match options.rate {
        Some(rate) => println!(
            "connections: {} fill {rate} Mbit/s; `mizzen run --meet … --rate {rate}` takes so many",
            streams(rate, trip, memory)
        ),
        None => println!(
            "connections: a job has {LEAST}; with --rate MBIT, what the cable carries, as many as fill it, here and with `mizzen run --meet`"
        ),
    }
    Ok(ExitCode::from(u8::from(!is_connected)))
}
