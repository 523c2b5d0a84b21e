//! The best source, what the others add, what is missing, and the commands that recover all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::host::doctor::Step;
use crate::ids::wide;
use crate::report::human::{count, counted, shell};
use crate::report::model::Class;
use crate::verbs::{self, Options};

use super::bundle::Bundle;
use super::kind::{Kind, Seen};
use super::model::{OnlyHere, Relation, SourceLine, Triage};
use super::rowset::{self, RowSet};
use super::sources::{Found, Source, is_data, rows};
use super::wanted::Wanted;

/// Keys that are named for each table.
const KEYS: usize = 20;

/// Sources that the union takes in.
const PARTS: usize = 8;

/// Of a hundred rows this many in common make two files states of one store.
const COMMON: u64 = 5;

/// Enters sources, choice and commands into the result.
pub(super) fn settle(
    bundle: &Bundle,
    seen: &[Seen],
    found: Found,
    path: &Path,
    wanted: &Wanted,
    options: &Options,
    triage: &mut Triage,
    ctx: &Ctx,
) -> Result<()> {
    let Found { mut sources, refused, lonely, taken } = found;
    let mut room = ctx.limits.memory;
    let mut sets: Vec<Option<RowSet>> = Vec::new();
    for source in &mut sources {
        let set = rowset::read(&source.inputs(bundle), options, &mut room, ctx)?;
        if set.is_none() {
            triage.not_compared =
                Some("The rows of all sources together take more memory than the limit: they were compared by their counts. Give a larger --memory.".to_owned());
        }
        source.age.1 = set.as_ref().map_or(0, RowSet::added);
        sets.push(set);
    }
    let relations = relations(&sources, &sets, wanted);
    let order = order(&sources, &sets, &relations);
    let name = |i: usize| bundle.members.get(i).map(|m| m.name.clone()).unwrap_or_default();
    for &i in &order {
        let (Some(source), Some(relation)) = (sources.get(i), relations.get(i)) else { continue };
        let is_best = triage.sources.is_empty();
        let mine = |j: &usize| *j != i && relations.get(*j).is_some_and(|r| *r != Relation::OtherDatabase);
        let others: Vec<&RowSet> = order.iter().filter(|j| mine(j)).filter_map(|j| sets.get(*j)?.as_ref()).collect();
        let newer: Vec<&RowSet> = order
            .iter()
            .filter(|j| mine(j) && sources.get(**j).is_some_and(|o| o.age > source.age))
            .filter_map(|j| sets.get(*j)?.as_ref())
            .collect();
        let set = sets.get(i).and_then(Option::as_ref);
        let alone = match set {
            Some(set) if *relation != Relation::OtherDatabase && !others.is_empty() => set.alone(&others),
            _ => BTreeMap::new(),
        };
        let tables = source.report.objects.iter().filter(|o| is_data(o)).map(|o| (o.name.clone(), o.rows.unwrap_or(0))).collect();
        triage.sources.push(SourceLine {
            name: name(source.main),
            log: source.wal.map(name),
            journal: source.journal.map(name),
            fit: source.fit.clone(),
            relation: if is_best { Relation::Best } else { *relation },
            class: source.report.verdict.class,
            verdict: source.report.verdict.sentence.clone(),
            change_counter: source.change_counter,
            commits: source.commits,
            tables,
            rows: rows(&source.report),
            only_here: named(bundle, source, alone, options, ctx)?,
            older_versions: set.map_or(0, |s| s.older_than(&newer)),
            command: command(bundle, source, path, "OUT"),
        });
    }
    triage.best = order.first().and_then(|b| why(*b, &sources, &sets, &relations));
    files(bundle, seen, &sources, &order, &refused, &lonely, &taken, triage);
    missing(bundle, seen, &sources, &order, &lonely, triage);
    steps(bundle, &sources, &order, path, triage);
    triage.exit_code = match triage.sources.first() {
        None => 3,
        Some(best) if best.class >= Class::Structural => 2,
        Some(best) => {
            let more = triage.sources.iter().any(|s| s.relation == Relation::SameStore && !s.only_here.is_empty());
            u8::from(best.class > Class::Healthy || more || !triage.missing.is_empty())
        }
    };
    Ok(())
}

/// What each source is to the largest of the store in question.
fn relations(sources: &[Source], sets: &[Option<RowSet>], wanted: &Wanted) -> Vec<Relation> {
    let tables =
        |s: &Source| -> BTreeSet<String> { s.report.objects.iter().filter(|o| is_data(o)).map(|o| o.name.to_ascii_lowercase()).collect() };
    let named: Vec<BTreeSet<String>> = sources.iter().map(tables).collect();
    let asked: BTreeSet<String> = wanted.tables.iter().map(|t| t.to_ascii_lowercase()).collect();
    let weight = |i: usize| {
        let (source, mine) = (sources.get(i)?, named.get(i)?);
        let kin = named.iter().filter(|n| are_alike(n, mine)).count();
        // The store that most files are states of, of it the one with most rows; a log without a database counts least.
        Some((!asked.is_empty() && asked.is_subset(mine), !source.is_log, kin.min(2), rows(&source.report), std::cmp::Reverse(i)))
    };
    let anchor = (0..sources.len()).max_by_key(|i| weight(*i));
    let Some((anchor, largest)) = anchor.and_then(|i| Some((i, sources.get(i)?))) else { return Vec::new() };
    let theirs = tables(largest);
    let mut out = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        let mine = tables(source);
        out.push(if i == anchor {
            Relation::SameStore
        } else if !are_alike(&mine, &theirs) {
            Relation::OtherDatabase
        } else {
            match (sets.get(anchor).and_then(Option::as_ref), sets.get(i).and_then(Option::as_ref)) {
                (Some(a), Some(b)) => {
                    let least = a.rows().min(b.rows());
                    let (same, clash) = a.common(b);
                    let alike = same > clash && same.saturating_mul(100) >= least.saturating_mul(COMMON);
                    if alike && least > 0 { Relation::SameStore } else { Relation::OtherStore }
                }
                _ => Relation::SameStore,
            }
        });
    }
    out
}

/// Whether two schemas are of one application: two tables of five are in both, or one is a part of the other.
fn are_alike(a: &BTreeSet<String>, b: &BTreeSet<String>) -> bool {
    let common = a.intersection(b).count();
    common > 0 && (common.saturating_mul(5) >= a.len().max(b.len()).saturating_mul(2) || common == a.len().min(b.len()))
}

/// The sources, the best first.
fn order(sources: &[Source], sets: &[Option<RowSet>], relations: &[Relation]) -> Vec<usize> {
    let same: Vec<usize> = (0..sources.len()).filter(|i| relations.get(*i) == Some(&Relation::SameStore)).collect();
    let value = |i: usize| -> (bool, u64) {
        let (Some(source), set) = (sources.get(i), sets.get(i).and_then(Option::as_ref)) else { return (false, 0) };
        // Rows that a newer source has with other values count for nothing.
        let newer: Vec<&RowSet> =
            same.iter().filter(|j| sources.get(**j).is_some_and(|o| o.age > source.age)).filter_map(|j| sets.get(*j)?.as_ref()).collect();
        let held = set.map_or(rows(&source.report), RowSet::rows);
        (!source.is_log, held.saturating_sub(set.map_or(0, |s| s.older_than(&newer))))
    };
    let most = same.iter().map(|i| value(*i).1).max().unwrap_or(0);
    let newest = same.iter().copied().filter_map(|i| Some((sources.get(i)?.age, i))).max_by_key(|(n, i)| (*n, std::cmp::Reverse(*i)));
    // What the newest state lacks was deleted, as long as it is whole and not a fraction of the others.
    let newest = newest.map(|(_, i)| i).filter(|i| {
        sources.get(*i).is_some_and(|s| s.report.verdict.class < Class::Structural && !s.is_log)
            && sets.get(*i).and_then(Option::as_ref).map_or(0, RowSet::rows).saturating_mul(2) >= most
    });
    let rank = |i: &usize| -> (u8, u8, std::cmp::Reverse<(bool, u64)>, std::cmp::Reverse<(u32, u64, u64)>) {
        let relation = match relations.get(*i) {
            Some(Relation::SameStore | Relation::Best) => 0,
            Some(Relation::OtherStore) => 1,
            _ => 2,
        };
        let n = sources.get(*i).map_or((0, 0, 0), |s| s.age);
        (relation, u8::from(newest != Some(*i)), std::cmp::Reverse(value(*i)), std::cmp::Reverse(n))
    };
    let mut out: Vec<usize> = (0..sources.len()).collect();
    out.sort_by_key(rank);
    out
}

/// Why a source is the best.
fn why(best: usize, sources: &[Source], sets: &[Option<RowSet>], relations: &[Relation]) -> Option<String> {
    let source = sources.get(best)?;
    let held = counted(sets.get(best).and_then(Option::as_ref).map_or(rows(&source.report), RowSet::rows), "row");
    let rivals = (0..sources.len()).filter(|i| *i != best && relations.get(*i) == Some(&Relation::SameStore));
    let rivals: Vec<&Source> = rivals.filter_map(|i| sources.get(i)).collect();
    let fresh = (0..sources.len()).any(|i| relations.get(i) == Some(&Relation::OtherStore));
    let is_newest = rivals.iter().all(|r| r.age <= source.age);
    let whole = source.report.verdict.class < Class::Structural;
    let mut words = match (rivals.is_empty(), is_newest, whole) {
        (true, _, _) => format!("it is the only one with this store's data ({held})"),
        (_, true, true) => format!("it is the newest state and its data is whole ({held})"),
        (_, true, false) => format!("it is the newest state and holds the most current rows ({held}), although it is damaged"),
        (_, false, true) => format!("it holds the most rows ({held}) and is whole; a newer state is damaged or nearly empty"),
        (_, false, false) => format!("it holds the most rows ({held}); it is damaged, and a newer state holds fewer"),
    };
    if fresh {
        words.push_str("; another file has the same tables and other rows");
    }
    Some(words)
}

/// The keys of rows in words: the source is read once more.
fn named(bundle: &Bundle, source: &Source, alone: BTreeMap<String, Vec<u64>>, options: &Options, ctx: &Ctx) -> Result<Vec<OnlyHere>> {
    if alone.is_empty() {
        return Ok(Vec::new());
    }
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if !options.redact {
        verbs::inventory(&source.inputs(bundle), options, ctx, |row| {
            if alone.get(row.table).is_some_and(|keys| keys.binary_search(&row.key).is_ok()) {
                let names = names.entry(row.table.to_owned()).or_default();
                if names.len() < KEYS {
                    names.push(row.words());
                }
            }
            Ok(())
        })?;
    }
    let only =
        alone.into_iter().map(|(table, keys)| OnlyHere { rows: wide(keys.len()), keys: names.remove(&table).unwrap_or_default(), table });
    Ok(only.collect())
}

/// Says of every file what it is to the others.
fn files(
    bundle: &Bundle,
    seen: &[Seen],
    sources: &[Source],
    order: &[usize],
    refused: &[(usize, String)],
    lonely: &[usize],
    taken: &[(usize, usize, String)],
    triage: &mut Triage,
) {
    let name = |i: usize| bundle.members.get(i).map(|m| m.name.clone()).unwrap_or_default();
    let best = order.first().and_then(|i| sources.get(*i));
    let lines = triage.sources.clone();
    for (i, line) in triage.files.iter_mut().enumerate() {
        let kind = seen.get(i).map_or(Kind::Other, |s| s.kind);
        if let Some(same) = &line.same_as {
            line.role = format!("the same bytes as {same}");
            continue;
        }
        if let Some((place, source)) = order.iter().enumerate().find_map(|(p, j)| Some((p, sources.get(*j).filter(|s| s.main == i)?))) {
            let told = lines.get(place);
            let relation = told.map_or(Relation::OtherDatabase, |l| l.relation);
            line.role = role(&line.name, relation, source, best).to_owned();
            line.verdict = Some(source.report.verdict.sentence.clone());
            line.rows = Some(rows(&source.report));
            let commits = if source.commits > 0 { format!(", {} in its log", counted(source.commits, "commit")) } else { String::new() };
            line.newest = Some(format!("change {}{commits}", count(u64::from(source.change_counter))));
            continue;
        }
        if let Some((_, what)) = refused.iter().find(|(r, _)| *r == i) {
            line.role = "no database".to_owned();
            line.verdict = Some(what.clone());
            continue;
        }
        if let Some((_, main, fit)) = taken.iter().find(|(side, _, _)| *side == i) {
            let ours = sources.iter().any(|s| s.wal == Some(i) || s.journal == Some(i) || s.shm == Some(i));
            let ended = if ours { "" } else { "not read with it; of " };
            line.role = format!("{ended}{}", name(*main));
            line.verdict = Some(fit.clone());
        } else if lonely.contains(&i) {
            line.role = "fits no database of the bundle".to_owned();
        } else if kind == Kind::MountInfo {
            line.role = "where the machine had its files: rootpage doctor --mountinfo".to_owned();
        }
    }
}

fn role(name: &str, relation: Relation, source: &Source, best: Option<&Source>) -> &'static str {
    let lower = name.to_ascii_lowercase();
    let named = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let older = best.is_some_and(|b| source.age < b.age);
    let newer = best.is_some_and(|b| source.age > b.age);
    match relation {
        Relation::Best => "the best source",
        _ if source.is_log => "a log whose database is not in the bundle",
        Relation::OtherDatabase => "another database",
        Relation::OtherStore if rows(&source.report) == 0 => "a fresh, empty store",
        Relation::OtherStore => "a store of the same application with other rows",
        Relation::SameStore if named(&["malformed", "corrupt", "quarantine", "damaged", "broken"]) => "a quarantine copy",
        Relation::SameStore if named(&["bak", "backup", "staging", "snapshot", ".old", ".orig", "~", "copy"]) => {
            if newer {
                "a copy, of a later state"
            } else {
                "a backup"
            }
        }
        Relation::SameStore if older => "an older state",
        Relation::SameStore if newer => "a later state",
        Relation::SameStore => "the same state",
    }
}

/// What should be there.
fn missing(bundle: &Bundle, seen: &[Seen], sources: &[Source], order: &[usize], lonely: &[usize], triage: &mut Triage) {
    let name = |i: usize| bundle.members.get(i).map(|m| m.name.clone()).unwrap_or_default();
    for source in order.first().and_then(|i| sources.get(*i)).into_iter().filter(|s| !s.is_log) {
        let main = name(source.main);
        if source.says_wal && source.wal.is_none() {
            let found =
                seen.iter().any(|s| s.kind == Kind::Empty) && triage.files.iter().any(|f| f.bytes == 0 && f.name == format!("{main}-wal"));
            if !found {
                triage.missing.push(format!("{main}-wal: the header of the best source says WAL, and no log in the bundle fits it. Ask for it: it may hold the newest rows."));
            }
        }
        if source.says_wal && !seen.iter().any(|s| s.kind == Kind::MountInfo) {
            triage.missing.push("/proc/self/mountinfo of the machine: it says whether a log works where the store lives.".to_owned());
        }
    }
    for i in lonely {
        let what = match seen.get(*i).map(|s| s.kind) {
            Some(Kind::Wal) => "the database of this log is not in the bundle",
            Some(Kind::Journal) => "the database of this journal is not in the bundle",
            _ => "the log of this shared memory is not in the bundle",
        };
        triage.missing.push(format!("{}: {what}.", name(*i)));
    }
}

/// The path of a member as a command names it.
fn shown(bundle: &Bundle, member: usize, path: &Path) -> String {
    let Some(m) = bundle.members.get(member) else { return String::new() };
    match (&bundle.temp, &bundle.extracted) {
        (Some(temp), _) => match m.path.strip_prefix(temp.path()) {
            Ok(rest) => Path::new("bundle").join(rest).display().to_string(),
            Err(_) => m.path.display().to_string(),
        },
        _ => {
            let _ = path;
            m.path.display().to_string()
        }
    }
}

/// The command that recovers a source.
fn command(bundle: &Bundle, source: &Source, path: &Path, out: &str) -> String {
    let word = |i: usize| shell(&shown(bundle, i, path));
    let mut words = vec!["rootpage recover".to_owned(), word(source.main)];
    if !source.is_log {
        words.push(source.wal.map_or_else(|| "--no-wal".to_owned(), |w| format!("--wal {}", word(w))));
        words.push(source.journal.map_or_else(|| "--no-journal".to_owned(), |j| format!("--journal {}", word(j))));
    }
    words.push(format!("-o {out}"));
    words.join(" ")
}

/// The commands that recover everything that belongs to the store.
fn steps(bundle: &Bundle, sources: &[Source], order: &[usize], path: &Path, triage: &mut Triage) {
    let Some(best) = order.first().and_then(|i| sources.get(*i)) else { return };
    if bundle.temp.is_some() {
        let path = shell(&path.display().to_string());
        triage.steps.push(Step {
            words: "Unpack the bundle, as it was looked at here:".to_owned(),
            commands: vec![format!("rootpage triage {path} --extract bundle")],
        });
    }
    let mut commands = vec![command(bundle, best, path, "union-0.db")];
    let parts: Vec<usize> = order
        .iter()
        .zip(&triage.sources)
        .skip(1)
        .filter(|(_, line)| line.relation == Relation::SameStore && !line.only_here.is_empty())
        .map(|(i, _)| *i)
        .take(PARTS)
        .collect();
    for (n, part) in parts.iter().filter_map(|i| sources.get(*i)).enumerate() {
        let next = n.saturating_add(1);
        commands.push(command(bundle, part, path, &format!("part-{next}.db")));
        commands.push(format!("rootpage restore union-{n}.db --from part-{next}.db -o union-{next}.db"));
    }
    let words = match (parts.is_empty(), best.report.verdict.class < Class::Structural) {
        (true, _) => "Recover the best source; no other file of this store adds a row to it:".to_owned(),
        (false, true) => {
            "Recover the best source, and add the rows that only older files have. They may have been deleted on purpose: look at rootpage diff before the last step:".to_owned()
        }
        (false, false) => "Recover the best source, and add the rows that only the other files have:".to_owned(),
    };
    triage.steps.push(Step { words, commands });
    for line in triage.sources.iter().filter(|l| l.relation == Relation::OtherStore && l.rows > 0) {
        let words = "This store has the same tables and other rows, under keys that may be taken: recover it by itself:".to_owned();
        triage.steps.push(Step { words, commands: vec![line.command.replace("-o OUT", "-o other-store.db")] });
    }
}
