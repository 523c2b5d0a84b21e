//! The decimal digits of reals, by the method of SQLite.
//!
//! SQLite multiplies the mantissa with 64 bits of a power of ten, which gives 18 or 19 digits that may be off by one in
//! the last place, and rounds those once more to what is asked for. Correct rounding would differ in rare cases, so the
//! same multiplication is done here.

/// The leading 96 bits of 10^(27k) for k from -13 to 12, cut, not rounded.
const POWERS: [u128; 26] = [
    0x8049_a4ac_0c58_11ae_205b_896d,
    0xcf42_894a_5dce_35ea_5206_4cac,
    0xa76c_5823_38ed_2621_af2a_f2b8,
    0x873e_4f75_e222_4e68_5a77_44a6,
    0xda7f_5bf5_9096_6848_af39_a475,
    0xb080_392c_c434_9dec_bd8d_794d,
    0x8e93_8662_882a_f53e_547e_b47b,
    0xe658_29b3_046b_0afa_0cb4_a5a3,
    0xba12_1a46_50e4_ddeb_92f3_4d62,
    0x964e_858c_91ba_2655_3a6a_07f8,
    0xf2d5_6790_ab41_c2a2_fae2_7299,
    0xc428_d05a_a475_1e4c_aa97_e14c,
    0x9e74_d1b7_91e0_7e48_775e_a264,
    0x8000_0000_0000_0000_0000_0000,
    0xcecb_8f27_f420_0f3a_0000_0000,
    0xa70c_3c40_a64e_6c51_9990_90b6,
    0x86f0_ac99_b4e8_dafd_69a0_28bb,
    0xda01_ee64_1a70_8de9_e80e_6f48,
    0xb01a_e745_b101_e9e4_5ec0_5dcf,
    0x8e41_ade9_fbeb_c27d_1458_8f13,
    0xe5d3_ef28_2a24_2e81_8f16_68c8,
    0xb9a7_4a06_37ce_2ee1_6d95_3e2b,
    0x95f8_3d0a_1fb6_9cd9_4abd_af10,
    0xf24a_01a7_3cf2_dccf_bc63_3b39,
    0xc3b8_3581_09e8_4f07_0a86_2f80,
    0x9e19_db92_b4e3_1ba9_6c07_a2c2,
];

/// A real in decimal: its digits, and how many of them stand before the point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    pub digits: Vec<u8>,
    pub point: i32,
}

/// The leading 64 bits of a power of ten.
fn power_of_ten(p: i32) -> u64 {
    let (group, rest) = (p.div_euclid(27), u32::try_from(p.rem_euclid(27)).unwrap_or(0));
    let base = 10_u64.saturating_pow(rest.min(19));
    // 10^26 has more than 64 bits, but only 61 that are not trailing zeros.
    let five = 5_u64.saturating_pow(rest);
    let base = if rest > 19 { five } else { base };
    let base = base.wrapping_shl(base.leading_zeros());
    if group == 0 {
        return base;
    }
    if p == -1 {
        return 0xcccc_cccc_cccc_cccc;
    }
    let scale = usize::try_from(group.saturating_add(13)).ok().and_then(|i| POWERS.get(i)).copied().unwrap_or(0);
    let (high, low) = (high_bits(scale, 32), low_bits(scale, 32));
    if rest == 0 {
        return high;
    }
    let product =
        u128::from(high).wrapping_mul(u128::from(base)).wrapping_add(u128::from(low).wrapping_mul(u128::from(base)).wrapping_shr(32));
    let top = high_bits(product, 64);
    if top.leading_zeros() == 0 { top } else { top.wrapping_shl(1) | (low_bits(product, 64).wrapping_shr(63)) }
}

fn high_bits(n: u128, shift: u32) -> u64 {
    u64::try_from(n.wrapping_shr(shift) & u128::from(u64::MAX)).unwrap_or(0)
}

fn low_bits(n: u128, bits: u32) -> u64 {
    let mask = 1_u128.wrapping_shl(bits).wrapping_sub(1);
    u64::try_from(n & mask).unwrap_or(0)
}

/// At least `n` digits of a positive finite real as an integer, and the power of ten to multiply it with.
fn convert(x: f64, n: i32) -> (u64, i32) {
    let bits = x.to_bits();
    let field = i32::try_from(bits.wrapping_shr(52)).unwrap_or(0);
    let fraction = bits & 0x000f_ffff_ffff_ffff;
    let (mantissa, e) = if field == 0 {
        let zeros = fraction.leading_zeros();
        (fraction.wrapping_shl(zeros), (-1074_i32).saturating_sub(i32::try_from(zeros).unwrap_or(0)))
    } else {
        (fraction.wrapping_shl(11) | 1_u64.wrapping_shl(63), field.saturating_sub(1086))
    };
    let p = n.saturating_sub(1).saturating_sub(e.saturating_add(63).saturating_mul(78_913) >> 18);
    let log2 = p.saturating_mul(108_853) >> 15;
    let h = high_bits(u128::from(mantissa).wrapping_mul(u128::from(power_of_ten(p))), 64);
    let shift = |extra: i32| u32::try_from(e.saturating_add(log2).saturating_add(extra).saturating_neg()).unwrap_or(0).min(63);
    let digits = if n == 18 {
        let h = h.wrapping_shr(shift(2));
        h.wrapping_add(h.wrapping_shl(1) & 2).wrapping_shr(1)
    } else {
        h.wrapping_shr(shift(1))
    };
    (digits, p.saturating_neg())
}

impl Decimal {
    /// The first `significant` digits (at most `cap`) of a finite, positive real, or up to `-significant` behind the point.
    pub fn new(x: f64, significant: i32, cap: i32) -> Decimal {
        if x == 0.0 {
            return Decimal { digits: vec![b'0'], point: 1 };
        }
        // SQLite works with 18 digits, or one more than is asked for.
        let wanted = if significant <= 0 || significant >= 18 { 18 } else { significant.saturating_add(1) };
        let (value, exponent) = convert(x, wanted);
        let mut digits = value.to_string().into_bytes();
        let mut point = i32::try_from(digits.len()).unwrap_or(0).saturating_add(exponent);
        let mut keep = significant;
        if significant <= 0 {
            keep = point.saturating_sub(significant);
            if keep == 0 && digits.first().is_some_and(|&d| d >= b'5') {
                keep = 1;
                digits.insert(0, b'0');
                point = point.saturating_add(1);
            }
        }
        let len = i32::try_from(digits.len()).unwrap_or(i32::MAX);
        if keep > 0 && (keep < len || len > cap) {
            keep = keep.min(cap);
            if keep == 17 {
                keep = shorter(x, &digits, point).unwrap_or(keep);
            }
            round(&mut digits, &mut point, usize::try_from(keep).unwrap_or(0));
        }
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
        Decimal { digits, point }
    }
}

/// Whether 17 digits can be fewer: SQLite looks at the digits where a short number shows a run of nines or zeros.
fn shorter(x: f64, digits: &[u8], point: i32) -> Option<i32> {
    let at = |i: usize| digits.get(i).copied().unwrap_or(b'0');
    let nines = at(15) == b'9' && at(14) == b'9';
    let zeros = point >= i32::try_from(digits.len()).unwrap_or(i32::MAX) || (at(15) == b'0' && at(14) == b'0' && at(13) == b'0');
    if !nines && !zeros {
        return None;
    }
    let (run, mut len) = if nines { (b'9', 14_usize) } else { (b'0', 13) };
    while len > 0 && at(len.saturating_sub(1)) == run {
        len = len.saturating_sub(1);
    }
    let mut short: u64 = std::str::from_utf8(digits.get(..len).unwrap_or_default()).ok()?.parse().unwrap_or(0);
    if nines {
        short = short.saturating_add(1);
    }
    let len = i32::try_from(len).ok()?;
    let back: f64 = format!("{short}e{}", point.saturating_sub(len)).parse().ok()?;
    (back == x).then_some(len.saturating_add(1))
}

/// Cuts to `keep` digits; a half goes up.
pub fn round(digits: &mut Vec<u8>, point: &mut i32, keep: usize) {
    let up = digits.get(keep).is_some_and(|&d| d >= b'5');
    digits.truncate(keep);
    if !up {
        return;
    }
    for d in digits.iter_mut().rev() {
        if *d < b'9' {
            *d = d.saturating_add(1);
            return;
        }
        *d = b'0';
    }
    digits.insert(0, b'1');
    *point = point.saturating_add(1);
}
