// The Mandelbrot set over MPI: what examples/mandelbrot does over Mizzen, pixel by pixel the same.
//
//   mandelbrot WIDTH HEIGHT ITERATIONS THREADS
#include <math.h>

#include "sharing.h"

// Rows of a slice, and points of a pixel in each direction.
enum { SLICE = 2, SAMPLES = 2 };

static long width, height, iterations;

typedef struct {
    double parts[3];
} colour;

static const struct {
    double at;
    colour colour;
} STOPS[] = {
    {0.00, {{0.000, 0.004, 0.070}}}, {0.20, {{0.010, 0.140, 0.560}}}, {0.44, {{0.850, 1.000, 1.000}}},
    {0.64, {{1.000, 0.400, 0.000}}}, {0.86, {{0.060, 0.000, 0.030}}}, {1.00, {{0.000, 0.004, 0.070}}},
};
static const colour INSIDE = {{0.0, 0.0, 0.004}};
static const double ESCAPE = 256.0;

// See examples/mandelbrot/palette.rs.
static colour colour_of(double steps) {
    double turn = log2(fmax(steps, 0.0) + 2.0) * 0.23 + 0.47, at = turn - trunc(turn);
    int after = 1;
    while (STOPS[after].at <= at) after++;
    double part = (at - STOPS[after - 1].at) / (STOPS[after].at - STOPS[after - 1].at);
    part = part * part * (3.0 - 2.0 * part);
    colour mixed;
    for (int i = 0; i < 3; i++) {
        double before = STOPS[after - 1].colour.parts[i];
        mixed.parts[i] = before + (STOPS[after].colour.parts[i] - before) * part;
    }
    return mixed;
}

static unsigned char to_byte(double light) {
    double shown = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1.0 / 2.4) - 0.055;
    return (unsigned char)round(255.0 * fmin(fmax(shown, 0.0), 1.0));
}

static int in_heart_or_largest_bulb(double re, double im) {
    double q = (re - 0.25) * (re - 0.25) + im * im;
    return q * (q + re - 0.25) <= 0.25 * im * im || (re + 1.0) * (re + 1.0) + im * im <= 0.0625;
}

static colour point(double re, double im) {
    if (in_heart_or_largest_bulb(re, im)) return INSIDE;
    double x = 0.0, y = 0.0;
    for (long step = 0; step < iterations; step++) {
        double xx = x * x, yy = y * y;
        if (xx + yy > ESCAPE * ESCAPE) return colour_of((double)step - log2(log(xx + yy) / 2.0 / log(ESCAPE)));
        y = 2.0 * x * y + im;
        x = xx - yy + re;
    }
    return INSIDE;
}

static void pixel(long column, long row, unsigned char *bytes) {
    double step = 2.6 / (double)(height * SAMPLES), sum[3] = {0};
    for (int sample = 0; sample < SAMPLES * SAMPLES; sample++) {
        double right = (double)(column * SAMPLES + sample % SAMPLES) + 0.5;
        double down = (double)(row * SAMPLES + sample / SAMPLES) + 0.5;
        double re = -0.6 + (right - (double)(width * SAMPLES) / 2.0) * step;
        double im = 0.0 + (down - (double)(height * SAMPLES) / 2.0) * step;
        colour here = point(re, im);
        for (int i = 0; i < 3; i++) sum[i] += here.parts[i] / (SAMPLES * SAMPLES);
    }
    for (int i = 0; i < 3; i++) bytes[i] = to_byte(sum[i]);
}

static long slice(long item, unsigned char *pixels) {
    long first = item * SLICE, after = first + SLICE < height ? first + SLICE : height;
    for (long row = first; row < after; row++) {
        for (long column = 0; column < width; column++) pixel(column, row, pixels + 3 * ((row - first) * width + column));
        look_after_others();
    }
    return 3 * width * (after - first);
}

int main(int count, char **words) {
    begin(&count, &words, count == 5 ? words[4] : NULL);
    if (count != 5) fail("give WIDTH HEIGHT ITERATIONS THREADS");
    width = atol(words[1]), height = atol(words[2]), iterations = atol(words[3]);
    if (width < 1 || height < 1 || iterations < 1) fail("a number is out of bounds");
    long slices = (height + SLICE - 1) / SLICE, longest = 3 * width * SLICE;
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    // Slices lie one after the other as they do in the picture.
    unsigned char *picture = share(slices, longest, slice);
    double seconds = MPI_Wtime() - started;
    if (rank == 0)
        printf("{\"width\":%ld,\"height\":%ld,\"iterations\":%ld,\"ranks\":%d,\"threads\":%d,\"seconds\":%.6f,"
               "\"fingerprint\":\"%016llx\"}\n",
               width, height, iterations, ranks, threads, seconds, (unsigned long long)fingerprint(picture, 3 * width * height));
    free(picture);
    MPI_Finalize();
    return 0;
}
