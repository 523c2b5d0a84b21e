//! The copy is read back with our own reader and compared with what was written.

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::MainOnly;
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::ids::ObjectId;
use crate::recover::Selection;
use crate::recover::live::rows;
use crate::report::model::ReadBack;
use crate::schema::{Catalog, Object};
use crate::survey::entry::EntrySum;
use crate::survey::verdict::{Class, class_of};
use crate::survey::{Content, Survey};
use crate::tree::Pages;

use super::table::row_hash;
use super::{Copied, Refused};

/// What a copy reads back as.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// As it was written, and sound.
    Sound(ReadBack),
    /// Something in it is not: the first disagreement in words, and each object that can be left out for it.
    Wrong(String, Refused),
}

/// Surveys the copy and compares every row.
///
/// # Errors
/// I/O, cancellation; `SelfCheck` when the copy is no database.
pub(crate) fn compare(bytes: &[u8], original: &Survey<'_>, copied: &Copied, may_break: bool, ctx: &Ctx) -> Result<Outcome> {
    let fail = |what: String| Error::SelfCheck { what };
    let header = DatabaseHeader::read(bytes).map_err(|_| fail("no header".to_owned()))?;
    let size = header.page_size().ok_or_else(|| fail("no page size".to_owned()))?;
    let source = MainOnly::new(bytes, size);
    let pages = Pages::new(&source, header.reserved);
    let survey = Survey::run(pages, header, Findings::new(ctx.limits.findings_per_code), ctx)?;
    let mut wrong: Option<String> = None;
    let mut refused = Refused::new();
    for ((code, object), n) in survey.findings.counts() {
        if class_of(*code, *object, &survey.catalog) > Class::Healthy && !may_break {
            let there = object.and_then(|o| survey.catalog.get(o));
            let name = there.map(|o| o.name.text()).unwrap_or_default();
            let first = survey.findings.kept().iter().find(|f| f.defect.code == *code).map(|f| f.sentence()).unwrap_or_default();
            let what = format!("{} {} on {name:?}, {n} times: {first}", code.problem().id, code.problem().name);
            if let Some(id) = there.and_then(|o| to_leave_out(&original.catalog, o)) {
                refused.entry(id).or_insert_with(|| format!("it did not read back from the copy: {what}"));
            }
            wrong.get_or_insert(what);
        }
    }
    if let Some(what) = wrong {
        return Ok(Outcome::Wrong(what, refused));
    }
    let mut compared = 0_u64;
    let tables = copied.tables.iter().map(|(id, w)| (original.catalog.get(*id).map(|o| o.name.as_bytes().to_vec()).unwrap_or_default(), w));
    let missing = copied.shadows.iter().filter(|s| s.object.is_none()).map(|s| (s.name.clone().into_bytes(), &s.written));
    for (name, written) in tables.chain(missing) {
        let there = survey.catalog.by_name(&name).and_then(|o| survey.tree_of(o.id));
        let mut sum = EntrySum::default();
        if let Some((t, Content::Table { plan, .. })) = there.and_then(|t| Some((t, t.content.as_ref()?))) {
            rows(&survey.pages, &t.tree.slots, plan, &Selection::default(), ctx, |row| {
                sum.add(row_hash(&row));
                Ok(())
            })?;
        }
        if sum != written.sum {
            let what = format!(
                "table {:?}: {} rows were written, {} read back, or their bytes differ",
                String::from_utf8_lossy(&name),
                written.rows,
                sum.count
            );
            let refused = there.and_then(|t| survey.catalog.get(t.object)).and_then(|o| to_leave_out(&original.catalog, o));
            return Ok(Outcome::Wrong(what.clone(), refused.map(|id| (id, what)).into_iter().collect()));
        }
        compared = compared.saturating_add(sum.count);
    }
    Ok(Outcome::Sound(ReadBack { rows_compared: compared, equal: true }))
}

/// The object of the evidence to leave out for one that is wrong in the copy: itself; the table of an index that a constraint
/// made; the virtual table of a shadow table.
fn to_leave_out(original: &Catalog, there: &Object) -> Option<ObjectId> {
    let object = original.objects().iter().find(|o| o.kind == there.kind && o.excluded.is_none() && o.name.same(there.name.as_bytes()))?;
    let id = match object.family.virtual_table() {
        Some(of) => of,
        None if object.autoindex.is_some() => object.table?,
        None => object.id,
    };
    (id != ObjectId::SCHEMA).then_some(id)
}
