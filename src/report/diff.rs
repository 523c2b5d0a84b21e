//! The difference of two databases: plain data; text and JSON are rendered from it.
//!
//! `rootpage diff --json` prints exactly this model. [`DIFF_FORMAT`] grows by one when a field changes its meaning or goes
//! away; new fields may come at any time. Values have the form of the JSON lines of `rootpage rows` (see
//! [`super::export`]), so nothing is lost: NULL, an empty text, an empty BLOB, 1 and 1.0 are five things.

use serde::{Deserialize, Serialize};

use super::export::Json;
use super::human::{count, counted};
use super::model::{Class, Input, Verdict};
use crate::format::{Encoding, Value};
use crate::ids::wide;

/// The number of this format.
pub const DIFF_FORMAT: u32 = 1;

/// How two databases differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// [`DIFF_FORMAT`].
    pub format: u32,
    /// The version of rootpage that made it.
    pub tool_version: String,
    /// Whether nothing differs of what could be read and was compared.
    pub equal: bool,
    /// The answer in a sentence; [`Diff::seal`] writes it.
    pub sentence: String,
    /// 0 equal, 1 different.
    pub exit_code: u8,
    /// The first database.
    pub a: DiffSide,
    /// The second database.
    pub b: DiffSide,
    /// Rows of A that B does not have.
    pub removed: u64,
    /// Rows of B that A does not have.
    pub added: u64,
    /// Rows of both with other values.
    pub changed: u64,
    /// Fields of the database header that an application reads, where they differ.
    pub settings: Vec<SettingDiff>,
    /// Objects of the schema that differ, by kind and name.
    pub schema: Vec<SchemaDiff>,
    /// Every table that was compared or stands in one file only, those of A first.
    pub tables: Vec<TableDiff>,
    /// Tables that were not compared.
    pub not_compared: Vec<NotCompared>,
}

/// One of the two databases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiffSide {
    /// The files that were read.
    pub inputs: Vec<Input>,
    /// Which version of the database was read.
    pub snapshot: Option<String>,
    /// What is wrong with it: rows that cannot be read are not compared.
    pub verdict: Verdict,
}

/// A header field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingDiff {
    /// "user_version", "application_id", "encoding".
    pub name: String,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
}

/// An object of the schema that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaDiff {
    /// "table", "index", "view", "trigger", "virtual-table".
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its text in A; `None`: it is not there.
    pub a: Option<String>,
    /// Its text in B.
    pub b: Option<String>,
}

/// The rows of one table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableDiff {
    /// Its name.
    pub name: String,
    /// The columns that pair the rows: the rowid (under its name), the primary key, or all columns where neither goes.
    pub key: Vec<String>,
    /// Columns that only A has; they are not compared.
    pub columns_only_a: Vec<String>,
    /// Columns that only B has.
    pub columns_only_b: Vec<String>,
    /// What was read of it in A; `None`: A has no such table.
    pub a: Option<TableSide>,
    /// What was read of it in B.
    pub b: Option<TableSide>,
    /// Rows of A that B does not have.
    pub removed: u64,
    /// Rows of B that A does not have.
    pub added: u64,
    /// Rows of both with other values.
    pub changed: u64,
    /// The first of these, in key order. Rows of a table that only one file has are not listed.
    pub rows: Vec<RowDiff>,
    /// How many more there are.
    pub not_listed: u64,
}

/// A table as one of the files has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableSide {
    /// Rows that were compared.
    pub rows: u64,
    /// Rows that break the rules of their table or are not whole: `rows` leaves them out, and so does the comparison.
    pub set_aside: u64,
    /// Whether a part of its tree cannot be read: rows may be missing for this reason alone.
    pub damaged: bool,
}

/// What happened to a row, from A to B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Only A has it.
    Removed,
    /// Only B has it.
    Added,
    /// Both have it, with other values.
    Changed,
}

/// A row that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowDiff {
    /// What happened to it.
    pub change: Change,
    /// Its key.
    pub key: Vec<Named>,
    /// Removed and added rows: all their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Named>,
    /// Changed rows: the columns that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnChange>,
}

/// A value with the name of its column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// The column.
    pub column: String,
    /// The value, as in the JSON lines of `rootpage rows`.
    pub value: serde_json::Value,
}

/// A column that differs in a row that both have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnChange {
    /// The column.
    pub column: String,
    /// The value in A.
    pub a: serde_json::Value,
    /// The value in B.
    pub b: serde_json::Value,
}

/// A table that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCompared {
    /// Its name.
    pub table: String,
    /// Why, in a sentence.
    pub reason: String,
}

impl Diff {
    /// A difference without anything in it.
    #[must_use]
    pub fn new(a: DiffSide, b: DiffSide) -> Diff {
        Diff {
            format: DIFF_FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            equal: true,
            sentence: String::new(),
            exit_code: 0,
            a,
            b,
            removed: 0,
            added: 0,
            changed: 0,
            settings: Vec::new(),
            schema: Vec::new(),
            tables: Vec::new(),
            not_compared: Vec::new(),
        }
    }

    /// Adds up, and writes the sentence and the exit code. The last thing the pipeline does.
    pub fn seal(&mut self) {
        let sum = |f: fn(&TableDiff) -> u64| self.tables.iter().map(f).fold(0_u64, u64::saturating_add);
        (self.removed, self.added, self.changed) = (sum(|t| t.removed), sum(|t| t.added), sum(|t| t.changed));
        self.equal = self.tables.iter().all(TableDiff::is_equal) && self.schema.is_empty() && self.settings.is_empty();
        self.exit_code = u8::from(!self.equal);
        self.sentence = self.words();
    }

    fn words(&self) -> String {
        let damaged: Vec<&str> =
            [(&self.a, "A"), (&self.b, "B")].into_iter().filter(|(s, _)| s.verdict.class == Class::Structural).map(|(_, n)| n).collect();
        let unread = if damaged.is_empty() {
            String::new()
        } else {
            let is = if damaged.len() == 1 { "is" } else { "are" };
            format!(" {} {is} damaged: rows that cannot be read are not compared.", damaged.join(" and "))
        };
        let rows = self.tables.iter().filter_map(|t| t.a).fold(0_u64, |sum, side| sum.saturating_add(side.rows));
        if self.equal {
            return format!("Equal: {} in {}.{unread}", counted(rows, "row"), counted(wide(self.tables.len()), "table"));
        }
        let mut parts = Vec::new();
        if self.removed.saturating_add(self.added).saturating_add(self.changed) > 0 {
            parts.push(format!(
                "{} only in A, {} only in B, {} changed",
                counted(self.removed, "row"),
                count(self.added),
                count(self.changed)
            ));
        } else {
            parts.push("every row is equal".to_owned());
        }
        if !self.schema.is_empty() {
            parts.push(format!("the schema differs in {}", counted(wide(self.schema.len()), "object")));
        }
        if !self.settings.is_empty() {
            parts.push(format!("the header differs in {}", counted(wide(self.settings.len()), "field")));
        }
        format!("Different: {}.{unread}", parts.join("; "))
    }

    /// The difference as JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Takes the values of the evidence out: what is left is their class and length. Keys are values too, also those
    /// that are rowids. Names of tables and columns stay.
    pub fn redact(&mut self) {
        for row in self.tables.iter_mut().flat_map(|t| &mut t.rows) {
            row.key.iter_mut().chain(&mut row.values).for_each(|v| redact_value(&mut v.value));
            for column in &mut row.columns {
                redact_value(&mut column.a);
                redact_value(&mut column.b);
            }
        }
    }
}

impl TableDiff {
    /// Whether the table has the same rows in both files.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.a.is_some()
            && self.b.is_some()
            && self.removed == 0
            && self.added == 0
            && self.changed == 0
            && self.columns_only_a.is_empty()
            && self.columns_only_b.is_empty()
    }
}

/// A value as the model has it.
#[must_use]
pub fn json(value: Value<'_>, encoding: Encoding) -> serde_json::Value {
    serde_json::to_value(Json(value, encoding)).unwrap_or_default()
}

pub(crate) fn redact_value(value: &mut serde_json::Value) {
    let what = match &*value {
        serde_json::Value::Null => return,
        serde_json::Value::String(text) => format!("text of {}", counted(wide(text.chars().count()), "character")),
        serde_json::Value::Number(n) if n.is_f64() => "a real".to_owned(),
        serde_json::Value::Number(_) => "an integer".to_owned(),
        serde_json::Value::Object(o) => match (o.get("blob"), o.get("text")) {
            (Some(hex), _) => format!("a BLOB of {}", counted(hex_bytes(hex), "byte")),
            (_, Some(hex)) => format!("ill-formed text of {}", counted(hex_bytes(hex), "byte")),
            _ => "a real".to_owned(),
        },
        _ => "a value".to_owned(),
    };
    *value = serde_json::json!({ "redacted": what });
}

fn hex_bytes(hex: &serde_json::Value) -> u64 {
    wide(hex.as_str().map_or(0, str::len)) >> 1
}

/// How long a value is, in its own measure.
#[must_use]
pub fn length(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => counted(wide(text.chars().count()), "character"),
        serde_json::Value::Object(o) => match o.get("blob").or_else(|| o.get("text")) {
            Some(hex) => counted(hex_bytes(hex), "byte"),
            None => counted(wide(literal(value).chars().count()), "character"),
        },
        other => counted(wide(other.to_string().chars().count()), "character"),
    }
}

/// A value of the model as people read it: an SQL literal, so that NULL, '', x'', 1 and 1.0 differ.
#[must_use]
pub fn literal(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "NULL".to_owned(),
        serde_json::Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        serde_json::Value::Object(o) => {
            let field = |name: &str| o.get(name).and_then(serde_json::Value::as_str);
            match (field("blob"), field("text"), field("real"), field("redacted")) {
                (Some(hex), ..) => format!("x'{hex}'"),
                (_, Some(hex), ..) => format!("CAST(x'{hex}' AS TEXT)"),
                (_, _, Some("inf"), _) => "9e999".to_owned(),
                (_, _, Some("-inf"), _) => "-9e999".to_owned(),
                (_, _, Some(real), _) => real.to_owned(),
                (_, _, _, Some(what)) => format!("({what})"),
                _ => value.to_string(),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_the_same_do_not_look_the_same() {
        let e = Encoding::Utf8;
        let all = [
            Value::Null,
            Value::Text(b""),
            Value::Blob(b""),
            Value::Int(1),
            Value::Real(1.0),
            Value::Text(b"1"),
            Value::Text(b"NULL"),
            Value::Text(b"a\xff"),
            Value::Blob(b"a\xff"),
            Value::Text(b"x'61ff'"),
            Value::Real(0.0),
            Value::Real(-0.0),
            Value::Int(0),
            Value::Real(f64::INFINITY),
            Value::Real(f64::NEG_INFINITY),
            Value::Text(b"it's"),
        ];
        let mut json_of: Vec<String> = all.iter().map(|v| json(*v, e).to_string()).collect();
        let mut words: Vec<String> = all.iter().map(|v| literal(&json(*v, e))).collect();
        assert_eq!(words[..6], ["NULL", "''", "x''", "1", "1.0", "'1'"]);
        assert_eq!(words[15], "'it''s'");
        for list in [&mut json_of, &mut words] {
            list.sort();
            list.dedup();
            assert_eq!(list.len(), all.len(), "{list:?}");
        }
    }
}
