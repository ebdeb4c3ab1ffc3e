#include "remote_driver/run_replica.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/quantity.hpp"
#include "core/random_name.hpp"
#include "file_tree/tree.hpp"
#include "store/received_store.hpp"

namespace pipeline::remote_driver {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using store::downloaded_logs_kind, store::saved_kind;

constexpr int record_format = 1;
constexpr const char *head_name = "head.json", *first_store = "pipe.db";
/// Maximum size of logs in one object; the rest goes into the next object.
constexpr std::uint64_t max_log_bytes = 16u << 20;
constexpr std::size_t max_store_bytes = std::size_t{4} << 30;
/// Maximum size of a run's files, all together.
constexpr std::uint64_t max_files = std::uint64_t{64} << 30;
constexpr std::size_t max_log_objects = 10'000'000;

/// Returns the name of the object that has the run store of one driver.
std::string store_of(const std::string& writer) { return "pipe-" + writer + ".db"; }

core::EnvironmentError foreign_object(const std::string& key) {
  return core::EnvironmentError("the object " + key +
                                " of the remote store is not one that pipe wrote");
}

/// Returns a piece of a file, which is shorter at the file's end.
std::string read_piece(const fs::path& file, std::uint64_t offset, std::uint64_t size) {
  std::ifstream open(file, std::ios::binary);
  if (!open) throw core::system_error("cannot read " + file.string(), errno);
  std::string bytes(size, '\0');
  open.seekg(static_cast<std::streamoff>(offset))
      .read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(open.gcount()));
  return bytes;
}

/// Opens the folder of a run's logs, and creates it if it is missing. No link below the state
/// folder is followed: another user may own that folder, and have put a link there for the logs to
/// follow.
core::Descriptor open_log_folder(const store::StatePaths& paths, const std::string& run) {
  core::Descriptor folder(::open(paths.folder().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const auto& part : paths.log_file(run).lexically_relative(paths.folder())) {
    if (!folder) break;
    ::mkdirat(folder.get(), part.c_str(), 0777);
    folder = core::Descriptor(
        ::openat(folder.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  return folder;
}

/// Writes the bytes at the offset. Returns false, and writes nothing, for an offset beyond the end:
/// a log has no gaps.
bool write_piece(const core::Descriptor& folder, const fs::path& file, std::uint64_t offset,
                 std::string_view bytes) {
  const core::Descriptor open(::openat(folder.get(), file.filename().c_str(),
                                       O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                       0644));
  const auto size = open ? ::lseek(open.get(), 0, SEEK_END) : -1;
  if (size < 0) throw core::system_error("cannot write " + file.string(), errno);
  if (offset > static_cast<std::uint64_t>(size)) return false;
  if (::lseek(open.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
    throw core::system_error("cannot write " + file.string(), errno);
  core::write_fully(open.get(), bytes, file);
  return true;
}

}  // namespace

async::Task<std::optional<RunReplica::Head>> RunReplica::find_head() {
  std::optional<Head> head;
  auto text = co_await artifacts_.store().find_tagged(key(head_name));
  if (!text) co_return head;
  const auto document = core::parse_json(text->text);
  try {
    Head found;
    if (document.at("format") != record_format)
      throw core::EnvironmentError("run " + run_ + " is driven by another version of pipe",
                                   {"use that version here, too"});
    found.saved = core::integer_of<std::uint64_t>(document.at("saved"));
    found.files = document.at("files").get<std::string>();
    found.store = document.value("store", first_store);
    if (found.store.find('/') != found.store.npos) throw foreign_object(key(head_name));
    found.tag = std::move(text->tag);
    for (const auto& log : document.at("logs")) {
      const auto count = core::integer_of<std::size_t>(log.at(1));
      if (count > max_log_objects) throw foreign_object(key(head_name));
      found.writers.emplace_back(log.at(0).get<std::string>(), count);
    }
    head = std::move(found);
  } catch (const json::exception&) {
    throw foreign_object(key(head_name));
  }
  co_return head;
}

/// Replaces the head in the store, if that is still the one with the tag `head_.tag`.
/// @return false if the store has another head
async::Task<bool> RunReplica::put_head() {
  auto& remote = artifacts_.store();
  json document;
  document["format"] = record_format;
  document["saved"] = head_.saved;
  document["files"] = head_.files;
  document["store"] = head_.store;
  document["logs"] = head_.writers;
  const auto text = document.dump() + "\n";
  const auto tag = co_await remote.put_if(key(head_name), text, head_.tag);
  if (tag && !tag->empty()) {
    head_.tag = *tag;
    co_return true;
  }
  // The server does not report the tag, or the response to this write was lost.
  auto present = co_await remote.find_tagged(key(head_name));
  const bool is_mine = present && present->text == text;
  if (is_mine) head_.tag = std::move(present->tag);
  co_return is_mine;
}

async::Task<> RunReplica::replace_head() {
  const bool is_done = co_await put_head();
  if (!is_done)
    throw core::EnvironmentError("run " + run_ +
                                 " has another driver by now, so this driver saves nothing");
}

async::Task<bool> RunReplica::fetch_store(const std::string& name, const fs::path& folder) {
  try {
    co_await artifacts_.receive(key(name), folder / first_store, blobs::RemoteArtifacts::Form::file,
                                max_store_bytes, nullptr);
  } catch (const blobs::BlobError& error) {
    if (error.kind() != blobs::BlobError::Kind::missing_blob) throw;
    co_return false;
  }
  store::require_received_store(folder / first_store, run_);
  store::RunStore found(folder);
  // Reads all records: an unreadable one would make later commands fail, such as `pipe clean`.
  found.runs().steps(run_);
  for (const auto& attempt : found.attempts().list(run_)) found.attempts().tasks(attempt);
  co_return true;
}

/// Uploads the run store after the head, so that a reader that sees the run's end also finds all
/// its logs.
async::Task<> RunReplica::put_store(store::RunStore& store) {
  const core::TemporaryFolder folder;
  {
    store::RunStore copy(folder.path());
    copy.share();  // Everything is in the one database file.
    copy.import_run(store, run_);
    copy.key_values().remove(saved_kind, run_);
  }
  auto bytes = core::read_file(folder.path() / first_store, max_store_bytes);
  auto digest = core::sha256(bytes).hex();
  if (digest == last_store_) co_return;
  {
    store::RunStore copy(folder.path());
    copy.key_values().put(saved_kind, run_, std::to_string(++head_.saved));
  }
  co_await replace_head();
  bytes = core::read_file(folder.path() / first_store, max_store_bytes);
  auto body = blobs::body_of(std::move(bytes));
  co_await artifacts_.store().put(key(head_.store), std::move(body));
  last_store_ = std::move(digest);
}

async::Task<std::string> RunReplica::upload_all(store::RunStore& store, fs::path folder) {
  auto nodes = file_tree::scan_tree(folder);
  std::uint64_t bytes = 0;
  for (const auto& node : nodes) bytes += node.bytes;
  if (bytes > max_files)
    throw core::EnvironmentError("the files of run " + run_ + " have " + core::format_bytes(bytes) +
                                     ", more than the " + core::format_bytes(max_files) +
                                     " that a driver in a cluster downloads",
                                 {"name large files as inputs, so that they are not code"});
  file_tree::hash_tree(folder, nodes);
  auto digest = file_tree::tree_digest(nodes).hex();
  auto present = co_await artifacts_.store().find_tagged(key(head_name));
  if (present) head_.tag = std::move(present->tag);
  head_.files = co_await artifacts_.send(std::move(digest), std::move(folder), nullptr);
  head_.store = first_store;
  co_await put_store(store);
  co_return head_.files;
}

/// Downloads the run store, and returns the head that names it; nothing if there is no head or no
/// such store.
async::Task<std::optional<RunReplica::Head>> RunReplica::fetch_record(const fs::path& folder) {
  auto head = co_await find_head();
  if (!head) co_return head;
  const bool has_store = co_await fetch_store(head->store, folder);
  if (!has_store) head.reset();
  co_return head;
}

async::Task<bool> RunReplica::fetch(store::RunStore& store, fs::path folder) {
  const core::TemporaryFolder fetched;
  auto head = co_await fetch_record(fetched.path());
  if (!head) co_return false;
  store.import_run(store::RunStore(fetched.path()), run_);
  head_ = std::move(*head);
  if (!fs::exists(folder)) co_await fetch_files(std::move(folder));
  co_return true;
}

async::Task<std::vector<std::string>> RunReplica::artifacts() {
  const core::TemporaryFolder fetched;
  std::vector<std::string> keys;
  const auto head = co_await fetch_record(fetched.path());
  if (!head) co_return keys;
  keys.push_back(head->files);
  store::RunStore store(fetched.path());
  for (const auto& step : store.runs().steps(run_))
    for (const auto& output : step.outputs)
      keys.push_back(blobs::RemoteArtifacts::key_of(output.digest.hex(), output.is_directory));
  co_return keys;
}

async::Task<bool> RunReplica::take_over(store::RunStore& store, fs::path folder) {
  const auto writer = core::random_name();
  for (bool is_mine = false; !is_mine;) {
    const core::TemporaryFolder fetched;
    auto head = co_await fetch_record(fetched.path());
    if (!head) co_return false;
    head_ = std::move(*head);
    head_.writers.emplace_back(writer, 0);
    head_.store = store_of(writer);
    auto body = blobs::body_of(core::read_file(fetched.path() / first_store, max_store_bytes));
    co_await artifacts_.store().put(key(head_.store), std::move(body));
    // The earlier driver may have saved once more meanwhile.
    is_mine = co_await put_head();
    if (is_mine) store.import_run(store::RunStore(fetched.path()), run_);
  }
  if (!fs::exists(folder)) co_await fetch_files(std::move(folder));
  co_return true;
}

/// Downloads the run's files. The object's key has the digest of its content, and must be the key
/// that this driver was started with: then the files are those that were uploaded.
async::Task<> RunReplica::fetch_files(fs::path folder) {
  if (!expected_files_.empty() && head_.files != expected_files_)
    throw foreign_object(key(head_name));
  core::make_folders(folder.parent_path());
  const core::TemporaryFolder fetched(folder.parent_path());
  const auto files = fetched.path() / "files";
  co_await artifacts_.receive(head_.files, files, blobs::RemoteArtifacts::Form::tree, max_files,
                              nullptr);
  auto nodes = file_tree::scan_tree(files);
  file_tree::hash_tree(files, nodes);
  if (blobs::RemoteArtifacts::key_of(file_tree::tree_digest(nodes).hex(), true) != head_.files)
    throw foreign_object(head_.files);
  fs::rename(files, folder);
}

async::Task<> RunReplica::save(store::RunStore& store) {
  co_await save_logs(store);
  co_await put_store(store);
}

/// Uploads the new bytes of all logs as one blob. Its first line is JSON, with the name, offset and
/// size of each piece of a file; the bytes of the pieces follow.
async::Task<> RunReplica::save_logs(const store::RunStore& store) {
  const auto folder = store.paths().log_file(run_);
  json parts = json::array();
  std::string bytes;
  bool is_all = true;
  std::error_code error;
  std::vector<std::pair<std::string, std::uint64_t>> grown;
  std::vector<fs::directory_entry> entries;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry);
  // Events come first: a log that is read after them has all output before the step's end.
  std::ranges::stable_partition(entries, [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with(store::events_prefix);
  });
  for (const auto& entry : entries) {
    if (bytes.size() >= max_log_bytes) {
      is_all = false;
      break;
    }
    const auto name = entry.path().filename().string();
    const auto [known, is_new] = sent_.try_emplace(name, 0);
    const auto size = entry.file_size(error), before = known->second;
    if (error || (!is_new && size <= before))
      continue;  // A new empty log is uploaded too, because a user may be waiting for its lines.
    const auto piece =
        read_piece(entry.path(), before, std::min(size - before, max_log_bytes - bytes.size()));
    is_all &= before + piece.size() >= size;
    parts.push_back({name, before, piece.size()});
    bytes += piece;
    grown.emplace_back(name, before + piece.size());
  }
  if (parts.empty()) co_return;
  auto& [writer, count] = head_.writers.back();
  auto body =
      blobs::body_of(parts.dump(-1, ' ', false, json::error_handler_t::replace) + "\n" + bytes);
  co_await artifacts_.store().put(key(log_name(writer, count)), std::move(body));
  ++count;
  for (auto& [name, size] : grown) sent_[name] = size;
  last_store_.clear();  // put_store() also uploads the head, which has changed.
  if (!is_all) co_await save_logs(store);
}

async::Task<> RunReplica::download_logs(const store::RunStore& store, const Head& head) {
  const auto logs = store.paths().log_file(run_);
  const auto folder = open_log_folder(store.paths(), run_);
  if (!folder) throw core::system_error("cannot write into " + logs.string(), errno);
  for (const auto& [writer, count] : head.writers)
    for (auto& next = downloaded_logs_[writer]; next < count; ++next) {
      const auto object = key(log_name(writer, next));
      const auto text = co_await artifacts_.store().get_text(object);
      const auto end = text.find('\n');
      const auto parts = core::parse_json(text.substr(0, end));
      std::string_view rest =
          end == text.npos ? std::string_view() : std::string_view(text).substr(end + 1);
      try {
        for (const auto& part : parts) {
          const auto name = part.at(0).get<std::string>();
          const auto size = core::integer_of<std::uint64_t>(part.at(2));
          if (name.find('/') != name.npos || size > rest.size()) throw foreign_object(object);
          if (!write_piece(folder, logs / name, core::integer_of<std::uint64_t>(part.at(1)),
                           rest.substr(0, size)))
            throw foreign_object(object);
          rest.remove_prefix(size);
        }
      } catch (const json::exception&) {
        throw foreign_object(object);
      }
    }
}

async::Task<> RunReplica::download(store::RunStore& store) {
  const auto known = store.key_values().find(saved_kind, run_).value_or("");
  const auto before = co_await find_head();
  if (!before || std::to_string(before->saved) == known) co_return;
  const core::TemporaryFolder fetched;
  const bool has_store = co_await fetch_store(before->store, fetched.path());
  // The head is read after the store, so that it names the logs of all records in the store.
  const auto head = co_await find_head();
  if (!has_store || !head) co_return;
  if (const auto text = store.key_values().find(downloaded_logs_kind, run_);
      text && downloaded_logs_.empty())
    downloaded_logs_ = core::parse_json(*text).get<std::map<std::string, std::size_t>>();
  co_await download_logs(store, *head);
  store::RunStore found(fetched.path());
  store.key_values().put(downloaded_logs_kind, run_, json(downloaded_logs_).dump());
  store.import_run(found, run_);
  store.key_values().put(saved_kind, run_, found.key_values().find(saved_kind, run_).value_or(""));
}

async::Task<> RunReplica::remove() {
  auto& remote = artifacts_.store();
  const auto head = key(head_name);
  const auto blobs = co_await remote.list(key(""));
  for (const auto& blob : blobs)
    if (blob != head) co_await remote.remove(blob);
  co_await remote.remove(head);  // Last, so that a run that was removed in part is still found.
}

}  // namespace pipeline::remote_driver
