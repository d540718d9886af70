/* Tree iterators: a recursive walk that hands out one element at a time.
 *
 * aco::generator makes a range of a function that yields from any depth of its recursion. So two walks can go on side
 * by side, which a callback cannot do: do two trees of different shapes hold the same sequence? */
#include "aco.hpp"

#include <iostream>
#include <memory>
#include <vector>

#include "aco_assert_override.h"

struct node {
    int key;
    std::unique_ptr<node> left, right;
};
using tree = std::unique_ptr<node>;

static void insert(tree &t, int key)
{
    if (!t)
        t = tree(new node{key, nullptr, nullptr});
    else
        insert(key < t->key ? t->left : t->right, key);
}

static tree make_tree(const std::vector<int> &keys)
{
    tree t;
    for (int key : keys)
        insert(t, key);
    return t;
}

/* The recursion is a plain one. An element costs one switch, however deep it stands. */
static void walk(const tree &t, aco::yielder<const int &> &yield)
{
    if (!t)
        return;
    walk(t->left, yield);
    yield(t->key);
    walk(t->right, yield);
}

static aco::generator<const int &> in_order(const tree &t)
{
    return aco::generator<const int &>([&t](auto &yield) { walk(t, yield); });
}

static bool same_sequence(const tree &a, const tree &b)
{
    auto left = in_order(a), right = in_order(b);
    auto i = left.begin(), j = right.begin();
    for (; i != left.end() && j != right.end(); ++i, ++j)
        if (*i != *j)
            return false; /* both walks end here, in the middle: the generators' destructors cancel them */
    return i == left.end() && j == right.end();
}

/* Generators out of generators: the elements of the inner ones go to the consumer directly. */
static aco::generator<const int &> one_after_the_other(const tree &a, const tree &b)
{
    return aco::generator<const int &>([&](auto &yield) {
        yield.yield_from(in_order(a));
        yield.yield_from(in_order(b));
    });
}

int main()
{
    tree bushy = make_tree({4, 2, 6, 1, 3, 5, 7});
    tree thin = make_tree({1, 2, 3, 4, 5, 6, 7});
    tree other = make_tree({4, 2, 6, 1, 3, 5, 8});

    std::vector<int> keys;
    for (int key : in_order(bushy))
        keys.push_back(key);
    assert((keys == std::vector<int>{1, 2, 3, 4, 5, 6, 7}));

    bool alike = same_sequence(bushy, thin), unlike = same_sequence(thin, other);
    std::cout << "bushy and thin: " << (alike ? "the same" : "different") << "\n";
    std::cout << "thin and other: " << (unlike ? "the same" : "different") << "\n";
    assert(alike && !unlike);

    std::cout << "one after the other:";
    int sum = 0;
    for (int key : one_after_the_other(bushy, other)) {
        std::cout << " " << key;
        sum += key;
    }
    std::cout << "\n";
    assert(sum == 28 + 29);

    /* Only as much is computed as is asked for. */
    auto keys_of_thin = in_order(thin);
    auto first = keys_of_thin.begin();
    while (*first < 3)
        ++first;
    std::cout << "first key from 3 on: " << *first << "\n";
    assert(*first == 3);
}
