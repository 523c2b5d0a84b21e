//! The indexes that SQLite makes for UNIQUE and PRIMARY KEY constraints: their names, and rows of the schema for those that
//! have none.

use super::{Catalog, claim_name, read_row, site};
use crate::finding::{Code, Defect, Findings};
use crate::ids::ObjectId;
use crate::schema::{Name, ObjectKind, SchemaRow};

impl Catalog {
    /// The table of an automatic index stands in its row twice: as `tbl_name`, and within the name. Where one of the two names
    /// a table with that constraint and the other none, the row is read by the first, and as an index whatever its type says.
    pub(super) fn mend_autoindexes(&mut self, findings: &mut Findings) {
        let mut mended = Vec::new();
        for object in &self.objects {
            let Some(number) = object.autoindex else { continue };
            let makes = |name: &[u8]| {
                let table = self.by_name(name)?;
                let keys = &table.table_def()?.unique;
                keys.iter().any(|k| k.number == number).then(|| table.name.as_bytes().to_vec())
            };
            let (by_column, by_name) = (makes(object.table_name.as_bytes()), table_of(object.name.as_bytes()).and_then(makes));
            match (by_column, by_name) {
                (Some(table), None) | (None, Some(table)) => mended.push((object.id, table, number)),
                // Only its type is lost.
                (Some(table), Some(other)) if table == other && object.excluded == Some(Code::TypeUnknown) => {
                    mended.push((object.id, table, number));
                }
                _ => {}
            }
        }
        for (id, table, number) in mended {
            let name = name_of(&table, number);
            let key = name.to_ascii_lowercase();
            if self.names.get(&key).is_some_and(|&other| other != id) {
                continue;
            }
            let Some(object) = self.objects.get_mut(id.index()) else { continue };
            let detail = format!("{}: its row says {} on {}", String::from_utf8_lossy(&name), object.name, object.table_name);
            findings.add_with(Defect::new(Code::AutoindexMissing, 0, 0, 0), site(object), detail);
            self.names.remove(&object.name.as_bytes().to_ascii_lowercase());
            self.names.insert(key, id);
            (object.name, object.table_name) = (Name::new(&name), Name::new(&table));
            // The constraint says what it is, whatever its type says.
            object.excluded = object.excluded.filter(|&code| code != Code::TypeUnknown);
            if let Some(row) = &mut object.row {
                (row.kind, row.name, row.table) = (object.kind.word().to_vec(), name, table);
            }
        }
    }

    /// Automatic indexes that a constraint makes and the schema has no row for. SQLite cannot work with such a table, so each
    /// stands behind the rows that were read, without a root.
    pub(super) fn add_missing_autoindexes(&mut self, findings: &mut Findings) {
        let mut missing = Vec::new();
        let mut rowid = self.objects.iter().filter_map(|o| Some(o.row.as_ref()?.rowid)).max().unwrap_or(0);
        for object in self.objects.iter().filter(|o| o.problem.is_none() && o.excluded.is_none() && o.id != ObjectId::SCHEMA) {
            let (Some(table), Some(row)) = (object.table_def(), &object.row) else { continue };
            for key in table.unique.iter().filter(|k| !(table.without_rowid && k.primary)) {
                let name = name_of(&row.name, key.number);
                if self.names.contains_key(&name.to_ascii_lowercase()) {
                    continue;
                }
                rowid = rowid.saturating_add(1);
                let kind = ObjectKind::Index.word().to_vec();
                missing.push(SchemaRow {
                    rowid,
                    kind,
                    name,
                    table: row.name.clone(),
                    sql: None,
                    site: row.site,
                    needs_tree: row.needs_tree,
                    ..SchemaRow::default()
                });
            }
        }
        for row in missing {
            let Ok(number) = u32::try_from(self.objects.len()) else { break };
            let mut quiet = Findings::new(0);
            let object = claim_name(&mut self.names, read_row(ObjectId(number), row, &mut quiet), findings);
            findings.add_with(Defect::new(Code::AutoindexMissing, 0, 0, 0), site(&object), object.name.text());
            self.objects.push(object);
        }
    }
}

/// `sqlite_autoindex_T_N`.
pub(in crate::schema) fn name_of(table: &[u8], number: u32) -> Vec<u8> {
    [b"sqlite_autoindex_", table, b"_", number.to_string().as_bytes()].concat()
}

/// The T of `sqlite_autoindex_T_N`.
fn table_of(name: &[u8]) -> Option<&[u8]> {
    name.get(b"sqlite_autoindex_".len()..name.iter().rposition(|&b| b == b'_')?)
}

/// The N of `sqlite_autoindex_T_N`.
pub(super) fn number(name: &[u8]) -> Option<u32> {
    let prefix = b"sqlite_autoindex_";
    if !name.get(..prefix.len())?.eq_ignore_ascii_case(prefix) {
        return None;
    }
    let digits = name.get(name.iter().rposition(|&b| b == b'_')?.checked_add(1)?..)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
