// Collective operations of MPI: `collectives SECONDS` on all ranks prints `R <operation> <bytes> <ns>`, the time of one operation at
// the slowest rank, the median of a few batches. Like `mizzen bench collectives`: batches of about 20 ms, the root of a broadcast
// changes with every operation, sums are checked. After so many seconds it begins nothing more: some libraries take a second for one
// operation when ranks are more than cores.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5, MOST = 1 << 20 };
static const double TRIAL = 4e-3, BATCH = 20e-3;

static int rank, size;
static double begun, limit;
static double *data;

enum operation { BARRIER, BROADCAST, ALL_REDUCE };
static const char *const names[] = {"barrier", "broadcast", "all_reduce"};

static void perform(enum operation operation, int count, int round) {
    switch (operation) {
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case BROADCAST:
        MPI_Bcast(data, count, MPI_DOUBLE, round % size, MPI_COMM_WORLD);
        break;
    case ALL_REDUCE:
        MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    }
}

// What the first rank says, so that all do the same.
static double agree(double value) {
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return value;
}

// Seconds of so many rounds, at the slowest rank.
static double batch(enum operation operation, int count, int rounds) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++)
        perform(operation, count, round);
    double took = MPI_Wtime() - start, slowest;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int is_late(void) {
    return agree(MPI_Wtime() - begun > limit) > 0;
}

static int compare(const void *one, const void *two) {
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
}

static void check(enum operation operation, int count) {
    for (int at = 0; at < count; at++)
        data[at] = rank + 1;
    perform(operation, count, 0);
    double expected = operation == BROADCAST ? 1 : size * (size + 1) / 2;
    if (count > 0 && data[count - 1] != expected) {
        fprintf(stderr, "%s came to %f instead of %f\n", names[operation], data[count - 1], expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(data, 0, MOST);
}

static void measure(enum operation operation, int bytes) {
    int count = bytes / (int)sizeof *data, rounds = 1, batches = 0;
    if (is_late())
        return;
    check(operation, count);
    double took = batch(operation, count, rounds), each[BATCHES];
    while (took < TRIAL) {
        rounds *= 3;
        took = batch(operation, count, rounds);
    }
    each[batches++] = took / rounds;
    int wanted = (int)(rounds * BATCH / took);
    rounds = wanted > 1 ? wanted : 1;
    // The first batch was for warming up, unless there is no time for more.
    if (took < limit / 50)
        batches = 0;
    while (batches < BATCHES && !is_late())
        each[batches++] = batch(operation, count, rounds) / rounds;
    if (batches == 0)
        return;
    qsort(each, batches, sizeof *each, compare);
    if (rank == 0) {
        printf("R %s %d %.1f\n", names[operation], bytes, each[batches / 2] * 1e9);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    static const int sizes[] = {8, 64 << 10, 1 << 20};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    begun = MPI_Wtime();
    limit = argc > 1 ? atof(argv[1]) : 8;
    data = calloc(1, MOST);
    measure(BARRIER, 0);
    for (int at = 0; at < 3; at++) {
        measure(BROADCAST, sizes[at]);
        measure(ALL_REDUCE, sizes[at]);
    }
    MPI_Finalize();
    return 0;
}
