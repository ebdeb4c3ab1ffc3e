#include "docker/context.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/ignore.hpp"
#include "core/lazy_library.hpp"
#include "core/quantity.hpp"

namespace pipeline::docker {

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

/// Writes one entry's header or one block of its data at a time, as the reader asks for more.
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
        check(lazy::archive_write_finish_entry(archive_));  // Fills up with zeros what is missing.
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

/// Walks a folder in the order of paths; `enter` says whether a folder is walked, `take` whether an
/// entry is kept.
template <class Enter, class Take>
void walk(const fs::path& root, const std::string& folder, const Enter& enter, const Take& take,
          std::vector<ContextFile>& files) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator entry(root / folder, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(*entry);
  if (error)
    throw core::system_error("reading the folder " + (root / folder).string(), error.value());
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) {
    return entry.path().filename().string();
  });
  for (auto& entry : entries) {
    auto path = folder.empty() ? entry.path().filename().string()
                               : folder + "/" + entry.path().filename().string();
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) != 0)
      throw core::system_error("reading " + entry.path().string(), errno);
    if (S_ISDIR(status.st_mode)) {
      bool kept = take(path, true);
      if (enter(path)) walk(root, path, enter, take, files);
      if (kept)
        files.push_back({.path = path,
                         .source = entry.path(),
                         .mode = status.st_mode & 07777,
                         .kind = ContextFile::Kind::directory});
    } else if (take(path, false)) {
      if (S_ISLNK(status.st_mode))
        files.push_back({.path = path,
                         .content = fs::read_symlink(entry.path()).string(),
                         .source = entry.path(),
                         .mode = 0777,
                         .kind = ContextFile::Kind::symlink});
      else if (S_ISREG(status.st_mode))
        files.push_back({.path = path,
                         .source = entry.path(),
                         .bytes = static_cast<std::uint64_t>(status.st_size),
                         .mode = status.st_mode & 07777});
      // Sockets, pipes and devices mean nothing in a context.
    }
  }
}

}  // namespace

std::vector<ContextFile> folder_context(const fs::path& root, std::string_view ignore_rules,
                                        const std::vector<std::string>& always) {
  core::DockerIgnore ignore(ignore_rules);
  std::vector<ContextFile> files;
  auto is_needed = [&](const std::string& path) {
    return std::ranges::find(always, path) != always.end();
  };
  auto leads_to_needed = [&](const std::string& path) {
    return std::ranges::any_of(always,
                               [&](auto& needed) { return needed.starts_with(path + "/"); });
  };
  walk(
      root, "",
      [&](const std::string& path) {
        return ignore.has_exceptions() || leads_to_needed(path) || !ignore.ignores(path);
      },
      [&](const std::string& path, bool) { return is_needed(path) || !ignore.ignores(path); },
      files);
  std::ranges::sort(files, {}, &ContextFile::path);
  return files;
}

std::vector<ContextFile> project_files(const fs::path& root,
                                       const std::vector<std::string>& patterns) {
  std::error_code error;
  core::DockerIgnore docker_ignore(
      fs::exists(root / ".dockerignore", error) ? core::read_file(root / ".dockerignore") : "");
  core::GitIgnore git_ignore;
  if (fs::exists(root / ".gitignore", error))
    git_ignore.add("", core::read_file(root / ".gitignore"));
  auto named = [&](const std::string& path) {
    if (patterns.empty()) return true;
    for (auto pattern : patterns) {
      while (pattern.starts_with("./")) pattern.erase(0, 2);
      while (pattern.ends_with('/')) pattern.pop_back();
      if (pattern.empty() || pattern == "." || path == pattern || path.starts_with(pattern + "/") ||
          core::matches_glob(pattern, path))
        return true;
      for (auto slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
        if (core::matches_glob(pattern, path.substr(0, slash))) return true;
    }
    return false;
  };
  auto left_out = [&](const std::string& path, bool folder) {
    return path == ".pipe" || path == ".git" || docker_ignore.ignores(path) ||
           git_ignore.ignores(path, folder);
  };
  std::vector<ContextFile> files;
  walk(
      root, "",
      [&](const std::string& path) {
        if (path == ".pipe" || path == ".git" || git_ignore.ignores(path, true) ||
            (docker_ignore.ignores(path) && !docker_ignore.has_exceptions()))
          return false;
        if (fs::exists(root / path / ".gitignore", error))
          git_ignore.add(path, core::read_file(root / path / ".gitignore"));
        return true;
      },
      [&](const std::string& path, bool folder) {
        return !folder && named(path) && !left_out(path, false);
      },
      files);
  std::ranges::sort(files, {}, &ContextFile::path);
  return files;
}

net::BodySource tar_stream(std::vector<ContextFile> files) {
  // std::function wants to be copied; the copies read one stream.
  auto stream = std::make_shared<TarStream>(std::move(files));
  return [stream](std::span<char> buffer) { return stream->read(buffer); };
}

std::uint64_t size_of(const std::vector<ContextFile>& files) {
  std::uint64_t total = 0;
  for (auto& file : files) total += file.bytes;
  return total;
}

std::string largest(const std::vector<ContextFile>& files, std::size_t count) {
  std::vector<const ContextFile*> order;
  for (auto& file : files) order.push_back(&file);
  count = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [](auto* a, auto* b) { return a->bytes > b->bytes; });
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + order[i]->path + " (" + core::format_bytes(order[i]->bytes) + ")";
  return text;
}

}  // namespace pipeline::docker
