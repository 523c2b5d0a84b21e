//! Write-ahead logs and rollback journals with their random numbers replaced, so that a recipe gives the same bytes.

/// Words of the WAL checksum; the magic number says which byte order they are read in.
fn checksum(data: &[u8], little: bool, mut s: (u32, u32)) -> (u32, u32) {
    for pair in data.chunks_exact(8) {
        let word = |b: &[u8]| {
            let a = [b[0], b[1], b[2], b[3]];
            if little { u32::from_le_bytes(a) } else { u32::from_be_bytes(a) }
        };
        s.0 = s.0.wrapping_add(word(&pair[..4])).wrapping_add(s.1);
        s.1 = s.1.wrapping_add(word(&pair[4..])).wrapping_add(s.0);
    }
    s
}

fn put_pair(at: &mut [u8], pair: (u32, u32)) {
    at[..4].copy_from_slice(&pair.0.to_be_bytes());
    at[4..8].copy_from_slice(&pair.1.to_be_bytes());
}

fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// Bytes of a page as the header of a WAL says.
pub fn wal_page_size(wal: &[u8]) -> usize {
    be32(wal, 8) as usize
}

/// Gives a WAL the salts of a seed and computes every checksum anew. Frames of older generations keep their distance to
/// the current salt and chain to one another; frames whose salt is zero stay as they are.
pub fn reseal_wal(wal: &mut [u8], seed: u32) {
    if wal.len() < 32 {
        return;
    }
    let little = be32(wal, 0) & 1 == 0;
    let frame = wal_page_size(wal) + 24;
    let salt = (be32(wal, 16), be32(wal, 20));
    let fresh = |old: (u32, u32), nth: usize| {
        if nth == 0 {
            (seed, seed.wrapping_mul(0x9e37_79b9) | 1)
        } else {
            (seed.wrapping_add(old.0.wrapping_sub(salt.0)), seed.wrapping_mul(0x85eb_ca6b).wrapping_add(nth as u32) | 1)
        }
    };
    let mut generations = vec![salt];
    let mut sums: Vec<(u32, u32)> = vec![(0, 0)];
    let head = fresh(salt, 0);
    put_pair(&mut wal[16..24], head);
    sums[0] = checksum(&wal[..24], little, (0, 0));
    let sum = sums[0];
    put_pair(&mut wal[24..32], sum);
    for f in wal[32..].chunks_exact_mut(frame) {
        let old = (be32(f, 8), be32(f, 12));
        if old == (0, 0) {
            continue;
        }
        let nth = generations.iter().position(|g| *g == old).unwrap_or_else(|| {
            generations.push(old);
            sums.push((seed ^ 0x5555_5555, seed ^ 0x3333_3333));
            generations.len() - 1
        });
        put_pair(&mut f[8..16], fresh(old, nth));
        let s = checksum(&f[24..], little, checksum(&f[..8], little, sums[nth]));
        sums[nth] = s;
        put_pair(&mut f[16..24], s);
    }
}

/// Gives every header of a rollback journal the nonce of a seed and computes the checksums of its records anew. A first header that is
/// zero (PERSIST mode after a commit) stays so.
pub fn reseal_journal(journal: &mut [u8], seed: u32, page: usize) {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let mut at = 0;
    while at + 28 <= journal.len() {
        let has_magic = journal[at..at + 8] == MAGIC;
        // Magic and count of a header are written when its records are synced; until then they are zero.
        if !has_magic && journal[at..at + 12] != [0; 12] {
            break;
        }
        let (mut count, mut sector) = (0, 512);
        if has_magic || at > 0 {
            (count, sector) = (be32(journal, at + 8), be32(journal, at + 20).max(512) as usize);
            journal[at + 12..at + 16].copy_from_slice(&seed.to_be_bytes());
        }
        // The bytes of the header's sector behind the header are whatever the memory held.
        let end = (at + sector).min(journal.len());
        journal[at + 28..end].fill(0);
        let mut record = at + sector;
        let mut n = 0;
        // A header that was never synced counts no records; they reach to the end of the file.
        while record + page + 8 <= journal.len() && (n < count || count == 0 || count == u32::MAX) {
            let data = &journal[record + 4..record + 4 + page];
            let sum = (1..page).rev().filter(|i| (page - i).is_multiple_of(200)).fold(seed, |sum, i| sum.wrapping_add(u32::from(data[i])));
            journal[record + 4 + page..record + 8 + page].copy_from_slice(&sum.to_be_bytes());
            record += page + 8;
            n += 1;
        }
        at = record.div_ceil(sector) * sector;
    }
}
