//! L5: a role and an owner for every page, the rows and entries of every tree judged once, and the verdict.
//!
//! Tests:    every page, every cell, every row against its declaration, every index against its table.
//! Collects: trees as slots, excluded rows, sums, claims, orphans.
//! Leaves:   rows to recovery, words to the report.

mod adopt;
mod branches;
mod claimants;
pub mod compare;
pub mod compute;
pub mod disputes;
pub mod entry;
pub mod freelist;
mod holes;
pub mod index;
pub mod judge;
pub mod key;
mod layouts;
mod mend;
pub mod orphan_trees;
pub mod plan;
pub mod pointer_map;
mod rowids;
mod schema_format;
pub mod schema_rows;
mod swapped;
pub mod table;
mod texts;
pub mod verdict;
mod walks;

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::{DatabaseHeader, Encoding};
use crate::ids::{ObjectId, PageNo};
use crate::schema::{Catalog, CatalogOptions, SchemaRow};
use crate::survey::schema_rows::Hints;
use crate::tree::cells::account_interior;
use crate::tree::{Claims, Pages, Rulings, Tree};

/// What a page is: the words and colours of reports follow it.
pub use crate::tree::Role;
pub use compare::IndexFit;
pub use freelist::Freelist;
pub use index::IndexScan;
pub use plan::{IndexPlan, TablePlan};
pub use table::{Excluded, TableScan};
pub use verdict::Class;

/// How often trees are scanned anew because orphans came back: a leaf brings no further holes, so the second round settles
/// all but overflow chains that the first took for orphans.
const ADOPTION_ROUNDS: usize = 6;

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
}

/// Everything the evidence says, without a row kept in memory.
#[derive(Debug)]
pub struct Survey<'a> {
    /// The pages.
    pub pages: Pages<'a>,
    /// The header as it was settled.
    pub header: DatabaseHeader,
    /// The encoding of all text.
    pub encoding: Encoding,
    /// The schema.
    pub catalog: Catalog,
    /// Every tree that has a root; the place is its owner number.
    pub trees: Vec<SurveyedTree>,
    /// Who has which page.
    pub claims: Claims,
    /// The freelist.
    pub freelist: Freelist,
    /// Pages that nothing claims.
    pub orphans: Vec<PageNo>,
    /// Orphans that a freelist names which the header no longer leads to: they were free, whatever they hold.
    pub freed: std::collections::BTreeSet<PageNo>,
    /// Orphans that came back into a tree.
    pub adopted: std::collections::BTreeSet<PageNo>,
    /// Leaves with cells that no pointer names.
    pub unnamed: std::collections::BTreeSet<PageNo>,
    /// Cells that their pointer names and that lie in free space.
    pub stale: std::collections::BTreeSet<(PageNo, u16)>,
    /// Rowids that neighbours leave room for, by the cell of a phantom.
    pub suggested: std::collections::BTreeMap<(PageNo, u16), i64>,
    /// Rows that their index entries contradict.
    pub disputes: Vec<disputes::Dispute>,
    /// Findings on what was mended before the last scan.
    noted: Vec<(Defect, Site)>,
    /// Everything found.
    pub findings: Findings,
}

impl<'a> Survey<'a> {
    /// Reads everything once. `header` is the header as it was settled; what was found while settling it is in `findings`.
    ///
    /// # Errors
    /// Cancellation only.
    pub fn run(pages: Pages<'a>, header: DatabaseHeader, findings: Findings, ctx: &Ctx) -> Result<Survey<'a>> {
        Survey::with_hints(pages, header, &Hints::default(), findings, ctx)
    }

    /// As [`Survey::run`], with what may stand in for a schema that is damaged, and with rulings about pages: every claim on a
    /// page asks for them, so all that is made of the survey follows them.
    ///
    /// # Errors
    /// Cancellation only.
    pub fn with_hints(
        pages: Pages<'a>,
        mut header: DatabaseHeader,
        hints: &Hints<'_>,
        mut findings: Findings,
        ctx: &Ctx,
    ) -> Result<Survey<'a>> {
        let encoding = header.encoding().unwrap_or_default();
        let mut rows = schema_rows::collect(&pages, encoding, header.freelist_trunk, hints, &mut findings, ctx)?;
        let mut survey = Survey::of_rows(pages, header, rows.clone(), &hints.rulings, findings.clone(), ctx)?;
        // Once more, when damaged texts are read as they were meant.
        if let Some(mended) = texts::find(&survey, &mut findings, ctx)? {
            rows = mended;
            survey = Survey::of_rows(survey.pages, header, rows.clone(), &hints.rulings, findings.clone(), ctx)?;
        }
        if let Some(format) = schema_format::settle(&survey, &mut findings, ctx)? {
            header.schema_format = format;
            survey = Survey::of_rows(survey.pages, header, rows.clone(), &hints.rulings, findings.clone(), ctx)?;
        }
        if let Some(swapped) = swapped::find(&survey, &rows, &mut findings, ctx)? {
            survey = Survey::of_rows(survey.pages, header, swapped, &hints.rulings, findings.clone(), ctx)?;
        }
        // Once more, when another order of columns gives a table its tree.
        match layouts::find(&survey, &mut findings, ctx)? {
            Some(rows) => Survey::of_rows(survey.pages, header, rows, &hints.rulings, findings, ctx),
            None => Ok(survey),
        }
    }

    /// Surveys everything under a schema.
    fn of_rows(
        mut pages: Pages<'a>,
        header: DatabaseHeader,
        rows: Vec<SchemaRow>,
        rulings: &Rulings,
        mut findings: Findings,
        ctx: &Ctx,
    ) -> Result<Survey<'a>> {
        let encoding = header.encoding().unwrap_or_default();
        let roots = rows.iter().filter_map(|r| u32::try_from(r.root?).ok().and_then(PageNo::new)).collect();
        let header = pointer_map::settle(&pages, header, &roots, &mut findings);
        let auto_vacuum = header.largest_root != 0;
        let claims = Claims::with_rulings(pages.count(), rulings.clone());
        pointer_map::claim(&pages, auto_vacuum, &claims);
        let options = CatalogOptions { schema_format: header.schema_format.clamp(1, 4) };
        let catalog = Catalog::with_options(rows, options, &mut findings);
        ctx.progress.phase("walk", 0);
        let trees = walks::walk_all(&mut pages, &catalog, (encoding, auto_vacuum), &claims, &mut findings, ctx)?;
        let mut survey = Survey {
            pages,
            header,
            encoding,
            catalog,
            trees: trees.into_iter().map(|(object, tree)| SurveyedTree { object, tree, content: None }).collect(),
            claims,
            freelist: Freelist::default(),
            orphans: Vec::new(),
            freed: std::collections::BTreeSet::new(),
            adopted: std::collections::BTreeSet::new(),
            unnamed: std::collections::BTreeSet::new(),
            stale: std::collections::BTreeSet::new(),
            suggested: std::collections::BTreeMap::new(),
            disputes: Vec::new(),
            noted: Vec::new(),
            findings,
        };
        let base = survey.findings.clone();
        let mut rowids_settled = false;
        for round in 0..ADOPTION_ROUNDS {
            survey.scan_all(ctx)?;
            let (trunk, count) = (survey.header.freelist_trunk, survey.header.freelist_count);
            survey.freelist = freelist::walk(&survey.pages, trunk, count, &survey.claims, &mut survey.findings, ctx)?;
            survey.collect_orphans();
            survey.freed = survey.freelist.forgotten(&survey.pages, &survey.claims, &survey.orphans, &mut survey.findings);
            if round.saturating_add(1) == ADOPTION_ROUNDS || !survey.settle(&mut rowids_settled, ctx)? {
                break;
            }
            for role in [Role::Overflow, Role::FreelistTrunk, Role::FreelistLeaf] {
                survey.claims.release_all(role);
            }
            survey.findings = base.clone();
        }
        survey.note_orphans();
        for (defect, site) in std::mem::take(&mut survey.noted) {
            survey.findings.add(defect, site);
        }
        compare::adopted(&mut survey, ctx)?;
        survey.interiors(ctx)?;
        if auto_vacuum {
            let trees: Vec<&Tree> = survey.trees.iter().map(|t| &t.tree).collect();
            pointer_map::compare(&survey.pages, &trees, &survey.adopted, &mut survey.findings, ctx)?;
        }
        compare::indexes(&mut survey, ctx)?;
        rowids::set_aside(&mut survey, ctx)?;
        survey.overwritten();
        ctx.progress.finish();
        Ok(survey)
    }

    /// One round of bringing back what damage cut off; `true` when something has to be scanned anew. Rowids come last, and
    /// once: they need everything else in its place.
    fn settle(&mut self, rowids_settled: &mut bool, ctx: &Ctx) -> Result<bool> {
        if orphan_trees::assign(self, ctx)? || mend::leaves(self, ctx)? || adopt::adopt(self, ctx)? || mend::cells(self, ctx)? {
            return Ok(true);
        }
        if *rowids_settled || !rowids::doubted(self) {
            return Ok(false);
        }
        *rowids_settled = true;
        let findings = self.findings.clone();
        compare::indexes(self, ctx)?;
        self.findings = findings;
        rowids::restore(self, ctx)
    }

    /// Sets rows aside whose text was overwritten together with other cells of their leaf.
    fn overwritten(&mut self) {
        for t in &mut self.trees {
            let Some(Content::Table { scan, .. }) = &mut t.content else { continue };
            for (page, cell, rowid) in scan.overwritten() {
                scan.excluded.push(Excluded { page, cell, rowid, code: Code::TextNotDecodable, got: 0 });
                scan.rows = scan.rows.saturating_sub(1);
            }
        }
    }

    fn scan_all(&mut self, ctx: &Ctx) -> Result<()> {
        ctx.progress.phase("read pages", self.trees.iter().map(|t| crate::ids::wide(t.tree.slots.len())).sum());
        if self.scan_round(true, ctx)? {
            return Ok(());
        }
        // Overflow chains contest pages: which one has them must not depend on which worker was first.
        self.claims.release_all(Role::Overflow);
        self.scan_round(false, ctx)?;
        Ok(())
    }

    /// One scan of all trees; `false` when chains contested pages, so that nothing of it can be kept.
    fn scan_round(&mut self, parallel: bool, ctx: &Ctx) -> Result<bool> {
        let mut contents = Vec::with_capacity(self.trees.len());
        let mut log = Findings::new(self.findings.cap());
        for t in &self.trees {
            let content = self.scan_tree(t, parallel, &mut log, ctx)?;
            let contested = match &content {
                Some(Content::Table { scan, .. }) => scan.contested,
                Some(Content::Index { scan, .. }) => scan.contested,
                None => false,
            };
            if contested && parallel {
                return Ok(false);
            }
            contents.push(content);
        }
        self.findings.merge(log);
        for (t, content) in self.trees.iter_mut().zip(contents) {
            t.content = content;
        }
        Ok(true)
    }

    fn scan_tree(&self, t: &SurveyedTree, parallel: bool, log: &mut Findings, ctx: &Ctx) -> Result<Option<Content>> {
        let Some(object) = self.catalog.get(t.object) else { return Ok(None) };
        if let Some(plan) = TablePlan::compile(&self.catalog, object, self.encoding) {
            let scan = table::scan(&self.pages, &t.tree, &plan, &self.claims, parallel, log, ctx)?;
            return Ok(Some(Content::Table { plan: Box::new(plan), scan }));
        }
        if object.kind == crate::schema::ObjectKind::Index {
            let plan = IndexPlan::compile(object).unwrap_or_else(|| IndexPlan::unknown(object.id, object.name.text()));
            let scan = index::scan(&self.pages, &t.tree, &plan, self.encoding, &self.claims, parallel, log, ctx)?;
            return Ok(Some(Content::Index { plan, scan, fit: IndexFit::Unknown }));
        }
        Ok(None)
    }

    fn interiors(&mut self, ctx: &Ctx) -> Result<()> {
        for t in &self.trees {
            ctx.check()?;
            let site = Site::object(t.object);
            let pages = &self.pages;
            let cap = self.findings.cap();
            let parts: Vec<Findings> = t
                .tree
                .interiors
                .par_chunks(64)
                .map(|chunk| {
                    let mut log = Findings::new(cap);
                    for (no, _) in chunk {
                        account_interior(pages, *no, site, &mut log);
                    }
                    log
                })
                .collect();
            for part in parts {
                self.findings.merge(part);
            }
        }
        Ok(())
    }

    fn collect_orphans(&mut self) {
        self.orphans.clear();
        let mut at = Some(PageNo::ONE);
        while let Some(no) = at.filter(|no| no.get() <= self.pages.count()) {
            if self.claims.role(no) == Role::Orphan {
                self.orphans.push(no);
            }
            at = no.next();
        }
    }

    /// Whether an orphan may be taken into a tree: nothing was ruled about it, and no freelist names it.
    fn may_come_back(&self, no: PageNo) -> bool {
        self.claims.ruling(no).is_none() && !self.freed.contains(&no)
    }

    fn note_orphans(&mut self) {
        for no in &self.orphans {
            self.findings.add(Defect::new(Code::PageWithoutOwner, 0, u64::from(no.get()), 0), self.pages.site(Site::default(), *no));
        }
    }

    /// Trees of orphaned pages that no object of the schema took, largest first.
    ///
    /// # Errors
    /// Cancellation only.
    pub fn nameless_trees(&self, ctx: &Ctx) -> Result<Vec<Tree>> {
        orphan_trees::find(self, ctx)
    }

    /// The tree of an object.
    #[must_use]
    pub fn tree_of(&self, object: ObjectId) -> Option<&SurveyedTree> {
        self.trees.iter().find(|t| t.object == object)
    }

    /// What the findings come to.
    #[must_use]
    pub fn class(&self) -> Class {
        verdict::class(&self.findings, &self.catalog)
    }
}
