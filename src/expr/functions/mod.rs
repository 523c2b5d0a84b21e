//! The built-in functions that give the same value for the same arguments.

mod date;
mod format;
mod json;
mod text;

use std::borrow::Cow;

use super::ast::{Expr, Unknown};
use super::compare;
use super::datum::{Datum, Fault};
use super::meter::Meter;
use super::number;
use crate::expr::name::{Collation, Name};
use crate::format::Encoding;

pub(super) use json::arrow;

macro_rules! functions {
    ($($name:ident $sql:literal $low:literal $high:expr;)*) => {
        /// A built-in function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is the SQL function of its name")]
        #[non_exhaustive]
        pub enum Function { $($name),* }

        impl Function {
            /// Its name in SQL, lower case; aliases share one entry.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Function::$name => $sql),* }
            }

            fn find(name: &str) -> Option<(Function, usize, usize)> {
                match name {
                    $($sql => Some((Function::$name, $low, $high)),)*
                    _ => None,
                }
            }
        }
    };
}

const MANY: usize = 127;

functions! {
    Abs "abs" 1 1;
    Char "char" 0 MANY;
    Coalesce "coalesce" 2 MANY;
    Concat "concat" 1 MANY;
    ConcatWs "concat_ws" 2 MANY;
    Date "date" 0 MANY;
    DateTime "datetime" 0 MANY;
    Glob "glob" 2 2;
    Hex "hex" 1 1;
    Iif "iif" 2 MANY;
    Instr "instr" 2 2;
    Json "json" 1 1;
    JsonArrayLength "json_array_length" 1 2;
    JsonExtract "json_extract" 1 MANY;
    JsonType "json_type" 1 2;
    JsonValid "json_valid" 1 2;
    JulianDay "julianday" 0 MANY;
    Length "length" 1 1;
    Like "like" 2 3;
    Likelihood "likelihood" 2 2;
    Likely "likely" 1 1;
    Lower "lower" 1 1;
    Ltrim "ltrim" 1 2;
    Max "max" 2 MANY;
    Min "min" 2 MANY;
    Nullif "nullif" 2 2;
    OctetLength "octet_length" 1 1;
    Printf "printf" 0 MANY;
    Quote "quote" 1 1;
    Replace "replace" 3 3;
    Round "round" 1 2;
    Rtrim "rtrim" 1 2;
    Sign "sign" 1 1;
    Strftime "strftime" 1 MANY;
    Substr "substr" 2 3;
    Time "time" 0 MANY;
    Trim "trim" 1 2;
    Typeof "typeof" 1 1;
    Unhex "unhex" 1 2;
    Unicode "unicode" 1 1;
    UnixEpoch "unixepoch" 0 MANY;
    Unlikely "unlikely" 1 1;
    Upper "upper" 1 1;
    ZeroBlob "zeroblob" 1 1;
}

impl Function {
    /// A call of the function of this name, or the reason why there is none.
    #[must_use]
    pub fn call(name: &Name, args: Vec<Expr>) -> Expr {
        let lower = String::from_utf8_lossy(name.as_bytes()).to_ascii_lowercase();
        let canonical = match lower.as_str() {
            "substring" => "substr",
            "format" => "printf",
            "ifnull" if args.len() == 2 => "coalesce",
            "if" => "iif",
            other => other,
        };
        match Function::find(canonical) {
            None => Expr::Unknown(Unknown::Function(name.clone())),
            Some((_, low, high)) if args.len() < low || args.len() > high => Expr::Unknown(Unknown::Arguments(name.clone())),
            Some((f, ..)) => Expr::Call(f, args),
        }
    }

    /// Whether it only hands its first argument through.
    #[must_use]
    pub fn is_likely(self) -> bool {
        matches!(self, Function::Likely | Function::Unlikely | Function::Likelihood)
    }
}

/// The value of a function over its arguments. `collation` is that of the first argument that has one.
pub(super) fn apply<'r>(
    f: Function,
    args: Vec<Datum<'r>>,
    collation: &Collation,
    encoding: Encoding,
    meter: &Meter,
) -> Result<Datum<'r>, Fault> {
    match f {
        Function::Max | Function::Min => return extreme(args, f == Function::Max, collation),
        Function::Nullif => {
            let mut args = args.into_iter();
            let (Some(a), Some(b)) = (args.next(), args.next()) else { return Ok(Datum::Null) };
            return Ok(if compare::data(&a, &b, collation)?.is_eq() { Datum::Null } else { a });
        }
        Function::Json | Function::JsonArrayLength | Function::JsonExtract | Function::JsonType | Function::JsonValid => {
            return json::apply(f, &args, meter);
        }
        Function::Date | Function::DateTime | Function::Time | Function::JulianDay | Function::UnixEpoch | Function::Strftime => {
            return date::apply(f, &args);
        }
        Function::Printf => return format::printf(&args, meter),
        _ => {}
    }
    let null = Datum::Null;
    let (a, b, c) = (args.first().unwrap_or(&null), args.get(1), args.get(2));
    text::apply(f, a, b, c, &args, encoding, meter)
}

fn extreme<'r>(args: Vec<Datum<'r>>, max: bool, collation: &Collation) -> Result<Datum<'r>, Fault> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let mut best: Option<Datum<'r>> = None;
    for d in args {
        let better = match &best {
            None => true,
            Some(b) => {
                let order = compare::data(&d, b, collation)?;
                // Among equal ones the first is the greatest and the last the least.
                if max { order.is_gt() } else { order.is_le() }
            }
        };
        if better {
            best = Some(d);
        }
    }
    Ok(best.unwrap_or(Datum::Null))
}

/// `text [GLOB|LIKE] pattern`, as operator and as function. `None` for NULL.
pub(super) fn like(
    glob: bool,
    pattern: &Datum<'_>,
    value: &Datum<'_>,
    escape: Option<&Datum<'_>>,
    meter: &Meter,
) -> Result<Option<bool>, Fault> {
    let escape = match escape {
        None => None,
        Some(Datum::Null) => return Ok(None),
        Some(e) => match compare::chars(&number::to_text(e)).as_slice() {
            [one] => Some(*one),
            _ => return Err(Fault::Raises("ESCAPE expression must be a single character".to_owned())),
        },
    };
    let (pattern_text, text) = (number::to_text(pattern), number::to_text(value));
    if pattern_text.len() > compare::MAX_PATTERN {
        return Err(Fault::Raises("LIKE or GLOB pattern too complex".to_owned()));
    }
    if pattern.is_null() || value.is_null() {
        return Ok(None);
    }
    meter.bytes(pattern_text.len().saturating_add(text.len()))?;
    if glob { compare::glob(&pattern_text, &text, meter).map(Some) } else { compare::like(&pattern_text, &text, escape, meter).map(Some) }
}

/// Text that SQLite reads as a C string: up to the first NUL.
fn c_string(t: &[u8]) -> &[u8] {
    t.split(|&b| b == 0).next().unwrap_or(t)
}

fn owned(bytes: Vec<u8>) -> Datum<'static> {
    Datum::Text(Cow::Owned(bytes))
}

/// Writes a character as SQLite does: surrogates take the three bytes of their number, which is not valid UTF-8.
fn push_character(c: u32, out: &mut Vec<u8>) {
    let part = |shift: u32, mask: u32, mark: u8| u8::try_from(c.wrapping_shr(shift) & mask).unwrap_or(0) | mark;
    match c {
        0..0x80 => out.push(part(0, 0x7f, 0)),
        0x80..0x800 => out.extend([part(6, 0x1f, 0xc0), part(0, 0x3f, 0x80)]),
        0x800..0x1_0000 => out.extend([part(12, 0x0f, 0xe0), part(6, 0x3f, 0x80), part(0, 0x3f, 0x80)]),
        _ => out.extend([part(18, 0x07, 0xf0), part(12, 0x3f, 0x80), part(6, 0x3f, 0x80), part(0, 0x3f, 0x80)]),
    }
}
