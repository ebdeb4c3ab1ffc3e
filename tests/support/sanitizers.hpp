/// @file
/// Reasons why a test skips itself under a sanitizer, for GTEST_SKIP().
#pragma once

namespace pipeline::test {

#ifdef __SANITIZE_THREAD__
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif

inline constexpr const char* vfork_is_fork =
    "ThreadSanitizer makes vfork() a fork(): why exec failed stays in the child's memory";

inline constexpr const char* has_shadow =
    "ThreadSanitizer keeps four bytes for each byte of a process, and they are counted";

}  // namespace pipeline::test
