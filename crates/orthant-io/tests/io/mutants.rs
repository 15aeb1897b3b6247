//! Files that are damaged a little, by the thousand: no panic, no abort, no more memory than allowed, errors of one line.

use std::fs;
use std::path::Path;

use crate::common::*;
use crate::sound::{one_line, sound};
use orthant_io::{Missing, Others, ReadOptions, read_bytes};

/// Of Marsaglia: the mutants are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }
}

/// All small files of the tests, and some in text.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for folder in ["tests/fixtures", "tests/data"] {
        for entry in fs::read_dir(Path::new(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.extension().is_some_and(|e| e != "py") {
                seeds.push((name, fs::read(path).unwrap()));
            }
        }
    }
    let texts = [
        ("a.csv", "x,y,k\n1.5,2,a\n3,NA,b\n\"4\",5e3,\"c,d\"\n"),
        ("b.csv", "0,1\n0.5,1.5\n2.5,3.5\n"),
        ("c.txt", "# c\n  1 2\n 3   4\n"),
        ("d.csv", "x;y\n1,5;2,5\n"),
        (
            "a.ply",
            "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nend_header\n0 1\n2 3\n",
        ),
        (
            "b.ply",
            "ply\nformat binary_big_endian 1.0\nelement face 1\nproperty list uchar int n\nelement vertex 1\nproperty double x\nproperty double y\nend_header\n\u{1}abcd01234567ABCDEFGH",
        ),
    ];
    seeds.extend(texts.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())));
    seeds.sort();
    seeds
}

/// Numbers that lengths, counts and offsets are seldom checked against.
const NUMBERS: [u64; 10] =
    [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX];

fn mutate(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutant = bytes.to_vec();
    for _ in 0..=random.below(3) {
        if mutant.is_empty() {
            break;
        }
        let at = random.below(mutant.len());
        match random.below(7) {
            0 => mutant[at] ^= 1 << random.below(8),
            1 => mutant[at] = u8::try_from(random.below(256)).unwrap(),
            2 => {
                let size = [1, 2, 4, 8][random.below(4)];
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let end = (at + size).min(mutant.len());
                let length = end - at;
                mutant[at..end].copy_from_slice(&number[..length]);
            }
            3 => mutant.truncate(at),
            4 => {
                let end = (at + random.below(16)).min(mutant.len());
                drop(mutant.drain(at..end));
            }
            5 => {
                let end = (at + random.below(64)).min(mutant.len());
                let piece = mutant[at..end].to_vec();
                let to = random.below(mutant.len());
                drop(mutant.splice(to..to, piece));
            }
            _ => {
                let from = random.below(mutant.len());
                let length = random.below(32).min(mutant.len() - at).min(mutant.len() - from);
                mutant.copy_within(from..from + length, at);
            }
        }
    }
    mutant
}

#[test]
fn damaged_files_are_errors_of_one_line() {
    const ROUNDS: usize = 250;
    const LIMIT: u64 = 4_000_000;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut all = plain();
    all.missing = Missing::Drop;
    all.others = Others::All;
    all.max_bytes = Some(LIMIT);
    let mut some = columns("1");
    some.max_bytes = Some(LIMIT);
    some.weights = Some("2".to_owned());
    let (mut read, mut refused) = (0, 0);
    for (name, bytes) in seeds() {
        let options: [&ReadOptions; 2] = [&all, &some];
        for round in 0..ROUNDS {
            let mutant = mutate(&bytes, &mut random);
            // The content decides where the name says nothing.
            let name = if round % 4 == 0 { "-" } else { name.as_str() };
            match read_bytes(name, &mutant, options[round % 2]) {
                Ok(cloud) => {
                    sound(&cloud);
                    read += 1;
                }
                Err(error) => {
                    one_line(&error.to_string());
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 300 && refused > 300, "{read} {refused}");
}
