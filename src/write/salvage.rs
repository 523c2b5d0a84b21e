//! `OUT.salvage.db`: every row that must not stand in the copy, with its provenance, in a database that any SQLite opens.
//!
//! Each table has a mirror under its own name: its columns without types and constraints, behind the columns that say where
//! the row comes from. The table `rootpage_findings` holds the findings that were kept in full.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek, Write};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::format::record::encode_record;
use crate::format::{Cell, Encoding, Fields, Value};
use crate::ids::{PageNo, PageSize, RootPage, small, wide};
use crate::recover::nameless::Nameless;
use crate::recover::provenance::{How, Trust};
use crate::recover::text_back::Texts;
use crate::recover::{breakers, witnesses};
use crate::report::collect;
use crate::schema::quoted;
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{Content, Excluded, Survey};
use crate::tree::Slot;
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::verbs::hidden::Other;
use crate::write::copy::{Copied, Disposition};
use crate::write::file::OutputFile;
use crate::write::{DatabaseWriter, Settings, TableTree};

/// The columns in front of a mirror's own.
const PROVENANCE: [&str; 11] = [
    "rp_reason",
    "rp_how",
    "rp_trust",
    "rp_source",
    "rp_page",
    "rp_cell",
    "rp_offset",
    "rp_length",
    "rp_complete",
    "rp_rowid",
    "rp_restore",
];

struct Mirror<'s> {
    name: String,
    /// What its places stand in; another state of the evidence has a survey of its own.
    survey: &'s Survey<'s>,
    /// Whether its rows are those of a state that is not shown.
    hidden: bool,
    /// The branch of the log that they are on; empty: none.
    branch: &'s str,
    plan: &'s TablePlan,
    slots: &'s [Slot],
    /// Rows to take; `None`: all of them, the table itself is not in the copy.
    places: Option<Vec<(PageNo, u16, &'static str)>>,
    reason: String,
    /// Rows that break the declaration of the table.
    broken: BTreeMap<(PageNo, u16), Excluded>,
    /// For each index that was compared with the table the rows that it does not have.
    absent: Vec<BTreeSet<(PageNo, u16)>>,
    /// What indexes still hold of rows that are gone, by rowid.
    gone: Vec<witnesses::Partial>,
}

/// Writes the salvage database; `false` when there is nothing to put into it.
pub(crate) fn write(
    survey: &Survey<'_>,
    copied: &Copied,
    others: &[Other<'_>],
    nameless: &[Nameless],
    texts: &mut [Texts],
    file: &OutputFile,
    ctx: &Ctx,
) -> Result<bool> {
    let mut texts: Vec<&mut Texts> = texts.iter_mut().filter(|t| t.texts > 0).collect();
    let mirrors = mirrors(survey, copied, others);
    if mirrors.is_empty() && nameless.is_empty() && texts.is_empty() {
        return Ok(false);
    }
    let size = PageSize::new(4096).unwrap_or(PageSize::SMALLEST);
    let mut settings = Settings::new(size);
    settings.encoding = survey.encoding;
    let mut db = DatabaseWriter::new(file.file(), file.temp_path(), settings)?;
    let tables = mirrors.len().saturating_add(nameless.len()).saturating_add(texts.len()).saturating_add(1);
    let mut roots = db.reserve_roots(tables)?.into_iter();
    let mut schema: Vec<(String, RootPage, String)> = Vec::new();
    for (mirror, root) in mirrors.iter().zip(roots.by_ref()) {
        put(&mut db, root, |f| mirror.each(ctx, f))?;
        schema.push((mirror.name.clone(), root, mirror.sql()));
    }
    for (found, root) in nameless.iter().zip(roots.by_ref()) {
        put(&mut db, root, |f| found.records(survey, ctx, f))?;
        schema.push((found.name.clone(), root, found.sql()));
    }
    for (text, root) in texts.iter_mut().zip(roots.by_ref()) {
        put(&mut db, root, |f| text.records(f))?;
        schema.push((text.name.clone(), root, text.sql()));
    }
    if let Some(root) = roots.next() {
        write_findings(survey, root, &mut db)?;
        let sql = "CREATE TABLE rootpage_findings(code, name, object, page, cell, origin, sentence)".to_owned();
        schema.push(("rootpage_findings".to_owned(), root, sql));
    }
    let mut tree = TableTree::new(&db, RootPage(PageNo::ONE));
    for (i, (name, root, sql)) in schema.iter().enumerate() {
        let text = |s: &str| survey.encoding.from_utf8(s.as_bytes()).into_owned();
        let (kind, name, sql) = (text("table"), text(name), text(sql));
        let values = [Value::Text(&kind), Value::Text(&name), Value::Text(&name), Value::Int(i64::from(root.0.get())), Value::Text(&sql)];
        let mut record = Vec::new();
        encode_record(&mut record, values.into_iter());
        tree.push(&mut db, i64::try_from(i).unwrap_or(0).saturating_add(1), &[&record])?;
    }
    tree.finish(&mut db)?;
    db.finish()?;
    Ok(true)
}

/// Writes a table from the records that `each` gives, numbered from 1.
fn put<W: Write + Seek>(
    db: &mut DatabaseWriter<W>,
    root: RootPage,
    each: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let mut tree = TableTree::new(db, root);
    let mut next = 0_i64;
    each(&mut |record| {
        next = next.saturating_add(1);
        tree.push(db, next, &[record])
    })?;
    tree.finish(db)?;
    Ok(())
}

fn mirrors<'s>(survey: &'s Survey<'_>, copied: &Copied, others: &'s [Other<'_>]) -> Vec<Mirror<'s>> {
    let mut out: Vec<Mirror<'s>> = Vec::new();
    let mut names: BTreeSet<String> = BTreeSet::from(["rootpage_findings".to_owned()]);
    for t in &survey.trees {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        if t.object == crate::ids::ObjectId::SCHEMA {
            continue;
        }
        let kept = copied.dispositions.get(&t.object).is_some_and(Disposition::is_kept);
        let mut places = None;
        let mut reason = String::new();
        if kept {
            let selection = copied.selections.get(&t.object);
            let rows: Vec<_> = selection
                .iter()
                .flat_map(|s| s.excluded.values())
                .map(|e| (e.page, e.cell, e.code.problem().name))
                .chain(selection.iter().flat_map(|s| &s.rewritten).map(|(p, c)| (*p, *c, "original-of-changed-row")))
                .chain(selection.iter().flat_map(|s| s.nulled.keys()).map(|(p, c)| (*p, *c, "unique-value-nulled")))
                .collect();
            places = Some(rows);
        } else {
            if scan.cells == 0 {
                continue;
            }
            "object-left-out".clone_into(&mut reason);
        }
        let gone = if kept { witnesses::partial_rows(survey, t) } else { Vec::new() };
        if places.as_ref().is_some_and(Vec::is_empty) && gone.is_empty() {
            continue;
        }
        let broken = copied.selections.get(&t.object).map(|s| s.excluded.clone()).unwrap_or_default();
        let absent = breakers::indexes(survey, plan).into_iter().map(|(_, absent)| absent).collect();
        let name = free_name(&plan.name, &mut names);
        out.push(Mirror { name, survey, hidden: false, branch: "", plan, slots: &t.tree.slots, places, reason, broken, absent, gone });
    }
    for other in others {
        for apart in &other.tables {
            let Some(t) = other.survey.tree_of(apart.object) else { continue };
            let Some(Content::Table { plan, .. }) = &t.content else { continue };
            out.push(Mirror {
                name: free_name(&plan.name, &mut names),
                survey: &other.survey,
                hidden: true,
                branch: &other.branch,
                plan,
                slots: &t.tree.slots,
                places: Some(apart.places.iter().map(|(page, cell)| (*page, *cell, other.reason())).collect()),
                reason: String::new(),
                broken: BTreeMap::new(),
                absent: Vec::new(),
                gone: Vec::new(),
            });
        }
    }
    out
}

/// A name that no other table of the salvage database has, and that it may have.
fn free_name(table: &str, names: &mut BTreeSet<String>) -> String {
    let mut name = table.to_owned();
    while name.is_empty()
        || name.starts_with("lost_and_found_")
        || name.to_ascii_lowercase().starts_with("sqlite_")
        || !names.insert(name.to_ascii_lowercase())
    {
        name.insert_str(0, "rp_");
    }
    name
}

impl Mirror<'_> {
    fn broken(&self, page: PageNo, no: u16) -> Option<Excluded> {
        self.broken.get(&(page, no)).copied()
    }

    /// Whether an index has the row.
    fn is_confirmed(&self, page: PageNo, no: u16) -> bool {
        self.absent.iter().any(|absent| !absent.contains(&(page, no)))
    }

    fn sql(&self) -> String {
        let mut used: BTreeSet<String> = PROVENANCE.iter().map(|s| (*s).to_owned()).collect();
        let mut columns: Vec<String> = PROVENANCE.iter().map(|s| (*s).to_owned()).collect();
        for c in self.stored_columns() {
            let mut name = self.plan.columns.get(c).map(|c| c.name.clone()).unwrap_or_default();
            while name.is_empty() || !used.insert(name.to_ascii_lowercase()) {
                name.push('_');
            }
            columns.push(quoted(&name));
        }
        columns.push("rp_surplus".to_owned());
        format!("CREATE TABLE {}({})", quoted(&self.name), columns.join(", "))
    }

    /// The columns that have a value in the evidence, as declared.
    fn stored_columns(&self) -> Vec<usize> {
        (0..self.plan.columns.len()).filter(|c| self.plan.columns.get(*c).is_some_and(|c| c.position.is_some())).collect()
    }

    fn each(&self, ctx: &Ctx, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let survey = self.survey;
        let mut maker =
            RecordMaker { payload: PayloadReader::new(), fields: Fields::new(), out: Vec::new(), columns: self.stored_columns() };
        match &self.places {
            Some(places) => {
                for (page, no, reason) in places {
                    ctx.check()?;
                    let cell = survey.pages.cell(*page, *no);
                    if let Ok(cell) = cell {
                        f(maker.make(survey, self, *page, *no, &cell, reason))?;
                    }
                }
            }
            None => {
                visit(&survey.pages, self.slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
                    f(maker.make(survey, self, at.page, at.no, &at.cell, &self.reason))
                })?;
            }
        }
        for partial in &self.gone {
            ctx.check()?;
            f(maker.partial(survey, self, partial))?;
        }
        Ok(())
    }
}

struct RecordMaker {
    payload: PayloadReader,
    fields: Fields,
    out: Vec<u8>,
    columns: Vec<usize>,
}

impl RecordMaker {
    /// What indexes hold of a row that no page has any more.
    fn partial(&mut self, survey: &Survey<'_>, mirror: &Mirror<'_>, row: &witnesses::Partial) -> &[u8] {
        let e = survey.encoding;
        let text = |s: &str| Constant::Text(e.from_utf8(s.as_bytes()).into_owned());
        let mut values: Vec<Constant> = vec![
            text(&if row.disputed {
                format!("{}, by index {}", crate::report::model::DISPUTED, row.indexes.join(", "))
            } else {
                format!("row-gone, known from index {}", row.indexes.join(", "))
            }),
            text(How::IndexOnly.word()),
            text(Trust::Linked.word()),
            text(&collect::origin(survey.pages.origin(row.page))),
            Constant::Int(i64::from(row.page.get())),
            Constant::Int(i64::from(row.cell)),
            Constant::Null,
            Constant::Null,
            Constant::Int(0),
            row.rowid.map_or(Constant::Null, Constant::Int),
            Constant::Null,
        ];
        for c in &self.columns {
            values.push(match row.values.get(c) {
                _ if mirror.plan.alias == Some(*c) => row.rowid.map_or(Constant::Null, Constant::Int),
                Some(value) => value.clone(),
                None => Constant::Null,
            });
        }
        values.push(Constant::Null);
        self.out.clear();
        encode_record(&mut self.out, values.iter().map(Constant::value));
        &self.out
    }

    fn make(&mut self, survey: &Survey<'_>, mirror: &Mirror<'_>, page: PageNo, no: u16, cell: &Cell<'_>, reason: &str) -> &[u8] {
        let (payload, mut complete) = match self.payload.read(&survey.pages, cell) {
            Ok(payload) => (payload.to_vec(), true),
            Err(_) => (self.payload.partial().to_vec(), false),
        };
        complete &= self.fields.read(&payload, cell.payload_len).is_ok();
        let row = Row { rowid: cell.rowid, payload: &payload, fields: &self.fields };
        let e = survey.encoding;
        let text = |s: &str| Constant::Text(e.from_utf8(s.as_bytes()).into_owned());
        let rowid = cell.rowid.map_or(Constant::Null, Constant::Int);
        let suggested = survey.suggested.get(&(page, no)).copied();
        let suggested = if mirror.hidden && mirror.plan.alias.is_none() { cell.rowid } else { suggested };
        let restore = breakers::restore(mirror.plan, &mirror.name, page, no, mirror.broken(page, no), suggested);
        // What the copy has under the same key is an older or another version of the row. A statement that replaces it would
        // leave its old text in an external-content search index: triggers do not fire for what OR REPLACE deletes.
        let restore = if mirror.hidden {
            let table = crate::report::human::shell_word(&format!("--table={}", mirror.plan.name));
            format!("rootpage restore OUT --from OUT.salvage.db {table} --how hidden --replace -o OUT2")
        } else {
            restore
        };
        let how = match survey.adopted.contains(&page) {
            _ if mirror.hidden => How::Hidden,
            true => How::Adopted,
            false => How::Live,
        };
        let trust = match (complete, mirror.is_confirmed(page, no)) {
            (true, true) => Trust::Witnessed,
            (true, false) => Trust::Linked,
            _ => Trust::Plausible,
        };
        let mut source = collect::origin(survey.pages.origin(page));
        if !mirror.branch.is_empty() {
            source.push_str(&format!(", branch {}", mirror.branch));
        }
        let mut values: Vec<Constant> = vec![
            text(reason),
            text(how.word()),
            text(trust.word()),
            text(&source),
            Constant::Int(i64::from(page.get())),
            Constant::Int(i64::from(no)),
            Constant::Int(i64::from(cell.at)),
            Constant::Int(i64::from(cell.len)),
            Constant::Int(i64::from(complete)),
            rowid,
            text(&restore),
        ];
        for c in &self.columns {
            // What lies behind the break of a partial row is not known, not a DEFAULT.
            let position = mirror.plan.columns.get(*c).and_then(|c| c.position).unwrap_or(usize::MAX);
            let there = complete || position < self.fields.len() && whole(&self.fields, position, &payload);
            values.push(if there { mirror.plan.raw_value(&row, *c).map_or(Constant::Null, Constant::from) } else { Constant::Null });
        }
        let surplus: Vec<Value<'_>> = self.fields.values(&payload).skip(mirror.plan.stored.len()).collect();
        values.push(if surplus.is_empty() || !complete { Constant::Null } else { text(&literals(&surplus, e)) });
        self.out.clear();
        encode_record(&mut self.out, values.iter().map(Constant::value));
        &self.out
    }
}

fn whole(fields: &Fields, position: usize, payload: &[u8]) -> bool {
    fields.as_slice().get(position).is_some_and(|f| f.start.saturating_add(f.len) <= small(payload.len()))
}

fn literals(values: &[Value<'_>], encoding: Encoding) -> String {
    let mut out = String::new();
    for v in values {
        if !out.is_empty() {
            out.push_str(", ");
        }
        crate::report::export::sql_literal(&mut out, *v, encoding);
    }
    out
}

fn write_findings<W: std::io::Write + std::io::Seek>(survey: &Survey<'_>, root: RootPage, db: &mut DatabaseWriter<W>) -> Result<()> {
    let mut tree = TableTree::new(db, root);
    let e = survey.encoding;
    for (i, finding) in survey.findings.kept().iter().enumerate() {
        let p = finding.defect.code.problem();
        let text = |s: &str| Constant::Text(e.from_utf8(s.as_bytes()).into_owned());
        let object = finding.site.object.and_then(|o| survey.catalog.get(o)).map_or(Constant::Null, |o| text(&o.name.text()));
        let values = [
            text(p.id),
            text(p.name),
            object,
            finding.site.page.map_or(Constant::Null, |p| Constant::Int(i64::from(p.get()))),
            finding.site.cell.map_or(Constant::Null, |c| Constant::Int(i64::from(c.0))),
            text(&collect::origin(finding.site.origin)),
            text(&finding.sentence()),
        ];
        let mut record = Vec::new();
        encode_record(&mut record, values.iter().map(Constant::value));
        let rowid = i64::try_from(wide(i)).unwrap_or(i64::MAX).saturating_add(1);
        tree.push(db, rowid, &[&record])?;
    }
    tree.finish(db)?;
    Ok(())
}
