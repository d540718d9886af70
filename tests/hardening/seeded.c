/* Faults that landing pads and signed return addresses are for, to show that they are looked at. seeded: none; seeded
 * pad: a branch to where there is no landing pad; seeded signature: a return to an address that was changed after it
 * was signed. */
#include <string.h>

static __attribute__((noinline)) int next(int x)
{
    __asm__("");
    return x + 1;
}

void return_elsewhere(void);
__asm__(".text\n"
        "\t.p2align 2\n"
        "\t.type return_elsewhere,%function\n"
        "return_elsewhere:\n"
        "\tmov x10,x30\n"
        "\tmov x9,#4\n"
        "1:\tmov x30,x10\n"
        "\thint #25\n" /* paciasp */
        "\teor x30,x30,x9\n"
        "\thint #29\n" /* autiasp */
        "\teor x11,x10,x9\n"
        "\tlsl x9,x9,#1\n"
        "\ttbnz x9,#20,2f\n"
        "\tcmp x30,x11\n"
        "\tb.eq 1b\n" /* a signature has few bits: one of 128 changed addresses has the same */
        "2:\tret\n"
        "\t.size return_elsewhere,.-return_elsewhere\n");

int main(int argc, char **argv)
{
    int (*volatile function)(int) = next;
    if (argc > 1 && strcmp(argv[1], "pad") == 0)
        function = (int (*)(int))(void *)((char *)function + 4);
    if (argc > 1 && strcmp(argv[1], "signature") == 0)
        return_elsewhere();
    return function(1) - 2;
}
