//! `mizzen site status`: how the gateway of this host is.

use mizzen_site::Door;

use super::folder::Folder;

pub(super) fn status(folder: &Folder) -> anyhow::Result<()> {
    let (_, file) = folder.site_file()?;
    print!("{}", Door::new(file.inside).status()?);
    Ok(())
}
