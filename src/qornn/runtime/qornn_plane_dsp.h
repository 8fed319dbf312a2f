/* Armv7E-M: SMLAD multiplies two pairs and adds; it wraps modulo 2^32 like the rest (and sets Q, which nobody reads).
   By hand, because four rows take every register there is, and compilers spill instead:

       r0-r3 words   r4 states   r5 weights   r6 mask   r7 h   r8-r11 sums   r12 rows   lr stride

   r7 is saved by hand, since it may be the frame pointer; nothing here is addressed through it meanwhile. */
#include "qornn_four.h"

#define QORNN_ROW(w, shifted, sum) "and.w r5, r6, " w shifted "\n\tsmlad " sum ", r5, r4, " sum "\n\t"
#define QORNN_FIELD(shifted)                                                            \
    "ldr r4, [r7], #4\n\t" QORNN_ROW("r0", shifted, "r8") QORNN_ROW("r1", shifted, "r9") \
    QORNN_ROW("r2", shifted, "r10") QORNN_ROW("r3", shifted, "r11")
#define QORNN_LSR(n) QORNN_FIELD(", lsr #" #n)
#define QORNN_WORDS(fields)                                                                                     \
    __asm__ volatile(                                                                                           \
        "ldr r1, [r0, #12]\n\tpush {r0, r1, r7}\n\tldr r12, [r0]\n\tldr lr, [r0, #4]\n\tldr r7, [r0, #8]\n\tldr r6, [r0, #16]\n\t"        \
        "mov r8, #0\n\tmov r9, #0\n\tmov r10, #0\n\tmov r11, #0\n"                                              \
        "1:\n\tadd.w r5, lr, lr, lsl #1\n\tldr r1, [r12, lr]\n\tldr r2, [r12, lr, lsl #1]\n\tldr r3, [r12, r5]\n\t" \
        "ldr r0, [r12], #4\n\t" fields                                                                          \
        "ldr r0, [sp, #4]\n\tcmp r7, r0\n\tbne.w 1b\n\t"                                       \
        "pop {r0, r1, r7}\n\tadd r5, r0, #20\n\tstmia r5, {r8, r9, r10, r11}\n\t"                                   \
        : "+r"(at)                                                                                              \
        :                                                                                                       \
        : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory")

QORNN_INLINE void qornn_plane(unsigned f, const uint32_t *rows, size_t stride, size_t words, const int16_t *h,
                              unsigned shift, uint32_t sums[4]) {
    qornn_four four = qornn_four_rows(f, rows, stride, words, h);
    register qornn_four *at __asm__("r0") = &four;
    if (f == 8) {
        QORNN_WORDS(QORNN_FIELD("") QORNN_LSR(8));
    } else if (f == 4) {
        QORNN_WORDS(QORNN_FIELD("") QORNN_LSR(4) QORNN_LSR(8) QORNN_LSR(12));
    } else if (f == 2) {
        QORNN_WORDS(QORNN_FIELD("") QORNN_LSR(2) QORNN_LSR(4) QORNN_LSR(6) QORNN_LSR(8) QORNN_LSR(10) QORNN_LSR(12)
                        QORNN_LSR(14));
    } else {
        QORNN_WORDS(QORNN_FIELD("") QORNN_LSR(1) QORNN_LSR(2) QORNN_LSR(3) QORNN_LSR(4) QORNN_LSR(5) QORNN_LSR(6)
                        QORNN_LSR(7) QORNN_LSR(8) QORNN_LSR(9) QORNN_LSR(10) QORNN_LSR(11) QORNN_LSR(12)
                            QORNN_LSR(13) QORNN_LSR(14) QORNN_LSR(15));
    }
    qornn_four_sums(&four, shift, sums);
}
