/* Armv7E-M: SMLAD multiplies two pairs and adds; it wraps modulo 2^32 like the rest (and sets Q, which nobody reads).
   By hand, because four rows take every register there is, and compilers spill instead:

       r0-r3 words   r4 states   r5 weights   r6 mask   r7 h   r8-r11 sums   r12 rows   lr stride

   r7 is saved by hand, since it may be the frame pointer; nothing here is addressed through it meanwhile. */
#include "qornn_four.h"

/* clang-format off */
#define QORNN_ROW(w, shifted, sum) "and.w r5, r6, " w shifted "\n\tsmlad " sum ", r5, r4, " sum "\n\t"
#define QORNN_FIELD(shifted)                                                            \
    "ldr r4, [r7], #4\n\t" QORNN_ROW("r0", shifted, "r8") QORNN_ROW("r1", shifted, "r9") \
    QORNN_ROW("r2", shifted, "r10") QORNN_ROW("r3", shifted, "r11")
#define QORNN_LSR(n) QORNN_FIELD(", lsr #" #n)
#define QORNN_WORDS(mask, fields)                                                                                   \
    __asm__ volatile(                                                                                              \
        "push {r2, r4, r7}\n\tmov r12, r0\n\tmov lr, r1\n\tmov r7, r3\n\tmov.w r6, #" mask "\n\t"                  \
        "ldmia.w r4, {r8, r9, r10, r11}\n"                                                                         \
        "1:\n\tadd.w r5, lr, lr, lsl #1\n\tldr r1, [r12, lr]\n\tldr r2, [r12, lr, lsl #1]\n\tldr r3, [r12, r5]\n\t" \
        "ldr r0, [r12], #4\n\t" fields                                                                             \
        "ldr r0, [sp]\n\tcmp r7, r0\n\tbne.w 1b\n\t"                                                               \
        "pop {r2, r4, r7}\n\tstmia.w r4, {r8, r9, r10, r11}\n\t"                                                  \
        : QORNN_FOUR_OPERANDS                                                                                      \
        :                                                                                                          \
        : "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory")
/* clang-format on */

QORNN_INLINE void qornn_plane(unsigned f, const QORNN_FLASH uint32_t *rows, size_t stride, size_t words,
                              const int16_t *h, uint32_t sums[4]) {
    QORNN_FOUR(f);
    if (f == 8) {
        QORNN_WORDS("0x00ff00ff", QORNN_FIELD("") QORNN_LSR(8));
    } else if (f == 4) {
        QORNN_WORDS("0x000f000f", QORNN_FIELD("") QORNN_LSR(4) QORNN_LSR(8) QORNN_LSR(12));
    } else if (f == 2) {
        QORNN_WORDS("0x00030003", QORNN_FIELD("") QORNN_LSR(2) QORNN_LSR(4) QORNN_LSR(6) QORNN_LSR(8) QORNN_LSR(10)
                                      QORNN_LSR(12) QORNN_LSR(14));
    } else {
        QORNN_WORDS("0x00010001", QORNN_FIELD("") QORNN_LSR(1) QORNN_LSR(2) QORNN_LSR(3) QORNN_LSR(4) QORNN_LSR(5)
                                      QORNN_LSR(6) QORNN_LSR(7) QORNN_LSR(8) QORNN_LSR(9) QORNN_LSR(10) QORNN_LSR(11)
                                          QORNN_LSR(12) QORNN_LSR(13) QORNN_LSR(14) QORNN_LSR(15));
    }
}
