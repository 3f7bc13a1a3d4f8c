//! `$bitsAllSet`: every given bit is 1.

super::bits::bit_test!(
    BitsAllSet,
    BITS_ALL_SET,
    "$bitsAllSet",
    |count| count.clear == 0,
    "Numbers and binary data in which every given bit is 1."
);
