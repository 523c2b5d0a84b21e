//! Whether a sidecar belongs to the file it lies beside: same, foreign, or undecided, with reasons.
//!
//! SQLite blends any log whose checksums are right and rolls back any journal with a header. Only a sidecar that positively
//! contradicts the file is not blended; where the evidence is thin, SQLite is followed and the doubt is said.

use super::edges::{Edges, SchemaRows, crossing, free_in_use, leaf_rows, roots, schema_rows};
use super::page_one::grade;
use super::source::PageSource;
use crate::format::DatabaseHeader;
use crate::format::header::HEADER_LEN;

/// How a sidecar fits the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is this database's.
    Same,
    /// Nothing decides it.
    Undecided,
    /// It is another database's.
    Foreign,
}

/// The verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Same, undecided or foreign.
    pub verdict: Verdict,
    /// What speaks for or against it, in words.
    pub reasons: Vec<String>,
}

impl Fit {
    /// The reasons in one line.
    #[must_use]
    pub fn text(&self) -> String {
        self.reasons.join("; ")
    }
}

/// What two images of page 1 say against each other.
fn compare_headers(main: &[u8], other: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    if grade(main) < 5 || grade(other) < 5 {
        return out;
    }
    let (Ok(a), Ok(b)) = (DatabaseHeader::read(main), DatabaseHeader::read(other)) else { return out };
    if a.encoding_raw != b.encoding_raw && a.encoding_raw != 0 && b.encoding_raw != 0 {
        out.push(format!("text encoding {} against {}", a.encoding_raw, b.encoding_raw));
    }
    if a.application_id != b.application_id && a.application_id != 0 {
        out.push(format!("application id {} against {}", a.application_id, b.application_id));
    }
    out
}

fn header(image: Option<&[u8]>) -> Option<DatabaseHeader> {
    DatabaseHeader::read(image.filter(|b| grade(b) >= 5)?).ok()
}

/// What there is to judge a sidecar by.
#[derive(Clone, Copy)]
pub struct Case<'x> {
    /// The state with the sidecar blended in.
    pub blended: &'x dyn PageSource,
    /// The main file alone; `None` when no page can be made out in it.
    pub alone: Option<&'x dyn PageSource>,
    /// The main file's own page 1.
    pub main_page_one: Option<&'x [u8]>,
    /// The sidecar's image of page 1: the oldest of a log, the one of a journal.
    pub other_page_one: Option<&'x [u8]>,
    /// The newest image of page 1 in the committed part of a log.
    pub newest_page_one: Option<&'x [u8]>,
    /// Whether the main file may be in the middle of a transaction, as beside a hot journal.
    pub in_transaction: bool,
    /// Frames of the log that a checkpoint has brought into the main file, as their bytes show.
    pub checkpointed: u32,
    /// Usable bytes of a page.
    pub usable: u32,
    /// Pages of the database by the sidecar: of the last commit, or before the transaction.
    pub other_pages: u32,
    /// Whole pages of the main file.
    pub main_pages: u32,
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("other_pages", &self.other_pages).field("main_pages", &self.main_pages).finish_non_exhaustive()
    }
}

/// What was found for and against a sidecar.
#[derive(Debug, Default)]
struct Scales {
    /// Proves another database.
    hard: Vec<String>,
    /// Speaks against the sidecar; damage may do the same.
    soft: Vec<String>,
    /// Says that the main file has gone on without the sidecar, whosever it is.
    stale: Vec<String>,
    /// Speaks for it.
    same: Vec<String>,
}

impl Scales {
    fn settle(self) -> Fit {
        let Scales { mut hard, mut soft, stale, same } = self;
        // Two things that do not depend on one another, and nothing against them.
        if hard.is_empty() && same.is_empty() && soft.len() >= 2 {
            hard.append(&mut soft);
        }
        let verdict = match (hard.is_empty(), soft.is_empty() && stale.is_empty(), same.is_empty()) {
            (false, _, _) => Verdict::Foreign,
            (true, false, true) => Verdict::Undecided,
            _ if !stale.is_empty() => Verdict::Undecided,
            // One contradiction among things that agree is damage, not another database.
            _ => Verdict::Same,
        };
        let reasons = if verdict == Verdict::Same && !same.is_empty() { same } else { [hard, soft, stale, same].concat() };
        Fit { verdict, reasons }
    }
}

fn weigh(case: &Case<'_>, scales: &mut Scales) {
    let Scales { hard, soft, same, .. } = scales;
    let mut found = crossing(case.blended, case.alone, case.usable);
    // The main file beside a journal is in the middle of a transaction, and a journal that is cut gives a mixture: only the
    // kinds and bounds of most edges count there.
    if case.in_transaction {
        found = Edges { hold: found.hold.saturating_add(found.index), broken: 0, ..found };
    }
    let mut disjoint = false;
    let own = case.alone.map(|main| schema_rows(main, case.usable)).unwrap_or_default();
    if let (Some(main), Some(other)) = (case.main_page_one, case.other_page_one) {
        soft.extend(compare_headers(main, other));
        let mut theirs: SchemaRows = schema_rows(case.blended, case.usable);
        leaf_rows(other, HEADER_LEN, case.usable, &mut theirs);
        if !own.is_empty() && !theirs.is_empty() {
            let common = own.intersection(&theirs).count();
            if common > 0 {
                same.push(format!("{common} schema rows in common"));
            } else {
                disjoint = true;
            }
        }
    } else {
        let Edges { hold, contradict, .. } = roots(&own, case.blended, case.usable);
        found.hold = found.hold.saturating_add(hold);
        found.contradict = found.contradict.saturating_add(contradict);
    }
    if found.hold > 0 {
        same.push(format!("{} tree edges between the files hold", found.hold));
    }
    if found.contradict > 0 {
        let text = format!("{} tree edges between the files contradict each other", found.contradict);
        let clearly = found.contradict >= 2 && found.contradict > found.hold.saturating_mul(2);
        // Where the main file alone is whole, the contradiction is no damage of it.
        let breaks = found.broken >= 2 && found.broken > found.hold || found.broken > 0 && found.hold == 0;
        if clearly || breaks || (disjoint && found.contradict > found.hold) { hard.push(text) } else { soft.push(text) }
    }
    if disjoint {
        let text = "the schema on its page 1 has no row of the main file's".to_owned();
        if found.hold == 0 { hard.push(text) } else { soft.push(text) }
    }
}

/// Judges a log against its main file.
#[must_use]
pub fn wal(case: &Case<'_>) -> Fit {
    let mut scales = Scales::default();
    weigh(case, &mut scales);
    let own = case.main_page_one.filter(|b| grade(b) >= 8).and_then(|b| DatabaseHeader::read(b).ok());
    if let (Some(main), None) = (case.alone, case.other_page_one) {
        let taken = free_in_use(main, case.blended, case.usable);
        if taken > 0 {
            scales.hard.push(format!("{taken} of its pages are free in the main file, and it has no page 1 that takes them"));
        }
    }
    if let Some(h) = own {
        // A commit that changes the number of pages writes page 1; without page 1 in the log the number stands in the main file.
        if case.other_page_one.is_none() && h.page_count_is_current() && h.page_count == case.main_pages && case.other_pages != h.page_count
        {
            scales.hard.push(format!("its commits give {} pages without a page 1, the main file has {}", case.other_pages, h.page_count));
        }
        // Both numbers only grow. A checkpoint takes them over from the log, so that the main file is never ahead of it.
        if let Some(newest) = header(case.newest_page_one.or(case.other_page_one)) {
            let behind = |a: u32, b: u32| b.wrapping_sub(a).wrapping_sub(1) < 0x7fff_ffff;
            if behind(newest.change_counter, h.change_counter) {
                let (theirs, own) = (newest.change_counter, h.change_counter);
                scales.stale.push(format!("its newest page 1 has change counter {theirs}, the main file is at {own}"));
            }
            if behind(newest.schema_cookie, h.schema_cookie) {
                let (theirs, own) = (newest.schema_cookie, h.schema_cookie);
                scales.stale.push(format!("its newest page 1 has schema cookie {theirs}, the main file is at {own}"));
            }
        }
    }
    if case.checkpointed > 0 {
        // A log whose newer part is damaged, over a main file that has it: older pages over newer ones contradict each other.
        scales.stale.append(&mut scales.hard);
        scales.same.push(format!("{} pages of the main file are images in it", case.checkpointed));
    }
    scales.settle()
}

/// Judges a journal against its main file.
#[must_use]
pub fn journal(case: &Case<'_>) -> Fit {
    let mut scales = Scales::default();
    weigh(case, &mut scales);
    if let (Some(main), Some(before)) = (header(case.main_page_one), header(case.other_page_one)) {
        let (main, before) = (main.change_counter, before.change_counter);
        // The transaction counts up by one, when it writes page 1 at all.
        match main.wrapping_sub(before) {
            0 | 1 => scales.same.push("the change counters follow one another".to_owned()),
            _ if !scales.same.iter().any(|s| s.contains("tree edges")) => {
                scales.hard.push(format!("its page 1 has change counter {before}, the main file is at {main}"));
            }
            _ => scales.soft.push(format!("its page 1 has change counter {before}, the main file is at {main}")),
        }
    }
    scales.settle()
}
