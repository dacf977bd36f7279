/* Places in memory are found by functions of the library: a mark among bytes, a letter in a text; the numbers of a
   record behind a mark. */
#include <string.h>

struct item {
    char mark;
    double number;
};

void k(int n, const double *x, double *y) {
    struct item items[2] = {{'a', x[0] * x[1]}, {'b', x[1] * x[2]}};
    const char *letters = "xyz";
    unsigned char marks[4] = {7, 3, 5, 1};
    const char *first = memchr(items, 'a', sizeof items);
    const struct item *item = (const struct item *)first;
    for (int i = 0; i < n; i++) {
        const unsigned char *mark = memchr(marks, i % 2 ? 3 : 5, sizeof marks);
        const char *letter = strchr(letters, "xyz"[i % 3]);
        y[i] = item->number * x[mark - marks] + x[letter - letters] * x[i];
    }
}
