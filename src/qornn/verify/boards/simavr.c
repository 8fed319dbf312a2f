/* Runs an AVR by libsimavr: simavr CHIP FLASH_IMAGE FREE_RAM < feed > said

   The chip takes bytes of the feed from GPIOR1 and says bytes through GPIOR0; the run ends where it asks for more than there
   is. To stderr, for each time that GPIOR2 was not 0: its value, cycles, instructions and the deepest stack in bytes.
   FREE_RAM is the address after all static data: a stack that goes below ends the run with status 3. */
#include <simavr/sim_avr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAY = 0x3e, FEED = 0x4a, MARK = 0x4b, PAINT = 0xa5, REGISTERS = 0x100 };
#define LONGEST 100000000000u /* cycles */

static unsigned long long instructions;
static struct {
    unsigned what;
    avr_cycle_count_t cycles;
    unsigned long long instructions;
    unsigned stack;
} now;
static unsigned floor_;

static unsigned stack_of(const avr_t *avr) { return (unsigned)(avr->data[R_SPL] | avr->data[R_SPH] << 8); }

static uint8_t feed(avr_t *avr, avr_io_addr_t address, void *unused) {
    (void)address, (void)unused;
    const int byte = getchar();
    if (byte == EOF) {
        avr->state = cpu_Done;
        return 0;
    }
    return (uint8_t)byte;
}

static void say(avr_t *avr, avr_io_addr_t address, uint8_t byte, void *unused) {
    (void)avr, (void)address, (void)unused;
    putchar(byte);
}

static void mark(avr_t *avr, avr_io_addr_t address, uint8_t what, void *unused) {
    (void)address, (void)unused;
    if (now.what) {
        unsigned lowest = floor_;
        while (lowest <= now.stack && avr->data[lowest] == PAINT) {
            lowest++;
        }
        fprintf(stderr, "%u %llu %llu %u\n", now.what, (unsigned long long)(avr->cycle - now.cycles),
                instructions - now.instructions, now.stack + 1 - lowest);
    }
    now.what = what;
    now.cycles = avr->cycle;
    now.instructions = instructions;
    now.stack = stack_of(avr);
    if (what && now.stack >= floor_) {
        memset(avr->data + floor_, PAINT, now.stack + 1 - floor_);
    }
}

int main(int count, char **words) {
    static uint8_t image[65536];
    avr_t *avr = count == 4 ? avr_make_mcu_by_name(words[1]) : NULL;
    FILE *file = avr ? fopen(words[2], "rb") : NULL;
    if (!file) {
        return 2;
    }
    const size_t size = fread(image, 1, sizeof image, file);
    fclose(file);
    floor_ = (unsigned)strtoul(words[3], NULL, 0);
    avr_init(avr);
    avr->log = LOG_ERROR;
    avr->frequency = 16000000;
    if (size > (size_t)avr->flashend + 1 || floor_ > avr->ramend) {
        return 2;
    }
    avr_loadcode(avr, image, (uint32_t)size, 0);
    memset(avr->data + REGISTERS, PAINT, (size_t)avr->ramend + 1 - REGISTERS); /* nothing may rely on RAM at power-up */
    avr_register_io_read(avr, FEED, feed, NULL);
    avr_register_io_write(avr, SAY, say, NULL);
    avr_register_io_write(avr, MARK, mark, NULL);
    int state = cpu_Running, below = 0;
    while (state != cpu_Done && state != cpu_Crashed) {
        state = avr_run(avr);
        instructions++;
        below = stack_of(avr) < floor_ ? below + 1 : 0;
        if (below > 8) { /* the two bytes of the pointer are written one after the other */
            return 3;
        }
        if (avr->cycle > LONGEST) {
            return 4;
        }
    }
    return state == cpu_Crashed;
}
