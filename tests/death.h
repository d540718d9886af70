/* What Google Test's death tests look for: the program's last line. */
#ifndef DEATH_H
#define DEATH_H

/* After it qemu-user writes one of its own, about the signal. */
#define LAST_LINE(text) text "\n(qemu: uncaught target signal [^\n]*\n)?$"

#endif
