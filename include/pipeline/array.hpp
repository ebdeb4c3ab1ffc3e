/// @file
/// Large arrays in NumPy's .npy format, which are read and written without a copy:
/// `numpy.load(path, mmap_mode="r")` reads the result of a C++ step, and a C++ step reads a file of
/// `numpy.save`.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipeline/detail/array.hpp>

namespace pipeline {

/// An artifact that cannot be stored or read because it is missing, truncated or of another type.
/// `what()` names the file, what was expected, and what was found.
class CodecError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

/// True for the element types of arrays: numbers, and structs of numbers without pointers, whose
/// bytes mean the same in every process.
template <class T>
concept ArrayElement = !std::is_same_v<T, bool> && !std::is_enum_v<T> && detail::plain_bytes<T>();

/// An array of any number of dimensions in row-major order: the last index changes fastest. As a
/// step's input it is a read-only mapping of the file; pages are read when they are used, so that
/// memory is bounded. As a step's result it is memory that becomes the output's file by a hard
/// link. Can be moved, not copied.
///
/// ```cpp
/// pl::Array<float> normalise(const pl::Array<float>& images) {
///   pl::Array<float> result(images.shape());
///   for (std::size_t i = 0; i < images.size(); ++i) result[i] = images[i] / 255;
///   return result;
/// }
/// ```
template <ArrayElement T>
class Array {
 public:
  /// Makes an array without dimensions and elements.
  Array() = default;
  /// Makes an array filled with zeroes. @param shape number of elements in each dimension. Throws
  /// CodecError if there is not enough memory or disk for the array.
  explicit Array(std::vector<std::size_t> shape) : shape_(std::move(shape)) {
    memory_ = detail::ArrayMemory::make(detail::element_type<T>, shape_);
  }
  /// Makes an array of one dimension with `size` elements, filled with zeroes.
  explicit Array(std::size_t size) : Array(std::vector{size}) {}

  /// Maps a .npy file, read-only. Throws CodecError if the file is not an array of T.
  static Array map(const std::string& file) {
    Array array;
    array.memory_ = detail::ArrayMemory::map(file, detail::element_type<T>, array.shape_);
    return array;
  }
  /// Writes the array as .npy. `file` must not exist. Throws CodecError.
  void save(const std::string& file) const {
    constexpr std::size_t shape_of_none[] = {0};
    if (memory_.data())
      memory_.save(file);
    else
      detail::write_array(file, detail::element_type<T>, shape_of_none, nullptr);
  }

  /// Number of elements in each dimension.
  const std::vector<std::size_t>& shape() const { return shape_; }
  /// Number of elements in all dimensions together.
  std::size_t size() const {
    if (shape_.empty() && !memory_.data()) return 0;
    std::size_t size = 1;
    for (const auto extent : shape_) size *= extent;
    return size;
  }
  const T* data() const { return static_cast<const T*>(memory_.data()); }
  /// Throws std::logic_error for a mapped file, such as a step's input.
  T* data() {
    if (memory_.data() && !memory_.writable()) detail::read_only_array();
    return static_cast<T*>(memory_.data());
  }
  const T& operator[](std::size_t i) const { return data()[i]; }
  /// For speed, does not check what data() checks: a write to a mapped file ends the process.
  T& operator[](std::size_t i) { return static_cast<T*>(memory_.data())[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  std::span<const T> span() const { return {data(), size()}; }
  std::span<T> span() { return {data(), size()}; }

 private:
  std::vector<std::size_t> shape_;
  detail::ArrayMemory memory_;
};

}  // namespace pipeline
