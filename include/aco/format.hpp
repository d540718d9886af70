/* States and addresses as text: operator<< of streams, and std::format where the standard library has it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   std::cout << aco_state(co) << " " << peer;                  // "suspended 127.0.0.1:8080"
 *   std::format("{:>9} {}", aco_state(co), peer);
 *
 * An aco_state_t that is none of the enumerators is "unknown". Writing an aco::address throws what its text() throws,
 * and needs acorn_io. */
#ifndef ACO_FORMAT_HPP
#define ACO_FORMAT_HPP

#include "../aco.hpp"
#include "io.hpp"

#include <ostream>
#include <string_view>
#if __has_include(<version>)
#include <version>
#endif

#ifdef __cpp_lib_format
#include <format>
#endif

namespace aco {
inline namespace ACO__CPP_KIND {

inline const char *text_of(aco_state_t state) noexcept
{
    switch (state) {
    case ACO_STATE_READY: return "ready";
    case ACO_STATE_RUNNING: return "running";
    case ACO_STATE_RESUMING: return "resuming";
    case ACO_STATE_SUSPENDED: return "suspended";
    case ACO_STATE_DONE: return "done";
    }
    return "unknown";
}

inline std::ostream &operator<<(std::ostream &out, const address &a) { return out << a.text(); }

} // namespace ACO__CPP_KIND
} // namespace aco

/* In the namespace of the enumeration, where a stream looks for it. */
inline std::ostream &operator<<(std::ostream &out, aco_state_t state) { return out << aco::text_of(state); }

#ifdef __cpp_lib_format
template<>
struct std::formatter<aco_state_t> : std::formatter<std::string_view> {
    auto format(aco_state_t state, std::format_context &context) const
    {
        return std::formatter<std::string_view>::format(aco::text_of(state), context);
    }
};
template<>
struct std::formatter<aco::address> : std::formatter<std::string_view> {
    auto format(const aco::address &a, std::format_context &context) const
    {
        return std::formatter<std::string_view>::format(a.text(), context);
    }
};
#endif

#endif
