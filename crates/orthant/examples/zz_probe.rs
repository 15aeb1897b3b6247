use orthant::*;
fn main() {
    // self terms at small epsilon
    let mu = Measure::uniform(Points::new(vec![-1.0, -0.9, 0.0, 0.1, 1.0], 1).unwrap());
    for eps in [0.1, 0.03, 0.01, 0.003, 0.001, 0.0001] {
        for p in [Precision::F32, Precision::F64] {
            let o = Options::builder(eps).method(Method::gaussian()).rank(20).precision(p).max_iterations(50).build().unwrap();
            println!("{eps} {p:?} {:?}", divergence(&mu, &mu, &o).map(|d| (d.value, d.self_x.value, d.self_x.stop)));
        }
    }
    // overflowing outside points
    let nu = Measure::weighted(Points::new(vec![0.0, 1.0, 1e200], 1).unwrap(), &[1.0, 1.0, 0.0]).unwrap();
    let o = Options::builder(1.0).method(Method::online()).build().unwrap();
    println!("{:?}", rot(&nu, &mu, &o).map(|s| (s.value, s.potential_x)));
}
