//! Damage by recipe, aimed at structures by name: "the third leaf of this table", "the rowid of its second cell".

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::pages::{File, to_varint};
use crate::rng::Rng;

/// A page, and a place on it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// An object of the schema, `sqlite_schema` itself, "freelist" or "ptrmap".
    pub of: Option<String>,
    /// "leaf" (where nothing is said), "interior", "root", "overflow"; of the freelist "trunk" and "leaf".
    pub kind: Option<String>,
    /// Which of these pages in key order, negative from the end.
    #[serde(default)]
    pub nth: i64,
    /// The page number itself.
    pub page: Option<u32>,
}

/// One step of damage.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Damage {
    /// What is done; see `apply`.
    pub op: String,
    /// "main" (where nothing is said), "wal" or "journal".
    pub file: Option<String>,
    /// An object of the schema, `sqlite_schema` itself, "freelist" or "ptrmap". Without it and `page`, `at` counts from the start of the file.
    pub of: Option<String>,
    /// Kind of page, as in [`Target`].
    pub kind: Option<String>,
    /// Which of these pages in key order, negative from the end.
    #[serde(default)]
    pub nth: i64,
    /// The page number itself.
    pub page: Option<u32>,
    /// A cell of the page (negative from the end); `at` counts from its start, else from the start of the b-tree header.
    pub cell: Option<i64>,
    /// A frame of the WAL, from 1; `at` counts from the start of its header.
    pub frame: Option<usize>,
    /// Where.
    pub at: Option<i64>,
    /// How many bytes; where nothing is said, to the end of the page or file.
    pub len: Option<usize>,
    /// Bytes to write.
    pub hex: Option<String>,
    /// Text to write.
    pub text: Option<String>,
    /// A number to write, or a size.
    pub value: Option<i64>,
    /// A page whose number, or whose content, is written.
    pub to: Option<Target>,
    /// A bit to flip.
    pub bit: Option<u32>,
}

/// The files of a case while it is made.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Contents by suffix: "" is the database, then "-wal", "-journal".
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The healthy database that damage is aimed at.
#[derive(Debug, Clone)]
pub struct Sight {
    /// Its bytes.
    pub healthy: Vec<u8>,
    /// Its root pages by object name.
    pub roots: BTreeMap<String, u32>,
}

impl Sight {
    /// The page that a target means.
    pub fn page(&self, t: &Target) -> Result<u32> {
        if let Some(no) = t.page {
            return Ok(no);
        }
        let file = File::new(&self.healthy);
        let of = t.of.as_deref().context("a target needs `of` or `page`")?;
        let kind = t.kind.as_deref().unwrap_or("leaf");
        let list = match of {
            "freelist" => match kind {
                "trunk" => file.freelist().0,
                _ => file.freelist().1,
            },
            "ptrmap" => file.pointer_maps(),
            _ => {
                let root = *self.roots.get(of).with_context(|| format!("no object {of} with a root page"))?;
                let tree = file.tree(root);
                match kind {
                    "root" => vec![root],
                    "interior" => tree.interiors,
                    "overflow" => tree.overflows,
                    "leaf" => tree.leaves,
                    _ => bail!("unknown kind of page {kind}"),
                }
            }
        };
        let n = if t.nth < 0 { t.nth + list.len() as i64 } else { t.nth };
        list.get(n as usize).copied().with_context(|| format!("{of} has {} pages of kind {kind}, wanted number {}", list.len(), t.nth))
    }
}

fn bytes_of(d: &Damage) -> Result<Vec<u8>> {
    if let Some(t) = &d.text {
        return Ok(t.clone().into_bytes());
    }
    let hex: String = d.hex.as_deref().context("needs `hex` or `text`")?.split_whitespace().collect();
    ensure!(hex.len().is_multiple_of(2), "odd number of hex digits");
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).context("hex digits")).collect()
}

/// Does one step.
///
/// - `zero`, `random`, `fill` (with `value`): a range, where nothing is said a whole page
/// - `put`: bytes; `u16`, `u32`: a big-endian number, or the number of the page `to`
/// - `flip`: one bit
/// - `copy`: the content of the page `to` over this one; `swap`: exchange both
/// - `pointer`: cell pointer `cell` becomes `value`; `shift-pointer`: it moves by `value`; `same-pointer`: it becomes that of cell
///   `value`; `swap-pointers`: both change places
/// - `overflow-pointer`: the first overflow page of `cell` becomes `value` or the page `to`
/// - `freeblock`, `ladder`: see there
/// - `rowid`: the rowid of `cell` becomes `value`; a longer one moves the cell into the page's gap
/// - `cut`: the file ends at `value` bytes, or `len` bytes into the page; `append`: `len` random bytes, or `hex`, or `text`, or a page `to`
/// - `append-again`: the whole healthy database follows; `stale`: the page as it was before the steps of the WAL
/// - `text-mode`: a CR before each LF; `remove`: `len` bytes leave the file; `insert`: bytes enter it
/// - `replace`: the whole file becomes `hex` or `text`, repeated to `len` bytes
pub fn apply(d: &Damage, sight: &Sight, ev: &mut Evidence, rng: &mut Rng) -> Result<()> {
    let suffix = match d.file.as_deref().unwrap_or("main") {
        "main" => "",
        "wal" => "-wal",
        "journal" => "-journal",
        other => bail!("unknown file {other}"),
    };
    let healthy = File::new(&sight.healthy);
    let page_size = healthy.page_size;
    let named = Target { of: d.of.clone(), kind: d.kind.clone(), nth: d.nth, page: d.page };
    let page = if d.of.is_some() || d.page.is_some() { Some(sight.page(&named)?) } else { None };
    let to = d.to.as_ref().map(|t| sight.page(t)).transpose()?;
    let data = ev.files.get_mut(suffix).with_context(|| format!("there is no file db.sqlite{suffix}"))?;
    let base = |no: u32| (no as usize - 1) * page_size;

    // The place: file offset, and how far it may reach.
    let cell_number = |no: u32, n: i64| if n < 0 { (n + healthy.cell_count(no) as i64) as usize } else { n as usize };
    let (origin, end) = match (page, d.frame) {
        (Some(no), _) => {
            let from = match d.cell {
                Some(n) => {
                    let p = healthy.page(no);
                    let pointer = healthy.pointers(no) + 2 * cell_number(no, n);
                    usize::from(p[pointer]) << 8 | usize::from(p[pointer + 1])
                }
                None if d.at.is_none()
                    || matches!(named.of.as_deref(), Some("freelist" | "ptrmap"))
                    || named.kind.as_deref() == Some("overflow") =>
                {
                    0
                }
                None => File::head(no),
            };
            (base(no) + from, base(no) + page_size)
        }
        (None, Some(frame)) => {
            let size = crate::sidecar::wal_page_size(data) + 24;
            (32 + (frame - 1) * size, 32 + frame * size)
        }
        (None, None) => (0, data.len()),
    };
    let at = (origin as i64 + d.at.unwrap_or(0)) as usize;
    let end = d.len.map_or(end, |n| at + n);
    let number = || -> Result<u64> { Ok(if let Some(no) = to { u64::from(no) } else { d.value.context("needs `value` or `to`")? as u64 }) };
    let mut put = |at: usize, bytes: &[u8]| -> Result<()> {
        data.get_mut(at..at + bytes.len()).context("outside the file")?.copy_from_slice(bytes);
        Ok(())
    };
    match d.op.as_str() {
        "zero" => put(at, &vec![0; end - at])?,
        "fill" => put(at, &vec![d.value.context("needs `value`")? as u8; end - at])?,
        "random" => put(at, &rng.bytes(end - at))?,
        "put" => put(at, &bytes_of(d)?)?,
        "u16" => put(at, &(number()? as u16).to_be_bytes())?,
        "u32" => put(at, &(number()? as u32).to_be_bytes())?,
        "flip" => *data.get_mut(at).context("outside the file")? ^= 1 << d.bit.unwrap_or(0),
        "copy" | "swap" => {
            let (a, b) = (page.context("needs a page")?, to.context("needs `to`")?);
            let (old, new) = (data[base(a)..base(a) + page_size].to_vec(), data[base(b)..base(b) + page_size].to_vec());
            data[base(a)..base(a) + page_size].copy_from_slice(&new);
            if d.op == "swap" {
                data[base(b)..base(b) + page_size].copy_from_slice(&old);
            }
        }
        "pointer" => {
            let no = page.context("needs a page")?;
            let place = |n: i64| healthy.pointers(no) + 2 * cell_number(no, n);
            put(base(no) + place(d.cell.context("needs `cell`")?), &(number()? as u16).to_be_bytes())?;
        }
        "shift-pointer" => {
            let no = page.context("needs a page")?;
            let p = healthy.page(no);
            let place = healthy.pointers(no) + 2 * cell_number(no, d.cell.context("needs `cell`")?);
            let old = i64::from(p[place]) << 8 | i64::from(p[place + 1]);
            put(base(no) + place, &((old + d.value.context("needs `value`")?) as u16).to_be_bytes())?;
        }
        "swap-pointers" => {
            let no = page.context("needs a page")?;
            let p = healthy.page(no);
            let place = |n: i64| healthy.pointers(no) + 2 * cell_number(no, n);
            let (a, b) = (place(d.cell.context("needs `cell`")?), place(d.value.context("needs `value`")?));
            put(base(no) + a, &p[b..b + 2])?;
            put(base(no) + b, &p[a..a + 2])?;
        }
        "overflow-pointer" => {
            let no = page.context("needs a page")?;
            let cell = healthy.cell(no, cell_number(no, d.cell.context("needs `cell`")?)).context("no cell of a row")?;
            ensure!(!cell.overflow.is_empty(), "the cell has no overflow");
            put(base(no) + cell.at + cell.len - 4, &(number()? as u32).to_be_bytes())?;
        }
        "freeblock" => {
            // With `cell`: the first freeblock begins where that cell does. Without: the first freeblock names itself as the next.
            let no = page.context("needs a page")?;
            let p = healthy.page(no);
            let h = File::head(no);
            if let Some(n) = d.cell {
                let cell = healthy.cell(no, cell_number(no, n)).context("no cell of a row")?;
                put(base(no) + h + 1, &(cell.at as u16).to_be_bytes())?;
            } else {
                let first = usize::from(p[h + 1]) << 8 | usize::from(p[h + 2]);
                ensure!(first != 0, "the page has no freeblock");
                put(base(no) + first, &(first as u16).to_be_bytes())?;
            }
        }
        "ladder" => {
            // `len` free pages become interior pages without cells, one below the other, between this interior page and its right-most child.
            let no = page.context("needs a page")?;
            let h = File::head(no);
            let rungs: Vec<u32> = healthy.freelist().1.into_iter().take(d.len.context("needs `len`")?).collect();
            ensure!(Some(rungs.len()) == d.len, "the freelist has {} leaves", rungs.len());
            let mut below = healthy.page(no)[h + 8..h + 12].to_vec();
            for rung in rungs {
                let mut p = vec![0; page_size];
                p[0] = 5;
                p[5..7].copy_from_slice(&(healthy.usable as u16).to_be_bytes());
                p[8..12].copy_from_slice(&below);
                put(base(rung), &p)?;
                below = rung.to_be_bytes().to_vec();
            }
            put(base(no) + h + 8, &below)?;
        }
        "same-pointer" => {
            let no = page.context("needs a page")?;
            let p = healthy.page(no);
            let from = healthy.pointers(no) + 2 * cell_number(no, d.value.context("needs `value`")?);
            let into = healthy.pointers(no) + 2 * cell_number(no, d.cell.context("needs `cell`")?);
            put(base(no) + into, &p[from..from + 2])?;
        }
        "rowid" => {
            let no = page.context("needs a page")?;
            let number = cell_number(no, d.cell.context("needs `cell`")?);
            let cell = healthy.cell(no, number).context("no cell with a rowid")?;
            let (rowid_at, len) = cell.rowid_at;
            let new = to_varint(d.value.context("needs `value`")? as u64, len);
            let p = healthy.page(no);
            if new.len() == len {
                put(base(no) + rowid_at, &new)?;
            } else {
                let moved = [&p[cell.at..rowid_at], &new, &p[rowid_at + len..cell.at + cell.len]].concat();
                let h = File::head(no);
                let start = usize::from(p[h + 5]) << 8 | usize::from(p[h + 6]);
                let fresh = start.checked_sub(moved.len()).context("no room for the cell")?;
                ensure!(fresh >= healthy.pointers(no) + 2 * healthy.cell_count(no), "no room for the cell");
                put(base(no) + fresh, &moved)?;
                put(base(no) + h + 5, &(fresh as u16).to_be_bytes())?;
                put(base(no) + healthy.pointers(no) + 2 * number, &(fresh as u16).to_be_bytes())?;
            }
        }
        "cut" => {
            let keep = match (page, d.value) {
                (Some(no), _) => base(no) + d.len.unwrap_or(0),
                (None, Some(n)) if n >= 0 => n as usize,
                (None, Some(n)) => data.len() - n.unsigned_abs() as usize,
                (None, None) => bail!("needs `value` or a page"),
            };
            data.truncate(keep);
        }
        "append" => {
            let more = match (to, d.len) {
                (Some(no), _) => healthy.page(no).to_vec(),
                (None, Some(n)) => rng.bytes(n),
                (None, None) => bytes_of(d)?,
            };
            data.extend(more);
        }
        "append-again" => {
            // The whole healthy database once more.
            data.extend_from_slice(&sight.healthy);
        }
        "stale" => {
            // The page as it was in the healthy database, before the steps of a sidecar were checkpointed.
            let no = page.context("needs a page")?;
            put(base(no), healthy.page(no))?;
        }
        "text-mode" => {
            let mut out = Vec::with_capacity(data.len());
            for &b in data.iter() {
                if b == b'\n' {
                    out.push(b'\r');
                }
                out.push(b);
            }
            *data = out;
        }
        "remove" => drop(data.drain(at..at + d.len.context("needs `len`")?)),
        "insert" => drop(data.splice(at..at, bytes_of(d)?)),
        "replace" => {
            let unit = bytes_of(d)?;
            *data = unit.iter().copied().cycle().take(d.len.unwrap_or(unit.len())).collect();
        }
        "reseal" => {
            // The checksums of a log as its writer would have computed them over what stands there now.
            let salt = data.get(16..20).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes).context("no log")?;
            crate::sidecar::reseal_wal(data, salt);
        }
        other => bail!("unknown op {other}"),
    }
    Ok(())
}
