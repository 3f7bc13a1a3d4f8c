//! `$bitsAnySet`: at least one given bit is 1.

super::bits::bit_test!(
    BitsAnySet,
    BITS_ANY_SET,
    "$bitsAnySet",
    |count| count.set > 0,
    "Numbers and binary data in which a given bit is 1."
);
