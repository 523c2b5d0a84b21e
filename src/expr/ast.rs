//! Expressions as owned data.

use std::fmt;

use super::functions::Function;
use crate::expr::name::{Affinity, Collation, Name};

/// How deep an expression may be nested before it counts as [`Unknown::TooDeep`]. SQLite itself stops at 1,000; chains
/// of AND, OR and `||` are flat here and do not count. 200 keeps evaluation far from the end of any thread's stack.
pub const MAX_DEPTH: u32 = 200;

/// An expression of SQL.
#[derive(Debug, Clone)]
pub enum Expr {
    /// NULL.
    Null,
    /// An integer literal.
    Int(i64),
    /// A floating-point literal.
    Real(f64),
    /// A string literal.
    Text(Box<[u8]>),
    /// A BLOB literal.
    Blob(Box<[u8]>),
    /// A name that is not resolved to a column.
    Name(Box<Unresolved>),
    /// A column of the row.
    Column(Box<ColumnRef>),
    /// The rowid of the row.
    Rowid,
    /// A prefix operator.
    Unary(Unary, Box<Expr>),
    /// An infix operator.
    Binary(Binary, Box<(Expr, Expr)>),
    /// `a AND b AND …`, two or more.
    And(Vec<Expr>),
    /// `a OR b OR …`, two or more.
    Or(Vec<Expr>),
    /// `a || b || …`, two or more.
    Concat(Vec<Expr>),
    /// `IS NULL`, or `NOT NULL` when the flag is set.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] TRUE` or `FALSE`.
    Truth {
        /// What is tested.
        value: Box<Expr>,
        /// Against TRUE rather than FALSE.
        truth: bool,
        /// `IS NOT`.
        not: bool,
    },
    /// `[NOT] BETWEEN low AND high`.
    Between(Box<Between>),
    /// `[NOT] IN (list)`.
    In(Box<InList>),
    /// `[NOT] LIKE` or `GLOB`.
    Like(Box<Like>),
    /// `CASE`.
    Case(Box<Case>),
    /// `CAST`.
    Cast(Box<Expr>, Affinity),
    /// `COLLATE`.
    Collate(Box<Expr>, Box<Collation>),
    /// A call of a function that is built in and deterministic.
    Call(Function, Vec<Expr>),
    /// What cannot be evaluated here.
    Unknown(Unknown),
}

/// A name as written.
#[derive(Debug, Clone)]
pub struct Unresolved {
    /// The table or alias before the dot.
    pub table: Option<Name>,
    /// The name.
    pub name: Name,
    /// Whether it stands in double quotes: SQLite takes it for a string when there is no such column.
    pub double_quoted: bool,
}

/// A resolved column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRef {
    /// Its position, as [`super::Row::column`] takes it.
    pub index: usize,
    /// Its affinity, for comparisons.
    pub affinity: Affinity,
    /// Its collation, for comparisons.
    pub collation: Collation,
}

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Minus,
    /// `+`: takes away affinity, nothing else.
    Plus,
    /// `~`
    BitNot,
    /// `NOT`
    Not,
}

/// Infix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `IS`
    Is,
    /// `IS NOT`
    IsNot,
    /// `->`
    Arrow,
    /// `->>`
    LongArrow,
}

/// `value [NOT] BETWEEN low AND high`.
#[derive(Debug, Clone)]
pub struct Between {
    /// The value.
    pub value: Expr,
    /// The lower bound.
    pub low: Expr,
    /// The upper bound.
    pub high: Expr,
    /// `NOT`.
    pub not: bool,
}

/// `value [NOT] IN (list)`.
#[derive(Debug, Clone)]
pub struct InList {
    /// The value.
    pub value: Expr,
    /// The list.
    pub list: Vec<Expr>,
    /// `NOT`.
    pub not: bool,
}

/// `value [NOT] LIKE pattern [ESCAPE escape]`, or GLOB.
#[derive(Debug, Clone)]
pub struct Like {
    /// GLOB rather than LIKE.
    pub glob: bool,
    /// The text.
    pub value: Expr,
    /// The pattern.
    pub pattern: Expr,
    /// The escape character.
    pub escape: Option<Expr>,
    /// `NOT`.
    pub not: bool,
}

/// `CASE [base] WHEN … THEN … ELSE … END`.
#[derive(Debug, Clone)]
pub struct Case {
    /// What the branches are compared with.
    pub base: Option<Expr>,
    /// Condition and result of each branch.
    pub branches: Vec<(Expr, Expr)>,
    /// `ELSE`.
    pub otherwise: Option<Expr>,
}

/// Why an expression cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// A function that is not built in, not deterministic, or not implemented; its name.
    Function(Name),
    /// A built-in function with a number of arguments that it does not take.
    Arguments(Name),
    /// A name that is no column in scope.
    Column(Name),
    /// A collation that the application registers.
    Collation(Name),
    /// A subquery.
    Subquery,
    /// A value that depends on the time of day.
    Clock,
    /// Something else that has no value in a row: a parameter, RAISE, MATCH, REGEXP, a row value.
    Construct(&'static str),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// It takes more time or memory than an expression may.
    TooMuch,
    /// Text that was not valid where a number or literal is needed.
    Literal,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::Function(name) => write!(f, "function {name} cannot be evaluated here"),
            Unknown::Arguments(name) => write!(f, "wrong number of arguments to function {name}"),
            Unknown::Column(name) => write!(f, "no such column: {name}"),
            Unknown::Collation(name) => write!(f, "collation {name} is not known here"),
            Unknown::Subquery => f.write_str("a subquery is not evaluated here"),
            Unknown::Clock => f.write_str("the value depends on the time"),
            Unknown::Construct(what) => write!(f, "{what} is not evaluated here"),
            Unknown::TooDeep => write!(f, "nested deeper than {MAX_DEPTH}"),
            Unknown::TooMuch => f.write_str("the expression takes too much time or memory"),
            Unknown::Literal => f.write_str("a literal is out of range"),
        }
    }
}

/// What names mean where an expression stands.
pub trait Scope {
    /// The column, the rowid, or nothing, that a name stands for.
    fn lookup(&self, table: Option<&Name>, name: &Name) -> Option<Expr>;
}

impl Expr {
    /// The same expression with every name that the scope knows replaced by its column; a double-quoted name that it
    /// does not know becomes a string, `true` and `false` become numbers, and what is left becomes [`Unknown::Column`].
    pub fn resolve(&mut self, scope: &dyn Scope) {
        match self {
            Expr::Name(name) => {
                let found = scope.lookup(name.table.as_ref(), &name.name);
                *self = match found {
                    Some(expr) => expr,
                    None if name.table.is_none() && name.double_quoted => Expr::Text(name.name.as_bytes().into()),
                    None if name.table.is_none() && name.name.same(b"true") => Expr::Int(1),
                    None if name.table.is_none() && name.name.same(b"false") => Expr::Int(0),
                    None => Expr::Unknown(Unknown::Column(name.name.clone())),
                };
            }
            // TRUE and FALSE behind IS are truth tests only while no column has that name.
            Expr::Binary(op @ (Binary::Is | Binary::IsNot), sides) => {
                let not = *op == Binary::IsNot;
                let truth = match &sides.1 {
                    Expr::Name(n) if n.table.is_none() && !n.double_quoted && scope.lookup(None, &n.name).is_none() => {
                        if n.name.same(b"true") {
                            Some(true)
                        } else if n.name.same(b"false") {
                            Some(false)
                        } else {
                            None
                        }
                    }
                    _ => None,
                };
                sides.0.resolve(scope);
                match truth {
                    Some(truth) => {
                        let value = Box::new(std::mem::replace(&mut sides.0, Expr::Null));
                        *self = Expr::Truth { value, truth, not };
                    }
                    None => sides.1.resolve(scope),
                }
            }
            _ => self.for_each_child(&mut |child| child.resolve(scope)),
        }
    }

    fn for_each_child(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Null
            | Expr::Int(_)
            | Expr::Real(_)
            | Expr::Text(_)
            | Expr::Blob(_)
            | Expr::Name(_)
            | Expr::Column(_)
            | Expr::Rowid
            | Expr::Unknown(_) => {}
            Expr::Unary(_, e) | Expr::IsNull(e, _) | Expr::Cast(e, _) | Expr::Collate(e, _) => f(e),
            Expr::Truth { value, .. } => f(value),
            Expr::Binary(_, sides) => {
                f(&mut sides.0);
                f(&mut sides.1);
            }
            Expr::And(list) | Expr::Or(list) | Expr::Concat(list) | Expr::Call(_, list) => list.iter_mut().for_each(f),
            Expr::Between(b) => {
                f(&mut b.value);
                f(&mut b.low);
                f(&mut b.high);
            }
            Expr::In(i) => {
                f(&mut i.value);
                i.list.iter_mut().for_each(f);
            }
            Expr::Like(l) => {
                f(&mut l.value);
                f(&mut l.pattern);
                l.escape.iter_mut().for_each(f);
            }
            Expr::Case(c) => {
                c.base.iter_mut().for_each(&mut *f);
                for (when, then) in &mut c.branches {
                    f(when);
                    f(then);
                }
                c.otherwise.iter_mut().for_each(f);
            }
        }
    }

    /// Calls `f` for this expression and everything in it, outermost first.
    pub fn walk(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        match self {
            Expr::Null
            | Expr::Int(_)
            | Expr::Real(_)
            | Expr::Text(_)
            | Expr::Blob(_)
            | Expr::Name(_)
            | Expr::Column(_)
            | Expr::Rowid
            | Expr::Unknown(_) => {}
            Expr::Unary(_, e) | Expr::IsNull(e, _) | Expr::Cast(e, _) | Expr::Collate(e, _) => e.walk(f),
            Expr::Truth { value, .. } => value.walk(f),
            Expr::Binary(_, sides) => {
                sides.0.walk(f);
                sides.1.walk(f);
            }
            Expr::And(list) | Expr::Or(list) | Expr::Concat(list) | Expr::Call(_, list) => list.iter().for_each(|e| e.walk(f)),
            Expr::Between(b) => [&b.value, &b.low, &b.high].into_iter().for_each(|e| e.walk(f)),
            Expr::In(i) => {
                i.value.walk(f);
                i.list.iter().for_each(|e| e.walk(f));
            }
            Expr::Like(l) => {
                l.value.walk(f);
                l.pattern.walk(f);
                l.escape.iter().for_each(|e| e.walk(f));
            }
            Expr::Case(c) => {
                c.base.iter().for_each(|e| e.walk(f));
                for (when, then) in &c.branches {
                    when.walk(f);
                    then.walk(f);
                }
                c.otherwise.iter().for_each(|e| e.walk(f));
            }
        }
    }

    /// The first thing in it that cannot be evaluated here, if there is one.
    #[must_use]
    pub fn unknown(&self) -> Option<Unknown> {
        self.unknowns().into_iter().next()
    }

    /// Everything in it that cannot be evaluated here, in the order of the text.
    #[must_use]
    pub fn unknowns(&self) -> Vec<Unknown> {
        let mut found = Vec::new();
        self.walk(&mut |e| match e {
            Expr::Unknown(u) => found.push(u.clone()),
            Expr::Name(n) => found.push(Unknown::Column(n.name.clone())),
            _ => {}
        });
        found
    }

    /// Whether it is the same for every row.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |e| constant &= !matches!(e, Expr::Column(_) | Expr::Rowid | Expr::Name(_) | Expr::Unknown(_)));
        constant
    }

    /// The columns it reads, ascending and each once.
    #[must_use]
    pub fn columns(&self) -> Vec<usize> {
        let mut out = Vec::new();
        self.walk(&mut |e| {
            if let Expr::Column(c) = e {
                out.push(c.index);
            }
        });
        out.sort_unstable();
        out.dedup();
        out
    }
}
