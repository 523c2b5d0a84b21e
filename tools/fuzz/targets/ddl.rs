//! Any bytes as CREATE text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rootpage::schema::ddl::{Hint, parse_as};

fuzz_target!(|data: &[u8]| {
    for hint in [Hint::None, Hint::Table, Hint::Virtual, Hint::Index, Hint::View, Hint::Trigger] {
        let _ = parse_as(data, hint);
    }
});
