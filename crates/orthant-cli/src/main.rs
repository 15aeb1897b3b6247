//! The `orthant` command.
mod bench;
fn main() {
    bench::run().unwrap();
}
