#include "file_tree/tar_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include <archive.h>
#include <archive_entry.h>

#include "core/error.hpp"
#include "core/lazy_library.hpp"

namespace pipeline::file_tree {

namespace fs = std::filesystem;

namespace {

#define PIPELINE_ARCHIVE_FUNCTION(name) \
  constinit const core::LazyFunction<decltype(::name)> name { PIPELINE_ARCHIVE_SONAME, #name }
namespace lazy {
PIPELINE_ARCHIVE_FUNCTION(archive_write_new);
PIPELINE_ARCHIVE_FUNCTION(archive_write_free);
PIPELINE_ARCHIVE_FUNCTION(archive_write_set_format_gnutar);
PIPELINE_ARCHIVE_FUNCTION(archive_write_set_bytes_in_last_block);
PIPELINE_ARCHIVE_FUNCTION(archive_write_open);
PIPELINE_ARCHIVE_FUNCTION(archive_write_header);
PIPELINE_ARCHIVE_FUNCTION(archive_write_data);
PIPELINE_ARCHIVE_FUNCTION(archive_write_finish_entry);
PIPELINE_ARCHIVE_FUNCTION(archive_write_close);
PIPELINE_ARCHIVE_FUNCTION(archive_error_string);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_new);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_free);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_set_pathname);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_set_size);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_set_filetype);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_set_perm);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_set_mtime);
PIPELINE_ARCHIVE_FUNCTION(archive_entry_set_symlink);
}  // namespace lazy
#undef PIPELINE_ARCHIVE_FUNCTION

/// Writes the header of one entry or one block of its data each time the reader asks for more.
class TarStream {
 public:
  explicit TarStream(std::vector<ContextFile> files)
      : files_(std::move(files)), archive_(lazy::archive_write_new()) {
    check(lazy::archive_write_set_format_gnutar(archive_));
    check(lazy::archive_write_set_bytes_in_last_block(archive_, 1));
    check(lazy::archive_write_open(
        archive_, this, nullptr,
        [](struct archive*, void* self, const void* data, std::size_t size) -> la_ssize_t {
          static_cast<TarStream*>(self)->pending_.append(static_cast<const char*>(data), size);
          return static_cast<la_ssize_t>(size);
        },
        nullptr));
  }
  ~TarStream() { lazy::archive_write_free(archive_); }
  TarStream(const TarStream&) = delete;
  TarStream& operator=(const TarStream&) = delete;

  std::size_t read(std::span<char> buffer) {
    while (pending_.size() == taken_ && !closed_) {
      pending_.clear();
      taken_ = 0;
      step();
    }
    auto count = std::min(buffer.size(), pending_.size() - taken_);
    std::memcpy(buffer.data(), pending_.data() + taken_, count);
    taken_ += count;
    return count;
  }

 private:
  void check(la_ssize_t result) {
    if (result < ARCHIVE_WARN) {
      auto* text = lazy::archive_error_string(archive_);
      throw core::EnvironmentError(std::string("cannot pack the build context: ") +
                                   (text ? text : "libarchive failed"));
    }
  }

  void step() {
    if (in_file_) {
      std::array<char, 64 * 1024> block;
      auto wanted = std::min<std::uint64_t>(block.size(), left_);
      file_.read(block.data(), static_cast<std::streamsize>(wanted));
      auto got = static_cast<std::size_t>(file_.gcount());
      if (file_.bad())
        throw core::system_error("reading " + files_[next_ - 1].source.string(), errno);
      if (got > 0) check(lazy::archive_write_data(archive_, block.data(), got));
      left_ -= got;
      if (left_ == 0 || got == 0) {
        check(lazy::archive_write_finish_entry(archive_));  // Pads missing bytes with zeros.
        file_.close();
        in_file_ = false;
      }
      return;
    }
    if (next_ == files_.size()) {
      check(lazy::archive_write_close(archive_));
      closed_ = true;
      return;
    }
    begin(files_[next_++]);
  }

  void begin(const ContextFile& file) {
    std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(lazy::archive_entry_new(),
                                                                   lazy::archive_entry_free.get());
    lazy::archive_entry_set_pathname(entry.get(), file.path.c_str());
    lazy::archive_entry_set_mtime(entry.get(), 0, 0L);
    lazy::archive_entry_set_perm(entry.get(), static_cast<__LA_MODE_T>(file.mode));
    switch (file.kind) {
      case ContextFile::Kind::directory:
        lazy::archive_entry_set_filetype(entry.get(), static_cast<unsigned>(AE_IFDIR));
        break;
      case ContextFile::Kind::symlink:
        lazy::archive_entry_set_filetype(entry.get(), static_cast<unsigned>(AE_IFLNK));
        lazy::archive_entry_set_symlink(entry.get(), file.content->c_str());
        break;
      case ContextFile::Kind::file:
        lazy::archive_entry_set_filetype(entry.get(), static_cast<unsigned>(AE_IFREG));
        break;
    }
    if (file.kind == ContextFile::Kind::file) {
      if (file.content) {
        left_ = file.content->size();
      } else {
        file_.clear();
        file_.open(file.source, std::ios::binary);
        if (!file_)
          throw core::system_error("reading " + file.source.string() + " for the build context",
                                   errno);
        std::error_code error;
        left_ = fs::file_size(file.source, error);
        if (error)
          throw core::system_error("reading " + file.source.string() + " for the build context",
                                   error.value());
        in_file_ = true;
      }
      lazy::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(left_));
    }
    check(lazy::archive_write_header(archive_, entry.get()));
    if (file.kind == ContextFile::Kind::file && file.content) {
      if (!file.content->empty())
        check(lazy::archive_write_data(archive_, file.content->data(), file.content->size()));
      check(lazy::archive_write_finish_entry(archive_));
    }
  }

  std::vector<ContextFile> files_;
  struct archive* archive_;
  std::size_t next_ = 0, taken_ = 0;
  std::uint64_t left_ = 0;
  std::string pending_;
  std::ifstream file_;
  bool in_file_ = false, closed_ = false;
};

}  // namespace

TarSource tar_stream(std::vector<ContextFile> files) {
  // std::function has to be copyable; all copies read the same stream.
  auto stream = std::make_shared<TarStream>(std::move(files));
  return [stream](std::span<char> buffer) { return stream->read(buffer); };
}

}  // namespace pipeline::file_tree
