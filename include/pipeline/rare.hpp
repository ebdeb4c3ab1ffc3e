/// @file
/// An optional value, a text, a path, a list and a map for members that few objects use. Each takes
/// no more than a pointer while unused.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
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
  SharedList<T> value_;  ///< One at most.
};
using RareText = RareValue<std::string>;

/// A list that takes only a pointer while it is empty, and one block of memory with its size
/// otherwise. Reads like a vector.
template <class T>
class RareList {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  RareList() = default;
  RareList(std::vector<T> items) : RareList() {
    move_to(items.size());
    for (T& item : items) push_back(std::move(item));
  }
  RareList(std::initializer_list<T> items) : RareList(std::vector<T>(items)) {}
  RareList(const RareList& other) : RareList() {
    move_to(other.size());
    for (const T& item : other) push_back(item);
  }
  RareList(RareList&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  RareList& operator=(RareList other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~RareList() { clear(); }

  T* begin() { return block_ ? reinterpret_cast<T*>(block_ + 1) : nullptr; }
  T* end() { return begin() + size(); }
  const T* begin() const { return block_ ? reinterpret_cast<const T*>(block_ + 1) : nullptr; }
  const T* end() const { return begin() + size(); }
  std::size_t size() const { return block_ ? block_->size : 0; }
  bool empty() const { return size() == 0; }
  T& operator[](std::size_t i) { return std::span(begin(), size())[i]; }
  const T& operator[](std::size_t i) const { return std::span(begin(), size())[i]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  const T& back() const { return (*this)[size() - 1]; }

  void push_back(T item) {
    if (!block_ || block_->size == block_->capacity) move_to(size() == 0 ? 1 : 2 * size());
    std::construct_at(end(), std::move(item));
    ++block_->size;
  }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    push_back(T(std::forward<Arguments>(arguments)...));
    return back();
  }
  void shrink_to_fit() {
    if (block_ && block_->size < block_->capacity) move_to(block_->size);
  }
  void clear() {
    if (!block_) return;
    std::destroy(begin(), end());
    std::allocator<Header>().deallocate(block_, headers_for(block_->capacity));
    block_ = nullptr;
  }
  /// Removes the items for which `is_unwanted` returns true, and frees their memory.
  template <class Predicate>
  friend void erase_if(RareList& list, Predicate is_unwanted) {
    T* const kept = std::remove_if(list.begin(), list.end(), std::move(is_unwanted));
    if (kept == list.end()) return;
    std::destroy(kept, list.end());
    list.block_->size = static_cast<std::uint32_t>(kept - list.begin());
    list.shrink_to_fit();
  }
  friend bool operator==(const RareList& a,
                         const RareList& b) requires std::equality_comparable<T> {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  /// Stands before the items in their block.
  struct alignas(std::uint64_t) Header {
    std::uint32_t size, capacity;
  };

  /// Returns the size of a block, in headers.
  static std::size_t headers_for(std::size_t capacity) {
    return 1 + (capacity * sizeof(T) + sizeof(Header) - 1) / sizeof(Header);
  }

  /// Moves the items to a block of this capacity; to none if it is 0.
  void move_to(std::size_t capacity) {
    static_assert(alignof(T) <= alignof(Header) && std::is_nothrow_move_constructible_v<T>);
    if (capacity > UINT32_MAX) throw std::length_error("a RareList has too many items");
    RareList moved;
    if (capacity > 0) {
      moved.block_ = std::construct_at(std::allocator<Header>().allocate(headers_for(capacity)));
      moved.block_->capacity = static_cast<std::uint32_t>(capacity);
      std::uninitialized_move(begin(), end(), moved.begin());
      moved.block_->size = static_cast<std::uint32_t>(size());
    }
    std::swap(block_, moved.block_);
  }

  Header* block_ = nullptr;
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
