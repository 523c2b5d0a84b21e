//! Any bytes as a database: check and recover answer, and their ledgers balance.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rootpage::ctx::Ctx;
use rootpage::error::Error;
use rootpage::verbs::{self, Inputs, Options};

fuzz_target!(|data: &[u8]| {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    std::fs::write(&db, data).unwrap();
    let (inputs, options, ctx) = (Inputs::at_path(&db), Options::default(), Ctx::default());
    for report in [verbs::check(&inputs, &options, &ctx), verbs::recover(&inputs, &options, &dir.path().join("out"), &ctx)] {
        match report {
            Ok(report) => report.balance().unwrap(),
            Err(Error::NotADatabase { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
});
