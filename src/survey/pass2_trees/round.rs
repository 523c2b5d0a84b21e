//! What one round of walks found.

use std::collections::BTreeMap;

use crate::format::PageKind;
use crate::ids::{ObjectId, PageNo};
use crate::tree::bounds::Bounds;
use crate::tree::walk::{Contested, Reference, Tree};

/// What one round of walks found.
pub(super) struct Round {
    /// The trees, each at the place of its owner number.
    pub trees: Vec<(ObjectId, Tree)>,
    /// Pages that two references lead to.
    pub contested: Vec<Contested>,
    /// The reference to each interior page, with its bounds.
    pub places: BTreeMap<PageNo, (Option<Reference>, Bounds)>,
    /// Pages whose type byte lies.
    pub retyped: BTreeMap<PageNo, PageKind>,
}
