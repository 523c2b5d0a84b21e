//! The timeline as a picture: a lane for each branch, a dot for each commit, the state that is shown marked.
//!
//! Everything in it is numbers, and names that rootpage gave; it is drawn as SVG without script.
#![expect(clippy::arithmetic_side_effects, reason = "places in a picture that this module lays out itself")]

use std::fmt::Write as _;

use super::super::human::counted;
use super::super::timeline::{Dot, Lane, Timeline};
use crate::ids::wide;

/// Commits that are drawn one by one on a lane; more are drawn as the first and the last of them.
const DOTS: usize = 48;
/// Lanes that are drawn.
const LANES: usize = 12;
/// Pixels between two dots, and between two lanes.
const STEP: usize = 18;
const LANE: usize = 34;
/// Where the first dot stands.
const LEFT: usize = 120;

/// Places of the dots of a lane, by commit number: all of them, or the first and the last with a gap between.
fn places(lane: &Lane) -> Vec<(Option<&Dot>, usize)> {
    let all = lane.commits.len();
    let from = usize::try_from(lane.leaves_at).unwrap_or(0).min(DOTS);
    if all <= DOTS {
        return lane.commits.iter().enumerate().map(|(i, d)| (Some(d), LEFT + (from + i + 1) * STEP)).collect();
    }
    let half = DOTS / 2;
    let head = lane.commits.iter().take(half).enumerate().map(|(i, d)| (Some(d), LEFT + (from + i + 1) * STEP));
    let gap = (None, LEFT + (from + half + 1) * STEP);
    let tail = lane.commits.iter().skip(all - half).enumerate().map(|(i, d)| (Some(d), LEFT + (from + half + i + 2) * STEP));
    head.chain([gap]).chain(tail).collect()
}

/// The picture; empty when there is nothing to draw.
#[must_use]
pub fn svg(timeline: &Timeline) -> String {
    if timeline.lanes.iter().all(|l| l.commits.is_empty()) {
        return String::new();
    }
    let lanes: Vec<(&Lane, Vec<(Option<&Dot>, usize)>)> = timeline.lanes.iter().take(LANES).map(|l| (l, places(l))).collect();
    let right = lanes.iter().flat_map(|(_, p)| p.iter().map(|(_, x)| *x)).max().unwrap_or(LEFT) + STEP * 2;
    let height = lanes.len() * LANE + 20;
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg class=\"timeline\" role=\"img\" aria-label=\"Branches of the log as lanes, commits as dots\" width=\"{right}\" height=\"{height}\" viewBox=\"0 0 {right} {height}\">"
    );
    let x_of = |number: u32| -> usize {
        let base = lanes.first().and_then(|(_, p)| p.iter().find(|(d, _)| d.is_some_and(|d| d.number == number)).map(|(_, x)| *x));
        if number == 0 { LEFT } else { base.unwrap_or(LEFT) }
    };
    for (i, (lane, dots)) in lanes.iter().enumerate() {
        let y = i * LANE + 26;
        let start = x_of(lane.leaves_at);
        let end = dots.last().map_or(start, |(_, x)| *x);
        if i > 0 {
            let _ = write!(out, "<path d=\"M{start} 26 C{start} {y} {start} {y} {} {y}\" class=\"fork\"/>", start + STEP / 2);
        }
        let _ =
            write!(out, "<line x1=\"{start}\" y1=\"{y}\" x2=\"{end}\" y2=\"{y}\" class=\"lane{}\"/>", if i == 0 { "" } else { " hidden" });
        let label = if i == 0 { "SQLite reads".to_owned() } else { format!("{}: {}", lane.name, lane.kind) };
        let _ = write!(out, "<text x=\"4\" y=\"{}\">{}</text>", y + 4, text(&label));
        if i == 0 {
            dot(&mut out, LEFT, y, "base", timeline.shown == Some((0, 0)), "main file");
        }
        for (d, x) in dots {
            let Some(d) = d else {
                let _ = write!(out, "<text x=\"{}\" y=\"{}\">…</text>", x - 5, y + 4);
                continue;
            };
            let words = format!(
                "commit {}: frame {}, {}, {}",
                d.number,
                d.frame,
                counted(u64::from(d.frames), "frame"),
                counted(u64::from(d.pages), "page")
            );
            dot(&mut out, *x, y, if i == 0 { "read" } else { "hidden" }, timeline.shown == Some((i, d.number)), &words);
        }
        if lane.tail > 0 {
            dot(&mut out, end + STEP, y, "tail", false, &format!("not committed: {}", counted(u64::from(lane.tail), "frame")));
        }
    }
    out.push_str("</svg>");
    out
}

fn dot(out: &mut String, x: usize, y: usize, class: &str, shown: bool, words: &str) {
    if shown {
        let _ = write!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"9\" class=\"shown\"/>");
    }
    let _ = write!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" class=\"{class}\"><title>{}</title></circle>", text(words));
}

/// Text of this module for the inside of an element.
fn text(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What the picture shows, in words.
#[must_use]
pub fn words(timeline: &Timeline) -> String {
    let read = timeline.lanes.first().map_or(0, |l| l.commits.len());
    let hidden: usize = timeline.lanes.iter().skip(1).map(|l| l.commits.len()).sum();
    let mut out = format!("{} that SQLite reads", counted(wide(read), "commit"));
    if hidden > 0 {
        let _ = write!(
            out,
            ", {} on {} that it does not read",
            counted(wide(hidden), "commit"),
            branches(timeline.lanes.len().saturating_sub(1))
        );
    }
    let more = timeline.lanes.len().saturating_sub(LANES);
    if more > 0 {
        let _ = write!(out, "; {} not drawn", counted(wide(more), "lane"));
    }
    out.push_str(". The ring marks the state that this report is about; `rootpage history` tells what each commit did.");
    out
}

fn branches(n: usize) -> String {
    if n == 1 { "1 branch".to_owned() } else { format!("{n} branches") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &str, leaves_at: u32, commits: u32) -> Lane {
        let dot = |n: u32| Dot { number: leaves_at + n, frame: n * 3, frames: 3, pages: 9 };
        Lane { name: name.to_owned(), kind: "fork".to_owned(), leaves_at, commits: (1..=commits).map(dot).collect(), tail: 0 }
    }

    #[test]
    fn lanes_and_dots_are_drawn_and_the_shown_state_is_marked() {
        let t = Timeline { lanes: vec![lane("main", 0, 4), lane("b1", 2, 3)], shown: Some((0, 4)) };
        let svg = svg(&t);
        assert_eq!(svg.matches("<title>commit").count(), 7);
        assert_eq!(svg.matches("class=\"shown\"").count(), 1);
        assert!(svg.contains("b1: fork") && words(&t).contains("3 commits on 1 branch that"), "{}", words(&t));
    }

    #[test]
    fn a_long_log_is_drawn_with_a_gap_and_an_empty_one_not_at_all() {
        let t = Timeline { lanes: vec![lane("main", 0, 100_000)], shown: None };
        assert!(svg(&t).len() < 20_000);
        assert_eq!(svg(&Timeline::default()), "");
    }
}
