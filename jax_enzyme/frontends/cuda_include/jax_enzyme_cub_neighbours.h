// What the threads of a block make of the items of those beside them, of CUB.
#pragma once

namespace cub {

// What neighbouring items make of each other: the first, or the last, stays as it is where nothing lies beyond it.
template <class T, int X, int Y = 1, int Z = 1, int = 0> class BlockAdjacentDifference {
  static constexpr int Threads = X * Y * Z;
  typedef __je_shared<T, Threads> Storage;
  __JE_COLLECTIVE(BlockAdjacentDifference)

  template <int N, class U, class F> __JE_MEMBER void SubtractLeft(T (&in)[N], U (&out)[N], F combined) {
    T before = neighbour(in[N - 1], -1), first = in[0];
    left(in, out, combined);
    out[0] = thread() == 0 ? first : combined(first, before);
  }
  template <int N, class U, class F>
  __JE_MEMBER void SubtractLeft(T (&in)[N], U (&out)[N], F combined, T predecessor) {
    T before = neighbour(in[N - 1], -1), first = in[0];
    left(in, out, combined);
    out[0] = combined(first, thread() == 0 ? predecessor : before);
  }
  template <int N, class U, class F> __JE_MEMBER void SubtractRight(T (&in)[N], U (&out)[N], F combined) {
    T behind = neighbour(in[0], 1), last = in[N - 1];
    right(in, out, combined);
    out[N - 1] = thread() == Threads - 1 ? last : combined(last, behind);
  }
  template <int N, class U, class F>
  __JE_MEMBER void SubtractRight(T (&in)[N], U (&out)[N], F combined, T successor) {
    T behind = neighbour(in[0], 1), last = in[N - 1];
    right(in, out, combined);
    out[N - 1] = combined(last, thread() == Threads - 1 ? successor : behind);
  }

 private:
  // What the thread before this one, or behind it, has.
  __JE_MEMBER T neighbour(T value, int by) {
    int other = thread() + by;
    shared.data()[thread()] = value;
    __syncthreads();
    return shared.data()[other < 0 || other >= Threads ? thread() : other];
  }
  template <int N, class U, class F> __JE_MEMBER static void left(T (&in)[N], U (&out)[N], F combined) {
    for (int i = N - 1; i > 0; i--) out[i] = combined(in[i], in[i - 1]);
  }
  template <int N, class U, class F> __JE_MEMBER static void right(T (&in)[N], U (&out)[N], F combined) {
    for (int i = 0; i < N - 1; i++) out[i] = combined(in[i], in[i + 1]);
  }
};

// Where items begin, or end, that differ from the one before or behind, by a functor of two items, or of these and the
// place of the second.
template <class T, int X, int Y = 1, int Z = 1, int = 0> class BlockDiscontinuity {
  static constexpr int Threads = X * Y * Z;
  struct Storage {
    __je_shared<T, Threads> first, last;
  };
  __JE_COLLECTIVE(BlockDiscontinuity)

  template <int N, class U, class F> __JE_MEMBER void FlagHeads(U (&flags)[N], T (&items)[N], F differs) {
    share(items);
    heads(flags, items, differs, before(), true);
  }
  template <int N, class U, class F>
  __JE_MEMBER void FlagHeads(U (&flags)[N], T (&items)[N], F differs, T predecessor) {
    share(items);
    heads(flags, items, differs, before(predecessor), false);
  }
  template <int N, class U, class F> __JE_MEMBER void FlagTails(U (&flags)[N], T (&items)[N], F differs) {
    share(items);
    tails(flags, items, differs, behind(), true);
  }
  template <int N, class U, class F>
  __JE_MEMBER void FlagTails(U (&flags)[N], T (&items)[N], F differs, T successor) {
    share(items);
    tails(flags, items, differs, behind(successor), false);
  }
  template <int N, class U, class W, class F>
  __JE_MEMBER void FlagHeadsAndTails(U (&first)[N], W (&last)[N], T (&items)[N], F differs) {
    share(items);
    flag(first, last, items, differs, before(), behind(), true, true);
  }
  template <int N, class U, class W, class F>
  __JE_MEMBER void FlagHeadsAndTails(U (&first)[N], W (&last)[N], T successor, T (&items)[N], F differs) {
    share(items);
    flag(first, last, items, differs, before(), behind(successor), true, false);
  }
  template <int N, class U, class W, class F>
  __JE_MEMBER void FlagHeadsAndTails(U (&first)[N], T predecessor, W (&last)[N], T (&items)[N], F differs) {
    share(items);
    flag(first, last, items, differs, before(predecessor), behind(), false, true);
  }
  template <int N, class U, class W, class F>
  __JE_MEMBER void FlagHeadsAndTails(U (&first)[N], T predecessor, W (&last)[N], T successor, T (&items)[N],
                                     F differs) {
    share(items);
    flag(first, last, items, differs, before(predecessor), behind(successor), false, false);
  }

 private:
  template <int N> __JE_MEMBER void share(T (&items)[N]) {
    shared.first.data()[thread()] = items[0];
    shared.last.data()[thread()] = items[N - 1];
    __syncthreads();
  }
  // What lies beside the items of a thread; at the ends what is given, or anything.
  __JE_MEMBER T before() { return shared.last.data()[thread() ? thread() - 1 : 0]; }
  __JE_MEMBER T before(const T &predecessor) { return thread() ? before() : predecessor; }
  __JE_MEMBER T behind() { return shared.first.data()[thread() < Threads - 1 ? thread() + 1 : thread()]; }
  __JE_MEMBER T behind(const T &successor) { return thread() < Threads - 1 ? behind() : successor; }
  template <int N, class U, class W, class F>
  __JE_MEMBER static void flag(U (&first)[N], W (&last)[N], T (&items)[N], F differs, const T &before, const T &behind,
                               bool begins, bool ends) {
    heads(first, items, differs, before, begins);
    tails(last, items, differs, behind, ends);
  }
  template <class F> __JE_MEMBER static bool asked(F differs, const T &a, const T &b, int place) {
    if constexpr (std::is_invocable<F, const T &, const T &, int>::value) return differs(a, b, place);
    else return differs(a, b);
  }
  // `open`: the first item of all begins whatever lies before it.
  template <int N, class U, class F>
  __JE_MEMBER static void heads(U (&flags)[N], T (&items)[N], F differs, const T &before, bool open) {
    flags[0] = (open && thread() == 0) || asked(differs, before, items[0], thread() * N);
    for (int i = 1; i < N; i++) flags[i] = asked(differs, items[i - 1], items[i], thread() * N + i);
  }
  template <int N, class U, class F>
  __JE_MEMBER static void tails(U (&flags)[N], T (&items)[N], F differs, const T &behind, bool open) {
    for (int i = 0; i < N - 1; i++) flags[i] = asked(differs, items[i], items[i + 1], thread() * N + i + 1);
    flags[N - 1] = (open && thread() == Threads - 1) || asked(differs, items[N - 1], behind, thread() * N + N);
  }
};

// What the thread at a distance holds; one that asks beyond the ends keeps what it had.
template <class T, int X, int Y = 1, int Z = 1, int = 0> class BlockShuffle {
  static constexpr int Threads = X * Y * Z;
  typedef __je_shared<T, Threads> Storage;
  __JE_COLLECTIVE(BlockShuffle)

  __JE_MEMBER void Offset(T in, T &out, int by = 1) {
    int other = thread() + by;
    share(in);
    if (other >= 0 && other < Threads) out = shared.data()[other];
  }
  __JE_MEMBER void Rotate(T in, T &out, unsigned by = 1) {
    share(in);
    out = shared.data()[(thread() + by) % Threads];
  }
  template <int N> __JE_MEMBER void Up(T (&in)[N], T (&out)[N]) {
    share(in[N - 1]);
    for (int i = N - 1; i > 0; i--) out[i] = in[i - 1];
    if (thread() > 0) out[0] = shared.data()[thread() - 1];
  }
  template <int N> __JE_MEMBER void Down(T (&in)[N], T (&out)[N]) {
    share(in[0]);
    for (int i = 0; i < N - 1; i++) out[i] = in[i + 1];
    if (thread() < Threads - 1) out[N - 1] = shared.data()[thread() + 1];
  }
  // With the item that moves out at the end, for all threads.
  template <int N> __JE_MEMBER void Up(T (&in)[N], T (&out)[N], T &suffix) {
    Up(in, out);
    suffix = shared.data()[Threads - 1];
  }
  template <int N> __JE_MEMBER void Down(T (&in)[N], T (&out)[N], T &prefix) {
    Down(in, out);
    prefix = shared.data()[0];
  }

 private:
  __JE_MEMBER void share(T value) {
    shared.data()[thread()] = value;
    __syncthreads();
  }
};

} // namespace cub
