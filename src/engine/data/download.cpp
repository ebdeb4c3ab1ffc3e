#include "engine/data/download.hpp"

#include <algorithm>
#include <map>

#include "async/deadline.hpp"
#include "async/on_pool.hpp"
#include "async/parallel.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "engine/clock.hpp"
#include "engine/data/data_input.hpp"
#include "engine/data/pinned_data.hpp"
#include "fetch/transfer.hpp"
#include "settings/remote_store.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// Files of one folder that are fetched at a time.
constexpr std::size_t max_files_at_once = 8;
/// Maximum number of changed files of a folder that a plan lists.
constexpr std::size_t max_listed_changes = 10;
/// Kind of the stored values with the last list of a folder's files.
constexpr auto list_kind = "listed data";

asio::io_context& loop_of(const asio::any_io_executor& executor) {
  return static_cast<asio::io_context&>(asio::query(executor, asio::execution::context));
}

std::string list_key(const DataSpec& data) {
  return core::sha256(lockfile::data_address(data.url, data.version)).hex();
}

/// Returns a line for each file: its size, ETag and path. Blanks in an ETag become `_`, because a
/// blank ends the ETag.
std::string list_text(const std::vector<fetch::Object>& objects) {
  std::string text;
  for (const auto& object : objects) {
    auto tag = object.etag;
    std::ranges::replace_if(
        tag, [](unsigned char c) { return c <= ' '; }, '_');
    text += std::to_string(object.size) + ":" + tag + " " + object.key + "\n";
  }
  return text;
}

/// Returns the size and ETag of each file of a list_text(), by path.
std::map<std::string_view, std::string_view> files_in(std::string_view text) {
  std::map<std::string_view, std::string_view> files;
  for (const auto line : core::split(text, '\n'))
    if (const auto blank = line.find(' '); blank != line.npos)
      files.emplace(line.substr(blank + 1), line.substr(0, blank));
  return files;
}

}  // namespace

/// The content that a download has to have.
struct Downloads::WantedContent {
  DataSpec data;
  std::string sha256;  ///< Hex; empty: any content is accepted.
  std::optional<std::uint64_t> size;
  fetch::ContentState state;  ///< State of new content, at its source.
  std::string version;        ///< Version of the object to read.
  core::CancelSource& stop;   ///< Ends the download.
  bool is_of_lock = false;    ///< The lock file pins the content, or will.

  /// Name of the incomplete content: the same in a later process, and different for other content.
  std::string name() const {
    if (!sha256.empty()) return sha256;
    core::Hasher hasher;
    for (const auto& text : {data.url, data.version, state.etag, state.modified})
      hasher.field(text);
    // A crash of the machine could damage incomplete files of a folder, which have no digest: after
    // a restart the folder gets another name.
    if (!state.objects.empty()) hasher.field(fetch::boot_id());
    return hasher.finish().hex();
  }
};

Downloads::Downloads(const Services& services, EventSink& events, core::CancelSource& stop)
    : artifacts_(services.artifacts),
      store_(services.store),
      folder_(services.store.folder() / downloads_folder),
      remote_store_(services.remote_store ? *services.remote_store
                                          : settings::RemoteStoreSettings()),
      events_(events),
      stop_(stop) {}
Downloads::~Downloads() = default;

async::SingleFlight<core::Digest>& Downloads::flights(const asio::any_io_executor& executor) {
  if (!flights_) flights_ = std::make_unique<async::SingleFlight<core::Digest>>(loop_of(executor));
  return *flights_;
}

fetch::Sources& Downloads::sources(const asio::any_io_executor& executor) {
  if (!sources_) sources_ = std::make_unique<fetch::Sources>(loop_of(executor), remote_store_);
  return *sources_;
}

std::uint64_t Downloads::size_of(const core::Digest& digest) const {
  std::error_code error;
  const auto size = fs::file_size(artifacts_.path(digest), error);
  return error ? 0 : size;
}

core::EnvironmentError Downloads::stopped(const DataSpec& data) const {
  return core::EnvironmentError("the download of " + name_of(data) + " was stopped");
}

async::Task<fetch::ContentState> Downloads::state(const DataSpec& data, core::CancelSource& stop,
                                                  async::RetryPolicy retries) {
  auto& from = sources(co_await asio::this_coro::executor);
  const auto address = fetch::address_of(data.url, data.version);
  auto state = co_await from.state(address, stop, retries);
  if (state.etag.empty() && state.modified.empty())
    throw core::EnvironmentError(
        "the server gives neither an ETag nor a date (Last-Modified) of " + name_of(data) +
            ", so that a change there would not be noticed",
        {"write `{url: ..., sha256: ...}`; `curl -L URL | sha256sum` prints the digest"});
  co_return state;
}

async::Task<core::Digest> Downloads::fetch(DataSpec data, lockfile::LockedData pin,
                                           core::CancelSource& stop) {
  const auto digest = core::Digest::from_hex(pin.sha256);
  if (artifacts_.looks_whole(digest)) co_return digest;
  WantedContent wanted{.data = std::move(data),
                       .sha256 = pin.sha256,
                       .size = std::nullopt,
                       .state = {},
                       .version = pin.version,
                       .stop = stop};
  wanted.is_of_lock = is_locked_data(wanted.data);
  if (wanted.is_of_lock) wanted.size = pin.size;
  if (!wanted.data.version.empty()) wanted.version = wanted.data.version;
  co_return co_await share_download(wanted);
}

async::Task<core::Digest> Downloads::fetch_new(DataSpec data, fetch::ContentState state) {
  WantedContent wanted{.data = std::move(data),
                       .sha256 = {},
                       .size = state.size,
                       .state = state,
                       .version = state.version,
                       .stop = stop_,
                       .is_of_lock = true};
  if (!wanted.data.version.empty()) wanted.version = wanted.data.version;
  co_return co_await share_download(wanted);
}

/// Downloads the content once for all steps that need it at the same time.
async::Task<core::Digest> Downloads::share_download(const WantedContent& wanted) {
  const auto executor = co_await asio::this_coro::executor;
  const auto name = wanted.name();
  co_return co_await flights(executor).get(
      name, [&] { return download(wanted); }, &wanted.stop);
}

std::optional<orchestrators::RemoteContent> Downloads::remote(const DataSpec& data,
                                                              const lockfile::LockedData& pin) {
  if (fetch::is_local(data.url)) return std::nullopt;
  const auto address =
      fetch::address_of(data.url, data.version.empty() ? pin.version : data.version);
  orchestrators::RemoteContent content;
  content.shown = name_of(data);
  content.server = address.server();
  if (is_locked_data(data)) content.size = pin.size;
  content.is_folder = address.is_folder();
  content.is_public = !address.is_s3();
  content.files = [this, address] { return files(address); };
  content.fetch = [this, data, pin](core::CancelSource& stop) -> async::Task<> {
    co_await fetch(data, pin, stop);
  };
  return content;
}

/// Returns the files at the address, each with a URL that needs no login.
async::Task<std::vector<orchestrators::RemoteFile>> Downloads::files(fetch::DataAddress address) {
  auto& from = sources(co_await asio::this_coro::executor);
  std::vector<orchestrators::RemoteFile> found;
  if (!address.is_folder()) {
    auto url = co_await from.signed_url(address);
    found.push_back({{}, std::move(url)});
    co_return found;
  }
  const auto state = co_await from.state(address, stop_);
  for (const auto& object : state.objects) {
    auto each = address;
    each.key += object.key;
    auto url = co_await from.signed_url(each);
    found.push_back({object.key, std::move(url)});
  }
  co_return found;
}

async::Task<> Downloads::fetch_named(const DataSpec& data, const store::PublishedVersion& version,
                                     RemoteCache* cache, asio::thread_pool& pool) {
  const auto digest = version.output.digest;
  if (artifacts_.looks_whole(digest)) co_return;
  if (!cache)
    throw core::EnvironmentError("the content of " + name_of(data) + ", version " +
                                     std::to_string(version.version) +
                                     ", is missing or damaged here",
                                 {"`pipe verify` looks for more that is damaged"});
  const RemoteOutput output{version.output, version.is_executable};
  co_await fetch_output(output, cache, pool);
}

async::Task<> Downloads::fetch_output(RemoteOutput output, RemoteCache* cache,
                                      asio::thread_pool& pool) {
  const auto digest = output.record.digest;
  if (!cache)
    throw core::EnvironmentError(
        "the output '" + output.record.name + "' is in a remote store, and this run has none",
        {"name the profile with the `artifact_store` that has it"});
  const auto executor = co_await asio::this_coro::executor;
  const auto work = [&]() -> async::Task<core::Digest> {
    core::make_folders(folder_);
    const core::TemporaryFolder folder(folder_);
    const DownloadTarget target{artifacts_, folder.path() / output.record.file_name, pool};
    co_await engine::download(*cache, output, target, stop_);
    co_return digest;
  };
  co_await flights(executor).get(digest.hex(), work, &stop_);
}

/// Downloads the content into the store, while a lock keeps other processes from doing the same.
async::Task<core::Digest> Downloads::download(const WantedContent& wanted) {
  core::make_folders(folder_);
  const auto path = folder_ / wanted.name();
  const bool is_verified = true;  // Without effect: only the lock is used, the file stays empty.
  fetch::PartFile lock(folder_ / (wanted.name() + ".lock"), is_verified);
  while (!lock.try_lock()) {  // Another run is fetching the content.
    co_await async::sleep(poll_interval, &wanted.stop);
    if (wanted.stop.level() != core::StopLevel::none) throw stopped(wanted.data);
  }
  if (!wanted.sha256.empty())
    if (const auto digest = core::Digest::from_hex(wanted.sha256); artifacts_.looks_whole(digest)) {
      lock.remove();
      co_return digest;
    }
  events_.emit(event::Notice{"", "fetching " + name_of(wanted.data)});
  const auto from = fetch::address_of(wanted.data.url, wanted.version);
  std::exception_ptr error;
  core::Digest digest;
  try {
    if (from.is_folder())
      co_await receive_folder(wanted, from, path);
    else
      co_await receive_file(wanted, from, path);
    digest = co_await keep(wanted, path);
  } catch (...) {
    error = std::current_exception();
  }
  lock.remove();
  if (error) std::rethrow_exception(error);
  co_return digest;
}

async::Task<> Downloads::receive_file(const WantedContent& wanted, const fetch::DataAddress& from,
                                      const fs::path& path) {
  auto& sources = this->sources(co_await asio::this_coro::executor);
  const fetch::Expected expected{wanted.size, !wanted.sha256.empty(), wanted.state};
  fetch::PartFile part(path, expected.is_verified);
  part.load();
  fetch::DataTransfer transfer(sources, from, expected, part, wanted.stop);
  co_await transfer.run();
  part.forget_progress();
}

/// Fetches the missing files of a folder. A file under its final name is complete.
async::Task<> Downloads::receive_folder(const WantedContent& wanted, const fetch::DataAddress& from,
                                        const fs::path& folder) {
  auto& sources = this->sources(co_await asio::this_coro::executor);
  auto state = wanted.state;
  if (state.objects.empty()) state = co_await sources.state(from, wanted.stop);
  if (wanted.size && *state.size != *wanted.size)
    throw wrong_content(wanted, std::to_string(*state.size) + " bytes in " +
                                    std::to_string(state.objects.size()) + " files");
  core::make_folders(folder);
  const std::function<async::Task<>(std::size_t)> fetch = [&](std::size_t i) -> async::Task<> {
    const auto& object = state.objects[i];
    const auto target = folder / object.key;
    std::error_code error;
    if (fs::file_size(target, error) == object.size && !error) co_return;
    core::make_folders(target.parent_path());
    auto address = from;
    address.key += object.key;
    const bool is_verified = false;  // A list has no digests of its files.
    const fetch::Expected expected{object.size, is_verified, {.etag = object.etag}};
    const auto id = core::Hasher().field(object.key).field(object.etag).finish().hex();
    const fs::path path(folder.string() + "." + id.substr(0, 16));
    fetch::PartFile part(path, is_verified);
    part.load();
    fetch::DataTransfer transfer(sources, address, expected, part, wanted.stop);
    co_await transfer.run();
    part.forget_progress();
    fs::rename(path, target);
  };
  co_await async::for_each(state.objects.size(), max_files_at_once, fetch);
  store_.key_values().put(list_kind, list_key(wanted.data), list_text(state.objects));
}

/// Returns the error for content that is not the wanted one.
/// @param found what the content has instead, such as `5 bytes in 1 files`; for a digest that the
/// pipeline gives, the SHA-256 alone
core::EnvironmentError Downloads::wrong_content(const WantedContent& wanted,
                                                const std::string& found) const {
  if (wanted.is_of_lock)
    return core::EnvironmentError(
        name_of(wanted.data) + " has changed at the source since it was locked: it has " + found,
        {"`pipe lock --upgrade INPUT`, with the name of the input, takes the new content",
         "another machine whose store has the locked content can run the pipeline as it is"});
  return core::EnvironmentError("the content of " + name_of(wanted.data) +
                                    " does not match the pipeline: its SHA-256 is " + found +
                                    ", not " + wanted.sha256,
                                {"if the change is wanted, write the new `sha256`"});
}

/// Moves the content into the store. Removes it and throws EnvironmentError if its digest is not
/// the wanted one.
async::Task<core::Digest> Downloads::keep(const WantedContent& wanted, const fs::path& path) {
  if (!pool_) pool_ = std::make_unique<asio::thread_pool>(1);
  std::string other;
  const auto check = [&](const store::StoredArtifact& found) {
    if (wanted.sha256.empty() || found.digest.hex() == wanted.sha256) return;
    other = found.digest.hex();
    throw core::EnvironmentError("another content");
  };
  try {
    const auto stored =
        co_await async::on_pool(*pool_, [&] { return artifacts_.take(path, check); });
    co_return stored.digest;
  } catch (const core::EnvironmentError&) {
    if (other.empty()) throw;
  }
  core::remove_tree(path);
  throw wrong_content(wanted, wanted.is_of_lock ? "the SHA-256 " + other : other);
}

std::vector<std::string> Downloads::changes_since(const lockfile::LockedData& locked,
                                                  const lockfile::LockedData& now,
                                                  const fetch::ContentState& state) const {
  std::vector<std::string> lines{std::string(changed_at_source_line)};
  if (state.objects.empty()) return lines;
  const auto address = now.address;
  const auto before = store_.key_values().find(list_kind, core::sha256(address).hex());
  if (!before || locked.files == 0) return lines;
  const auto after = list_text(state.objects);
  const auto old_files = files_in(*before), new_files = files_in(after);
  std::vector<std::string> changes;
  for (const auto& [path, stamp] : new_files)
    if (const auto old = old_files.find(path); old == old_files.end())
      changes.push_back("new " + std::string(path));
    else if (old->second != stamp)
      changes.push_back(std::string(path) + " changed");
  for (const auto& [path, stamp] : old_files)
    if (!new_files.contains(path)) changes.push_back(std::string(path) + " removed");
  for (std::size_t i = 0; i < std::min(changes.size(), max_listed_changes); ++i)
    lines.push_back(changes[i]);
  if (changes.size() > max_listed_changes)
    lines.push_back(std::to_string(changes.size() - max_listed_changes) + " more");
  return lines;
}

}  // namespace pipeline::engine
