//! Expressions of the SQL parser, taken over into our own.

use sqlite3_parser::ast;

use crate::expr::name::{Affinity, Collation, Name};
use crate::expr::{Between, Binary, Case, Expr, Function, InList, Like, MAX_DEPTH, Unary, Unknown, Unresolved};

use super::token::unquote;

/// Text of a parse, and how to get the original bytes back from it.
///
/// The parser takes valid UTF-8 only, SQLite takes any bytes: bytes that are not UTF-8 are handed to the parser as
/// private characters, one each, and turned back here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taker {
    /// Whether the text was changed for the parser.
    pub mapped: bool,
}

/// The private character that stands for byte 0.
const PRIVATE: u32 = 0x10_F800;

/// The text as the parser takes it, and whether it was changed. `None` if it has such private characters of its own.
pub(super) fn to_valid(sql: &[u8]) -> Option<(std::borrow::Cow<'_, str>, bool)> {
    if let Ok(text) = std::str::from_utf8(sql) {
        return Some((text.into(), false));
    }
    let mut out = String::with_capacity(sql.len().saturating_mul(2));
    for chunk in sql.utf8_chunks() {
        if chunk.valid().chars().any(|c| u32::from(c) >= PRIVATE) {
            return None;
        }
        out.push_str(chunk.valid());
        for &b in chunk.invalid() {
            out.push(char::from_u32(PRIVATE.saturating_add(u32::from(b)))?);
        }
    }
    Some((out.into(), true))
}

impl Taker {
    /// The original bytes of a piece of the text.
    pub fn bytes(self, text: &str) -> Vec<u8> {
        if !self.mapped {
            return text.as_bytes().to_vec();
        }
        let mut out = Vec::with_capacity(text.len());
        for c in text.chars() {
            match u32::from(c).checked_sub(PRIVATE).and_then(|b| u8::try_from(b).ok()) {
                Some(byte) => out.push(byte),
                None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        out
    }

    /// The name that a token stands for.
    pub fn name(self, token: &str) -> Name {
        Name::from(unquote(&self.bytes(token)))
    }

    /// The declared type with its size, as SQLite keeps it but for white space.
    pub fn type_text(self, ty: &ast::Type<'_>) -> Option<Vec<u8>> {
        let mut text = self.bytes(ty.name);
        if text.is_empty() {
            return None;
        }
        match &ty.size {
            None => {}
            Some(ast::TypeSize::MaxSize(n)) => text.extend_from_slice(format!("({n})").as_bytes()),
            Some(ast::TypeSize::TypeSize(n, m)) => text.extend_from_slice(format!("({n},{m})").as_bytes()),
        }
        Some(text)
    }

    /// An expression, with names not yet resolved.
    pub fn expr(self, e: &ast::Expr<'_>) -> Expr {
        self.at_depth(e, 0)
    }

    fn list(self, list: Option<&[ast::Expr<'_>]>, depth: u32) -> Vec<Expr> {
        list.unwrap_or_default().iter().map(|e| self.at_depth(e, depth)).collect()
    }

    fn at_depth(self, e: &ast::Expr<'_>, depth: u32) -> Expr {
        if depth > MAX_DEPTH {
            return Expr::Unknown(Unknown::TooDeep);
        }
        let down = depth.saturating_add(1);
        let take = |e: &ast::Expr<'_>| self.at_depth(e, down);
        match e {
            ast::Expr::Between { lhs, not, start, end } => {
                Expr::Between(Box::new(Between { value: take(lhs), low: take(start), high: take(end), not: *not }))
            }
            ast::Expr::Binary(left, op, right) => self.binary(e, left, *op, right, down),
            ast::Expr::Case { base, when_then_pairs, else_expr } => Expr::Case(Box::new(Case {
                base: base.map(take),
                branches: when_then_pairs.iter().map(|(w, t)| (take(w), take(t))).collect(),
                otherwise: else_expr.map(take),
            })),
            ast::Expr::Cast { expr, type_name } => {
                let text = type_name.as_ref().and_then(|t| self.type_text(t)).unwrap_or_default();
                Expr::Cast(Box::new(take(expr)), Affinity::of_type(&text))
            }
            ast::Expr::Collate(expr, name) => Expr::Collate(Box::new(take(expr)), Box::new(Collation::named(&self.name(name)))),
            ast::Expr::DoublyQualified(_, table, column) => self.column(Some(table.0), column.0),
            ast::Expr::Qualified(table, column) => self.column(Some(table.0), column.0),
            ast::Expr::Id(id) => self.column(None, id.0),
            ast::Expr::Name(name) => self.column(None, name.0),
            ast::Expr::Exists(_) | ast::Expr::InSelect { .. } | ast::Expr::InTable { .. } | ast::Expr::Subquery(_) => {
                Expr::Unknown(Unknown::Subquery)
            }
            ast::Expr::FunctionCall { name, distinctness, args, order_by, filter_over } => {
                let name = self.name(name.0);
                if distinctness.is_some() || order_by.is_some() || filter_over.is_some() {
                    return Expr::Unknown(Unknown::Construct("an aggregate or window function"));
                }
                Function::call(&name, self.list(*args, down))
            }
            ast::Expr::FunctionCallStar { name, .. } => Expr::Unknown(Unknown::Function(self.name(name.0))),
            ast::Expr::InList { lhs, not, rhs } => Expr::In(Box::new(InList { value: take(lhs), list: self.list(*rhs, down), not: *not })),
            ast::Expr::IsNull(e) => Expr::IsNull(Box::new(take(e)), false),
            ast::Expr::NotNull(e) => Expr::IsNull(Box::new(take(e)), true),
            ast::Expr::Like { lhs, not, op, rhs, escape } => {
                let glob = match op {
                    ast::LikeOperator::Glob => true,
                    ast::LikeOperator::Like => false,
                    ast::LikeOperator::Match => return Expr::Unknown(Unknown::Construct("MATCH")),
                    ast::LikeOperator::Regexp => return Expr::Unknown(Unknown::Construct("REGEXP")),
                };
                Expr::Like(Box::new(Like { glob, value: take(lhs), pattern: take(rhs), escape: escape.map(take), not: *not }))
            }
            ast::Expr::Literal(literal) => self.literal(literal, false),
            ast::Expr::Parenthesized(list) => match list.as_slice() {
                [one] => take(one),
                _ => Expr::Unknown(Unknown::Construct("a row value")),
            },
            ast::Expr::Raise(..) => Expr::Unknown(Unknown::Construct("RAISE")),
            ast::Expr::Unary(op, e) => {
                let op = match op {
                    ast::UnaryOperator::BitwiseNot => Unary::BitNot,
                    ast::UnaryOperator::Negative => Unary::Minus,
                    ast::UnaryOperator::Not => Unary::Not,
                    ast::UnaryOperator::Positive => Unary::Plus,
                };
                if op == Unary::Minus
                    && let Some(literal @ ast::Literal::Numeric(_)) = naked_literal(e)
                {
                    return self.literal(literal, true);
                }
                Expr::Unary(op, Box::new(take(e)))
            }
            ast::Expr::Variable(_) => Expr::Unknown(Unknown::Construct("a parameter")),
        }
    }

    fn binary(self, whole: &ast::Expr<'_>, left: &ast::Expr<'_>, op: ast::Operator, right: &ast::Expr<'_>, down: u32) -> Expr {
        use ast::Operator as O;
        let op = match op {
            O::And | O::Or | O::Concat => {
                let list = self.chain(whole, op, down);
                return match op {
                    O::And => Expr::And(list),
                    O::Or => Expr::Or(list),
                    _ => Expr::Concat(list),
                };
            }
            O::Add => Binary::Add,
            O::ArrowRight => Binary::Arrow,
            O::ArrowRightShift => Binary::LongArrow,
            O::BitwiseAnd => Binary::BitAnd,
            O::BitwiseOr => Binary::BitOr,
            O::Equals => Binary::Equal,
            O::Divide => Binary::Divide,
            O::Greater => Binary::Greater,
            O::GreaterEquals => Binary::GreaterEqual,
            O::Is => Binary::Is,
            O::IsNot => Binary::IsNot,
            O::LeftShift => Binary::ShiftLeft,
            O::Less => Binary::Less,
            O::LessEquals => Binary::LessEqual,
            O::Modulus => Binary::Modulo,
            O::Multiply => Binary::Multiply,
            O::NotEquals => Binary::NotEqual,
            O::RightShift => Binary::ShiftRight,
            O::Subtract => Binary::Subtract,
        };
        Expr::Binary(op, Box::new((self.at_depth(left, down), self.at_depth(right, down))))
    }

    /// The operands of a chain of one associative operator, left to right.
    fn chain(self, whole: &ast::Expr<'_>, op: ast::Operator, down: u32) -> Vec<Expr> {
        let mut rights = Vec::new();
        let mut rest = whole;
        while let ast::Expr::Binary(left, o, right) = rest
            && *o == op
        {
            rights.push(*right);
            rest = left;
        }
        let mut out = vec![self.at_depth(rest, down)];
        out.extend(rights.into_iter().rev().map(|e| self.at_depth(e, down)));
        out
    }

    fn column(self, table: Option<&str>, column: &str) -> Expr {
        let double_quoted = column.starts_with('"');
        Expr::Name(Box::new(Unresolved { table: table.map(|t| self.name(t)), name: self.name(column), double_quoted }))
    }

    fn literal(self, literal: &ast::Literal<'_>, negative: bool) -> Expr {
        match literal {
            ast::Literal::Numeric(text) => number(text, negative),
            ast::Literal::String(text) => Expr::Text(unquote(&self.bytes(text)).into()),
            ast::Literal::Blob(hex) => match from_hex(hex.as_bytes()) {
                Some(bytes) => Expr::Blob(bytes.into()),
                None => Expr::Unknown(Unknown::Literal),
            },
            ast::Literal::Null => Expr::Null,
            ast::Literal::Keyword(_) => Expr::Unknown(Unknown::Construct("a keyword")),
            ast::Literal::CurrentDate | ast::Literal::CurrentTime | ast::Literal::CurrentTimestamp => Expr::Unknown(Unknown::Clock),
        }
    }
}

fn naked_literal<'a, 'b>(mut e: &'a ast::Expr<'b>) -> Option<&'a ast::Literal<'b>> {
    loop {
        match e {
            ast::Expr::Literal(literal) => return Some(literal),
            ast::Expr::Parenthesized(list) => match list.as_slice() {
                [one] => e = one,
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// A number literal: decimal integers that do not fit are reals, hexadecimal ones are two's complement.
pub(super) fn number(text: &str, negative: bool) -> Expr {
    let clean: String = text.chars().filter(|&c| c != '_').collect();
    if let Some(hex) = clean.strip_prefix("0x").or_else(|| clean.strip_prefix("0X")) {
        return match u64::from_str_radix(hex, 16) {
            Ok(n) => {
                let n = i64::from_ne_bytes(n.to_ne_bytes());
                match (negative, n.checked_neg()) {
                    (false, _) => Expr::Int(n),
                    (true, Some(n)) => Expr::Int(n),
                    // SQLite refuses -0x8000000000000000: "hex literal too big".
                    (true, None) => Expr::Unknown(Unknown::Literal),
                }
            }
            Err(_) => Expr::Unknown(Unknown::Literal),
        };
    }
    if clean.bytes().all(|b| b.is_ascii_digit()) {
        let signed = if negative { format!("-{clean}") } else { clean.clone() };
        if let Ok(n) = signed.parse::<i64>() {
            return Expr::Int(n);
        }
    }
    match clean.parse::<f64>() {
        Ok(x) => Expr::Real(if negative { -x } else { x }),
        Err(_) => Expr::Unknown(Unknown::Literal),
    }
}

fn from_hex(hex: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    hex.chunks(2)
        .map(|pair| match pair {
            [a, b] => Some(digit(*a)?.wrapping_shl(4) | digit(*b)?),
            _ => None,
        })
        .collect()
}
