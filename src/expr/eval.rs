//! The value of an expression.
//!
//! Recursion is bounded by [`super::MAX_DEPTH`], which the conversion from text enforces.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::ast::{Binary, Case, Expr, InList, Like, Unary, Unknown};
use super::compare;
use super::datum::{Datum, Fault, MAX_LENGTH, Row, too_big};
use super::functions::{self, Function};
use super::number;
use crate::expr::name::{Affinity, Collation};
use crate::format::Encoding;

/// The value of an expression over a row.
///
/// # Errors
/// [`Fault::Unknown`] when something in it is not known here, [`Fault::Raises`] when SQLite would raise an error.
pub fn eval<'r>(e: &'r Expr, row: &'r dyn Row) -> Result<Datum<'r>, Fault> {
    row.meter().steps(1)?;
    Ok(match e {
        Expr::Null => Datum::Null,
        Expr::Int(n) => Datum::Int(*n),
        Expr::Real(x) => Datum::real(*x),
        Expr::Text(t) => Datum::Text(Cow::Borrowed(t)),
        Expr::Blob(b) => Datum::Blob(Cow::Borrowed(b)),
        Expr::Name(n) => return Err(Unknown::Column(n.name.clone()).into()),
        Expr::Unknown(u) => return Err(u.clone().into()),
        Expr::Column(c) => return row.column(c.index),
        Expr::Rowid => row.rowid().map_or(Datum::Null, Datum::Int),
        Expr::Unary(op, e) => return unary(*op, eval(e, row)?),
        Expr::Binary(op, sides) => return binary(*op, &sides.0, &sides.1, row),
        Expr::And(list) => return junction(list, row, false),
        Expr::Or(list) => return junction(list, row, true),
        Expr::Concat(list) => return concat(list, row),
        Expr::IsNull(e, not) => Datum::bool(eval(e, row)?.is_null() != *not),
        Expr::Truth { value, truth, not } => Datum::bool((number::truth(&eval(value, row)?) == Some(*truth)) != *not),
        Expr::Between(b) => {
            let value = eval(&b.value, row)?;
            let low = decided(Binary::GreaterEqual, value.by_ref(), &b.value, &b.low, row)?;
            let high = decided(Binary::LessEqual, value, &b.value, &b.high, row)?;
            three(and(low, high), b.not)
        }
        Expr::In(i) => return in_list(i, row),
        Expr::Like(l) => return like(l, row),
        Expr::Case(c) => return case(c, row),
        Expr::Cast(e, affinity) => {
            let value = eval(e, row)?;
            row.meter().bytes(size(&value))?;
            return Ok(cast(value, *affinity, row.encoding()));
        }
        Expr::Collate(e, _) => return eval(e, row),
        Expr::Call(f, args) => return call(*f, args, row),
    })
}

/// The bytes of a value.
fn size(d: &Datum<'_>) -> usize {
    match d {
        Datum::Text(t) | Datum::Blob(t) => t.len(),
        _ => 0,
    }
}

fn three<'r>(b: Option<bool>, not: bool) -> Datum<'r> {
    b.map_or(Datum::Null, |b| Datum::bool(b != not))
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn junction<'r>(list: &'r [Expr], row: &'r dyn Row, deciding: bool) -> Result<Datum<'r>, Fault> {
    let mut null = false;
    for e in list {
        match number::truth(&eval(e, row)?) {
            Some(b) if b == deciding => return Ok(Datum::bool(deciding)),
            Some(_) => {}
            None => null = true,
        }
    }
    Ok(if null { Datum::Null } else { Datum::bool(!deciding) })
}

fn concat<'r>(list: &'r [Expr], row: &'r dyn Row) -> Result<Datum<'r>, Fault> {
    let mut out = Vec::new();
    let mut null = false;
    for e in list {
        let d = eval(e, row)?;
        null |= d.is_null();
        let text = number::to_text(&d);
        row.meter().bytes(text.len())?;
        out.extend_from_slice(&text);
        if out.len() > MAX_LENGTH {
            return Err(too_big());
        }
    }
    Ok(if null { Datum::Null } else { Datum::text(out) })
}

fn cast(d: Datum<'_>, affinity: Affinity, encoding: Encoding) -> Datum<'_> {
    match (affinity, d) {
        (Affinity::Blob, Datum::Blob(b)) => Datum::Blob(b),
        (Affinity::Blob, d) if encoding != Encoding::Utf8 && !d.is_null() => {
            Datum::Blob(Cow::Owned(encoding.from_utf8(&number::to_text(&d)).into_owned()))
        }
        (Affinity::Text, Datum::Blob(b)) if encoding != Encoding::Utf8 => Datum::Text(Cow::Owned(encoding.to_utf8(&b).into_owned())),
        (_, d) => number::cast(d, affinity),
    }
}

fn unary<'r>(op: Unary, d: Datum<'r>) -> Result<Datum<'r>, Fault> {
    Ok(match op {
        Unary::Plus => d,
        Unary::Not => three(number::truth(&d), true),
        Unary::BitNot if d.is_null() => Datum::Null,
        Unary::BitNot => Datum::Int(!number::to_int(&d)),
        Unary::Minus => arithmetic(Binary::Subtract, &Datum::Int(0), &d),
    })
}

fn binary<'r>(op: Binary, left: &'r Expr, right: &'r Expr, row: &'r dyn Row) -> Result<Datum<'r>, Fault> {
    match op {
        Binary::Equal | Binary::NotEqual | Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
            Ok(three(compared(op, left, right, row)?, false))
        }
        Binary::Is | Binary::IsNot => {
            let (a, b) = (eval(left, row)?, eval(right, row)?);
            let same = match (a.is_null(), b.is_null()) {
                (true, true) => true,
                (false, false) => order(a, left, b, right)? == Ordering::Equal,
                _ => false,
            };
            Ok(Datum::bool(same == (op == Binary::Is)))
        }
        Binary::Arrow | Binary::LongArrow => {
            let (a, b) = (eval(left, row)?, eval(right, row)?);
            row.meter().bytes(size(&a).saturating_add(size(&b)))?;
            functions::arrow(&a, &b, op == Binary::LongArrow)
        }
        _ => {
            let (a, b) = (eval(left, row)?, eval(right, row)?);
            Ok(arithmetic(op, &a, &b))
        }
    }
}

/// Arithmetic and bit operators.
fn arithmetic<'r>(op: Binary, a: &Datum<'_>, b: &Datum<'_>) -> Datum<'r> {
    if a.is_null() || b.is_null() {
        return Datum::Null;
    }
    match op {
        Binary::BitAnd => return Datum::Int(number::to_int(a) & number::to_int(b)),
        Binary::BitOr => return Datum::Int(number::to_int(a) | number::to_int(b)),
        Binary::ShiftLeft => return Datum::Int(shift(number::to_int(a), number::to_int(b))),
        Binary::ShiftRight => return Datum::Int(shift_right(number::to_int(a), number::to_int(b))),
        _ => {}
    }
    let (Some(x), Some(y)) = (number::arithmetic(a), number::arithmetic(b)) else { return Datum::Null };
    if let (Datum::Int(x), Datum::Int(y)) = (&x, &y) {
        let exact = match op {
            Binary::Add => x.checked_add(*y),
            Binary::Subtract => x.checked_sub(*y),
            Binary::Multiply => x.checked_mul(*y),
            _ if *y == 0 => return Datum::Null,
            Binary::Divide => x.checked_div(*y),
            _ => Some(x.checked_rem(*y).unwrap_or(0)),
        };
        if let Some(n) = exact {
            return Datum::Int(n);
        }
    }
    if op == Binary::Modulo {
        let (n, d) = (number::to_int(a), number::to_int(b));
        return match d {
            0 => Datum::Null,
            _ => Datum::Real(number::int_to_real(n.checked_rem(d).unwrap_or(0))),
        };
    }
    let (x, y) = (number::to_real(&x), number::to_real(&y));
    match op {
        Binary::Add => Datum::real(x + y),
        Binary::Subtract => Datum::real(x - y),
        Binary::Multiply => Datum::real(x * y),
        _ if y == 0.0 => Datum::Null,
        _ => Datum::real(x / y),
    }
}

fn shift(n: i64, by: i64) -> i64 {
    match by {
        0..=63 => n.wrapping_shl(u32::try_from(by).unwrap_or(0)),
        64.. => 0,
        _ => shift_right(n, by.saturating_neg()),
    }
}

fn shift_right(n: i64, by: i64) -> i64 {
    match by {
        0..=63 => n.wrapping_shr(u32::try_from(by).unwrap_or(0)),
        64.. => n.wrapping_shr(63),
        _ => shift(n, by.saturating_neg()),
    }
}

fn compared(op: Binary, left: &Expr, right: &Expr, row: &dyn Row) -> Result<Option<bool>, Fault> {
    let value = eval(left, row)?;
    decided(op, value, left, right, row)
}

/// A comparison whose left side has this value.
fn decided(op: Binary, a: Datum<'_>, left: &Expr, right: &Expr, row: &dyn Row) -> Result<Option<bool>, Fault> {
    let b = eval(right, row)?;
    if a.is_null() || b.is_null() {
        return Ok(None);
    }
    row.meter().bytes(size(&a).min(size(&b)))?;
    let order = order(a, left, b, right)?;
    Ok(Some(match op {
        Binary::Equal => order.is_eq(),
        Binary::NotEqual => order.is_ne(),
        Binary::Less => order.is_lt(),
        Binary::LessEqual => order.is_le(),
        Binary::Greater => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// Compares two values under the affinity and collation of the expressions they come from.
fn order(a: Datum<'_>, left: &Expr, b: Datum<'_>, right: &Expr) -> Result<Ordering, Fault> {
    if let (Datum::Int(x), Datum::Int(y)) = (&a, &b) {
        return Ok(x.cmp(y));
    }
    let (a, b) = match comparison_affinity(left, right) {
        Some(Affinity::Text) if matches!(a, Datum::Text(_)) || matches!(b, Datum::Text(_)) => {
            (number::apply(a, Affinity::Text), number::apply(b, Affinity::Text))
        }
        Some(affinity) if affinity.is_numeric() => (number::numeric(a), number::numeric(b)),
        _ => (a, b),
    };
    if matches!((&a, &b), (Datum::Text(_), Datum::Text(_))) {
        return compare::data(&a, &b, comparison_collation(left, right));
    }
    compare::data(&a, &b, &Collation::Binary)
}

fn comparison_affinity(left: &Expr, right: &Expr) -> Option<Affinity> {
    match (left.affinity(), right.affinity()) {
        (Some(a), Some(b)) if a.is_numeric() || b.is_numeric() => Some(Affinity::Numeric),
        (Some(_), Some(_)) => Some(Affinity::Blob),
        (a, b) => a.or(b),
    }
}

const BINARY: &Collation = &Collation::Binary;

fn comparison_collation<'e>(left: &'e Expr, right: &'e Expr) -> &'e Collation {
    if left.has_collate() {
        left.collation().unwrap_or(BINARY)
    } else if right.has_collate() {
        right.collation().unwrap_or(BINARY)
    } else {
        left.collation().or_else(|| right.collation()).unwrap_or(BINARY)
    }
}

impl Expr {
    /// The affinity that comparisons see: of a column or CAST; `None` for everything computed.
    #[must_use]
    pub fn affinity(&self) -> Option<Affinity> {
        match self {
            Expr::Column(c) => Some(c.affinity),
            Expr::Rowid => Some(Affinity::Integer),
            Expr::Cast(_, affinity) => Some(*affinity),
            Expr::Collate(e, _) => e.affinity(),
            _ => None,
        }
    }

    /// Whether COLLATE stands in it, so that it wins over the collations of columns.
    #[must_use]
    pub fn has_collate(&self) -> bool {
        let mut found = false;
        self.walk(&mut |e| found |= matches!(e, Expr::Collate(..)));
        found
    }

    /// The collation that comparisons see, if it brings one.
    #[must_use]
    pub fn collation(&self) -> Option<&Collation> {
        let mut e = self;
        loop {
            e = match e {
                Expr::Collate(_, c) => return Some(c),
                Expr::Column(c) => return Some(&c.collation),
                Expr::Cast(inner, _) | Expr::Unary(Unary::Plus, inner) => inner,
                // COLLATE somewhere inside comes up: the left operand first, then the right, then arguments.
                Expr::Unary(_, inner) | Expr::IsNull(inner, _) if inner.has_collate() => inner,
                Expr::Binary(_, sides) => [&sides.0, &sides.1].into_iter().find(|e| e.has_collate())?,
                Expr::And(list) | Expr::Or(list) | Expr::Concat(list) | Expr::Call(_, list) => list.iter().find(|e| e.has_collate())?,
                Expr::Between(b) => [&b.value, &b.low, &b.high].into_iter().find(|e| e.has_collate())?,
                Expr::In(i) => std::iter::once(&i.value).chain(&i.list).find(|e| e.has_collate())?,
                Expr::Like(l) => [&l.pattern, &l.value].into_iter().chain(&l.escape).find(|e| e.has_collate())?,
                Expr::Case(c) => {
                    let branches = c.branches.iter().flat_map(|(w, t)| [w, t]);
                    c.base.iter().chain(branches).chain(&c.otherwise).find(|e| e.has_collate())?
                }
                _ => return None,
            };
        }
    }
}

fn in_list<'r>(i: &'r InList, row: &'r dyn Row) -> Result<Datum<'r>, Fault> {
    if i.list.is_empty() {
        return Ok(Datum::bool(i.not));
    }
    let value = eval(&i.value, row)?;
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let affinity = i.value.affinity();
    let adapt = |d| match affinity {
        Some(a) if a.is_numeric() => number::numeric(d),
        Some(Affinity::Text) => number::apply(d, Affinity::Text),
        _ => d,
    };
    // A list of one constant is an equality, whose right side can bring a collation.
    let collation = match i.list.as_slice() {
        [one] if one.is_constant() => comparison_collation(&i.value, one),
        _ => i.value.collation().unwrap_or(BINARY),
    };
    let value = adapt(value);
    let mut null = false;
    for e in &i.list {
        let other = eval(e, row)?;
        row.meter().bytes(size(&value).min(size(&other)))?;
        if other.is_null() {
            null = true;
        } else if compare::data(&value, &adapt(other), collation)?.is_eq() {
            return Ok(Datum::bool(!i.not));
        }
    }
    Ok(if null { Datum::Null } else { Datum::bool(i.not) })
}

fn like<'r>(l: &'r Like, row: &'r dyn Row) -> Result<Datum<'r>, Fault> {
    let (value, pattern) = (eval(&l.value, row)?, eval(&l.pattern, row)?);
    let escape = match &l.escape {
        Some(e) => Some(eval(e, row)?),
        None => None,
    };
    Ok(three(functions::like(l.glob, &pattern, &value, escape.as_ref(), row.meter())?, l.not))
}

fn case<'r>(c: &'r Case, row: &'r dyn Row) -> Result<Datum<'r>, Fault> {
    let base = match &c.base {
        Some(e) => Some((e, eval(e, row)?)),
        None => None,
    };
    for (when, then) in &c.branches {
        let value = eval(when, row)?;
        let hit = match &base {
            None => number::truth(&value) == Some(true),
            Some((_, d)) if d.is_null() || value.is_null() => false,
            Some((e, d)) => order(d.by_ref(), e, value, when)?.is_eq(),
        };
        if hit {
            return eval(then, row);
        }
    }
    c.otherwise.as_ref().map_or(Ok(Datum::Null), |e| eval(e, row))
}

fn call<'r>(f: Function, args: &'r [Expr], row: &'r dyn Row) -> Result<Datum<'r>, Fault> {
    match f {
        Function::Coalesce => {
            for e in args {
                let d = eval(e, row)?;
                if !d.is_null() {
                    return Ok(d);
                }
            }
            return Ok(Datum::Null);
        }
        Function::Iif => {
            let mut rest = args;
            while let [when, then, tail @ ..] = rest {
                if number::truth(&eval(when, row)?) == Some(true) {
                    return eval(then, row);
                }
                rest = tail;
            }
            return rest.first().map_or(Ok(Datum::Null), |e| eval(e, row));
        }
        _ => {}
    }
    if let (true, Some(e)) = (f.is_likely(), args.first()) {
        return eval(e, row);
    }
    let mut values = Vec::with_capacity(args.len());
    for e in args {
        values.push(eval(e, row)?);
    }
    let collation = args.iter().find_map(Expr::collation).unwrap_or(BINARY);
    row.meter().bytes(values.iter().map(size).fold(0, usize::saturating_add))?;
    functions::apply(f, values, collation, row.encoding(), row.meter())
}

/// Evaluates a constant expression.
///
/// # Errors
/// As [`eval`].
pub fn constant(e: &Expr) -> Result<Datum<'static>, Fault> {
    eval(e, &super::datum::NoRow::default()).map(Datum::into_owned)
}
