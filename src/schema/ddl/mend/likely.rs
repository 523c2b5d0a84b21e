//! Which texts stand, and how far one is from what people write.

use super::super::token::tokens;
use super::super::{Definition, Hint, TableDef};
use super::Known;
use super::words::{WORDS, is_type_word};

/// Whether the text is one that SQLite accepts and that says what the row does. SQLite's own look-up of names in CHECK and in
/// generated columns is part of it.
#[must_use]
pub fn stands(sql: &[u8], definition: &Definition, known: &Known<'_>) -> bool {
    let Some((name, table)) = definition.names() else { return false };
    let kind = matches!(
        (definition, known.hint),
        (_, Hint::None)
            | (Definition::Table(_), Hint::Table)
            | (Definition::Index(_), Hint::Index)
            | (Definition::View(_), Hint::View)
            | (Definition::Trigger(_), Hint::Trigger)
            | (Definition::Virtual(_), Hint::Virtual)
    );
    let unresolved = definition.as_table().is_some_and(TableDef::has_unresolved);
    let tree = definition.as_table().is_none_or(|t| known.without_rowid.is_none_or(|w| w == t.without_rowid));
    let owner = !matches!(definition, Definition::Index(_) | Definition::Trigger(_)) || table.same(known.table);
    kind && tree && owner && !unresolved && name.same(known.name) && !tokens(sql).any(|t| t.odd)
}

/// How far the types of a table are from those that people write: a type of words that are none, a column that is called as
/// a type and has none, a comma without the space that others have. A table without any types has none.
#[must_use]
pub fn style(sql: &[u8], table: &TableDef) -> u32 {
    let typed = table.columns.iter().any(|c| c.decl_type.is_some());
    let mut style = 0_u32;
    for column in &table.columns {
        style = style.saturating_add(match &column.decl_type {
            None if is_type_word(column.name.as_bytes()) => 4,
            None => u32::from(typed),
            Some(t) => {
                let words = t.split(|b| !(b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80)).filter(|w| !w.is_empty());
                let odd = words.filter(|w| !is_type_word(w) && !w.iter().all(u8::is_ascii_digit)).count();
                u32::try_from(odd).unwrap_or(u32::MAX).saturating_mul(2)
            }
        });
        let name = column.name.as_bytes();
        if name.is_empty() || name.iter().any(|b| b.is_ascii_whitespace() || *b == b',' || *b == b'(' || *b == b')') {
            style = style.saturating_add(2);
        }
        if WORDS.iter().any(|w| name.eq_ignore_ascii_case(w.as_bytes())) && !is_type_word(name) {
            style = style.saturating_add(1);
        }
    }
    let after = |b: &[u8]| b.first().is_some_and(u8::is_ascii_whitespace);
    let commas = tokens(sql).filter(|t| t.byte(b',')).map(|t| after(sql.get(t.end()..).unwrap_or_default()));
    let (with, without) =
        commas.fold((0_u32, 0_u32), |(a, b), spaced| if spaced { (a.saturating_add(1), b) } else { (a, b.saturating_add(1)) });
    style.saturating_add(with.min(without))
}

/// Whether a table that SQLite accepts looks damaged: a column that is called as a type and has none, or a key whose type is
/// INTEGER but for one letter.
#[must_use]
pub fn is_odd(sql: &[u8], table: &TableDef) -> bool {
    let called = table.columns.iter().any(|c| c.decl_type.is_none() && is_type_word(c.name.as_bytes()));
    let near = |t: &[u8]| {
        let differ = t.iter().zip(b"INTEGER").filter(|(a, b)| !a.eq_ignore_ascii_case(b)).count();
        t.len() == 7 && differ == 1
    };
    let key = table.primary_key.as_ref().and_then(|k| k.columns.first()).and_then(|k| table.columns.get(k.column));
    called || near_alias(sql, table) || (table.rowid_alias.is_none() && key.and_then(|c| c.decl_type.as_deref()).is_some_and(near))
}

/// Whether the text says INTEGER PRIMARY KEY, maybe but for one byte, and the table has no such column.
fn near_alias(sql: &[u8], table: &TableDef) -> bool {
    let want = b"INTEGER PRIMARY KEY";
    let near = |w: &[u8]| w.iter().zip(want).filter(|(a, b)| !a.eq_ignore_ascii_case(b)).count() <= 1;
    table.rowid_alias.is_none() && !table.without_rowid && sql.windows(want.len()).any(near)
}
