/* Kernels of processes: each has x and makes y, of n numbers. */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#define WORLD MPI_COMM_WORLD

static int rank(void) {
    int rank;
    MPI_Comm_rank(WORLD, &rank);
    return rank;
}

static int size(void) {
    int size;
    MPI_Comm_size(WORLD, &size);
    return size;
}

/* y = x^2 of the process before, which sends it on in order; the first has its own alone. Its rank lies beside a
 * number.
 */
void pipeline(int n, const double *x, double *y) {
    struct {
        int rank, size;
        double own;
    } me;
    MPI_Comm_rank(WORLD, &me.rank);
    MPI_Comm_size(WORLD, &me.size);
    for (int i = 0; i < n; i++) y[i] = 0;
    if (me.rank > 0) {
        MPI_Status status;
        int count;
        if (MPI_Recv(y, n, MPI_DOUBLE, MPI_ANY_SOURCE, 3, WORLD, &status) != MPI_SUCCESS) abort();
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        if (count != n || status.MPI_SOURCE != me.rank - 1) abort();
    }
    for (int i = 0; i < n; i++) {
        me.own = x[i] * x[i];
        y[i] = y[i] * 0.5 + me.own;
    }
    if (me.rank + 1 < me.size) MPI_Ssend(y, n, MPI_DOUBLE, me.rank + 1, 3, WORLD);
}

/* Steps of diffusion on a line that is split among the processes: messages are begun, and waited for after the points
   inside. Beyond the ends there is nothing. */
void heat(int n, int steps, const double *x, double *y) {
    double *u = malloc((n + 2) * sizeof *u), *v = malloc((n + 2) * sizeof *v);
    int left = rank() > 0 ? rank() - 1 : MPI_PROC_NULL, right = rank() + 1 < size() ? rank() + 1 : MPI_PROC_NULL;
    u[0] = u[n + 1] = 0;
    for (int i = 0; i < n; i++) u[i + 1] = x[i];
    for (int t = 0; t < steps; t++) {
        MPI_Request requests[4];
        MPI_Irecv(&u[0], 1, MPI_DOUBLE, left, 0, WORLD, &requests[0]);
        MPI_Irecv(&u[n + 1], 1, MPI_DOUBLE, right, 0, WORLD, &requests[1]);
        MPI_Isend(&u[1], 1, MPI_DOUBLE, left, 0, WORLD, &requests[2]);
        MPI_Isend(&u[n], 1, MPI_DOUBLE, right, 0, WORLD, &requests[3]);
        for (int i = 2; i < n; i++) v[i] = u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1]) - 0.01 * u[i] * u[i] * u[i];
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= n; i += n - 1)
            v[i] = u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1]) - 0.01 * u[i] * u[i] * u[i];
        for (int i = 1; i <= n; i++) u[i] = v[i];
    }
    for (int i = 0; i < n; i++) y[i] = u[i + 1];
    free(u);
    free(v);
}

/* The same with requests that are made once: steps of two, each with its own. */
void persistent(int n, int steps, const double *x, double *y) {
    double u[2][64];
    int left = rank() > 0 ? rank() - 1 : MPI_PROC_NULL, right = rank() + 1 < size() ? rank() + 1 : MPI_PROC_NULL;
    MPI_Request requests[2][4];
    for (int s = 0; s < 2; s++) {
        u[s][0] = u[s][n + 1] = 0;
        MPI_Recv_init(&u[s][0], 1, MPI_DOUBLE, left, 0, WORLD, &requests[s][0]);
        MPI_Recv_init(&u[s][n + 1], 1, MPI_DOUBLE, right, 0, WORLD, &requests[s][1]);
        MPI_Send_init(&u[s][1], 1, MPI_DOUBLE, left, 0, WORLD, &requests[s][2]);
        MPI_Send_init(&u[s][n], 1, MPI_DOUBLE, right, 0, WORLD, &requests[s][3]);
    }
    for (int i = 0; i < n; i++) u[0][i + 1] = x[i];
    for (int t = 0; t < steps; t++) {
        double *a = u[t % 2], *b = u[1 - t % 2];
        MPI_Startall(3, requests[t % 2]);
        MPI_Start(&requests[t % 2][3]);
        MPI_Waitall(4, requests[t % 2], MPI_STATUSES_IGNORE);
        for (int i = 1; i <= n; i++) b[i] = a[i] + 0.2 * (a[i - 1] - 2 * a[i] + a[i + 1]) - 0.01 * a[i] * a[i] * a[i];
    }
    for (int i = 0; i < n; i++) y[i] = u[steps % 2][i + 1];
    for (int i = 0; i < 8; i++) MPI_Request_free(&requests[i / 4][i % 4]);
}

/* A column to the right, begun and waited for, and two columns of a part to the left. */
void columns(int n, const double *x, double *y) {
    double u[16][4], v[16][4];
    int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
    int sizes[2] = {16, 4}, parts[2] = {n, 2}, starts[2] = {0, 1};
    MPI_Datatype column, part;
    MPI_Request requests[2];
    MPI_Type_vector(n, 1, 4, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &part);
    MPI_Type_commit(&part);
    for (int i = 0; i < n; i++) u[i][0] = 0, u[i][1] = x[i], u[i][2] = x[i] * x[i], u[i][3] = 1;
    MPI_Irecv(&u[0][0], 1, column, left, 3, WORLD, &requests[0]);
    MPI_Isend(&u[0][2], 1, column, right, 3, WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) u[i][3] *= u[i][0] * x[i];
    MPI_Sendrecv(u, 1, part, left, 4, v, 1, part, right, 4, WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) y[i] = u[i][3] + v[i][1] * v[i][2];
    MPI_Type_free(&column);
    MPI_Type_free(&part);
}

/* Two messages of one tag under way, waited for one by one; what comes first is longer than what is there. */
void two_begun(int n, const double *x, double *y) {
    double out[2][16], in[2][32];
    MPI_Request sent[2], came[2];
    MPI_Status status;
    int count;
    for (int i = 0; i < 64; i++) in[0][i] = 0;
    MPI_Irecv(in[0], 32, MPI_DOUBLE, (rank() + 1) % size(), 5, WORLD, &came[0]);
    MPI_Irecv(in[1], 32, MPI_DOUBLE, (rank() + 1) % size(), 5, WORLD, &came[1]);
    for (int i = 0; i < n; i++) out[0][i] = x[i] * x[i], out[1][i] = sin(x[i]);
    MPI_Isend(out[0], n, MPI_DOUBLE, (rank() + size() - 1) % size(), 5, WORLD, &sent[0]);
    MPI_Isend(out[1], n, MPI_DOUBLE, (rank() + size() - 1) % size(), 5, WORLD, &sent[1]);
    MPI_Wait(&came[0], &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    if (count != n) abort();
    MPI_Wait(&came[1], MPI_STATUS_IGNORE);
    MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) y[i] = in[0][i] * in[1][i] + x[i];
}

/* What each has goes one process on, in its own buffer. */
void rotate(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = sin(x[i]);
    MPI_Sendrecv_replace(y, n, MPI_DOUBLE, (rank() + 1) % size(), 0, (rank() + size() - 1) % size(), 0, WORLD,
                         MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) y[i] *= x[i];
}

/* From the root to all, an integer too, and from all to the root, where alone the sum is, and is used. */
void rooted(int n, const double *x, double *y) {
    double *own = malloc(n * sizeof *own), *sum = rank() == 1 ? malloc(n * sizeof *sum) : NULL;
    int shift = rank() == 1 ? 2 : 0;
    MPI_Bcast(&shift, 1, MPI_INT, 1, WORLD);
    for (int i = 0; i < n; i++) own[i] = x[i] * x[i];
    MPI_Bcast(own, n, MPI_DOUBLE, 1, WORLD);
    for (int i = 0; i < n; i++) y[(i + shift) % n] = own[i] * x[i];
    MPI_Reduce(y, sum, n, MPI_DOUBLE, MPI_SUM, 1, WORLD);
    for (int i = 0; rank() == 1 && i < n; i++) y[i] *= sum[i];
    free(own);
    free(sum);
}

static void reduced(int n, const double *x, double *y, MPI_Op op) {
    double *own = malloc(n * sizeof *own);
    for (int i = 0; i < n; i++) own[i] = exp(x[i]);
    MPI_Allreduce(own, y, n, MPI_DOUBLE, op, WORLD);
    for (int i = 0; i < n; i++) y[i] *= x[i];
    free(own);
}

void sums(int n, const double *x, double *y) { reduced(n, x, y, MPI_SUM); }

/* A product, a maximum and a minimum of the same numbers. */
void others(int n, const double *x, double *y) {
    double *most = malloc(n * sizeof *most), *least = malloc(n * sizeof *least);
    reduced(n, x, y, MPI_PROD);
    reduced(n, x, most, MPI_MAX);
    reduced(n, x, least, MPI_MIN);
    for (int i = 0; i < n; i++) y[i] += most[i] * least[i];
    free(most);
    free(least);
}

/* Numbers of two kinds in one reduction, which is complex and real. */
void kinds(int n, const double *x, double *y) {
    double _Complex *z = malloc(n * sizeof *z), *sum = malloc(n * sizeof *sum);
    for (int i = 0; i < n; i++) z[i] = x[i] + x[i] * x[i] * I;
    MPI_Allreduce(z, sum, n, MPI_C_DOUBLE_COMPLEX, MPI_SUM, WORLD);
    MPI_Allreduce(x, y, n, MPI_DOUBLE, MPI_MAX, WORLD);
    for (int i = 0; i < n; i++) y[i] = cimag(sum[i] * sum[i]) * x[i] + y[i] * x[i] * x[i];
    free(z);
    free(sum);
}

void in_place(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    MPI_Allreduce(MPI_IN_PLACE, y, n, MPI_DOUBLE, MPI_SUM, WORLD);
    MPI_Barrier(WORLD);
    if (rank() == 0)
        MPI_Reduce(MPI_IN_PLACE, y, n, MPI_DOUBLE, MPI_MAX, 0, WORLD);
    else
        MPI_Reduce(y, NULL, n, MPI_DOUBLE, MPI_MAX, 0, WORLD);
}

/* Everything to the root and back, squared there; then to all, in place. */
void gathered(int n, const double *x, double *y) {
    double *all = malloc(size() * n * sizeof *all);
    MPI_Gather(x, n, MPI_DOUBLE, all, n, MPI_DOUBLE, 1, WORLD);
    for (int i = 0; rank() == 1 && i < size() * n; i++) all[i] *= all[i];
    MPI_Scatter(all, n, MPI_DOUBLE, y, n, MPI_DOUBLE, 1, WORLD);
    for (int i = 0; i < n; i++) all[rank() * n + i] = y[i] * x[i];
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) y[i] = 0;
    for (int i = 0; i < size() * n; i++) y[i % n] += (rank() + 1) * all[i];
    MPI_Allgather(x, n, MPI_DOUBLE, all, n, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) y[i] *= all[(rank() + 1) % size() * n + i];
    free(all);
}

/* The first numbers of each, as many as its rank and one more. */
void uneven(int n, const double *x, double *y) {
    int counts[16], starts[16], total = 1;
    for (int i = 0; i < size(); i++) counts[i] = i + 1, starts[i] = total, total += i + 2;
    double *all = calloc(total, sizeof *all), *own = malloc(n * sizeof *own);
    MPI_Allgatherv(x, rank() + 1, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) y[i] = own[i] = x[i] * all[starts[size() - 1]];
    MPI_Gatherv(own, rank() + 1, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, 0, WORLD);
    for (int i = 0; rank() == 0 && i < total; i++) all[i] *= all[i];
    MPI_Scatterv(all, counts, starts, MPI_DOUBLE, y, rank() + 1, MPI_DOUBLE, 0, WORLD);
    free(all);
    free(own);
}

/* To each as many of the first numbers as its rank and one more, and what came, added up, to the one before. */
void exchanged(int n, const double *x, double *y) {
    int counts[16], starts[16], coming[16], places[16], total = 0;
    for (int i = 0; i < size(); i++) {
        counts[i] = i + 1, starts[i] = i % 2;
        coming[i] = rank() + 1, places[i] = total + i, total += rank() + 1;
    }
    double *all = calloc(total + size(), sizeof *all);
    MPI_Alltoallv(x, counts, starts, MPI_DOUBLE, all, coming, places, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < size() && i <= rank(); j++) sum += all[places[j] + i];
        y[i] = sum * sum + x[i];
    }
    free(all);
}

/* Sums over the processes up to this one and before it, and numbers by process. */
void prefixes(int n, const double *x, double *y) {
    double *squares = malloc(n * sizeof *squares), *before = calloc(n, sizeof *before);
    double out[16], in[16];
    for (int i = 0; i < n; i++) squares[i] = x[i] * x[i];
    MPI_Scan(squares, y, n, MPI_DOUBLE, MPI_SUM, WORLD);
    MPI_Exscan(squares, before, n, MPI_DOUBLE, MPI_SUM, WORLD);
    for (int i = 0; i < size(); i++) out[i] = x[i];
    MPI_Alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) y[i] = y[i] * x[i] + (rank() ? before[i] : 0) * in[size() - 1];
    free(squares);
    free(before);
}

/* Fails on the last process, after a message to it. */
int fails(int n, const double *x, double *y) {
    MPI_Allreduce(x, y, n, MPI_DOUBLE, MPI_SUM, WORLD);
    if (rank() + 1 == size()) return 7;
    MPI_Barrier(WORLD);
    return 0;
}

/* The first waits for a message that nobody sends. */
void stuck(int n, const double *x, double *y) {
    MPI_Allreduce(x, y, n, MPI_DOUBLE, MPI_SUM, WORLD);
    if (rank() == 0) MPI_Recv(y, n, MPI_DOUBLE, 1, 7, WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(WORLD);
}

/* To a process that is not there. */
void nowhere(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i];
    MPI_Send(y, n, MPI_DOUBLE, size() + 1, 7, WORLD);
}

/* Rows that take long each, and one loop in which each iteration sends a message. */
void rows(int n, const double *x, double *y) {
    int own = rank();
    double sum = 0, last;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 64; i++) {
        double s = x[i % n];
        for (int k = 0; k < 100000; k++) s = 0.5 * sin(s) + x[i % n];
        sum += s;
    }
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        MPI_Sendrecv(&x[i], 1, MPI_DOUBLE, own, i, &last, 1, MPI_DOUBLE, own, i, WORLD, MPI_STATUS_IGNORE);
        y[i] = sum * last;
    }
}

void bytes(int n, const double *x, double *y) {
    MPI_Allreduce(x, y, n, MPI_DOUBLE, MPI_SUM, WORLD);
    MPI_Bcast(y, 8 * n, MPI_BYTE, 0, WORLD);
}

void one_sided(int n, const double *x, double *y) {
    MPI_Win window;
    for (int i = 0; i < n; i++) y[i] = x[i];
    MPI_Win_create(y, 8 * n, 8, MPI_INFO_NULL, WORLD, &window);
    MPI_Win_free(&window);
}

/* To the right: the numbers 0, 2 and 3 of a record whose datatypes stand in an array, freed before they arrive. What
   Alltoallv brings from the left; where it brings nothing the displacements are anything. */
void records(int n, const double *x, double *y) {
    int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size(), lengths[2] = {1, 2};
    MPI_Aint starts[2] = {0, 16};
    MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_DOUBLE}, record;
    MPI_Type_create_struct(2, lengths, starts, parts, &record);
    MPI_Type_commit(&record);
    double *squares = malloc(n * sizeof *squares), *got = malloc(n * sizeof *got);
    for (int i = 0; i < n; i++) squares[i] = x[i] * x[i], got[i] = x[i];
    MPI_Request requests[2];
    MPI_Irecv(got, 1, record, left, 0, WORLD, &requests[0]);
    MPI_Isend(squares, 1, record, right, 0, WORLD, &requests[1]);
    MPI_Type_free(&record);
    int out[8], in[8], from[8], to[8];
    for (int p = 0; p < size(); p++) out[p] = in[p] = 0, from[p] = to[p] = 1 << 30;
    out[right] = in[left] = n, from[right] = to[left] = 0;
    MPI_Alltoallv(x, out, from, MPI_DOUBLE, y, in, to, MPI_DOUBLE, WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) y[i] *= got[i];
    free(squares);
    free(got);
}

/* The first process works on what all have: its own part stays in place. */
void by_the_first(int n, const double *x, double *y) {
    double *all = calloc(n * size(), sizeof *all);
    for (int i = 0; i < n; i++) all[i] = x[i] * x[i];
    if (rank() == 0) {
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_DOUBLE, 0, WORLD);
        for (int i = 0; i < n * size(); i++) all[i] *= x[i % n];
        MPI_Scatter(all, n, MPI_DOUBLE, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, WORLD);
    } else {
        MPI_Gather(all, n, MPI_DOUBLE, NULL, 0, MPI_DOUBLE, 0, WORLD);
        MPI_Scatter(NULL, 0, MPI_DOUBLE, all, n, MPI_DOUBLE, 0, WORLD);
    }
    for (int i = 0; i < n; i++) y[i] = all[i] * x[i];
    free(all);
}
