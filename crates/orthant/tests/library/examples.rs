//! The examples run.

#[path = "../../examples/custom_map.rs"]
mod custom_map;
#[path = "../../examples/observer.rs"]
mod observer;
#[path = "../../examples/quickstart.rs"]
mod quickstart;
#[path = "../../examples/transfer.rs"]
mod transfer;

#[test]
fn all_examples_run() {
    for example in [quickstart::main, custom_map::main, transfer::main, observer::main] {
        example().unwrap();
    }
}
