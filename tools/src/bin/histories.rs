//! Carves generated histories with the program that is named, and prints recall and false rows.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Parser;
use rootpage_tools::histories;

/// Scores `rootpage carve` on generated histories.
#[derive(Parser)]
struct Args {
    /// The program.
    program: PathBuf,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Only histories whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Print so many samples of what is missing or wrong.
    #[arg(long, default_value_t = 0)]
    samples: usize,
    /// Keep the databases in this folder.
    #[arg(long)]
    keep: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let temp = tempfile::tempdir()?;
    let dir = args.keep.clone().unwrap_or_else(|| temp.path().to_path_buf());
    std::fs::create_dir_all(&dir)?;
    let mut total = histories::Score::default();
    for seed in args.seed..args.seed + args.seeds {
        for kind in histories::kinds(seed).iter().filter(|k| k.name.contains(&args.only)) {
            let db = dir.join(format!("{}.db", kind.name));
            let _ = std::fs::remove_file(&db);
            let truth = histories::make(&db, kind)?;
            let out = Command::new(&args.program).arg("carve").arg(&db).args(["--format", "jsonl"]).output()?;
            if !out.status.success() {
                println!("{}: {}", kind.name, String::from_utf8_lossy(&out.stderr));
            }
            let score = histories::score(&db, &truth, &String::from_utf8_lossy(&out.stdout));
            println!(
                "{:36} there {:5} found {:5} ({:.4})  given {:5} wrong {:3}  live {:3}  {}",
                kind.name,
                score.there,
                score.found,
                score.found as f64 / (score.there.max(1)) as f64,
                score.given,
                score.wrong,
                score.live_called_deleted,
                score
                    .tables
                    .iter()
                    .filter(|(_, n)| n[0] != n[1] || n[3] > 0)
                    .map(|(t, n)| format!("{t} {}/{} w{}", n[1], n[0], n[3]))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            total.add(&score);
        }
    }
    for sample in total.samples.iter().take(args.samples) {
        println!("{}", sample.chars().take(600).collect::<String>());
    }
    println!(
        "total: there {} found {} ({:.4}), given {} wrong {} ({:.4}), live called deleted {}",
        total.there,
        total.found,
        total.found as f64 / total.there.max(1) as f64,
        total.given,
        total.wrong,
        total.wrong as f64 / total.given.max(1) as f64,
        total.live_called_deleted
    );
    Ok(())
}
