//! The folder with the sockets of a user's launchers.
//!
//! It has the same name for all commands of a user, whatever is in their environment: a job of a batch system is asked from a login
//! shell.

use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where it is; nobody has looked at it yet.
pub(super) fn path() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    PathBuf::from(format!("/tmp/mizzen-{user}"))
}

/// Makes it, if need be.
pub(super) fn make(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(path),
        made => made,
    }
}

/// Whether it is ours, and only ours: anybody may make folders where it is.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let is_ours = |found: &Metadata| {
        let user = rustix::process::geteuid().as_raw();
        found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0
    };
    match std::fs::symlink_metadata(path)? {
        found if is_ours(&found) => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} is not a folder of this user that nobody else may enter; remove it",
                path.display()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let path = std::env::temp_dir().join(format!("mizzen-folder-{}", std::process::id()));
        make(&path).unwrap();
        make(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let refused = make(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        std::fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("/", &path).unwrap();
        assert!(make(&path).is_err(), "a link leads elsewhere");
        std::fs::remove_file(&path).unwrap();
    }
}
