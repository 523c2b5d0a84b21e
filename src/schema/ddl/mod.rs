//! CREATE text to definitions.
//!
//! Text that SQLite accepts goes through the crate `sqlite3-parser` and is taken over into our own types; everything
//! else goes to a tolerant reader. [`parse`] always gives something, and says what was wrong with the text.

mod create;
mod damaged;
mod definition;
mod expression;
pub mod limits;
pub mod mend;
pub mod pieces;
mod refused;
mod table;
pub mod token;

use std::panic::{AssertUnwindSafe, catch_unwind};

use sqlite3_parser::ast;
use sqlite3_parser::{Bump, FallibleIterator as _};

pub use definition::*;
pub(super) use table::column_expr;
pub use table::{MAX_COLUMNS, TableScope};

use crate::expr::name::Name;
use crate::finding::{Code, Defect};
use crate::ids::{small, wide};
use damaged::Verb;
use expression::{Taker, to_valid};
use token::{Kind, Token};

/// Parentheses and CASE in one another before text is not given to the parser: SQLite's own limit on expression depth.
pub const MAX_NESTING: usize = 1000;

/// Entries of one comma list before text is not given to the parser, whose look for duplicate names is quadratic. Five
/// times SQLite's default limit on columns.
const MAX_LIST: usize = 10_000;

/// Bytes of text before it is not given to the parser. SQLite's own default limit is 10^9; no schema has a statement of
/// 16 MB, and the tokens of one take a few hundred MB.
const MAX_TEXT: usize = 16 << 20;

/// What the schema row says that the object is; decides how text is read whose own verb is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// A table.
    Table,
    /// A table without a root page, so a virtual one.
    Virtual,
    /// An index.
    Index,
    /// A view.
    View,
    /// A trigger.
    Trigger,
}

/// Reads CREATE text, as it stands in `sqlite_schema.sql`, converted to UTF-8.
#[must_use]
pub fn parse(sql: &[u8]) -> Parsed {
    parse_as(sql, Hint::None)
}

/// As [`parse`], for text of which the kind of object is known. SQLite reads up to the first NUL; only where that is no
/// statement are the bytes behind it looked at, too.
#[must_use]
pub fn parse_as(sql: &[u8], hint: Hint) -> Parsed {
    let Some(end) = sql.iter().position(|&b| b == 0) else { return parse_whole(sql, hint) };
    let seen = parse_whole(sql.get(..end).unwrap_or(sql), hint);
    if seen.problem.is_none() {
        return seen;
    }
    let all = parse_whole(sql, hint);
    Parsed { problem: all.problem.or(seen.problem), ..all }
}

fn parse_whole(sql: &[u8], hint: Hint) -> Parsed {
    let kept = sql.get(..MAX_TEXT).unwrap_or(sql);
    let tokens = damaged::all(kept);
    let refused = if kept.len() < sql.len() {
        Err("the text is longer than 16 MB".to_owned())
    } else {
        guard(&tokens).and_then(|()| limits::within(&tokens))
    };
    let parsed = refused.and_then(|()| accepted(kept, &tokens));
    match parsed {
        Ok((definition, None)) => {
            let parameter = !matches!(definition, Definition::Virtual(_)) && tokens.iter().any(is_parameter);
            let words = parameter.then(|| "parameters are not allowed in a schema".to_owned());
            let words = words.or_else(|| refused::reason(&tokens));
            let problem = words.map(|w| problem(sql, &tokens, w));
            Parsed { definition, problem }
        }
        Ok((definition, Some(words))) => Parsed { definition, problem: Some(problem(sql, &tokens, words)) },
        Err(words) => {
            let kind = match hint {
                Hint::None => Verb::None,
                Hint::Table => Verb::Table,
                Hint::Virtual => Verb::Virtual,
                Hint::Index => Verb::Index { unique: false },
                Hint::View => Verb::View,
                Hint::Trigger => Verb::Trigger,
            };
            Parsed { definition: damaged::read(kept, &tokens, kind), problem: Some(problem(sql, &tokens, words)) }
        }
    }
}

/// Whether a token is a parameter, as statements have them that are run with values: SQLite opens no schema that has one.
fn is_parameter(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Byte(b'?' | b':' | b'@' | b'#')) || (token.kind == Kind::Word && token.odd)
}

fn problem(sql: &[u8], tokens: &[Token<'_>], words: String) -> TextProblem {
    let at = tokens.iter().find(|t| t.odd).map_or(0, |t| t.at);
    TextProblem { defect: Defect::new(Code::SqlNotParsed, small(at), wide(sql.len()), 0), words }
}

/// Whether the parser may have the text: its tree is as deep as the text nests, and its lists are checked pairwise.
fn guard(tokens: &[Token<'_>]) -> Result<(), String> {
    let mut depth = 0_usize;
    let mut commas = vec![0_usize];
    for token in tokens {
        match token.kind {
            Kind::Byte(b'(') => {
                depth = depth.saturating_add(1);
                commas.push(0);
            }
            Kind::Byte(b')') => {
                depth = depth.saturating_sub(1);
                if commas.len() > 1 {
                    commas.pop();
                }
            }
            Kind::Byte(b',') => {
                if let Some(n) = commas.last_mut() {
                    *n = n.saturating_add(1);
                    if *n > MAX_LIST {
                        return Err(format!("a list has more than {MAX_LIST} entries"));
                    }
                }
            }
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(format!("parentheses are nested deeper than {MAX_NESTING}"));
        }
    }
    Ok(())
}

/// Text that the SQL grammar accepts: its definition, and the reason why SQLite would still refuse it.
fn accepted(sql: &[u8], tokens: &[Token<'_>]) -> Result<(Definition, Option<String>), String> {
    let Some((text, mapped)) = to_valid(sql) else {
        return Err("the text is not valid UTF-8".to_owned());
    };
    let taker = Taker { mapped };
    let bump = Bump::new();
    // A panic of the parser (it has some, for text that the guards should keep away) costs this object, not the run.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut parser = sqlite3_parser::lexer::sql::Parser::new(&bump, text.as_bytes());
        let first = match parser.next() {
            Ok(Some(ast::Cmd::Stmt(stmt))) => take(taker, sql, tokens, &stmt),
            Ok(Some(ast::Cmd::Explain(_) | ast::Cmd::ExplainQueryPlan(_))) => Err("EXPLAIN is no CREATE statement".to_owned()),
            Ok(None) => Err("the text is empty".to_owned()),
            Err(e) => Err(e.to_string()),
        }?;
        match parser.next() {
            Ok(None) => Ok(first),
            _ => Err("text follows the statement".to_owned()),
        }
    }));
    result.unwrap_or_else(|_| Err("the SQL parser failed on the text".to_owned()))
}

fn take(taker: Taker, sql: &[u8], tokens: &[Token<'_>], stmt: &ast::Stmt<'_>) -> Result<(Definition, Option<String>), String> {
    let rest = || tokens.get(damaged::verb(tokens).1..).unwrap_or_default();
    Ok(match stmt {
        ast::Stmt::CreateTable { tbl_name, body, .. } => {
            let (mut table, problem) = taker.table(tbl_name, body);
            for (check, text) in table.checks.iter_mut().zip(create::check_texts(sql)) {
                check.text = text;
            }
            (Definition::Table(Box::new(table)), problem)
        }
        ast::Stmt::CreateIndex { unique, idx_name, tbl_name, columns, where_clause, .. } => {
            let (index, problem) = taker.index(*unique, idx_name, tbl_name, columns, where_clause.as_ref());
            (Definition::Index(Box::new(index)), problem)
        }
        ast::Stmt::CreateView { view_name, columns, select, .. } => {
            let columns = columns.unwrap_or_default().iter().map(|c| taker.name(c.col_name.0)).collect();
            let sources = damaged::sources(rest());
            let view = ViewDef { name: taker.name(view_name.name.0), columns, select: taker.select(select), sources };
            (Definition::View(Box::new(view)), None)
        }
        ast::Stmt::CreateTrigger { trigger_name, tbl_name, .. } => {
            let body = rest();
            let begin = body.iter().position(|t| t.is("BEGIN")).unwrap_or(0);
            let mut sources = damaged::sources(body.get(begin..).unwrap_or_default());
            for name in when_sources(body.get(..begin).unwrap_or_default()) {
                if !sources.iter().any(|s| s.same(name.as_bytes())) {
                    sources.push(name);
                }
            }
            let trigger = TriggerDef { name: taker.name(trigger_name.name.0), table: taker.name(tbl_name.name.0), sources };
            (Definition::Trigger(Box::new(trigger)), None)
        }
        ast::Stmt::CreateVirtualTable { .. } => (Definition::Virtual(damaged::virtual_table(sql, rest())), None),
        _ => return Err("not a CREATE statement of a schema".to_owned()),
    })
}

/// Tables that the WHEN clause of a trigger reads through a subquery.
fn when_sources(head: &[Token<'_>]) -> Vec<Name> {
    let when = head.iter().position(|t| t.is("WHEN")).unwrap_or(head.len());
    damaged::sources(head.get(when..).unwrap_or_default())
}
