//! The page map as data for the canvas: a palette of kinds of runs, and the runs as a short text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::finding::Code;
use crate::ids::wide;
use crate::report::human::{count, escape, name};
use crate::report::model::Report;
use crate::report::phrases;
use crate::survey::Role;

/// Pages whose findings the picture tells; the list below it has them all.
const TOLD: usize = 5_000;
/// Sentences told for one page.
const PER_PAGE: usize = 3;
/// Runs of pages whose codes the picture tells: some bytes each, so that the page stays small.
const MARKS: usize = 150_000;

/// What the template needs of the map.
pub(super) struct Picture {
    /// Roles in the order of the palette.
    pub(super) roles: Vec<RoleView>,
    /// Pages that a finding names.
    pub(super) damaged: u64,
    /// Custom properties `--r0`, `--r1`, ... for light and dark.
    pub(super) css: String,
    /// JSON for the script, safe inside a script element.
    pub(super) data: String,
}

/// A role in the legend.
pub(super) struct RoleView {
    /// Its place in the palette.
    pub(super) index: usize,
    /// Its name.
    pub(super) name: String,
    /// Its pages.
    pub(super) count: String,
}

/// Role, owner (-1: none), origin, damaged, overruled.
type Kind = (usize, i64, usize, u8, u8);

#[derive(serde::Serialize)]
struct Data<'a> {
    pages: u64,
    roles: Vec<String>,
    owners: Vec<String>,
    origins: Vec<String>,
    combos: &'a [Kind],
    runs: String,
    /// Codes that one page can have together, in words.
    codes: Vec<String>,
    /// For each run of pages with findings: pages passed over, pages, place in `codes`.
    marks: String,
    findings: BTreeMap<u32, Vec<String>>,
}

impl Picture {
    pub(super) fn new(report: &Report) -> Picture {
        let mut roles = Index::default();
        let mut owners = Index::default();
        let mut origins = Index::default();
        let mut combos: Vec<Kind> = Vec::new();
        let mut seen: BTreeMap<Kind, usize> = BTreeMap::new();
        let mut runs: Vec<(usize, u32)> = Vec::with_capacity(report.map.len());
        let mut damaged = 0_u64;
        // The schema may have many objects: they are found by id through a map, not by a walk for each run.
        let objects: BTreeMap<u32, &crate::report::model::Object> = report.objects.iter().map(|o| (o.id, o)).collect();
        let mut owner_of: BTreeMap<u32, i64> = BTreeMap::new();
        // Roles of the whole report come first, so that legend and picture agree.
        for role in legend(report) {
            roles.place(role);
        }
        for run in &report.map {
            let owner = match run.owner {
                None => -1,
                Some(id) => *owner_of.entry(id).or_insert_with(|| {
                    let name =
                        objects.get(&id).map_or_else(|| format!("object {id}"), |o| format!("{} {}", escape(&o.kind), name(&o.name)));
                    i64::try_from(owners.place(&name)).unwrap_or(-1)
                }),
            };
            let combo = (roles.place(&run.role), owner, origins.place(&run.origin), u8::from(run.damaged), u8::from(run.overruled));
            let kind = *seen.entry(combo).or_insert_with(|| {
                combos.push(combo);
                combos.len() - 1
            });
            if run.damaged {
                damaged = damaged.saturating_add(u64::from(run.count));
            }
            runs.push((kind, run.count));
        }
        let (codes, marks) = marks(report);
        let data = Data {
            pages: report.page_count,
            roles: roles.names.iter().map(|r| escape(r)).collect(),
            owners: owners.names,
            origins: origins.names.iter().map(|o| escape(o)).collect(),
            combos: &combos,
            runs: encode(&runs, combos.len()),
            codes,
            marks,
            findings: findings(report),
        };
        let css = css(&roles.names);
        let roles = roles
            .names
            .iter()
            .enumerate()
            .map(|(index, name)| RoleView {
                index,
                name: escape(name),
                count: count(report.pages_by_role.get(name).copied().unwrap_or_default()),
            })
            .collect();
        let data = script_safe(&serde_json::to_string(&data).unwrap_or_default());
        Picture { roles, damaged, css, data }
    }
}

/// The roles of a report: trees first, what is lost last.
fn legend(report: &Report) -> Vec<&String> {
    let mut roles: Vec<&String> = report.pages_by_role.keys().collect();
    roles.sort_by_key(|word| match Role::from_word(word) {
        Some(Role::Orphan) => (1, 0),
        Some(role) => (0, Role::ALL.iter().position(|r| *r == role).unwrap_or_default()),
        None => (2, 0),
    });
    roles
}

/// Names by place, in the order in which they came.
#[derive(Default)]
struct Index {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Index {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len();
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }
}

fn findings(report: &Report) -> BTreeMap<u32, Vec<String>> {
    let mut by_page: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for group in &report.findings {
        for item in &group.kept {
            let Some(page) = item.page else { continue };
            if by_page.len() >= TOLD && !by_page.contains_key(&page) {
                continue;
            }
            let list = by_page.entry(page).or_default();
            if list.len() < PER_PAGE {
                let text = phrases::finding(item);
                let text =
                    text.strip_prefix(&format!("page {page}: ")).or_else(|| text.strip_prefix(&format!("page {page}, "))).unwrap_or(&text);
                list.push(format!("{} {text}", group.code));
            }
        }
    }
    by_page
}

/// The codes of every page with findings: what is told of a page must not end with the findings that are kept in full.
fn marks(report: &Report) -> (Vec<String>, String) {
    let mut sets = Index::default();
    let mut out = String::new();
    let mut next = 1_u32;
    for mark in report.marks.iter().take(MARKS) {
        let words: Vec<String> = mark
            .codes
            .iter()
            .map(|id| Code::find(id).map_or_else(|| escape(id), |c| format!("{} {}", c.problem().id, c.problem().name)))
            .collect();
        number(&mut out, u64::from(mark.first.saturating_sub(next)));
        number(&mut out, u64::from(mark.count));
        number(&mut out, wide(sets.place(&words.join(" · "))));
        next = mark.first.saturating_add(mark.count);
    }
    (sets.names, out)
}

/// The runs as text: for each the place of its kind in a list where the kind used last moves to the front, times two,
/// plus one when a count follows. Numbers go as groups of five bits, low ones first; 32 marks that more follow.
///
/// Interleaved trees alternate between few kinds, so a run of one page is one character: a million of them are 1 MB.
fn encode(runs: &[(usize, u32)], kinds: usize) -> String {
    let mut order: Vec<usize> = (0..kinds).collect();
    let mut out = String::with_capacity(runs.len() * 2);
    for (kind, count) in runs {
        let rank = order.iter().position(|k| k == kind).unwrap_or(0);
        if rank > 0 {
            order.remove(rank);
            order.insert(0, *kind);
        }
        let more = *count != 1;
        number(&mut out, wide(rank) * 2 + u64::from(more));
        if more {
            number(&mut out, u64::from(*count));
        }
    }
    out
}

/// Characters '0' to 'o': 64 in a row, none of which means anything to HTML but `<`, `>` which the JSON escape covers.
fn number(out: &mut String, mut n: u64) {
    loop {
        let low = u8::try_from(n & 31).unwrap_or(0);
        n >>= 5;
        out.push(char::from(b'0' + low + if n > 0 { 32 } else { 0 }));
        if n == 0 {
            return;
        }
    }
}

/// JSON that can stand in a script element: no `<`, `>`, `&`, nor the line separators that old scripts trip over.
fn script_safe(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Custom properties with the colour of each role, for light and for dark screens. Paper is light.
fn css(roles: &[String]) -> String {
    let list = |dark: bool| {
        roles.iter().enumerate().fold(String::new(), |mut out, (i, role)| {
            let (light_colour, dark_colour) = Role::from_word(role).map_or(OTHER, colour);
            let _ = write!(out, "--r{i}:{};", if dark { dark_colour } else { light_colour });
            out
        })
    };
    format!(":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}", list(false), list(true))
}

/// The colour of a role on light and on dark ground. One hue for each family; interior pages are the stronger tone.
const fn colour(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::TableInterior => ("#1c5596", "#5b9be0"),
        Role::TableLeaf => ("#7db3e8", "#2f6399"),
        Role::IndexInterior => ("#17694a", "#4fbf8b"),
        Role::IndexLeaf => ("#86c9a2", "#2c7350"),
        Role::Overflow => ("#d9ad3c", "#a8822a"),
        Role::FreelistTrunk => ("#8c8f96", "#7b8089"),
        Role::FreelistLeaf => ("#cfd2d8", "#454a53"),
        Role::PointerMap => ("#b08968", "#8f6d50"),
        Role::LockByte => ("#7b4fb5", "#b18be0"),
        Role::Orphan => ("#e8740c", "#f0913f"),
        Role::Unreadable => ("#000000", "#ffffff"),
    }
}

/// For a word that is no role: a report that another version made.
const OTHER: (&str, &str) = ("#a3a7af", "#6d737d");

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str, kinds: usize) -> Vec<(usize, u32)> {
        let mut order: Vec<usize> = (0..kinds).collect();
        let mut bytes = text.bytes().peekable();
        let mut out = Vec::new();
        while bytes.peek().is_some() {
            let mut next = || {
                let (mut value, mut shift) = (0_u64, 0);
                loop {
                    let c = u64::from(bytes.next().unwrap() - b'0');
                    value |= (c & 31) << shift;
                    shift += 5;
                    if c < 32 {
                        return value;
                    }
                }
            };
            let head = next();
            let count = if head % 2 == 1 { next() } else { 1 };
            let kind = order.remove(usize::try_from(head / 2).unwrap());
            order.insert(0, kind);
            out.push((kind, u32::try_from(count).unwrap()));
        }
        out
    }

    #[test]
    fn runs_survive_the_short_text() {
        let runs = [(0, 1), (3, 70), (0, 1), (2, u32::MAX), (3, 1), (3, 2), (99, 31), (1, 32)];
        assert_eq!(decode(&encode(&runs, 100), 100), runs);
        let many: Vec<(usize, u32)> = (0..1000).map(|i| (i % 5, 1)).collect();
        assert_eq!(encode(&many, 5).len(), 1000);
    }

    #[test]
    fn json_cannot_leave_its_script() {
        assert_eq!(script_safe("\"</script><!--&\u{2028}\""), "\"\\u003c/script\\u003e\\u003c!--\\u0026\\u2028\"");
    }
}
