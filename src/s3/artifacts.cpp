#include "s3/artifacts.hpp"

#include <cerrno>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "file_tree/content.hpp"
#include "file_tree/unpack.hpp"

namespace pipeline::s3 {

namespace fs = std::filesystem;

namespace {

// Maximum size that a server copies in one request.
constexpr std::uint64_t largest_copy = std::uint64_t{5} << 30;

Body body_of(const fs::path& path) {
  auto content = std::make_shared<const file_tree::Content>(  // Shared because a Body is copied.
      fs::is_directory(path) ? file_tree::Content(path, file_tree::scan_tree(path))
                             : file_tree::Content(path));
  Body body;
  body.size = content->size();
  body.read = [content](std::uint64_t offset, std::span<char> into) {
    return content->read(offset, into);
  };
  return body;
}

}  // namespace

bool is_executable_file(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 && (status.st_mode & S_IXUSR);
}

Bucket& BucketArtifacts::bucket() {
  if (!bucket_) bucket_.emplace(loop_, settings_, retry_policy_);
  return *bucket_;
}

async::Task<> BucketArtifacts::probe() {
  if (is_probed_) co_return;
  co_await bucket().probe();
  is_probed_ = true;
}

std::string BucketArtifacts::key_of(const std::string& digest, bool is_tree) {
  return "artifacts/" + digest.substr(0, 2) + "/" + digest.substr(2) + (is_tree ? ".tar" : "");
}

async::Task<bool> BucketArtifacts::has(std::string key) {
  if (distrusted_.contains(key)) co_return false;
  if (there_.find(key)) co_return true;
  const bool is_there = co_await bucket().has(key);
  if (is_there) there_.set(key, true);
  co_return is_there;
}

async::Task<std::string> BucketArtifacts::send(std::string digest, fs::path path,
                                               core::CancelSource* cancel) {
  const auto key = key_of(digest, fs::is_directory(path));
  const std::function<async::Task<bool>()> make = [&]() -> async::Task<bool> {
    if (distrusted_.erase(key) == 0) {
      const bool is_there = co_await bucket().has(key);
      if (is_there) co_return true;
    }
    auto body = body_of(path);
    co_await bucket().put(key, std::move(body), cancel);
    co_return true;
  };
  co_await there_.get(key, make, cancel);
  co_return key;
}

async::Task<> BucketArtifacts::adopt(std::string object, std::string digest, bool is_tree,
                                     std::uint64_t bytes) {
  const auto key = key_of(digest, is_tree);
  if (bytes > largest_copy) co_return;
  const std::function<async::Task<bool>()> make = [&]() -> async::Task<bool> {
    co_await bucket().copy(object, key);
    distrusted_.erase(key);
    co_return true;
  };
  try {
    co_await there_.get(key, make, nullptr);
  } catch (const S3Error& error) {
    core::log::info(error.what());
  }
}

async::Task<std::string> BucketArtifacts::receive(std::string object, fs::path to, bool is_tree,
                                                  bool is_executable, std::uint64_t most_bytes,
                                                  core::CancelSource* cancel) {
  core::Hasher hasher;
  if (is_tree) {
    core::make_folders(to);
    file_tree::Unpacker unpacker(to, {.bytes = most_bytes});
    const auto unpack = [&object](const auto& step) {
      try {
        step();
      } catch (const core::EnvironmentError& error) {
        throw UnusableObject("cannot unpack " + object + ": " + error.what(), error.advice());
      }
    };
    const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
      hasher.update(bytes);
      unpack([&] { unpacker.feed(bytes); });
    };
    co_await bucket().get(object, on_bytes, cancel);
    unpack([&] { unpacker.finish(); });
  } else {
    const core::Descriptor file(
        ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_executable ? 0755 : 0644));
    if (!file) throw core::system_error("cannot write " + to.string(), errno);
    std::uint64_t left = most_bytes;
    const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
      if (bytes.size() > left)
        throw UnusableObject("cannot use " + object + ": it has more than the " +
                             std::to_string(most_bytes) + " bytes that were announced");
      left -= bytes.size();
      hasher.update(bytes);
      core::write_fully(file.get(), bytes, to);
    };
    co_await bucket().get(object, on_bytes, cancel);
  }
  co_return hasher.finish().hex();
}

}  // namespace pipeline::s3
