/* Hooks for a block, for C++17 and later, on top of <aco/hook.h>. Header only; link acorn_hook.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   {
 *       aco::hooks hooked; // until the end of the block libc's blocking calls park this task
 *       connection.query("SELECT 1");
 *   } */
#ifndef ACO_HOOK_HPP
#define ACO_HOOK_HPP

#include "../aco.hpp"
#include "hook.h"

namespace aco {
inline namespace ACO__CPP_KIND {

/* Calls aco_hook_begin() and aco_hook_end(), in the same task. These nest. Throws aco::error as the first. */
class hooks {
public:
    hooks()
    {
        if (aco_hook_begin() != 0)
            detail::refused();
    }
    ~hooks() { (void)aco_hook_end(); }
    hooks(const hooks &) = delete;
    hooks &operator=(const hooks &) = delete;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
