// Laplace's equation on a heated plate over MPI: what examples/laplace does over Mizzen, cell by cell the same.
//
//   laplace SIZE ITERATIONS CHECK_EVERY OMEGA THREADS
//
// Rows are divided among all threads of all processes. The threads of a process share its plate and say how far they are by
// counters; processes exchange their border rows with MPI_Isend and MPI_Irecv. Red and black cells are in arrays of their own,
// and rows are computed in the order that examples/laplace/schedule.rs explains, so that what is sent travels meanwhile.
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RED, BLACK, COLOURS };
enum { LANES = 4, MAX_THREADS = 64, SPINS = 2000 };

static long size, half, first_row;  // first_row: the plate's number of this process's halo above
static double omega, *plate[COLOURS];
static int rank, ranks, threads;

// How many iterations of a colour's border rows each thread has done. Each has a cache line.
static struct {
    _Alignas(64) atomic_long done[COLOURS];
} progress[MAX_THREADS];

static void fail(const char *sentence) {
    fprintf(stderr, "laplace: %s\n", sentence);
    exit(1);
}

// The plate: see examples/laplace/plate.rs.
static double bumps(double count, double along) {
    double turn = count * along, part = turn - floor(turn);
    return 16.0 * (part * (1.0 - part)) * (part * (1.0 - part));
}

static double temperature(long row, long column) {
    long end = size + 1;
    if (row == 0) return 100.0 * bumps(1.0, (double)column / (double)end);
    if (column == 0) return 60.0 * bumps(2.0, (double)row / (double)end);
    if (column == end) return 80.0 * bumps(3.0, (double)row / (double)end);
    if (row == end) return 40.0 * bumps(1.0, (double)column / (double)end);
    return 20.0;
}

static double *line(int colour, long row) { return plate[colour] + row * half; }

static double *cell(long row, long column) { return line((first_row + row + column) % 2, row) + column / 2; }

// The order of the sums is part of the result.
static inline double relaxed(double cell, double vertical, double horizontal) {
    return cell + omega * (0.25 * (vertical + horizontal) - cell);
}

static void relax_line(double *restrict cells, const double *restrict above, const double *restrict below,
                       const double *restrict same, long count) {
    for (long i = 0; i < count; i++) cells[i] = relaxed(cells[i], above[i] + below[i], same[i] + same[i + 1]);
}

static double relax_line_measured(double *restrict cells, const double *restrict above, const double *restrict below,
                                  const double *restrict same, long count) {
    double largest[LANES] = {0};
    long i = 0;
    for (; i + LANES <= count; i += LANES)
        for (long lane = 0; lane < LANES; lane++) {
            long at = i + lane;
            double new = relaxed(cells[at], above[at] + below[at], same[at] + same[at + 1]);
            double change = fabs(new - cells[at]);
            largest[lane] = change > largest[lane] ? change : largest[lane];
            cells[at] = new;
        }
    for (; i < count; i++) {
        double new = relaxed(cells[i], above[i] + below[i], same[i] + same[i + 1]);
        double change = fabs(new - cells[i]);
        largest[0] = change > largest[0] ? change : largest[0];
        cells[i] = new;
    }
    for (int lane = 1; lane < LANES; lane++) largest[0] = fmax(largest[0], largest[lane]);
    return largest[0];
}

// One colour of one row; the largest change goes into `largest` if that is asked for.
static void relax(int colour, long row, double *largest) {
    long shift = (first_row + row + colour) % 2, first = 1 - shift, count = (size + shift) / 2;
    double *cells = line(colour, row) + first, *same = line(1 - colour, row);
    double *above = line(1 - colour, row - 1) + first, *below = line(1 - colour, row + 1) + first;
    if (!largest)
        relax_line(cells, above, below, same, count);
    else
        *largest = fmax(*largest, relax_line_measured(cells, above, below, same, count));
}

// A thread's rows of its process's, and its requests: red and black, sent and received, above and below.
struct worker {
    int thread;
    long first, last;
    MPI_Request sent[COLOURS][2], received[COLOURS][2];
};

static int has_rank_above(struct worker *w) { return w->thread == 0 && rank > 0; }
static int has_rank_below(struct worker *w) { return w->thread == threads - 1 && rank < ranks - 1; }

// Says that the border rows of this colour are done, and sends them to other processes. What was sent from there before has long
// been received.
static void send_borders(struct worker *w, int colour) {
    MPI_Waitall(2, w->sent[colour], MPI_STATUSES_IGNORE);
    if (has_rank_above(w))
        MPI_Isend(line(colour, w->first), half, MPI_DOUBLE, rank - 1, colour, MPI_COMM_WORLD, &w->sent[colour][0]);
    if (has_rank_below(w))
        MPI_Isend(line(colour, w->last), half, MPI_DOUBLE, rank + 1, colour, MPI_COMM_WORLD, &w->sent[colour][1]);
    if (threads > 1) atomic_fetch_add_explicit(&progress[w->thread].done[colour], 1, memory_order_release);
}

// Halos of this colour may be written from now on.
static void expect_halos(struct worker *w, int colour) {
    if (has_rank_above(w))
        MPI_Irecv(line(colour, w->first - 1), half, MPI_DOUBLE, rank - 1, colour, MPI_COMM_WORLD, &w->received[colour][0]);
    if (has_rank_below(w))
        MPI_Irecv(line(colour, w->last + 1), half, MPI_DOUBLE, rank + 1, colour, MPI_COMM_WORLD, &w->received[colour][1]);
}

static void wait_for_thread(int thread, int colour, long turns) {
    if (thread < 0 || thread >= threads) return;
    for (long spins = 0; atomic_load_explicit(&progress[thread].done[colour], memory_order_acquire) < turns; spins++)
        if (spins > SPINS) sched_yield();
}

static void wait_for_halos(struct worker *w, int colour, long turns) {
    if (threads > 1) {
        wait_for_thread(w->thread - 1, colour, turns);
        wait_for_thread(w->thread + 1, colour, turns);
    }
    MPI_Waitall(2, w->received[colour], MPI_STATUSES_IGNORE);
}

static void relax_borders(struct worker *w, int colour, double *largest) {
    relax(colour, w->first, largest);
    if (w->last > w->first) relax(colour, w->last, largest);
}

// Rows `from` to `to` - 1 of the wave: red of a row, then black of the row above it.
static void wave(struct worker *w, long from, long to, double *largest) {
    for (long row = from; row < to; row++) {
        if (row < w->last - 1) relax(RED, row, largest);
        if (row > w->first + 1) relax(BLACK, row - 1, largest);
    }
}

static void iterate(struct worker *w, long iteration, double *largest) {
    long middle = w->first + 1 + (w->last - w->first) / 2;
    wait_for_halos(w, BLACK, iteration);
    expect_halos(w, RED);
    relax_borders(w, RED, largest);
    send_borders(w, RED);
    if (w->last > w->first + 1) relax(RED, w->last - 1, largest);
    wave(w, w->first + 1, middle, largest);
    wait_for_halos(w, RED, iteration);
    expect_halos(w, BLACK);
    relax_borders(w, BLACK, largest);
    send_borders(w, BLACK);
    wave(w, middle, w->last + 1, largest);
}

// The largest change of all threads of all processes.
static double agree(double largest, double *of_threads, int thread) {
    of_threads[thread * 8] = largest;
#pragma omp barrier
#pragma omp master
    {
        for (int other = 1; other < threads; other++) of_threads[0] = fmax(of_threads[0], of_threads[other * 8]);
        MPI_Allreduce(MPI_IN_PLACE, of_threads, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
#pragma omp barrier
    double agreed = of_threads[0];
#pragma omp barrier
    return agreed;
}

static uint64_t fingerprint(long rows) {
    uint64_t sum = 0, bits;
    for (long row = 1; row <= rows; row++)
        for (long column = 1; column <= size; column++) {
            memcpy(&bits, cell(row, column), sizeof bits);
            sum += bits * (2 * (uint64_t)((first_row + row) * (size + 2) + column) + 1);
        }
    return sum;
}

int main(int count, char **words) {
    int provided;
    threads = count == 6 ? atoi(words[5]) : 0;
    MPI_Init_thread(&count, &words, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 6) fail("give SIZE ITERATIONS CHECK_EVERY OMEGA THREADS");
    long iterations = atol(words[2]), check_every = atol(words[3]);
    size = atol(words[1]);
    omega = atof(words[4]);
    if (threads < 1 || threads > MAX_THREADS || iterations < 1 || check_every < 1) fail("a number is out of bounds");
    if ((long)ranks * threads > size) fail("there are more threads than rows");
    if (threads > 1 && provided < MPI_THREAD_MULTIPLE) fail("this MPI does not let several threads communicate");

    first_row = rank * size / ranks;
    half = (size + 3) / 2;
    long rows = (rank + 1) * size / ranks - first_row;
    for (int colour = 0; colour < COLOURS; colour++) plate[colour] = malloc((rows + 2) * half * sizeof(double));
    if (!plate[RED] || !plate[BLACK]) fail("there is not enough memory");

    double changes[MAX_THREADS * 8], last_change = 0, seconds = 0;
#pragma omp parallel num_threads(threads)
    {
        int thread = omp_get_thread_num();
        struct worker w = {.thread = thread};
        // As the shares of examples/laplace: of all rows among all threads.
        w.first = ((long)rank * threads + thread) * size / ((long)ranks * threads) - first_row + 1;
        w.last = ((long)rank * threads + thread + 1) * size / ((long)ranks * threads) - first_row;
        for (int colour = 0; colour < COLOURS; colour++)
            for (int side = 0; side < 2; side++) w.sent[colour][side] = w.received[colour][side] = MPI_REQUEST_NULL;
        // Each thread touches its rows first.
        long from = thread == 0 ? 0 : w.first, to = thread == threads - 1 ? w.last + 1 : w.last;
        for (long row = from; row <= to; row++)
            for (long column = 0; column < size + 2; column++) *cell(row, column) = temperature(first_row + row, column);
        agree(0, changes, thread);

        double started = MPI_Wtime(), change = 0;
        expect_halos(&w, BLACK);
        send_borders(&w, BLACK);
        for (long iteration = 1; iteration <= iterations; iteration++) {
            int checked = iteration % check_every == 0 || iteration == iterations;
            double largest = 0;
            iterate(&w, iteration, checked ? &largest : NULL);
            if (checked) change = agree(largest, changes, thread);
        }
        wait_for_halos(&w, BLACK, iterations + 1);
        for (int colour = 0; colour < COLOURS; colour++) MPI_Waitall(2, w.sent[colour], MPI_STATUSES_IGNORE);
#pragma omp master
        {
            seconds = MPI_Wtime() - started;
            last_change = change;
        }
    }
    uint64_t sum = fingerprint(rows), total;
    MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"size\":%ld,\"ranks\":%d,\"threads\":%d,\"iterations\":%ld,\"residual\":%.17g,\"seconds\":%.6f,"
               "\"fingerprint\":\"%016llx\"}\n",
               size, ranks, threads, iterations, last_change, seconds, (unsigned long long)total);
    MPI_Finalize();
    return 0;
}
