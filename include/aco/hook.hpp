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

/* Begins hooks when it is made (aco_hook_begin()) and ends them when it is destroyed (aco_hook_end()), which must be in
 * the same task. Objects nest. The constructor throws aco::error when aco_hook_begin() fails. */
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
