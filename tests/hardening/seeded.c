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
        "\thint #25\n" /* paciasp */
        "\teor x30,x30,#4\n"
        "\thint #29\n" /* autiasp */
        "\tret\n"
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
