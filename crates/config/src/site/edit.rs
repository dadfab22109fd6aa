//! Adding to a site's file, without losing what people wrote in it.
//!
//! From text to text: who writes it parses it again before, so that what is added follows the rules, too.

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value};

use super::file::SiteFile;
use crate::Error;

/// What to add about another site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSite {
    /// What it is called. If the file has it, the rest is added to what is there.
    pub name: String,
    /// The pin of its key.
    pub key: String,
    /// Hosts and ports of its gateways.
    pub reach: Vec<String>,
    /// Jobs that may be met with it.
    pub exports: Vec<String>,
}

/// Why a file cannot be added to. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file is not good as it is.
    #[error(transparent)]
    Before(Error),
    /// It would not be good with what was to be added.
    #[error("with this added, the file would be wrong, so nothing was changed: {0}")]
    After(Error),
    /// It is written in a form that only people change.
    #[error(
        "`{0}` is written in a form that only people change; write it as `mizzen site init` does, or add this by hand"
    )]
    Form(&'static str),
}

impl SiteFile {
    /// The text of a file with another site, or with another key of one that it has. `file` is what errors call it.
    ///
    /// ```
    /// use mizzen_config::{NewSite, SiteFile};
    ///
    /// let text = "name = 'a' # by the river\ngateway = 'gw1'\n";
    /// let key = format!("sha256:{}", "07".repeat(32));
    /// let new = NewSite { name: "b".into(), key, ..NewSite::default() };
    /// let text = SiteFile::add("site.toml", text, &new)?;
    /// assert!(text.starts_with("name = 'a' # by the river\n"));
    /// assert_eq!(SiteFile::parse("site.toml", &text)?.sites[0].name, "b");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`EditError`]; nothing is changed then.
    pub fn add(file: &str, text: &str, new: &NewSite) -> Result<String, EditError> {
        edit(file, text, |document| {
            let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
            let item = document
                .entry("site")
                .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
            let sites = item
                .as_array_of_tables_mut()
                .ok_or(EditError::Form("site"))?;
            let known = |site: &&mut Table| {
                site.get("name").and_then(Item::as_str) == Some(new.name.as_str())
            };
            let lists = [
                ("keys", std::slice::from_ref(&new.key)),
                ("reach", &new.reach[..]),
                ("exports", &new.exports[..]),
            ];
            if let Some(site) = sites.iter_mut().find(known) {
                return lists
                    .iter()
                    .try_for_each(|(key, texts)| extend(site, key, texts));
            }
            let mut site = Table::new();
            // Comments at the end of the file stay before what is added.
            site.decor_mut().set_prefix(format!("{trailing}\n"));
            site.insert("name", new.name.as_str().into());
            lists
                .iter()
                .try_for_each(|(key, texts)| extend(&mut site, key, texts))?;
            sites.push(site);
            document.set_trailing("");
            Ok(())
        })
    }

    /// The text of a file with these keys revoked, too.
    ///
    /// # Errors
    ///
    /// [`EditError`]; nothing is changed then.
    pub fn revoke(file: &str, text: &str, pins: &[String]) -> Result<String, EditError> {
        edit(file, text, |document| {
            extend(document.as_table_mut(), "revoked", pins)
        })
    }
}

fn edit(
    file: &str,
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<String, EditError> {
    SiteFile::parse(file, text).map_err(EditError::Before)?;
    // What one parser took the other takes, too; they are of the same makers.
    let mut document: DocumentMut = text.parse().map_err(|_| EditError::Form("the file"))?;
    change(&mut document)?;
    let changed = document.to_string();
    SiteFile::parse(file, &changed).map_err(EditError::After)?;
    Ok(changed)
}

/// Adds texts to a list, each once. A list that would be empty is not made.
fn extend(table: &mut Table, key: &'static str, texts: &[String]) -> Result<(), EditError> {
    if texts.is_empty() {
        return Ok(());
    }
    let item = table.entry(key).or_insert(Array::new().into());
    let list = item.as_array_mut().ok_or(EditError::Form(key))?;
    for text in texts {
        if !list
            .iter()
            .any(|known| known.as_str() == Some(text.as_str()))
        {
            list.push(Value::from(text.as_str()));
        }
    }
    Ok(())
}
