//! `report`.

use crate::common::Sandbox;

#[test]
fn a_report_is_a_page_of_its_own() {
    let sandbox = Sandbox::new();
    let found = sandbox.json("report x.csv y.csv --output page.html");
    assert_eq!(found["value"], sandbox.json("rot x.csv y.csv")["value"]);
    let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
    let divergence = sandbox.json("divergence x.csv y.csv")["value"].as_f64().unwrap();
    for text in [
        "Sinkhorn divergence",
        &divergence.to_string()[..6],
        "report x.csv y.csv --output page.html",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<script") && !page.contains("src="));
    assert!(sandbox.fails("report x.csv y.csv", 2).contains("--output"));
    assert!(sandbox.fails("report x.csv y.csv -o no/such/page.html", 2).contains("no/such"));
    assert!(sandbox.fails("report x.csv none.csv -o other.html", 2).contains("none.csv"));
    assert!(!sandbox.path("other.html").exists());
    // One point, all points at one place.
    sandbox.write("one.csv", "1,2,3\n");
    sandbox.write("same.csv", "4,5,6\n4,5,6\n");
    sandbox.json("report one.csv same.csv --eps 1 -o one.html");
}
