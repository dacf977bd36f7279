/* A by-value integer picks a row of an inout table; only that row changes, three times, by a rule with memory. */
#include <math.h>

void triple_state(int rows, int cols, int row, double gain, double *table) {
    (void)rows;
    double *r = table + row * cols;
    for (int pass = 0; pass < 3; pass++) {
        double carry = r[cols - 1];
        for (int j = 0; j < cols; j++) {
            double keep = r[j];
            r[j] = gain * cos(keep) * carry;
            carry = keep;
        }
    }
}
