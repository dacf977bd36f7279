/* Atomic memory in every order, fences, exchange, volatile. */
#include <stdatomic.h>

atomic_int counter;
_Atomic double total;
_Atomic(void *) head;
volatile int port;
static int largest;

int bump(int by) {
    atomic_fetch_add(&counter, by);
    atomic_fetch_sub_explicit(&counter, 1, memory_order_relaxed);
    atomic_fetch_or_explicit(&counter, 8, memory_order_acquire);
    atomic_fetch_and_explicit(&counter, ~2, memory_order_release);
    atomic_fetch_xor_explicit(&counter, 4, memory_order_acq_rel);
    atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_acquire);
    int expected = by;
    while (!atomic_compare_exchange_weak(&counter, &expected, by + 1)) expected--;
    atomic_compare_exchange_strong_explicit(&counter, &expected, 3, memory_order_release, memory_order_relaxed);
    return atomic_exchange(&counter, 5) + atomic_load_explicit(&counter, memory_order_acquire);
}

void accumulate(double x) {
    total += x;
    atomic_store_explicit(&head, (void *)&port, memory_order_release);
    port = port + 1;
    __atomic_fetch_max(&largest, (int)x, __ATOMIC_SEQ_CST);
}
