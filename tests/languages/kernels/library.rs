// Kernels in Rust over its standard library.
use std::cell::RefCell;
use std::rc::Rc;

#[no_mangle]
pub unsafe extern "C" fn iterators(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let s: f64 = x.iter().zip(x.iter().skip(1)).map(|(a, b)| a * b).sum();
    for (o, v) in y.iter_mut().zip(x) {
        *o = v * s + x.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
    }
}

#[no_mangle]
pub unsafe extern "C" fn growth(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut v: Vec<f64> = Vec::new();
    for &a in x {
        v.push(a * a);
    }
    v.extend_from_slice(&[1.0, 2.0]);
    let w: Vec<f64> = v.iter().map(|t| t * 2.0).collect();
    for i in 0..n {
        y[i] = w[i] * v[n - 1 - i] + v[n + 1];
    }
}

#[no_mangle]
pub unsafe extern "C" fn bounds_checked(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    for i in 0..n {
        y[i] = x[i] * x[(i * 3) % n];
    }
}

#[no_mangle]
pub unsafe extern "C" fn boxed_closure(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let b = Box::new(x[0] * x[1]);
    let c: Box<dyn Fn(f64) -> f64> = if n > 3 {
        let k = *b;
        Box::new(move |t| t * k)
    } else {
        Box::new(|t| t)
    };
    for i in 0..n {
        y[i] = c(x[i]);
    }
}

#[no_mangle]
pub unsafe extern "C" fn nested(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut m = vec![vec![0.0f64; n]; n];
    for i in 0..n {
        for j in 0..n {
            m[i][j] = x[i] * x[j] + if i == j { 1.0 } else { 0.0 };
        }
    }
    for i in 0..n {
        y[i] = m[i].iter().sum::<f64>() * m[n - 1 - i][i];
    }
}

#[no_mangle]
pub unsafe extern "C" fn number_methods(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    for i in 0..n {
        let t = x[i];
        let (s, c) = t.sin_cos();
        y[i] = t.powi(3)
            + t.mul_add(2.0, 1.0)
            + t.hypot(2.0)
            + s * c
            + t.clamp(0.5, 1.0)
            + t.max(0.75)
            + t.min(0.95)
            + t.powf(1.5)
            + t.exp_m1()
            + t.ln_1p()
            + t.abs()
            + t.signum()
            + t.sqrt()
            + t.cbrt()
            + t.atan2(2.0)
            + t.rem_euclid(0.33)
            + t.floor()
            + t.fract()
            + t.recip()
            + t.tanh()
            + t.to_radians()
            + t.copysign(-1.0)
            + t.log10()
            + t.exp2();
    }
}

trait Op {
    fn ap(&self, t: f64) -> f64;
}
struct A(f64);
struct B {
    k: f64,
}
impl Op for A {
    fn ap(&self, t: f64) -> f64 {
        self.0 * t * t
    }
}
impl Op for B {
    fn ap(&self, t: f64) -> f64 {
        self.k + t
    }
}
fn g<T: Op>(o: &T, t: f64) -> f64 {
    o.ap(t)
}
#[no_mangle]
pub unsafe extern "C" fn trait_objects(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let a = A(x[0]);
    let b = B { k: x[1] };
    let v: Vec<Box<dyn Op>> = vec![Box::new(A(x[2])), Box::new(B { k: x[3] })];
    for i in 0..n {
        y[i] = g(&a, x[i]) + g(&b, x[i]) + v.iter().map(|o| o.ap(x[i])).sum::<f64>();
    }
}

// tables of functions in memory that grows: what drops is called by them too, where there is something to drop
#[no_mangle]
pub unsafe extern "C" fn pushed_trait_objects(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut v: Vec<Box<dyn Op>> = Vec::new();
    for i in 0..n {
        if i % 2 == 0 {
            v.push(Box::new(A(x[i])));
        } else {
            v.push(Box::new(B { k: x[i] }));
        }
        y[i] = v.iter().map(|o| o.ap(x[i])).sum::<f64>();
    }
}

#[no_mangle]
pub unsafe extern "C" fn sorted(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut v = x.to_vec();
    v.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut w = x.to_vec();
    w.sort_unstable_by(|a, b| b.total_cmp(a));
    for i in 0..n {
        y[i] = v[i] * (i as f64 + 1.0) * w[i] * (x[i].total_cmp(&1.0) as i32 as f64 + 3.0);
    }
}

#[no_mangle]
pub unsafe extern "C" fn options_and_chunks(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    for i in 0..n {
        y[i] = x.get(i + 1).map_or(1.0, |t| t * t) * x.first().unwrap()
            + x.chunks(2).map(|c| c.iter().product::<f64>()).sum::<f64>()
            + x.windows(2).map(|w| w[0] * w[1]).sum::<f64>();
    }
}

#[no_mangle]
pub unsafe extern "C" fn checked(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    if n > 1000 {
        panic!("too big {}", n);
    }
    assert!(x[0] < 1e9, "x0 is {}", x[0]);
    let d: Result<f64, String> = if x[0] > 1e9 { Err("bad".into()) } else { Ok(x[0]) };
    y.copy_from_slice(x);
    y[0] = d.unwrap();
    y.swap(0, 1);
    y.reverse();
}

#[no_mangle]
pub unsafe extern "C" fn arrays_and_deques(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut a = [[0.0f64; 3]; 3];
    for i in 0..3 {
        for j in 0..3 {
            a[i][j] = x[i] * x[j] + (i + j) as f64;
        }
    }
    let t: [f64; 3] = core::array::from_fn(|i| a[i].iter().sum());
    for i in 0..n {
        y[i] = t[i % 3] * x[i];
    }
    let mut st: std::collections::VecDeque<f64> = x.iter().copied().collect();
    st.rotate_left(1);
    y[0] += st.pop_front().unwrap();
}

struct N {
    v: f64,
    next: Option<Box<N>>,
}
#[no_mangle]
pub unsafe extern "C" fn list_and_cells(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut h: Option<Box<N>> = None;
    for &t in x {
        h = Some(Box::new(N { v: t, next: h.take() }));
    }
    let mut i = 0;
    let mut p = &h;
    while let Some(q) = p {
        y[i] = q.v * q.v;
        i += 1;
        p = &q.next;
    }
    let r = Rc::new(RefCell::new(x[0]));
    let r2 = r.clone();
    *r2.borrow_mut() *= x[1];
    y[0] += *r.borrow();
}

#[no_mangle]
pub unsafe extern "C" fn printed(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    println!("n = {} {}", n, x[0]);
    for i in 0..n {
        y[i] = x[i] * x[i];
    }
}

#[no_mangle]
pub unsafe extern "C" fn hash_maps(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut m: std::collections::HashMap<usize, f64> = std::collections::HashMap::new();
    for i in 0..n {
        *m.entry(i % 3).or_insert(0.0) += x[i] * x[i];
    }
    for i in 0..n {
        y[i] = m[&(i % 3)] * x[i];
    }
    let mut weight = 1.0;
    for v in m.values() {
        y[0] += weight * v; // in an order that is the same in each call
        weight *= 1.5;
    }
    let mut rows: std::collections::HashMap<usize, Vec<f64>> = std::collections::HashMap::new();
    for i in 0..n {
        rows.entry(i % 2).or_insert_with(Vec::new).push(x[i] * y[i]);
    }
    y[1] += rows[&0].iter().sum::<f64>() * rows[&1][0];
}

fn inverse(t: f64) -> Result<f64, String> {
    if t < 1e-12 {
        Err(format!("no inverse of {}", t))
    } else {
        Ok(1.0 / t)
    }
}
#[no_mangle]
pub unsafe extern "C" fn formatted_errors(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    for i in 0..n {
        y[i] = inverse(x[i]).and_then(|t| inverse(t + 1.0)).expect("a number");
    }
}

struct Matrix {
    n: usize,
    d: Vec<f64>,
}
impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.d[i * self.n + j]
    }
}
impl std::ops::Mul for &Matrix {
    type Output = Matrix;
    fn mul(self, o: &Matrix) -> Matrix {
        assert_eq!(self.n, o.n);
        let mut d = Vec::new();
        for i in 0..self.n {
            for j in 0..self.n {
                d.push((0..self.n).map(|k| self[(i, k)] * o[(k, j)]).sum());
            }
        }
        Matrix { n: self.n, d }
    }
}
#[no_mangle]
pub unsafe extern "C" fn operators(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let a = Matrix { n, d: (0..n * n).map(|i| x[i % n] * x[i / n]).collect() };
    let b = &(&a * &a) * &a;
    for i in 0..n {
        y[i] = b[(i, n - 1 - i)];
    }
}

trait Layer {
    fn forward(&self, x: &[f64]) -> Vec<f64>;
}
struct Dense {
    w: Vec<f64>,
    n: usize,
}
struct Activation<F: Fn(f64) -> f64> {
    f: F,
}
impl Layer for Dense {
    fn forward(&self, x: &[f64]) -> Vec<f64> {
        self.w.chunks(self.n).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>()).collect()
    }
}
impl<F: Fn(f64) -> f64> Layer for Activation<F> {
    fn forward(&self, x: &[f64]) -> Vec<f64> {
        x.iter().map(|t| (self.f)(*t)).collect()
    }
}
// Functions whose addresses are compared and that may fail: each of the three keeps an address of its own.
#[no_mangle]
pub unsafe extern "C" fn layers(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let k = n as f64;
    let net: Vec<Box<dyn Layer>> = vec![
        Box::new(Dense { w: (0..9).map(|i| 0.1 * i as f64).collect(), n: 3 }),
        Box::new(Activation { f: move |t: f64| (t * k).tanh() }),
        Box::new(Activation { f: |t: f64| if t > 0.0 { t * t } else { 0.1 * t } }),
    ];
    let mut v = x[..3].to_vec();
    for layer in &net {
        v = layer.forward(&v);
    }
    for i in 0..n {
        y[i] = v[i % 3] * x[i];
    }
}

#[derive(Clone)]
enum Formula {
    Number(f64),
    Variable(usize),
    Sum(Box<Formula>, Box<Formula>),
    Product(Box<Formula>, Box<Formula>),
}
impl Formula {
    fn value(&self, x: &[f64]) -> f64 {
        match self {
            Formula::Number(c) => *c,
            Formula::Variable(i) => x[*i],
            Formula::Sum(a, b) => a.value(x) + b.value(x),
            Formula::Product(a, b) => a.value(x) * b.value(x),
        }
    }
    fn derivative(&self, i: usize) -> Formula {
        match self {
            Formula::Number(_) => Formula::Number(0.0),
            Formula::Variable(k) => Formula::Number((*k == i) as u8 as f64),
            Formula::Sum(a, b) => Formula::Sum(Box::new(a.derivative(i)), Box::new(b.derivative(i))),
            Formula::Product(a, b) => Formula::Sum(
                Box::new(Formula::Product(Box::new(a.derivative(i)), b.clone())),
                Box::new(Formula::Product(a.clone(), Box::new(b.derivative(i)))),
            ),
        }
    }
}
#[no_mangle]
pub unsafe extern "C" fn cloned_formulas(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut f = Formula::Number(x[0] * x[1]);
    for i in 0..n {
        f = Formula::Sum(Box::new(Formula::Product(Box::new(f), Box::new(Formula::Variable(i)))), Box::new(Formula::Number(x[i])));
    }
    for i in 0..n {
        y[i] = f.clone().derivative(i).value(x);
    }
}

struct Branch {
    weight: f64,
    twigs: RefCell<Vec<Rc<Branch>>>,
    trunk: RefCell<std::rc::Weak<Branch>>,
}
fn branch(weight: f64) -> Rc<Branch> {
    Rc::new(Branch { weight, twigs: RefCell::new(vec![]), trunk: RefCell::new(std::rc::Weak::new()) })
}
fn load(b: &Rc<Branch>) -> f64 {
    let below = b.trunk.borrow().upgrade().map_or(1.0, |t| t.weight);
    b.weight * below + b.twigs.borrow().iter().map(load).sum::<f64>()
}
#[no_mangle]
pub unsafe extern "C" fn counted_tree(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let root = branch(x[0]);
    let mut last = root.clone();
    for i in 1..n {
        let twig = branch(x[i] * x[i - 1]);
        *twig.trunk.borrow_mut() = Rc::downgrade(&last);
        last.twigs.borrow_mut().push(Rc::clone(&twig));
        if i % 2 == 0 {
            last = twig;
        }
    }
    for i in 0..n {
        y[i] = load(&root) * x[i];
    }
}

#[no_mangle]
pub unsafe extern "C" fn behind_locks(x: *const f64, n: usize, y: *mut f64) {
    use std::sync::{Arc, Mutex, OnceLock, RwLock};
    static FACTORS: OnceLock<Vec<f64>> = OnceLock::new();
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let shared = Arc::new(Mutex::new((0.1, Vec::new())));
    let scale = RwLock::new(x[0]);
    for i in 0..n {
        let other = Arc::clone(&shared);
        let mut held = other.lock().unwrap();
        held.0 += x[i] * x[i];
        let total: f64 = held.0;
        held.1.push(total.sqrt());
        *scale.write().unwrap() *= 1.1;
    }
    for i in 0..n {
        let factors = FACTORS.get_or_init(|| (1..4).map(|k| (k as f64).sqrt()).collect());
        y[i] = shared.lock().unwrap().1[i] * *scale.read().unwrap() * factors[i % 3];
    }
}

enum Entry {
    Numbers(f64, f64, f64),
    Text(String),
}
fn worth(e: &Entry) -> f64 {
    match e {
        Entry::Numbers(a, b, c) => a * b + c,
        Entry::Text(s) => s.capacity().min(1) as f64,
    }
}
// where a number was, the address of a text is: with no shadow that anything frees
#[no_mangle]
pub unsafe extern "C" fn texts_for_numbers(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let mut v: Vec<Entry> = (0..n).map(|i| Entry::Numbers(x[i], x[0], x[n - 1])).collect();
    let mut s = 0.0;
    for r in 0..3 {
        s = v.iter().fold(s, |s, e| s * 0.9 + worth(e));
        for i in 0..n {
            if i % 3 == r {
                v[i] = Entry::Text(format!("b{:.2}", x[0]));
            } else if i % 4 == r {
                v[i] = Entry::Numbers(s, x[1], x[2]);
            }
        }
    }
    for (o, e) in y.iter_mut().zip(&v) {
        *o = s + worth(e);
    }
}

#[derive(Clone)]
struct Named {
    name: String,
    weight: f64,
    marks: Vec<u8>,
}
#[no_mangle]
pub unsafe extern "C" fn names_and_bytes(x: *const f64, n: usize, y: *mut f64) {
    let x = std::slice::from_raw_parts(x, n);
    let y = std::slice::from_raw_parts_mut(y, n);
    let names = ["pear", "fig", "a name that is longer than others"].map(String::from);
    let mut all: Vec<Named> = Vec::new();
    for i in 0..n {
        let mut item = Named { name: names[i % 3].clone(), weight: x[i] * x[0], marks: Vec::new() };
        for j in 0..=i {
            item.marks.push(j as u8);
            item.name.push_str(if j % 2 == 0 { "-" } else { "+" });
        }
        all.push(item);
    }
    let mut sorted = all.clone();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    for (o, (a, b)) in y.iter_mut().zip(all.iter().zip(&sorted)) {
        *o = a.weight * b.weight + b.marks.len() as f64;
    }
}
