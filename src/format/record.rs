//! Records: a header of serial types, then the values (section 2.1).

use crate::bytes::{f64_at, int_be, put_varint, varint, varint_len};
use crate::finding::{Code, Defect};
use crate::format::Value;
use crate::ids::{narrow, small, wide};

/// Bytes of a value with this serial type. The reserved types 10 and 11 have none: SQLite reads them as NULL.
#[must_use]
#[inline]
pub const fn serial_len(serial: u64) -> u64 {
    match serial {
        0 | 8..=11 => 0,
        1 => 1,
        2 => 2,
        3 => 3,
        4 => 4,
        5 => 6,
        6 | 7 => 8,
        n => n.saturating_sub(12) >> 1,
    }
}

/// Longest record header that SQLite reads: 32,767 columns of three bytes each, and its own length.
pub const MAX_HEADER: u64 = 98_307;

/// Whether this serial type never stands in a database file.
#[must_use]
#[inline]
pub const fn is_reserved(serial: u64) -> bool {
    matches!(serial, 10 | 11)
}

/// One value of a record by its place in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Serial type.
    pub serial: u64,
    /// Offset in the payload.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
}

impl Field {
    /// The value, borrowed from the payload it was read from. Bytes that are not there read as NULL.
    #[must_use]
    #[inline]
    pub fn value<'a>(&self, payload: &'a [u8]) -> Value<'a> {
        let start = crate::ids::idx(self.start);
        let Some(b) = payload.get(start..start.saturating_add(crate::ids::idx(self.len))) else { return Value::Null };
        match self.serial {
            1..=6 => Value::Int(int_be(b)),
            7 => f64_at(b, 0).map_or(Value::Null, |r| if r.is_nan() { Value::Null } else { Value::Real(r) }),
            8 => Value::Int(0),
            9 => Value::Int(1),
            n if n >= 12 && n & 1 == 0 => Value::Blob(b),
            n if n >= 13 => Value::Text(b),
            _ => Value::Null,
        }
    }
}

/// The fields of one record; a buffer to be used again for the next.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    items: Vec<Field>,
    header_len: u32,
    body_end: u32,
    reserved: Option<u64>,
}

impl Fields {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Reads the header of a record and the places of its values. `declared` is the payload length that the cell declares;
    /// `payload` may be a part of it (local bytes), so that wide rows can be judged before their overflow is gathered.
    ///
    /// # Errors
    /// `header-size-bad` (also for a record without any value, which SQLite never writes and refuses to read),
    /// `varint-cut`, or `body-short` when the values need more bytes than are declared. The fields read up
    /// to there stay available. A reserved serial type is no error, see [`Fields::reserved`].
    #[inline]
    pub fn read(&mut self, payload: &[u8], declared: u64) -> Result<(), Defect> {
        self.items.clear();
        self.header_len = 0;
        self.body_end = 0;
        self.reserved = None;
        let (header_len, mut at) = varint(payload, 0).ok_or_else(|| Defect::new(Code::HeaderSizeBad, 0, wide(payload.len()), declared))?;
        if header_len > declared || header_len <= wide(at) || header_len > MAX_HEADER {
            return Err(Defect::new(Code::HeaderSizeBad, 0, header_len, declared));
        }
        let end = narrow(header_len);
        let Some(header) = payload.get(..end) else { return Err(Defect::new(Code::HeaderSizeBad, 0, header_len, wide(payload.len()))) };
        self.header_len = small(end);
        let mut body = header_len;
        while at < end {
            let (serial, n) = varint(header, at).ok_or_else(|| Defect::new(Code::VarintCut, small(at), wide(at), header_len))?;
            let len = serial_len(serial);
            if is_reserved(serial) {
                self.reserved = self.reserved.or(Some(serial));
            }
            at = at.saturating_add(n);
            let start = body;
            body = body.saturating_add(len);
            if body > declared {
                self.body_end = u32::try_from(start).unwrap_or(u32::MAX);
                return Err(Defect::new(Code::BodyShort, small(at), declared, body));
            }
            self.items.push(Field { serial, start: u32::try_from(start).unwrap_or(u32::MAX), len: u32::try_from(len).unwrap_or(u32::MAX) });
        }
        self.body_end = u32::try_from(body).unwrap_or(u32::MAX);
        Ok(())
    }

    /// How many values there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The fields in record order.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[Field] {
        &self.items
    }

    /// Length of the record header in bytes.
    #[must_use]
    pub fn header_len(&self) -> u32 {
        self.header_len
    }

    /// Where the last value ends; less than the payload when surplus bytes follow.
    #[must_use]
    pub fn body_end(&self) -> u32 {
        self.body_end
    }

    /// The first reserved serial type of the record. SQLite reads such values as NULL; bytes that are searched for records
    /// are none when they hold one.
    #[must_use]
    #[inline]
    pub fn reserved(&self) -> Option<u64> {
        self.reserved
    }

    /// Value `i`, `None` past the last: the caller knows the column's DEFAULT.
    #[must_use]
    #[inline]
    pub fn value<'a>(&self, payload: &'a [u8], i: usize) -> Option<Value<'a>> {
        self.items.get(i).map(|f| f.value(payload))
    }

    /// All values in record order.
    pub fn values<'a, 's>(&'s self, payload: &'a [u8]) -> impl Iterator<Item = Value<'a>> + use<'a, 's> {
        self.items.iter().map(move |f| f.value(payload))
    }
}

/// The serial type that SQLite writes for a value.
#[must_use]
pub fn serial_type(value: Value<'_>) -> u64 {
    match value {
        Value::Null => 0,
        Value::Int(0) => 8,
        Value::Int(1) => 9,
        Value::Int(n) => {
            let magnitude = if n < 0 { !n } else { n };
            match magnitude {
                0..=0x7f => 1,
                0x80..=0x7fff => 2,
                0x8000..=0x7f_ffff => 3,
                0x80_0000..=0x7fff_ffff => 4,
                0x8000_0000..=0x7fff_ffff_ffff => 5,
                _ => 6,
            }
        }
        Value::Real(_) => 7,
        Value::Blob(b) => wide(b.len()).saturating_mul(2).saturating_add(12),
        Value::Text(t) => wide(t.len()).saturating_mul(2).saturating_add(13),
    }
}

/// Appends a record of these values, in the form SQLite writes (shortest integers, types 8 and 9 for 0 and 1).
pub fn encode_record<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = Value<'a>> + Clone) {
    let types: usize = values.clone().fold(0_usize, |n, v| n.saturating_add(varint_len(serial_type(v))));
    put_varint(out, wide(header_len(types)));
    for v in values.clone() {
        put_varint(out, serial_type(v));
    }
    for v in values {
        put_body(out, v);
    }
}

/// Appends the body bytes of one value, as its serial type of [`serial_type`] says.
pub fn put_body(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Null => {}
        Value::Int(n) => {
            let len = narrow(serial_len(serial_type(value)));
            let bytes = n.to_be_bytes();
            out.extend_from_slice(bytes.get(8_usize.saturating_sub(len)..).unwrap_or_default());
        }
        Value::Real(r) => out.extend_from_slice(&r.to_be_bytes()),
        Value::Text(b) | Value::Blob(b) => out.extend_from_slice(b),
    }
}

/// Length of a record header whose serial types take `types` bytes: the header counts its own length.
#[must_use]
pub fn header_len(types: usize) -> usize {
    let one = types.saturating_add(1);
    if one <= 0x7f {
        return one;
    }
    let len = varint_len(wide(types)).max(2);
    let total = types.saturating_add(len);
    if varint_len(wide(total)) > len { total.saturating_add(1) } else { total }
}

/// Appends a record made of fields of another, their bytes copied as they are. Reserved serial types become NULL.
pub fn copy_fields(out: &mut Vec<u8>, payload: &[u8], fields: &[Field]) {
    let serial = |f: &Field| if is_reserved(f.serial) { 0 } else { f.serial };
    let types: usize = fields.iter().fold(0_usize, |n, f| n.saturating_add(varint_len(serial(f))));
    put_varint(out, wide(header_len(types)));
    for f in fields {
        put_varint(out, serial(f));
    }
    for f in fields {
        let start = crate::ids::idx(f.start);
        out.extend_from_slice(payload.get(start..start.saturating_add(crate::ids::idx(f.len))).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(values: &[Value<'_>]) {
        let mut out = Vec::new();
        encode_record(&mut out, values.iter().copied());
        let mut fields = Fields::new();
        fields.read(&out, wide(out.len())).unwrap();
        assert_eq!(fields.values(&out).collect::<Vec<_>>(), values);
        assert_eq!(fields.body_end(), small(out.len()));
        let mut again = Vec::new();
        copy_fields(&mut again, &out, fields.as_slice());
        assert_eq!(again, out);
    }

    #[test]
    fn records_round_trip() {
        for bits in 0..63 {
            let n = 1_i64 << bits;
            round(&[Value::Int(n), Value::Int(-n), Value::Int(n - 1), Value::Int(-n - 1), Value::Null, Value::Real(0.5)]);
        }
        round(&[Value::Text(b"abc"), Value::Blob(b""), Value::Text(b""), Value::Int(i64::MIN), Value::Int(i64::MAX)]);
        for n in [126_usize, 127, 128, 129, 16381, 16382, 16383, 16384] {
            round(&vec![Value::Int(5); n]);
        }
    }

    #[test]
    fn reserved_types_read_as_null_and_are_written_as_null() {
        let (mut f, record) = (Fields::new(), [4, 10, 1, 11, 5]);
        f.read(&record, 5).unwrap();
        assert_eq!(f.reserved(), Some(10));
        assert_eq!(f.values(&record).collect::<Vec<_>>(), [Value::Null, Value::Int(5), Value::Null]);
        let mut out = Vec::new();
        copy_fields(&mut out, &record, f.as_slice());
        assert_eq!(out, [4, 0, 1, 0, 5]);
        f.read(&out, 5).unwrap();
        assert_eq!(f.reserved(), None);
    }

    #[test]
    fn declared_sizes_must_add_up() {
        let mut f = Fields::new();
        assert_eq!(f.read(&[2, 6, 1], 3).unwrap_err().code, Code::BodyShort);
        assert_eq!(f.read(&[9, 1], 2).unwrap_err().code, Code::HeaderSizeBad);
        assert_eq!(f.read(&[], 0).unwrap_err().code, Code::HeaderSizeBad);
        assert_eq!(f.read(&[1], 1).unwrap_err().code, Code::HeaderSizeBad);
        assert_eq!(f.read(&[2, 0x81], 2).unwrap_err().code, Code::VarintCut);
    }
}
