/// @file
/// Shared libraries that are loaded on the first call of one of their functions, so that commands
/// that do not need them start faster.
#pragma once

#include <atomic>

namespace pipeline::core {

/// Returns the address of `symbol` in the library `soname`. Throws EnvironmentError that names both
/// if either is missing.
void* load_symbol(const char* soname, const char* symbol);

/// A function of a library that is loaded on the first call. The object
/// `LazyFunction<decltype(::curl_easy_init)> easy_init{soname, "curl_easy_init"};` is called like
/// the function itself.
template <class Signature>
class LazyFunction {
 public:
  constexpr LazyFunction(const char* soname, const char* symbol)
      : soname_(soname), symbol_(symbol) {}
  template <class... Arguments>
  decltype(auto) operator()(Arguments... arguments) const {
    return get()(arguments...);
  }
  Signature* get() const {
    auto* function = function_.load(std::memory_order_acquire);
    if (!function)
      function_.store(function = reinterpret_cast<Signature*>(load_symbol(soname_, symbol_)),
                      std::memory_order_release);
    return function;
  }

 private:
  const char* soname_;
  const char* symbol_;
  mutable std::atomic<Signature*> function_ = nullptr;
};

}  // namespace pipeline::core
