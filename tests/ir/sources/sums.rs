// Slices, growing vectors, sorting with a closure, formatting, panics, enums with data.
pub enum Step {
    Scale(f64),
    Shift { by: f64, times: u32 },
    Stop,
}

#[no_mangle]
pub fn apply(step: &Step, x: f64) -> Option<f64> {
    match step {
        Step::Scale(k) => Some(x * k),
        Step::Shift { by, times } => Some((0..*times).fold(x, |s, _| s + by)),
        Step::Stop => None,
    }
}

#[no_mangle]
pub unsafe extern "C" fn summed(x: *const f64, n: usize) -> f64 {
    let values = std::slice::from_raw_parts(x, n);
    let mut kept: Vec<f64> = Vec::new();
    for (i, a) in values.iter().enumerate() {
        kept.push(if *a > 3.0 { a.sin() } else { a * values[n - i] });
    }
    kept.sort_by(|a, b| a.partial_cmp(b).unwrap());
    println!("{:?}", kept);
    kept.iter().sum()
}
