/* Random programs in arrays of exactly the documented size, fed with any sample and any code: a step must agree with
   plain loops over the weights, states stay in range, padding stays zero. Built with the sanitizers, it stops at the
   first access out of bounds. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qornn_dense.h"
#include "qornn_input.h"
#include "qornn_readout.h"

static uint32_t seed = 1;

static uint32_t draw(void) {
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static int32_t between(int32_t low, int32_t high) {
    return (int32_t)((int64_t)low + (int64_t)(draw() % (uint32_t)((int64_t)high - low + 1)));
}

static void *room(size_t bytes) {
    void *at = calloc(1, bytes);
    if (!at) {
        abort();
    }
    return at;
}

static void check(int holds, const char *what, const qornn_recurrent *p) {
    if (!holds) {
        printf("%s: n_i=%u n_h=%u bits_W=%u bits_U=%u requant=%u activation=%u input=%u\n", what, (unsigned)p->n_i,
               (unsigned)p->n_h, (unsigned)p->bits_W, (unsigned)p->bits_U, (unsigned)p->requant,
               (unsigned)p->activation, (unsigned)p->input);
        exit(1);
    }
}

/* w + 2^(k-1) of weight j into the planes of a row, by the definition in qornn_planes.h. */
static void put(uint32_t *row, size_t n_h, unsigned k, size_t j, int w) {
    static const unsigned widths[9][3] = {{0}, {0}, {2}, {2, 1}, {4}, {4, 1}, {4, 2}, {4, 2, 1}, {8}};
    uint32_t u = (uint32_t)(w + (1 << (k - 1)));
    for (unsigned i = 0; i < 3 && widths[k][i]; i++) {
        const unsigned f = widths[k][i], place = (unsigned)(j % (32 / f));
        row[j / (32 / f)] |= (u & ((1u << f) - 1u)) << (f * (place / 2) + 16u * (place % 2));
        u >>= f;
        row += (n_h * f + 31) / 32;
    }
}

static void one_program(void) {
    static const int16_t ends[6] = {INT16_MIN, INT16_MAX, 0, -1, 255, -256};
    const uint32_t n_h = (uint32_t)between(1, 40), n_i = (uint32_t)between(1, between(0, 1) ? 4 : 50), n_o = 2;
    const unsigned k = (unsigned)between(2, 8), k_U = (unsigned)between(2, 8);
    const size_t units = QORNN_UNITS(n_h, QORNN_GROUP_PACKED(k));
    const size_t words = qornn_row_words(n_h, k), words_U = qornn_row_words(n_i, k_U);
    const int in_rows = between(0, 1); /* U row by row */
    const int narrow = between(0, 1);  /* samples normalised in 32 bits */
    const size_t inputs = in_rows ? QORNN_UNITS(n_i, QORNN_GROUP_PACKED(k_U)) : n_i;
    int8_t *W = (int8_t *)room(n_h * n_h), *U = (int8_t *)room(n_h * n_i), *V = (int8_t *)room(n_o * n_h);
    uint32_t *planes = (uint32_t *)room(n_h * words * 4), *planes_U = (uint32_t *)room(n_h * words_U * 4);
    uint8_t *stream = (uint8_t *)room((n_h * n_i * k_U + 7) / 8 + 1), *shifts = (uint8_t *)room(n_h);
    int32_t *M = (int32_t *)room(4 * n_h), *bias = (int32_t *)room(4 * n_h), *thresholds = (int32_t *)room(4 * 2047);
    int64_t *bias_wide = (int64_t *)room(8 * n_h);
    int32_t *offset = (int32_t *)room(4 * n_i), *multiplier = (int32_t *)room(4 * n_i);
    uint8_t *x_shift = (uint8_t *)room(n_i);
    int32_t *b_o = (int32_t *)room(4 * n_o);
    int32_t y[2];
    for (size_t j = 0; j < n_h; j++) {
        for (size_t i = 0; i < n_h; i++) {
            const int w = between(-(1 << (k - 1)), (1 << (k - 1)) - 1);
            W[j * n_h + i] = (int8_t)w;
            put(planes + j * words, n_h, k, i, w);
        }
        M[j] = between(0, 1) ? INT_MAX : between(0, 1 << 28);
        shifts[j] = (uint8_t)between(28, 40);
        bias[j] = between(-(1 << 20), 1 << 20);
        bias_wide[j] = (int64_t)bias[j] * (1 << 30);
    }
    for (size_t c = 0; c < n_i; c++) {
        for (size_t j = 0; j < n_h; j++) {
            const int u = between(-(1 << (k_U - 1)), (1 << (k_U - 1)) - 1);
            U[c * n_h + j] = (int8_t)u;
            put(planes_U + j * words_U, n_i, k_U, c, u);
            for (size_t b = 0; b < k_U; b++) {
                const size_t bit = (c * n_h + j) * k_U + b;
                stream[bit / 8] = (uint8_t)(stream[bit / 8] | (((u + (1 << (k_U - 1))) >> b) & 1) << bit % 8);
            }
        }
        offset[c] = narrow ? between(-1000, 1000) : between(-(1 << 30), 1 << 30);
        multiplier[c] = narrow ? between(0, 1 << 20) : between(0, 1) ? INT_MAX : between(0, 1 << 16);
        x_shift[c] = (uint8_t)between(0, narrow ? 30 : 61);
    }
    for (size_t i = 0; i < n_o * n_h; i++) {
        V[i] = (int8_t)between(-128, 127);
    }
    for (size_t o = 0; o < n_o; o++) {
        b_o[o] = between(-1000, 1000);
    }
    for (int i = 0; i < 2047; i++) {
        thresholds[i] = i * 300;
    }
    qornn_recurrent p;
    qornn_input in;
    qornn_readout out;
    memset(&p, 0, sizeof p);
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    p.n_i = n_i, p.n_h = n_h;
    p.bits_W = (uint8_t)k, p.bits_U = (uint8_t)k_U, p.bits_h = 12;
    p.input = (uint8_t)between(0, 1), p.activation = (uint8_t)between(0, 2), p.requant = (uint8_t)between(0, 2);
    in.n_i = n_i, in.channels = between(0, 1) ? n_i : 1, in.narrow = (uint8_t)narrow;
    in.kind = p.input, in.bits = 9, in.plain = (uint8_t)between(0, 1), in.low = -256, in.high = 255;
    in.room = (uint32_t)inputs, in.offset = offset, in.multiplier = multiplier, in.shift = x_shift;
    out.n_o = n_o, out.n_h = n_h, out.kind = QORNN_INT, out.relu = (uint8_t)between(0, 1);
    out.V_int = V, out.b_o_int = b_o;
    p.W_planes = planes;
    if (p.input == QORNN_SAMPLES && in_rows) {
        p.U_planes = planes_U;
    } else {
        p.U_packed = stream;
    }
    p.bias = bias, p.bias_wide = bias_wide, p.multiplier = 1u << 27, p.shift = 31;
    p.thresholds = thresholds;
    p.M_W = M, p.M_U = M, p.M_I = between(0, 1) ? M : NULL, p.row_shift = shifts;

    int16_t *h[2], *raw = (int16_t *)room(2 * n_i), *x = (int16_t *)room(2 * inputs),
                   *seen = (int16_t *)room(2 * inputs);
    memset(x, 1, 2 * inputs); /* a step owes nothing to what was there */
    for (int i = 0; i < 2; i++) {
        h[i] = (int16_t *)room(2 * units);
    }
    for (int t = 0; t < 6; t++) {
        const int now = t & 1, then = !now;
        int32_t code = 0;
        if (p.input == QORNN_CODES) {
            const int32_t bad[5] = {-1, (int32_t)n_i, INT_MAX, INT_MIN, 1 << 16};
            check(!qornn_is_code(&in, bad[draw() % 5]), "a bad code passed", &p);
            code = between(0, (int32_t)n_i - 1);
            check(qornn_is_code(&in, code), "a code was refused", &p);
            qornn_dense(&p, NULL, (size_t)code, h[now], h[then]);
        } else {
            for (size_t c = 0; c < n_i; c++) {
                raw[c] = between(0, 1) ? ends[draw() % 6] : (int16_t)between(INT16_MIN, INT16_MAX);
            }
            qornn_quantize(&in, raw, x);
            qornn_dense(&p, x, 0, h[now], h[then]);
            qornn_quantize(&in, raw, seen);
        }
        for (size_t j = 0; j < n_h; j++) {
            int32_t sum = 0, drive = 0;
            for (size_t i = 0; i < n_h; i++) {
                sum += W[j * n_h + i] * h[now][i];
            }
            for (size_t c = 0; c < n_i; c++) {
                drive += U[c * n_h + j] * (p.input == QORNN_CODES ? (int32_t)c == code : seen[c]);
            }
            check(h[then][j] == qornn_next(&p, j, sum, drive, h[now][j]), "a state differs", &p);
        }
        for (size_t j = 0; j < units; j++) {
            const int limit = j < n_h ? 2047 : 0;
            check(h[then][j] <= limit && h[then][j] >= -limit, "a state is out of range", &p);
        }
        qornn_read_int(&out, h[then], y);
        for (size_t o = 0; o < n_o; o++) {
            int32_t sum = b_o[o];
            for (size_t j = 0; j < n_h; j++) {
                sum += V[o * n_h + j] * (out.relu && h[then][j] < 0 ? 0 : h[then][j]);
            }
            check(y[o] == sum, "an output differs", &p);
        }
    }
    void *all[] = {W,      U,          V,       planes, stream, shifts, M, bias, thresholds, bias_wide,
                   offset, multiplier, x_shift, b_o,    h[0],   h[1],   x, seen, raw,        planes_U};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
}

int main(void) {
    for (int i = 0; i < 1500; i++) {
        one_program();
    }
    puts("ok");
    return 0;
}
