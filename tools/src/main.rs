//! Makers that need real SQLite.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use rootpage_tools::{case, dbgen};

/// Makes databases, healthy and damaged, with real SQLite.
#[derive(Parser)]
enum Cli {
    /// The regression corpus.
    #[command(subcommand)]
    Corpus(Corpus),
    /// Writes every healthy recipe into a folder.
    Healthy {
        /// The folder.
        dir: PathBuf,
    },
}

#[derive(Subcommand)]
enum Corpus {
    /// Makes the files of every case from its case.toml.
    Make {
        /// The folder with the cases.
        #[arg(default_value = "corpus")]
        dir: PathBuf,
        /// Only cases whose name contains this.
        #[arg(long, default_value = "")]
        only: String,
        /// Write nothing; fail when a file is not what its recipe makes.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<()> {
    match Cli::parse() {
        Cli::Corpus(Corpus::Make { dir, only, check }) => make(&dir, &only, check),
        Cli::Healthy { dir } => {
            fs::create_dir_all(&dir)?;
            for recipe in dbgen::recipes() {
                let path = dir.join(format!("{}.db", recipe.name));
                if path.exists() {
                    fs::remove_file(&path)?;
                }
                dbgen::build(&path, &recipe).with_context(|| recipe.name.clone())?;
            }
            Ok(())
        }
    }
}

fn make(dir: &Path, only: &str, check: bool) -> Result<()> {
    let mut names: Vec<String> = fs::read_dir(dir)?
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| dir.join(n).join("case.toml").exists())
        .collect();
    names.sort();
    let mut bytes = 0;
    let mut bad = Vec::new();
    for name in names.iter().filter(|n| n.contains(only)) {
        let folder = dir.join(name);
        let made = case::read(&folder).and_then(|recipe| case::make(&recipe, name));
        let files = match made {
            Ok(files) => files,
            Err(e) => {
                bad.push(format!("{name}: {e:#}"));
                continue;
            }
        };
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let file = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if file != "case.toml" && !files.contains_key(file) {
                if check { bad.push(format!("{name}: {file} is of no recipe")) } else { fs::remove_file(&path)? }
            }
        }
        for (file, data) in files {
            bytes += data.len();
            let path = folder.join(&file);
            if fs::read(&path).ok().as_ref() != Some(&data) {
                if check { bad.push(format!("{name}: {file} is not what the recipe makes")) } else { fs::write(&path, data)? }
            }
        }
    }
    println!("{} cases, {} KiB", names.len(), bytes / 1024);
    ensure!(bad.is_empty(), "{}", bad.join("\n"));
    Ok(())
}
