//! The difference of two databases for a terminal: the answer, counts, then schema and rows.
#![expect(clippy::arithmetic_side_effects, reason = "widths of text that this module made itself")]

use super::diff::{Change, Diff, DiffSide, Named, RowDiff, TableDiff, TableSide, length, literal};
use super::human::{count, counted, escape, name, passage};
use super::model::{Class, InputRole};
use super::phrases::LISTED;
use super::text::{Sheet, Style};
use crate::ids::wide;

/// Characters of a value that are shown; the JSON has all of it.
const VALUE: usize = 200;

/// The difference as text.
#[must_use]
pub fn render(diff: &Diff, style: &Style) -> String {
    let mut sheet = Sheet::new(style);
    let sgr = if diff.equal { "1;32" } else { "1;33" };
    sheet.coloured(&diff.sentence, sgr);
    for (name, side) in [("A", &diff.a), ("B", &diff.b)] {
        sheet.paragraph("  ", 5, &side_words(name, side));
    }
    counts(&mut sheet, diff);
    schema(&mut sheet, diff);
    let with_rows = diff.tables.iter().filter(|t| !t.rows.is_empty());
    with_rows.clone().take(LISTED).for_each(|table| rows(&mut sheet, table));
    let tables = with_rows.count();
    if tables > LISTED {
        sheet.heading(&format!("Rows of {} more: name a table to see them, or use --json", counted(wide(tables - LISTED), "table")));
    }
    if !diff.not_compared.is_empty() {
        sheet.heading("Not compared");
        for n in diff.not_compared.iter().take(LISTED) {
            sheet.paragraph("  ", 4, &format!("{}: {}", name(&n.table), passage(&n.reason)));
        }
        sheet.more(diff.not_compared.len(), LISTED, "with --json");
    }
    sheet.finish()
}

fn side_words(name: &str, side: &DiffSide) -> String {
    let main = side.inputs.iter().find(|i| i.role == InputRole::Main).or(side.inputs.first());
    let mut text = format!("{name}: {}", main.map(|i| escape(&i.path)).unwrap_or_default());
    if let Some(snapshot) = &side.snapshot {
        text.push_str(&format!(" (read as of: {})", escape(snapshot)));
    }
    if side.verdict.class != Class::Healthy {
        text.push_str(&format!(". {}", escape(&side.verdict.sentence)));
    }
    text
}

fn counts(sheet: &mut Sheet<'_>, diff: &Diff) {
    let (equal, differ): (Vec<&TableDiff>, Vec<&TableDiff>) = diff.tables.iter().partition(|t| t.is_equal());
    if !differ.is_empty() {
        sheet.heading("Rows by table");
        let mut rows = vec![["table", "in A", "in B", "only in A", "only in B", "changed"].map(str::to_owned)];
        let side = |s: Option<TableSide>| s.map_or_else(|| "-".to_owned(), |s| count(s.rows));
        rows.extend(
            differ.iter().take(LISTED).map(|t| [name(&t.name), side(t.a), side(t.b), count(t.removed), count(t.added), count(t.changed)]),
        );
        sheet.columns(&rows);
        sheet.more(differ.len(), LISTED, "with --json");
    }
    // Equal tables may have something to say, too: one that is damaged in both.
    let worth = |t: &&TableDiff| {
        let side = |s: Option<TableSide>| s.is_none_or(|s| s.damaged || s.set_aside > 0);
        side(t.a) || side(t.b) || !t.columns_only_a.is_empty() || !t.columns_only_b.is_empty()
    };
    let worthy = diff.tables.iter().filter(worth).count();
    for t in diff.tables.iter().filter(worth).take(LISTED) {
        let name = name(&t.name);
        for (word, columns) in [("A", &t.columns_only_a), ("B", &t.columns_only_b)] {
            if !columns.is_empty() {
                let list: Vec<String> = columns.iter().map(|c| super::human::name(c)).collect();
                sheet.paragraph("  ", 4, &format!("{name}: only {word} has {}; not compared", listed(&list)));
            }
        }
        for (word, side) in [("A", t.a), ("B", t.b)] {
            let Some(side) = side else {
                sheet.paragraph("  ", 4, &format!("{name}: {word} has no such table"));
                continue;
            };
            if side.damaged {
                sheet.paragraph("  ", 4, &format!("{name}: damaged in {word}; rows may be missing there for this reason alone"));
            }
            if side.set_aside > 0 {
                sheet.paragraph("  ", 4, &format!("{name}: {} set aside in {word}, not compared", counted(side.set_aside, "row")));
            }
        }
    }
    sheet.more(worthy, LISTED, "tables like these with --json");
    if !equal.is_empty() && !differ.is_empty() {
        let rows = equal.iter().filter_map(|t| t.a).fold(0_u64, |sum, s| sum.saturating_add(s.rows));
        let verb = if equal.len() == 1 { "is" } else { "are" };
        sheet.paragraph("", 0, &format!("{} {verb} equal: {}.", counted(wide(equal.len()), "other table"), counted(rows, "row")));
    }
}

fn schema(sheet: &mut Sheet<'_>, diff: &Diff) {
    if !diff.settings.is_empty() {
        sheet.heading("Header");
        for s in &diff.settings {
            sheet.paragraph("  ", 4, &format!("{}: {} in A, {} in B", escape(&s.name), escape(&s.a), escape(&s.b)));
        }
    }
    if diff.schema.is_empty() {
        return;
    }
    sheet.heading(&format!("Schema ({})", count(wide(diff.schema.len()))));
    for s in diff.schema.iter().take(LISTED) {
        let what = format!("{} {}", escape(&s.kind), name(&s.name));
        match (&s.a, &s.b) {
            (Some(a), Some(b)) => {
                sheet.paragraph("  ", 4, &format!("{what} has another text"));
                sheet.line(&format!("    A: {}", statement(a)));
                sheet.line(&format!("    B: {}", statement(b)));
            }
            (Some(a), None) => sheet.line(&format!("  {what}, only in A: {}", statement(a))),
            (None, b) => sheet.line(&format!("  {what}, only in B: {}", statement(b.as_deref().unwrap_or_default()))),
        }
    }
    sheet.more(diff.schema.len(), LISTED, "with --json");
}

fn rows(sheet: &mut Sheet<'_>, table: &TableDiff) {
    let key: Vec<String> = table.key.iter().map(|k| name(k)).collect();
    sheet.heading(&format!("Rows of {}, by {}", name(&table.name), listed(&key)));
    for row in &table.rows {
        let (sign, sgr) = match row.change {
            Change::Removed => ("-", "31"),
            Change::Added => ("+", "32"),
            Change::Changed => ("~", "33"),
        };
        let sign = sheet.paint(sign, sgr);
        let key: Vec<String> = row.key.iter().map(|k| shown(&k.value)).collect();
        let lead = format!("  {sign} {}", listed(&key));
        match row.change {
            Change::Changed => changed(sheet, &lead, row),
            Change::Removed | Change::Added => sheet.items(&format!("{lead}  "), 6, &values(row)),
        }
    }
    if table.not_listed > 0 {
        sheet.line(&format!("  and {} more; --limit lists more", count(table.not_listed)));
    }
}

/// The values that the key does not say already.
fn values(row: &RowDiff) -> Vec<String> {
    let rest = row.values.iter().filter(|v| !row.key.contains(v));
    let mut all: Vec<String> = rest.map(|Named { column, value }| format!("{}={}", name(column), shown(value))).collect();
    if all.len() > LISTED {
        let more = all.split_off(LISTED).len();
        all.push(format!("and {} with --json", counted(wide(more), "more value")));
    }
    all
}

fn changed(sheet: &mut Sheet<'_>, lead: &str, row: &RowDiff) {
    sheet.line(lead);
    for c in row.columns.iter().take(LISTED) {
        let (a, b) = (literal(&c.a), literal(&c.b));
        // Two long values that begin alike: where they part is what counts.
        let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
        let text = if same > VALUE / 2 {
            let from = same - VALUE / 4;
            let tail = |t: &str, v: &serde_json::Value| format!("…{}", cut(&t.chars().skip(from).collect::<String>(), v));
            format!("{}: from character {}: {} -> {}", name(&c.column), count(wide(from)), tail(&a, &c.a), tail(&b, &c.b))
        } else {
            format!("{}: {} -> {}", name(&c.column), cut(&a, &c.a), cut(&b, &c.b))
        };
        sheet.line(&format!("      {text}"));
    }
    if row.columns.len() > LISTED {
        sheet.line(&format!("      and {} with --json", counted(wide(row.columns.len() - LISTED), "more column")));
    }
}

fn shown(value: &serde_json::Value) -> String {
    cut(&literal(value), value)
}

/// The beginning of a long literal, and how long the value is, whatever quotes and escapes add to it.
fn cut(literal: &str, value: &serde_json::Value) -> String {
    let text = escape(literal);
    if text.chars().count() <= VALUE {
        return text;
    }
    format!("{}… ({})", text.chars().take(VALUE).collect::<String>(), length(value))
}

/// The beginning of a long statement.
fn statement(text: &str) -> String {
    let text = escape(text);
    let length = text.chars().count();
    if length <= VALUE {
        return text;
    }
    format!("{}… ({})", text.chars().take(VALUE).collect::<String>(), counted(wide(length), "character"))
}

/// Words apart by commas, the first of them where they are many.
fn listed(words: &[String]) -> String {
    let mut text = words.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if words.len() > LISTED {
        text.push_str(&format!(" and {} more", count(wide(words.len() - LISTED))));
    }
    text
}
