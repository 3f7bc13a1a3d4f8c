//! Measures the engine on a real folder: `cargo run --release -p espalier-kv --example bench
//! [folder] [documents] [part…]`. Each part prints one line; no part named means all.

#![allow(clippy::unwrap_used)]

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use espalier_kv::{Batch, Direction, Kv, Options, RealDisk, Rng};

const DOCUMENT_BYTES: usize = 500;
const DOCS: u64 = 1;
const IDS: u64 = 2;
const INDEX_A: u64 = 3;
const INDEX_B: u64 = 4;

fn open(folder: &PathBuf) -> Kv {
    let start = Instant::now();
    let options = Options { cache_bytes: 2 << 30, ..Options::default() };
    let (kv, recovered) = Kv::open(Arc::new(RealDisk::new(folder).unwrap()), options).unwrap();
    println!(
        "open                 {:8.1} ms, {} commits replayed, {} bytes",
        start.elapsed().as_secs_f64() * 1e3,
        recovered.commits_replayed,
        recovered.bytes_replayed
    );
    kv
}

fn key(tree: u64, n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&tree.to_be_bytes());
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

fn index_key(tree: u64, value: u64, record: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&tree.to_be_bytes());
    key[8..16].copy_from_slice(&value.to_be_bytes());
    key[16..].copy_from_slice(&record.to_be_bytes());
    key
}

/// Half text-like, half random: compresses about as documents do.
fn document(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::with_capacity(DOCUMENT_BYTES);
    while out.len() < DOCUMENT_BYTES {
        out.extend_from_slice(b"\x02name\0\x0b\0\0\0");
        out.extend_from_slice(&rng.next_u64().to_le_bytes());
        out.extend_from_slice(b"\x10quantity\0");
    }
    out.truncate(DOCUMENT_BYTES);
    out
}

fn rate(name: &str, count: u64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let per_second = count as f64 / seconds;
    let micros = seconds * 1e6 / count as f64;
    println!("{name:20} {per_second:10.0}/s  {micros:8.3} µs each  {seconds:.2} s");
}

fn latencies(name: &str, mut micros: Vec<f64>) {
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
    println!("{name:20} p50 {:.2} p99 {:.2} p99.9 {:.2} max {:.1} µs", at(0.5), at(0.99), at(0.999), at(1.0));
}

fn wait_idle(kv: &Kv) {
    let start = Instant::now();
    let mut last = kv.stats();
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = kv.stats();
        if now.frozen_tables == 0 && now.compactions == last.compactions {
            break;
        }
        last = now;
    }
    println!(
        "idle after           {:8.1} s, throttled {} ms",
        start.elapsed().as_secs_f64() - 0.3,
        last.throttled_micros / 1000
    );
    let levels: Vec<_> = last.levels.iter().map(|l| (l.runs, l.bytes >> 20)).collect();
    println!("levels (runs, MiB)   {levels:?}, {} compactions", last.compactions);
}

fn load(kv: &Kv, documents: u64, per_batch: u64) {
    let mut rng = Rng::new(1);
    let templates: Vec<_> = (0..64).map(|_| document(&mut rng)).collect();
    let base = kv.snapshot().seq() * 1_000_000;
    let start = Instant::now();
    let mut slowest = Duration::ZERO;
    for first in (0..documents).step_by(per_batch as usize) {
        let mut batch = Batch::with_capacity(per_batch as usize * 600);
        for n in first..(first + per_batch).min(documents) {
            let id = base + n;
            batch.put_new(&key(DOCS, id), &templates[n as usize % 64]);
            batch.put(&key(IDS, id), &id.to_be_bytes());
        }
        let begin = Instant::now();
        kv.commit(batch, None).unwrap();
        slowest = slowest.max(begin.elapsed());
    }
    rate(&format!("load, batches {per_batch}"), documents, start);
    println!("slowest commit       {:8.1} ms", slowest.as_secs_f64() * 1e3);
}

fn load_indexed(kv: &Kv, documents: u64) {
    let mut rng = Rng::new(2);
    let template = document(&mut rng);
    let base = kv.snapshot().seq() * 1_000_000;
    let start = Instant::now();
    let mut micros = Vec::with_capacity(documents as usize);
    for n in 0..documents {
        let id = base + n;
        let mut batch = Batch::with_capacity(800);
        batch.put_new(&key(DOCS, id), &template);
        batch.put(&key(IDS, id), &id.to_be_bytes());
        batch.put(&index_key(INDEX_A, rng.next_u64(), id), b"");
        batch.put(&index_key(INDEX_B, rng.next_u64(), id), b"");
        let begin = Instant::now();
        kv.commit(batch, None).unwrap();
        micros.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    rate("two random indexes", documents, start);
    latencies("  commit", micros);
}

/// Overwrites documents at random: what a busy collection does to the levels.
fn update(kv: &Kv, documents: u64) {
    let mut rng = Rng::new(5);
    let template = document(&mut rng);
    let mut micros = Vec::with_capacity(documents as usize);
    let start = Instant::now();
    for _ in 0..documents {
        let mut batch = Batch::with_capacity(800);
        let snapshot = kv.snapshot();
        batch.put(&key(20, rng.below(documents / 2)), &template);
        batch.delete(&index_key(21, rng.below(documents / 2), 1));
        batch.put(&index_key(21, rng.below(documents / 2), 1), b"");
        let begin = Instant::now();
        kv.commit(batch, Some(&snapshot)).unwrap();
        micros.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    rate("random updates", documents, start);
    latencies("  commit", micros);
}

fn gets(kv: &Kv) {
    let snapshot = kv.snapshot();
    let lower = DOCS.to_be_bytes();
    let upper = (DOCS + 1).to_be_bytes();
    let mut scan = snapshot.scan(Bound::Included(&lower), Bound::Excluded(&upper), Direction::Forward).unwrap();
    let mut keys = Vec::new();
    while scan.next().unwrap() {
        keys.push(scan.key().to_vec());
    }
    let mut rng = Rng::new(3);
    // The last one reads few enough to stay in the processor's caches.
    for (round, among) in [("get, first", keys.len()), ("get, cached", keys.len()), ("get, hot", 4000)] {
        let mut micros = Vec::new();
        let start = Instant::now();
        for _ in 0..300_000 {
            let key = &keys[rng.below(among.min(keys.len()) as u64) as usize];
            let begin = Instant::now();
            let found = snapshot.get(key).unwrap();
            micros.push(begin.elapsed().as_secs_f64() * 1e6);
            assert_eq!(found.unwrap().len(), DOCUMENT_BYTES);
        }
        rate(round, 300_000, start);
        latencies("  get", micros);
    }
    let start = Instant::now();
    for n in 0..300_000 {
        assert!(snapshot.get(&key(DOCS, u64::MAX - n)).unwrap().is_none());
        assert!(snapshot.get(&index_key(DOCS, n, 5)).unwrap().is_none());
    }
    rate("get, not there", 600_000, start);
}

fn scans(kv: &Kv) {
    let snapshot = kv.snapshot();
    let lower = DOCS.to_be_bytes();
    let upper = (DOCS + 1).to_be_bytes();
    for (name, direction) in [
        ("scan, first", Direction::Forward),
        ("scan, cached", Direction::Forward),
        ("scan, reverse", Direction::Reverse),
    ] {
        let start = Instant::now();
        let mut scan = snapshot.scan(Bound::Included(&lower), Bound::Excluded(&upper), direction).unwrap();
        let (mut count, mut bytes) = (0u64, 0u64);
        while scan.next().unwrap() {
            count += 1;
            bytes += scan.value().len() as u64 + u64::from(scan.key()[15]);
        }
        assert!(bytes > 0);
        rate(name, count, start);
    }
    let mut rng = Rng::new(4);
    let start = Instant::now();
    for _ in 0..100_000 {
        let from = index_key(INDEX_A, rng.next_u64(), 0);
        let mut scan = snapshot.scan(Bound::Included(&from), Bound::Unbounded, Direction::Forward).unwrap();
        for _ in 0..10 {
            scan.next().unwrap();
        }
    }
    rate("short scans of 10", 100_000, start);
}

fn durable(kv: &Kv) {
    for threads in [1u64, 8, 32] {
        let count = AtomicU64::new(0);
        let syncs = kv.stats().log_syncs;
        let start = Instant::now();
        thread::scope(|scope| {
            for thread in 0..threads {
                let (kv, count) = (&kv, &count);
                scope.spawn(move || {
                    let mut rng = Rng::new(thread);
                    let template = document(&mut rng);
                    while start.elapsed() < Duration::from_secs(2) {
                        let id = rng.next_u64();
                        let mut batch = Batch::with_capacity(800);
                        batch.put_new(&key(10, id), &template);
                        batch.put(&key(11, id), &id.to_be_bytes());
                        let commit = kv.commit(batch, None).unwrap();
                        kv.wait_durable(&commit).unwrap();
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let count = count.into_inner();
        rate(&format!("durable, {threads} threads"), count, start);
        println!("  syncs              {}", kv.stats().log_syncs - syncs);
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or("/tmp/espalier-kv-bench".to_owned()));
    let documents: u64 = args.next().map_or(1_000_000, |n| n.parse().unwrap());
    let parts: Vec<String> = args.collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    if folder.exists() && !parts.iter().any(|p| p == "keep") {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let mut kv = open(&folder);
    if wants("load") {
        load(&kv, documents, 1000);
        wait_idle(&kv);
    }
    if wants("single") {
        load(&kv, documents / 2, 1);
        wait_idle(&kv);
    }
    if wants("index") {
        load_indexed(&kv, documents / 2);
        wait_idle(&kv);
    }
    if wants("update") {
        update(&kv, documents * 2);
        wait_idle(&kv);
    }
    if wants("get") {
        gets(&kv);
    }
    if wants("scan") {
        scans(&kv);
    }
    if wants("durable") {
        durable(&kv);
    }
    if wants("open") {
        kv.close().unwrap();
        drop(kv);
        kv = open(&folder);
    }
    println!("{:?}", kv.stats());
}
