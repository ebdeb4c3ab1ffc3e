/// @file
/// Cleans up after a coroutine that has returned or thrown. A destructor cannot do this if the
/// clean-up has to be awaited.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "async/task.hpp"

namespace pipeline::async {

/// Runs `work`, then `cleanup()`, a coroutine. Returns the result of `work`. If both throw, the
/// exception of `work` is the one that is thrown.
/// @param cleanup a named object, or a closure that captures by reference: g++ 12 destroys any
/// other closure twice (see is_safe_in_await)
template <class T, class Cleanup>
Task<T> finally(Task<T> work, Cleanup&& cleanup) {
  static_assert(is_safe_in_await<Cleanup>);
  std::exception_ptr error;
  std::optional<std::conditional_t<std::is_void_v<T>, bool, T>> result;
  try {
    if constexpr (std::is_void_v<T>)
      co_await std::move(work);
    else
      result.emplace(co_await std::move(work));
  } catch (...) {
    error = std::current_exception();
  }
  try {
    co_await cleanup();
  } catch (...) {
    if (!error) throw;
  }
  if (error) std::rethrow_exception(error);
  if constexpr (!std::is_void_v<T>) co_return std::move(*result);
}

}  // namespace pipeline::async
