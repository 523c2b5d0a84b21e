//! Golden tests of the terminal report at 80 and 160 columns, plain and coloured. `UPDATE=1` writes them anew.

use std::path::Path;

use crate::report_samples as samples;
use rootpage::report::diff::Named;
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
fn however_much_is_lost_what_to_do_next_is_near_the_top() {
    let report = samples::vast();
    for width in [60, 80, 160] {
        let text = render(&report, &style(width, false));
        let next = text.lines().position(|l| l == "What to do next").unwrap();
        assert!(next < 250 && text.lines().count() < 600, "{next} of {} lines at {width}", text.lines().count());
        assert!(text.lines().all(|l| l.chars().count() < 450), "a name fills the screen");
    }
    let text = render(&report, &style(80, false));
    for told in ["3,983 more tables", "4,000 lost_and_found", "8,000 rows of 4,000 trees", "lost_and_found_70 to lost_and_found_4069"] {
        assert!(text.contains(told), "{told}\n{text}");
    }
    let lost = text.lines().skip(1).take(6).collect::<Vec<_>>().join(" ");
    assert!(lost.contains("1,998,005 lost, and an unknown number more"), "{lost}");
    assert!(text.contains("table_999 ") && text.contains("table_998 "), "the heaviest losses are named");
    // The JSON has every table and every character.
    let json = report.to_json();
    assert!(json.contains("\"table_3999\"") && json.contains("\"lost_and_found_4069\"") && json.contains(&"x\\u0001y".repeat(300)));
}

#[test]
fn what_is_lost_stands_under_the_verdict() {
    let lost = |change: fn(&mut TableRecovery)| {
        let mut r = samples::recovered();
        let tables = &mut r.recovery.as_mut().unwrap().tables;
        tables.truncate(1);
        change(&mut tables[0]);
        render(&r, &style(160, false)).lines().nth(1).unwrap().to_owned()
    };
    assert!(lost(|t| t.lost.clear()).contains("7 set aside. The copy"));
    assert!(lost(|t| t.lost.truncate(1)).contains("7 set aside; 5 lost. The copy"));
    assert!(lost(|_| ()).contains("7 set aside; 5 lost, and an unknown number more. The copy"));
    assert!(lost(|t| drop(t.lost.remove(0))).contains("7 set aside; an unknown number is lost. The copy"));
}

#[test]
fn a_line_of_a_map_that_is_none_is_told_with_what_is_wrong() {
    for (line, why) in [
        ("0 1 orphan - main", "line 2: pages are counted from 1; there is no page 0"),
        ("5 0 orphan - main", "line 2: page count 0: "),
        ("5 99999999999 orphan - main", "line 2: page count \"99999999999\" is larger than any database is"),
        ("4294967295 2 orphan - main", "line 2: 2 pages from page 4294967295 on are more than a database can have"),
        ("5 1 orphan", "line 2: 3 fields; a line has `first count role owner origin`"),
        ("-5 1 orphan - main", "line 2: first page \"-5\" is no number"),
        ("5 1 orphan root: main", "line 2: root page \"\" is no number"),
        ("5 1 orphan me\u{1b}[2J main", "line 2: owner \"me\\u{1b}[2J\" is none; an owner is root:N, object:N, or - for nobody"),
    ] {
        let told = page_map::parse(&format!("# rootpage page map 1\n{line}\n")).unwrap_err();
        assert!(told.starts_with(why), "{line}: {told}");
    }
}

#[test]
fn the_length_of_a_value_is_that_of_the_value() {
    let value = |v: serde_json::Value| {
        let mut d = samples::difference();
        d.tables[0].rows.truncate(1);
        d.tables[0].rows[0].values = vec![Named { column: "v".into(), value: v }];
        text_diff::render(&d, &style(80, false))
    };
    assert!(value("it's ".repeat(100).into()).contains("… (500 characters)"));
    assert!(value("\n".repeat(300).into()).contains("… (300 characters)"));
    assert!(value(serde_json::json!({"blob": "00".repeat(300)})).contains("… (300 bytes)"));
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
