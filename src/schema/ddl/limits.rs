//! What SQLite lets a CREATE text hold, by its tokens alone: before a parser runs over the text, and before it may stand in a copy.
//!
//! SQLite opens no schema that has one text beyond its limits, and refuses every table of it. The limits are the defaults of
//! `sqliteLimit.h`; the depth of the parser is that of releases before 3.46, whose stack has a hundred places. How many places
//! a construct takes was measured on 3.40.1 (`tests/it/oracle_schema/limits.rs`); where that is not exact, more is counted.

use super::token::{Kind, Token};

/// `SQLITE_MAX_COLUMN`: columns of a table, and terms of an index.
const COLUMNS: usize = 2000;
/// `SQLITE_MAX_EXPR_DEPTH`.
const DEPTH: usize = 1000;
/// `YYSTACKDEPTH` of releases before 3.46.
const STACK: usize = 100;
/// `SQLITE_MAX_COMPOUND_SELECT`.
const COMPOUND: usize = 500;
/// `SQLITE_MAX_FUNCTION_ARG`.
const ARGUMENTS: usize = 127;
/// Words of the type of a column, which the grammar takes as one token; no type that people write has a tenth of them.
const TYPE_WORDS: usize = 64;

/// Places that a statement takes before its first expression.
const TABLE: usize = 9;
const OTHER: usize = 17;

/// An operator that waits for its right side.
#[derive(Debug, Clone, Copy)]
struct Pending {
    precedence: u8,
    places: usize,
}

/// What is open: a parenthesis, a CASE, or the statement itself.
#[derive(Debug, Clone, Default)]
struct Level {
    /// Places of the parser that it takes itself.
    places: usize,
    /// Places of the clause that is read in it, such as WHERE.
    clause: usize,
    pending: Vec<Pending>,
    /// Operators of the expression at hand, and the depth of the deepest operand in parentheses.
    operators: usize,
    inner: usize,
    commas: usize,
    selects: usize,
    is_case: bool,
    is_call: bool,
    is_list: bool,
    /// It stands where a table does.
    is_source: bool,
}

impl Level {
    fn depth(&self) -> usize {
        self.operators.saturating_add(self.inner).saturating_add(1)
    }

    fn stack(&self) -> usize {
        let list = if self.commas > 0 && !self.is_case { 2 } else { 0 };
        let pending = self.pending.iter().map(|p| p.places).fold(0, usize::saturating_add);
        self.places.saturating_add(self.clause).saturating_add(list).saturating_add(pending)
    }

    /// A new expression begins.
    fn restart(&mut self) {
        self.pending.clear();
        (self.operators, self.inner) = (0, 0);
    }

    fn operator(&mut self, precedence: u8) {
        self.operators = self.operators.saturating_add(1);
        while self.pending.last().is_some_and(|p| p.precedence >= precedence) {
            self.pending.pop();
        }
        self.pending.push(Pending { precedence, places: 2 });
    }

    fn prefix(&mut self, precedence: u8) {
        self.operators = self.operators.saturating_add(1);
        self.pending.push(Pending { precedence, places: 1 });
    }
}

/// The binding power of an operator that is a word.
fn word_operator(token: &Token<'_>) -> Option<u8> {
    const WORDS: &[(&str, u8)] = &[
        ("OR", 1),
        ("AND", 2),
        ("IS", 4),
        ("ISNULL", 4),
        ("NOTNULL", 4),
        ("LIKE", 4),
        ("GLOB", 4),
        ("MATCH", 4),
        ("REGEXP", 4),
        ("IN", 4),
        ("BETWEEN", 4),
        ("ESCAPE", 6),
    ];
    WORDS.iter().find(|(word, _)| token.is(word)).map(|(_, precedence)| *precedence)
}

fn byte_operator(b: u8) -> Option<u8> {
    Some(match b {
        b'=' | b'!' => 4,
        b'<' | b'>' => 5,
        b'&' | b'|' => 7,
        b'+' | b'-' => 8,
        b'*' | b'/' | b'%' => 9,
        _ => return None,
    })
}

/// Whether SQLite reads a text with these tokens.
///
/// # Errors
/// The limit that it passes, in words.
pub fn within(tokens: &[Token<'_>]) -> Result<(), String> {
    let kind = |word: &str| tokens.iter().take(6).any(|t| t.is(word));
    let is_table = kind("TABLE") && !kind("VIRTUAL");
    if is_table {
        types(tokens)?;
    }
    if kind("VIRTUAL") {
        return Ok(());
    }
    let mut levels = vec![Level { places: if is_table { TABLE } else { OTHER }, ..Level::default() }];
    // Whether what comes is an operand.
    let mut operand = true;
    let mut previous: Option<&Token<'_>> = None;
    for (i, token) in tokens.iter().enumerate() {
        let is_outermost = levels.len() == 1;
        let in_columns = levels.len() == 2 && levels.last().is_some_and(|l| l.is_list);
        let Some(level) = levels.last_mut() else { return Ok(()) };
        match token.kind {
            Kind::Byte(b'(') => {
                let called = previous.is_some_and(|p| is_name_of_call(p)) && !is_outermost;
                let is_source = previous.is_some_and(|p| {
                    p.is("FROM") || p.is("JOIN") || (p.byte(b'(') && level.is_source) || (p.byte(b',') && level.is_source)
                });
                let special = previous.is_some_and(|p| p.is("OVER") || p.is("FILTER"));
                let places = match previous {
                    Some(p) if p.is("CAST") => 2,
                    _ if is_source => 2,
                    _ if special => 9,
                    _ if called => 3,
                    _ => 1,
                };
                let open = level.stack();
                levels.push(Level {
                    places: open.saturating_add(places),
                    is_call: called,
                    is_source,
                    is_list: is_outermost && (is_table || kind("INDEX")),
                    ..Level::default()
                });
                operand = true;
            }
            Kind::Byte(b')') => {
                if levels.len() > 1
                    && let Some(closed) = levels.pop()
                    && let Some(level) = levels.last_mut()
                {
                    level.inner = level.inner.max(closed.depth());
                }
                operand = false;
            }
            Kind::Byte(b',') => {
                level.restart();
                level.commas = level.commas.saturating_add(1);
                let (is_call, is_list, commas) = (level.is_call, level.is_list, level.commas);
                if is_call && commas >= ARGUMENTS {
                    return Err(format!("a function has more than {ARGUMENTS} arguments"));
                }
                if is_list && commas >= COLUMNS.saturating_mul(if is_table { 5 } else { 1 }) {
                    return Err(format!("a list has more than {COLUMNS} entries"));
                }
                operand = true;
            }
            Kind::Byte(b';') => {
                level.restart();
                (level.commas, level.clause, level.selects) = (0, 0, 0);
                operand = true;
            }
            Kind::Byte(b) if byte_operator(b).is_some() || b == b'~' => {
                let follows =
                    previous.is_some_and(|p| p.end() == token.at && matches!(p.kind, Kind::Byte(x) if byte_operator(x).is_some()));
                // `<=`, `||`, `->>` are one operator; a `*` of a result list is an operand.
                if follows && !operand_sign(b) {
                } else if operand {
                    if b != b'*' {
                        level.prefix(11);
                    }
                } else {
                    level.operator(byte_operator(b).unwrap_or(11));
                }
                operand = b != b'*' || !operand;
            }
            Kind::Byte(_) => {}
            Kind::Word if token.is("CASE") => {
                let places = level.stack().saturating_add(1);
                levels.push(Level { places, is_case: true, ..Level::default() });
                operand = true;
            }
            Kind::Word if level.is_case && (token.is("WHEN") || token.is("THEN") || token.is("ELSE")) => {
                level.restart();
                level.clause = match token.text.first() {
                    Some(b'W' | b'w') => 3,
                    Some(b'T' | b't') => 4,
                    _ => 3,
                };
                operand = true;
            }
            Kind::Word if level.is_case && token.is("END") => {
                if let Some(closed) = levels.pop()
                    && let Some(level) = levels.last_mut()
                {
                    level.inner = level.inner.max(closed.depth());
                }
                operand = false;
            }
            Kind::Word if operand && (token.is("NOT") || token.is("EXISTS")) => {
                level.prefix(if token.is("NOT") { 3 } else { 11 });
            }
            Kind::Word if token.is("SELECT") || token.is("VALUES") => {
                level.restart();
                level.clause = 4;
                level.commas = 0;
                level.selects = level.selects.saturating_add(1);
                if level.selects > COMPOUND && token.is("SELECT") {
                    return Err(format!("a compound SELECT has more than {COMPOUND} terms"));
                }
                operand = true;
            }
            Kind::Word if token.is("FROM") || token.is("WHERE") || token.is("HAVING") || token.is("ORDER") || token.is("GROUP") => {
                level.restart();
                level.commas = 0;
                if level.selects > 0 {
                    level.clause = 6;
                }
                operand = true;
            }
            Kind::Word if token.is("WITH") && tokens.get(i.saturating_add(2)).is_some_and(|t| t.is("AS")) => level.clause = 5,
            Kind::Word if in_columns && is_clause(token) => {
                level.restart();
                operand = true;
            }
            Kind::Word if !operand && (word_operator(token).is_some() || token.is("NOT")) => {
                // `NOT` belongs to the operator that follows it.
                if let Some(precedence) = word_operator(token) {
                    level.operator(precedence);
                }
                operand = !token.is("ISNULL") && !token.is("NOTNULL");
            }
            _ => operand = false,
        }
        let Some(level) = levels.last() else { return Ok(()) };
        if level.depth() > DEPTH && !(is_outermost && is_table) {
            return Err(format!("an expression is deeper than {DEPTH}"));
        }
        if level.stack() > STACK {
            return Err(format!("it is nested deeper than the parser of SQLite 3.45 and before goes ({STACK} places)"));
        }
        previous = Some(token);
    }
    Ok(())
}

/// Whether a byte behind an operator can be a sign of its own.
fn operand_sign(b: u8) -> bool {
    matches!(b, b'-' | b'+' | b'~')
}

/// Whether a parenthesis behind this token holds arguments.
fn is_name_of_call(token: &Token<'_>) -> bool {
    const NONE: &[&str] = &[
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "LIKE",
        "GLOB",
        "BETWEEN",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "CHECK",
        "AS",
        "DEFAULT",
        "ALL",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "SELECT",
        "WHERE",
        "EXISTS",
        "VALUES",
        "ON",
        "BY",
        "USING",
        "SET",
        "RETURNING",
        "HAVING",
        "DISTINCT",
        "OVER",
        "FILTER",
        "CAST",
        "FROM",
        "JOIN",
        "KEY",
        "UNIQUE",
        "REFERENCES",
        "ALWAYS",
    ];
    token.is_name() && token.kind != Kind::Quoted(b'\'') && !NONE.iter().any(|word| token.is(word))
}

/// Words that begin a constraint, before which an expression has ended.
fn is_clause(token: &Token<'_>) -> bool {
    ["CHECK", "DEFAULT", "UNIQUE", "PRIMARY", "REFERENCES", "FOREIGN", "CONSTRAINT", "GENERATED", "AS", "COLLATE"]
        .iter()
        .any(|w| token.is(w))
}

/// Names behind one another in the list of columns: the type of one column.
fn types(tokens: &[Token<'_>]) -> Result<(), String> {
    let (mut words, mut depth) = (0_usize, 0_usize);
    for token in tokens {
        match token.kind {
            Kind::Byte(b'(') => depth = depth.saturating_add(1),
            Kind::Byte(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_word = depth == 1 && token.is_name() && !is_clause(token) && !["NOT", "NULL", "ON", "KEY"].iter().any(|w| token.is(w));
        words = if is_word { words.saturating_add(1) } else { 0 };
        if words > TYPE_WORDS {
            return Err(format!("a type has more than {TYPE_WORDS} words"));
        }
    }
    Ok(())
}
