/// @file
/// A list that is shared by its copies.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace pipeline {

/// A list whose copies share its items until one of them is changed, which `[]` and back() of a
/// list that is not const do. Reads like a vector. Takes a pointer, and one block of memory for all
/// copies. Only one thread may use a copy while it is changed; other threads may use the other
/// copies.
template <class T>
class SharedList {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;

  SharedList() = default;
  SharedList(std::vector<T> items) : SharedList(Room{items.size()}) {
    for (auto& item : items) add(std::move(item));
  }
  SharedList(std::initializer_list<T> items) : SharedList(Room{items.size()}) {
    for (const auto& item : items) add(item);
  }
  SharedList(const SharedList& other) noexcept : block_(other.block_) {
    if (block_) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  SharedList(SharedList&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  SharedList& operator=(SharedList other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedList() {
    if (!block_ || block_->owners.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    std::destroy_n(items(), block_->size);
    ::operator delete(block_);
  }

  const T* begin() const { return items(); }
  const T* end() const { return items() + size(); }
  std::size_t size() const { return block_ ? block_->size : 0; }
  bool empty() const { return size() == 0; }
  const T& operator[](std::size_t i) const { return items()[i]; }
  /// Throws std::out_of_range.
  const T& at(std::size_t i) const {
    if (i >= size()) throw std::out_of_range("SharedList::at");
    return items()[i];
  }
  const T& back() const { return items()[size() - 1]; }

  T& operator[](std::size_t i) {
    if (is_shared()) move_to(size());
    return items()[i];
  }
  T& back() { return (*this)[size() - 1]; }
  void push_back(T item) {
    if (is_shared() || room_for(size()) == size()) move_to(size() + 1);
    add(std::move(item));
  }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    push_back(T{std::forward<Arguments>(arguments)...});
    return back();
  }
  void clear() { *this = {}; }
  friend bool operator==(const SharedList& a,
                         const SharedList& b) requires std::equality_comparable<T> {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  /// Stands before the items in their block.
  struct Block {
    std::atomic<std::uint32_t> owners{1};
    std::uint32_t size = 0;
  };
  struct Room {
    std::size_t items;
  };
  explicit SharedList(Room room) {
    static_assert(alignof(T) <= sizeof(Block));
    if (room.items == 0) return;
    block_ = ::new (::operator new(sizeof(Block) + room_for(room.items) * sizeof(T))) Block;
  }

  /// Returns the number of items for which a list of this size has room. Short lists have no spare
  /// room, because most lists have one item.
  static std::size_t room_for(std::size_t size) { return size < 3 ? size : std::bit_ceil(size); }
  T* items() const { return block_ ? reinterpret_cast<T*>(block_ + 1) : nullptr; }
  bool is_shared() const { return block_ && block_->owners.load(std::memory_order_acquire) > 1; }
  /// Adds an item for which there is room.
  void add(T item) {
    std::construct_at(items() + block_->size, std::move(item));
    ++block_->size;
  }
  /// Copies the items, or moves them if nothing shares them, to a block with more room.
  void move_to(std::size_t size) {
    SharedList made(Room{size});
    for (std::size_t i = 0; i < this->size(); ++i)
      is_shared() ? made.add(items()[i]) : made.add(std::move(items()[i]));
    *this = std::move(made);
  }

  Block* block_ = nullptr;  ///< Null: no items.
};

}  // namespace pipeline
