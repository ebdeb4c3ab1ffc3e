/// @file
/// An optional value, a text, a path, a list and a map for members that few objects use. Each takes
/// no more than a pointer while unused.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipeline/shared_list.hpp>

namespace pipeline {

/// An optional value that takes only a pointer while absent. A copy of the object copies the value.
template <class T>
class Rare {
 public:
  Rare() = default;
  Rare(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Rare(std::optional<T> value) {
    if (value) value_ = std::make_unique<T>(std::move(*value));
  }
  Rare(const Rare& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(Rare other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Rare() = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    value_ = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    return *value_;
  }
  void reset() { value_.reset(); }
  std::optional<T> optional() const { return value_ ? std::optional<T>(*value_) : std::nullopt; }
  T value_or(T other) const { return value_ ? *value_ : std::move(other); }

 private:
  std::unique_ptr<T> value_;
};

/// A text or path that takes only a pointer while empty, and that its copies share. Converts to the
/// text or path.
template <class T>
class RareValue {
 public:
  RareValue() = default;
  RareValue(T value) {
    if (!value.empty()) value_.push_back(std::move(value));
  }
  template <class U>
  requires(!std::same_as<U, T> && !std::same_as<U, RareValue> && std::convertible_to<const U&, T>)
      RareValue(const U& value)
      : RareValue(T(value)) {}

  const T& operator*() const {
    static const T none;
    return value_.empty() ? none : value_.at(0);
  }
  const T* operator->() const { return &**this; }
  operator const T&() const { return **this; }
  bool empty() const { return value_.empty(); }
  friend bool operator==(const RareValue& a, const RareValue& b) { return *a == *b; }
  template <class U>
  requires(!std::same_as<U, RareValue> && std::convertible_to<const U&, T>) friend bool operator==(
      const RareValue& a, const U& b) {
    return *a == b;
  }

 private:
  SharedList<T> value_;  ///< At most one value.
};
using RareText = RareValue<std::string>;

/// A list that takes only a pointer while nothing has been added to it. Reads like a vector.
template <class T>
class RareList {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  RareList() = default;
  /// Gives back the room that the vector has for further items.
  RareList(std::vector<T> items) {
    if (items.empty()) return;
    items.shrink_to_fit();
    items_ = std::make_unique<std::vector<T>>(std::move(items));
  }
  RareList(std::initializer_list<T> items) : RareList(std::vector<T>(items)) {}
  RareList(const RareList& other)
      : items_(other.empty() ? nullptr : std::make_unique<std::vector<T>>(*other.items_)) {}
  RareList(RareList&&) noexcept = default;
  RareList& operator=(RareList other) noexcept {
    items_ = std::move(other.items_);
    return *this;
  }
  ~RareList() = default;

  T* begin() { return items_ ? items_->data() : nullptr; }
  T* end() { return begin() + size(); }
  const T* begin() const { return items_ ? items_->data() : nullptr; }
  const T* end() const { return begin() + size(); }
  std::size_t size() const { return items_ ? items_->size() : 0; }
  bool empty() const { return size() == 0; }
  T& operator[](std::size_t i) { return (*items_)[i]; }
  const T& operator[](std::size_t i) const { return (*items_)[i]; }
  T& front() { return items_->front(); }
  const T& front() const { return items_->front(); }
  T& back() { return items_->back(); }
  const T& back() const { return items_->back(); }

  /// Returns the list as a vector, for changes that this class has no function for.
  std::vector<T>& vector() {
    if (!items_) items_ = std::make_unique<std::vector<T>>();
    return *items_;
  }
  void push_back(T item) { vector().push_back(std::move(item)); }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    return vector().emplace_back(std::forward<Arguments>(arguments)...);
  }
  void shrink_to_fit() {
    if (items_) items_->shrink_to_fit();
  }
  void clear() { items_.reset(); }
  friend bool operator==(const RareList& a,
                         const RareList& b) requires std::equality_comparable<T> {
    if (a.empty() || b.empty()) return a.empty() == b.empty();
    return *a.items_ == *b.items_;
  }

 private:
  std::unique_ptr<std::vector<T>> items_;
};

/// A map that takes only a pointer while nothing has been written to it. Reads like the map `M`.
template <class M>
class RareMap {
 public:
  using key_type = typename M::key_type;
  using mapped_type = typename M::mapped_type;
  using value_type = typename M::value_type;
  using iterator = typename M::const_iterator;
  using const_iterator = typename M::const_iterator;

  RareMap() = default;
  RareMap(M map) {
    if (!map.empty()) map_ = std::move(map);
  }
  RareMap(std::initializer_list<value_type> values) : RareMap(M(values)) {}

  const M& operator*() const {
    static const M none;
    return map_ ? *map_ : none;
  }
  operator const M&() const { return **this; }
  const_iterator begin() const { return (**this).begin(); }
  const_iterator end() const { return (**this).end(); }
  const_iterator find(const key_type& key) const { return (**this).find(key); }
  std::size_t size() const { return (**this).size(); }
  bool empty() const { return (**this).empty(); }
  bool contains(const key_type& key) const { return (**this).contains(key); }
  const mapped_type& at(const key_type& key) const { return (**this).at(key); }

  mapped_type& operator[](const key_type& key) {
    if (!map_) map_.emplace();
    return (*map_)[key];
  }
  void clear() { map_.reset(); }
  friend bool operator==(const RareMap& a, const RareMap& b) { return *a == *b; }

 private:
  Rare<M> map_;
};

}  // namespace pipeline
