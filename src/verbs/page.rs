//! `page`: one page explained.

use crate::bytes::{slice, u32_at};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::freelist::{Trunk, overflow_page};
use crate::format::header::HEADER_LEN;
use crate::format::{Cell, DatabaseHeader, Fields, Page};
use crate::ids::{PageNo, small};
use crate::report::collect;
use crate::report::model::{FORMAT, FindingItem, Verb};
use crate::report::page::{CellView, PageField, PageView};
use crate::survey::Survey;
use crate::tree::payload::PayloadReader;
use crate::tree::{Owner, Role, Slot};
use crate::verbs::examination::examine;
use crate::verbs::{Inputs, Options};

/// Characters of one value that are shown.
const VALUE_LEN: usize = 80;

/// One page explained. The exit code is that of `check` on the whole database.
///
/// # Errors
/// As `check`, and `Usage` for a page outside the database.
pub fn page(inputs: &Inputs, options: &Options, page: PageNo, ctx: &Ctx) -> Result<PageView> {
    examine(inputs, options, ctx, |e| {
        e.complete()?;
        let mut view = view(&e.survey, page, e.viewed.view.geometry.offset(page), options.redact)?;
        view.exit_code = e.sealed(Verb::Check)?.exit_code;
        Ok(view)
    })
}

/// Everything about a page.
///
/// # Errors
/// `Usage` for a page outside the database.
fn view(survey: &Survey<'_>, no: PageNo, file_offset: Option<u64>, redact: bool) -> Result<PageView> {
    let pages = &survey.pages;
    let image = pages.image(no).ok_or_else(|| Error::Usage {
        what: match pages.count() {
            count if no.get() <= count => format!("page {no} is missing: of the {count} pages of the database, no file holds it"),
            1 => format!("page {no} is not there: the database has 1 page"),
            count => format!("page {no} is not there: the database has {count} pages"),
        },
    })?;
    let role = survey.claims.role(no);
    let owner = survey.claims.owner(no);
    let tree = owner.and_then(|o| survey.trees.get(crate::ids::idx(o.0)));
    let mut view = PageView {
        format: FORMAT,
        page: no.get(),
        page_count: u64::from(pages.count()),
        origin: collect::origin(image.origin),
        file_offset: file_offset.unwrap_or(0),
        role: role.word().to_owned(),
        owner: match (owner, tree) {
            (Some(Owner::FREELIST), _) => Some("the freelist".to_owned()),
            (Some(Owner::FILE), _) => Some("the file format".to_owned()),
            (_, Some(t)) => survey.catalog.get(t.object).map(|o| format!("{} {}", o.kind.label(), o.name.text())),
            _ => None,
        },
        parent: tree.and_then(|t| parent(&t.tree, no)).map(PageNo::get),
        findings: survey.findings.kept().iter().filter(|f| f.site.page == Some(no)).map(collect::item).collect::<Vec<FindingItem>>(),
        hex: image.bytes.iter().map(|b| format!("{b:02x}")).collect(),
        ..PageView::default()
    };
    if no == PageNo::ONE
        && let Ok(header) = DatabaseHeader::read(image.bytes)
    {
        view.fields.extend(header_fields(&header));
    }
    match role {
        Role::FreelistTrunk => trunk(survey, image.bytes, &mut view),
        Role::FreelistLeaf | Role::PointerMap | Role::LockByte => {}
        Role::Overflow => {
            if let Some((next, body)) = overflow_page(image.bytes, pages.usable) {
                field(&mut view, "next overflow page", 0, 4, next.to_string());
                field(&mut view, "payload bytes", 4, small(body.len()), body.len().to_string());
            }
        }
        _ => {
            if let Ok(page) = pages.page(no) {
                btree(survey, no, &page, redact, &mut view);
            }
        }
    }
    if redact {
        view.redact();
    }
    Ok(view)
}

fn parent(tree: &crate::tree::Tree, no: PageNo) -> Option<PageNo> {
    let interior = tree.interiors.iter().find(|(p, _)| *p == no).and_then(|(_, parent)| *parent);
    interior.or_else(|| {
        tree.slots.iter().find_map(|s| match s {
            Slot::Leaf { page, by: Some((parent, _)), .. } if *page == no => Some(*parent),
            _ => None,
        })
    })
}

fn field(view: &mut PageView, name: &str, offset: u32, length: u32, value: String) {
    view.fields.push(PageField { name: name.to_owned(), offset, length, value });
}

fn header_fields(h: &DatabaseHeader) -> Vec<PageField> {
    let rows: [(&str, u32, u32, String); 18] = [
        ("magic string", 0, 16, String::from_utf8_lossy(&h.magic).escape_default().to_string()),
        ("page size", 16, 2, h.page_size().map_or_else(|| format!("{} (none)", h.page_size_raw), |s| s.get().to_string())),
        ("write version", 18, 1, h.write_version.to_string()),
        ("read version", 19, 1, h.read_version.to_string()),
        ("reserved bytes", 20, 1, h.reserved.to_string()),
        ("payload fractions", 21, 3, format!("{:?}", h.fractions)),
        ("change counter", 24, 4, h.change_counter.to_string()),
        ("page count", 28, 4, h.page_count.to_string()),
        ("first freelist trunk", 32, 4, h.freelist_trunk.to_string()),
        ("freelist pages", 36, 4, h.freelist_count.to_string()),
        ("schema cookie", 40, 4, h.schema_cookie.to_string()),
        ("schema format", 44, 4, h.schema_format.to_string()),
        ("largest root page", 52, 4, h.largest_root.to_string()),
        ("text encoding", 56, 4, h.encoding_raw.to_string()),
        ("user version", 60, 4, h.user_version.to_string()),
        ("application id", 68, 4, format!("{:#010x}", h.application_id)),
        ("version valid for", 92, 4, h.version_valid_for.to_string()),
        ("SQLite version", 96, 4, h.sqlite_version.to_string()),
    ];
    rows.into_iter().map(|(name, offset, length, value)| PageField { name: name.to_owned(), offset, length, value }).collect()
}

fn trunk(survey: &Survey<'_>, bytes: &[u8], view: &mut PageView) {
    field(view, "next trunk", 0, 4, u32_at(bytes, 0).unwrap_or(0).to_string());
    field(view, "leaves", 4, 4, u32_at(bytes, 4).unwrap_or(0).to_string());
    if let Ok(trunk) = Trunk::read(bytes, survey.pages.usable) {
        let leaves: Vec<String> = trunk.leaves().map(|n| n.to_string()).collect();
        field(view, "leaf pages", 8, small(leaves.len()).saturating_mul(4), leaves.join(" "));
    }
}

fn btree(survey: &Survey<'_>, no: PageNo, page: &Page<'_>, redact: bool, view: &mut PageView) {
    let base = if no == PageNo::ONE { small(HEADER_LEN) } else { 0 };
    let at = |n: u32| base.saturating_add(n);
    field(view, "page type", at(0), 1, format!("{} ({})", page.kind.byte(), Role::of_page(page.kind).word()));
    field(view, "first freeblock", at(1), 2, page.first_freeblock.to_string());
    field(view, "cells", at(3), 2, page.cell_count.to_string());
    field(view, "cell content start", at(5), 2, page.content_start.to_string());
    field(view, "fragmented free bytes", at(7), 1, page.fragments.to_string());
    if let Some(right) = page.right_child {
        field(view, "right-most child", at(8), 4, right.to_string());
    }
    view.freeblocks = page.freeblocks().map_while(|b| b.ok()).map(|(at, len)| [at, len]).collect();
    let mut payload = PayloadReader::new();
    for (i, cell) in page.cells(survey.pages.split) {
        view.cells.push(match cell {
            Ok(cell) => cell_view(survey, i, &cell, redact, &mut payload),
            Err(d) => CellView {
                no: i,
                offset: page.pointer(i).map_or(0, u32::from),
                defect: Some(crate::finding::Finding { defect: d, site: crate::finding::Site::default(), detail: None }.sentence()),
                ..CellView::default()
            },
        });
    }
}

fn cell_view(survey: &Survey<'_>, no: u16, cell: &Cell<'_>, redact: bool, reader: &mut PayloadReader) -> CellView {
    let mut view = CellView {
        no,
        offset: cell.at,
        length: cell.len,
        child: cell.child,
        rowid: cell.rowid,
        payload: (cell.child.is_none() || cell.payload_len > 0).then_some(cell.payload_len),
        overflow: cell.overflow,
        ..CellView::default()
    };
    if view.payload.is_none() {
        return view;
    }
    let sentence = |d| crate::finding::Finding { defect: d, site: crate::finding::Site::default(), detail: None }.sentence();
    let payload = match reader.read(&survey.pages, cell) {
        Ok(payload) => payload,
        Err(d) => {
            view.defect = Some(sentence(d));
            return view;
        }
    };
    let mut fields = Fields::new();
    if let Err(d) = fields.read(payload, cell.payload_len) {
        view.defect = Some(sentence(d));
    }
    for f in fields.as_slice() {
        if slice(payload, crate::ids::idx(f.start), crate::ids::idx(f.len)).is_none() {
            continue;
        }
        if redact {
            view.values.push(crate::report::export::class_and_length(f.value(payload), survey.encoding));
            continue;
        }
        let mut literal = String::new();
        crate::report::export::sql_literal(&mut literal, f.value(payload), survey.encoding);
        if literal.chars().count() > VALUE_LEN {
            literal = literal.chars().take(VALUE_LEN).chain("...".chars()).collect();
        }
        view.values.push(literal);
    }
    view
}
