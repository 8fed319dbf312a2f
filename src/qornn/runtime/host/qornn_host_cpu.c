/* The processor, asked once when the library is loaded: under a hypervisor the question takes longer than a step. */
#include "qornn_host.h"

#if QORNN_X86

static unsigned found;

__attribute__((constructor)) static void ask(void) { found = qornn_cpu(); }

int qornn_host_has(unsigned wanted) { return (found & wanted) == wanted; }

#endif
