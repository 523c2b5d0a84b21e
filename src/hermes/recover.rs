//! `hermes recover`: the clean copy, and what the application needs to open it.
//!
//! Passes: the copy of `recover`; what the evidence, retired logs and fallback files hold beyond it ([`donors`]); what the copy
//! lacks for the application ([`repairs`]); the changed copy ([`super::amend`]); the ledger and the words for the customer.

mod donors;
mod ledger;
mod repairs;

use std::path::{Path, PathBuf};

pub use ledger::{Recovered, Repair};

use super::amend::Changes;
use super::{facts, layout, store};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::report::Report;
use crate::report::model::{Class, OutputRole};
use crate::verbs::{Inputs, Options};
use crate::write::file::OutputFile;

/// `OUT` with an ending behind its whole name.
fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Writes the copy of a store to `out`.
///
/// # Errors
/// What the tool cannot do. Nothing half-written stays.
pub(super) fn run(profile: &str, inputs: &Inputs, options: &Options, out: &Path, ctx: &Ctx) -> Result<Recovered> {
    let mut ledger = OutputFile::create(&beside(out, ".hermes.json"), options.force, &[&inputs.db])?;
    let folder = ledger.folder().to_path_buf();
    let work = tempfile::Builder::new()
        .prefix(".rootpage-hermes-")
        .tempdir_in(&folder)
        .map_err(|e| Error::io(&folder, "create a folder in", e))?;
    let mut done = Recovered::new(profile, &inputs.db, out);
    let mut inputs = inputs.clone();
    if let Some(found) = layout::of_lost_schema(&inputs, options, work.path(), ctx)? {
        let path = work.path().join("schema.sql");
        std::fs::write(&path, &found.sql).map_err(|e| Error::io(&path, "write", e))?;
        inputs.schema = Some(path);
        done.layouts = found.words;
        done.schema = "inferred".to_owned();
    }
    // Values stay readable until everything is decided; the report is redacted at the end.
    let mut plain = options.clone();
    plain.redact = false;
    let mut report = crate::verbs::recover(&inputs, &plain, out, ctx)?;
    done.exit_code = report.exit_code;
    let changes = plan(&inputs, &plain, out, work.path(), &mut done, ctx)?;
    if changes.values().any(|c| !c.is_empty()) {
        amend(&changes, &plain, out, work.path(), &mut report, &mut done, ctx)?;
    }
    done.count(&report);
    ledger::tell(&mut done, &report);
    if options.redact {
        done.redact();
        report.redact();
    }
    reports(&report, &done, out)?;
    ledger.permissions_of(&inputs.db)?;
    {
        use std::io::Write as _;
        let mut file = ledger.file();
        file.write_all(done.to_json().as_bytes()).map_err(|e| Error::io(ledger.path(), "write", e))?;
    }
    ledger.commit()?;
    Ok(done)
}

/// What changes in the copy.
fn plan(inputs: &Inputs, options: &Options, out: &Path, work: &Path, done: &mut Recovered, ctx: &Ctx) -> Result<Changes> {
    let copy_inputs = Inputs::at_path(out);
    let mut quick = options.clone();
    quick.no_hash = true;
    store::open(&copy_inputs, &quick, work, ctx, |copy| {
        done.has_transcript = copy.has("sessions") && copy.has("messages");
        if !done.has_transcript {
            return Ok(Changes::new());
        }
        let mut state = repairs::State::new(copy)?;
        store::open(inputs, &quick, work, ctx, |evidence| donors::evidence(evidence, &mut state, done))?;
        for log in donors::retired(&inputs.db) {
            let name = log.db.display().to_string();
            let read = store::open(&log, &quick, work, ctx, |donor| donors::other_store(donor, &name, &mut state, done));
            match read {
                Ok(()) => {}
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(error) => done.notes.push(format!("a retired log was not read: {error}")),
            }
        }
        donors::fallback(&inputs.db, copy, &mut state, done)?;
        repairs::application(copy, &mut state, done)?;
        let meta = facts::meta(copy)?;
        repairs::markers(copy, &meta, done.search_was_damaged, &mut state, done)?;
        Ok(state.changes(copy))
    })
}

/// Makes the copy anew with the changes and puts it in its place.
fn amend(
    changes: &Changes,
    options: &Options,
    out: &Path,
    work: &Path,
    report: &mut Report,
    done: &mut Recovered,
    ctx: &Ctx,
) -> Result<()> {
    let (composed, made) = (work.join("composed.db"), work.join("copy.db"));
    let mut quick = options.clone();
    (quick.no_hash, quick.force) = (true, false);
    let counts = store::open(&Inputs::at_path(out), &quick, work, ctx, |copy| copy.amend(changes, &composed))?;
    let again = crate::verbs::recover(&Inputs::at_path(&composed), &quick, &made, ctx)?;
    let Some(recovery) = &again.recovery else { return Err(Error::SelfCheck { what: "the changed copy was not made".to_owned() }) };
    for (name, want) in &counts {
        let found = recovery.tables.iter().filter(|t| t.name == *name).map(|t| t.rows_written).fold(0, u64::saturating_add);
        if found != *want {
            return Err(Error::SelfCheck { what: format!("table {name} of the changed copy has {found} rows, {want} were meant") });
        }
    }
    if again.verdict.class == Class::Structural {
        return Err(Error::SelfCheck { what: "the changed copy does not read back whole".to_owned() });
    }
    let permissions = std::fs::metadata(out).map_err(|e| Error::io(out, "read", e))?.permissions();
    std::fs::set_permissions(&made, permissions).map_err(|e| Error::io(&made, "write", e))?;
    std::fs::rename(&made, out).map_err(|e| Error::io(out, "write", e))?;
    let (script, target) = (beside(&made, ".finish.sql"), beside(out, ".finish.sql"));
    if script.is_file() && !target.is_file() {
        std::fs::rename(&script, &target).map_err(|e| Error::io(&target, "write", e))?;
    }
    done.amended = true;
    let mut open = crate::evidence::OpenOptions::new();
    open.hash = !options.no_hash;
    let print = crate::evidence::InputFile::open(out, ctx, &open)?;
    let print = print.fingerprint();
    for output in report.recovery.iter_mut().flat_map(|r| &mut r.outputs).filter(|o| o.role == OutputRole::Copy) {
        (output.bytes, output.sha256) = (print.len, print.sha256_hex());
    }
    Ok(())
}

/// Writes both reports of `recover` again, with what the profile did.
fn reports(report: &Report, done: &Recovered, out: &Path) -> Result<()> {
    let write = |ending: &str, text: &str| {
        let path = beside(out, ending);
        std::fs::write(&path, text).map_err(|e| Error::io(&path, "write", e))
    };
    write(".report.json", &report.to_json())?;
    let page = crate::report::html::render(report)?;
    let section = ledger::section(done)?;
    let page = match page.find("</header>").map(|at| at.saturating_add("</header>".len())) {
        Some(at) => format!("{}{section}{}", page.get(..at).unwrap_or_default(), page.get(at..).unwrap_or_default()),
        None => page.replacen("</body>", &format!("{section}</body>"), 1),
    };
    write(".report.html", &page)
}
