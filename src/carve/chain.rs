//! Overflow chains of rows that are gone: free pages keep what they held, a trunk of the freelist overwrites its first bytes.

use crate::evidence::{PageSource, VersionClass, View};
use crate::finding::Origin;
use crate::format::freelist::{Trunk, overflow_page};
use crate::ids::{FrameNo, PageNo, idx, narrow, small, wide};
use crate::survey::{Role, Survey};

/// Pages of one chain that are followed: a payload of 2^31 bytes on pages of 512 has more, none that a person reads does.
const PAGES: usize = 1 << 20;

/// What a chain gave.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The bytes from the first on, up to the first that is gone.
    pub(crate) bytes: Vec<u8>,
    /// What is gone, in words; empty: nothing.
    pub(crate) gone: String,
}

/// Follows chains at the time of the cell that they belong to.
#[derive(Debug)]
pub(crate) struct Chains<'s, 'v> {
    pub(crate) survey: &'s Survey<'s>,
    pub(crate) view: &'v View<'v>,
}

impl Chains<'_, '_> {
    /// The image of a page as a cell of this origin saw it, and whether it is the one that is live.
    fn image(&self, no: PageNo, origin: Origin, live: bool) -> Option<(&[u8], bool)> {
        let snapshot = &self.view.snapshot;
        if live {
            return snapshot.page(no).map(|p| (p.bytes, true));
        }
        let main = || snapshot.versions(no).find(|v| v.page.origin == Origin::Main).map(|v| (v.page.bytes, v.class == VersionClass::Live));
        match origin {
            Origin::Main => main(),
            Origin::Wal { frame } => {
                let newest = self.view.wal.as_ref().and_then(|wal| wal.newest(no, frame));
                match newest {
                    Some((at, bytes)) => {
                        let shown = snapshot.page(no).is_some_and(|p| p.origin == Origin::Wal { frame: FrameNo(at.0) });
                        Some((bytes, shown))
                    }
                    None => main(),
                }
            }
            Origin::Journal { .. } => {
                let before = snapshot.versions(no).find(|v| v.class == VersionClass::BeforeImage);
                before.map(|v| (v.page.bytes, false)).or_else(|| snapshot.page(no).map(|p| (p.bytes, true)))
            }
        }
    }

    /// Follows a chain for the bytes behind the `have` local ones of a payload of `total`.
    pub(crate) fn follow(&self, first: u32, have: usize, total: u64, origin: Origin, live: bool) -> Gathered {
        let mut out = Gathered::default();
        let usable = self.survey.pages.usable;
        let chunk = idx(usable).saturating_sub(4).max(1);
        let mut missing = narrow(total).saturating_sub(have);
        let mut next = first;
        let mut seen: Vec<PageNo> = Vec::new();
        let at = |done: &Gathered| wide(have.saturating_add(done.bytes.len()));
        while missing > 0 {
            let no = PageNo::new(next).filter(|no| no.get() <= self.survey.pages.count().max(self.view.snapshot.main_pages()));
            let Some(no) = no.filter(|no| !seen.contains(no) && seen.len() < PAGES && *no != self.survey.pages.lock_page()) else {
                out.gone = format!("{missing} bytes from byte {} on: the chain ends at page number {next}", at(&out));
                return out;
            };
            if seen.len() < 4096 {
                seen.push(no);
            }
            let Some((bytes, is_live)) = self.image(no, origin, live) else {
                out.gone = format!("{missing} bytes from byte {} on: page {no} is not there", at(&out));
                return out;
            };
            let role = self.survey.claims.role(no);
            if is_live && !matches!(role, Role::FreelistLeaf | Role::Orphan | Role::FreelistTrunk) {
                out.gone = format!("{missing} bytes from byte {} on: page {no} was used again", at(&out));
                return out;
            }
            if is_live && role == Role::FreelistTrunk {
                let count = Trunk::read(bytes, usable).map_or(0, |t| t.count);
                let over = small(4).saturating_add(count.saturating_mul(4)).min(usable);
                out.gone = format!(
                    "{missing} bytes from byte {} on: page {no} became a trunk of the freelist, which took {over} of them and the link",
                    at(&out)
                );
                return out;
            }
            let Some((after, body)) = overflow_page(bytes, usable) else {
                out.gone = format!("{missing} bytes from byte {} on: page {no} is cut", at(&out));
                return out;
            };
            let take = missing.min(chunk).min(body.len());
            out.bytes.extend_from_slice(body.get(..take).unwrap_or_default());
            missing = missing.saturating_sub(take);
            if take == 0 {
                out.gone = format!("{missing} bytes from byte {} on: page {no} is cut", at(&out));
                return out;
            }
            next = after;
        }
        // A sound chain ends where the payload does; one that goes on was part of another row since.
        if next != 0 {
            out.gone = "the chain goes on behind the payload: its pages were used again".to_owned();
        }
        out
    }
}
