//! Rayon on the thread that calls: what rayon, and programs that use it, ask of the crate `rayon-core`, without threads.
//!
//! Every operation means what it means in a pool of one: both sides of a `join`, and all that is spawned, run at once, in
//! the order of the program. That is one of the orders that rayon permits, and one that every optimisation can see.

use std::error::Error;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::panic::Location;

/// An iterator is cut into pieces for so many threads by this module of rayon. A loop that is not cut stays one loop.
const CUTS_ITERATORS: &str = "plumbing/mod.rs";

pub fn max_num_threads() -> usize {
    1
}

#[inline]
#[track_caller]
pub fn current_num_threads() -> usize {
    !Location::caller().file().ends_with(CUTS_ITERATORS) as usize
}

pub fn current_thread_index() -> Option<usize> {
    Some(0)
}

pub fn current_thread_has_pending_tasks() -> Option<bool> {
    Some(false)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    Executed,
    Idle,
}

pub fn yield_now() -> Option<Yield> {
    Some(Yield::Idle)
}

pub fn yield_local() -> Option<Yield> {
    Some(Yield::Idle)
}

/// What `join_context` tells its closures.
#[derive(Debug)]
pub struct FnContext {
    _own: PhantomData<*mut ()>,
}

impl FnContext {
    #[inline]
    pub fn migrated(&self) -> bool {
        false
    }
}

#[inline]
pub fn join<A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let found = first();
    (found, second())
}

#[inline]
pub fn join_context<A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let found = first(FnContext { _own: PhantomData });
    (found, second(FnContext { _own: PhantomData }))
}

/// What a broadcast tells its closure.
pub struct BroadcastContext<'a> {
    _own: PhantomData<&'a mut dyn Fn()>,
}

impl BroadcastContext<'_> {
    pub fn index(&self) -> usize {
        0
    }

    pub fn num_threads(&self) -> usize {
        1
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BroadcastContext")
    }
}

pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    vec![op(BroadcastContext { _own: PhantomData })]
}

pub fn spawn<F: FnOnce() + Send + 'static>(function: F) {
    function()
}

pub fn spawn_fifo<F: FnOnce() + Send + 'static>(function: F) {
    function()
}

pub fn spawn_broadcast<OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static>(op: OP) {
    op(BroadcastContext { _own: PhantomData })
}

macro_rules! scopes {
    ($scope:ident, $spawn:ident, $with:ident, $in_place:ident) => {
        pub struct $scope<'scope> {
            _bodies: PhantomData<Box<dyn FnOnce(&$scope<'scope>) + Send + Sync + 'scope>>,
        }

        impl<'scope> $scope<'scope> {
            pub fn $spawn<BODY>(&self, body: BODY)
            where
                BODY: FnOnce(&$scope<'scope>) + Send + 'scope,
            {
                body(self)
            }

            pub fn spawn_broadcast<BODY>(&self, body: BODY)
            where
                BODY: Fn(&$scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
            {
                body(self, BroadcastContext { _own: PhantomData })
            }
        }

        impl fmt::Debug for $scope<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($scope))
            }
        }

        pub fn $with<'scope, OP, R>(op: OP) -> R
        where
            OP: FnOnce(&$scope<'scope>) -> R + Send,
            R: Send,
        {
            $in_place(op)
        }

        pub fn $in_place<'scope, OP, R>(op: OP) -> R
        where
            OP: FnOnce(&$scope<'scope>) -> R,
        {
            op(&$scope { _bodies: PhantomData })
        }
    };
}

scopes!(Scope, spawn, scope, in_place_scope);
scopes!(ScopeFifo, spawn_fifo, scope_fifo, in_place_scope_fifo);

/// A pool has no threads: what is asked of it runs on the one that asks.
#[derive(Debug)]
pub struct ThreadPool {
    _own: (),
}

impl ThreadPool {
    pub fn install<OP: FnOnce() -> R + Send, R: Send>(&self, op: OP) -> R {
        op()
    }

    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        broadcast(op)
    }

    pub fn current_num_threads(&self) -> usize {
        1
    }

    pub fn current_thread_index(&self) -> Option<usize> {
        current_thread_index()
    }

    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        current_thread_has_pending_tasks()
    }

    pub fn join<A, B, RA, RB>(&self, first: A, second: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        join(first, second)
    }

    pub fn scope<'scope, OP: FnOnce(&Scope<'scope>) -> R + Send, R: Send>(&self, op: OP) -> R {
        scope(op)
    }

    pub fn scope_fifo<'scope, OP: FnOnce(&ScopeFifo<'scope>) -> R + Send, R: Send>(&self, op: OP) -> R {
        scope_fifo(op)
    }

    pub fn in_place_scope<'scope, OP: FnOnce(&Scope<'scope>) -> R, R>(&self, op: OP) -> R {
        in_place_scope(op)
    }

    pub fn in_place_scope_fifo<'scope, OP: FnOnce(&ScopeFifo<'scope>) -> R, R>(&self, op: OP) -> R {
        in_place_scope_fifo(op)
    }

    pub fn spawn<OP: FnOnce() + Send + 'static>(&self, op: OP) {
        op()
    }

    pub fn spawn_fifo<OP: FnOnce() + Send + 'static>(&self, op: OP) {
        op()
    }

    pub fn spawn_broadcast<OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static>(&self, op: OP) {
        spawn_broadcast(op)
    }

    pub fn yield_now(&self) -> Option<Yield> {
        yield_now()
    }

    pub fn yield_local(&self) -> Option<Yield> {
        yield_local()
    }
}

#[derive(Debug)]
pub struct ThreadPoolBuildError {
    _own: (),
}

impl Error for ThreadPoolBuildError {}

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no pool of threads")
    }
}

/// The thread that a pool of one would start.
#[derive(Debug)]
pub struct ThreadBuilder {
    _own: (),
}

impl ThreadBuilder {
    pub fn index(&self) -> usize {
        0
    }

    pub fn name(&self) -> Option<&str> {
        None
    }

    pub fn stack_size(&self) -> Option<usize> {
        None
    }

    pub fn run(self) {}
}

pub struct DefaultSpawn;
pub struct CustomSpawn<F>(PhantomData<F>);

/// How a pool is asked for; whatever is asked for, it has no threads.
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    _spawn: PhantomData<S>,
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadPoolBuilder")
    }
}

impl ThreadPoolBuilder {
    pub fn new() -> Self {
        ThreadPoolBuilder { _spawn: PhantomData }
    }

    pub fn spawn_handler<F: FnMut(ThreadBuilder) -> io::Result<()>>(self, _: F) -> ThreadPoolBuilder<CustomSpawn<F>> {
        ThreadPoolBuilder { _spawn: PhantomData }
    }

    pub fn build_scoped<W, F, R>(self, _wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        Ok(with_pool(&ThreadPool { _own: () }))
    }
}

impl<S> ThreadPoolBuilder<S> {
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        Ok(ThreadPool { _own: () })
    }

    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        Ok(())
    }

    pub fn thread_name<F: FnMut(usize) -> String + 'static>(self, _: F) -> Self {
        self
    }

    pub fn num_threads(self, _: usize) -> Self {
        self
    }

    pub fn use_current_thread(self) -> Self {
        self
    }

    pub fn panic_handler<H: Fn(Box<dyn std::any::Any + Send>) + Send + Sync + 'static>(self, _: H) -> Self {
        self
    }

    pub fn stack_size(self, _: usize) -> Self {
        self
    }

    #[deprecated(note = "use `scope_fifo` and `spawn_fifo`")]
    pub fn breadth_first(self) -> Self {
        self
    }

    pub fn start_handler<H: Fn(usize) + Send + Sync + 'static>(self, _: H) -> Self {
        self
    }

    pub fn exit_handler<H: Fn(usize) + Send + Sync + 'static>(self, _: H) -> Self {
        self
    }
}
