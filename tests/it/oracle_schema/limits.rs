//! What is counted as within the limits of SQLite against what SQLite 3.40.1 was seen to read: the greatest number of repetitions of each
//! form. A text that is beyond them must never be let into a copy; one well within them must not be kept out.

use rootpage::schema::ddl::limits::within;
use rootpage::schema::ddl::token::tokens;

type Form = (&'static str, usize, fn(usize) -> String);

fn check(open: &str, close: &str, n: usize) -> String {
    format!("CREATE TABLE t(a CHECK({}a{}))", open.repeat(n), close.repeat(n))
}

fn view(open: &str, close: &str, n: usize) -> String {
    format!("CREATE VIEW v AS SELECT a, b FROM c WHERE {}a{}", open.repeat(n), close.repeat(n))
}

const FORMS: &[Form] = &[
    ("parentheses", 91, |n| check("(", ")", n)),
    ("not", 92, |n| check("NOT ", "", n)),
    ("minus", 92, |n| check("- ", "", n)),
    ("calls", 30, |n| check("abs(", ")", n)),
    ("second arguments", 18, |n| check("max(1,", ")", n)),
    ("third arguments", 18, |n| check("max(1,2,", ")", n)),
    ("case when", 30, |n| check("CASE WHEN ", " THEN 1 END", n)),
    ("case then", 18, |n| check("CASE WHEN 1 THEN ", " END", n)),
    ("case else", 22, |n| check("CASE WHEN 1 THEN 2 ELSE ", " END", n)),
    ("cast", 44, |n| check("CAST(", " AS INT)", n)),
    ("in", 30, |n| check("a IN (", ")", n)),
    ("in a list", 18, |n| check("a IN (1,", ")", n)),
    ("sums", 30, |n| check("(1+", ")", n)),
    ("all operators", 8, |n| check("(1 OR 2 AND 3=4+5*", ")", n)),
    ("escape", 30, |n| check("(a LIKE ", " ESCAPE 1)", n)),
    ("chain of like", 999, |n| check("a LIKE ", "", n)),
    ("chain of plus", 999, |n| check("", "+1", n)),
    ("chain of and", 999, |n| check("", " AND 1", n)),
    ("chain of isnull", 999, |n| check("", " ISNULL", n)),
    ("arguments", 126, |n| format!("CREATE TABLE t(a CHECK(max({}1)))", "1,".repeat(n))),
    ("terms of an index", 1999, |n| format!("CREATE INDEX i ON t({}a)", "a,".repeat(n))),
    ("compound", 499, |n| format!("CREATE VIEW v AS SELECT 1 {}", "UNION ALL SELECT 1 ".repeat(n))),
    ("subqueries", 16, |n| format!("CREATE VIEW v AS SELECT 1 WHERE {}1{}", "(SELECT ".repeat(n), ")".repeat(n))),
    ("subqueries in from", 13, |n| format!("CREATE VIEW v AS {}SELECT 1{}", "SELECT * FROM (".repeat(n), ")".repeat(n))),
    ("exists", 11, |n| format!("CREATE VIEW v AS SELECT 1 WHERE {}1{}", "EXISTS (SELECT 1 WHERE ".repeat(n), ")".repeat(n))),
    ("with", 16, |n| format!("CREATE VIEW v AS {}SELECT 1{}", "WITH x AS (".repeat(n), ") SELECT 1".repeat(n))),
    ("parentheses of a view", 84, |n| view("(", ")", n)),
    ("parentheses of from", 41, |n| format!("CREATE VIEW v AS SELECT * FROM {}a{}", "(".repeat(n), ")".repeat(n))),
    ("windows", 9, |n| format!("CREATE VIEW v AS SELECT {}a{}", "sum(a) OVER (PARTITION BY ".repeat(n), ")".repeat(n))),
    ("filters", 10, |n| format!("CREATE VIEW v AS SELECT {}a{}", "sum(a) FILTER (WHERE ".repeat(n), ")".repeat(n))),
    ("parentheses of a trigger", 85, |n| {
        format!("CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO q(a,b) VALUES(1,{}a{}); END", "(".repeat(n), ")".repeat(n))
    }),
    ("parentheses of an index", 85, |n| format!("CREATE INDEX i ON t(a) WHERE {}a{}", "(".repeat(n), ")".repeat(n))),
];

#[test]
fn nothing_beyond_the_limits_is_let_through_and_little_within_them_is_kept_out() {
    let mut wrong = Vec::new();
    for (name, most, form) in FORMS {
        let reads = |n: usize| within(&tokens(form(n).as_bytes()).collect::<Vec<_>>()).is_ok();
        let ours = (0..=most + 1).rev().find(|n| reads(*n)).unwrap_or(0);
        if ours > *most || ours < most * 3 / 5 {
            wrong.push(format!("{name}: SQLite reads {most}, we say {ours}"));
        }
        assert!(!reads(most * 2 + 50), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let long = format!("CREATE TABLE t(a CHECK(a IN ({}1)))", "1,".repeat(9000));
    for fine in [long.as_str(), "CREATE TABLE t(a INT, b VARCHAR(10, 2) NOT NULL DEFAULT (1 + 2), CHECK(a <= b AND a <> -1))"] {
        assert_eq!(within(&tokens(fine.as_bytes()).collect::<Vec<_>>()), Ok(()));
    }
}
