#include "blobs/folder/folder_store.hpp"

#include <algorithm>
#include <random>

#include "async/on_pool.hpp"
#include "async/sleep.hpp"
#include "core/digest.hpp"
#include "core/user_environment.hpp"

namespace pipeline::blobs::folder {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::string_view scheme = "file://";
constexpr std::size_t piece_size = 1 << 20;
constexpr auto lock_interval = 20ms, lock_timeout = 60'000ms;

std::unique_ptr<SharedFolder::NewFile> new_file(const SharedFolder& folder) {
  auto file = std::make_unique<SharedFolder::NewFile>(folder);
  file->create();
  return file;
}

std::string tag_of(std::string_view text) { return core::sha256(text).hex(); }

void throw_if_stopped(const core::CancelSource* cancel, const std::string& key) {
  if (cancel && cancel->level() != core::StopLevel::none)
    throw core::EnvironmentError("stopped before the end of " + key);
}

/// Reads `file:///FOLDER` and paths that cannot be names: `/FOLDER`, `./FOLDER`, `~/FOLDER`.
std::optional<std::string> read_address(const std::string& text, const fs::path& base) {
  fs::path path;
  const auto home = core::variable("HOME");
  if (text.starts_with(scheme))
    path = text.substr(scheme.size());
  else if (text.starts_with("~/") && !home.empty())
    path = fs::path(home) / text.substr(2);
  else if (text.starts_with('/') || text.starts_with("./") || text.starts_with("../"))
    path = base / text;
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (!path.is_absolute() || !path.has_filename()) return std::nullopt;
  return std::string(scheme) + path.string();
}

}  // namespace

async::Task<> FolderStore::probe() {
  const auto key = "pipe-probe-" + std::to_string(std::random_device{}());
  const std::string text = "written to see whether it can be\n";
  const auto tag = co_await put_if(key, text, "");
  if (tag) co_await put_if(key, text, *tag);
  const auto read = co_await find_text(key);
  if (read != text)
    throw core::EnvironmentError("a file that was written to " + url() + " came back changed");
  co_await remove(key);
  co_await async::on_pool(pool_, [this] { folder_.remove_abandoned(); });
}

async::Task<bool> FolderStore::has(std::string key) {
  co_return co_await async::on_pool(pool_, [&] { return folder_.find(key).has_value(); });
}

async::Task<> FolderStore::put(std::string key, Body body, core::CancelSource* cancel) {
  const auto file = co_await async::on_pool(pool_, [&] { return new_file(folder_); });
  std::string piece(std::min<std::uint64_t>(piece_size, body.size), '\0');
  for (std::uint64_t done = 0; done < body.size;) {
    throw_if_stopped(cancel, key);
    done += co_await async::on_pool(pool_, [&] {
      const auto size = std::min<std::uint64_t>(piece.size(), body.size - done);
      const auto count = body.read(done, std::span(piece).first(size));
      if (count == 0)
        throw core::EnvironmentError("cannot write " + key + " to " + url() +
                                     ": the file became shorter while it was sent");
      file->write(std::string_view(piece).substr(0, count));
      return count;
    });
  }
  co_await async::on_pool(pool_, [&] {
    file->sync();
    folder_.replace(*file, key);
  });
}

async::Task<> FolderStore::get(std::string key, Range range,
                               std::function<void(std::string_view)> on_bytes,
                               core::CancelSource* cancel) {
  const auto file = co_await async::on_pool(pool_, [&] { return folder_.find(key); });
  if (!file) throw BlobError(BlobError::Kind::missing_blob, "there is no " + key + " in " + url());
  std::string piece(std::min<std::uint64_t>(piece_size, range.size), '\0');
  for (auto left = range.size; left > 0;) {
    throw_if_stopped(cancel, key);
    const auto size = std::min<std::uint64_t>(piece.size(), left);
    const auto count = co_await async::on_pool(pool_, [&] {
      return folder_.read(*file, key, range.begin + (range.size - left),
                          std::span(piece).first(size));
    });
    if (count > 0) on_bytes(std::string_view(piece).substr(0, count));
    if (count < size) co_return;
    left -= count;
  }
}

async::Task<std::optional<Tagged>> FolderStore::find_tagged(std::string key, core::CancelSource*,
                                                            Lookup) {
  auto text = co_await async::on_pool(pool_, [&] { return folder_.find_text(key); });
  std::optional<Tagged> found;
  if (text) {
    auto tag = tag_of(*text);
    found = Tagged{std::move(*text), std::move(tag)};
  }
  co_return found;
}

async::Task<core::Descriptor> FolderStore::lock(const std::string& key) {
  const auto latest = std::chrono::steady_clock::now() + lock_timeout;
  for (;;) {
    auto locked = co_await async::on_pool(pool_, [&] { return folder_.try_lock(key); });
    if (locked) co_return std::move(*locked);
    if (std::chrono::steady_clock::now() > latest)
      throw core::EnvironmentError("cannot write " + key + " to " + url() +
                                   ": another process has locked it for a minute");
    co_await async::sleep(lock_interval, nullptr);
  }
}

async::Task<std::optional<std::string>> FolderStore::put_if(std::string key, std::string text,
                                                            std::string tag) {
  const auto file = co_await async::on_pool(pool_, [&] {
    auto made = new_file(folder_);
    made->write(text);
    made->sync();
    return made;
  });
  bool is_written = false;
  if (tag.empty()) {
    is_written = co_await async::on_pool(pool_, [&] { return folder_.add(*file, key); });
  } else {
    const auto locked = co_await lock(key);
    is_written = co_await async::on_pool(pool_, [&] {
      const auto present = folder_.find_text(key);
      if (!present || tag_of(*present) != tag) return false;
      folder_.replace(*file, key);
      return true;
    });
  }
  co_return is_written ? std::optional(tag_of(text)) : std::nullopt;
}

async::Task<std::vector<Entry>> FolderStore::entries(std::string prefix) {
  co_return co_await async::on_pool(pool_, [&] { return folder_.entries(prefix); });
}

async::Task<std::vector<std::string>> FolderStore::folders(std::string folder) {
  co_return co_await async::on_pool(pool_, [&] { return folder_.folders(folder); });
}

async::Task<> FolderStore::remove(std::string key) {
  co_await async::on_pool(pool_, [&] { folder_.remove(key); });
}

async::Task<> FolderStore::copy(std::string from, std::string to, std::uint64_t /*bytes*/) {
  co_await async::on_pool(pool_, [&] { folder_.copy(from, to); });
}

const Kind& kind() {
  static const Kind kind{
      .scheme = scheme,
      .example = "file:///mnt/shared/pipe",
      .can_presign = false,
      .options = {},
      .read_address = read_address,
      .open = [](asio::io_context&, const settings::RemoteStoreSettings& settings,
                 async::RetryPolicy) -> std::unique_ptr<BlobStore> {
        return std::make_unique<FolderStore>(settings.url.substr(scheme.size()));
      }};
  return kind;
}

}  // namespace pipeline::blobs::folder
