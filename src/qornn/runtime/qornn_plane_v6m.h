/* Armv6-M, the method of qornn_plane_portable.h by hand: eight low registers hold four words, two states, a product
   and the pointer, and the four sums lie in high ones, which ADD reaches. Compilers keep the sums in memory instead.

       r0-r3 words   r4, r5 a state and the one before   r6 scratch   r7 h   r8-r11 sums   r12 rows   lr stride - 4

   r7 is saved by hand, since it may be the frame pointer; nothing here is addressed through it meanwhile. */
#include "qornn_four.h"

/* clang-format off */
#define QORNN_ROW(move, w, shift, g, sum) move " r6, " w ", #" shift "\n\tmuls r6, " g ", r6\n\tadd " sum ", r6\n\t"
#define QORNN_ROWS(move, shift, g)                                                \
    QORNN_ROW(move, "r0", shift, g, "r8") QORNN_ROW(move, "r1", shift, g, "r9")   \
    QORNN_ROW(move, "r2", shift, g, "r10") QORNN_ROW(move, "r3", shift, g, "r11")
/* The state at `offset` into `now`, and g = now - 2^f before into `before`. */
#define QORNN_FIELD(f, offset, shift, now, before)                                                 \
    "movs r6, #" #offset "\n\tldrsh " now ", [r7, r6]\n\tlsls " before ", " before ", #" #f "\n\t" \
    "subs " before ", " now ", " before "\n\t" QORNN_ROWS("lsrs", #shift, before)
#define QORNN_TWO(f, offset, shift, offset2, shift2) \
    QORNN_FIELD(f, offset, shift, "r4", "r5") QORNN_FIELD(f, offset2, shift2, "r5", "r4")
/* Fields 0 and 1: nothing lies before the first, and no assembler takes a right shift by 0. */
#define QORNN_START(f) \
    "movs r6, #0\n\tldrsh r4, [r7, r6]\n\t" QORNN_ROWS("lsls", "0", "r4") QORNN_FIELD(f, 4, f, "r5", "r4")
#define QORNN_WORDS(bytes, fields)                                                                                 \
    __asm__ volatile(                                                                                              \
        ".syntax unified\n\t"                                                                                      \
        "push {r2, r4, r7}\n\tmov r12, r0\n\tsubs r1, #4\n\tmov lr, r1\n\tmov r7, r3\n\tldmia r4!, {r0, r1, r2, r3}\n\t" \
        "mov r8, r0\n\tmov r9, r1\n\tmov r10, r2\n\tmov r11, r3\n"                                              \
        "1:\n\tmov r6, r12\n\tldmia r6!, {r0}\n\tmov r12, r6\n\tadd r6, lr\n\tldmia r6!, {r1}\n\tadd r6, lr\n\t"   \
        "ldmia r6!, {r2}\n\tadd r6, lr\n\tldmia r6!, {r3}\n\t" fields                                               \
        "adds r7, #" #bytes "\n\tldr r6, [sp]\n\tcmp r7, r6\n\tbeq 2f\n\tb 1b\n"                                   \
        "2:\n\tpop {r2, r4, r7}\n\tmov r0, r8\n\tmov r1, r9\n\tmov r2, r10\n\tmov r3, r11\n\t"                     \
        "stmia r4!, {r0, r1, r2, r3}\n\t"                                                                          \
        : QORNN_FOUR_OPERANDS                                                                                      \
        :                                                                                                          \
        : "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory")
/* clang-format on */

/* ISO C promises 4095 characters per string; whoever takes this assembly takes more. Assembler macros would be shorter,
   but compilers tell the size of assembly by counting its lines, and must know it to reach their constants. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
QORNN_INLINE void qornn_plane(unsigned f, const QORNN_FLASH uint32_t *rows, size_t stride, size_t words,
                              const int16_t *h, uint32_t sums[4]) {
    QORNN_FOUR(f);
    if (f == 8) {
        QORNN_WORDS(8, QORNN_START(8) QORNN_TWO(8, 2, 16, 6, 24));
    } else if (f == 4) {
        QORNN_WORDS(16,
                    QORNN_START(4) QORNN_TWO(4, 8, 8, 12, 12) QORNN_TWO(4, 2, 16, 6, 20) QORNN_TWO(4, 10, 24, 14, 28));
    } else if (f == 2) {
        QORNN_WORDS(32, QORNN_START(2) QORNN_TWO(2, 8, 4, 12, 6) QORNN_TWO(2, 16, 8, 20, 10)
                            QORNN_TWO(2, 24, 12, 28, 14) QORNN_TWO(2, 2, 16, 6, 18) QORNN_TWO(2, 10, 20, 14, 22)
                                QORNN_TWO(2, 18, 24, 22, 26) QORNN_TWO(2, 26, 28, 30, 30));
    } else {
        QORNN_WORDS(64, QORNN_START(1) QORNN_TWO(1, 8, 2, 12, 3) QORNN_TWO(1, 16, 4, 20, 5) QORNN_TWO(1, 24, 6, 28, 7)
                            QORNN_TWO(1, 32, 8, 36, 9) QORNN_TWO(1, 40, 10, 44, 11) QORNN_TWO(1, 48, 12, 52, 13)
                                QORNN_TWO(1, 56, 14, 60, 15) QORNN_TWO(1, 2, 16, 6, 17) QORNN_TWO(1, 10, 18, 14, 19)
                                    QORNN_TWO(1, 18, 20, 22, 21) QORNN_TWO(1, 26, 22, 30, 23)
                                        QORNN_TWO(1, 34, 24, 38, 25) QORNN_TWO(1, 42, 26, 46, 27)
                                            QORNN_TWO(1, 50, 28, 54, 29) QORNN_TWO(1, 58, 30, 62, 31));
    }
}
#pragma GCC diagnostic pop
