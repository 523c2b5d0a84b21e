//! The copy is read back with our own reader and compared with what was written.

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::MainOnly;
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::recover::Selection;
use crate::recover::live::rows;
use crate::report::model::ReadBack;
use crate::survey::entry::EntrySum;
use crate::survey::verdict::{Class, class_of};
use crate::survey::{Content, Survey};
use crate::tree::Pages;

use super::Copied;
use super::table::row_hash;

/// Surveys the copy and compares every row.
///
/// # Errors
/// `SelfCheck` with the first disagreement.
pub(crate) fn compare(bytes: &[u8], original: &Survey<'_>, copied: &Copied, may_break: bool, ctx: &Ctx) -> Result<ReadBack> {
    let fail = |what: String| Error::SelfCheck { what };
    let header = DatabaseHeader::read(bytes).map_err(|_| fail("no header".to_owned()))?;
    let size = header.page_size().ok_or_else(|| fail("no page size".to_owned()))?;
    let source = MainOnly::new(bytes, size);
    let pages = Pages::new(&source, header.reserved);
    let survey = Survey::run(pages, header, Findings::new(ctx.limits.findings_per_code), ctx)?;
    for ((code, object), n) in survey.findings.counts() {
        if class_of(*code, *object, &survey.catalog) > Class::Healthy && !may_break {
            let name = object.and_then(|o| survey.catalog.get(o)).map(|o| o.name.text()).unwrap_or_default();
            let first = survey.findings.kept().iter().find(|f| f.defect.code == *code).map(|f| f.sentence()).unwrap_or_default();
            return Err(fail(format!("{} {} on {name:?}, {n} times: {first}", code.problem().id, code.problem().name)));
        }
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
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(fail(format!(
                "table {name:?}: {} rows were written, {} read back, or their bytes differ",
                written.rows, sum.count
            )));
        }
        compared = compared.saturating_add(sum.count);
    }
    Ok(ReadBack { rows_compared: compared, equal: true })
}
