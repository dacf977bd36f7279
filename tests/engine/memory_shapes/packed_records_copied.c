/* Packed records in a buffer of bytes, and parts of them that are copied: no number stands at a multiple of its size,
   counted from where a copy starts. */
#include <string.h>

#pragma pack(push, 1)
struct record {
    char tag;
    double v;
    short k;
    double w;
};
#pragma pack(pop)

void k(int n, const double *x, double *y) {
    char bytes[256], *p = bytes;
    struct record r;
    for (int i = 0; i < n; i++, p += sizeof r) {
        r = (struct record){'x', x[i], i + 1, x[i] * x[i]};
        memcpy(p, &r, sizeof r);
    }
    p = bytes;
    for (int i = 0; i < n; i++, p += sizeof r) {
        memcpy(&r, p, sizeof r);
        y[i] = r.v * r.k + r.w;
        if (i != 2) continue;
        memcpy(&r, bytes, sizeof r);
        r.v *= 2;
        memcpy(bytes + sizeof r, &r, sizeof r);
    }
    memcpy(&r, bytes + sizeof r, sizeof r);
    y[0] += r.v * r.w;
}
