//! What is known of a database from pass to pass. Each stage is a type: what is not read yet cannot be asked for rows.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use crate::finding::{Defect, Findings, Site};
use crate::format::{DatabaseHeader, Encoding};
use crate::ids::{ObjectId, PageNo};
use crate::schema::{Catalog, SchemaRow};
use crate::survey::freelist::Freelist;
use crate::survey::index_fit::{Dispute, IndexFit};
use crate::survey::rows::plan::{IndexPlan, TablePlan};
use crate::survey::scans::index::IndexScan;
use crate::survey::scans::table::TableScan;
use crate::tree::{Claims, Owner, Pages, Role, Rulings, Tree};

/// After pass 1: what the schema declares. No page of a tree but those of the schema was looked at.
pub(super) struct Declared<'a> {
    /// The pages.
    pub(super) pages: Pages<'a>,
    /// The header as it was settled.
    pub(super) header: DatabaseHeader,
    /// The rows of the schema.
    pub(super) rows: Vec<SchemaRow>,
    /// What somebody who knows better says of pages.
    pub(super) rulings: Rulings,
    /// Everything found so far.
    pub(super) findings: Findings,
}

/// What every pass behind the walks reads, and the last ones enter things in.
#[derive(Debug)]
pub struct Known<'a> {
    /// The pages.
    pub pages: Pages<'a>,
    /// The header as it was settled.
    pub header: DatabaseHeader,
    /// The encoding of all text.
    pub encoding: Encoding,
    /// The schema.
    pub catalog: Catalog,
    /// Who has which page.
    pub claims: Claims,
    /// Orphans that came back into a tree.
    pub adopted: BTreeSet<PageNo>,
    /// Leaves with cells that no pointer names.
    pub(super) unnamed: BTreeSet<PageNo>,
    /// Cells that their pointer names and that lie in free space.
    pub(super) stale: BTreeSet<(PageNo, u16)>,
    /// Rowids that neighbours leave room for, by the cell of a phantom.
    pub suggested: std::collections::BTreeMap<(PageNo, u16), i64>,
    /// Findings on what was mended before the last scan.
    pub(super) noted: Vec<(Defect, Site)>,
    /// What was found up to the walks.
    pub(super) walked: Findings,
    /// Overflow chains contested pages, so that who has them came from the order of one scan: none of it outlives that scan.
    pub(super) contested: bool,
}

/// What a scan of a tree gave.
#[derive(Debug)]
pub(super) struct Reading {
    /// Its content; `None` when nothing says how to read it.
    pub(super) content: Option<Content>,
    /// What was found while it was read.
    pub(super) log: Findings,
}

/// A tree that was walked. It may have been read before, and nothing has changed since.
#[derive(Debug)]
pub(super) struct WalkedTree {
    /// The object.
    pub(super) object: ObjectId,
    /// Its pages.
    pub(super) tree: Tree,
    /// What an earlier scan of the same tree gave; `None` when it has to be read.
    pub(super) reading: Option<Reading>,
}

/// After pass 2, and after a round of pass 5 that changed something: the pages of every tree, not all of them read.
pub(super) struct Walked<'a> {
    /// What is known.
    pub(super) known: Known<'a>,
    /// Every tree that has a root; the place is its owner number.
    pub(super) trees: Vec<WalkedTree>,
}

/// What a tree holds.
#[derive(Debug)]
pub enum Content {
    /// The rows of a table, `sqlite_schema` among them.
    Table {
        /// How its rows are read.
        plan: Box<TablePlan>,
        /// What was found.
        scan: TableScan,
    },
    /// The entries of an index.
    Index {
        /// How its entries are read.
        plan: IndexPlan,
        /// What was found.
        scan: IndexScan,
        /// Whether it agrees with its table.
        fit: IndexFit,
    },
}

/// A tree with its owner in the schema.
#[derive(Debug)]
pub struct SurveyedTree {
    /// The object.
    pub object: ObjectId,
    /// Its pages.
    pub tree: Tree,
    /// Its content; `None` when nothing says how to read it.
    pub content: Option<Content>,
    /// What was found while it was read.
    pub(super) log: Findings,
    /// It has to be read anew: its pages changed, or its content is no longer what a scan gives.
    pub(super) due: bool,
}

/// After pass 3: every tree is read, and what nothing claims is known.
#[derive(Debug)]
pub struct Scanned<'a> {
    pub(super) known: Known<'a>,
    /// Every tree that has a root; the place is its owner number.
    pub trees: Vec<SurveyedTree>,
    /// The freelist.
    pub freelist: Freelist,
    /// Pages that nothing claims.
    pub orphans: Vec<PageNo>,
    /// Orphans that a freelist names which the header no longer leads to: they were free, whatever they hold.
    pub freed: BTreeSet<PageNo>,
    /// Everything found.
    pub(super) findings: Findings,
}

/// After pass 6: everything the evidence says, without a row kept in memory. It is read, never changed; only findings are
/// still added by those who make something of it.
#[derive(Debug)]
pub struct Survey<'a> {
    pub(super) scanned: Scanned<'a>,
    /// Rows that their index entries contradict.
    pub disputes: Vec<Dispute>,
    /// Everything found.
    pub findings: Findings,
}

/// A survey under another schema, of which what stayed the same need not be read again.
pub(super) struct Former {
    pub(super) header: DatabaseHeader,
    pub(super) catalog: Catalog,
    pub(super) claims: Claims,
    pub(super) contested: bool,
    pub(super) trees: Vec<SurveyedTree>,
}

impl<'a> Deref for Scanned<'a> {
    type Target = Known<'a>;

    fn deref(&self) -> &Known<'a> {
        &self.known
    }
}

impl DerefMut for Scanned<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.known
    }
}

impl<'a> Deref for Survey<'a> {
    type Target = Scanned<'a>;

    fn deref(&self) -> &Scanned<'a> {
        &self.scanned
    }
}

impl SurveyedTree {
    /// Its content as a scan gives it; `None` when it has to be read anew.
    pub(super) fn reading(self) -> (ObjectId, Tree, Option<Reading>) {
        let content = match self.content {
            Some(Content::Index { plan, scan, .. }) => Some(Content::Index { plan, scan, fit: IndexFit::Unknown }),
            other => other,
        };
        (self.object, self.tree, (!self.due).then_some(Reading { content, log: self.log }))
    }
}

impl<'a> Scanned<'a> {
    /// The tree of an object.
    #[must_use]
    pub fn tree_of(&self, object: ObjectId) -> Option<&SurveyedTree> {
        self.trees.iter().find(|t| t.object == object)
    }

    /// Notes that a tree is no longer as it was read.
    pub(super) fn changed(&mut self, place: usize) {
        if let Some(t) = self.trees.get_mut(place) {
            t.due = true;
        }
    }

    /// Whether an orphan may be taken into a tree: nothing was ruled about it, and no freelist names it.
    pub(super) fn may_come_back(&self, no: PageNo) -> bool {
        self.claims.ruling(no).is_none() && !self.freed.contains(&no)
    }

    /// Back to the walks: the freelist, the overflow chains of the trees that changed, and what was found in them are given up.
    pub(super) fn reopened(mut self) -> Walked<'a> {
        if self.contested {
            for t in &mut self.trees {
                t.due = true;
            }
        }
        let due: BTreeSet<Owner> = self.trees.iter().filter(|t| t.due).map(|t| t.tree.owner).collect();
        self.claims.release_of(Role::Overflow, &due);
        self.claims.release_all(Role::FreelistTrunk);
        self.claims.release_all(Role::FreelistLeaf);
        let trees = self.trees.into_iter().map(|t| {
            let (object, tree, reading) = t.reading();
            WalkedTree { object, tree, reading }
        });
        Walked { trees: trees.collect(), known: self.known }
    }
}

impl<'a> Survey<'a> {
    /// Takes the survey apart for another one of the same pages.
    pub(super) fn given_up(self) -> (Pages<'a>, Former) {
        let Known { pages, header, catalog, claims, contested, .. } = self.scanned.known;
        (pages, Former { header, catalog, claims, contested, trees: self.scanned.trees })
    }
}
