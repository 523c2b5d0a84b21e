//! An R-tree into the copy, built anew from the boxes that can be read.

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::Value;
use crate::ids::{PageNo, RootPage, wide};
use crate::recover::rtree::{PARTS, Rtree};
use crate::recover::search_index::{each, table_of};
use crate::recover::witnesses::ranges;
use crate::report::model::Gone;
use crate::rtree::build;
use crate::survey::Survey;
use crate::survey::plan::Constant;
use crate::write::DatabaseWriter;

use super::Written;
use super::fts::{Numbered, Shadow};

/// The shadow tables of an R-tree, their roots still to be given.
pub(crate) fn shadows(rtree: &Rtree) -> Vec<Shadow> {
    let columns = ["(nodeno INTEGER PRIMARY KEY,data)", "(nodeno INTEGER PRIMARY KEY,parentnode)", "(rowid INTEGER PRIMARY KEY,nodeno)"];
    let parts = rtree.parts.into_iter().zip(PARTS).zip(columns);
    let made = parts.map(|((object, suffix), columns)| {
        let name = format!("{}{suffix}", rtree.name);
        let lost = Gone {
            rowids: ranges(&rtree.lost),
            count: Some(wide(rtree.lost.len())),
            witness: "%_rowid, which names these rows: the boxes of them cannot be read".to_owned(),
            page: None,
        };
        let named = suffix == "_rowid" && !rtree.lost.is_empty();
        Shadow {
            part: None,
            object,
            sql: format!("CREATE TABLE \"{}\"{columns}", name.replace('"', "\"\"")),
            name,
            keeps_text: object.is_some(),
            root: RootPage(PageNo::ONE),
            written: Written::default(),
            note: "written anew from the boxes of the R-tree that can be read",
            gone: (if named { vec![lost] } else { Vec::new() }, Vec::new()),
        }
    });
    made.collect()
}

/// Writes the shadow tables of an R-tree, and notes in each what was written.
///
/// # Errors
/// I/O, limits, cancellation.
pub(crate) fn write<W: Write + Seek>(
    survey: &Survey<'_>,
    rtree: &Rtree,
    shadows: &mut [Shadow],
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<()> {
    // What `%_rowid` holds beside the leaf: the columns of the table that are not indexed.
    let mut others: BTreeMap<i64, Vec<Constant>> = BTreeMap::new();
    let [_, _, rowids] = rtree.parts;
    let table = rowids.and_then(|id| table_of(survey, id));
    let width = table.map_or(0, |(plan, ..)| plan.columns.len().saturating_sub(2));
    if let Some(table) = table.filter(|_| width > 0) {
        each(survey, table, ctx, |row, values| {
            if let Some(id) = row.rowid {
                others.entry(id).or_insert_with(|| values.iter().skip(2).map(|v| Constant::from(*v)).collect());
            }
        })?;
    }
    let built = build(rtree.shape, rtree.size, rtree.cells.clone());
    for (shadow, suffix) in shadows.iter_mut().zip(PARTS) {
        ctx.check()?;
        let mut tree = Numbered::new(db, shadow.root);
        match suffix {
            "_node" => {
                for node in &built.nodes {
                    tree.push(db, node.no, &[Value::Null, Value::Blob(&rtree.shape.encode(node, rtree.size))])?;
                }
            }
            "_parent" => {
                for (no, above) in &built.parents {
                    tree.push(db, *no, &[Value::Null, Value::Int(*above)])?;
                }
            }
            _ => {
                for (id, leaf) in &built.rowids {
                    let mut values = vec![Value::Null, Value::Int(*leaf)];
                    match others.get(id) {
                        Some(row) => values.extend(row.iter().map(Constant::value)),
                        None => values.extend(std::iter::repeat_n(Value::Null, width)),
                    }
                    tree.push(db, *id, &values)?;
                }
            }
        }
        shadow.written = tree.finish(db)?;
    }
    Ok(())
}
