/// @file
/// Large arrays that go to and from disk without a copy, in NumPy's .npy format: `numpy.load(path,
/// mmap_mode="r")` reads what a C++ step has made, and a C++ step reads what `numpy.save` has.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <pipeline/fields.hpp>
#include <pipeline/function.hpp>

namespace pipeline {

/// An artifact that cannot be stored or read: missing, cut short, of another type. `what()` names
/// the file and says what was expected and found.
class CodecError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

namespace detail {

template <class T>
constexpr bool plain_bytes();

template <class T, std::size_t... I>
constexpr bool plain_fields(std::index_sequence<I...>) {
  return (plain_bytes<FieldType<T, I>>() && ...);
}

template <class T>
constexpr bool plain_bytes() {
  if constexpr (!std::is_trivially_copyable_v<T>)
    return false;
  else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
    return true;
  else if constexpr (requires {
                       std::tuple_size<T>::value, typename T::value_type();
                     })  // std::array
    return plain_bytes<typename T::value_type>();
  else if constexpr (PlainStruct<T>)
    return plain_fields<T>(std::make_index_sequence<field_count<T>()>());
  else
    return requires(T value) { value.real(), value.imag(); };  // std::complex
}

}  // namespace detail

/// What can be an element of an array on disk, since its bytes mean the same everywhere: numbers,
/// and structs of numbers without pointers.
template <class T>
concept ArrayElement = !std::is_same_v<T, bool> && !std::is_enum_v<T> && detail::plain_bytes<T>();

namespace detail {

/// NumPy's name of the element type: `<f4`, `<i8`, and `|V24` for a struct of 24 bytes.
template <ArrayElement T>
std::string element_descr() {
  if constexpr (std::is_arithmetic_v<T>)
    return std::string(sizeof(T) == 1 ? "|" : "<") +
           (std::is_floating_point_v<T> ? "f"
            : std::is_signed_v<T>       ? "i"
                                        : "u") +
           std::to_string(sizeof(T));
  else
    return "|V" + std::to_string(sizeof(T));
}

/// The memory of an Array: of this process, or a file's. Moved, never copied.
class ArrayMemory {
 public:
  ArrayMemory() = default;
  ~ArrayMemory();
  ArrayMemory(ArrayMemory&& other) noexcept;
  ArrayMemory& operator=(ArrayMemory&& other) noexcept;
  /// Zeroed memory that a step's output can be made of without a copy. Throws CodecError (no
  /// memory, no disk).
  static ArrayMemory make(const std::string& descr, const std::vector<std::size_t>& shape,
                          std::size_t element_size);
  /// A file's, read-only, read as it is used. Throws CodecError if it is no array of this element
  /// type.
  static ArrayMemory map(const std::string& file, const std::string& descr,
                         std::size_t element_size, std::vector<std::size_t>& shape);
  /// Makes it the content of `file`, which is not there yet: a link if the memory has been made
  /// beside it, else one write.
  void save(const std::string& file) const;
  void* data() const { return data_; }
  bool writable() const { return writable_; }

 private:
  void* start_ =
      nullptr;  ///< Where the header lies; 64 bytes or a multiple of them before the data.
  void* data_ = nullptr;
  std::size_t length_ = 0;  ///< With the header, bytes.
  int file_ = -1;           ///< An unlinked file that holds it, or -1.
  bool writable_ = false;
};

void write_array(const std::string& file, const std::string& descr,
                 const std::vector<std::size_t>& shape, const void* data, std::size_t bytes);
/// Reads into what `allocate(count)` gives: room for `count` elements.
void read_array(const std::string& file, const std::string& descr, std::size_t element_size,
                const Function<void*(std::size_t)>& allocate);

}  // namespace detail

/// An array of any number of dimensions, the last one running fastest. As a step's input it is the
/// file itself, read-only and read page by page, so that memory stays bounded; as a result, memory
/// that becomes the output's file by one link.
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
  /// Empty.
  Array() = default;
  /// Zeroes. @param shape elements in each dimension. Throws CodecError if there is no memory or
  /// disk for it.
  explicit Array(std::vector<std::size_t> shape) : shape_(std::move(shape)) {
    memory_ = detail::ArrayMemory::make(detail::element_descr<T>(), shape_, sizeof(T));
  }
  /// One dimension of `size` zeroes.
  explicit Array(std::size_t size) : Array(std::vector{size}) {}

  /// The file's content, mapped. Throws CodecError.
  static Array map(const std::string& file) {
    Array array;
    array.memory_ =
        detail::ArrayMemory::map(file, detail::element_descr<T>(), sizeof(T), array.shape_);
    return array;
  }
  /// Writes it as .npy; `file` must not be there yet. Throws CodecError.
  void save(const std::string& file) const {
    if (memory_.data())
      memory_.save(file);
    else
      detail::write_array(file, detail::element_descr<T>(), {0}, nullptr, 0);
  }

  /// Elements in each dimension.
  const std::vector<std::size_t>& shape() const { return shape_; }
  /// Elements in all.
  std::size_t size() const {
    if (shape_.empty() && !memory_.data()) return 0;
    std::size_t size = 1;
    for (const auto extent : shape_) size *= extent;
    return size;
  }
  const T* data() const { return static_cast<const T*>(memory_.data()); }
  /// Throws std::logic_error for a step's input, which is read-only.
  T* data() {
    if (memory_.data() && !memory_.writable())
      throw std::logic_error(
          "pipeline::Array: the input of a step is read-only; read it as a const Array");
    return static_cast<T*>(memory_.data());
  }
  const T& operator[](std::size_t i) const { return data()[i]; }
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
