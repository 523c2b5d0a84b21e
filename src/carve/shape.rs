//! What the records of a table or an index look like: the measure by which bytes without a name are given to one.
//!
//! A declaration says what may stand in a column, the live rows say what does. Both become one number for each serial type:
//! how much more likely it is here than in bytes that are no record at all, in bits.

use std::collections::BTreeSet;

use crate::expr::Affinity;
use crate::format::record::is_reserved;
use crate::format::{Field, PageKind};
use crate::ids::{ObjectId, idx};
use crate::schema::IndexSource;
use crate::survey::TablePlan;
use crate::survey::plan::{ClassRule, IndexPlan};

/// Lengths of texts and BLOBs that are told apart one by one; longer ones by powers of two.
const EXACT: usize = 48;
/// Classes of lengths: the exact ones, then one a power of two.
const LENGTHS: usize = EXACT + 26;
/// Kinds of serial types that are told apart.
const TOKENS: usize = 10 + 2 * LENGTHS;
/// Rows that a declaration counts for beside the live rows.
const PRIOR: f32 = 1.0;
/// A serial type that the column cannot have.
pub(crate) const NEVER: i32 = -1000;

/// What a serial type is to the statistics.
fn token(serial: u64) -> usize {
    let length = |n: u64| -> usize {
        let len = n >> 1;
        match usize::try_from(len) {
            Ok(len) if len < EXACT => len,
            _ => EXACT + idx(len.ilog2().saturating_sub(5).min(25)),
        }
    };
    match serial {
        0..=9 => usize::try_from(serial).unwrap_or(0),
        n if n & 1 == 1 => 10 + length(n.saturating_sub(13)),
        n => 10 + LENGTHS + length(n.saturating_sub(12)),
    }
}

/// How likely a token is in bytes that are no record.
fn chance(token: usize) -> f32 {
    if token < 10 + EXACT || (10 + LENGTHS..10 + LENGTHS + EXACT).contains(&token) { 1.0 / 190.0 } else { 1.0 / 400.0 }
}

/// A column in the record.
#[derive(Debug, Clone)]
pub(crate) struct ColumnShape {
    bits: Vec<i32>,
    /// Live texts of it hold control characters or do not decode.
    pub(crate) odd_text: bool,
    /// It stands for the rowid and is NULL in the record.
    pub(crate) alias: bool,
    counts: Vec<u32>,
    /// Lowest and highest integer, and how many were seen.
    ints: Option<(i64, i64, u32)>,
    rule: ClassRule,
    affinity: Affinity,
    not_null: bool,
}

impl ColumnShape {
    fn new(rule: ClassRule, affinity: Affinity, not_null: bool, alias: bool) -> ColumnShape {
        ColumnShape { bits: Vec::new(), odd_text: false, alias, counts: vec![0; TOKENS], ints: None, rule, affinity, not_null }
    }

    /// Whether the declaration lets the serial type stand here.
    fn allows(&self, token: usize) -> bool {
        if self.alias {
            return token == 0;
        }
        let text = (10..10 + LENGTHS).contains(&token);
        let (null, real, integer, blob) = (token == 0, token == 7, token < 10 && token != 0 && token != 7, token >= 10 + LENGTHS);
        if null {
            return !self.not_null;
        }
        match self.rule {
            ClassRule::Any | ClassRule::NoNumericText => true,
            ClassRule::NoNumber => text || blob,
            ClassRule::Integer => integer,
            ClassRule::Real => real || integer,
            ClassRule::Text => text,
            ClassRule::Blob => blob,
        }
    }

    /// How likely the declaration alone makes the token.
    fn prior(&self, token: usize) -> f32 {
        let (null, integer, real, text, blob): (f32, f32, f32, f32, f32) = match self.affinity {
            Affinity::Integer => (0.10, 0.84, 0.02, 0.03, 0.01),
            Affinity::Real => (0.10, 0.25, 0.61, 0.03, 0.01),
            Affinity::Numeric => (0.10, 0.50, 0.30, 0.08, 0.02),
            Affinity::Text => (0.12, 0.0, 0.0, 0.86, 0.02),
            Affinity::Blob => (0.12, 0.20, 0.08, 0.30, 0.30),
        };
        match token {
            0 => null,
            7 => real,
            8 | 9 => integer * 0.12,
            1..=6 => integer * 0.76 / 6.0,
            n if n < 10 + EXACT => text * 0.7 / 48.0,
            n if n < 10 + LENGTHS => text * 0.3 / 26.0,
            n if n < 10 + LENGTHS + EXACT => blob * 0.6 / 48.0,
            _ => blob * 0.4 / 26.0,
        }
    }

    fn settle(&mut self) {
        let total: u32 = self.counts.iter().sum();
        let near = |t: usize| -> u32 {
            // A length that was not seen is as likely as its neighbours make it.
            let (low, high) = match t {
                n if (10..10 + LENGTHS).contains(&n) => (10, 10 + LENGTHS),
                n if n >= 10 + LENGTHS => (10 + LENGTHS, TOKENS),
                _ => return 0,
            };
            (t.saturating_sub(3).max(low)..(t + 4).min(high)).map(|i| self.counts.get(i).copied().unwrap_or(0)).sum()
        };
        self.bits = (0..TOKENS)
            .map(|t| {
                if !self.allows(t) {
                    return NEVER;
                }
                let seen = float(self.counts.get(t).copied().unwrap_or(0)) + 0.02 * float(near(t));
                let likely = (seen + PRIOR * self.prior(t)) / (float(total) + PRIOR);
                log2(likely.max(1e-7) / chance(t)).max(-12)
            })
            .collect();
    }

    /// Counts an integer.
    pub(crate) fn learn_int(&mut self, n: i64) {
        let (low, high, count) = self.ints.unwrap_or((n, n, 0));
        self.ints = Some((low.min(n), high.max(n), count.saturating_add(1)));
    }

    /// How many bits an integer speaks for this column: those of the live rows lie within some range.
    pub(crate) fn int_bits(&self, n: i64) -> i32 {
        match self.ints {
            Some((low, high, count)) if count >= 16 => {
                let span = high.saturating_sub(low).saturating_add(1);
                if (low..=high).contains(&n) {
                    1
                } else if n >= low.saturating_sub(span) && n <= high.saturating_add(span) && (low < 0 || n >= 0) {
                    -2
                } else {
                    -7
                }
            }
            _ => 0,
        }
    }

    /// How many bits a serial type speaks for this column.
    #[inline]
    pub(crate) fn bits(&self, serial: u64) -> i32 {
        if is_reserved(serial) { NEVER } else { self.bits.get(token(serial)).copied().unwrap_or(NEVER) }
    }
}

/// Counts of rows as a number that can be divided.
fn float(n: u32) -> f32 {
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a count in a ratio; the last bits do not matter")]
    {
        n as f32
    }
}

/// The binary logarithm, rounded.
fn log2(x: f32) -> i32 {
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "between -30 and 30 for the ratios it is given")]
    {
        x.log2().round() as i32
    }
}

/// What a shape is the shape of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// A table of the schema.
    Table(ObjectId),
    /// A table that is gone; the place in the list of such tables.
    Dropped(usize),
    /// An index of a table of the schema: its place among the table's indexes.
    Index(ObjectId, usize),
    /// An index of a table that is gone.
    DroppedIndex(usize, usize),
}

/// The shape of the records of a table or index.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) of: Of,
    pub(crate) plan: TablePlan,
    /// The kind of leaf that its records lie on.
    pub(crate) kind: PageKind,
    pub(crate) columns: Vec<ColumnShape>,
    /// Least number of fields that a record of it has.
    pub(crate) fewest: usize,
    /// Numbers of fields that live rows have.
    pub(crate) widths: BTreeSet<usize>,
    /// Rows of it are given out; the inner tables of search indexes only keep others from getting their bytes.
    pub(crate) reported: bool,
    /// Lowest and highest live rowid.
    pub(crate) rowids: Option<(i64, i64)>,
    /// Live rows that were looked at.
    pub(crate) sampled: u32,
    /// Serial types of some of those rows, for what is usual.
    examples: Vec<Vec<u64>>,
    /// Bits that all but a few of those rows reach with their serial types.
    pub(crate) usual: Option<i32>,
}

/// Rows whose serial types are kept.
const EXAMPLES: usize = 400;
/// Rows from which on they say what is usual.
const FEW: usize = 20;

impl Shape {
    /// The shape of a table.
    pub(crate) fn of_table(of: Of, plan: &TablePlan, reported: bool) -> Shape {
        let columns = plan
            .stored
            .iter()
            .filter_map(|c| plan.columns.get(*c).map(|p| (c, p)))
            .map(|(c, p)| ColumnShape::new(p.class, p.affinity, p.not_null && plan.alias != Some(*c), plan.alias == Some(*c)))
            .collect();
        let keys = plan.key.as_ref().map_or(0, |k| k.columns.len());
        let kind = if plan.key.is_some() { PageKind::IndexLeaf } else { PageKind::TableLeaf };
        Shape {
            of,
            plan: plan.clone(),
            kind,
            columns,
            fewest: keys.max(1),
            widths: BTreeSet::new(),
            reported,
            rowids: None,
            sampled: 0,
            examples: Vec::new(),
            usual: None,
        }
    }

    /// The shape of an index: its columns, then the rowid. `None` where it does not end in one, or holds expressions.
    pub(crate) fn of_index(of: Of, plan: &TablePlan, index: &IndexPlan, reported: bool) -> Option<Shape> {
        if !index.by_rowid() {
            return None;
        }
        let mut columns = Vec::with_capacity(index.columns.len());
        for part in &index.columns {
            columns.push(match &part.source {
                IndexSource::Column(c) => {
                    let p = plan.columns.get(*c)?;
                    let alias = plan.alias == Some(*c);
                    let rule = if alias { ClassRule::Integer } else { p.class };
                    ColumnShape::new(rule, p.affinity, p.not_null || alias, false)
                }
                IndexSource::Rowid => ColumnShape::new(ClassRule::Integer, Affinity::Integer, true, false),
                _ => ColumnShape::new(ClassRule::Any, Affinity::Blob, false, false),
            });
        }
        let fewest = columns.len();
        let mut shape = Shape::of_table(of, plan, reported);
        (shape.columns, shape.kind, shape.fewest) = (columns, PageKind::IndexLeaf, fewest);
        shape.widths.insert(fewest);
        Some(shape)
    }

    /// Counts a live record.
    pub(crate) fn learn(&mut self, fields: &[Field], payload: &[u8], rowid: Option<i64>) {
        for (column, field) in self.columns.iter_mut().zip(fields) {
            if let Some(n) = column.counts.get_mut(token(field.serial)) {
                *n = n.saturating_add(1);
            }
            if (1..=9).contains(&field.serial)
                && let Some(n) = field.value(payload).as_int()
            {
                column.learn_int(n);
            }
        }
        self.widths.insert(fields.len());
        self.sampled = self.sampled.saturating_add(1);
        if self.examples.len() < EXAMPLES {
            self.examples.push(fields.iter().map(|f| f.serial).collect());
        }
        if let Some(rowid) = rowid {
            let (low, high) = self.rowids.unwrap_or((rowid, rowid));
            self.rowids = Some((low.min(rowid), high.max(rowid)));
        }
    }

    /// Turns what was counted into bits.
    pub(crate) fn settle(&mut self) {
        for column in &mut self.columns {
            column.settle();
        }
        let mut reached: Vec<i32> = self.examples.iter().filter_map(|e| self.bits(e.iter().copied(), e.len())).collect();
        reached.sort_unstable();
        self.usual = if reached.len() < FEW { None } else { reached.get(reached.len() / 50).copied() };
    }

    /// Whether a record with so many bits is one of the usual kind, `slack` bits more or less.
    pub(crate) fn is_usual(&self, bits: i32, slack: i32) -> bool {
        // Few rows say little about what else there was.
        let few = if self.sampled < 200 { 6 } else { 0 };
        bits >= self.usual.unwrap_or(6) - slack - few
    }

    /// Whether it is the shape of an index.
    pub(crate) fn is_index(&self) -> bool {
        matches!(self.of, Of::Index(..) | Of::DroppedIndex(..))
    }

    /// Whether a record may have so many fields: all columns, or fewer where columns were added later.
    pub(crate) fn fits_width(&self, n: usize) -> bool {
        n <= self.columns.len() && n >= self.fewest
    }

    /// Bits that the serial types of a record speak for this shape; `None` when one of them cannot be.
    pub(crate) fn bits(&self, serials: impl Iterator<Item = u64>, n: usize) -> Option<i32> {
        if !self.fits_width(n) {
            return None;
        }
        let mut sum = 0;
        for (column, serial) in self.columns.iter().zip(serials) {
            let bits = column.bits(serial);
            if bits <= NEVER {
                return None;
            }
            sum += bits;
        }
        if n < self.columns.len() && !self.widths.contains(&n) {
            sum -= if self.sampled > 0 { 14 } else { 4 };
        }
        Some(sum)
    }

    /// Bits that a rowid speaks for this shape.
    pub(crate) fn rowid_bits(&self, rowid: i64) -> i32 {
        match self.rowids {
            Some((low, high)) if (low..=high).contains(&rowid) => 3,
            Some((low, high)) if rowid > high && rowid <= high.saturating_mul(4).saturating_add(1000) && low >= 0 => 1,
            Some((low, _)) if low >= 0 && rowid < 0 => -8,
            Some((_, high)) if high < 1 << 40 && rowid > 1 << 48 => -8,
            None if rowid < 0 => -6,
            None if rowid > 1 << 48 => -4,
            _ => 0,
        }
    }
}
