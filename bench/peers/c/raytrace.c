// A scene of spheres over MPI: what examples/raytrace does over Mizzen, pixel by pixel the same.
//
//   raytrace WIDTH HEIGHT SAMPLES THREADS
//
// The files of examples/raytrace explain the physics; the order of the sums, and of random numbers, is part of the result.
#include <math.h>
#include <string.h>

#include "sharing.h"

enum { SIDE = 32, SMALL = 110, MAX_SPHERES = SMALL + 5, LIGHTS = 2, MOST_TURNS = 7 };

static long width, height, samples, columns;

// Vectors: to the right, up, towards the viewer; or red, green, blue.
typedef struct {
    double x, y, z;
} vector;

static const vector ZERO = {0, 0, 0}, ONE = {1, 1, 1}, UP = {0, 1, 0};

static inline vector add(vector a, vector b) { return (vector){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline vector sub(vector a, vector b) { return (vector){a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline vector scaled(vector a, double factor) { return (vector){a.x * factor, a.y * factor, a.z * factor}; }
static inline vector filter(vector a, vector b) { return (vector){a.x * b.x, a.y * b.y, a.z * b.z}; }
static inline double dot(vector a, vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline vector cross(vector a, vector b) {
    return (vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static inline double length(vector a) { return sqrt(dot(a, a)); }
static inline vector unit(vector a) { return scaled(a, 1.0 / length(a)); }
static inline vector mix(vector a, vector b, double part) { return add(scaled(a, 1.0 - part), scaled(b, part)); }
static inline double clamp(double value, double least, double most) {
    return value < least ? least : value > most ? most : value;
}
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

static void sides(vector a, vector *side, vector *other) {
    *side = unit(cross(fabs(a.y) < 0.9 ? UP : (vector){1, 0, 0}, a));
    *other = cross(a, *side);
}

// Random numbers: wyrand, as the crate fastrand has it.
static double next(uint64_t *random) {
    uint64_t state = *random += 0x2d358dccaa6c78a5;
    unsigned __int128 product = (unsigned __int128)state * (state ^ 0x8bb84b93962eacc9);
    uint64_t bits = (uint64_t)product ^ (uint64_t)(product >> 64);
    double value = (double)(int64_t)(bits >> 1) * 0x1p-63;
    return value < 1.0 ? value : next(random);
}

static void in_circle(uint64_t *random, double *x, double *y) {
    do {
        *x = 2.0 * next(random) - 1.0;
        *y = 2.0 * next(random) - 1.0;
    } while (!(*x * *x + *y * *y < 1.0));
}

// The scene: see examples/raytrace/scene.rs.
enum kind { VARNISHED, METAL, GLASS };

typedef struct {
    enum kind kind;
    vector colour;
} surface;

static struct {
    vector middle;
    double radius;
    surface surface;
} spheres[MAX_SPHERES];
static int sphere_count;

static const struct {
    vector middle;
    double radius;
    vector colour;
} lights[LIGHTS] = {
    {{-6.0, 8.5, 5.0}, 1.3, {1.0 * 26.0, 0.84 * 26.0, 0.64 * 26.0}},
    {{7.5, 5.0, 3.5}, 0.9, {0.50 * 13.0, 0.68 * 13.0, 1.0 * 13.0}},
};
static const vector FLOOR[2] = {{0.72, 0.70, 0.66}, {0.055, 0.07, 0.105}};
static const vector HORIZON = {0.86, 0.50, 0.30}, ZENITH = {0.08, 0.17, 0.42};
static const vector SILVER = {0.93, 0.94, 0.96}, GOLD = {1.00, 0.74, 0.34};

static void stand(double x, double z, double radius, surface surface) {
    vector middle = {x, radius, z};
    for (int i = 0; i < sphere_count; i++)
        if (length(sub(spheres[i].middle, middle)) < spheres[i].radius + radius + 0.03) return;
    spheres[sphere_count].middle = middle;
    spheres[sphere_count].radius = radius;
    spheres[sphere_count++].surface = surface;
}

static double hue_part(double turn) {
    double wave = 0.5 + 0.5 * cos(2 * M_PI * turn);
    return 0.04 + 0.70 * wave * wave;
}

static void build(void) {
    stand(0.0, -0.3, 1.25, (surface){METAL, SILVER});
    stand(-1.75, 1.35, 0.62, (surface){GLASS, ZERO});
    stand(1.65, 1.30, 0.62, (surface){METAL, GOLD});
    stand(-2.75, -0.75, 0.80, (surface){VARNISHED, {0.72, 0.07, 0.06}});
    stand(2.75, -0.95, 0.85, (surface){VARNISHED, {0.05, 0.30, 0.34}});
    for (int number = 0; number < SMALL; number++) {
        double angle = number * 2.399963229728653, far = 1.1 + 0.52 * sqrt(number), turn = number * 0.137;
        double radius = 0.15 + 0.11 * (0.5 + 0.5 * sin(number * 1.7));
        surface surface = {VARNISHED, {hue_part(turn + 0.0), hue_part(turn + 0.33), hue_part(turn + 0.67)}};
        if (number % 7 == 3) surface.kind = GLASS;
        if (number % 7 == 5) surface.kind = METAL, surface.colour = SILVER;
        stand(far * cos(angle), far * sin(angle), radius, surface);
    }
}

static double power_5(double value) {
    double square = value * value;
    return value * (square * square);
}

static vector sky(vector direction) {
    double rest = 1.0 - clamp(direction.y, 0.0, 1.0), square = rest * rest;
    return mix(HORIZON, ZENITH, 1.0 - rest * square * (square * square));
}

static vector skylight(vector normal) {
    double up = 0.5 + 0.5 * normal.y;
    return scaled(mix(scaled(HORIZON, 0.5), mix(ZENITH, HORIZON, 0.35), up), 0.35 + 0.45 * up);
}

// What a ray meets: see examples/raytrace/hit.rs.
typedef struct {
    vector from, along;
} ray;

typedef struct {
    double distance;
    vector place, normal;
    surface surface;
    int sphere;  // -1: the floor
} hit;

static const double NEAR = 1e-6;

// How far a sphere is, in front of the start; infinite if it is not met.
static inline double meets(const ray *ray, vector middle, double radius) {
    vector to = sub(middle, ray->from);
    double nearest = dot(to, ray->along);
    vector away = sub(to, scaled(ray->along, nearest));
    double depth = radius * radius - dot(away, away);
    if (depth < 0.0) return INFINITY;
    double half = sqrt(depth);
    if (nearest - half > NEAR) return nearest - half;
    return nearest + half > NEAR ? nearest + half : INFINITY;
}

static int find_hit(const ray *ray, hit *hit) {
    double distance = -ray->from.y / ray->along.y;
    double nearest = ray->along.y < 0.0 && distance > NEAR ? distance : INFINITY;
    hit->sphere = -1;
    for (int i = 0; i < sphere_count; i++) {
        double at = meets(ray, spheres[i].middle, spheres[i].radius);
        if (at < nearest) nearest = at, hit->sphere = i;
    }
    if (nearest == INFINITY) return 0;
    hit->distance = nearest;
    hit->place = add(ray->from, scaled(ray->along, nearest));
    if (hit->sphere >= 0) {
        hit->normal = scaled(sub(hit->place, spheres[hit->sphere].middle), 1.0 / spheres[hit->sphere].radius);
        hit->surface = spheres[hit->sphere].surface;
    } else {
        long field = (long)(floor(hit->place.x) + floor(hit->place.z));
        hit->normal = UP;
        hit->surface = (surface){VARNISHED, FLOOR[field & 1]};
    }
    return 1;
}

// How much light comes through on the first part of a ray.
static double passes(const ray *ray, double distance) {
    double through = 1.0;
    for (int i = 0; i < sphere_count; i++) {
        if (!(meets(ray, spheres[i].middle, spheres[i].radius) < distance)) continue;
        if (spheres[i].surface.kind != GLASS) return 0.0;
        through *= 0.62;
    }
    return through;
}

static double openness(const hit *hit) {
    double open = 1.0;
    for (int i = 0; i < sphere_count; i++) {
        if (i == hit->sphere) continue;
        vector to = sub(spheres[i].middle, hit->place);
        double distance = length(to), facing = larger(dot(hit->normal, to) / distance, 0.0);
        double part = spheres[i].radius / distance;
        open *= 1.0 - smaller(facing * (part * part), 1.0);
    }
    if (hit->sphere >= 0) {
        double low = clamp(1.0 - hit->place.y, 0.0, 1.0);
        open *= 1.0 - 0.5 * low * (0.5 - 0.5 * hit->normal.y);
    }
    return open;
}

// Light: see examples/raytrace/light.rs.
static vector light_of(int number, const hit *hit, uint64_t *random) {
    vector to_middle = sub(lights[number].middle, hit->place), side, other;
    double x, y, radius = lights[number].radius;
    sides(unit(to_middle), &side, &other);
    in_circle(random, &x, &y);
    vector to = add(add(to_middle, scaled(side, x * radius)), scaled(other, y * radius));
    double distance = length(to);
    vector along = scaled(to, 1.0 / distance);
    double facing = dot(hit->normal, along);
    if (facing <= 0.0) return ZERO;
    ray ray = {hit->place, along};
    double part = radius / distance, seen = part * part;
    return scaled(lights[number].colour, facing * seen * passes(&ray, distance));
}

static vector light_on(const hit *hit, uint64_t *random) {
    vector sum = scaled(skylight(hit->normal), openness(hit));
    for (int i = 0; i < LIGHTS; i++) sum = add(sum, light_of(i, hit, random));
    return sum;
}

static vector beyond(const ray *ray) {
    for (int i = 0; i < LIGHTS; i++)
        if (meets(ray, lights[i].middle, lights[i].radius) < INFINITY) return scaled(lights[i].colour, 0.25);
    return sky(ray->along);
}

// The colour that a ray brings back: see examples/raytrace/trace.rs.
static double mirrored_part(double cosine, double front) {
    return front + (1.0 - front) * power_5(1.0 - clamp(cosine, 0.0, 1.0));
}

static vector mirror(vector along, vector normal) { return sub(along, scaled(normal, 2.0 * dot(along, normal))); }

static vector follow(const ray *ray, double weight, int turns, uint64_t *random);

static vector part_of(vector from, vector along, double part, double weight, int turns, uint64_t *random) {
    ray next = {from, along};
    return scaled(follow(&next, weight * part, turns + 1, random), part);
}

static vector through_glass(const ray *in, const hit *hit, double weight, int turns, uint64_t *random) {
    int leaves = dot(in->along, hit->normal) > 0.0;
    double ratio = leaves ? 1.5 : 1.0 / 1.5, mirrored = 1.0;
    vector normal = leaves ? scaled(hit->normal, -1.0) : hit->normal, through = ZERO;
    double cosine = -dot(in->along, normal), rest = 1.0 - ratio * ratio * (1.0 - cosine * cosine);
    if (!(rest < 0.0)) {
        vector bent = add(scaled(in->along, ratio), scaled(normal, ratio * cosine - sqrt(rest)));
        mirrored = mirrored_part(leaves ? sqrt(rest) : cosine, 0.04);
        through = part_of(hit->place, unit(bent), 1.0 - mirrored, weight, turns, random);
    }
    return add(through, part_of(hit->place, mirror(in->along, normal), mirrored, weight, turns, random));
}

static vector follow(const ray *ray, double weight, int turns, uint64_t *random) {
    if (weight < 0.008 || turns > MOST_TURNS) return ZERO;
    hit hit;
    if (!find_hit(ray, &hit)) return beyond(ray);
    if (hit.surface.kind == GLASS) return through_glass(ray, &hit, weight, turns, random);
    double cosine = -dot(ray->along, hit.normal);
    vector along = mirror(ray->along, hit.normal);
    if (hit.surface.kind == METAL) {
        vector back = part_of(hit.place, along, 1.0, weight, turns, random);
        return filter(back, mix(hit.surface.colour, ONE, mirrored_part(cosine, 0.0)));
    }
    double mirrored = mirrored_part(cosine, 0.04);
    vector gloss = part_of(hit.place, along, mirrored, weight, turns, random);
    vector matt = scaled(filter(light_on(&hit, random), hit.surface.colour), 1.0 - mirrored);
    vector colour = add(matt, gloss);
    if (hit.sphere >= 0) return colour;
    double part = hit.distance / 26.0;
    vector flat = {ray->along.x, 0.0, ray->along.z};
    return mix(colour, sky(flat), 1.0 - 1.0 / (1.0 + part * part * part));
}

// A ray through a place of the picture: see examples/raytrace/camera.rs.
static ray through(double x, double y, uint64_t *random) {
    const vector place = {0.6, 2.35, 8.2}, looks_at = {0.0, 0.62, 0.0};
    vector forward = unit(sub(looks_at, place)), right = unit(cross(forward, UP)), up = cross(right, forward);
    double step = 2.0 * 0.262 / (double)height, across, along;
    vector towards = add(forward, scaled(right, (x - (double)width / 2.0) * step));
    towards = sub(towards, scaled(up, (y - (double)height / 2.0) * step));
    in_circle(random, &across, &along);
    vector aside = add(scaled(right, across * 0.055), scaled(up, along * 0.055));
    return (ray){add(place, aside), unit(sub(scaled(towards, 7.3), aside))};
}

// The mean of the rays through a pixel: see examples/raytrace/tile.rs.
static vector pixel(long x, long y) {
    uint64_t random = (uint64_t)y << 32 | (uint64_t)x;
    long fields = (long)sqrt((double)samples);
    vector sum = ZERO;
    for (long sample = 0; sample < samples; sample++) {
        double inside[2];
        inside[0] = next(&random);
        inside[1] = next(&random);
        if (sample < fields * fields) {
            inside[0] = ((double)(sample % fields) + inside[0]) / (double)fields;
            inside[1] = ((double)(sample / fields) + inside[1]) / (double)fields;
        }
        ray ray = through((double)x + inside[0], (double)y + inside[1], &random);
        vector light = follow(&ray, 1.0, 0, &random);
        sum = add(sum, (vector){smaller(light.x, 6.0), smaller(light.y, 6.0), smaller(light.z, 6.0)});
    }
    return scaled(sum, 1.0 / (double)samples);
}

static unsigned char shown(double light) {
    double film = light * (2.51 * light + 0.03) / (light * (2.43 * light + 0.59) + 0.14);
    return (unsigned char)round(255.0 * pow(clamp(film, 0.0, 1.0), 1.0 / 2.2));
}

struct tile {
    long x, y, width, height;
};

static struct tile tile_of(long item) {
    struct tile tile = {item % columns * SIDE, item / columns * SIDE, SIDE, SIDE};
    if (tile.x + SIDE > width) tile.width = width - tile.x;
    if (tile.y + SIDE > height) tile.height = height - tile.y;
    return tile;
}

static long render(long item, unsigned char *pixels) {
    struct tile tile = tile_of(item);
    unsigned char *next = pixels;
    for (long y = tile.y; y < tile.y + tile.height; y++) {
        for (long x = tile.x; x < tile.x + tile.width; x++) {
            vector light = pixel(x, y);
            *next++ = shown(light.x);
            *next++ = shown(light.y);
            *next++ = shown(light.z);
        }
        look_after_others();
    }
    return next - pixels;
}

static unsigned char *assemble(const unsigned char *tiles, long count) {
    unsigned char *picture = malloc(3 * width * height);
    if (!picture) fail("there is not enough memory");
    for (long item = 0; item < count; item++) {
        struct tile tile = tile_of(item);
        const unsigned char *pixels = tiles + item * 3 * SIDE * SIDE;
        for (long row = 0; row < tile.height; row++)
            memcpy(picture + 3 * ((tile.y + row) * width + tile.x), pixels + 3 * row * tile.width, 3 * tile.width);
    }
    return picture;
}

int main(int count, char **words) {
    begin(&count, &words, count == 5 ? words[4] : NULL);
    if (count != 5) fail("give WIDTH HEIGHT SAMPLES THREADS");
    width = atol(words[1]), height = atol(words[2]), samples = atol(words[3]);
    if (width < 1 || height < 1 || samples < 1) fail("a number is out of bounds");
    columns = (width + SIDE - 1) / SIDE;
    long tiles = columns * ((height + SIDE - 1) / SIDE);
    unsigned char *picture = NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    build();
    unsigned char *parts = share(tiles, 3 * SIDE * SIDE, render);
    if (rank == 0) picture = assemble(parts, tiles);
    double seconds = MPI_Wtime() - started;
    if (rank == 0)
        printf("{\"width\":%ld,\"height\":%ld,\"samples\":%ld,\"ranks\":%d,\"threads\":%d,\"seconds\":%.6f,"
               "\"fingerprint\":\"%016llx\"}\n",
               width, height, samples, ranks, threads, seconds, (unsigned long long)fingerprint(picture, 3 * width * height));
    free(parts);
    free(picture);
    MPI_Finalize();
    return 0;
}
