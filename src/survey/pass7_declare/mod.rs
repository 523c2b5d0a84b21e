//! Pass 7: what the records say about the schema that they were read with.
//!
//! Tests:    damaged CREATE texts, the schema format, root pages that two tables have from one another, the order of columns.
//! Collects: the schema as it was meant. What it changes is read again; all else stays as it was read.
//! Leaves:   what nothing in the file could tell.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::schema::SchemaRow;
use crate::survey::stages::Survey;

mod layouts;
mod schema_format;
mod swapped;
mod texts;

/// What says how trees are read.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    /// The header; its format says whether DESC counts.
    pub(super) header: DatabaseHeader,
    /// The rows.
    pub(super) rows: Vec<SchemaRow>,
}

/// A question to a survey; the order is the order in which they are asked.
pub(super) const QUESTIONS: [Question; 4] = [Question::Texts, Question::Format, Question::Roots, Question::Columns];

/// What is asked about a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Are damaged texts meant otherwise than they read?
    Texts,
    /// Does DESC count?
    Format,
    /// Have two tables each other's root?
    Roots,
    /// Does another order of columns give a table its tree?
    Columns,
}

impl Question {
    /// Another schema than the one of this survey, with findings that say why; `None` when it stands.
    ///
    /// # Errors
    /// Cancellation only.
    pub(super) fn ask(self, survey: &Survey<'_>, schema: &Schema, log: &mut Findings, ctx: &Ctx) -> Result<Option<Schema>> {
        let rows = match self {
            Question::Texts => texts::find(survey, log, ctx)?,
            Question::Roots => swapped::find(survey, &schema.rows, log, ctx)?,
            Question::Columns => layouts::find(survey, log, ctx)?,
            Question::Format => {
                let format = schema_format::settle(survey, log, ctx)?;
                return Ok(format
                    .map(|schema_format| Schema { header: DatabaseHeader { schema_format, ..schema.header }, rows: schema.rows.clone() }));
            }
        };
        Ok(rows.map(|rows| Schema { rows, ..schema.clone() }))
    }
}
