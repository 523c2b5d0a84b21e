//! `history`: the timeline of one database, or several main files of one store in their order.

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::DatabaseHeader;
use crate::history::timeline::Wanted;
use crate::history::{Target, tell};
use crate::report::history::{FileTold, History, Touched};
use crate::report::human::counted;
use crate::survey::{Content, Survey};
use crate::verbs::evidence::{self, Viewed};
use crate::verbs::examination::steady;
use crate::verbs::{Inputs, Options, diff};

/// The history of one database. `row` names a row that is followed.
///
/// # Errors
/// What the tool cannot do; a database that is none; `Unstable`.
pub fn history(inputs: &Inputs, options: &Options, row: Option<&Target>, ctx: &Ctx) -> Result<History> {
    steady(ctx, None, || {
        let evidence = evidence::open(inputs, options, None, ctx)?;
        evidence::settled(&evidence, once(&evidence, inputs, options, row, ctx), ctx)
    })
}

fn once(evidence: &crate::evidence::Evidence, inputs: &Inputs, options: &Options, row: Option<&Target>, ctx: &Ctx) -> Result<History> {
    let viewed = Viewed::new(evidence, &inputs.db, ctx)?;
    let mut out = tell(evidence, &viewed.view, Wanted { row, rows: row.is_none() }, ctx)?;
    viewed.recheck(options, ctx)?;
    out.inputs = viewed.inputs();
    if options.redact {
        out.redact();
    }
    Ok(out)
}

/// Several main files of one store, ordered by schema cookie and change counter, each with what differs from the one before.
///
/// # Errors
/// What the tool cannot do. A file that is no database is told and left.
pub fn generations(files: &[Inputs], options: &Options, ctx: &Ctx) -> Result<History> {
    let opened: Vec<_> = files.iter().map(|i| (i, evidence::open(i, options, None, ctx))).collect();
    let mut out =
        History { format: crate::report::history::FORMAT, tool_version: env!("CARGO_PKG_VERSION").to_owned(), ..History::default() };
    let mut told: Vec<(FileTold, usize)> = Vec::new();
    for (at, (inputs, evidence)) in opened.iter().enumerate() {
        let path = inputs.db.display().to_string();
        let mut file = FileTold { path, ..FileTold::default() };
        match evidence {
            Err(error) => file.error = Some(error.to_string()),
            Ok(evidence) => match Viewed::new(evidence, &inputs.db, ctx) {
                Err(error @ (Error::Cancelled | Error::Unstable { .. })) => return Err(error),
                Err(error) => file.error = Some(error.to_string()),
                Ok(viewed) => {
                    let survey = viewed.survey(inputs, ctx)?;
                    let header: DatabaseHeader = survey.header;
                    (file.change_counter, file.schema_cookie) = (header.change_counter, header.schema_cookie);
                    (file.pages, file.rows) = (survey.pages.count(), rows(&survey));
                    file.verdict = format!("{:?}", survey.class()).to_lowercase();
                    out.inputs.extend(viewed.inputs());
                }
            },
        }
        told.push((file, at));
    }
    // The path breaks ties, so that the order does not depend on the order of the arguments.
    told.sort_by(|(a, _), (b, _)| {
        (a.error.is_some(), a.schema_cookie, a.change_counter, a.rows, &a.path).cmp(&(
            b.error.is_some(),
            b.schema_cookie,
            b.change_counter,
            b.rows,
            &b.path,
        ))
    });
    let mut before: Option<usize> = None;
    for (file, at) in &mut told {
        let (Some((inputs, Ok(evidence))), None) = (opened.get(*at), &file.error) else { continue };
        if let Some((old_inputs, Ok(old))) = before.and_then(|b| opened.get(b)) {
            let (a, b) = (Viewed::new(old, &old_inputs.db, ctx)?, Viewed::new(evidence, &inputs.db, ctx)?);
            let (a_survey, b_survey) = (a.survey(old_inputs, ctx)?, b.survey(inputs, ctx)?);
            let wanted = diff::Wanted { tables: &[], by_primary_key: false, limit: 0, keep_violations: options.keep_violations };
            let found = diff::compare(&a_survey, &b_survey, &wanted, ctx)?;
            file.objects = found
                .tables
                .iter()
                .filter(|t| t.added.saturating_add(t.removed).saturating_add(t.changed) > 0)
                .map(|t| Touched {
                    kind: "table".to_owned(),
                    name: t.name.clone(),
                    pages: 0,
                    added: t.added,
                    removed: t.removed,
                    changed: t.changed,
                })
                .collect();
            let common = found.tables.iter().any(|t| t.a.is_some() && t.b.is_some());
            file.note = match (common, file.objects.is_empty() && found.schema.is_empty()) {
                (false, _) if !found.tables.is_empty() => "no table in common with the file before: another store".to_owned(),
                (_, true) => "the same rows as the file before".to_owned(),
                _ if !found.schema.is_empty() => {
                    format!("the schema differs in {}", counted(crate::ids::wide(found.schema.len()), "object"))
                }
                _ => String::new(),
            };
        }
        before = Some(*at);
    }
    out.files = told.into_iter().map(|(file, _)| file).collect();
    out.sentence = format!("{} of one store, oldest first.", counted(crate::ids::wide(out.files.len()), "file"));
    if out.files.iter().any(|f| f.note.ends_with("another store")) {
        out.sentence = format!("{}, not all of one store.", counted(crate::ids::wide(out.files.len()), "file"));
    }
    if options.redact {
        out.redact();
    }
    Ok(out)
}

fn rows(survey: &Survey<'_>) -> u64 {
    let rows = survey.trees.iter().filter(|t| t.object != crate::ids::ObjectId::SCHEMA).filter_map(|t| match &t.content {
        Some(Content::Table { scan, .. }) => Some(scan.cells),
        _ => None,
    });
    rows.fold(0, u64::saturating_add)
}
