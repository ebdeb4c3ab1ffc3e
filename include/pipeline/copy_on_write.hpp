/// @file
/// A value that is shared by its copies.
#pragma once

#include <memory>
#include <utility>

namespace pipeline {

/// A value whose copies share it until one of them is changed. Changed copies belong to one thread.
template <class T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;
  CopyOnWrite(T value) : value_(std::make_shared<T>(std::move(value))) {}
  const T& operator*() const { return value_ ? *value_ : default_value(); }
  const T* operator->() const { return &**this; }
  /// Returns the value for a change; from then on this copy has a value of its own.
  T* operator->() {
    if (!value_ || value_.use_count() > 1) value_ = std::make_shared<T>(*std::as_const(*this));
    return value_.get();
  }
  operator const T&() const { return **this; }

 private:
  static const T& default_value() {
    static const T value{};
    return value;
  }
  std::shared_ptr<T> value_;  ///< Shared by the copies. Null: the default value.
};

}  // namespace pipeline
