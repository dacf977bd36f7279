// A table that nothing can write to is read again in the reverse sweep, whatever is written where the library points.

#include <string.h>

static const double table[4] = {1.5, 2.5, -3.5, 4.5};

void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        char line[8] = "abc def";
        const double factor = table[(int)(3 * x[i]) & 3];
        line[0] = factor > 2 ? ' ' : 'b';
        char *word = strtok(line, " ");
        if (word) word[0] = 'c';
        y[i] = line[1] == 'b' ? x[i] * factor * x[i] : x[i];
    }
}
