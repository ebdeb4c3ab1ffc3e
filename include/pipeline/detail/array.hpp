/// @file
/// The memory and files of arrays.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipeline/detail/fields.hpp>

namespace pipeline::detail {

template <class T>
constexpr bool plain_bytes();

template <class T, std::size_t... I>
constexpr bool plain_fields(std::index_sequence<I...>) {
  return (plain_bytes<FieldType<T, I>>() && ...);
}

/// Returns true if a T's bytes mean the same in every process: numbers, and types of them.
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

/// The type of an array's elements: `<f4` or `<i8` in NumPy's notation, and `|V24` for a struct of
/// 24 bytes.
struct ElementType {
  char kind;         ///< f, i, u or V.
  std::size_t size;  ///< Bytes.
};

template <class T>
inline constexpr ElementType element_type{!std::is_arithmetic_v<T>      ? 'V'
                                          : std::is_floating_point_v<T> ? 'f'
                                          : std::is_signed_v<T>         ? 'i'
                                                                        : 'u',
                                          sizeof(T)};

/// The memory of an Array: private to this process, or a mapped file. Can be moved, not copied.
class ArrayMemory {
 public:
  ArrayMemory() = default;
  ~ArrayMemory();
  ArrayMemory(ArrayMemory&& other) noexcept;
  ArrayMemory& operator=(ArrayMemory&& other) noexcept;
  /// Returns zeroed memory that becomes a step's output without a copy. Throws CodecError if there
  /// is no memory or disk for it.
  static ArrayMemory make(ElementType type, std::span<const std::size_t> shape);
  /// Maps a file read-only; its pages are read when they are used. Throws CodecError if the file is
  /// not an array of this element type.
  static ArrayMemory map(const std::string& file, ElementType type,
                         std::vector<std::size_t>& shape);
  /// Creates `file`, which must not exist, with this content: by a link if the memory is a file in
  /// the same file system, otherwise by one write.
  void save(const std::string& file) const;
  void* data() const { return data_; }
  bool writable() const { return writable_; }

 private:
  void* start_ = nullptr;  ///< Start of the header, a multiple of 64 bytes before the data.
  void* data_ = nullptr;
  std::size_t length_ = 0;  ///< Bytes, including the header.
  int file_ = -1;           ///< The mapped file, or the unnamed file that is the memory; -1: none.
  bool writable_ = false;
};

void write_array(const std::string& file, ElementType type, std::span<const std::size_t> shape,
                 const void* data);
/// Reads an array of any shape into a vector. @param resize resizes the vector to `count` elements
/// and returns its data
void read_array(const std::string& file, ElementType type, void* vector,
                void* (*resize)(void* vector, std::size_t count));
[[noreturn]] void read_only_array();

}  // namespace pipeline::detail
