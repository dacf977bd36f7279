/* A little stack machine without the stack: op codes from an integer array choose what happens to the accumulator. */
#include <math.h>

double switch_ops(int n, const int *op, const double *x) {
    double acc = 1;
    for (int i = 0; i < n; i++) {
        switch (op[i]) {
        case 0: acc += x[i]; break;
        case 1: acc *= x[i]; break;
        case 2: acc = sin(acc) + x[i]; break;
        case 3: acc -= 1; /* falls through */
        case 4: acc = acc * acc * x[i]; break;
        default: acc = exp(-acc * acc);
        }
    }
    return acc;
}
