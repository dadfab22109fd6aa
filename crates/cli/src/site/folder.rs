//! The files of a site: who may read them, and how they are written.
//!
//! | file | content | who may read it |
//! | --- | --- | --- |
//! | `site.key` | the key of the site; needed to certify gateways only, so it may be kept elsewhere | its owner |
//! | `gateway.key` | the key of this gateway | its owner |
//! | `site.crt`, `gateway.crt` | their certificates | anybody |
//! | `site.toml` | names, and the other sites | anybody |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use mizzen_config::SiteFile;
use mizzen_identity::{GatewayKey, KeyText, MAX_TEXT, SiteKey, certificate_from_text};

pub(super) const SITE_KEY: &str = "site.key";
pub(super) const GATEWAY_KEY: &str = "gateway.key";
pub(super) const SITE_CERTIFICATE: &str = "site.crt";
pub(super) const GATEWAY_CERTIFICATE: &str = "gateway.crt";
pub(super) const FILE: &str = "site.toml";

/// A folder with the files of a site.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Makes the folder, for its owner only, unless it is there. Nothing of a site may be in it.
    pub(super) fn prepare(&self) -> anyhow::Result<()> {
        let shown = self.path.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .with_context(|| {
                format!(
                    "the folder {shown} cannot be made; choose another with --dir, or become root"
                )
            })?;
        for name in [
            SITE_KEY,
            GATEWAY_KEY,
            SITE_CERTIFICATE,
            GATEWAY_CERTIFICATE,
            FILE,
        ] {
            let there = fs::symlink_metadata(self.file(name)).is_ok();
            ensure!(
                !there,
                "{shown} has a {name} already, and nothing is overwritten: a lost key must be told to every other site. \
                 To see what is there, `mizzen site show --dir {shown}`; to begin again, move the folder away"
            );
        }
        Ok(())
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that only its owner can read. There must be none.
    pub(super) fn write_key(&self, name: &str, key: &KeyText) -> anyhow::Result<()> {
        self.write_new(name, 0o600, key.as_str())
    }

    /// Writes a file that anybody can read. There must be none.
    pub(super) fn write_public(&self, name: &str, text: &str) -> anyhow::Result<()> {
        self.write_new(name, 0o644, text)
    }

    /// Puts another text in the place of the site's file, at once: a gateway that reads it sees the old or the new one.
    pub(super) fn replace_file(&self, text: &str) -> anyhow::Result<()> {
        // Where a link leads to: the link stays one.
        let path = fs::canonicalize(self.file(FILE)).unwrap_or_else(|_| self.file(FILE));
        let beside = path.with_extension(format!("toml.{}", std::process::id()));
        let replace = || -> std::io::Result<()> {
            let permissions = fs::metadata(&path)?.permissions();
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&beside)?;
            file.set_permissions(permissions)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        };
        replace().or_else(|error| {
            let _ = fs::remove_file(&beside);
            bail!(
                "{} cannot be written: {error}; nothing was changed",
                path.display()
            )
        })
    }

    /// The site's file, as it is and as it is understood.
    pub(super) fn site_file(&self) -> anyhow::Result<(String, SiteFile)> {
        let path = self.file(FILE);
        if !path.exists() {
            let shown = self.path.display();
            bail!(
                "there is no site in {shown}; make one with `mizzen site init NAME`, or say where it is with --dir"
            );
        }
        // Read once: what is understood is what is told.
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let file = SiteFile::parse(&path.to_string_lossy(), &text);
        let file = file.context("the site's file cannot be used")?;
        Ok((text, file))
    }

    /// The key of the site. None, if it is kept elsewhere.
    pub(super) fn site_key(&self) -> anyhow::Result<Option<SiteKey>> {
        let Some(text) = self.read_key(SITE_KEY)? else {
            return Ok(None);
        };
        let key = SiteKey::from_text(&text);
        Ok(Some(key.with_context(|| self.cannot_use(SITE_KEY))?))
    }

    pub(super) fn gateway_key(&self) -> anyhow::Result<GatewayKey> {
        let Some(text) = self.read_key(GATEWAY_KEY)? else {
            bail!(
                "{} is not there; restore it from a copy, or make the gateway again",
                self.file(GATEWAY_KEY).display()
            );
        };
        GatewayKey::from_text(&text).with_context(|| self.cannot_use(GATEWAY_KEY))
    }

    pub(super) fn certificate(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let path = self.file(name);
        let text = fs::read_to_string(&path).with_context(|| {
            format!("{} cannot be read; restore it from a copy", path.display())
        })?;
        certificate_from_text(&text).with_context(|| self.cannot_use(name))
    }

    /// The text of a key that nobody else can read; one that others can read is not a secret, and is refused.
    fn read_key(&self, name: &str) -> anyhow::Result<Option<zeroize::Zeroizing<String>>> {
        let path = self.file(name);
        let shown = path.display();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => bail!("{shown} cannot be read: {error}; only its owner may read it"),
        };
        // Of the file that is open, not of another that took its name since.
        let mode = file.metadata()?.mode() & 0o777;
        ensure!(
            mode & 0o077 == 0,
            "{shown} is open to others (mode {mode:04o}), and whoever has read it can be this site. If nobody has, \
             `chmod 600 {shown}`; if somebody may have, make a new key and have the old one revoked at the other sites"
        );
        // All room at once: growing would leave copies behind.
        let mut text = zeroize::Zeroizing::new(String::with_capacity(MAX_TEXT + 1));
        file.take(MAX_TEXT as u64 + 1)
            .read_to_string(&mut text)
            .with_context(|| self.cannot_use(name))?;
        Ok(Some(text))
    }

    fn write_new(&self, name: &str, mode: u32, text: &str) -> anyhow::Result<()> {
        let path = self.file(name);
        let write = || -> std::io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().with_context(|| format!("{} cannot be written", path.display()))
    }

    fn cannot_use(&self, name: &str) -> String {
        format!("{} cannot be used", self.file(name).display())
    }
}
