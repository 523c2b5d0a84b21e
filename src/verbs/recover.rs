//! `recover`: the clean copy, the salvage database, the finish script and both reports.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{InputFile, OpenOptions};
use crate::recover::foreign;
use crate::recover::{breakers, ledger, nameless, text_back};
use crate::report::Report;
use crate::report::model::{Output, OutputRole, Recovery, Verb};
use crate::survey::Survey;
use crate::verbs::examination::{Examination, once, steady};
use crate::verbs::{Inputs, Options};
use crate::write::Settings;
use crate::write::copy::read_back::Outcome;
use crate::write::copy::{self, Refused, Target};
use crate::write::file::OutputFile;
use crate::write::{finish, salvage};

/// Objects that may be left out because the copy does not read back with them: with more of them something else is wrong.
const REFUSED: usize = 100;

/// Writes the clean copy to `out` and, beside it, the salvage database, `finish.sql` and both reports.
///
/// # Errors
/// As `check`; a name that is taken; a copy that does not read back. Nothing is left half-written.
pub fn recover(inputs: &Inputs, options: &Options, out: &Path, ctx: &Ctx) -> Result<Report> {
    steady(ctx, None, || run(inputs, options, out, ctx))
}

fn run(inputs: &Inputs, options: &Options, out: &Path, ctx: &Ctx) -> Result<Report> {
    refuse_names_of_inputs(inputs, out)?;
    let named: Vec<&Path> = [Some(inputs.db.as_path()), inputs.journal.as_deref(), inputs.shm.as_deref(), inputs.schema.as_deref()]
        .into_iter()
        .flatten()
        .chain(inputs.wal.iter().map(PathBuf::as_path))
        .collect();
    let target = OutputFile::create(out, options.force, &named)?;
    let side = |ending: &str| OutputFile::create(&beside(out, ending), options.force, &named);
    let mut files = Files {
        target,
        json: side(".report.json")?,
        html: side(".report.html")?,
        salvage: side(".salvage.db")?,
        finish: side(".finish.sql")?,
    };
    let folder = files.target.folder().to_path_buf();
    once(inputs, options, Some(&folder), ctx, |e| {
        // Whoever may read the database may read what is made of it.
        for file in [&mut files.target, &mut files.json, &mut files.html, &mut files.salvage, &mut files.finish] {
            file.permissions_of(&inputs.db)?;
        }
        write(e, files, &folder, options, out, ctx)
    })
}

/// The outputs of a run.
struct Files {
    target: OutputFile,
    json: OutputFile,
    html: OutputFile,
    salvage: OutputFile,
    finish: OutputFile,
}

/// No output may take the name of an input, nor the name under which SQLite would look for a file beside one.
fn refuse_names_of_inputs(inputs: &Inputs, out: &Path) -> Result<()> {
    let outputs = ["", ".report.json", ".report.html", ".salvage.db", ".finish.sql"].map(|ending| place(&beside(out, ending)));
    let named = [Some(&inputs.db), inputs.journal.as_ref(), inputs.shm.as_ref(), inputs.schema.as_ref(), inputs.map.as_ref()];
    for input in named.into_iter().flatten().chain(&inputs.wal) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let name = beside(input, ending);
            if outputs.contains(&place(&name)) {
                let what = format!("{}: SQLite would take an output of this name for a part of the input; give another", name.display());
                return Err(Error::Usage { what });
            }
        }
    }
    Ok(())
}

/// A path by its real folder, whether or not something is there.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    path.file_name().map_or_else(|| path.to_path_buf(), |name| folder.join(name))
}

fn write(e: &mut Examination<'_>, files: Files, folder: &Path, options: &Options, out: &Path, ctx: &Ctx) -> Result<Report> {
    let Files { target, mut json, mut html, salvage: salvage_file, finish: finish_file } = files;
    let mut searches = e.search_indexes()?;

    let settings = settings(&e.survey, options)?;
    let place = Target { file: target.file(), path: target.temp_path(), folder };
    let mut refused = Refused::new();
    let (mut copied, copy_file, read_back) = loop {
        let copied = copy::write(&e.survey, &mut searches, &place, settings, options.keep_violations, &refused, ctx)?;
        target.file().sync_data().map_err(|e| Error::io(target.temp_path(), "write", e))?;
        let copy_file = reopen(target.temp_path(), folder, options, ctx)?;
        match copy::read_back::compare(copy_file.bytes(), &e.survey, &copied, options.keep_violations, ctx)? {
            Outcome::Sound(read_back) => break (copied, copy_file, read_back),
            Outcome::Wrong(what, objects) => {
                // Without what is wrong the rest is a copy all the same. Each round leaves out one object at least.
                let known = refused.len();
                refused.extend(objects);
                if refused.len() == known || refused.len() > REFUSED {
                    return Err(Error::SelfCheck { what });
                }
            }
        }
    };

    let mut foreign = foreign::check(&e.survey, &copied.selections, ctx)?;
    e.survey.findings.merge(std::mem::take(&mut foreign.log));
    e.survey.findings.merge(std::mem::take(&mut copied.log));

    let nameless = nameless::find(&e.survey, ctx)?;
    let mut texts = text_back::find(&e.survey, &searches, folder, ctx)?;
    e.hide()?;
    let salvaged = salvage::write(&e.survey, &copied, &e.others, &nameless, &mut texts, &salvage_file, ctx)?;
    let finish = finish::script(&e.survey, &copied);
    let mut report = e.report(Verb::Recover, Some(out))?;
    let mut recovery = Recovery {
        tables: ledger::tables(&e.survey, &copied, &foreign, &texts),
        breakers: breakers::confirmed(&e.survey, &copied, &foreign),
        left_out: ledger::left_out(&e.survey, &copied),
        read_back: Some(read_back),
        ..Recovery::default()
    };
    ledger::note_texts(&mut recovery.tables, &texts);
    for other in &e.others {
        other.enter(&mut recovery.tables);
    }
    recovery.tables.extend(nameless.iter().map(nameless::Nameless::ledger));
    let mut outputs: Vec<(OutputRole, OutputFile)> = vec![(OutputRole::Copy, target)];
    // What an earlier run left under these names must not pass for a part of this one.
    let mut unused = Vec::new();
    if salvaged {
        outputs.push((OutputRole::Salvage, salvage_file));
    } else {
        unused.push(salvage_file);
    }
    if let Some(text) = finish {
        write_text(&finish_file, &text)?;
        outputs.push((OutputRole::FinishSql, finish_file));
    } else {
        unused.push(finish_file);
    }
    for (role, file) in &outputs {
        recovery.outputs.push(output(*role, file, options, ctx)?);
    }
    for (role, file) in [(OutputRole::ReportJson, &json), (OutputRole::ReportHtml, &html)] {
        recovery.outputs.push(Output { role, path: file.path().display().to_string(), bytes: 0, sha256: None });
    }
    for file in outputs.iter_mut().map(|(_, file)| file).chain(&mut unused).chain([&mut json, &mut html]) {
        recovery.moved_aside.extend(file.moves()?.iter().map(|m| [m.from.display().to_string(), m.to.display().to_string()]));
    }
    report.recovery = Some(recovery);
    report.seal();
    if options.redact {
        report.redact();
    }
    report.balance().map_err(|what| Error::SelfCheck { what })?;
    write_text(&json, &report.to_json())?;
    write_text(&html, &crate::report::html::render(&report)?)?;
    drop(copy_file);
    for file in outputs.into_iter().map(|(_, file)| file).chain([json, html]) {
        file.commit()?;
    }
    for file in unused {
        file.clear()?;
    }
    Ok(report)
}

/// `OUT` with an ending behind its whole name.
fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn settings(survey: &Survey<'_>, options: &Options) -> Result<Settings> {
    let mut settings = Settings::from_header(&survey.header)
        .ok_or_else(|| Error::Usage { what: "the page size or the encoding of the database could not be settled".to_owned() })?;
    settings.wal = options.keep_wal && survey.header.write_version == 2;
    Ok(settings)
}

fn reopen(path: &Path, folder: &Path, options: &Options, ctx: &Ctx) -> Result<InputFile> {
    let mut open = OpenOptions::new();
    open.hash = !options.no_hash;
    open.own = true;
    open.temp_dir = Some(folder.to_path_buf());
    InputFile::open(path, ctx, &open)
}

fn write_text(file: &OutputFile, text: &str) -> Result<()> {
    let mut f: &File = file.file();
    f.write_all(text.as_bytes()).map_err(|e| Error::io(file.path(), "write", e))
}

fn output(role: OutputRole, file: &OutputFile, options: &Options, ctx: &Ctx) -> Result<Output> {
    let mut open = OpenOptions::new();
    open.hash = !options.no_hash;
    let read = InputFile::open(file.temp_path(), ctx, &open)?;
    let print = read.fingerprint();
    Ok(Output { role, path: file.path().display().to_string(), bytes: print.len, sha256: print.sha256_hex() })
}
