//! `$bitsAnyClear`: at least one given bit is 0.

super::bits::bit_test!(
    BitsAnyClear,
    BITS_ANY_CLEAR,
    "$bitsAnyClear",
    |count| count.clear > 0,
    "Numbers and binary data in which a given bit is 0."
);
