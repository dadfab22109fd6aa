// The tiles of examples/map, by its own code: bench/peers/tiles/lib.rs.
#ifndef TILES_H
#define TILES_H

#include <stddef.h>
#include <stdint.h>

struct view {
    double scale;
    uint32_t start[2], length[2];
};

// A part of a picture, of one tile: where on the map the picture begins, which tile, which columns and rows of the picture.
struct ask {
    double scale;
    uint32_t start[2], tile[2], first[2], count[2];
};

void tiles_of_map(uint32_t *columns, uint32_t *rows);
uint32_t tiles_owner(uint32_t column, uint32_t row, uint32_t ranks);
void tiles_pixels(const struct view *view, uint32_t pixels[2]);
size_t tiles_parts(const struct view *view, struct ask *asks, size_t most);
const unsigned char *tiles_draw(uint32_t column, uint32_t row, size_t *bytes);
int tiles_part(const unsigned char *file, size_t bytes, const struct ask *ask, unsigned char *pixels);

#endif
