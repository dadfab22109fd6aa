//! How applications fail.

/// What applications return: any error, as a sentence.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs an application. If it fails, says why and ends the process with status 1, which ends the job.
pub fn run(name: &str, application: impl FnOnce() -> Result<()>) {
    if let Err(error) = application() {
        eprintln!("{name}: {error}");
        std::process::exit(1);
    }
}
