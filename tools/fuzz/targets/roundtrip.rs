//! Whatever copy comes out of any bytes: a second run finds nothing and gives the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rootpage::ctx::Ctx;
use rootpage::verbs::{self, Inputs, Options};

fuzz_target!(|data: &[u8]| {
    let dir = tempfile::tempdir().unwrap();
    let [db, one, two] = ["db", "one", "two"].map(|n| dir.path().join(n));
    std::fs::write(&db, data).unwrap();
    let (options, ctx) = (Options::default(), Ctx::default());
    if !verbs::recover(&Inputs::at_path(&db), &options, &one, &ctx).is_ok_and(|r| r.exit_code < 3) {
        return;
    }
    let second = verbs::recover(&Inputs::at_path(&one), &options, &two, &ctx).unwrap();
    assert_eq!(second.exit_code, 0, "{}", second.to_json());
    assert!(std::fs::read(one).unwrap() == std::fs::read(two).unwrap());
});
