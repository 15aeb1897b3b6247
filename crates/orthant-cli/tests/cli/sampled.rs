//! `--method sampled`.

use serde_json::Value;

use crate::common::{Sandbox, cloud, text};

#[test]
fn samples_have_an_interval_and_an_estimate() {
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(700, 0.0, 1.0));
    sandbox.write("y.csv", &cloud(600, 0.5, 0.8));
    let exact = sandbox.json("rot x.csv y.csv --eps 30% --method online");
    let sampled =
        sandbox.json("rot x.csv y.csv --eps 30% --method sampled --sample-size 100 --samples 6");
    assert_eq!(sampled["method"]["name"], "sampled");
    assert_eq!(sampled["interval_kl"]["kind"], "sampled");
    let number = |value: &Value| value.as_f64().unwrap();
    let truth = number(&exact["value_kl"]);
    assert!(number(&sampled["interval_kl"]["low"]) <= truth);
    assert!(number(&sampled["interval_kl"]["high"]) >= truth);
    let sampling = &sampled["sampling"];
    assert_eq!((&sampling["size"], &sampling["samples"]), (&100.into(), &6.into()));
    let estimate = &sampling["estimate"];
    let away = (number(&estimate["value"]) - number(&exact["value"])).abs();
    assert!(away <= 3.0 * number(&estimate["stderr"]), "{estimate}, {}", exact["value"]);
    assert_eq!(exact["sampling"], Value::Null);
    let output = sandbox.orthant("rot x.csv y.csv --eps 30% --method sampled --sample-size 100");
    let words = text(&output.stdout);
    assert!(words.contains("8 samples of 100 points") && words.contains("no bound"), "{words}");
    assert!(words.contains("from samples of the clouds"), "{words}");
    // Few points are better taken all.
    let all = sandbox.json("rot x.csv y.csv --eps 30% --method sampled");
    assert_eq!((&all["method"]["name"], &all["sampling"]), (&"online".into(), &Value::Null));
}

#[test]
fn what_samples_are_not_for_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(50, 0.0, 1.0));
    for (arguments, what) in [
        ("rot x.csv x.csv --samples 4", "add --method sampled"),
        ("rot x.csv x.csv --sample-size 10 --method online", "add --method sampled"),
        ("rot x.csv x.csv --method sampled --rank 10", "--rank"),
        ("test x.csv x.csv --method sampled", "a sample of the clouds"),
        ("barycenter x.csv x.csv --method sampled", "a sample of the clouds"),
    ] {
        let error = sandbox.fails(arguments, 2);
        assert!(error.contains(what), "{arguments}: {error}");
    }
    let output = sandbox.orthant("rot x.csv x.csv --method sampled --samples 1");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("1 is not in 2.."), "{}", text(&output.stderr));
}
