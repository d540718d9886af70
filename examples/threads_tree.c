/* The sum of a tree on every core: each node submits its children, and whichever thread is idle runs them. */
#include <aco/threads.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct node {
    long value;
    struct node *left, *right;
} node_t;

static node_t *grow(int depth, long *next)
{
    node_t *node = depth ? malloc(sizeof *node) : NULL;
    if (node) {
        node->left = grow(depth - 1, next);
        node->value = (*next)++;
        node->right = grow(depth - 1, next);
    }
    return node;
}

static void fell(node_t *node)
{
    if (node) {
        fell(node->left);
        fell(node->right);
        free(node);
    }
}

static long sum_here(const node_t *node)
{
    return node ? node->value + sum_here(node->left) + sum_here(node->right) : 0;
}

typedef struct part {
    const node_t *node;
    int splits; /* below that many levels one function does the rest */
    long sum;
} part_t;

static void *sum(void *arg)
{
    part_t *part = arg;
    if (!part->node || !part->splits) {
        part->sum = sum_here(part->node);
        return NULL;
    }
    part_t left = {part->node->left, part->splits - 1, 0}, right = {part->node->right, part->splits - 1, 0};
    aco_mt_group_t group;
    aco_mt_group_begin(&group, ACO_CANCEL_ON_FAILURE);
    if (aco_submit(&group, sum, &left, NULL) != 0)
        sum(&left); /* no memory: then here */
    sum(&right);
    if (aco_mt_group_end(&group) != 0)
        return ACO_ERROR;
    part->sum = part->node->value + left.sum + right.sum;
    return NULL;
}

int main(void)
{
    long next = 0;
    node_t *tree = grow(15, &next);
    part_t whole = {tree, 8, 0};
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_FIRST_ONLY;
    if (aco_threads_run(0, sum, &whole, &options) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), 1;
    printf("%ld nodes, sum %ld\n", next, whole.sum);
    fell(tree);
    return whole.sum != next * (next - 1) / 2;
}
