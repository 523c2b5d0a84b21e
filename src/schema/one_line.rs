//! SQL statements on one line, safe to give to the `sqlite3` shell.
//!
//! The shell takes a line that begins with a dot for a command of its own, whenever no statement is open. Text of the
//! evidence must never get there: what is written is the first complete statement of a text and nothing behind it, token
//! by token, without comments and without line ends.

use std::collections::BTreeSet;

use crate::schema::ddl::token::{Kind, Token, tokens};

/// Bytes of a statement at most; SQLite's own limit for a statement is a thousand times that.
const LONGEST: usize = 1 << 20;

/// What becomes of line ends inside names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// The statement is refused.
    Refused,
    /// They stay. The shell has a statement and a quote open there, and takes no line for a command of its own.
    InNames,
}

/// Why a text cannot be written as one line.
pub(crate) type Refusal = &'static str;

/// A string of SQL, from its text with doubled quotes, that has no line end in it: a shell changes them (CR before LF), and
/// takes a line that begins with a dot for a command. Line ends come from `char()`, in the place of marks that the text
/// does not have; a chain of `||` would reach SQLite's limit of depth at a thousand lines.
pub(crate) fn string(doubled: &str) -> String {
    let mut out = format!("'{doubled}'");
    for (end, letter, number) in [('\n', 'n', 10), ('\r', 'r', 13)] {
        if !doubled.contains(end) {
            continue;
        }
        let mark = free_mark(doubled, &format!("\\{letter}"));
        out = format!("replace({},'{mark}',char({number}))", out.replace(end, &mark));
    }
    out
}

/// A mark that a text does not have: the plain one, or the one with the first number that no mark in the text has. One pass,
/// because the text may be full of marks.
fn free_mark(text: &str, plain: &str) -> String {
    if !text.contains(plain) {
        return plain.to_owned();
    }
    let numbered = text.split(plain).skip(1).filter_map(|behind| {
        let digits = behind.bytes().take(10).take_while(u8::is_ascii_digit).count();
        let (number, rest) = behind.split_at_checked(digits)?;
        rest.starts_with('_').then(|| number.parse::<u32>().ok())?
    });
    let taken: BTreeSet<u32> = numbered.collect();
    let free = (0_u32..).find(|n| !taken.contains(n)).unwrap_or(u32::MAX);
    format!("{plain}{free}_")
}

/// A statement that this program made around names of the evidence.
pub(crate) fn made(sql: &str) -> Result<String, Refusal> {
    write(sql.as_bytes(), false, Breaks::Refused)
}

/// The first complete statement of a text of the schema, which begins with CREATE and one of these words behind it.
pub(crate) fn declared(sql: &[u8], is_trigger: bool, breaks: Breaks) -> Result<String, Refusal> {
    let words: Vec<Token<'_>> = tokens(sql).take(4).collect();
    let kind = words.get(1..).unwrap_or_default().iter().find(|t| !["TEMP", "TEMPORARY", "UNIQUE"].iter().any(|w| t.is(w)));
    let known = ["TABLE", "VIRTUAL", "INDEX", "VIEW", "TRIGGER"].iter().any(|word| kind.is_some_and(|t| t.is(word)));
    if !words.first().is_some_and(|t| t.is("CREATE")) || !known {
        return Err("its text is no CREATE statement");
    }
    // A table's declaration in a schema never runs a query.
    if kind.is_some_and(|t| t.is("TABLE")) && tokens(sql).take_while(|t| !t.byte(b'(') && !t.byte(b';')).any(|t| t.is("AS")) {
        return Err("its text runs a query");
    }
    write(sql, is_trigger, breaks)
}

/// The tokens up to the end of the statement. A trigger ends with the END behind a semicolon, others with the first semicolon.
fn write(sql: &[u8], is_trigger: bool, breaks: Breaks) -> Result<String, Refusal> {
    let mut out = String::new();
    let (mut end, mut behind_semicolon, mut complete) = (0_usize, false, !is_trigger);
    let mut last: [Option<Token<'_>>; 3] = [None; 3];
    for token in tokens(sql) {
        if token.byte(b';') && !is_trigger {
            break;
        }
        if token.odd {
            return Err("its text holds a quote that is not closed or a character that SQL does not know");
        }
        if token.at > end && !out.is_empty() {
            out.push(' ');
        }
        end = token.end();
        out.push_str(&shown(&token, &last, breaks)?);
        if out.len() > LONGEST {
            return Err("its text is longer than a megabyte");
        }
        if is_trigger && behind_semicolon && token.is("END") {
            complete = true;
            break;
        }
        behind_semicolon = token.byte(b';');
        last = [Some(token), last[0], last[1]];
    }
    if out.is_empty() || !complete {
        return Err("its text is no complete statement");
    }
    out.push_str(";\n");
    Ok(out)
}

/// A token as it stands, when it has no line end; a string with line ends as an expression with the same value.
fn shown(token: &Token<'_>, last: &[Option<Token<'_>>; 3], breaks: Breaks) -> Result<String, Refusal> {
    let text = std::str::from_utf8(token.text).map_err(|_| "its text is not UTF-8")?;
    if text.contains('\0') {
        return Err("its text holds a NUL");
    }
    if !text.contains(['\n', '\r']) {
        return Ok(text.to_owned());
    }
    if token.kind != Kind::Quoted(b'\'') || !is_value(last) {
        if breaks == Breaks::InNames {
            return Ok(text.to_owned());
        }
        return Err("a line end stands inside a name");
    }
    Ok(string(text.get(1..text.len().saturating_sub(1)).unwrap_or_default()))
}

/// Whether a string in this place is a value and not a name: what stands before it is an operator or opens an expression.
fn is_value(last: &[Option<Token<'_>>; 3]) -> bool {
    const WORDS: [&str; 15] =
        ["THEN", "ELSE", "WHEN", "CASE", "LIKE", "GLOB", "AND", "OR", "NOT", "IS", "SELECT", "BETWEEN", "WHERE", "HAVING", "ON"];
    const RAISES: [&str; 3] = ["ABORT", "FAIL", "ROLLBACK"];
    let Some(before) = last[0] else { return false };
    match before.kind {
        // The message of RAISE has to be a literal.
        Kind::Byte(b',') => !last[1].is_some_and(|t| RAISES.iter().any(|w| t.is(w))),
        Kind::Byte(b) => b"(=<>|+-*/%&".contains(&b),
        Kind::Word => WORDS.iter().any(|w| before.is(w)),
        Kind::Quoted(_) | Kind::Number => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_one_line_and_what_follows_it_is_gone() {
        let view = declared(
            b"create view v as select a\n-- .shell x\nfrom t /* ; \n.shell y */ where b='it''s' ;\n.shell z\n",
            false,
            Breaks::Refused,
        );
        assert_eq!(view.as_deref(), Ok("create view v as select a from t where b='it''s';\n"));
        let trigger = b"create trigger g after insert on t begin select case 1 when 1 then 2 end; end;\n.shell x\n";
        assert_eq!(
            declared(trigger, true, Breaks::Refused).as_deref(),
            Ok("create trigger g after insert on t begin select case 1 when 1 then 2 end; end;\n")
        );
    }

    #[test]
    fn line_ends_inside_strings_survive_as_expressions() {
        let view = declared(b"CREATE VIEW v AS SELECT 'a\r\n.shell x\n', 1", false, Breaks::Refused);
        assert_eq!(
            view.as_deref(),
            Ok("CREATE VIEW v AS SELECT replace(replace('a\\r\\n.shell x\\n','\\n',char(10)),'\\r',char(13)), 1;\n")
        );
    }

    #[test]
    fn a_text_full_of_marks_gets_another_one() {
        let text: String = (0..100_000).map(|n| format!("\\n{n}_")).collect::<String>() + "\n";
        assert!(string(&text).ends_with("\\n100000_','\\n100000_',char(10))"));
        assert_eq!(string("\\n\n"), "replace('\\n\\n0_','\\n0_',char(10))");
    }

    #[test]
    fn what_cannot_be_one_line_is_refused() {
        for text in [
            &b"create index i on t(a collate \"x\n.shell y\n\")"[..],
            b".shell x",
            b"create trigger g after insert on t begin select 1",
            b"create view v as select 'open",
            b"create view v as select '\xff'",
            b"create table t as select writefile('x', 'y')",
            b"attach 'x' as y",
            b"create view v as select 1 as 'a\nb'",
        ] {
            assert!(declared(text, text.starts_with(b"create trigger"), Breaks::Refused).is_err(), "{text:?}");
        }
    }
}
