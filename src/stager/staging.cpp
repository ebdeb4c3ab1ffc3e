#include "stager/staging.hpp"

#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/content.hpp"
#include "file_tree/unpack.hpp"
#include "stager/cached_items.hpp"
#include "stager/parts.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Maximum size that servers accept in a single request.
constexpr std::uint64_t max_single_upload = std::uint64_t{5} << 30;
constexpr std::size_t max_list = core::JsonLimits().bytes;
// Time for the driver to upload items that this pod cannot read from their source.
constexpr std::chrono::hours max_wait{1};
constexpr std::chrono::seconds poll_interval{1};

void check(const std::string& what, const core::Digest& got, const std::string& wanted) {
  if (got.hex() != wanted)
    throw TransferError(what + " is damaged: its SHA-256 is " + got.hex() + ", not " + wanted,
                        true);
}

void fetch_file(const json& item, const fs::path& to, Transfer& transfer) {
  core::make_folders(to.parent_path());
  const unsigned mode = item.value("executable", false) ? 0555 : 0444;
  const core::Descriptor file(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) throw core::system_error("cannot write " + to.string(), errno);
  core::Hasher hasher;
  transfer.receive(to.string(), item.at("url"), [&](std::string_view bytes) {
    hasher.update(bytes);
    core::write_fully(file.get(), bytes, to);
  });
  check(to.string(), hasher.finish(), item.at("digest"));
}

void check_tree(const fs::path& to, const json& item) {
  auto nodes = file_tree::scan_tree(to);
  file_tree::hash_tree(to, nodes);
  check(to.string(), file_tree::tree_digest(nodes), item.at("digest"));
}

void fetch_tree(const json& item, const fs::path& to, Transfer& transfer) {
  core::make_folders(to);
  file_tree::Unpacker unpacker(to);
  transfer.receive(to.string(), item.at("url"),
                   [&](std::string_view bytes) { unpacker.feed(bytes); });
  unpacker.finish();
  check_tree(to, item);
}

void fetch_item(const json& item, Transfer& transfer, NodeCache* cache) {
  const fs::path to = item.at("to").get<std::string>();
  const std::string kind = item.at("kind");
  if (cache && kind != "text" && fetch_cached(item, to, *cache, transfer)) return;
  if (kind == "tree") {
    fetch_tree(item, to, transfer);
  } else if (kind == "text") {
    core::make_folders(to.parent_path());
    core::write_file_atomically(to, item.at("text").get<std::string>());
  } else {
    fetch_file(item, to, transfer);
  }
}

void send_text(const std::string& what, const std::string& url, const std::string& text,
               Transfer& transfer) {
  transfer.send(what, url, text.size(), [&](std::uint64_t offset, std::span<char> into) {
    return text.copy(into.data(), into.size(), offset);
  });
}

/// Uploads a copy of a file that came from a source. A failure is reported only.
void upload_copy(const fs::path& file, const std::string& url, Transfer& transfer) {
  try {
    const file_tree::Content content(file);
    if (content.size() > max_single_upload) return;
    transfer.send(
        file.string(), url, content.size(),
        [&](std::uint64_t offset, std::span<char> into) { return content.read(offset, into); });
  } catch (const core::EnvironmentError& error) {
    std::fprintf(stderr, "pipe-stager: %s\n", error.what());
  }
}

/// Downloads an item from its source; returns the reason of a failure.
std::optional<std::string> fetch_from_source(const json& item, Transfer& transfer,
                                             const SourceReader& sources) {
  const fs::path to = item.at("to").get<std::string>();
  const auto& source = item.at("source");
  const std::string shown = source.at("shown");
  try {
    if (item.at("kind") == "tree") {
      std::string list;
      transfer.receive("the list of " + shown, source.at("files"), [&](std::string_view bytes) {
        if (list.size() + bytes.size() > max_list)
          throw TransferError("the list of " + shown + " is too long", false);
        list += bytes;
      });
      sources.read_folder(core::parse_json(list), to);
      check_tree(to, item);
    } else {
      sources.read_file(source, to);
      check(shown, core::sha256_file(to), item.at("digest"));
      if (source.contains("keep")) upload_copy(to, source.at("keep"), transfer);
    }
  } catch (const core::EnvironmentError& error) {
    core::remove_tree(to);
    return error.what();
  }
  return std::nullopt;
}

/// Downloads an item once the driver has uploaded it.
void wait_for(const json& item, Transfer& transfer, NodeCache* cache) {
  const fs::path to = item.at("to").get<std::string>();
  const auto until = std::chrono::steady_clock::now() + max_wait;
  for (;;) {
    try {
      return fetch_item(item, transfer, cache);
    } catch (const TransferError& error) {
      if (error.code() != "NoSuchKey") throw;
    }
    core::remove_tree(to);
    if (std::chrono::steady_clock::now() > until)
      throw TransferError("the driver has not uploaded " + to.string(), true);
    std::this_thread::sleep_for(poll_interval);
  }
}

json no_output(const json& output) {
  return {{"name", output.at("name")},
          {"key", output.at("key")},
          {"upload", output.at("upload")},
          {"kind", "none"}};
}

/// Uploads an output, in parts unless it is small; returns its entry in the report.
json send_output(const json& output, Transfer& transfer) {
  const fs::path path = output.at("path").get<std::string>();
  const auto what = "the output '" + output.at("name").get<std::string>() + "'";
  auto entry = no_output(output);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return entry;
  std::vector<file_tree::TreeNode> nodes;
  const bool is_tree = S_ISDIR(status.st_mode);
  if (is_tree)
    nodes = file_tree::scan_tree(path, {path});
  else if (!S_ISREG(status.st_mode))
    throw core::EnvironmentError(
        "cannot keep " + what + ": it is " +
        (S_ISLNK(status.st_mode) ? "a symbolic link" : "a socket, a pipe or a device"));
  const auto content = is_tree ? file_tree::Content(path, nodes) : file_tree::Content(path);
  const std::vector<std::string> whole{output.at("whole").get<std::string>()};
  const auto urls = part_urls(output);
  const auto part = part_size(content.size(), urls.size());
  bool at_once = content.size() <= min_part;
  core::Digest digest;
  json tags = json::array();
  if (!at_once) try {
      digest = send_parts(what, content, urls, part, transfer, tags);
    } catch (const TransferError& error) {
      // A restarted server may have forgotten the upload.
      at_once = error.code() == "NoSuchUpload" && content.size() <= max_single_upload;
      if (!at_once) throw;
    }
  if (at_once) {
    tags = json::array();
    digest = send_parts(what, content, whole, max_single_upload, transfer, tags);
  }
  entry["kind"] = is_tree ? "tree" : "file";
  entry["bytes"] = content.size();
  entry["digest"] = digest.hex();
  entry["executable"] = !is_tree && (status.st_mode & S_IXUSR);
  entry["at_once"] = at_once;
  entry["tags"] = std::move(tags);
  return entry;
}

/// Uploads an output of a failed step; an error is reported only.
json try_to_send(const json& output, Transfer& transfer) {
  try {
    return send_output(output, transfer);
  } catch (const core::EnvironmentError& error) {
    std::fprintf(stderr, "pipe-stager: %s\n", error.what());
    return no_output(output);
  }
}

/// Returns the step's own failure text if it is a regular, short file.
std::string failure_text(const fs::path& file) {
  constexpr std::size_t max_bytes = 64 * 1024;
  return core::read_untrusted_file(file, max_bytes).value_or("");
}

}  // namespace

void complete(json& document, Transfer& transfer) {
  const auto lists = document.value("lists", json::object());
  for (const auto& [key, url] : lists.items()) {
    std::string text;
    transfer.receive("the list of " + key, url.get<std::string>(),
                     [&](std::string_view bytes) { text += bytes; });
    document[key] = core::parse_json(text);
  }
}

void fetch(const json& document, Transfer& transfer, const SourceReader& sources,
           NodeCache* cache) {
  json wanted = json::object();
  std::vector<const json*> missing;
  for (const auto& item : document.at("items")) {
    if (!item.contains("source")) {
      fetch_item(item, transfer, cache);
    } else if (auto why = fetch_from_source(item, transfer, sources)) {
      wanted[item.at("digest").get<std::string>()] = std::move(*why);
      missing.push_back(&item);
    }
  }
  if (missing.empty()) return;
  send_text("the list of missing items", document.at("wanted"),
            wanted.dump(-1, ' ', false, json::error_handler_t::replace), transfer);
  for (const auto* item : missing) wait_for(*item, transfer, cache);
}

bool collect(const json& document, int exit_code, Transfer& transfer) {
  json report{{"exit_code", exit_code}, {"outputs", json::array()}};
  bool is_complete = exit_code == 0;
  for (const auto& output : document.at("outputs")) {
    auto entry = exit_code == 0 ? send_output(output, transfer) : try_to_send(output, transfer);
    is_complete &= entry.at("kind") != "none";
    report["outputs"].push_back(std::move(entry));
  }
  if (exit_code != 0) report["failure"] = failure_text(document.at("failure").get<std::string>());
  const auto text = report.dump(-1, ' ', false, json::error_handler_t::replace);
  send_text("the report", document.at("report"), text, transfer);
  return is_complete;
}

}  // namespace pipeline::stager
