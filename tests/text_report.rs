//! Golden tests of the terminal report at 80 and 160 columns, plain and coloured. `UPDATE=1` writes them anew.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::as_conversions)]
#![allow(clippy::arithmetic_side_effects, clippy::wildcard_imports)]

mod report_samples;

use std::path::Path;

use report_samples as samples;
use rootpage::report::model::*;
use rootpage::report::text::{Style, render};
use rootpage::report::{Report, page_map, text_diff};

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    for (n, (want, got)) in want.lines().zip(text.lines()).enumerate() {
        assert_eq!(want, got, "{name}, line {} (UPDATE=1 writes it anew)", n + 1);
    }
    assert_eq!(want, text, "{name}");
}

fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("healthy", samples::healthy()),
        ("index", samples::index_only()),
        ("damaged", samples::damaged(100)),
        ("recovered", samples::recovered()),
        ("no-copy", samples::nothing_recoverable()),
    ]
}

fn style(width: usize, colour: bool) -> Style {
    let mut style = Style::default();
    style.width = width;
    style.colour = colour;
    style
}

#[test]
fn the_report_reads_as_it_should() {
    for (name, report) in all() {
        for width in [80, 160] {
            golden(&format!("{name}-{width}.txt"), &render(&report, &style(width, false)));
        }
        golden(&format!("{name}-colour.txt"), &render(&report, &style(80, true)));
        golden(&format!("{name}.json"), &report.to_json());
    }
}

#[test]
fn a_difference_reads_as_it_should() {
    let diff = samples::difference();
    for width in [80, 160] {
        let text = text_diff::render(&diff, &style(width, false));
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}'));
        assert!(text.contains("'two  blanks' -> 'two blanks'"), "blanks are values");
        golden(&format!("diff-{width}.txt"), &text);
    }
    golden("diff-colour.txt", &text_diff::render(&diff, &style(80, true)));
    golden("diff.json", &diff.to_json());
}

#[test]
fn lines_fit_and_nothing_escapes() {
    for (name, report) in all() {
        for width in [40, 80, 160] {
            let text = render(&report, &style(width, false));
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{name}");
            assert!(!text.contains('\u{202e}'));
            for line in text.lines() {
                // A command, a hash and a name without a blank are never broken.
                let whole = line.starts_with("    ") || line.contains("script>") || !line.trim().contains(' ');
                assert!(whole || width < 80 || line.chars().count() <= width, "{name} at {width}: {line:?}");
            }
        }
    }
}

#[test]
fn the_json_is_the_model() {
    for (name, report) in all() {
        let mut back: Report = serde_json::from_str(&report.to_json()).unwrap();
        back.map.clone_from(&report.map);
        assert_eq!(back, report, "{name}");
    }
}

#[test]
fn exit_codes_follow_the_report() {
    let codes: Vec<u8> = all().iter().map(|(_, r)| r.exit_code).collect();
    assert_eq!(codes, [0, 1, 2, 2, 3]);
    let mut r = samples::recovered();
    r.recovery.as_mut().unwrap().tables.retain(|t| t.name == "settings");
    assert_eq!(r.code(), 1, "damage, but every row is live");
    r.hidden_rows = 1;
    assert_eq!(r.code(), 2, "committed rows are hidden");
    r.hidden_rows = 0;
    r.verdict.class = Class::Healthy;
    assert_eq!(r.code(), 1, "an index was left out");
    r.recovery.as_mut().unwrap().left_out.clear();
    assert_eq!(r.code(), 0);
    r.recovery.as_mut().unwrap().outputs.clear();
    assert_eq!(r.code(), 3, "no copy");
}

#[test]
fn a_ledger_that_does_not_balance_is_told() {
    let mut r = samples::recovered();
    r.recovery.as_mut().unwrap().tables[0].rows_written -= 1;
    assert!(r.balance().unwrap_err().contains("messages"));
    let mut r = samples::damaged(100);
    r.map.pop();
    assert!(r.balance().unwrap_err().contains("page map"));
    let mut r = samples::damaged(100);
    r.page_count += 1;
    assert!(r.balance().is_err());
}

#[test]
fn the_page_map_reads_back() {
    let report = samples::damaged(5000);
    let text = page_map::to_text(&report);
    golden("map.txt", &page_map::to_text(&samples::damaged(60)));
    let lines = page_map::parse(&text).unwrap();
    assert_eq!(lines.len(), report.map.len());
    for (line, run) in lines.iter().zip(&report.map) {
        assert_eq!((line.first, line.count, line.role.as_str()), (run.first, run.count, run.role.as_str()));
        let owner = match run.owner.map(|id| report.object(id).unwrap()) {
            None => page_map::MapOwner::None,
            Some(o) => o.root.map_or(page_map::MapOwner::Object(o.id), page_map::MapOwner::Root),
        };
        assert_eq!(line.owner, owner);
    }
    for bad in ["", "1 2 x - main", "# rootpage page map 2\n", "# rootpage page map 1\n0 1 x - main", "# rootpage page map 1\n1 x"] {
        assert!(page_map::parse(bad).is_err(), "{bad:?}");
    }
}
