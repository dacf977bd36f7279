/* Numbers and words in a stream of bytes that grows, as messages are packed: nobody knows where the numbers stand. */
#include <stdlib.h>
#include <string.h>

struct stream {
    unsigned char *bytes;
    size_t used, room;
};

static void put(struct stream *s, const void *what, size_t size) {
    if (s->used + size > s->room) {
        s->room = 2 * (s->used + size);
        s->bytes = realloc(s->bytes, s->room);
    }
    memcpy(s->bytes + s->used, what, size);
    s->used += size;
}

static void put_byte(struct stream *s, int byte) {
    unsigned char c = byte;
    put(s, &c, 1);
}

void k(int n, const double *x, double *y) {
    struct stream s = {0};
    for (int i = 0; i < n; i++) {
        double v = x[i] * (i + 1);
        if (i % 2) put_byte(&s, 's'), put_byte(&s, 4), put(&s, "name", 4);
        put_byte(&s, 'd'), put(&s, &v, sizeof v);
    }
    for (size_t at = 0, out = 0; at < s.used;) {
        double v;
        if (s.bytes[at++] != 'd') {
            at += 1 + s.bytes[at];
            continue;
        }
        memcpy(&v, s.bytes + at, sizeof v);
        y[out++] = v * v;
        at += sizeof v;
    }
    free(s.bytes);
}
