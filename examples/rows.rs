//! The rows of a table of a damaged database: `cargo run --example rows -- corpus/leaf-zero/db.sqlite orders`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which database?")?;
    let table = args.next();
    let mut out = std::io::stdout().lock();
    for row in rootpage::open(path).rows(table.as_deref()) {
        let row = row?;
        std::io::Write::write_all(&mut out, format!("{} {:?} {:?}\n", row.table.name, row.rowid, row.values).as_bytes())?;
    }
    Ok(())
}
