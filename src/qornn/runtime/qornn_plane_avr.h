/* AVR: its multiplications take bytes, a weight and either byte of a state. MULSU leaves the sign of its product in the
   carry, so SBC extends it. In assembly, because compilers make 16-bit products of what are bytes, and spill. */

/* clang-format off */
/* sum += weight * the state at s, and s goes on to the next. */
#define QORNN_TERM(weight)                                                                                        \
    "ld %[low], %a[s]+\n\tld %[high], %a[s]+\n\tmul " weight ", %[low]\n\tadd %A[sum], r0\n\tadc %B[sum], r1\n\t" \
    "adc %C[sum], %[zero]\n\tadc %D[sum], %[zero]\n\tmulsu %[high], " weight "\n\tsbc %D[sum], %[zero]\n\t"      \
    "add %B[sum], r0\n\tadc %C[sum], r1\n\tadc %D[sum], %[zero]\n\t"

/* The two fields of a byte that meets even states, in turn with those of one that meets odd ones. */
#define QORNN_NIBBLES(even, odd)                                                                       \
    "mov %[w], " even "\n\tandi %[w], 15\n\t" QORNN_TERM("%[w]") "mov %[w], " odd "\n\tandi %[w], 15\n\t" QORNN_TERM("%[w]") \
    "swap " even "\n\tandi " even ", 15\n\t" QORNN_TERM(even) "swap " odd "\n\tandi " odd ", 15\n\t" QORNN_TERM(odd)

/* All words of a row. r1 is zero to the compiler, so it is zero again in the end. */
#define QORNN_WORDS(terms)                                                                                              \
    {                                                                                                                   \
        uint8_t a, b, c, d, w, low, high;                                                                               \
        __asm__ volatile("1:\n\tlpm %[a], %a[at]+\n\tlpm %[b], %a[at]+\n\tlpm %[c], %a[at]+\n\tlpm %[d], %a[at]+\n\t"   \
                         terms "subi %A[left], 1\n\tsbci %B[left], 0\n\tbreq 2f\n\trjmp 1b\n2:\n\tclr r1\n\t"           \
                         : [sum] "+r"(sum), [s] "+x"(s), [at] "+z"(at), [left] "+d"(left), [low] "=&r"(low),            \
                           [high] "=&a"(high), [w] "=&a"(w), [a] "=&a"(a), [b] "=&a"(b), [c] "=&a"(c), [d] "=&a"(d)     \
                         : [zero] "r"((uint8_t)0)                                                                       \
                         : "memory");                                                                                   \
    }

/* sum += even s[0] + odd s[1]. */
#define QORNN_PAIR(even_weight, odd_weight)                                                                    \
    {                                                                                                          \
        uint8_t low, high;                                                                                     \
        __asm__ volatile(QORNN_TERM("%[even]") QORNN_TERM("%[odd]") "clr r1\n\t"                               \
                         : [sum] "+r"(sum), [s] "+x"(s), [low] "=&r"(low), [high] "=&a"(high)                  \
                         : [even] "a"((uint8_t)(even_weight)), [odd] "a"((uint8_t)(odd_weight)), [zero] "r"((uint8_t)0) \
                         : "memory");                                                                          \
    }
/* clang-format on */

QORNN_INLINE void qornn_plane(unsigned f, const QORNN_FLASH uint32_t *rows, size_t stride, size_t words,
                              const int16_t *h, uint32_t sums[4]) {
    for (uint8_t r = 0; r < 4; r++, rows += stride) {
        const QORNN_FLASH uint32_t *at = rows;
        const int16_t *s = h;
        size_t left = words; /* at least one */
        uint32_t sum = sums[r];
        if (f == 8) {
            QORNN_WORDS(QORNN_TERM("%[a]") QORNN_TERM("%[c]") QORNN_TERM("%[b]") QORNN_TERM("%[d]"))
        } else if (f == 4) {
            QORNN_WORDS(QORNN_NIBBLES("%[a]", "%[c]") QORNN_NIBBLES("%[b]", "%[d]"))
        } else {
            for (; left > 0; left--) {
                const uint32_t word = *at++;
                uint16_t even = (uint16_t)word, odd = (uint16_t)(word >> 16);
                for (uint8_t i = 0; i < 16 / f; i++) {
                    QORNN_PAIR(even & ((1u << f) - 1u), odd & ((1u << f) - 1u))
                    even = (uint16_t)(even >> f);
                    odd = (uint16_t)(odd >> f);
                }
            }
        }
        sums[r] = sum;
    }
}
