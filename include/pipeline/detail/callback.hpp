/// @file
/// A reference to a callable. A function that takes a Callback need not be a template.
#pragma once

#include <memory>
#include <type_traits>

namespace pipeline::detail {

/// Refers to a callable without copying it; the callable must outlive the Callback.
template <class... A>
class Callback {
 public:
  template <class F>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint excludes Callback.
  requires(!std::is_same_v<std::remove_cvref_t<F>, Callback>) Callback(F&& callable)
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* to, A... arguments) {
          (*static_cast<std::remove_reference_t<F>*>(to))(arguments...);
        }) {}

  void operator()(A... arguments) const { call_(callable_, arguments...); }

 private:
  void* callable_;
  void (*call_)(void*, A...);
};

}  // namespace pipeline::detail
