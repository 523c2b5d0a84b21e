//! From paths to pages: opens the inputs, settles the geometry, and gives the snapshot that is read.

use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{Clues, Geometry, Held, InputFile, MainOnly, OpenOptions, PageSource, reconcile};
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::pipeline::{Inputs, Options};
use crate::report::model::{Access, HeaderDecision, Input, InputRole, Report};
use crate::survey::Survey;
use crate::tree::Pages;

/// The inputs, read through, with everything that was decided about them.
#[derive(Debug)]
pub(super) struct Opened {
    files: Vec<(InputFile, InputRole)>,
    /// The geometry that all layers read.
    pub(super) geometry: Geometry,
    /// What was found while settling it.
    log: Findings,
}

impl Opened {
    /// Opens what the caller named. `temp_dir` is where a private snapshot may lie.
    pub(super) fn open(inputs: &Inputs, options: &Options, temp_dir: Option<&Path>, ctx: &Ctx) -> Result<Opened> {
        let mut open = OpenOptions::new();
        open.no_mmap = options.no_mmap;
        open.hash = !options.no_hash;
        open.temp_dir = temp_dir.map(Path::to_path_buf);
        let main = InputFile::open(&inputs.db, ctx, &open)?;
        let mut log = Findings::new(ctx.limits.findings_per_code);
        let clues = Clues { main: main.bytes(), ..Clues::default() };
        let geometry = reconcile(&clues, &mut log)
            .ok_or_else(|| Error::NotADatabase { path: inputs.db.clone(), what: "no database page in it".to_owned() })?;
        Ok(Opened { files: vec![(main, InputRole::Main)], geometry, log })
    }

    fn main(&self) -> &[u8] {
        self.files.first().map_or(&[], |(f, _)| f.bytes())
    }

    /// The pages of the snapshot.
    pub(super) fn source(&self) -> Box<dyn PageSource + '_> {
        Box::new(MainOnly::new(self.main(), self.geometry.page_size))
    }

    /// The header as it was settled.
    pub(super) fn header(&self) -> DatabaseHeader {
        let mut header = self.geometry.header.unwrap_or_default();
        header.encoding_raw = self.geometry.encoding.number();
        header.reserved = self.geometry.reserved;
        header.page_size_raw = DatabaseHeader::page_size_field(self.geometry.page_size);
        header
    }

    /// Surveys the snapshot.
    pub(super) fn survey<'a>(&self, source: &'a dyn PageSource, ctx: &Ctx) -> Result<Survey<'a>> {
        let pages = Pages::new(source, self.geometry.reserved);
        Survey::run(pages, self.header(), self.log.clone(), ctx)
    }

    /// Reads all inputs once more: `Unstable` when one changed.
    pub(super) fn recheck(&self, options: &Options, ctx: &Ctx) -> Result<()> {
        if options.no_hash {
            return Ok(());
        }
        for (file, _) in &self.files {
            if let Some(what) = file.recheck(ctx)? {
                return Err(Error::Unstable { path: file.path().to_path_buf(), what });
            }
        }
        Ok(())
    }

    /// Enters inputs and decisions into a report. Comes after [`Opened::recheck`], which proves the second hash.
    pub(super) fn describe(&self, report: &mut Report) {
        for (file, role) in &self.files {
            let print = file.fingerprint();
            let hash = print.sha256_hex();
            report.inputs.push(Input {
                path: file.path().display().to_string(),
                role: *role,
                bytes: print.len,
                sha256_before: hash.clone(),
                sha256_after: hash,
                access: if file.held() == Held::Mapped { Access::Mapped } else { Access::Snapshot },
                unreadable: file.holes().iter().map(|r| [r.start, r.end]).collect(),
            });
        }
        report.page_size = self.geometry.page_size.get();
        report.header = self
            .geometry
            .decisions
            .iter()
            .map(|d| HeaderDecision {
                field: d.field.to_owned(),
                value: d.value.clone(),
                evidence: d.evidence.clone(),
                overruled: d.evidence != "the header",
            })
            .collect();
    }
}
