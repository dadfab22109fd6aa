// Items of very different cost, shared by processes or by threads: what mandelbrot.c and raytrace.c have in common.
//
// Rank 0 has all items. It hands them out, each other rank has one more than it works on, and rank 0 works itself: between
// two rows it looks who is done with one. Results are received where they belong. (A counter that the others increase by
// one-sided operations, and results that they put, come to the same with Open MPI; with MPICH they wait for rank 0, which
// seldom looks.) Threads of one process share items by OpenMP.
#ifndef SHARING_H
#define SHARING_H

#include <mpi.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 64, MAX_RANKS = 64, AHEAD = 2, ITEM = 1, RESULT = 2, NO_MORE = -1 };

// Writes the result of an item and returns how many bytes it has.
typedef long run_item(long item, unsigned char *result);

static int rank, ranks, threads;

static struct {
    long items, longest, next, under_way;
    unsigned char *results;
    // Of each rank, those that it has, by turns.
    MPI_Request received[MAX_RANKS * AHEAD];
} shared;

static void fail(const char *sentence) {
    fprintf(stderr, "%s\n", sentence);
    exit(1);
}

static void begin(int *count, char ***words, const char *threads_asked) {
    MPI_Init(count, words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    threads = threads_asked ? atoi(threads_asked) : 0;
    if (threads < 1 || threads > MAX_THREADS || ranks > MAX_RANKS) fail("give a number of threads");
    if (threads > 1 && ranks > 1) fail("several processes have one thread each");
}

// An item for another rank, or the word that there are no more.
static void hand_out(int place) {
    int other = place / AHEAD;
    long item = shared.next < shared.items ? shared.next++ : NO_MORE;
    if (item != NO_MORE) {
        unsigned char *result = shared.results + item * shared.longest;
        MPI_Irecv(result, shared.longest, MPI_BYTE, other, RESULT, MPI_COMM_WORLD, &shared.received[place]);
        shared.under_way++;
    }
    MPI_Send(&item, 1, MPI_LONG, other, ITEM, MPI_COMM_WORLD);
}

// Called by rank 0 while it works, as often as others may wait.
static void look_after_others(void) {
    int place, found = 1;
    while (shared.under_way > 0 && found) {
        MPI_Testany(ranks * AHEAD, shared.received, &place, &found, MPI_STATUS_IGNORE);
        if (!found) break;
        shared.under_way--;
        hand_out(place);
    }
}

static void lead(run_item *run) {
    for (int place = 0; place < ranks * AHEAD; place++) shared.received[place] = MPI_REQUEST_NULL;
    for (int place = AHEAD; place < ranks * AHEAD; place++) hand_out(place);
    while (shared.next < shared.items) {
        long item = shared.next++;
        run(item, shared.results + item * shared.longest);
        look_after_others();
    }
    while (shared.under_way > 0) look_after_others();
}

static void help(long longest, run_item *run) {
    unsigned char *results[2] = {malloc(longest), malloc(longest)};
    if (!results[0] || !results[1]) fail("there is not enough memory");
    MPI_Request sent[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, asked;
    long item, next;
    MPI_Recv(&item, 1, MPI_LONG, 0, ITEM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int turn = 0; item != NO_MORE; turn = 1 - turn) {
        MPI_Irecv(&next, 1, MPI_LONG, 0, ITEM, MPI_COMM_WORLD, &asked);
        MPI_Wait(&sent[turn], MPI_STATUS_IGNORE);
        long bytes = run(item, results[turn]);
        MPI_Isend(results[turn], bytes, MPI_BYTE, 0, RESULT, MPI_COMM_WORLD, &sent[turn]);
        MPI_Wait(&asked, MPI_STATUS_IGNORE);
        item = next;
    }
    // The word came once for each item that it might have had.
    for (int ended = 1; ended < AHEAD; ended++) MPI_Recv(&item, 1, MPI_LONG, 0, ITEM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    free(results[0]);
    free(results[1]);
}

// Runs all items, whose results have at most `longest` bytes; rank 0 has them when this returns, one every `longest` bytes.
static unsigned char *share(long items, long longest, run_item *run) {
    if (rank > 0) {
        help(longest, run);
        return NULL;
    }
    unsigned char *results = malloc(items * longest);
    if (!results) fail("there is not enough memory");
    shared.items = items, shared.longest = longest, shared.results = results;
    if (ranks > 1) {
        lead(run);
        return results;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (long item = 0; item < items; item++) run(item, results + item * longest);
    return results;
}

// FNV-1a: differs if a byte does.
static uint64_t fingerprint(const unsigned char *bytes, long count) {
    uint64_t hash = 0xcbf29ce484222325;
    for (long i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

#endif
