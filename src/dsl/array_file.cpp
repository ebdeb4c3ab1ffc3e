// Arrays in NumPy's format. Version 1.0 is written: "\x93NUMPY", 1, 0, the header's length in two
// bytes, a Python dictionary, blanks up to a multiple of 64 bytes, data.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

#include <pipeline/array.hpp>

#include "core/file.hpp"
#include "core/text.hpp"
#include "dsl/array_folder.hpp"

static_assert(std::endian::native == std::endian::little,
              "the element types of arrays are written as little-endian");

namespace pipeline::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic("\x93NUMPY\x01\x00", 8);
constexpr std::size_t alignment = 64;
constexpr std::size_t max_header = 4096;

/// The folder that make_arrays_in() has set.
std::string& memory_folder() {
  static std::string folder;
  return folder;
}

/// Throws CodecError with the description of a failed system call.
[[noreturn]] void fail(const std::string& what, int error) {
  throw CodecError(what + ": " + std::strerror(error));
}

/// Throws CodecError: the file cannot be read, for the reason.
[[noreturn]] void refuse(const std::string& file, const std::string& reason) {
  throw CodecError("cannot read " + file + ": " + reason);
}

/// Returns NumPy's name of an element type: `<f4`, `|u1`, `|V24`.
std::string descr_of(ElementType type) {
  const char order = type.kind == 'V' || type.size == 1 ? '|' : '<';
  return std::string{order, type.kind} + std::to_string(type.size);
}

/// Returns the header of a .npy file, up to the data.
std::string header_of(ElementType type, std::span<const std::size_t> shape) {
  std::string text = "{'descr': '" + descr_of(type) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? " " : "") + std::to_string(shape[i]) + ",";
  if (shape.size() > 1) text.pop_back();
  text += "), }";
  const std::size_t begin = magic.size() + 2;
  while ((begin + text.size() + 1) % alignment != 0) text += ' ';
  text += '\n';
  std::string header(magic);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

struct Header {
  std::string descr;
  std::vector<std::size_t> shape;
  bool fortran_order = false;
  std::size_t size = 0;  ///< Offset of the data in bytes.
};

/// Returns the text between `'key': ` and the next of the characters in `ends`; empty if there is
/// no such key.
std::string member(std::string_view text, std::string_view key, std::string_view ends) {
  const auto at = text.find("'" + std::string(key) + "':");
  if (at == text.npos) return {};
  const auto begin = text.find_first_not_of(' ', at + key.size() + 3);
  const auto end = text.find_first_of(ends, begin == text.npos ? begin : begin + 1);
  return begin == text.npos || end == text.npos ? std::string()
                                                : std::string(text.substr(begin, end - begin));
}

/// Parses the header of a .npy file.
/// @param begin the first bytes of the file
/// @param file  the file's name for messages
Header parse(std::string_view begin, const std::string& file) {
  if (begin.size() < 10 || begin.substr(0, 6) != magic.substr(0, 6))
    refuse(file, "expected a .npy array, but the file lacks its signature");
  const bool is_long = begin[6] >= 2;  // From version 2 on, the length has four bytes, not two.
  if (begin.size() < 12) refuse(file, "the file is truncated");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(begin[i]));
  };
  const std::size_t length =
      byte(8) | byte(9) << 8 | (is_long ? byte(10) << 16 | byte(11) << 24 : 0);
  Header header;
  header.size = (is_long ? 12 : 10) + length;
  if (header.size > begin.size())
    refuse(file, begin.size() < max_header ? "the file is truncated" : "the header is too long");
  const auto text = begin.substr(is_long ? 12 : 10, length);
  header.descr = member(text, "descr", ",");
  if (header.descr.size() >= 2) header.descr = header.descr.substr(1, header.descr.size() - 2);
  header.fortran_order = member(text, "fortran_order", ",}") == "True";
  const auto shape = member(text, "shape", ")");
  if (header.descr.empty() || shape.empty())
    refuse(file, "the .npy header lacks the type or the shape");
  for (std::size_t i = 1; i < shape.size();) {
    if (shape[i] < '0' || shape[i] > '9') {
      ++i;
      continue;
    }
    std::size_t n = 0;
    for (; i < shape.size() && shape[i] >= '0' && shape[i] <= '9'; ++i)
      if (__builtin_mul_overflow(n, std::size_t{10}, &n) ||
          __builtin_add_overflow(n, static_cast<std::size_t>(shape[i] - '0'), &n))
        refuse(file, "its shape is too large");
    header.shape.push_back(n);
  }
  return header;
}

/// Returns the element type in words, for messages; a type that arrays of C++ do not have, as it
/// is.
std::string describe(const std::string& descr) {
  const auto size = descr.substr(std::min<std::size_t>(descr.size(), 2));
  constexpr std::size_t max_digits = 9;
  if (size.empty() || size.size() > max_digits || !core::all(size, core::is_digit))
    return "'" + descr + "'";
  const auto bits = [&] { return std::to_string(std::stoul(size) * 8); };
  switch (descr[1]) {
    case 'f': return "floating point numbers of " + bits() + " bits";
    case 'i': return "integers of " + bits() + " bits";
    case 'u': return "unsigned integers of " + bits() + " bits";
    case 'V': return "structs of " + size + " bytes";
    default: return "'" + descr + "'";
  }
}

/// Returns the number of bytes of data; throws if the array has other elements or is truncated.
std::size_t check(const Header& header, ElementType type, std::size_t file_size,
                  const std::string& file) {
  if (const auto descr = descr_of(type); header.descr != descr)
    refuse(file, "expected an array of " + describe(descr) + ", found " + describe(header.descr));
  if (header.fortran_order && header.shape.size() > 1)
    refuse(file, "expected C's order of elements, found Fortran's (numpy.ascontiguousarray helps)");
  std::size_t bytes = type.size;
  for (const auto n : header.shape)
    if (__builtin_mul_overflow(bytes, n, &bytes)) refuse(file, "its shape is too large");
  if (file_size < header.size || file_size - header.size != bytes)
    refuse(file, "expected " + std::to_string(bytes) + " bytes of data for the shape, found " +
                     std::to_string(file_size < header.size ? 0 : file_size - header.size));
  return bytes;
}

struct OpenArray {
  core::Descriptor file;
  Header header;
  std::size_t bytes;  ///< Size of the data.
};

/// Opens a .npy file, and checks that it has elements of this type.
OpenArray open_array(const std::string& path, ElementType type) {
  OpenArray opened{core::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), {}, 0};
  if (!opened.file) fail("cannot read " + path, errno);
  struct stat status {};
  ::fstat(opened.file.get(), &status);
  if (S_ISDIR(status.st_mode))
    throw CodecError("cannot read " + path + ": expected a .npy array, found a folder");
  char begin[max_header];
  const auto got = ::pread(opened.file.get(), begin, sizeof begin, 0);
  if (got < 0) fail("cannot read " + path, errno);
  opened.header = parse({begin, static_cast<std::size_t>(got)}, path);
  opened.bytes = check(opened.header, type, static_cast<std::size_t>(status.st_size), path);
  return opened;
}

core::Descriptor create(const std::string& path) {
  core::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) fail("cannot write " + path, errno);
  return file;
}

}  // namespace

void make_arrays_in(const std::string& folder) { memory_folder() = folder; }

ArrayMemory::~ArrayMemory() {
  if (start_) ::munmap(start_, length_);
  if (file_ >= 0) ::close(file_);
}

ArrayMemory::ArrayMemory(ArrayMemory&& other) noexcept { *this = std::move(other); }

ArrayMemory& ArrayMemory::operator=(ArrayMemory&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(data_, other.data_);
  std::swap(length_, other.length_);
  std::swap(file_, other.file_);
  std::swap(writable_, other.writable_);
  return *this;
}

ArrayMemory ArrayMemory::make(ElementType type, std::span<const std::size_t> shape) {
  const auto header = header_of(type, shape);
  std::size_t bytes = type.size;
  for (const auto n : shape)
    if (__builtin_mul_overflow(bytes, n, &bytes)) throw CodecError("an array cannot be that large");
  ArrayMemory memory;
  memory.length_ = header.size() + bytes;
  const auto& folder = memory_folder();
  // The pages of an unnamed file need no swap, and save() only has to link the file.
  if (!folder.empty()) memory.file_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (memory.file_ >= 0 && ::ftruncate(memory.file_, static_cast<off_t>(memory.length_)) != 0)
    fail("cannot make an array", errno);
  memory.start_ =
      ::mmap(nullptr, memory.length_, PROT_READ | PROT_WRITE,
             memory.file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
             memory.file_, 0);
  if (memory.start_ == MAP_FAILED) {
    memory.start_ = nullptr;
    fail("cannot make an array of " + std::to_string(bytes) + " bytes", errno);
  }
  std::memcpy(memory.start_, header.data(), header.size());
  memory.data_ = static_cast<char*>(memory.start_) + header.size();
  memory.writable_ = true;
  return memory;
}

ArrayMemory ArrayMemory::map(const std::string& path, ElementType type,
                             std::vector<std::size_t>& shape) {
  auto opened = open_array(path, type);
  ArrayMemory memory;
  memory.length_ = opened.header.size + opened.bytes;
  memory.start_ = ::mmap(nullptr, memory.length_, PROT_READ, MAP_SHARED, opened.file.get(), 0);
  if (memory.start_ == MAP_FAILED) {
    memory.start_ = nullptr;
    fail("cannot map " + path, errno);
  }
  memory.data_ = static_cast<char*>(memory.start_) + opened.header.size;
  memory.file_ = opened.file.release();
  shape = std::move(opened.header.shape);
  return memory;
}

void ArrayMemory::save(const std::string& path) const {
  if (file_ >= 0 && writable_) {
    const auto self = "/proc/self/fd/" + std::to_string(file_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
    if (errno == EEXIST) fail("cannot write " + path, EEXIST);
  }
  const auto file = create(path);
  core::write_fully(file.get(), {static_cast<const char*>(start_), length_}, path);
}

void write_array(const std::string& path, ElementType type, std::span<const std::size_t> shape,
                 const void* data) {
  const auto file = create(path);
  const auto header = header_of(type, shape);
  const auto bytes = std::accumulate(shape.begin(), shape.end(), type.size, std::multiplies<>());
  core::write_fully(file.get(), header, path);
  core::write_fully(file.get(), {static_cast<const char*>(data), bytes}, path);
}

void read_only_array() {
  throw std::logic_error(
      "pipeline::Array: the input of a step is read-only; read it as a const Array");
}

void read_array(const std::string& path, ElementType type, void* vector,
                void* (*resize)(void*, std::size_t)) {
  const auto opened = open_array(path, type);
  auto* to = static_cast<char*>(resize(vector, opened.bytes / type.size));
  for (std::size_t done = 0; done < opened.bytes;) {
    const auto got = ::pread(opened.file.get(), to + done, opened.bytes - done,
                             static_cast<off_t>(opened.header.size + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("cannot read " + path, got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace pipeline::detail
