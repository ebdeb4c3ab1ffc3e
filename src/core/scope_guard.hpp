/// @file
/// A function that is called at the end of a scope.
#pragma once

#include <utility>

namespace pipeline::core {

/// Calls the function on destruction; the function must not throw.
template <class Function>
class [[nodiscard]] ScopeGuard {
 public:
  explicit ScopeGuard(Function function) : function_(std::move(function)) {}
  ~ScopeGuard() { function_(); }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Function function_;
};

}  // namespace pipeline::core
