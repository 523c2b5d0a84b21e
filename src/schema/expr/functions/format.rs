//! `printf` and `format`.

use crate::schema::expr::ast::Unknown;
use crate::schema::expr::datum::{Datum, Fault};
use crate::schema::expr::number::Decimal;

/// A real with this many digits behind the point, as `%!.Nf`.
pub(super) fn fixed(x: f64, places: usize) -> String {
    let n = i32::try_from(places).unwrap_or(30);
    let d = Decimal::new(x.abs(), n.saturating_neg(), 20);
    let digit = |i: i32| usize::try_from(i).ok().and_then(|i| d.digits.get(i)).copied().map_or('0', char::from);
    let mut out = String::new();
    if x < 0.0 {
        out.push('-');
    }
    if d.point <= 0 {
        out.push('0');
    }
    (0..d.point).for_each(|i| out.push(digit(i)));
    if n > 0 {
        out.push('.');
        (0..n).for_each(|i| out.push(digit(d.point.saturating_add(i))));
    }
    out
}

/// `printf(FORMAT, …)`.
pub(super) fn printf<'r>(_args: &[Datum<'r>]) -> Result<Datum<'r>, Fault> {
    Err(Unknown::Function("printf".into()).into())
}
