//! From paths to pages: opens the inputs, settles the geometry, and gives the snapshot that is read.

use std::cell::{Cell, OnceCell};
use std::io::ErrorKind;
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{At, Evidence, Fit, Held, InputFile, OpenOptions, OtherState, PageSource, Part, Sources, Verdict, View, identify};
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::report::human::counted;
use crate::report::model::{self, Access, HeaderDecision, Input, InputRole, Report, Sidecar, ViewCount};
use crate::survey::schema_rows::Hints;
use crate::survey::{Content, Survey};
use crate::tree::{Pages, Rulings};
use crate::verbs::page_map::{self, Ruled};
use crate::verbs::{Inputs, Options, Snapshot, SuperJournal, hidden, schema_source};

/// What a run came to, unless an input changed under it: then its own error says nothing, whatever it is.
///
/// # Errors
/// That of the run, or `Unstable`.
pub(crate) fn settled<T>(evidence: &Evidence, done: Result<T>, ctx: &Ctx) -> Result<T> {
    match done {
        Err(error @ (Error::Unstable { .. } | Error::Cancelled | Error::Usage { .. } | Error::Exists { .. })) => Err(error),
        // Nobody is left to be told anything.
        Err(Error::Io { source, path, action }) if source.kind() == ErrorKind::BrokenPipe => Err(Error::Io { source, path, action }),
        Err(error) => match evidence.recheck(ctx)? {
            Some((path, what)) => Err(Error::Unstable { path, what }),
            None => Err(error),
        },
        done => done,
    }
}

/// Opens what the caller named. `temp_dir` is where a private snapshot may lie.
///
/// # Errors
/// What [`Evidence::open`] says.
pub(crate) fn open(inputs: &Inputs, options: &Options, temp_dir: Option<&Path>, ctx: &Ctx) -> Result<Evidence> {
    let mut open = OpenOptions::new();
    open.no_mmap = options.no_mmap;
    open.hash = !options.no_hash;
    open.temp_dir = temp_dir.map(Path::to_path_buf);
    let at = match &inputs.at {
        None => None,
        Some(Snapshot::Commit(n)) => Some(At::Commit(*n)),
        Some(Snapshot::Frame(n)) => Some(At::Frame(*n)),
        Some(Snapshot::Branch(name)) => Some(At::Branch(name.clone())),
    };
    let sources = Sources {
        db: inputs.db.clone(),
        wal: inputs.wal.clone(),
        journal: inputs.journal.clone(),
        shm: inputs.shm.clone(),
        no_wal: inputs.no_wal,
        no_journal: inputs.no_journal,
        offset: inputs.offset,
        at,
        super_journal: inputs.super_journal.map(|s| s == SuperJournal::Present),
    };
    Evidence::open(&sources, ctx, &open)
}

/// The state of the evidence that is read, and what was found while settling it.
#[derive(Debug)]
pub(crate) struct Viewed<'a> {
    evidence: &'a Evidence,
    /// The state.
    pub(crate) view: View<'a>,
    log: Findings,
    /// The page map that was given, and what it changed.
    ruled: OnceCell<Ruled>,
    /// The inputs were read once more and were the same.
    settled: Cell<bool>,
}

impl<'a> Viewed<'a> {
    /// Settles which state is read.
    ///
    /// # Errors
    /// `NotADatabase` when no page can be made out; `Usage` for a commit that the log does not have.
    pub(crate) fn new(evidence: &'a Evidence, path: &Path, ctx: &Ctx) -> Result<Viewed<'a>> {
        let mut log = Findings::new(ctx.limits.findings_per_code);
        let view = evidence
            .view(&mut log)?
            .ok_or_else(|| Error::NotADatabase { path: path.to_path_buf(), what: identify(evidence.main_bytes()).to_string() })?;
        Ok(Viewed { evidence, view, log, ruled: OnceCell::new(), settled: Cell::new(false) })
    }

    /// The header as it was settled.
    fn header(&self) -> DatabaseHeader {
        let geometry = &self.view.geometry;
        let mut header = geometry.header.unwrap_or_default();
        header.encoding_raw = geometry.encoding.number();
        header.reserved = geometry.reserved;
        header.page_size_raw = DatabaseHeader::page_size_field(geometry.page_size);
        header
    }

    /// Surveys the state; with a page map a second time, under the rulings that differ from what the first found.
    ///
    /// # Errors
    /// `Usage` names the line of the map that cannot be followed; I/O; cancellation.
    pub(crate) fn survey(&self, inputs: &Inputs, ctx: &Ctx) -> Result<Survey<'_>> {
        let pages = Pages::new(&self.view.snapshot, self.view.geometry.reserved);
        let given = inputs.schema.as_ref().map(|path| schema_source::read(path, ctx)).transpose()?;
        let logs = self.evidence.inputs().filter(|(part, _)| *part != Part::Shm).map(|(_, file)| file.bytes());
        let mut hints = Hints { bytes: logs.collect(), given: given.unwrap_or_default(), rulings: Rulings::new() };
        let first = Survey::with_hints(pages.clone(), self.header(), &hints, self.log.clone(), ctx)?;
        let Some(path) = &inputs.map else { return Ok(first) };
        let ruled = page_map::rule(path, &first, ctx)?;
        hints.rulings.clone_from(&ruled.rulings);
        // A state is surveyed once; were it twice, the map would say the same again.
        let _ = self.ruled.set(ruled);
        if hints.rulings.is_empty() { Ok(first) } else { Survey::with_hints(pages, self.header(), &hints, self.log.clone(), ctx) }
    }

    /// Reads all inputs once more, unless that has been done.
    ///
    /// # Errors
    /// `Unstable` when one changed.
    pub(crate) fn recheck(&self, options: &Options, ctx: &Ctx) -> Result<()> {
        if self.settled.get() {
            return Ok(());
        }
        let changed = if options.no_hash {
            self.evidence.lost().map(|path| (path.to_path_buf(), "it shrank".to_owned()))
        } else {
            self.evidence.recheck(ctx)?
        };
        match changed {
            Some((path, what)) => Err(Error::Unstable { path, what }),
            None => {
                self.settled.set(true);
                Ok(())
            }
        }
    }

    /// The files that were read, as a report shows them. Comes after [`Viewed::recheck`].
    pub(crate) fn inputs(&self) -> Vec<Input> {
        self.evidence.inputs().map(|(part, file)| input(file, role(part))).collect()
    }

    /// Enters inputs, sidecars and decisions into a report. Comes after [`Viewed::recheck`], which proves the second hash.
    pub(crate) fn describe(&self, survey: &Survey<'_>, others: &[hidden::Other<'_>], report: &mut Report) {
        for (part, file) in self.evidence.inputs() {
            report.inputs.push(input(file, role(part)));
        }
        if let Some(ruled) = self.ruled.get() {
            report.inputs.push(ruled.input.clone());
            report.overruled.clone_from(&ruled.overruled);
        }
        let geometry = &self.view.geometry;
        report.page_size = geometry.page_size.get();
        report.header = geometry
            .decisions
            .iter()
            .map(|d| HeaderDecision {
                field: d.field.to_owned(),
                value: d.value.clone(),
                evidence: d.evidence.clone(),
                overruled: d.overrules,
            })
            .collect();
        report.snapshot = match (self.view.last_frame(), self.view.rolled_back) {
            (Some(frame), false) => Some(format!("the log up to frame {}", frame.0)),
            (Some(frame), true) => Some(format!("rolled back, then the log up to frame {}", frame.0)),
            (None, true) => Some("rolled back by the journal".to_owned()),
            (None, false) => None,
        };
        let views = |of: &dyn Fn(OtherState) -> bool| -> Vec<ViewCount> {
            let Some(other) = others.iter().find(|o| of(o.state)) else { return Vec::new() };
            let (shown, other_rows) = (rows_by_table(survey), rows_by_table(&other.survey));
            // "With" is the state that reads all of the sidecar.
            if other.state == OtherState::MainAlone { counts(&shown, &other_rows) } else { counts(&other_rows, &shown) }
        };
        report.timeline = crate::history::outline(&self.view);
        report.hidden_rows = others.iter().map(hidden::Other::rows).fold(0, u64::saturating_add);
        let path = |wanted: Part| {
            let file = self.evidence.inputs().find(|(p, _)| *p == wanted);
            file.map_or_else(String::new, |(_, f)| f.path().display().to_string())
        };
        if self.evidence.inputs().any(|(p, _)| p == Part::Wal) {
            let blended = self.view.upto.is_some();
            let none = match (blended, &self.view.hidden) {
                (true, _) => "the main file has no page to compare it with, and SQLite would delete the log",
                (false, Some(_)) => "the commits in it are not where SQLite reads them",
                (false, None) => "no committed frame in it that SQLite would read",
            };
            let (fit, mut reason) = fit(self.view.wal_fit.as_ref(), none);
            if let Some(h) = &self.view.hidden {
                let (commits, frames) = (counted(u64::from(h.commits), "commit"), counted(u64::from(h.frames), "frame"));
                reason.push_str(&format!("; {commits} in {frames} of it are not shown, SQLite does not read so far"));
            }
            let branch = others.iter().any(|o| matches!(o.state, OtherState::Branch(_)));
            let compares = self
                .view
                .branches
                .get(1)
                .filter(|_| branch)
                .map(|b| [format!("in branch {}, which SQLite does not read", b.name), "in what SQLite shows".to_owned()]);
            let views = views(&|o| if branch { o == OtherState::Branch(1) } else { o == OtherState::MainAlone });
            report.sidecars.push(Sidecar { path: path(Part::Wal), role: InputRole::Wal, fit, blended, reason, compares, views });
        }
        if self.evidence.inputs().any(|(p, _)| p == Part::Journal) {
            let (fit, reason) = fit(self.view.journal_fit.as_ref(), "not hot: SQLite would not roll it back");
            let blended = self.view.rolled_back;
            let rolled = others.iter().any(|o| o.state == OtherState::RolledBack);
            let compares = rolled.then(|| ["rolled back whole".to_owned(), "in what is shown".to_owned()]);
            let views = views(&|o| if rolled { o == OtherState::RolledBack } else { o == OtherState::MainAlone });
            report.sidecars.push(Sidecar { path: path(Part::Journal), role: InputRole::Journal, fit, blended, reason, compares, views });
        }
    }

    /// The survey of another state of the evidence. What is wrong with that state is not reported.
    ///
    /// # Errors
    /// Cancellation.
    pub(crate) fn survey_of<'o>(&self, other: &'o dyn PageSource, ctx: &Ctx) -> Result<Survey<'o>> {
        let pages = Pages::new(other, self.view.geometry.reserved);
        Survey::run(pages, self.header(), Findings::new(0), ctx)
    }
}

fn rows_by_table(survey: &Survey<'_>) -> Vec<(String, u64)> {
    let tables = survey.trees.iter().filter(|t| t.object != crate::ids::ObjectId::SCHEMA);
    tables
        .filter_map(|t| match &t.content {
            Some(Content::Table { plan, scan }) => Some((plan.name.clone(), scan.cells)),
            _ => None,
        })
        .collect()
}

fn counts(with: &[(String, u64)], without: &[(String, u64)]) -> Vec<ViewCount> {
    let find = |list: &[(String, u64)], name: &str| list.iter().find(|(n, _)| n == name).map(|(_, rows)| *rows);
    let mut names: Vec<&String> = with.iter().chain(without).map(|(n, _)| n).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .map(|n| ViewCount { table: n.clone(), with: find(with, n), without: find(without, n) })
        .filter(|v| v.with != v.without)
        .collect()
}

/// A file as the report shows it.
pub(crate) fn input(file: &InputFile, role: InputRole) -> Input {
    let print = file.fingerprint();
    let hash = print.sha256_hex();
    Input {
        path: file.path().display().to_string(),
        role,
        bytes: print.len,
        sha256_before: hash.clone(),
        sha256_after: hash,
        access: if file.held() == Held::Mapped { Access::Mapped } else { Access::Snapshot },
        unreadable: file.holes().iter().map(|r| [r.start, r.end]).collect(),
    }
}

fn role(part: Part) -> InputRole {
    match part {
        Part::Main => InputRole::Main,
        Part::Wal => InputRole::Wal,
        Part::Journal => InputRole::Journal,
        Part::Shm => InputRole::Shm,
    }
}

fn fit(fit: Option<&Fit>, none: &str) -> (model::Fit, String) {
    match fit {
        None => (model::Fit::Undecided, none.to_owned()),
        Some(fit) => {
            let word = match fit.verdict {
                Verdict::Same => model::Fit::Same,
                Verdict::Foreign => model::Fit::Foreign,
                Verdict::Undecided => model::Fit::Undecided,
            };
            (word, fit.text())
        }
    }
}
