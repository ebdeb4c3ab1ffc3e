#include "file_tree/tar_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "file_tree/tar_writer.hpp"

namespace pipeline::file_tree {
namespace {

/// Bytes; a multiple of tar's block size, so that only the last piece of a file needs padding.
constexpr std::size_t piece_size = 64 * 1024;

/// Writes the header of one entry or one piece of its content each time the reader asks for more.
class TarStream {
 public:
  explicit TarStream(std::vector<ContextFile> files) : files_(std::move(files)) {}

  std::size_t read(std::span<char> buffer) {
    if (taken_ == pending_.size() && !is_complete_) {
      pending_.clear();
      taken_ = 0;
      if (left_ > 0) {
        put_piece(files_[next_ - 1].source);
      } else if (next_ < files_.size()) {
        begin(files_[next_++]);
      } else {
        pending_ = tar_end();
        is_complete_ = true;
      }
    }
    const auto count = std::min(buffer.size(), pending_.size() - taken_);
    std::memcpy(buffer.data(), pending_.data() + taken_, count);
    taken_ += count;
    return count;
  }

 private:
  void begin(const ContextFile& file) {
    TarHeader header{.name = file.path, .mode = file.mode};
    if (file.kind == ContextFile::Kind::directory) {
      header.type = '5';
    } else if (file.kind == ContextFile::Kind::symlink) {
      header.type = '2';
      header.link = *file.content;
    } else if (file.content) {
      header.size = file.content->size();
    } else {
      header.size = left_ = open(file.source);
    }
    pending_ = tar_header(header);
    if (file.kind == ContextFile::Kind::file && file.content)
      pending_ += *file.content + tar_padding(header.size);
  }

  /// Opens the file, and returns its size.
  std::uint64_t open(const std::filesystem::path& file) {
    content_ = std::ifstream(file, std::ios::binary);
    std::error_code error;
    if (!content_) error.assign(errno, std::generic_category());
    const auto size = error ? 0 : std::filesystem::file_size(file, error);
    if (error) throw core::system_error("cannot read " + file.string(), error.value());
    return size;
  }

  void put_piece(const std::filesystem::path& file) {
    pending_.resize(std::min<std::uint64_t>(piece_size, left_));  // Zeros.
    content_.read(pending_.data(), static_cast<std::streamsize>(pending_.size()));
    if (content_.bad()) throw core::system_error("cannot read " + file.string(), errno);
    left_ -= pending_.size();
    if (left_ == 0) pending_ += tar_padding(pending_.size());  // Earlier pieces need none.
  }

  std::vector<ContextFile> files_;
  std::size_t next_ = 0;
  std::string pending_;  ///< Bytes of the archive; read() has returned the first `taken_`.
  std::size_t taken_ = 0;
  std::ifstream content_;   ///< The file whose content is sent.
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
