//! The history of a database for a terminal: the answer, then files, branches, commits, and the versions of a row.
#![expect(clippy::arithmetic_side_effects, reason = "widths of text that this module made itself")]

use super::diff::literal;
use super::history::{CommitTold, FileTold, History, Line, Log, RowTold, Touched};
use super::human::{clip, count, counted, escape, name, passage};
use super::text::{Sheet, Style};
use crate::ids::wide;

/// Commits of a branch that are listed; `--json` has all.
const COMMITS: usize = 60;
/// Characters of a value that are shown.
const VALUE: usize = 60;

/// The history as text.
#[must_use]
pub fn render(history: &History, style: &Style) -> String {
    let mut sheet = Sheet::new(style);
    sheet.coloured(&escape(&history.sentence), if history.exit_code == 0 { "1;32" } else { "1;33" });
    for note in &history.notes {
        sheet.paragraph("  ", 4, &format!("{}.", passage(note)));
    }
    if let Some(row) = &history.row {
        versions(&mut sheet, row);
        return sheet.finish();
    }
    if !history.files.is_empty() {
        files(&mut sheet, &history.files);
        return sheet.finish();
    }
    if let Some(path) = &history.base.path {
        let counter = history.base.change_counter.map(|n| format!(", change counter {n}")).unwrap_or_default();
        sheet.heading("Main file");
        sheet.paragraph("  ", 4, &format!("{}: {}{counter}", escape(path), counted(u64::from(history.base.pages), "page")));
    }
    for (i, l) in history.logs.iter().enumerate() {
        sheet.heading(&if history.logs.len() > 1 { format!("Log {}", i + 1) } else { "Log".to_owned() });
        log(&mut sheet, l);
    }
    if let Some(s) = &history.shm {
        sheet.heading("Shared memory");
        let same = if s.same_generation { "of this generation" } else { "of another generation" };
        let text = format!(
            "{same}; ends at frame {} of {}; {} are in the main file",
            s.max_frame,
            counted(u64::from(s.pages), "page"),
            counted(u64::from(s.checkpointed), "frame")
        );
        sheet.paragraph("  ", 4, &text);
    }
    for line in &history.branches {
        branch(&mut sheet, line, history.branches.len() > 1);
    }
    if let Some(j) = &history.journal {
        sheet.heading("Rollback journal");
        sheet.paragraph("  ", 4, &format!("{}: {}", escape(&j.path), escape(&j.state)));
        let before = if j.pages_before > 0 {
            format!("; {} before the transaction", counted(u64::from(j.pages_before), "page"))
        } else {
            String::new()
        };
        let images = counted(u64::from(j.images), "page image");
        sheet.paragraph("  ", 4, &format!("{images}, {} of them rolled back{before}", count(u64::from(j.counting))));
        if let Some(n) = &j.super_journal {
            sheet.paragraph("  ", 4, &format!("names the super-journal {}; --super-journal settles it", name(n)));
        }
        if let Some(t) = &j.transaction {
            sheet.paragraph("  ", 4, &format!("From its images to the main file: {}", did(t)));
        }
    }
    sheet.finish()
}

/// Numbers in runs: "3, 7-12 and 40 more".
fn runs(numbers: &[u32]) -> String {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for &n in numbers {
        match runs.last_mut() {
            Some(run) if run[1].checked_add(1) == Some(n) => run[1] = n,
            _ => runs.push([n, n]),
        }
    }
    let shown: Vec<String> = runs.iter().take(12).map(|[a, b]| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    let more = if runs.len() > 12 { format!(" and {} more", runs.len() - 12) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

fn log(sheet: &mut Sheet<'_>, l: &Log) {
    let header = if l.accepted { "" } else { ", its header is damaged" };
    sheet.paragraph("  ", 4, &format!("{}: {}{header}", escape(&l.path), escape(&l.standing)));
    if l.frames == 0 {
        return;
    }
    let mut parts = vec![format!("{}: {} read", counted(u64::from(l.frames), "frame"), count(u64::from(l.read)))];
    for (n, words) in [
        (l.uncommitted, "behind the last commit"),
        (l.detached, "behind a break of the chain"),
        (l.older, "of older generations"),
        (l.junk, "of zeros or junk"),
    ] {
        if n > 0 {
            parts.push(format!("{} {words}", count(u64::from(n))));
        }
    }
    if l.cut_bytes > 0 {
        parts.push(format!("a torn frame of {}", counted(l.cut_bytes, "byte")));
    }
    parts.push(format!("{} stand in the main file as they are", count(u64::from(l.in_main))));
    sheet.paragraph("  ", 4, &parts.join(", "));
    if l.generations.len() > 1 {
        for g in &l.generations {
            let now = if g.current { ", the current one" } else { "" };
            let text = format!(
                "generation {}: frames {} to {}, {}, {}{now}",
                g.salts,
                g.first,
                g.last,
                counted(u64::from(g.frames), "frame"),
                counted(u64::from(g.commits), "commit")
            );
            sheet.paragraph("  ", 4, &text);
        }
    } else if let Some(g) = l.generations.first() {
        sheet.paragraph("  ", 4, &format!("generation {}, checkpoint sequence {}", g.salts, l.checkpoint_sequence));
    }
}

fn branch(sheet: &mut Sheet<'_>, line: &Line, several: bool) {
    if line.commits.is_empty() && line.tail.is_none() && line.shown {
        return;
    }
    sheet.heading(&match (line.shown, several) {
        (true, false) => "Commits".to_owned(),
        (true, true) => format!("Branch {}: what SQLite reads", escape(&line.name)),
        _ => format!("Branch {}: {}, leaves commit {}", escape(&line.name), line.kind, line.leaves_at),
    });
    for w in &line.witnesses {
        sheet.paragraph("  ", 4, &escape(w));
    }
    if line.overwritten > 0 {
        let pages = if line.overwritten_pages.is_empty() {
            "pages unknown".to_owned()
        } else {
            let mut all = line.overwritten_pages.clone();
            all.sort_unstable();
            all.dedup();
            format!("pages {}", runs(&all))
        };
        sheet.paragraph("  ", 4, &format!("{} written over by another writer, {pages}", counted(u64::from(line.overwritten), "frame")));
    }
    if !line.corrected.is_empty() {
        sheet.paragraph("  ", 4, &format!("one damaged word put right in frame {}", runs(&line.corrected)));
    }
    let head = ["commit", "frame", "frames", "pages"];
    let widths = line.commits.iter().chain(&line.tail).fold(head.map(str::len), |w, c| {
        let n = |n: u32| count(u64::from(n)).len();
        [w[0], w[1].max(n(c.frame)), w[2].max(n(c.frames)), w[3].max(n(c.pages))]
    });
    let lead = |cells: [String; 4]| -> String {
        let mut out = "  ".to_owned();
        for (cell, width) in cells.iter().zip(widths) {
            out.push_str(&format!("{cell:>width$}  "));
        }
        out
    };
    if !line.commits.is_empty() || line.tail.is_some() {
        sheet.line(&format!("{}what it did", lead(head.map(str::to_owned))));
    }
    let indent = widths.iter().sum::<usize>() + 10;
    let cut = line.commits.len() > COMMITS;
    let half = COMMITS / 2;
    for (i, c) in line.commits.iter().enumerate() {
        if cut && i >= half && i < line.commits.len() - half {
            if i == half {
                sheet.line(&format!("  ... {} more, with --json ...", count(wide(line.commits.len() - COMMITS))));
            }
            continue;
        }
        let n = |n: u32| count(u64::from(n));
        sheet.paragraph(&lead([n(c.number), n(c.frame), n(c.frames), n(c.pages)]), indent, &did(c));
    }
    if let Some(c) = &line.tail {
        let n = |n: u32| count(u64::from(n));
        sheet.paragraph(&lead(["-".to_owned(), n(c.frame), n(c.frames), n(c.pages)]), indent, &format!("not committed: {}", did(c)));
    }
}

/// What a transaction did, in one line.
fn did(c: &CommitTold) -> String {
    let mut parts: Vec<String> = c.schema.iter().map(|s| passage(s)).collect();
    parts.extend(c.objects.iter().filter_map(rows_of));
    let quiet: Vec<String> =
        c.objects.iter().filter(|o| rows_of(o).is_none() && o.name != "sqlite_schema").map(|o| name(&o.name)).collect();
    if !quiet.is_empty() {
        let shown: Vec<String> = quiet.iter().take(4).cloned().collect();
        let more = if quiet.len() > 4 { format!(" and {} more", quiet.len() - 4) } else { String::new() };
        parts.push(format!("pages of {}{more}", shown.join(", ")));
    }
    if parts.is_empty() {
        parts.push(counted(u64::from(c.other_pages.max(c.frames)), "page"));
    }
    parts.join("; ")
}

fn rows_of(o: &Touched) -> Option<String> {
    let mut parts = Vec::new();
    for (sign, n) in [("+", o.added), ("-", o.removed), ("~", o.changed)] {
        if n > 0 {
            parts.push(format!("{sign}{}", count(n)));
        }
    }
    (!parts.is_empty()).then(|| format!("{} {}", name(&o.name), parts.join(" ")))
}

fn versions(sheet: &mut Sheet<'_>, row: &RowTold) {
    sheet.heading(&format!("{} {}: {}, oldest first", name(&row.table), name(&row.key), counted(wide(row.versions.len()), "version")));
    for v in &row.versions {
        let frame = v.frame.map(|f| format!(", frame {f}")).unwrap_or_default();
        let branch = if v.branch == "main" { String::new() } else { format!("branch {}, ", escape(&v.branch)) };
        sheet.paragraph(
            "  ",
            4,
            &format!("{branch}{}: {} ({}; page {}, cell {}{frame})", escape(&v.when), v.change, v.trust, v.page, v.cell),
        );
        for n in &v.values {
            sheet.paragraph("    ", 6, &format!("{} = {}", name(&n.column), escape(&clip(&literal(&n.value), VALUE))));
        }
    }
}

fn files(sheet: &mut Sheet<'_>, files: &[FileTold]) {
    sheet.heading("Files, oldest first");
    for f in files {
        match &f.error {
            Some(e) => sheet.paragraph("  ", 4, &format!("{}: {}", escape(&f.path), passage(e))),
            None => {
                let text = format!(
                    "{}: change counter {}, schema cookie {}, {}, {}. {}",
                    escape(&f.path),
                    f.change_counter,
                    f.schema_cookie,
                    counted(u64::from(f.pages), "page"),
                    counted(f.rows, "row"),
                    passage(&f.verdict)
                );
                sheet.paragraph("  ", 4, &text);
                if !f.note.is_empty() {
                    sheet.paragraph("    ", 6, &passage(&f.note));
                }
                let did: Vec<String> = f.objects.iter().filter_map(rows_of).collect();
                if !did.is_empty() {
                    sheet.paragraph("    ", 6, &format!("since the file before: {}", did.join("; ")));
                }
            }
        }
    }
}
