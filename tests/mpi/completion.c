/* Kernels of processes: requests in all ways to wait for them, results in parts and in place, communicators. */
#include <math.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
#define MOST 16

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

static int left(void) { return (rank() + size() - 1) % size(); }
static int right(void) { return (rank() + 1) % size(); }

/* What both neighbours have, in the order in which it comes; what is sent is asked for until it is gone. */
void asked(int n, const double *x, double *y) {
    double in[2][MOST], last[MOST];
    MPI_Request came[2], sent[3];
    int gone = 0, at, there = 0, count, many, places[2];
    MPI_Status status;
    for (int i = 0; i < n; i++) y[i] = 0;
    MPI_Irecv(in[0], n, MPI_DOUBLE, left(), 1, WORLD, &came[0]);
    MPI_Irecv(in[1], n, MPI_DOUBLE, right(), 2, WORLD, &came[1]);
    MPI_Isend(x, n, MPI_DOUBLE, right(), 1, WORLD, &sent[0]);
    MPI_Issend(x, n, MPI_DOUBLE, left(), 2, WORLD, &sent[1]);
    MPI_Waitany(2, came, &at, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) y[i] += (at + 1) * in[at][i] * in[at][i];
    for (many = 0; !many;) MPI_Testsome(2, came, &many, places, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) y[i] += (places[0] + 1) * in[places[0]][i] * in[places[0]][i];
    MPI_Isend(y, n, MPI_DOUBLE, right(), 3, WORLD, &sent[2]);
    while (!there) MPI_Iprobe(MPI_ANY_SOURCE, 3, WORLD, &there, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    MPI_Recv(last, count, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, WORLD, MPI_STATUS_IGNORE);
    while (!gone) MPI_Testall(3, sent, &gone, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) y[i] = y[i] * x[i] + last[i] * last[i];
}

/* Prefixes by other operations than the sum, and what is reduced, a number for each process. */
void parts(int n, const double *x, double *y) {
    double most[MOST], before[MOST], own[MOST], last[MOST];
    int counts[MOST];
    for (int i = 0; i < n; i++) most[i] = x[i] * x[i], before[i] = own[i] = x[i];
    for (int i = 0; i < size(); i++) counts[i] = 1;
    MPI_Scan(MPI_IN_PLACE, most, n, MPI_DOUBLE, MPI_MAX, WORLD);
    MPI_Exscan(MPI_IN_PLACE, before, n, MPI_DOUBLE, MPI_PROD, WORLD);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, own, 1, MPI_DOUBLE, MPI_PROD, WORLD);
    MPI_Reduce_scatter(x, last, counts, MPI_DOUBLE, MPI_SUM, WORLD);
    for (int i = 0; i < n; i++) y[i] = most[i] * x[i] + (rank() ? before[i] : 1) * own[0] + last[0] * last[0];
}

/* Blocks that stay where they are: all to all, and to the last process and back, where they are squared. */
void blocks(int n, const double *x, double *y) {
    int counts[MOST], starts[MOST], total = 0;
    for (int i = 0; i < size(); i++) counts[i] = i + 1, starts[i] = total, total += i + 2;
    double *all = calloc(total, sizeof *all), *own = all + starts[rank()], turned[MOST];
    for (int i = 0; i <= rank(); i++) own[i] = x[i];
    if (rank() + 1 == size()) {
        MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, starts, MPI_DOUBLE, rank(), WORLD);
        for (int i = 0; i < total; i++) all[i] *= all[i];
        MPI_Scatterv(all, counts, starts, MPI_DOUBLE, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, rank(), WORLD);
    } else {
        MPI_Gatherv(own, rank() + 1, MPI_DOUBLE, NULL, NULL, NULL, MPI_DOUBLE, size() - 1, WORLD);
        MPI_Scatterv(NULL, NULL, NULL, MPI_DOUBLE, own, rank() + 1, MPI_DOUBLE, size() - 1, WORLD);
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, starts, MPI_DOUBLE, WORLD);
    for (int i = 0; i < size(); i++) turned[i] = x[i];
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, turned, 1, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) y[i] = x[i] * all[starts[size() - 1] + i % size()] * turned[i % size()];
    free(all);
}

/* In an order turned round, where the last process is the first, and on a ring of its own; both are freed. */
void rings(int n, const double *x, double *y) {
    int from, to, periodic = 1, processes = size();
    double in[MOST];
    MPI_Comm turned, ring;
    MPI_Comm_split(WORLD, 0, -rank(), &turned);
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    MPI_Bcast(y, n, MPI_DOUBLE, 0, turned);
    MPI_Cart_create(turned, 1, &processes, &periodic, 0, &ring);
    MPI_Cart_shift(ring, 0, 1, &from, &to);
    MPI_Sendrecv(x, n, MPI_DOUBLE, to, 0, in, n, MPI_DOUBLE, from, 0, ring, MPI_STATUS_IGNORE);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&turned);
    for (int i = 0; i < n; i++) y[i] *= in[i] * x[i];
}

/* A column goes on, three times, by requests that are made once; it is freed before. Of plain numbers a datatype that is
   none lies beside those in place. */
void columns_again(int n, const double *x, double *y) {
    double u[MOST][4], firsts[MOST];
    int at, count;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Datatype column;
    MPI_Type_vector(n, 1, 4, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Recv_init(&u[0][0], 1, column, left(), 1, WORLD, &requests[0]);
    MPI_Send_init(&u[0][2], 1, column, right(), 1, WORLD, &requests[1]);
    for (int i = 0; i < n; i++) u[i][0] = 0, u[i][2] = x[i] * x[i], y[i] = x[i];
    for (int t = 0; t < 3; t++) {
        MPI_Startall(2, requests);
        MPI_Wait(&requests[0], &status);
        MPI_Get_count(&status, column, &count);
        MPI_Waitany(2, requests, &at, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) y[i] += at * count * u[i][0] * u[i][0] * x[i], u[i][2] = u[i][0] * x[i];
    }
    for (int i = 0; i < 2; i++) MPI_Request_free(&requests[i]);
    MPI_Sendrecv_replace(&u[0][2], 1, column, right(), 3, left(), 3, WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&column);
    firsts[rank()] = x[0];
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, firsts, 1, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) y[i] = y[i] * u[i][2] + firsts[size() - 1];
}

/* Calls of all processes that are begun, several at a time, with a message between. */
void begun(int n, const double *x, double *y) {
    double squares[MOST], first[MOST], sum[MOST], own[MOST], turned[MOST], in[MOST], part;
    double *all = malloc(size() * n * sizeof *all), *last = malloc(size() * n * sizeof *last);
    MPI_Request requests[5];
    for (int i = 0; i < n; i++) squares[i] = x[i] * x[i], first[i] = last[rank() * n + i] = x[i];
    MPI_Iallreduce(MPI_IN_PLACE, squares, n, MPI_DOUBLE, MPI_SUM, WORLD, &requests[0]);
    MPI_Ibcast(first, n, MPI_DOUBLE, 0, WORLD, &requests[1]);
    MPI_Igather(x, n, MPI_DOUBLE, all, n, MPI_DOUBLE, 1, WORLD, &requests[2]);
    MPI_Ireduce(x, sum, n, MPI_DOUBLE, MPI_SUM, 0, WORLD, &requests[3]);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, last, n, MPI_DOUBLE, WORLD, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; rank() == 1 && i < size() * n; i++) all[i] *= all[i];
    MPI_Iscatter(all, n, MPI_DOUBLE, own, n, MPI_DOUBLE, 1, WORLD, &requests[0]);
    MPI_Ialltoall(x, 1, MPI_DOUBLE, turned, 1, MPI_DOUBLE, WORLD, &requests[1]);
    MPI_Ireduce_scatter_block(x, &part, 1, MPI_DOUBLE, MPI_SUM, WORLD, &requests[2]);
    MPI_Sendrecv(x, n, MPI_DOUBLE, right(), 0, in, n, MPI_DOUBLE, left(), 0, WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) {
        y[i] = squares[i] * first[i] * own[i] + turned[i % size()] * part * in[i] * last[(size() - 1) * n + i];
        if (rank() == 0) y[i] += sum[i];
    }
    free(all);
    free(last);
}

/* Begun on all, and waited for before another one on some, behind it on others. */
void crossed(int n, const double *x, double *y) {
    double most, sum;
    MPI_Request request;
    MPI_Iallreduce(x, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD, &request);
    if (rank()) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(x, &most, 1, MPI_DOUBLE, MPI_MAX, WORLD);
    if (!rank()) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) y[i] = x[i] * sum * most;
}

/* Collective calls that are begun, of blocks of several lengths, with gaps between them. */
void begun_parts(int n, const double *x, double *y) {
    int p = size(), r = rank(), counts[MOST], starts[MOST], same[MOST], turn[MOST];
    double all[MOST], some[MOST], at_root[MOST], got[MOST], wide[MOST], part[MOST], sum[MOST];
    MPI_Request begun[6];
    for (int k = 0; k < p; k++) counts[k] = k + 1, starts[k] = 4 * k, same[k] = r + 1, turn[k] = k;
    for (int i = 0; i < MOST; i++) all[i] = some[i] = at_root[i] = got[i] = part[i] = sum[i] = 0, wide[i] = x[i % n];
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    for (int i = 0; i <= r; i++) some[starts[r] + i] = x[i];
    MPI_Iallgatherv(y, r + 1, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, WORLD, &begun[0]);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, some, counts, starts, MPI_DOUBLE, WORLD, &begun[1]);
    MPI_Igatherv(x, r + 1, MPI_DOUBLE, at_root, counts, starts, MPI_DOUBLE, p - 1, WORLD, &begun[2]);
    MPI_Ialltoallv(x, same, turn, MPI_DOUBLE, got, counts, starts, MPI_DOUBLE, WORLD, &begun[3]);
    MPI_Ireduce_scatter(wide, sum, counts, MPI_DOUBLE, MPI_SUM, WORLD, &begun[4]);
    MPI_Waitall(5, begun, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MOST; i++) at_root[i] *= x[0];
    MPI_Iscatterv(at_root, counts, starts, MPI_DOUBLE, part, r + 1, MPI_DOUBLE, p - 1, WORLD, &begun[5]);
    MPI_Wait(&begun[5], MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) y[i] = part[i] * part[i] + sum[i] * sum[i];
    for (int k = 0; k < p; k++)
        for (int i = 0; i <= k; i++) y[i] += x[i] * (all[starts[k] + i] + got[starts[k] + i]) + some[starts[k] + i];
}

/* The greatest of all processes, and who has it; of equal ones the one with the least place. */
void located(int n, const double *x, double *y) {
    struct located {
        double value;
        int place;
    } own[MOST], best[MOST];
    for (int i = 0; i < n; i++) own[i].value = x[i] * x[i], own[i].place = 10 * (rank() + 1);
    own[n - 1].value = 2, own[n - 1].place = 10 * (size() - rank());
    MPI_Allreduce(own, best, n, MPI_DOUBLE_INT, MPI_MAXLOC, WORLD);
    for (int i = 0; i < n; i++) y[i] = best[i].value * x[i] * best[i].place;
    MPI_Reduce(rank() ? own : MPI_IN_PLACE, own, n, MPI_DOUBLE_INT, MPI_MINLOC, 0, WORLD);
    if (rank() == 0)
        for (int i = 0; i < n; i++) y[i] += own[i].value * x[i] * own[i].place;
}

void located_before(int n, const double *x, double *y) {
    struct located {
        double value;
        int place;
    } own[MOST], most[MOST], least[MOST];
    for (int i = 0; i < n; i++) {
        own[i].value = x[i] * x[i], own[i].place = rank() + 1;
        least[i].value = 0;
    }
    MPI_Scan(own, most, n, MPI_DOUBLE_INT, MPI_MAXLOC, WORLD);
    MPI_Exscan(own, least, n, MPI_DOUBLE_INT, MPI_MINLOC, WORLD);
    for (int i = 0; i < n; i++) y[i] = most[i].value * most[i].place + least[i].value * x[i];
}

/* The columns of a matrix, one of each process; squared by the first they go to the processes in the opposite order,
   and what these make of them comes back so. Pairs of numbers, behind one, from each to each. */
void tiles(int n, const double *x, double *y) {
    int p = size(), ones[MOST], back[MOST], whole[2] = {n, p}, part[2] = {n, 1}, first[2] = {0, 0}, two[2] = {1, 1};
    double all[4 * MOST], gathered[4 * MOST], column[MOST], out[4 * MOST], in[4 * MOST];
    MPI_Aint words[2] = {8, 16}, low, extent;
    MPI_Datatype line, tile, pair;
    for (int k = 0; k < p; k++) ones[k] = 1, back[k] = p - 1 - k;
    MPI_Type_create_subarray(2, whole, part, first, MPI_ORDER_C, MPI_DOUBLE, &line);
    MPI_Type_create_resized(line, 0, 8, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_create_hindexed(2, two, words, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_get_extent(pair, &low, &extent);
    MPI_Allgather(x, n, MPI_DOUBLE, all, 1, tile, WORLD);
    for (int i = 0; i < 2 * p; i++) out[i + 1] = all[i] * x[0], in[i + 1] = 0;
    MPI_Alltoall(out, 1, pair, in, 1, pair, WORLD);
    for (int i = 0; i < n * p; i++) all[i] *= all[i], gathered[i] = 0;
    MPI_Scatterv(all, ones, back, tile, column, n, MPI_DOUBLE, 0, WORLD);
    for (int i = 0; i < n; i++) y[i] = column[i] * x[i] + in[i % (2 * p) + 1] * (low + extent);
    MPI_Gatherv(y, n, MPI_DOUBLE, gathered, ones, back, tile, 0, WORLD);
    if (rank() == 0)
        for (int i = 0; i < n; i++) y[i] += gathered[i * p];
    MPI_Type_free(&line);
    MPI_Type_free(&tile);
    MPI_Type_free(&pair);
}

static void passed_by_a_file(int n, const double *out, double *in) {
    char name[64];
    int id = getpid();
    MPI_File file;
    MPI_Bcast(&id, 1, MPI_INT, 0, WORLD);
    snprintf(name, sizeof name, "/tmp/jax_enzyme_mpi_%d", id);
    MPI_File_open(WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 8 * n * rank(), out, n, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(WORLD);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, 8 * n * left(), in, n, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Numbers that no derivative depends on may go by a file; others are refused. */
void filed(int n, const double *x, double *y) {
    double own[MOST], weight[MOST];
    for (int i = 0; i < n; i++) own[i] = 10 * rank() + i;
    passed_by_a_file(n, own, weight);
    for (int i = 0; i < n; i++) y[i] = weight[i] * x[i] * x[i];
}
void written(int n, const double *x, double *y) { passed_by_a_file(n, x, y); }

/* The second process is late, so that the first one waits for it in reverse. */
void late(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i];
    if (rank() == 0) MPI_Send(x, n, MPI_DOUBLE, 1, 4, WORLD);
    if (rank() == 1) {
        MPI_Recv(y, n, MPI_DOUBLE, 0, 4, WORLD, MPI_STATUS_IGNORE);
        usleep(500000);
    }
    for (int i = 0; i < n; i++) y[i] *= y[i];
}

/* On a line, whose ends keep what they had, and on a graph with two edges to the next process and one to itself. */
void neighbours(int n, const double *x, double *y) {
    int p = size(), whole = 0, to[3] = {right(), right(), rank()}, from[3] = {left(), left(), rank()};
    int lengths[3] = {2, 1, 1}, out[3] = {0, 1, 3}, in[3] = {2, 0, 1};
    double own = x[0] * x[0], both[2] = {x[1], x[2]}, came[4];
    MPI_Comm line, graph;
    MPI_Cart_create(WORLD, 1, &p, &whole, 0, &line);
    MPI_Neighbor_allgather(&own, 1, MPI_DOUBLE, both, 1, MPI_DOUBLE, line);
    MPI_Comm_free(&line);
    MPI_Dist_graph_create_adjacent(WORLD, 3, from, MPI_UNWEIGHTED, 3, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_alltoallv(x, lengths, out, MPI_DOUBLE, came, lengths, in, MPI_DOUBLE, graph);
    MPI_Comm_free(&graph);
    for (int i = 0; i < n; i++) y[i] = x[i] * both[i % 2] + came[i % 4] * x[4];
}

static void follow(void *first, void *second, int *count, MPI_Datatype *type) {
    double *before = first, *after = second;
    (void)type;
    for (int i = 0; i < 2 * *count; i += 2) {
        after[i + 1] += after[i] * before[i + 1];
        after[i] *= before[i];
    }
}
static void hypotenuse(void *in, void *in_out, int *count, MPI_Datatype *type) {
    double *one = in, *other = in_out;
    if (*type == MPI_DOUBLE)
        for (int i = 0; i < *count; i++) other[i] = sqrt(one[i] * one[i] + other[i] * other[i]);
}
static void reduced(double *x, int n, MPI_Op op) { MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, op, WORLD); }
/* By operations of its own: two affine maps each, in the order of processes, and a norm, of a part for each. And a sum
   in the same way. */
void combined(int n, const double *x, double *y) {
    double upto[4], norms[MOST], own, sum = x[0];
    MPI_Op order, norm;
    MPI_Datatype map;
    MPI_Type_contiguous(2, MPI_DOUBLE, &map);
    MPI_Type_commit(&map);
    MPI_Op_create(follow, 0, &order);
    MPI_Op_create(hypotenuse, 1, &norm);
    MPI_Scan(x, upto, 2, map, order, WORLD);
    for (int i = 0; i < size(); i++) norms[i] = x[i % n];
    MPI_Reduce_scatter_block(norms, &own, 1, MPI_DOUBLE, norm, WORLD);
    reduced(norms, 1, norm);
    reduced(&sum, 1, MPI_SUM);
    MPI_Op_free(&order);
    MPI_Op_free(&norm);
    MPI_Type_free(&map);
    for (int i = 0; i < n; i++) y[i] = x[i] * upto[i % 4] + norms[0] * own * x[i] + sum * x[i];
}

/* By way of a buffer, all send before any receives. Then blocks of a datatype each: of numbers apart for every other
   process. */
void buffered(int n, const double *x, double *y) {
    int p = size(), bytes = 2 * (8 * n + MPI_BSEND_OVERHEAD), ones[MOST], twos[MOST], out[MOST], in[MOST];
    double came[MOST], sums[2] = {0, 0};
    void *room = malloc(bytes);
    MPI_Datatype apart, given[MOST], taken[MOST];
    MPI_Buffer_attach(room, bytes);
    MPI_Bsend(x, n, MPI_DOUBLE, right(), 3, WORLD);
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    MPI_Bsend(y, n, MPI_DOUBLE, right(), 3, WORLD);
    MPI_Recv(came, n, MPI_DOUBLE, left(), 3, WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(y, n, MPI_DOUBLE, left(), 3, WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&room, &bytes);
    free(room);
    for (int i = 0; i < n; i++) y[i] *= came[i];
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &apart);
    MPI_Type_commit(&apart);
    for (int q = 0; q < p; q++) {
        given[q] = q % 2 ? apart : MPI_DOUBLE, ones[q] = q % 2 ? 1 : 2, out[q] = 8 * (q % 2);
        taken[q] = MPI_DOUBLE, twos[q] = 2, in[q] = 16 * q;
    }
    MPI_Alltoallw(x, ones, out, given, came, twos, in, taken, WORLD);
    MPI_Type_free(&apart);
    for (int q = 0; q < 2 * p; q++) sums[q % 2] += came[q];
    for (int i = 0; i < n; i++) y[i] += sums[0] * sums[1] * x[i];
}

/* Integers beside numbers: in structures, and in what is packed, whose length its receiver asks for. Then calls of all
   processes that are made once and begun again. */
void mixed(int n, const double *x, double *y) {
    struct item {
        double value;
        int place;
        long serial;
        short sign;
    } own[MOST], came[MOST];
    int lengths[] = {1, 1, 1, 1}, bytes, at = 0, count, where;
    MPI_Aint starts[] = {offsetof(struct item, value), offsetof(struct item, place), offsetof(struct item, serial),
                         offsetof(struct item, sign)};
    MPI_Datatype kinds[] = {MPI_DOUBLE, MPI_INT, MPI_LONG, MPI_SHORT}, bare, type;
    MPI_Request again[2];
    MPI_Status status;
    double total = 0, first[MOST];
    MPI_Type_create_struct(4, lengths, starts, kinds, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(struct item), &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < n; i++) own[i] = (struct item){x[i] * x[i], n - 1 - i, -((1L << 40) + i), i % 2 ? -1 : 1};
    MPI_Sendrecv(own, n, type, right(), 3, came, n, type, left(), 3, WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) y[came[i].place] = came[i].value * came[i].sign * (-came[i].serial - (1L << 40) + 1);
    MPI_Type_free(&type);
    MPI_Type_free(&bare);

    MPI_Pack_size(n, MPI_DOUBLE, WORLD, &bytes);
    MPI_Pack_size(1, MPI_INT, WORLD, &count);
    char *out = malloc(bytes + count), *in;
    int two = -2;
    MPI_Pack(&two, 1, MPI_INT, out, bytes + count, &at, WORLD);
    MPI_Pack(y, n, MPI_DOUBLE, out, bytes + count, &at, WORLD);
    MPI_Isend(out, at, MPI_PACKED, left(), 4, WORLD, again);
    MPI_Probe(right(), 4, WORLD, &status);
    MPI_Get_count(&status, MPI_PACKED, &count);
    in = malloc(count);
    MPI_Recv(in, count, MPI_PACKED, right(), 4, WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(again, MPI_STATUS_IGNORE);
    at = 0;
    MPI_Unpack(in, count, &at, &where, 1, MPI_INT, WORLD);
    MPI_Unpack(in, count, &at, y, n, MPI_DOUBLE, WORLD);
    for (int i = 0; i < n; i++) y[i] *= where;
    free(out);
    free(in);

    MPI_Allreduce_init(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_SUM, WORLD, MPI_INFO_NULL, &again[0]);
    MPI_Bcast_init(first, n, MPI_DOUBLE, 0, WORLD, MPI_INFO_NULL, &again[1]);
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < n; i++) total += y[i], first[i] = x[i];
        total /= step ? size() : 1;
        MPI_Startall(2, again);
        MPI_Waitall(2, again, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++) y[i] = 0.1 * total * x[i] + first[i] * y[i];
    }
    MPI_Request_free(&again[0]);
    MPI_Request_free(&again[1]);
}
