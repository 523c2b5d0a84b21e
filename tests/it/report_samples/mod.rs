//! Reports made by hand, hostile names included, for the tests of text and HTML.

use std::collections::BTreeMap;

use rootpage::finding::Code;
use rootpage::report::Report;
use rootpage::report::diff::*;
use rootpage::report::model::*;

pub const HOSTILE: &str = "<script>document.title='owned'</script>\u{1b}[2J\u{202e}\"'&\n";

pub fn finding(code: Code, class: Class, object: Option<(u32, &str)>, count: u64, pages: &[u32]) -> FindingGroup {
    let p = code.problem();
    FindingGroup {
        code,
        name: p.name.into(),
        class,
        object: object.map(|o| o.0),
        object_name: object.map(|o| o.1.to_owned()),
        count,
        action: p.action.into(),
        kept: pages
            .iter()
            .map(|&page| FindingItem {
                page: Some(page),
                cell: (page % 2 == 0).then_some(3),
                origin: if page % 5 == 0 { "wal frame 7".into() } else { "main".into() },
                at: 0,
                got: 99,
                want: 4096,
                sentence: p.sentence.replace("{got}", "99").replace("{want}", "4096"),
                detail: None,
            })
            .collect(),
    }
}

pub fn object(id: u32, kind: &str, name: &str, root: Option<u32>, status: Status, rows: Option<u64>, pages: u64) -> Object {
    Object {
        id,
        kind: kind.into(),
        name: name.into(),
        table: (kind == "index").then(|| "messages".into()),
        root,
        family: if kind == "index" { "index".into() } else { "table".into() },
        status,
        rows,
        pages,
        findings: u64::from(status != Status::Whole),
    }
}

pub fn input(path: &str, role: InputRole) -> Input {
    Input {
        path: path.into(),
        role,
        bytes: 4_321_280,
        sha256_before: Some("3f2a".repeat(16)),
        sha256_after: Some("3f2a".repeat(16)),
        access: Access::Mapped,
        unreadable: Vec::new(),
    }
}

pub fn healthy() -> Report {
    let mut r = Report::new(Verb::Check);
    r.inputs.push(input("state.db", InputRole::Main));
    (r.page_size, r.page_count) = (4096, 3);
    r.pages_by_role = BTreeMap::from([("table-leaf".into(), 2), ("index-leaf".into(), 1)]);
    r.objects = vec![
        object(0, "table", "sqlite_schema", Some(1), Status::Whole, Some(2), 1),
        object(1, "table", "messages", Some(2), Status::Whole, Some(12), 2),
    ];
    r.seal();
    r
}

pub fn index_only() -> Report {
    let mut r = healthy();
    r.verdict = Verdict { class: Class::IndexOnly, sentence: String::new() };
    r.objects.push(object(2, "index", "messages_by_date", Some(3), Status::Damaged, None, 1));
    r.findings = vec![finding(Code::RowNotInIndex, Class::IndexOnly, Some((2, "messages_by_date")), 1234, &[3])];
    r.seal();
    r
}

/// A check of a damaged database of any size, with interleaved trees and a hostile table name.
pub fn damaged(pages: u32) -> Report {
    let mut r = Report::new(Verb::Check);
    r.command = "rootpage check backups/state.db --no-journal".to_owned();
    r.evidence_options = "--no-journal".to_owned();
    r.verdict.class = Class::Structural;
    r.inputs.push(input("backups/state.db", InputRole::Main));
    r.inputs.push(input("backups/state.db-wal", InputRole::Wal));
    (r.page_size, r.page_count) = (4096, pages.into());
    r.header = vec![
        HeaderDecision { field: "page size".into(), value: "4096".into(), evidence: "header".into(), overruled: false },
        HeaderDecision {
            field: "text encoding".into(),
            value: "UTF-8".into(),
            evidence: "the text of 40 sampled records".into(),
            overruled: true,
        },
    ];
    r.sidecars = vec![Sidecar {
        compares: None,
        path: "backups/state.db-wal".into(),
        role: InputRole::Wal,
        fit: Fit::Undecided,
        blended: true,
        reason: "its salts agree with no page image of the main file, and nothing speaks against it".into(),
        views: vec![ViewCount { table: "messages".into(), with: Some(4233), without: Some(4100) }],
    }];
    r.objects = vec![
        object(0, "table", "sqlite_schema", Some(1), Status::Whole, Some(4), 1),
        object(1, "table", "messages", Some(2), Status::Damaged, Some(4233), u64::from(pages) / 2),
        object(2, "index", "messages_by_date", Some(3), Status::Damaged, None, 900),
        object(3, "table", HOSTILE, Some(4), Status::Missing, None, 0),
        object(
            4,
            "table",
            "a_table_with_a_name_that_is_much_longer_than_any_column_of_a_terminal_of_eighty",
            Some(9),
            Status::Whole,
            Some(7),
            1,
        ),
    ];
    r.findings = vec![
        finding(Code::PageWithoutOwner, Class::Housekeeping, None, 12, &[31, 32]),
        finding(Code::RowNotInIndex, Class::IndexOnly, Some((2, "messages_by_date")), 41, &[40]),
        finding(Code::PageKindBad, Class::Structural, Some((1, "messages")), 2, &[17, 50]),
        finding(Code::PageAllZero, Class::Structural, Some((3, HOSTILE)), 1, &[4]),
        finding(Code::ForeignKeyBroken, Class::Healthy, Some((1, "messages")), 3, &[]),
    ];
    // A value of the evidence, as hostile as a name can be.
    let mut parent = finding(Code::ForeignKeyBroken, Class::Healthy, None, 1, &[33]).kept;
    for item in &mut parent {
        item.detail = Some(HOSTILE.into());
        item.sentence = format!("{}: {HOSTILE}", item.sentence);
    }
    r.findings[4].kept = parent;
    r.overruled = vec![Overruled {
        first: 50,
        count: 1,
        was_role: "orphan".into(),
        was_owner: None,
        role: "table-leaf".into(),
        owner: Some("table messages".into()),
        line: 12,
    }];
    // Interleaved trees: every page another role than its neighbour, except some long runs.
    let mut page = 1;
    let kinds: [(&str, Option<u32>); 5] =
        [("table-leaf", Some(1)), ("index-leaf", Some(2)), ("overflow", Some(1)), ("table-leaf", Some(4)), ("freelist-leaf", None)];
    let mut seed = 7_u32;
    while page <= pages {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (mut role, mut owner) = kinds[(seed >> 20) as usize % 5];
        let mut count = 1;
        if page == 1 {
            (role, owner) = ("table-leaf", Some(0));
        } else if seed.is_multiple_of(97) {
            (role, owner, count) = ("freelist-leaf", None, (pages / 50 + 1).min(60));
        } else if page % 1000 == 17 {
            (role, owner) = ("table-interior", Some(1));
        } else if page % 61 == 0 {
            (role, owner) = ("orphan", None);
        }
        let count = count.min(pages - page + 1);
        let damaged = matches!(page, 4 | 17 | 40 | 50) || page == pages - 20;
        r.map.push(PageRun {
            first: page,
            count,
            role: role.into(),
            owner,
            origin: if seed.is_multiple_of(3) { "wal".into() } else { "main".into() },
            damaged,
            overruled: page == 50,
        });
        *r.pages_by_role.entry(role.into()).or_insert(0) += u64::from(count);
        page += count;
    }
    r.seal();
    assert_eq!(r.balance(), Ok(()));
    r
}

/// A recovery with losses of every kind.
pub fn recovered() -> Report {
    let mut r = damaged(100);
    r.verb = Verb::Recover;
    r.command = "rootpage recover backups/state.db --no-journal -o out.db --force".to_owned();
    r.verdict.sentence.clear();
    let output = |role, path: &str, bytes| Output { role, path: path.into(), bytes, sha256: Some("77ab".repeat(16)).filter(|_| bytes > 0) };
    r.recovery = Some(Recovery {
        outputs: vec![
            output(OutputRole::Copy, "out.db", 409_600),
            output(OutputRole::Salvage, "out.db.salvage.db", 8192),
            output(OutputRole::FinishSql, "out.db.finish.sql", 120),
            output(OutputRole::ReportJson, "out.db.report.json", 0),
            output(OutputRole::ReportHtml, "out.db.report.html", 0),
        ],
        tables: vec![
            TableRecovery {
                name: "messages".into(),
                object: Some(1),
                rows_found: 4240,
                rows_written: 4233,
                set_aside: BTreeMap::from([("deleted".into(), 4), ("not-null-broken".into(), 3)]),
                lost: vec![
                    Gone { rowids: vec![[17, 20], [33, 33]], count: Some(5), witness: "index messages_by_date".into(), page: Some(17) },
                    Gone { rowids: vec![], count: None, witness: String::new(), page: Some(50) },
                ],
                unaccounted: vec![Gone { rowids: vec![[900, 910]], count: Some(11), witness: "fts docsize".into(), page: None }],
                values_changed: BTreeMap::from([("unique-value-nulled".into(), 1)]),
                notes: vec!["3 rows break NOT NULL and are confirmed by an index: see out.db.salvage.db".into()],
            },
            TableRecovery {
                name: HOSTILE.into(),
                object: Some(3),
                lost: vec![Gone { page: Some(4), ..Gone::default() }],
                ..Default::default()
            },
            TableRecovery { name: "settings".into(), object: Some(4), rows_found: 7, rows_written: 7, ..Default::default() },
            TableRecovery {
                name: "a_table_with_a_name_that_is_much_longer_than_any_column_of_a_terminal_of_eighty".into(),
                rows_found: 3,
                rows_written: 2,
                set_aside: BTreeMap::from([("deleted".into(), 1)]),
                ..Default::default()
            },
        ],
        left_out: vec![LeftOut {
            kind: "index".into(),
            name: "messages_by_title".into(),
            reason: "its collation \"icu_de\" is not known here".into(),
            in_finish_sql: true,
            rows: 0,
        }],
        breakers: Vec::new(),
        read_back: Some(ReadBack { rows_compared: 4242, equal: true }),
        moved_aside: vec![["out.db-wal".into(), "out.db-wal.moved-aside-1".into()]],
    });
    r.seal();
    assert_eq!(r.balance(), Ok(()));
    r
}

/// A recovery in which so much was lost that no list of it can be read: thousands of tables, trees without a name, and names as
/// long as only damage makes them.
pub fn vast() -> Report {
    let mut r = recovered();
    let long = "x\u{1}y".repeat(300);
    r.objects[1].name.clone_from(&long);
    for group in r.findings.iter_mut().filter(|g| g.object == Some(1)) {
        group.object_name = Some(long.clone());
        group.kept.iter_mut().for_each(|i| i.sentence.push_str(&long));
    }
    let gone = |n| Gone { rowids: vec![[1, 9]], count: Some(n), witness: format!("index {long}"), page: Some(9) };
    let recovery = r.recovery.as_mut().unwrap();
    recovery.tables[0].name.clone_from(&long);
    recovery.tables[0].notes = vec![format!("declared anew: {long}"); 500];
    for i in 0..4000_u32 {
        let lost = vec![gone(u64::from(i % 1000))];
        recovery.tables.push(TableRecovery { name: format!("table_{i}"), object: Some(1000 + i), lost, ..Default::default() });
        let set_aside = BTreeMap::from([("page-without-owner".to_owned(), 2)]);
        recovery.tables.push(TableRecovery { name: format!("lost_and_found_{}", 70 + i), rows_found: 2, set_aside, ..Default::default() });
        if i >= 400 {
            continue;
        }
        recovery.left_out.push(LeftOut { kind: "view".into(), name: long.clone(), reason: long.clone(), in_finish_sql: false, rows: 0 });
    }
    for i in 0..4000_u32 {
        r.findings.push(finding(Code::PageAllZero, Class::Structural, Some((1000 + i, &format!("table_{i}"))), 1, &[9]));
    }
    r.verdict.sentence.clear();
    r.seal();
    assert_eq!(r.balance(), Ok(()));
    r
}

/// Two databases that differ in every way.
pub fn difference() -> Diff {
    let side = |path: &str, class, sentence: &str| DiffSide {
        inputs: vec![input(path, InputRole::Main)],
        snapshot: None,
        verdict: Verdict { class, sentence: sentence.into() },
    };
    let named = |column: &str, value: serde_json::Value| Named { column: column.into(), value };
    let mut d = Diff::new(
        side("backups/state.db", Class::Structural, "Data is damaged in messages."),
        side("out.db", Class::Healthy, "The database is healthy: no finding."),
    );
    d.settings = vec![SettingDiff { name: "user_version".into(), a: "4".into(), b: "5".into() }];
    d.schema = vec![
        SchemaDiff { kind: "index".into(), name: HOSTILE.into(), a: Some("CREATE INDEX ...".into()), b: None },
        SchemaDiff {
            kind: "table".into(),
            name: "notes".into(),
            a: Some("CREATE TABLE notes(id,  body)".into()),
            b: Some("CREATE TABLE notes(id, body)".into()),
        },
    ];
    let sided = |rows, set_aside, damaged| Some(TableSide { rows, set_aside, damaged });
    d.tables = vec![
        TableDiff {
            name: "messages".into(),
            key: vec!["id".into()],
            columns_only_b: vec!["flags".into()],
            a: sided(4233, 2, true),
            b: sided(4234, 0, false),
            removed: 1,
            added: 2,
            changed: 40,
            rows: vec![
                RowDiff {
                    change: Change::Removed,
                    key: vec![named("id", 17.into())],
                    values: vec![
                        named("id", 17.into()),
                        named("body", HOSTILE.into()),
                        named("hash", serde_json::json!({"blob": "00ff"})),
                        named("note", serde_json::Value::Null),
                        named("empty", "".into()),
                        named("score", 2.0.into()),
                    ],
                    columns: vec![],
                },
                RowDiff {
                    change: Change::Changed,
                    key: vec![named("id", 18.into())],
                    values: vec![],
                    columns: vec![
                        ColumnChange { column: "body".into(), a: "two  blanks".into(), b: "two blanks".into() },
                        ColumnChange {
                            column: "long".into(),
                            a: format!("{}A", "same ".repeat(200)).into(),
                            b: format!("{}B", "same ".repeat(200)).into(),
                        },
                        ColumnChange { column: "n".into(), a: 1.into(), b: 1.0.into() },
                    ],
                },
                RowDiff { change: Change::Added, key: vec![named("id", 19.into())], values: vec![named("id", 19.into())], columns: vec![] },
            ],
            not_listed: 40,
            ..TableDiff::default()
        },
        TableDiff {
            name: "a_table_with_a_name_that_is_much_longer_than_any_column_of_a_terminal_of_eighty".into(),
            b: sided(1_234_567, 0, false),
            added: 1_234_567,
            not_listed: 1_234_567,
            ..TableDiff::default()
        },
        TableDiff { name: "settings".into(), key: vec!["k".into()], a: sided(7, 0, false), b: sided(7, 0, false), ..TableDiff::default() },
    ];
    d.not_compared = vec![NotCompared { table: "search_data".into(), reason: "part of a search index, made from other tables".into() }];
    d.seal();
    d
}

pub fn nothing_recoverable() -> Report {
    let mut r = Report::new(Verb::Recover);
    r.inputs.push(input("it's a file.db", InputRole::Main));
    r.verdict.class = Class::NotADatabase;
    r.recovery = Some(Recovery::default());
    r.seal();
    r
}
