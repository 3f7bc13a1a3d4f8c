//! `$bitsAllClear`: every given bit is 0.

super::bits::bit_test!(
    BitsAllClear,
    BITS_ALL_CLEAR,
    "$bitsAllClear",
    |count| count.set == 0,
    "Numbers and binary data in which every given bit is 0."
);
