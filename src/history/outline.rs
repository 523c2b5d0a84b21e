//! Branches and commits without what they did: for the picture in the report.

use crate::evidence::{Branch, FrameClass, View, WalIndex};
use crate::ids::{idx, small};
use crate::report::timeline::{Dot, Lane, Timeline};

/// The outline of a view; `None` without a log that has a commit.
#[must_use]
pub fn outline(view: &View<'_>) -> Option<Timeline> {
    let logs = view.logs.as_ref()?;
    let lanes: Vec<Lane> = view.branches.iter().map(|b| lane(logs, b)).collect();
    if lanes.iter().all(|l| l.commits.is_empty()) {
        return None;
    }
    let last = view.last_frame().map_or(0, |f| f.0);
    let shown = if last == 0 {
        Some((0, 0))
    } else {
        let at = |lane: &Lane| lane.commits.iter().find(|d| d.frame == last).map(|d| d.number);
        lanes.iter().enumerate().find_map(|(i, lane)| Some((i, at(lane)?)))
    };
    Some(Timeline { lanes, shown })
}

fn lane(logs: &WalIndex<'_>, branch: &Branch) -> Lane {
    let is_shown = branch.kind == crate::evidence::BranchKind::Shown;
    let from = if is_shown { 0 } else { branch.shared };
    let mut lane = Lane { name: branch.name.clone(), kind: branch.kind.word().to_owned(), ..Lane::default() };
    let mut frames = 0_u32;
    let mut number = 0_u32;
    for (at, &i) in branch.path.iter().enumerate() {
        frames = frames.saturating_add(1);
        let commit = branch.commit_at(logs, i);
        if commit == 0 {
            continue;
        }
        number = number.saturating_add(1);
        if at < idx(from) {
            lane.leaves_at = number;
        } else {
            lane.commits.push(Dot { number, frame: logs.number(idx(i)).0, frames, pages: commit });
        }
        frames = 0;
    }
    if is_shown {
        lane.tail = small(logs.frames.iter().filter(|f| f.class == FrameClass::Uncommitted && f.page != 0).count());
    }
    lane
}
