// A map that no process holds alone, over MPI: what examples/map does over Mizzen, pixel by pixel the same.
//
//   map THREADS REPEATS X,Y,WIDTH,HEIGHT,SCALE...
//
// Each process draws and compresses its tiles. For a picture rank 0 asks the others for all parts at once, makes those of its own
// tiles, and puts all together; each of the others answers one request after the other, and works while its answers are under way.
// Several threads share rank 0's own tiles; then it is alone.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiles.h"

enum { MAX_COLUMNS = 64, MAX_TILES = 4096, MAX_THREADS = 64, ASK = 1, END = 2, ANSWER = 3 };

static int rank, ranks, threads;
static struct {
    const unsigned char *file;
    size_t bytes;
} held[MAX_TILES];

static void fail(const char *sentence) {
    fprintf(stderr, "map: %s\n", sentence);
    exit(1);
}

static void *memory(size_t bytes) {
    void *found = malloc(bytes);
    if (!found) fail("there is not enough memory");
    return found;
}

static int index_of(const struct ask *ask) { return ask->tile[1] * MAX_COLUMNS + ask->tile[0]; }
static int owner(const struct ask *ask) { return tiles_owner(ask->tile[0], ask->tile[1], ranks); }
static size_t bytes_of(const struct ask *ask) { return 3 * (size_t)ask->count[0] * ask->count[1]; }

static void draw(void) {
    uint32_t columns, rows;
    tiles_of_map(&columns, &rows);
    if (columns > MAX_COLUMNS || rows * MAX_COLUMNS > MAX_TILES) fail("the map is too large");
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(threads)
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t column = 0; column < columns; column++) {
            struct ask ask = {.tile = {column, row}};
            if (owner(&ask) != rank) continue;
            int index = index_of(&ask);
            held[index].file = tiles_draw(column, row, &held[index].bytes);
            if (!held[index].file) fail("a tile cannot be compressed");
        }
}

static void make(const struct ask *ask, unsigned char *pixels) {
    int index = index_of(ask);
    if (!tiles_part(held[index].file, held[index].bytes, ask, pixels)) fail("a part cannot be made");
}

// Answers until it is told to end.
static void serve(void) {
    unsigned char *answers[MAX_TILES];
    MPI_Request sent[MAX_TILES];
    int count = 0;
    for (;;) {
        struct ask ask;
        MPI_Status status;
        MPI_Recv(&ask, sizeof ask, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == END) break;
        // The answers of the picture before have been read, or nothing would be asked for.
        int all = 0;
        MPI_Testall(count, sent, &all, MPI_STATUSES_IGNORE);
        if (count == MAX_TILES) MPI_Waitall(count, sent, MPI_STATUSES_IGNORE), all = 1;
        for (; all && count > 0; count--) free(answers[count - 1]);
        answers[count] = memory(bytes_of(&ask));
        make(&ask, answers[count]);
        MPI_Isend(answers[count], bytes_of(&ask), MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD, &sent[count]);
        count++;
    }
    MPI_Waitall(count, sent, MPI_STATUSES_IGNORE);
    for (; count > 0; count--) free(answers[count - 1]);
}

static void place(unsigned char *picture, uint32_t width, const struct ask *ask, const unsigned char *pixels) {
    for (uint32_t row = 0; row < ask->count[1]; row++) {
        unsigned char *line = picture + 3 * ((size_t)(ask->first[1] + row) * width + ask->first[0]);
        memcpy(line, pixels + 3 * (size_t)row * ask->count[0], 3 * (size_t)ask->count[0]);
    }
}

// The parts of other processes are received into places of their own, and go from there into the picture as they come.
static void place_what_came(int count, MPI_Request *received, const struct ask **asked, unsigned char **parts,
                            unsigned char *picture, uint32_t width) {
    static int done[MAX_TILES];
    int found = 0;
    MPI_Testsome(count, received, &found, done, MPI_STATUSES_IGNORE);
    for (int i = 0; found != MPI_UNDEFINED && i < found; i++) place(picture, width, asked[done[i]], parts[done[i]]);
}

static unsigned char *show(const struct view *view, uint32_t size[2]) {
    static struct ask asks[MAX_TILES];
    static const struct ask *away[MAX_TILES], *here[MAX_TILES];
    static MPI_Request sent[MAX_TILES], received[MAX_TILES];
    static unsigned char *parts[MAX_TILES];
    int away_count = 0, here_count = 0, one;
    size_t count = tiles_parts(view, asks, MAX_TILES);
    if (count > MAX_TILES) fail("the picture has too many parts");
    tiles_pixels(view, size);
    unsigned char *picture = memory(3 * (size_t)size[0] * size[1]);
    for (size_t i = 0; i < count; i++) {
        if (owner(&asks[i]) == rank) {
            here[here_count++] = &asks[i];
            continue;
        }
        away[away_count] = &asks[i];
        parts[away_count] = memory(bytes_of(&asks[i]));
        MPI_Irecv(parts[away_count], bytes_of(&asks[i]), MPI_BYTE, owner(&asks[i]), ANSWER, MPI_COMM_WORLD, &received[away_count]);
        MPI_Isend(&asks[i], sizeof asks[i], MPI_BYTE, owner(&asks[i]), ASK, MPI_COMM_WORLD, &sent[away_count++]);
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int i = 0; i < here_count; i++) {
        unsigned char *pixels = memory(bytes_of(here[i]));
        make(here[i], pixels);
        place(picture, size[0], here[i], pixels);
        free(pixels);
        if (away_count > 0) place_what_came(away_count, received, away, parts, picture, size[0]);
    }
    for (;;) {
        MPI_Waitany(away_count, received, &one, MPI_STATUS_IGNORE);
        if (one == MPI_UNDEFINED) break;
        place(picture, size[0], away[one], parts[one]);
    }
    MPI_Waitall(away_count, sent, MPI_STATUSES_IGNORE);
    for (int i = 0; i < away_count; i++) free(parts[i]);
    return picture;
}

// FNV-1a: differs if a byte does.
static uint64_t fingerprint(const unsigned char *bytes, size_t count) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

static void look_at(const char *word, long repeats) {
    struct view view;
    int read = sscanf(word, "%u,%u,%u,%u,%lf", &view.start[0], &view.start[1], &view.length[0], &view.length[1], &view.scale);
    if (read != 5) fail("a view is X,Y,WIDTH,HEIGHT,SCALE");
    unsigned char *picture = NULL;
    uint32_t size[2];
    double seconds = 0;
    for (long i = 0; i < repeats; i++) {
        free(picture);
        double started = MPI_Wtime();
        picture = show(&view, size);
        // As there, the first does not count if there are more: connections are made.
        if (i > 0 || repeats == 1) seconds += MPI_Wtime() - started;
    }
    printf("{\"region\":[%u,%u,%u,%u],\"scale\":%.17g,\"ranks\":%d,\"seconds\":%.9f,\"fingerprint\":\"%016llx\"}\n",
           view.start[0], view.start[1], view.length[0], view.length[1], view.scale, ranks, seconds / (double)(repeats > 1 ? repeats - 1 : 1),
           (unsigned long long)fingerprint(picture, 3 * (size_t)size[0] * size[1]));
    free(picture);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count < 4) fail("give THREADS REPEATS X,Y,WIDTH,HEIGHT,SCALE...");
    threads = atoi(words[1]);
    long repeats = atol(words[2]);
    if (threads < 1 || threads > MAX_THREADS || repeats < 1) fail("a number is out of bounds");
    if (threads > 1 && ranks > 1) fail("several processes have one thread each");
    draw();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0) {
        serve();
    } else {
        for (int word = 3; word < count; word++) look_at(words[word], repeats);
        for (int other = 1; other < ranks; other++) MPI_Send(NULL, 0, MPI_BYTE, other, END, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
