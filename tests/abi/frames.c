/* Every inline switch in the smallest function that can hold it, and seeded_ functions, which lack what s390x.h and
 * ppc64le.h rely on: a frame, a TOC pointer. Compiled by tools/platforms/objects.py, which looks at the code; never
 * run. */
#include "aco.h"
#include "aco/in_stack_generator.h"
#include "aco/scheduler.h"

void frame_resume(aco_t *co);
void *frame_send(aco_t *co, void *value);
void frame_yield(void);
void *frame_yield_value(void *value);
int frame_yield_to(aco_t *co);
int frame_task_yield(void);
int frame_next(aco_generator_t *g);
void frame_close(aco_generator_t *g);
int frame_next_in_stack(aco_in_stack_t *g);
int frame_close_in_stack(aco_in_stack_t *g);
void seeded_no_frame(void);
void *seeded_no_toc(void);

void frame_resume(aco_t *co)
{
    aco_resume(co);
}

void *frame_send(aco_t *co, void *value)
{
    return aco_send(co, value);
}

void frame_yield(void)
{
    aco_yield();
}

void *frame_yield_value(void *value)
{
    return aco_yield_value(value);
}

int frame_yield_to(aco_t *co)
{
    return aco_yield_to(co);
}

int frame_task_yield(void)
{
    return aco_task_yield();
}

int frame_next(aco_generator_t *g)
{
    return aco_generator_next(g);
}

void frame_close(aco_generator_t *g)
{
    aco_generator_close(g);
}

int frame_next_in_stack(aco_in_stack_t *g)
{
    return aco_in_stack_next(g);
}

int frame_close_in_stack(aco_in_stack_t *g)
{
    return aco_in_stack_close(g);
}

ACO_GENERATOR(frame_generator, y, arg)
{
    aco_generate(y, arg);
}

ACO_IN_STACK_GENERATOR(frame_generator_in_stack, y, arg)
{
    aco_generate_in_stack(y, arg);
}

aco_generator_function_t *const frame_generators[] = {frame_generator};
aco_in_stack_function_t *const frame_generators_in_stack[] = {frame_generator_in_stack};

#ifdef __s390x__
void seeded_no_frame(void)
{
    __asm__ volatile(ACO__KEEP_FIXED "" : : : "memory");
}
#endif

#ifdef __powerpc64__
void *seeded_no_toc(void)
{
    void *here;
    __asm__(ACO__ADDRESS("%0", "1f") "1:" : "=b"(here));
    return here;
}
#endif
