//! A case of the corpus: its recipe, the files made from it, and what a report on them must say.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rootpage::format::Value;
use rootpage::verbs::corpus::{Expect, ExpectTable, row_hash};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;

use crate::corrupt::{Damage, Evidence, Sight, apply};
use crate::judge::{self, Cell, Row, Tables};
use crate::pages::File;
use crate::rng::Rng;
use crate::{dbgen, sidecar};

/// The recipe, `case.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// What happened to this file, in a sentence.
    pub about: String,
    /// Where such damage was reported, or which clause asks for the case.
    pub origin: Option<String>,
    /// 1024 where nothing is said.
    pub page_size: Option<u32>,
    /// UTF-8 where nothing is said.
    pub encoding: Option<String>,
    /// 0 where nothing is said.
    #[serde(default)]
    pub auto_vacuum: u32,
    /// Reserved bytes of each page.
    #[serde(default)]
    pub reserved: u8,
    /// SQL in `_base/NAME.sql` that is run first.
    pub base: Option<String>,
    /// Makes the healthy database.
    #[serde(default)]
    pub sql: String,
    /// Run with a writable schema when the truth has been taken.
    pub schema_damage: Option<String>,
    /// Commits that stay in the WAL.
    pub wal: Option<Sidecar>,
    /// A transaction that is under way.
    pub journal: Option<Sidecar>,
    /// What is done to the files.
    #[serde(default)]
    pub damage: Vec<Damage>,
    /// Given to the tool with `--schema`.
    pub schema: Option<String>,
    /// What the report must say.
    pub expect: Wanted,
}

/// How a sidecar comes about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// Another database that it belongs to; none: the one of the case.
    pub foreign: Option<String>,
    /// Statements run one after the other; the files are taken behind the last, with the connection still open.
    pub steps: Vec<String>,
}

/// What the recipe says about the report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Exit code of check; none: not said.
    pub check: Option<u8>,
    /// Exit code of recover; none: not said.
    pub recover: Option<u8>,
    /// The verdict in a word; none: not said.
    pub class: Option<String>,
    /// Ids of problems that must be among the findings.
    #[serde(default)]
    pub codes: Vec<String>,
    /// Whose rows are the truth: "healthy" (before the damage, where nothing is said), "sqlite" (what it shows of the files), "none".
    pub truth: Option<String>,
    /// What differs from "every row of the truth that no damage touched".
    #[serde(default)]
    pub tables: BTreeMap<String, WantedTable>,
    /// Objects that cannot be in the copy.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Why the product does not meet this yet. The case is run all the same; when it is met, this line must go.
    pub open: Option<String>,
}

/// What the recipe says about a table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedTable {
    /// These rowids (or places in key order, where there are none) and no others are not live.
    pub gone: Option<Vec<i64>>,
    /// So many rows are live; what they hold is not said.
    pub rows: Option<u64>,
    /// At least so many rows are in the salvage database.
    pub aside: Option<u64>,
    /// The table is not in the copy.
    #[serde(default)]
    pub missing: bool,
    /// Nothing is said about the table.
    #[serde(default)]
    pub any: bool,
}

/// The hash of a table: the sum of its rows, whatever their order.
pub fn table_hash(rows: &[Row]) -> String {
    format!("{:016x}", rows.iter().fold(0_u64, |sum, r| sum.wrapping_add(row_hash(r.0, &values(&r.1)))))
}

fn values(cells: &[Cell]) -> Vec<Value<'_>> {
    cells
        .iter()
        .map(|c| match c {
            Cell::Null => Value::Null,
            Cell::Int(i) => Value::Int(*i),
            Cell::Real(bits) => Value::Real(f64::from_bits(*bits)),
            Cell::Text(b) => Value::Text(b),
            Cell::Blob(b) => Value::Blob(b),
        })
        .collect()
}

/// Tables that an expectation speaks of: those the user made, and of virtual tables the content.
pub fn is_spoken_of(name: &str, virtuals: &[String]) -> bool {
    !name.starts_with("sqlite_")
        && !virtuals.iter().any(|v| name.strip_prefix(v.as_str()).is_some_and(|rest| rest.starts_with('_') && rest != "_content"))
}

/// Names of the virtual tables.
pub fn virtual_names(con: &Connection) -> rusqlite::Result<Vec<String>> {
    Ok(judge::schema(con)?
        .into_iter()
        .filter(|r| r.3.as_ref().is_some_and(|s| s.to_uppercase().starts_with("CREATE VIRTUAL")))
        .map(|r| r.1)
        .collect())
}

/// Tables of a database that an expectation speaks of.
pub fn spoken_tables(con: &Connection) -> rusqlite::Result<Tables> {
    let virtuals = virtual_names(con)?;
    let mut tables = judge::tables(con)?;
    tables.retain(|name, _| is_spoken_of(name, &virtuals));
    Ok(tables)
}

/// Reads the recipe of a case folder.
pub fn read(dir: &Path) -> Result<Recipe> {
    let path = dir.join("case.toml");
    let mut recipe: Recipe = toml::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
    if let Some(base) = &recipe.base {
        let base = dir.join("../_base").join(format!("{base}.sql"));
        let first = fs::read_to_string(&base).with_context(|| base.display().to_string())?;
        recipe.sql = format!("{first}\n{}", recipe.sql);
    }
    Ok(recipe)
}

/// Files of a case: contents by name, `expect.json` among them.
pub fn make(recipe: &Recipe, name: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let dir = tempfile::tempdir()?;
    let seed = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193)) & 0x3fff_ffff;
    let db = dir.path().join("db.sqlite");
    healthy(&db, recipe, &recipe.sql)?;

    let mut evidence = Evidence::default();
    let mut truth = tables_of(&db)?;
    let sight = Sight { healthy: fs::read(&db)?, roots: roots(&db)? };
    evidence.files.insert(String::new(), sight.healthy.clone());
    if let Some(sql) = &recipe.schema_damage {
        let con = Connection::open(&db)?;
        judge::extend(&con)?;
        con.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
        con.execute_batch("PRAGMA foreign_keys=OFF; PRAGMA writable_schema=ON; PRAGMA journal_mode=MEMORY;")?;
        con.execute_batch(sql).context("schema_damage")?;
        drop(con);
        evidence.files.insert(String::new(), fs::read(&db)?);
    }
    if let Some(side) = &recipe.wal {
        let (main, mut wal, state) = sidecar_run(recipe, side, &db, dir.path(), "wal")?;
        sidecar::reseal_wal(&mut wal, seed);
        if let Some(main) = main {
            evidence.files.insert(String::new(), main);
            truth = state;
        }
        evidence.files.insert("-wal".to_owned(), wal);
    }
    if let Some(side) = &recipe.journal {
        let (main, mut journal, _) = sidecar_run(recipe, side, &db, dir.path(), "journal")?;
        sidecar::reseal_journal(&mut journal, seed, File::new(&sight.healthy).page_size);
        if let Some(main) = main {
            evidence.files.insert(String::new(), main);
        }
        evidence.files.insert("-journal".to_owned(), journal);
    }
    let mut rng = Rng::new(name);
    let before = evidence.files.get("").cloned().unwrap_or_default();
    for (n, damage) in recipe.damage.iter().enumerate() {
        apply(damage, &sight, &mut evidence, &mut rng).with_context(|| format!("damage {}: {}", n + 1, damage.op))?;
    }
    let kind = recipe.expect.truth.as_deref().unwrap_or("healthy");
    let mut touched = BTreeMap::new();
    match kind {
        "healthy" if recipe.wal.is_none() && recipe.schema_damage.is_none() && recipe.journal.is_none() => {
            let after = &evidence.files[""];
            let file = File::new(&before);
            for (table, root) in &sight.roots {
                let cells = file.tree(*root).cells;
                touched.insert(table.clone(), cells.iter().map(|c| c.touched(&file, after)).collect::<Vec<_>>());
            }
        }
        "healthy" | "whole" => {}
        "none" => truth.clear(),
        "sqlite" => truth = as_sqlite_shows(&evidence, dir.path())?,
        other => bail!("unknown truth {other}"),
    }
    let expect = expectation(recipe, &truth, &touched)?;
    let mut out: BTreeMap<String, Vec<u8>> =
        evidence.files.into_iter().map(|(suffix, data)| (format!("db.sqlite{suffix}"), data)).collect();
    if let Some(schema) = &recipe.schema {
        out.insert("schema.sql".to_owned(), schema.clone().into_bytes());
    }
    out.insert("expect.json".to_owned(), format!("{}\n", serde_json::to_string_pretty(&expect)?).into_bytes());
    Ok(out)
}

fn healthy(db: &Path, recipe: &Recipe, sql: &str) -> Result<()> {
    let encoding = recipe.encoding.as_deref().unwrap_or("UTF-8");
    let con = dbgen::create(db, recipe.page_size.unwrap_or(1024), encoding, recipe.auto_vacuum, recipe.reserved)?;
    judge::extend(&con)?;
    con.execute_batch(sql).context("sql")?;
    let said = judge::complaints(&con);
    ensure!(said.is_empty(), "the database is not healthy before the damage: {said:?}");
    con.close().map_err(|(_, e)| e)?;
    Ok(())
}

fn tables_of(db: &Path) -> Result<Tables> {
    Ok(spoken_tables(&judge::open(db)?)?)
}

fn roots(db: &Path) -> Result<BTreeMap<String, u32>> {
    let con = judge::open(db)?;
    let list: Vec<(String, u32)> = con
        .prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")?
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let data = fs::read(db)?;
    Ok(File::new(&data).roots(&list))
}

/// Runs the steps of a sidecar and takes the files while the connection is open: the main file (none for a foreign sidecar), the
/// sidecar, and the rows that the connection's last commit left.
fn sidecar_run(recipe: &Recipe, side: &Sidecar, db: &Path, dir: &Path, kind: &str) -> Result<(Option<Vec<u8>>, Vec<u8>, Tables)> {
    let work = dir.join(format!("{kind}.sqlite"));
    match &side.foreign {
        Some(sql) => healthy(&work, recipe, sql)?,
        None => drop(fs::copy(db, &work)?),
    }
    let con = Connection::open(&work)?;
    judge::extend(&con)?;
    con.execute_batch("PRAGMA foreign_keys=OFF")?;
    if kind == "wal" {
        con.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF; PRAGMA wal_checkpoint(TRUNCATE);",
        )?;
    } else {
        con.execute_batch("PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;")?;
    }
    for step in &side.steps {
        con.execute_batch(step).with_context(|| format!("step {step:?}"))?;
    }
    let sidecar = fs::read(dir.join(format!("{kind}.sqlite-{kind}"))).context("the steps left no sidecar")?;
    let main = fs::read(&work)?;
    let other = Connection::open(&work)?;
    let state = if kind == "wal" { spoken_tables(&other)? } else { Tables::new() };
    Ok((side.foreign.is_none().then_some(main), sidecar, state))
}

fn as_sqlite_shows(evidence: &Evidence, dir: &Path) -> Result<Tables> {
    let view = dir.join("view.sqlite");
    for (suffix, data) in &evidence.files {
        fs::write(dir.join(format!("view.sqlite{suffix}")), data)?;
    }
    Ok(spoken_tables(&Connection::open_with_flags(view, OpenFlags::SQLITE_OPEN_READ_WRITE)?)?)
}

fn expectation(recipe: &Recipe, truth: &Tables, touched: &BTreeMap<String, Vec<bool>>) -> Result<Expect> {
    let want = &recipe.expect;
    let mut tables = BTreeMap::new();
    for name in want.tables.keys() {
        ensure!(truth.contains_key(name) || want.tables[name].rows.is_some(), "the truth has no table {name}");
    }
    for (name, rows) in truth {
        let told = want.tables.get(name);
        if told.is_some_and(|t| t.missing || t.any) {
            continue;
        }
        let flags = touched.get(name);
        ensure!(flags.is_none_or(|f| f.len() == rows.len()), "table {name}: {} cells, {} rows", flags.map_or(0, Vec::len), rows.len());
        let live: Vec<Row> = rows
            .iter()
            .enumerate()
            .filter(|(n, row)| match told.and_then(|t| t.gone.as_ref()) {
                Some(gone) => !gone.contains(&row.0.unwrap_or(*n as i64)),
                None => !flags.is_some_and(|f| f[*n]),
            })
            .map(|(_, row)| row.clone())
            .collect();
        let counted = told.and_then(|t| t.rows);
        tables.insert(
            name.clone(),
            ExpectTable {
                rows: counted.unwrap_or(live.len() as u64),
                hash: counted.is_none().then(|| table_hash(&live)),
                aside: told.and_then(|t| t.aside),
            },
        );
    }
    for (name, told) in &want.tables {
        if let (Some(rows), false) = (told.rows, truth.contains_key(name)) {
            tables.insert(name.clone(), ExpectTable { rows, hash: None, aside: told.aside });
        }
    }
    Ok(Expect {
        about: recipe.about.clone(),
        schema: recipe.schema.as_ref().map(|_| "schema.sql".to_owned()),
        check: want.check,
        recover: want.recover,
        class: want.class.clone(),
        codes: want.codes.clone(),
        tables,
        left_out: want.left_out.clone(),
        open: want.open.clone(),
    })
}
