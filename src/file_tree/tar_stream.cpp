#include "file_tree/tar_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace pipeline::file_tree {
namespace {

constexpr std::size_t block_size = 512, piece_size = 64 * 1024;

void pad(std::string& archive) {
  archive.resize((archive.size() + block_size - 1) / block_size * block_size);
}

/// Writes octal digits and a zero byte into a field of a header. A number that has too many digits
/// becomes a big-endian one behind a set high bit, as GNU tar writes it.
void put_number(std::string& header, std::size_t offset, std::size_t size, std::uint64_t number) {
  const bool is_octal = number >> 3 * (size - 1) == 0;
  if (is_octal) header[offset + size - 1] = '\0';
  for (auto at = offset + size - (is_octal ? 2 : 1); at >= offset && at < header.size(); --at) {
    header[at] = static_cast<char>(is_octal ? '0' + number % 8 : number % 256);
    number /= is_octal ? 8 : 256;
  }
  if (!is_octal) header[offset] = static_cast<char>(header[offset] | 0x80);
}

struct Header {
  char type;  ///< `0` a file, `2` a symbolic link, `5` a folder.
  std::string_view name, target = {};
  unsigned mode = 0;
  std::uint64_t size = 0;
};

void put_header(std::string& archive, const Header& header) {
  constexpr std::size_t max_name = 100, checksum_at = 148;
  // An entry of its own holds a name that is too long for its field.
  for (const auto& [type, text] : {std::pair('K', header.target), std::pair('L', header.name)}) {
    if (text.size() <= max_name) continue;
    put_header(archive, {.type = type, .name = "././@LongLink", .size = text.size() + 1});
    archive.append(text) += '\0';
    pad(archive);
  }
  std::string block(block_size, '\0');
  header.name.copy(block.data(), max_name);
  put_number(block, 100, 8, header.mode);
  put_number(block, 108, 8, 0);  // The owner and the group: root.
  put_number(block, 116, 8, 0);
  put_number(block, 124, 12, header.size);
  put_number(block, 136, 12, 0);  // The time of the last change.
  block.replace(checksum_at, 8, 8, ' ');
  block[156] = header.type;
  header.target.copy(block.data() + 157, max_name);
  block.replace(257, 7, "ustar  ");
  std::uint64_t sum = 0;
  for (const unsigned char byte : block) sum += byte;
  put_number(block, checksum_at, 7, sum);
  archive += block;
}

/// Writes the header of one entry or one piece of its content each time the reader asks for more.
class TarStream {
 public:
  explicit TarStream(std::vector<ContextFile> files) : files_(std::move(files)) {}

  std::size_t read(std::span<char> buffer) {
    if (taken_ == pending_.size() && !is_complete_) {
      pending_.clear();
      taken_ = 0;
      if (left_ > 0)
        put_piece(files_[next_ - 1]);
      else if (next_ < files_.size())
        begin(files_[next_++]);
      else
        finish();
    }
    const auto count = std::min(buffer.size(), pending_.size() - taken_);
    std::memcpy(buffer.data(), pending_.data() + taken_, count);
    taken_ += count;
    return count;
  }

 private:
  void finish() {
    pending_.resize(2 * block_size);
    is_complete_ = true;
  }

  void begin(const ContextFile& file) {
    using Kind = ContextFile::Kind;
    if (file.kind == Kind::directory)
      return put_header(pending_, {.type = '5', .name = file.path + '/', .mode = file.mode});
    if (file.kind == Kind::symlink)
      return put_header(
          pending_, {.type = '2', .name = file.path, .target = *file.content, .mode = file.mode});
    if (!file.content) {
      std::error_code error;
      content_.clear();
      content_.open(file.source, std::ios::binary);
      if (content_) left_ = std::filesystem::file_size(file.source, error);
      if (!content_ || error)
        throw core::system_error("reading " + file.source.string() + " for the build context",
                                 error ? error.value() : errno);
    }
    const auto size = file.content ? file.content->size() : left_;
    put_header(pending_, {.type = '0', .name = file.path, .mode = file.mode, .size = size});
    if (file.content) pending_ += *file.content;
    pad(pending_);
    if (left_ == 0) content_.close();
  }

  void put_piece(const ContextFile& file) {
    pending_.resize(std::min<std::uint64_t>(piece_size, left_));  // Zeros.
    content_.read(pending_.data(), static_cast<std::streamsize>(pending_.size()));
    if (content_.bad()) throw core::system_error("reading " + file.source.string(), errno);
    left_ -= pending_.size();
    if (left_ > 0) return;
    pad(pending_);
    content_.close();
  }

  std::vector<ContextFile> files_;
  std::size_t next_ = 0;
  std::string pending_;  ///< Bytes of the archive, the first `taken_` of which were read.
  std::size_t taken_ = 0;
  std::ifstream content_;   ///< The file that is sent.
  std::uint64_t left_ = 0;  ///< Bytes of that file that were not sent yet.
  bool is_complete_ = false;
};

}  // namespace

TarSource tar_stream(std::vector<ContextFile> files) {
  // std::function has to be copyable; all copies read the same stream.
  auto stream = std::make_shared<TarStream>(std::move(files));
  return [stream](std::span<char> buffer) { return stream->read(buffer); };
}

}  // namespace pipeline::file_tree
