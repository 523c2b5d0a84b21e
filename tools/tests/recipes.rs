//! The corpus on disk is what its recipes make.

use std::fs;
use std::path::Path;

use rootpage_tools::case;

#[test]
fn every_case_is_made_by_its_recipe() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut cases = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.join("case.toml").exists() {
            continue;
        }
        let name = dir.file_name().unwrap().to_str().unwrap();
        let made =
            case::make(&case::read(&dir).unwrap_or_else(|e| panic!("{name}: {e:#}")), name).unwrap_or_else(|e| panic!("{name}: {e:#}"));
        for (file, data) in made {
            assert!(
                fs::read(dir.join(&file)).ok().as_ref() == Some(&data),
                "corpus/{name}/{file} is not what the recipe makes: run `cargo run -p rootpage-tools -- corpus make`"
            );
        }
        cases += 1;
    }
    assert!(cases >= 30, "{cases} cases");
}
