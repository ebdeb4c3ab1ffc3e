/// @file
/// A value that is shared by its copies.
#pragma once

#include <utility>

#include <pipeline/shared_list.hpp>

namespace pipeline {

/// A value whose copies share it until one of them is changed. Only one thread may use a copy while
/// it is changed; other threads may use the other copies.
template <class T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;
  CopyOnWrite(T value) { value_.push_back(std::move(value)); }
  const T& operator*() const { return value_.empty() ? default_value() : value_.at(0); }
  const T* operator->() const { return &**this; }
  /// Returns the value for a change; from then on this copy has a value of its own.
  T* operator->() {
    if (value_.empty()) value_.push_back(default_value());
    return &value_[0];
  }
  operator const T&() const { return **this; }

 private:
  static const T& default_value() {
    static const T value{};
    return value;
  }
  SharedList<T> value_;  ///< At most one value; none: the default value.
};

}  // namespace pipeline
