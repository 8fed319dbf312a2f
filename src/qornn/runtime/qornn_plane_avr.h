/* AVR: its multiplications take bytes, a weight and either byte of a state. MULSU leaves the sign of its product in the
   carry, so SBC extends it. In assembly, because compilers make 16-bit products of what are bytes, and spill. */

/* sum += even s[0] + odd s[1], and s goes on to the next two. r1 is zero to the compiler, so it is zero again in the end. */
#define QORNN_TERM(weight)                                                                                        \
    "ld %[low], %a[s]+\n\tld %[high], %a[s]+\n\tmul %[" weight "], %[low]\n\tadd %A[sum], r0\n\tadc %B[sum], r1\n\t" \
    "adc %C[sum], %[zero]\n\tadc %D[sum], %[zero]\n\tmulsu %[high], %[" weight "]\n\tsbc %D[sum], %[zero]\n\t"      \
    "add %B[sum], r0\n\tadc %C[sum], r1\n\tadc %D[sum], %[zero]\n\t"
#define QORNN_PAIR(even_weight, odd_weight)                                                 \
    {                                                                                       \
        uint8_t low_byte, high_byte;                                                        \
        __asm__ volatile(QORNN_TERM("even") QORNN_TERM("odd") "clr r1\n\t"                  \
                         : [sum] "+r"(sum), [s] "+x"(s), [low] "=&r"(low_byte), [high] "=&a"(high_byte) \
                         : [even] "a"((uint8_t)(even_weight)), [odd] "a"((uint8_t)(odd_weight)), [zero] "r"((uint8_t)0) \
                         : "memory");                                                       \
    }

QORNN_INLINE void qornn_plane(unsigned f, const QORNN_FLASH uint32_t *rows, size_t stride, size_t words, const int16_t *h,
                              uint32_t sums[4]) {
    for (uint8_t r = 0; r < 4; r++, rows += stride) {
        const QORNN_FLASH uint32_t *at = rows;
        const int16_t *s = h;
        uint32_t sum = sums[r];
        for (size_t n = words; n > 0; n--) {
            uint8_t even, even_next, odd, odd_next; /* the bytes of a word: its low half meets the even units */
            __asm__("lpm %[a], %a[at]+\n\tlpm %[b], %a[at]+\n\tlpm %[c], %a[at]+\n\tlpm %[d], %a[at]+"
                    : [a] "=&r"(even), [b] "=&r"(even_next), [c] "=&r"(odd), [d] "=&r"(odd_next), [at] "+z"(at));
            if (f == 8) {
                QORNN_PAIR(even, odd)
                QORNN_PAIR(even_next, odd_next)
            } else if (f == 4) {
                QORNN_PAIR(even & 15u, odd & 15u)
                QORNN_PAIR(even >> 4, odd >> 4)
                QORNN_PAIR(even_next & 15u, odd_next & 15u)
                QORNN_PAIR(even_next >> 4, odd_next >> 4)
            } else {
                for (uint8_t i = 16; i > 0; i = (uint8_t)(i - f)) {
                    if (i == 8) {
                        even = even_next;
                        odd = odd_next;
                    }
                    QORNN_PAIR(even & ((1u << f) - 1u), odd & ((1u << f) - 1u))
                    even = (uint8_t)(even >> f);
                    odd = (uint8_t)(odd >> f);
                }
            }
        }
        sums[r] = sum;
    }
}
