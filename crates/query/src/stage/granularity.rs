//! Series of preferred numbers, to which the bounds of `$bucketAuto` are rounded: those of Renard (`R5` …), of electronic
//! components (`E6` …), `1-2-5`, and the powers of two.

use espalier_value::number::Number;
use espalier_value::{Code, Decimal128, Error, Result, ValueRef};

/// A series by its name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granularity {
    /// The numbers of one decade, from 1 (or 10, or 100) up; in every other decade they repeat.
    Series(&'static [f64]),
    PowersOfTwo,
}

impl Granularity {
    pub fn named(name: &str) -> Result<Granularity> {
        Ok(match name {
            "POWERSOF2" => Granularity::PowersOfTwo,
            _ => match SERIES.iter().find(|(own, _)| *own == name) {
                Some((_, numbers)) => Granularity::Series(numbers),
                None => return Err(Error::new(Code(40257), format!("Unknown rounding granularity '{name}'"))),
            },
        })
    }

    /// The smallest number of the series above the value. Zero stays.
    pub fn round_up(self, value: ValueRef<'_>) -> Result<Number> {
        self.round(value, true)
    }

    /// The largest number of the series below the value. Zero stays.
    pub fn round_down(self, value: ValueRef<'_>) -> Result<Number> {
        self.round(value, false)
    }

    fn round(self, value: ValueRef<'_>, up: bool) -> Result<Number> {
        let number = check(value)?;
        if number.is_zero() {
            return Ok(number);
        }
        Ok(match (self, number) {
            (Granularity::Series(numbers), Number::Decimal(x)) => Number::Decimal(in_series_decimal(numbers, x, up)),
            (Granularity::Series(numbers), x) => Number::Double(in_series(numbers, x.to_f64(), up)),
            (Granularity::PowersOfTwo, Number::Decimal(x)) => Number::Decimal(power_of_two_decimal(x, up)),
            (Granularity::PowersOfTwo, x) => power_of_two(x.to_f64(), up),
        })
    }
}

fn check(value: ValueRef<'_>) -> Result<Number> {
    let refuse = |code, what: &str| {
        let message = format!("$bucketAuto can specify a 'granularity' with {what} boundaries only, but found {value}");
        Err(Error::new(Code(code), message))
    };
    let Some(number) = Number::of(value) else { return refuse(40258, "numeric") };
    let (is_nan, is_negative, is_finite) = match number {
        Number::Decimal(x) => (x.is_nan(), x.is_sign_negative() && !x.is_zero(), x.is_finite()),
        x => (x.to_f64().is_nan(), x.to_f64() < 0.0, x.to_f64().is_finite()),
    };
    match (is_nan, is_negative, is_finite) {
        (true, ..) => refuse(40259, "numeric"),
        (_, true, _) => refuse(40260, "non-negative numeric"),
        // MongoDB would look for its place in the series without end.
        (.., false) => refuse(40259, "finite"),
        _ => Ok(number),
    }
}

fn in_series(numbers: &[f64], x: f64, up: bool) -> f64 {
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return x };
    let mut decade = 1.0;
    if up {
        while x >= last * decade {
            decade *= 10.0;
        }
        while x < first * decade {
            let above = first * decade;
            decade /= 10.0;
            if x >= last * decade {
                return above;
            }
        }
        numbers.iter().map(|n| n * decade).find(|n| x < *n).unwrap_or(x)
    } else {
        while x <= first * decade {
            decade /= 10.0;
        }
        while x > last * decade {
            let below = last * decade;
            decade *= 10.0;
            if x <= first * decade {
                return below;
            }
        }
        numbers.iter().rev().map(|n| n * decade).find(|n| *n < x).unwrap_or(x)
    }
}

/// As [`in_series`], with the numbers of the series to fifteen digits.
fn in_series_decimal(numbers: &[f64], x: Decimal128, up: bool) -> Decimal128 {
    let numbers: Vec<Decimal128> = numbers.iter().map(|n| Decimal128::from_f64(*n)).collect();
    let (Some(first), Some(last)) = (numbers.first().copied(), numbers.last().copied()) else { return x };
    let ten = Decimal128::from_i32(10);
    let less = |a: Decimal128, b: Decimal128| a.cmp_total(b).is_lt();
    let mut decade = Decimal128::ONE;
    if up {
        while !less(x, last.mul(decade)) {
            decade = decade.mul(ten);
        }
        while less(x, first.mul(decade)) {
            let above = first.mul(decade);
            decade = decade.div(ten);
            if !less(x, last.mul(decade)) {
                return above;
            }
        }
        numbers.iter().map(|n| n.mul(decade)).find(|n| less(x, *n)).unwrap_or(x)
    } else {
        while !less(first.mul(decade), x) {
            decade = decade.div(ten);
        }
        while less(last.mul(decade), x) {
            let below = last.mul(decade);
            decade = decade.mul(ten);
            if !less(first.mul(decade), x) {
                return below;
            }
        }
        numbers.iter().rev().map(|n| n.mul(decade)).find(|n| less(*n, x)).unwrap_or(x)
    }
}

fn power_of_two(x: f64, up: bool) -> Number {
    let exponent = if up { x.log2().floor() + 1.0 } else { x.log2().ceil() - 1.0 } as i32;
    match u32::try_from(exponent) {
        Ok(n @ 0..=62) => Number::narrowest(1 << n),
        _ => Number::Double(f64::exp2(f64::from(exponent))),
    }
}

fn power_of_two_decimal(x: Decimal128, up: bool) -> Decimal128 {
    let two = Decimal128::from_i32(2);
    let exact = x.log(two);
    let exponent = if up { exact.floor().add(Decimal128::ONE) } else { exact.ceil().sub(Decimal128::ONE) };
    two.pow(exponent)
}

/// By name. MongoDB's `R40` lacks 335, and its `R80` has only what `R40` has not.
const SERIES: [(&str, &[f64]); 12] = [
    ("1-2-5", &[10.0, 20.0, 50.0]),
    ("E12", &[10.0, 12.0, 15.0, 18.0, 22.0, 27.0, 33.0, 39.0, 47.0, 56.0, 68.0, 82.0]),
    (
        "E192",
        &[
            100.0, 101.0, 102.0, 104.0, 105.0, 106.0, 107.0, 109.0, 110.0, 111.0, 113.0, 114.0, 115.0, 117.0, 118.0,
            120.0, 121.0, 123.0, 124.0, 126.0, 127.0, 129.0, 130.0, 132.0, 133.0, 135.0, 137.0, 138.0, 140.0, 142.0,
            143.0, 145.0, 147.0, 149.0, 150.0, 152.0, 154.0, 156.0, 158.0, 160.0, 162.0, 164.0, 165.0, 167.0, 169.0,
            172.0, 174.0, 176.0, 178.0, 180.0, 182.0, 184.0, 187.0, 189.0, 191.0, 193.0, 196.0, 198.0, 200.0, 203.0,
            205.0, 208.0, 210.0, 213.0, 215.0, 218.0, 221.0, 223.0, 226.0, 229.0, 232.0, 234.0, 237.0, 240.0, 243.0,
            246.0, 249.0, 252.0, 255.0, 258.0, 261.0, 264.0, 267.0, 271.0, 274.0, 277.0, 280.0, 284.0, 287.0, 291.0,
            294.0, 298.0, 301.0, 305.0, 309.0, 312.0, 316.0, 320.0, 324.0, 328.0, 332.0, 336.0, 340.0, 344.0, 348.0,
            352.0, 357.0, 361.0, 365.0, 370.0, 374.0, 379.0, 383.0, 388.0, 392.0, 397.0, 402.0, 407.0, 412.0, 417.0,
            422.0, 427.0, 432.0, 437.0, 442.0, 448.0, 453.0, 459.0, 464.0, 470.0, 475.0, 481.0, 487.0, 493.0, 499.0,
            505.0, 511.0, 517.0, 523.0, 530.0, 536.0, 542.0, 549.0, 556.0, 562.0, 569.0, 576.0, 583.0, 590.0, 597.0,
            604.0, 612.0, 619.0, 626.0, 634.0, 642.0, 649.0, 657.0, 665.0, 673.0, 681.0, 690.0, 698.0, 706.0, 715.0,
            723.0, 732.0, 741.0, 750.0, 759.0, 768.0, 777.0, 787.0, 796.0, 806.0, 816.0, 825.0, 835.0, 845.0, 856.0,
            866.0, 876.0, 887.0, 898.0, 909.0, 920.0, 931.0, 942.0, 953.0, 965.0, 976.0, 988.0,
        ],
    ),
    (
        "E24",
        &[
            10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0, 47.0, 51.0,
            56.0, 62.0, 68.0, 75.0, 82.0, 91.0,
        ],
    ),
    (
        "E48",
        &[
            100.0, 105.0, 110.0, 115.0, 121.0, 127.0, 133.0, 140.0, 147.0, 154.0, 162.0, 169.0, 178.0, 187.0, 196.0,
            205.0, 215.0, 226.0, 237.0, 249.0, 261.0, 274.0, 287.0, 301.0, 316.0, 332.0, 348.0, 365.0, 383.0, 402.0,
            422.0, 442.0, 464.0, 487.0, 511.0, 536.0, 562.0, 590.0, 619.0, 649.0, 681.0, 715.0, 750.0, 787.0, 825.0,
            866.0, 909.0, 953.0,
        ],
    ),
    ("E6", &[10.0, 15.0, 22.0, 33.0, 47.0, 68.0]),
    (
        "E96",
        &[
            100.0, 102.0, 105.0, 107.0, 110.0, 113.0, 115.0, 118.0, 121.0, 124.0, 127.0, 130.0, 133.0, 137.0, 140.0,
            143.0, 147.0, 150.0, 154.0, 158.0, 162.0, 165.0, 169.0, 174.0, 178.0, 182.0, 187.0, 191.0, 196.0, 200.0,
            205.0, 210.0, 215.0, 221.0, 226.0, 232.0, 237.0, 243.0, 249.0, 255.0, 261.0, 267.0, 274.0, 280.0, 287.0,
            294.0, 301.0, 309.0, 316.0, 324.0, 332.0, 340.0, 348.0, 357.0, 365.0, 374.0, 383.0, 392.0, 402.0, 412.0,
            422.0, 432.0, 442.0, 453.0, 464.0, 475.0, 487.0, 499.0, 511.0, 523.0, 536.0, 549.0, 562.0, 576.0, 590.0,
            604.0, 619.0, 634.0, 649.0, 665.0, 681.0, 698.0, 715.0, 732.0, 750.0, 768.0, 787.0, 806.0, 825.0, 845.0,
            866.0, 887.0, 909.0, 931.0, 953.0, 976.0,
        ],
    ),
    ("R10", &[100.0, 125.0, 160.0, 200.0, 250.0, 315.0, 400.0, 500.0, 630.0, 800.0]),
    (
        "R20",
        &[
            100.0, 112.0, 125.0, 140.0, 160.0, 180.0, 200.0, 224.0, 250.0, 280.0, 315.0, 355.0, 400.0, 450.0, 500.0,
            560.0, 630.0, 710.0, 800.0, 900.0,
        ],
    ),
    (
        "R40",
        &[
            100.0, 106.0, 112.0, 118.0, 125.0, 132.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0, 200.0, 212.0, 224.0,
            236.0, 250.0, 265.0, 280.0, 300.0, 315.0, 355.0, 375.0, 400.0, 425.0, 450.0, 475.0, 500.0, 530.0, 560.0,
            600.0, 630.0, 670.0, 710.0, 750.0, 800.0, 850.0, 900.0, 950.0,
        ],
    ),
    ("R5", &[10.0, 16.0, 25.0, 40.0, 63.0]),
    (
        "R80",
        &[
            103.0, 109.0, 115.0, 122.0, 128.0, 136.0, 145.0, 155.0, 165.0, 175.0, 185.0, 195.0, 206.0, 218.0, 230.0,
            243.0, 258.0, 272.0, 290.0, 307.0, 325.0, 345.0, 365.0, 387.0, 412.0, 437.0, 462.0, 487.0, 515.0, 545.0,
            575.0, 615.0, 650.0, 690.0, 730.0, 775.0, 825.0, 875.0, 925.0, 975.0,
        ],
    ),
];
