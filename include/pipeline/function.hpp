/// @file
/// A callable as a value: std::function without <functional>, whose header takes longer to compile
/// than all public headers together.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace pipeline {

template <class Signature>
class Function;

/// Calls the object that it was constructed from. Copies share that object: the captures of a
/// lambda exist once.
template <class R, class... A>
class Function<R(A...)> {
 public:
  /// Makes an empty function, which must not be called.
  Function() = default;
  template <class F>
  requires(!std::is_same_v<F, Function> && std::is_invocable_r_v<R, F&, A...>) Function(F function)
      : callable_(std::make_shared<F>(std::move(function))),
        call_([](void* callable, A... arguments) -> R {
          return (*static_cast<F*>(callable))(std::forward<A>(arguments)...);
        }) {}

  /// Returns false if the function is empty.
  explicit operator bool() const { return call_ != nullptr; }
  /// Calls the object. Undefined behaviour if the function is empty.
  R operator()(A... arguments) const {
    return call_(callable_.get(), std::forward<A>(arguments)...);
  }

 private:
  std::shared_ptr<void> callable_;  ///< Shared by the copies.
  R (*call_)(void*, A...) = nullptr;
};

}  // namespace pipeline
