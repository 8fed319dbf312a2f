/* Where constants lie. On AVR, program memory is another address space: without the qualifier the start-up code would copy
   every weight to RAM. The compiler then reads through LPM, and refuses to mix the two kinds of pointers. Elsewhere flash is
   memory like any other, and the word is empty. */
#ifndef QORNN_FLASH_H
#define QORNN_FLASH_H

#if !defined(__AVR__)
#define QORNN_FLASH
#elif defined(__FLASH) && !defined(__STRICT_ANSI__)
#define QORNN_FLASH __flash
#else
#error "qornn: on AVR compile the .c files as C with -std=gnu99 or gnu11: strict C99 and C++ have no __flash"
#endif

#endif
