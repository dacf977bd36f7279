#include "orbit.h"
#include <stdio.h>

int main(void) {
    double earth[6] = {1.00000261, 0.01671123, 0, 0, 1.796601, 6.240051}, r[3];
    position(earth, 100, r);
    printf("%.12f %.12f %.12f\n", r[0], r[1], r[2]);
    return 0;
}
