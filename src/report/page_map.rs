//! The page map as text that can be edited and read back, and as JSON.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::human::{self, clip, escape};
use super::model::{FORMAT, PageMark, PageRun, Report};

/// The first line of a map; another number is another format.
const MAGIC: &str = "# rootpage page map 1";

/// What `map --json` prints.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageMap {
    /// [`FORMAT`].
    pub format: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages of the database.
    pub page_count: u64,
    /// Owners by id: kind and name.
    pub owners: Vec<Owner>,
    /// The runs, in page order.
    pub runs: Vec<PageRun>,
    /// The codes of the findings that name a page, in page order.
    #[serde(default)]
    pub findings: Vec<PageMark>,
}

/// An owner of pages.
#[derive(Debug, Serialize, Deserialize)]
pub struct Owner {
    /// Its id, as the runs use it.
    pub id: u32,
    /// "table", "index", ...
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The map as JSON.
#[must_use]
pub fn to_json(report: &Report) -> String {
    let map = PageMap {
        format: FORMAT,
        page_size: report.page_size,
        page_count: report.page_count,
        owners: report.objects.iter().map(|o| Owner { id: o.id, kind: o.kind.clone(), name: o.name.clone() }).collect(),
        runs: report.map.clone(),
        findings: report.marks.clone(),
    };
    let mut json = serde_json::to_string_pretty(&map).unwrap_or_default();
    json.push('\n');
    json
}

/// The map as text: one line a run, `first count role owner origin`, fields apart by spaces.
///
/// The owner is the root page of the object with a name behind it for people (`root:5(messages)`), `-` for none. A `!`
/// behind the role says that by a finding their bytes are not what was written.
#[must_use]
pub fn to_text(report: &Report) -> String {
    let mut out = format!("{MAGIC}\n# page size {}, {} pages\n# first count role owner origin\n", report.page_size, report.page_count);
    for run in &report.map {
        let mark = if run.damaged { "!" } else { "" };
        let owner = match run.owner.and_then(|id| report.object(id)) {
            Some(o) => {
                // The name is a comment: without brackets and blanks, so that the line keeps its five fields.
                let name: String =
                    human::name(&o.name).chars().map(|c| if c.is_whitespace() || matches!(c, '(' | ')') { '_' } else { c }).collect();
                match o.root {
                    Some(root) => format!("root:{root}({name})"),
                    None => format!("object:{}({name})", o.id),
                }
            }
            None => run.owner.map_or_else(|| "-".to_owned(), |id| format!("object:{id}()")),
        };
        let _ = writeln!(out, "{} {} {}{mark} {owner} {}", run.first, run.count, run.role, run.origin.replace(' ', "-"));
    }
    out
}

/// A line of a map that was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapLine {
    /// Its number in the file, from 1.
    pub line: u32,
    /// The first page.
    pub first: u32,
    /// How many, at least one.
    pub count: u32,
    /// What they are to be taken for.
    pub role: String,
    /// Who is to own them.
    pub owner: MapOwner,
}

/// Who is to own the pages of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapOwner {
    /// Nobody.
    None,
    /// The object with this root page.
    Root(u32),
    /// The object with this id; such an object has no root page.
    Object(u32),
}

/// Reads a map. Lines may be left out or be in any order; a later one overrules an earlier one.
///
/// # Errors
/// The first line that is none, with its number.
pub fn parse(text: &str) -> Result<Vec<MapLine>, String> {
    if text.lines().next().map(str::trim_end) != Some(MAGIC) {
        return Err(format!("line 1 is not {MAGIC:?}: not a page map of this version"));
    }
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |what: String| format!("line {}: {what}", i.saturating_add(1));
        let shown = |text: &str| format!("\"{}\"", escape(&clip(text, 40)));
        let mut fields = line.split_ascii_whitespace();
        let (Some(first), Some(count), Some(role), Some(owner)) = (fields.next(), fields.next(), fields.next(), fields.next()) else {
            let found = human::counted(crate::ids::wide(line.split_ascii_whitespace().count()), "field");
            return Err(bad(format!("{found}; a line has `first count role owner origin`, such as \"7 1 table-leaf root:5 main\"")));
        };
        let whole = |text: &str, what: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u32>().map_err(|_| {
                let why = if digits { "is larger than any database is" } else { "is no number" };
                bad(format!("{what} {} {why}", shown(text)))
            })
        };
        let first = whole(first, "first page")?;
        let count = whole(count, "page count")?;
        if first == 0 {
            return Err(bad("pages are counted from 1; there is no page 0".to_owned()));
        }
        if count == 0 {
            return Err(bad("page count 0: leave the line out, or name at least one page".to_owned()));
        }
        if first.checked_add(count.saturating_sub(1)).is_none() {
            return Err(bad(format!("{count} pages from page {first} on are more than a database can have")));
        }
        let number = |t: &str, what: &str| whole(t.split('(').next().unwrap_or_default(), what);
        let owner = if let Some(root) = owner.strip_prefix("root:") {
            MapOwner::Root(number(root, "root page")?)
        } else if let Some(id) = owner.strip_prefix("object:") {
            MapOwner::Object(number(id, "object")?)
        } else if owner == "-" {
            MapOwner::None
        } else {
            return Err(bad(format!("owner {} is none; an owner is root:N, object:N, or - for nobody", shown(owner))));
        };
        let line = u32::try_from(i).unwrap_or(u32::MAX).saturating_add(1);
        lines.push(MapLine { line, first, count, role: role.trim_end_matches('!').to_owned(), owner });
    }
    Ok(lines)
}
