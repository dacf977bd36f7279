/* From the right to the left. */
void backwards(int n, const double *x, double *y) {
    for (int i = n - 2; i > 0; i--) y[i] = x[i - 1] * x[i] + 2 * x[i + 1] * x[i + 1];
}

/* In place: what is read has been written a moment ago. */
void in_place(int n, double *x) {
    for (int i = 1; i < n - 1; i++) x[i] = x[i - 1] * 0.3 + x[i] * x[i + 1];
}

/* The results lie where earlier iterations have read, or where later ones read. */
void same_array(int n, double *x) {
    for (int i = 1; i < n - 1; i++) x[n + i] = x[i - 1] * x[i] + x[i + 1] * x[n + i + 2];
}
void same_places(int n, double *x) {
    for (int i = 3; i < n - 1; i++) x[n + i] = x[n + i - 3] * x[n + i] + x[n + i - 2] * x[n + i + 1];
}

/* Each second number is updated by what lies beside it and a row further. */
void red_black(int n, int m, double w, double *u) {
    for (int c = 0; c < 2; c++)
        for (int i = 1; i < n - 1; i++)
            for (int j = 1 + (i + c) % 2; j < m - 1; j += 2)
                u[i * m + j] += w * (u[(i - 1) * m + j] + u[(i + 1) * m + j] * u[i * m + j - 1] + u[i * m + j + 1]);
}

/* A loop in a function that calls itself. */
double recursive(int n, int depth, const double *x) {
    double sum = 0;
    for (int i = 1; i < n - 1; i++) sum += x[i - 1] * x[i + 1] * x[i];
    return depth ? sum + 0.5 * recursive(n, depth - 1, x) : sum;
}

/* The same adjoint for several neighbours, and for several loops. */
void shared(int n, const double *x, double *y) {
    for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] + x[i] + x[i + 1];
    for (int i = 2; i < n - 2; i++) y[i] += y[0] * (x[i - 2] + x[i + 2]);
}

/* The same with weights, and with a rim of the array that no cell reads. */
void weighted(int n, int m, const double *w, const double *x, double *y) {
    for (int i = 2; i < n - 2; i++)
        for (int j = 2; j < m - 2; j++) {
            double sum = 0;
            for (int a = -1; a <= 1; a++)
                for (int b = -1; b <= 1; b++) sum += w[3 * a + b + 4] * x[(i + a) * m + j + b];
            y[i * m + j] = sum;
        }
}

/* Planes of rows, from the last to the first. */
void planes(int n, const double *x, double *y) {
    for (int i = n - 2; i > 0; i--)
        for (int j = 1; j < n - 1; j++)
            for (int k = n - 2; k > 0; k--) {
                int p = (i * n + j) * n + k;
                y[p] = x[p] * (x[p - 1] + x[p + 1]) + x[p - n] + x[p + n] - x[p - n * n] * x[p + n * n];
            }
}

/* What is read lies between other numbers and pointers to them. */
struct Row {
    double x[12], *scale;
};
double rows(int n, const double *x) {
    struct Row all[8];
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        all[i].scale = &all[i].x[i];
        for (int j = 0; j < 12; j++) all[i].x[j] = x[12 * i + j];
    }
    for (int i = 0; i < 8; i++)
        for (int j = 1; j < 11; j++) sum += all[i].x[j - 1] * all[i].x[j] * all[i].x[j + 1];
    for (int i = 0; i < 8; i++) sum *= *all[i].scale;
    return sum;
}

/* A function that is not inlined writes what the loop has read. */
static void down(int depth, int i, double *x) {
    x[i] = 0.5 * x[i] * x[i];
    if (depth) down(depth - 1, i, x);
}
double calls(int n, int depth, double *x) {
    double sum = 0;
    for (int i = 1; i < n - 1; i++) {
        sum += x[i - 1] * x[i] * x[i + 1];
        down(depth, i, x);
    }
    return sum;
}

/* Levels of one array that take turns, by threes and by twos; the second time, one row too short for that. */
void levels(int n, int m, int steps, double *x, double *y) {
    for (int t = 0; t < steps; t++) {
        double *old = x + t % 3 * n * m, *now = x + (t + 1) % 3 * n * m, *next = x + (t + 2) % 3 * n * m;
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < m - 1; j++)
                next[i * m + j] = now[i * m + j - 1] * now[i * m + j + 1] - old[i * m + j] + now[i * m + j + m];
        double *from = y + (t & 1) * n * m, *to = y + (t + 1 & 1) * n * m;
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < m - 1; j++) to[i * m + j] = from[i * m + j - 1] * from[i * m + j] + from[i * m + j + m];
    }
}
void levels_overlap(int n, int m, int steps, double *x) {
    for (int t = 0; t < steps; t++) {
        double *now = x + t % 2 * (n - 2) * m, *next = x + (t + 1) % 2 * (n - 2) * m;
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < m - 1; j++)
                next[i * m + j] = now[i * m + j - 1] * now[i * m + j + 1] + now[i * m + j + m];
    }
}

/* Records of three numbers: what each reads of its neighbours, and of what lies beside. */
void records(int n, const double *u, double *y) {
    for (int i = 1; i < n - 1; i++) {
        const double *l = u + 3 * (i - 1), *c = u + 3 * i, *r = u + 3 * (i + 1);
        y[3 * i] = l[0] * r[0] + c[2];
        y[3 * i + 1] = r[1] * c[1] - c[0] * l[2] * r[2];
        y[3 * i + 2] = c[2] * r[2] + l[1];
    }
}

/* Complex numbers on a grid, from the last to the first. */
void complexes(int n, int m, const double *z, double *y) {
    for (int i = n - 2; i > 0; i--)
        for (int j = m - 2; j > 0; j--) {
            const double *c = z + 2 * (i * m + j), *l = c - 2, *r = c + 2, *b = c - 2 * m, *t = c + 2 * m;
            y[2 * (i * m + j)] = (l[0] + r[0] + b[0] + t[0]) * c[1];
            y[2 * (i * m + j) + 1] = l[1] * r[0] - b[1] * t[1] + c[0] * c[0];
        }
}

/* Of every record the last number is that of another loop, which writes it. */
void beside(int n, double *u) {
    for (int i = 1; i < n - 1; i++) u[3 * i + 2] = u[3 * (i - 1)] * u[3 * i + 1] + u[3 * i] * u[3 * (i + 1)];
}

/* The same on a line, where what is read of one place serves the next; then with levels that share a number. */
void lines(int n, int steps, double *x) {
    for (int t = 1; t <= steps; t++) {
        double *now = x + t % 3 * n, *old = x + (t + 2) % 3 * n, *next = x + (t + 1) % 3 * n;
        for (int i = 1; i < n - 1; i++) next[i] = now[i - 1] * now[i] - old[i] + now[i + 1];
    }
}
void lines_overlap(int n, int steps, double *x) {
    for (int t = 1; t <= steps; t++) {
        double *now = x + t % 3 * (n - 3), *next = x + (t + 1) % 3 * (n - 3);
        for (int i = 1; i < n - 1; i++) next[i] = now[i - 1] * now[i] + now[i + 1];
    }
}

/* A loop that is shorter each time, or longer, and writes what it has read. */
void pyramid(int n, double *x) {
    for (int t = n - 2; t > 0; t--)
        for (int i = 0; i < t; i++) x[i] = 0.5 * x[i] * x[i + 1] + 0.4 * x[i + 2];
}
void growing(int n, double *x) {
    for (int t = 1; t < n - 2; t++)
        for (int i = 0; i < t; i++) x[i] = 0.5 * x[i] * x[i + 1] + 0.4 * x[i + 2] * x[i + 1];
}

/* The same from the other end, which reads what it has written. */
void pyramid_down(int n, double *x) {
    for (int t = n - 2; t > 0; t--)
        for (int i = t - 1; i >= 0; i--) x[i] = 0.5 * x[i] * x[i + 1] + 0.4 * x[i + 2];
}

/* Adjoints of neighbours that are alike but for their sign, and a constant. */
void slopes(int n, const double *x, double *y) {
    for (int i = 2; i < n - 2; i++) y[i] *= x[i + 1] - x[i - 1] + 0.5 * (x[i - 2] - x[i + 2]);
}
