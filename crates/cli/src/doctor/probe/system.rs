//! Versions, and who gave us this host: a batch system, or nobody.

use mizzen_proto::boot::VERSION;

use super::super::report::Finding;

pub(crate) fn look() -> Vec<Finding> {
    let mizzen = format!("{}, boot {VERSION}", env!("CARGO_PKG_VERSION"));
    vec![
        Finding::ok("mizzen", mizzen),
        Finding::ok("kernel", kernel()),
        batch_system(|name| std::env::var(name).ok()),
    ]
}

pub(crate) fn kernel() -> String {
    let name = rustix::system::uname();
    let (system, release) = (
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
    );
    format!("{system} {release}")
}

fn batch_system(variable: impl Fn(&str) -> Option<String>) -> Finding {
    let systems = [
        ("Slurm", "SLURM_JOB_ID"),
        ("PBS", "PBS_JOBID"),
        ("LSF", "LSB_JOBID"),
        ("Flux", "FLUX_JOB_ID"),
    ];
    let found = systems
        .into_iter()
        .find_map(|(name, job)| Some(format!("{name}, job {}", variable(job)?)));
    Finding::ok("batch system", found.unwrap_or_else(|| "none".to_owned())).varying()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_system_is_known_by_its_job() {
        let slurm = |name: &str| (name == "SLURM_JOB_ID").then(|| "4711".to_owned());
        assert_eq!(batch_system(slurm).value, "Slurm, job 4711");
        assert_eq!(batch_system(|_| None).value, "none");
    }
}
