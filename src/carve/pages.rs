//! Every image of every page, and the rows in it that are not live.

use std::collections::BTreeMap;

use crate::carve::chain::Chains;
use crate::carve::fit::Shapes;
use crate::carve::found::{Found, Place, Source};
use crate::carve::leaf::{Leaf, Raw, Search, Spot};
use crate::carve::shape::{Of, Shape};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::evidence::{VersionClass, View};
use crate::finding::Origin;
use crate::format::freelist::Trunk;
use crate::format::record::encode_record;
use crate::format::{Fields, Page, Value};
use crate::ids::{ObjectId, PageNo, idx, small, wide};
use crate::recover::Trust;
use crate::schema::IndexSource;
use crate::survey::{Role, Survey};

/// Shapes that fit up to so many bits worse are named beside the one that is given.
const CLOSE: i32 = 4;
/// Pages whose rows are held at once.
const WINDOW: usize = 2048;

/// Goes over the pages.
#[derive(Debug)]
pub(crate) struct Carver<'s, 'v> {
    pub(crate) survey: &'s Survey<'s>,
    pub(crate) view: &'v View<'v>,
    pub(crate) shapes: Shapes,
    /// The table that a free page belonged to, where interior pages still say it.
    pub(crate) lineage: BTreeMap<PageNo, usize>,
    /// Tables that are gone, by the page where their root was.
    pub(crate) roots: BTreeMap<PageNo, usize>,
}

impl<'s, 'v> Carver<'s, 'v> {
    pub(crate) fn new(survey: &'s Survey<'s>, view: &'v View<'v>, shapes: Shapes) -> Carver<'s, 'v> {
        Carver { survey, view, shapes, lineage: BTreeMap::new(), roots: BTreeMap::new() }
    }

    /// The highest page number that any file has an image of.
    pub(crate) fn last_page(&self) -> u32 {
        let history = self.view.snapshot.pages_with_history().last().map_or(0, PageNo::get);
        self.survey.pages.count().max(self.view.snapshot.main_pages()).max(history)
    }

    /// Whether no tree has the page.
    pub(crate) fn is_free(&self, no: PageNo) -> bool {
        no.get() > self.survey.pages.count()
            || matches!(self.survey.claims.role(no), Role::FreelistLeaf | Role::FreelistTrunk | Role::Orphan | Role::Unreadable)
    }

    /// Whether a page may hold rows of tables that have no live ones: free, of another time, or emptied.
    pub(crate) fn may_teach(&self, no: PageNo) -> bool {
        let emptied = || self.survey.pages.page(no).is_ok_and(|p| p.cell_count == 0);
        self.is_free(no) || emptied() || self.view.snapshot.versions(no).nth(1).is_some()
    }

    /// The object that has the page.
    fn object(&self, no: PageNo) -> Option<ObjectId> {
        if !self.survey.claims.role(no).is_tree() {
            return None;
        }
        let owner = self.survey.claims.owner(no)?;
        self.survey.trees.get(idx(owner.0)).map(|t| t.object)
    }

    /// The shape of an object among these.
    fn shape_of(shapes: &Shapes, object: ObjectId) -> Option<usize> {
        shapes.all.iter().position(|s| match s.of {
            Of::Table(id) => id == object,
            Of::Index(_, i) => s.plan.indexes.get(i).is_some_and(|p| p.object == object),
            Of::Dropped(_) | Of::DroppedIndex(..) => false,
        })
    }

    /// All rows of all pages, in the order of the pages.
    ///
    /// # Errors
    /// Cancellation, and what `each` returns.
    pub(crate) fn all(&self, ctx: &Ctx, mut each: impl FnMut(Found) -> Result<()>) -> Result<()> {
        use rayon::prelude::*;
        let last = self.last_page();
        ctx.progress.phase("carve pages", u64::from(last));
        let numbers: Vec<u32> = (1..=last).collect();
        for window in numbers.chunks(WINDOW) {
            ctx.check()?;
            let parts: Vec<Vec<Found>> = window
                .par_chunks(16)
                .map(|chunk| {
                    let pages = chunk.iter().copied().filter_map(PageNo::new);
                    let live = pages.take_while(|_| !ctx.is_cancelled());
                    live.flat_map(|no| self.page_with(no, &self.shapes, false, &mut |_| true)).collect()
                })
                .collect();
            for found in parts.into_iter().flatten() {
                each(found)?;
            }
            ctx.progress.advance(wide(window.len()));
        }
        ctx.check()?;
        ctx.progress.finish();
        Ok(())
    }

    /// The rows of all images of a page whose bytes `take` accepts. With `alone` the shapes are not those of the carver, and
    /// the page's owner does not matter.
    pub(crate) fn page_with(&self, no: PageNo, shapes: &Shapes, alone: bool, take: &mut dyn FnMut(&[u8]) -> bool) -> Vec<Found> {
        let mut out: Vec<Found> = Vec::new();
        let survey = self.survey;
        let object = self.object(no);
        let owner = object.and_then(|o| Self::shape_of(shapes, o));
        if no.get() <= survey.pages.count() {
            let bytes = survey.pages.usable_bytes(no);
            if take(bytes) {
                self.live_image(no, bytes, shapes, (object, owner, alone), &mut out);
            }
        }
        let usable = idx(survey.pages.usable);
        for version in self.view.snapshot.versions(no) {
            let source = match version.class {
                VersionClass::Live => continue,
                VersionClass::Superseded => Source::Superseded,
                VersionClass::UnderOverlay if no.get() > survey.pages.count() => Source::BehindEnd,
                VersionClass::UnderOverlay => Source::UnderLog,
                VersionClass::Uncommitted => Source::Uncommitted,
                VersionClass::Detached => Source::Detached,
                VersionClass::OlderGeneration => Source::OlderGeneration,
                VersionClass::BeforeImage => Source::Journal,
            };
            let bytes = version.page.bytes.get(..usable).unwrap_or(version.page.bytes);
            if !take(bytes) {
                continue;
            }
            let page = Page::read(bytes, no, survey.pages.usable).ok();
            let from = page.as_ref().map_or(0, |p| p.pointers_at());
            let leaf = Leaf { bytes, page, taken: Vec::new(), live: false, from, owner, before: None, foreign: false };
            self.search(no, &leaf, shapes, version.page.origin, source, &mut out);
        }
        out
    }

    fn live_image(
        &self,
        no: PageNo,
        bytes: &[u8],
        shapes: &Shapes,
        (object, owner, alone): (Option<ObjectId>, Option<usize>, bool),
        out: &mut Vec<Found>,
    ) {
        let survey = self.survey;
        let role = survey.claims.role(no);
        let header_at = survey.pages.header_at(no);
        let (source, leaf) = match role {
            Role::TableLeaf | Role::IndexLeaf | Role::TableInterior | Role::IndexInterior => {
                let Ok(page) = survey.pages.leaf(no) else { return };
                let mut taken: Vec<(usize, usize)> = if page.kind.is_interior() {
                    page.cells(survey.pages.split)
                        .filter_map(|(_, c)| c.ok())
                        .map(|c| (idx(c.at), idx(c.at.saturating_add(c.len))))
                        .collect()
                } else {
                    let cells = survey.pages.cells(no).map(|(_, cells)| cells).unwrap_or_default();
                    cells.iter().map(|(_, c)| (idx(c.at), idx(c.at.saturating_add(c.len)))).collect()
                };
                taken.sort_unstable();
                let foreign = !alone && object.is_some() && owner.is_none();
                (
                    Source::TreePage,
                    Leaf {
                        bytes,
                        page: Some(page),
                        taken,
                        live: true,
                        from: header_at,
                        owner,
                        before: self.roots.get(&no).copied().filter(|_| !alone),
                        foreign,
                    },
                )
            }
            Role::FreelistTrunk => {
                let count = Trunk::read(bytes, survey.pages.usable).map_or(0, |t| t.count);
                let from = idx(count.saturating_mul(4).saturating_add(8)).min(bytes.len());
                (
                    Source::TrunkPage,
                    Leaf {
                        bytes,
                        page: None,
                        taken: Vec::new(),
                        live: false,
                        from,
                        owner: self.lineage.get(&no).copied().filter(|_| !alone),
                        before: None,
                        foreign: false,
                    },
                )
            }
            Role::FreelistLeaf | Role::Orphan | Role::Unreadable => {
                let page = Page::read(bytes, no, survey.pages.usable).ok();
                let source = if role == Role::FreelistLeaf || survey.freed.contains(&no) { Source::FreePage } else { Source::LostPage };
                let owner = if alone { None } else { self.lineage.get(&no).copied() };
                (source, Leaf { bytes, page, taken: Vec::new(), live: false, from: header_at, owner, before: None, foreign: false })
            }
            Role::Overflow | Role::PointerMap | Role::LockByte => return,
        };
        self.search(no, &leaf, shapes, survey.pages.origin(no), source, out);
    }

    fn search(&self, no: PageNo, leaf: &Leaf<'_>, shapes: &Shapes, origin: Origin, source: Source, out: &mut Vec<Found>) {
        for raw in Search::new(leaf, shapes, &self.survey.pages.split).rows() {
            let Some(found) = self.found(no, leaf, shapes, &raw, origin, source) else { continue };
            out.push(found);
        }
    }

    fn found(&self, no: PageNo, leaf: &Leaf<'_>, shapes: &Shapes, raw: &Raw, origin: Origin, source: Source) -> Option<Found> {
        let best = raw.fits.first()?;
        // Where older pages say whose page it was, that decides between shapes that fit.
        let fits = |o: &usize| raw.fits.iter().any(|f| f.shape == *o && f.bits + 12 >= best.bits);
        let before = leaf.before.filter(|_| raw.spot == Spot::Gap && raw.header.is_none());
        let pick = before.filter(fits).or(leaf.owner.filter(fits)).unwrap_or(best.shape);
        let shape = shapes.all.get(pick)?;
        if !shape.reported {
            return None;
        }
        let mut payload = raw.header.clone().unwrap_or_default();
        let head = payload.len();
        payload.extend_from_slice(leaf.bytes.get(raw.local_at..raw.local_end.min(raw.limit))?);
        let mut gone = String::new();
        let total = raw.payload_len;
        if raw.limit < raw.local_end {
            gone = format!("{} bytes from byte {} on: written over", total.saturating_sub(wide(payload.len())), payload.len());
        } else if wide(payload.len()) < total {
            match raw.overflow.filter(|_| raw.is_whole()) {
                Some(first) => {
                    let live = matches!(source, Source::TreePage | Source::FreePage | Source::TrunkPage | Source::LostPage);
                    let chains = Chains { survey: self.survey, view: self.view };
                    let gathered = chains.follow(first, payload.len(), total, origin, live);
                    payload.extend_from_slice(&gathered.bytes);
                    gone = gathered.gone;
                }
                None => {
                    gone = format!(
                        "{} bytes from byte {} on: the link to them was written over",
                        total.saturating_sub(wide(payload.len())),
                        payload.len()
                    )
                }
            }
        }
        let mut fields = Fields::new();
        fields.read(&payload, total).ok()?;
        let mut clean = raw.clean;
        if raw.overflow.is_some() && gone.is_empty() {
            // Only now are all bytes of the texts there.
            clean = crate::carve::fit::values(shape, fields.as_slice(), &payload, shapes.encoding).1;
        }
        if !clean && gone.is_empty() {
            gone.push_str("a text of it is none: other bytes were written into it");
        }
        let known: Vec<bool> = fields.as_slice().iter().map(|f| idx(f.start).saturating_add(idx(f.len)) <= payload.len()).collect();
        let complete = gone.is_empty() && known.iter().all(|k| *k);
        // A beginning without a value is no row.
        let told = fields.as_slice().iter().zip(&known).any(|(f, k)| *k && !matches!(f.serial, 0 | 8 | 9));
        if !complete && (!told || (head > 0 && !raw.clean)) {
            return None;
        }
        let certain = raw.spot == Spot::Cell && complete && leaf.owner == Some(pick) && source == Source::Superseded;
        let others = raw
            .fits
            .iter()
            .filter(|f| f.shape != pick && (f.bits + CLOSE >= best.bits && leaf.owner != Some(pick) || before == Some(pick)))
            .filter(|f| shapes.all.get(f.shape).is_some_and(|s| s.reported && !s.is_index()))
            .map(|f| small(f.shape))
            .collect();
        let found = Found {
            shape: pick,
            others,
            rowid: raw.rowid,
            payload,
            known,
            complete,
            place: Place {
                origin,
                source,
                spot: raw.spot,
                page: no,
                at: small(raw.at),
                len: small(raw.end.min(raw.limit).saturating_sub(raw.at)),
            },
            solutions: raw.solutions,
            bits: best.bits,
            gone,
            index: String::new(),
            trust: if certain { Trust::Linked } else { Trust::Plausible },
            made_up: raw.header.is_some(),
        };
        if shape.is_index() { entry(shapes, shape, &fields, found) } else { Some(found) }
    }
}

/// What an index entry says of the row that it belonged to.
fn entry(shapes: &Shapes, shape: &Shape, fields: &Fields, found: Found) -> Option<Found> {
    let Of::Index(table, no) = shape.of else { return None };
    if !found.complete {
        return None;
    }
    let index = shape.plan.indexes.get(no)?;
    let rows = shapes.all.iter().position(|s| s.of == Of::Table(table))?;
    let plan = &shapes.all.get(rows)?.plan;
    let mut values: Vec<Value<'_>> = vec![Value::Null; plan.stored.len()];
    let mut known = vec![false; plan.stored.len()];
    let mut rowid = None;
    for (part, value) in index.columns.iter().zip(fields.values(&found.payload)) {
        match part.source {
            IndexSource::Rowid => rowid = value.as_int(),
            IndexSource::Column(c) => {
                if let Some(at) = plan.stored.iter().position(|s| *s == c)
                    && let (Some(place), Some(is_known)) = (values.get_mut(at), known.get_mut(at))
                {
                    *place = value;
                    *is_known = true;
                }
            }
            IndexSource::Expr(_) => {}
        }
    }
    let rowid = rowid?;
    let mut payload = Vec::new();
    encode_record(&mut payload, values.iter().copied());
    Some(Found {
        shape: rows,
        rowid: Some(rowid),
        payload,
        known,
        complete: false,
        index: index.name.clone(),
        gone: String::new(),
        trust: Trust::Plausible,
        ..found
    })
}
