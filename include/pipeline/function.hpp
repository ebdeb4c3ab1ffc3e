/// @file
/// A callable as a value. What std::function does, without <functional>: that header takes longer
/// to read than all of ours together.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace pipeline {

template <class Signature>
class Function;

/// Copies share what was given: a lambda's captures are one, however often it is copied.
template <class R, class... A>
class Function<R(A...)> {
 public:
  /// Nothing to call.
  Function() = default;
  template <class F>
  requires(!std::is_same_v<F, Function> && std::is_invocable_r_v<R, F&, A...>) Function(F function)
      : callable_(std::make_shared<F>(std::move(function))),
        call_([](void* callable, A... arguments) -> R {
          return (*static_cast<F*>(callable))(std::forward<A>(arguments)...);
        }) {}

  explicit operator bool() const { return call_ != nullptr; }
  /// To be called only if there is something to call.
  R operator()(A... arguments) const {
    return call_(callable_.get(), std::forward<A>(arguments)...);
  }

 private:
  std::shared_ptr<void> callable_;
  R (*call_)(void*, A...) = nullptr;
};

}  // namespace pipeline
