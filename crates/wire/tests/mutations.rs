//! Millions of damaged messages: none makes the crate panic or allocate beyond the limit, and whatever still parses is
//! written back unchanged (the assertions are in `fuzz`).
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use espalier_wire::fuzz::{Fuzzer, MESSAGE_BYTES_MAX};
use espalier_wire::{Compression, Compressor, begin_op_msg, begin_op_query, begin_op_reply, flags};

/// Remembers the largest single allocation of each thread.
struct Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    // A thread that is being torn down allocates nothing that this test asks about.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// `{ping: 1, text: "…"}`, long enough to be worth compressing.
fn document(filler: usize) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(b"\x10ping\0\x01\0\0\0\x02text\0");
    bytes.extend((filler as u32 + 1).to_le_bytes());
    bytes.extend(std::iter::repeat_n(b'e', filler));
    bytes.extend([0, 0]);
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Valid messages of every kind.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let max = MESSAGE_BYTES_MAX;
    for flags in [0, flags::CHECKSUM_PRESENT, flags::MORE_TO_COME, flags::EXHAUST_ALLOWED] {
        let mut out = Vec::new();
        let mut writer = begin_op_msg(&mut out, 7, 0, flags);
        writer.bytes().extend(document(60));
        writer.sequence("documents", |bytes| (0..3).for_each(|i| bytes.extend(document(i)))).unwrap();
        writer.sequence("ops", |_| {}).unwrap();
        writer.finish(max).unwrap();
        seeds.push(out);
    }
    let mut out = Vec::new();
    let mut writer = begin_op_query(&mut out, 8, 4, "admin.$cmd", 0, -1);
    writer.bytes().extend([document(3), document(0)].concat());
    writer.finish(max).unwrap();
    seeds.push(out);
    let mut out = Vec::new();
    let mut writer = begin_op_reply(&mut out, 9, 8, 8, 0, 0, 2);
    writer.bytes().extend([document(3), document(0)].concat());
    writer.finish(max).unwrap();
    seeds.push(out);

    let mut compressor = Compressor::new();
    for plain in seeds.clone() {
        for compression in Compression::ALL {
            let mut out = Vec::new();
            if compressor.compress(compression, &plain, &mut out) {
                seeds.push(out);
            }
        }
    }
    // Long enough to fill the limit nearly.
    let mut out = Vec::new();
    let mut writer = begin_op_msg(&mut out, 7, 0, 0);
    writer.bytes().extend(document(MESSAGE_BYTES_MAX - 100));
    writer.finish(max).unwrap();
    for compression in [Compression::Snappy, Compression::Zlib, Compression::Zstd] {
        let mut packed = Vec::new();
        assert!(compressor.compress(compression, &out, &mut packed));
        seeds.push(packed);
    }
    seeds
}

/// Changes `bytes` in one to four places.
fn mutate(bytes: &mut Vec<u8>, random: &mut Xorshift) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), random.next() as u8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 | 4 => {
                // An integer at any place: lengths, sizes, flags and codes are all of this form.
                let value = match random.below(6) {
                    0 => random.next() as i32,
                    1 => random.below(64) as i32,
                    2 => -(random.below(64) as i32),
                    3 => i32::MAX - random.below(20) as i32,
                    4 => MESSAGE_BYTES_MAX as i32 + random.below(40) as i32 - 20,
                    _ => bytes.len() as i32 + random.below(40) as i32 - 20,
                };
                if let Some(place) = bytes.get_mut(at..at + 4) {
                    place.copy_from_slice(&value.to_le_bytes());
                }
            }
            5 => {
                let piece: Vec<u8> = bytes.iter().copied().skip(at).take(random.below(40)).collect();
                bytes.extend(piece);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    // Without this most damage would be found by the length alone; half of the time the rest is to be looked at.
    if random.below(2) == 0
        && let Some(length) = i32::try_from(bytes.len()).ok()
        && let Some(place) = bytes.get_mut(..4)
    {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

#[test]
fn damaged_messages_never_panic_nor_allocate_beyond_the_limit() {
    let seeds = seeds();
    let mut fuzzer = Fuzzer::default();
    for seed in &seeds {
        let is_reply = seed[12..16] == 1i32.to_le_bytes() || seed[12..20] == [0xdc, 7, 0, 0, 1, 0, 0, 0];
        assert_eq!(fuzzer.run(seed), usize::from(!is_reply));
    }
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(MESSAGE_BYTES_MAX);
    let (started, mut runs, mut parsed) = (Instant::now(), 0u64, 0);
    LARGEST.set(0);
    while runs < 3_000_000 && (runs % 256 != 0 || started.elapsed() < Duration::from_secs(2)) {
        bytes.clear();
        // The last three are long: now and then is enough.
        let choices = if runs % 64 == 0 { seeds.len() } else { seeds.len() - 3 };
        bytes.extend_from_slice(&seeds[random.below(choices)]);
        mutate(&mut bytes, &mut random);
        parsed += fuzzer.run(&bytes);
        runs += 1;
    }
    // Snappy needs room for its worst case, a sixth more than the message, when the check compresses again.
    let limit = MESSAGE_BYTES_MAX + MESSAGE_BYTES_MAX / 6 + 64;
    assert!(LARGEST.get() <= limit, "an allocation of {} bytes", LARGEST.get());
    assert!(parsed > 0 && (parsed as u64) < runs, "{parsed} of {runs} parsed: the mutations are too wild or too tame");
    println!("{runs} damaged messages, {parsed} still parsed");
}
