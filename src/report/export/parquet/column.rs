//! One column: which storage classes it holds, the type that follows, and the values of a row group.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::Type;

use super::OPTIONAL;
use crate::format::{Encoding, Value};

/// The largest magnitude up to which every integer is exact as a double.
const EXACT: u64 = 1 << 53;

/// A kind of value that gets a Parquet field of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Integer,
    Real,
    Text,
    Blob,
    IllFormed,
}

impl Class {
    const ALL: [Class; 5] = [Class::Integer, Class::Real, Class::Text, Class::Blob, Class::IllFormed];

    fn of(value: Value<'_>, encoding: Encoding) -> Option<Class> {
        match value {
            Value::Null => None,
            Value::Int(_) => Some(Class::Integer),
            Value::Real(_) => Some(Class::Real),
            Value::Text(stored) if encoding.is_valid(stored) => Some(Class::Text),
            Value::Text(_) => Some(Class::IllFormed),
            Value::Blob(_) => Some(Class::Blob),
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Class::Integer => "integer",
            Class::Real => "real",
            Class::Text => "text",
            Class::Blob => "blob",
            Class::IllFormed => "ill_formed_text",
        }
    }

    fn field(self, name: &str) -> Result<Type> {
        let (physical, logical) = match self {
            Class::Integer => (Physical::INT64, None),
            Class::Real => (Physical::DOUBLE, None),
            Class::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Class::Blob | Class::IllFormed => (Physical::BYTE_ARRAY, None),
        };
        Type::primitive_type_builder(name, physical).with_repetition(OPTIONAL).with_logical_type(logical).build()
    }
}

/// Values of one field in a row group, with a definition level for each row.
#[derive(Debug)]
struct Leaf {
    class: Class,
    levels: Vec<i16>,
    integers: Vec<i64>,
    reals: Vec<f64>,
    bytes: Vec<ByteArray>,
}

impl Leaf {
    fn new(class: Class) -> Leaf {
        Leaf { class, levels: Vec::new(), integers: Vec::new(), reals: Vec::new(), bytes: Vec::new() }
    }

    fn push(&mut self, value: Value<'_>, encoding: Encoding) {
        match value {
            Value::Null => {}
            Value::Int(n) if self.class == Class::Real => self.reals.push(as_double(n)),
            Value::Int(n) => self.integers.push(n),
            Value::Real(r) => self.reals.push(r),
            Value::Text(stored) if self.class == Class::Text => self.bytes.push(encoding.to_utf8(stored).into_owned().into()),
            Value::Text(stored) | Value::Blob(stored) => self.bytes.push(stored.to_vec().into()),
        }
    }

    fn flush<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        match self.class {
            Class::Integer => write::<Int64Type, W>(group, &self.integers, &self.levels)?,
            Class::Real => write::<DoubleType, W>(group, &self.reals, &self.levels)?,
            Class::Text | Class::Blob | Class::IllFormed => write::<ByteArrayType, W>(group, &self.bytes, &self.levels)?,
        }
        *self = Leaf::new(self.class);
        Ok(())
    }
}

fn write<T: DataType, W: Write + Send>(group: &mut SerializedRowGroupWriter<'_, W>, values: &[T::T], levels: &[i16]) -> Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, Some(levels), None)?;
        column.close()?;
    }
    Ok(())
}

/// An integer of which it is known that a double holds it.
fn as_double(n: i64) -> f64 {
    let sign = if n < 0 { -1.0 } else { 1.0 };
    let magnitude = n.unsigned_abs();
    let (high, low) = (u32::try_from(magnitude >> 32).unwrap_or(u32::MAX), u32::try_from(magnitude & 0xffff_ffff).unwrap_or(0));
    sign * (f64::from(high) * 4_294_967_296.0 + f64::from(low))
}

/// A column while its rows are seen, then while they are written.
#[derive(Debug)]
pub(super) struct Column {
    name: String,
    seen: [bool; 5],
    /// An integer was seen that no double holds.
    inexact: bool,
    leaves: Vec<Leaf>,
}

impl Column {
    pub(super) fn new(name: String) -> Column {
        Column { name, seen: [false; 5], inexact: false, leaves: Vec::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Notes the class of a value.
    pub(super) fn see(&mut self, value: Value<'_>, encoding: Encoding) {
        if let Value::Int(n) = value {
            self.inexact |= n.unsigned_abs() > EXACT;
        }
        let class = Class::of(value, encoding);
        for (seen, of) in self.seen.iter_mut().zip(Class::ALL) {
            *seen |= class == Some(of);
        }
    }

    /// The type of the column; every value has been seen.
    pub(super) fn settle(&mut self) -> Result<Type> {
        let mut classes: Vec<Class> = Class::ALL.into_iter().zip(self.seen).filter_map(|(class, seen)| seen.then_some(class)).collect();
        if classes == [Class::Integer, Class::Real] && !self.inexact {
            classes.remove(0);
        }
        if classes.is_empty() {
            classes.push(Class::Text);
        }
        self.leaves = classes.iter().copied().map(Leaf::new).collect();
        match classes.as_slice() {
            [one] => one.field(&self.name),
            several => {
                let fields = several.iter().map(|c| c.field(c.word()).map(Arc::new)).collect::<Result<_>>()?;
                Type::group_type_builder(&self.name).with_repetition(OPTIONAL).with_fields(fields).build()
            }
        }
    }

    /// Adds a value to the row group.
    pub(super) fn push(&mut self, value: Value<'_>, encoding: Encoding) {
        let class = Class::of(value, encoding);
        if let [leaf] = self.leaves.as_mut_slice() {
            leaf.levels.push(i16::from(class.is_some()));
            leaf.push(value, encoding);
            return;
        }
        for leaf in &mut self.leaves {
            let here = class == Some(leaf.class);
            // 0: the group is absent, 1: the group is there and this field is not, 2: the value.
            leaf.levels.push(i16::from(class.is_some()).saturating_add(i16::from(here)));
            if here {
                leaf.push(value, encoding);
            }
        }
    }

    /// Writes the row group's part of the column and begins the next.
    pub(super) fn flush<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        self.leaves.iter_mut().try_for_each(|leaf| leaf.flush(group))
    }
}
