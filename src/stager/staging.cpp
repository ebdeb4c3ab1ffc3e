#include "stager/staging.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/crc64nvme.hpp"
#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "fetch/address.hpp"
#include "file_tree/content.hpp"
#include "file_tree/unpack.hpp"
#include "stager/cached_items.hpp"
#include "stager/download.hpp"
#include "stager/parts.hpp"
#include "stager/question.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Bytes that S3 servers accept at most in a single request.
constexpr std::uint64_t max_single_upload = std::uint64_t{5} << 30;
constexpr std::size_t max_list = core::JsonLimits().bytes;
// Time for the driver to upload items that this pod cannot read from their source.
constexpr std::chrono::hours max_wait{1};
constexpr std::chrono::seconds poll_interval{1};

void check_digest(const std::string& what, const core::Digest& got, const std::string& wanted) {
  if (got.hex() != wanted)
    throw DamagedItem(what + " is damaged: its SHA-256 is " + got.hex() + ", not " + wanted,
                      wanted);
}

void fetch_file(const json& item, const fs::path& to, Transfer& transfer) {
  core::make_folders(to.parent_path());
  const unsigned mode = item.value("executable", false) ? 0555 : 0444;
  const core::Descriptor file(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) throw core::system_error("cannot write " + to.string(), errno);
  check_digest(to.string(), download_file(item.at("url"), file.get(), to, transfer),
               item.at("digest"));
}

void check_tree(const fs::path& to, const json& item) {
  auto nodes = file_tree::scan_tree(to);
  file_tree::hash_tree(to, nodes);
  check_digest(to.string(), file_tree::tree_digest(nodes), item.at("digest"));
}

void fetch_tree(const json& item, const fs::path& to, Transfer& transfer) {
  core::make_folders(to);
  try {
    file_tree::Unpacker unpacker(to, {.requires_exact_form = true});
    download_stream(to.string(), item.at("url"), transfer,
                    [&](std::string_view bytes) { unpacker.feed(bytes); });
    unpacker.finish();
  } catch (const file_tree::ArchiveError& error) {
    throw DamagedItem(to.string() + " is damaged: " + error.what(), item.at("digest"));
  }
  check_tree(to, item);
}

/// Downloads a list. Throws TransferError if the list is longer than `max_list`.
std::string receive_list(const std::string& what, const std::string& url, Transfer& transfer) {
  std::string list;
  transfer.receive(what, url, [&](std::string_view bytes) {
    if (list.size() + bytes.size() > max_list) throw TransferError(what + " is too long", false);
    list += bytes;
  });
  return list;
}

/// Returns the item of a line of `{"kind": "pieces"}`.
json piece_of(const json& pieces, std::string_view line) {
  const auto take = [&line] {
    const auto end = std::min(line.find(' '), line.size());
    const auto field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return std::string(field);
  };
  const auto kind = take(), digest = take(), key = take(), signature = take();
  const std::string name(line);
  if (!fetch::is_safe_path(name))
    throw TransferError("a name in the list of pieces is not a path: " + name, false);
  return {{"to", pieces.at("to").get<std::string>() + "/" + name},
          {"kind", kind == "tree" ? kind : "file"},
          {"digest", digest},
          {"executable", kind == "executable"},
          {"url", pieces.at("before").get<std::string>() + key +
                      pieces.at("after").get<std::string>() + signature}};
}

void fetch_stored(const json& item, Transfer& transfer, NodeCache* cache);

void fetch_pieces(const json& pieces, Transfer& transfer, NodeCache* cache) {
  const auto text = pieces.contains("list")
                        ? receive_list("the list of pieces", pieces.at("list"), transfer)
                        : pieces.at("rows").get<std::string>();
  const auto lines = core::lines_of(text);
  Workers workers(lines.size(), transfer.threads());
  workers.run([&](std::size_t i) { fetch_stored(piece_of(pieces, lines[i]), transfer, cache); });
}

void fetch_item(const json& item, Transfer& transfer, NodeCache* cache) {
  const fs::path to = item.at("to").get<std::string>();
  const std::string kind = item.at("kind");
  if (cache && (kind == "file" || kind == "tree") && fetch_cached(item, to, *cache, transfer))
    return;
  if (kind == "tree") {
    fetch_tree(item, to, transfer);
  } else if (kind == "pieces") {
    fetch_pieces(item, transfer, cache);
  } else if (kind == "text") {
    core::make_folders(to.parent_path());
    core::write_file_atomically(to, item.at("text").get<std::string>());
  } else {
    fetch_file(item, to, transfer);
  }
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
      const auto list = receive_list("the list of " + shown, source.at("files"), transfer);
      sources.read_folder(core::parse_json(list), to);
      check_tree(to, item);
    } else {
      sources.read_file(source, to);
      check_digest(shown, core::sha256_file(to), item.at("digest"));
      if (source.contains("keep")) upload_copy(to, source.at("keep"), transfer);
    }
  } catch (const core::EnvironmentError& error) {
    clear(to);
    return error.what();
  }
  return std::nullopt;
}

/// Downloads an item that the driver has found in the store. Throws DamagedItem if the item has
/// been removed since.
void fetch_stored(const json& item, Transfer& transfer, NodeCache* cache) {
  try {
    fetch_item(item, transfer, cache);
  } catch (const TransferError& error) {
    if (error.code() != "NoSuchKey") throw;
    throw DamagedItem(error.what(), item.value("digest", std::string()));
  }
}

/// Downloads an item once the driver has uploaded it. Throws TransferError after an hour.
void fetch_once_uploaded(const json& item, Transfer& transfer, NodeCache* cache) {
  const fs::path to = item.at("to").get<std::string>();
  const auto until = std::chrono::steady_clock::now() + max_wait;
  for (;;) {
    try {
      return fetch_item(item, transfer, cache);
    } catch (const TransferError& error) {
      if (error.code() != "NoSuchKey") throw;
    }
    clear(to);
    if (std::chrono::steady_clock::now() > until)
      throw TransferError("the driver has not uploaded " + to.string(), true);
    std::this_thread::sleep_for(poll_interval);
  }
}

/// Returns the report's entry for an output that was not uploaded.
json no_output(const json& output) {
  return {{"name", output.at("name")},
          {"key", output.at("key")},
          {"upload", output.at("upload")},
          {"kind", "none"}};
}

using Send = std::function<SentParts(const std::vector<std::string>& to, Parts parts)>;

/// Uploads an output to the key of its artifact, unless the store has it. Returns nothing if the
/// driver has not allowed it, or the store has forgotten the upload.
std::optional<SentParts> send_to_artifact(const HashedOutput& hashed, const Send& send) {
  if (hashed.answer.value("is_there", false))
    return SentParts{hashed.sums.digest, tags_of(hashed.sums)};
  if (!hashed.answer.contains("upload")) return std::nullopt;
  const auto urls = part_urls(hashed.answer);
  if (urls.size() < hashed.sums.md5s.size()) return std::nullopt;
  try {
    return send(urls, {hashed.part, &hashed.sums});
  } catch (const TransferError& error) {
    if (error.code() != "NoSuchUpload") throw;
  }
  return std::nullopt;
}

/// Uploads an output, in parts unless it is small; returns its entry in the report.
/// @param hashed null if the driver was not asked about the output
json send_output(const json& output, Transfer& transfer, const HashedOutput* hashed) {
  const fs::path path = output.at("path").get<std::string>();
  const auto what = "the output '" + output.at("name").get<std::string>() + "'";
  auto entry = no_output(output);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return entry;
  std::vector<file_tree::TreeNode> nodes;
  const bool is_tree = S_ISDIR(status.st_mode);
  if (is_tree) {
    nodes = file_tree::scan_tree(path, {path});
  } else if (!S_ISREG(status.st_mode)) {
    throw core::EnvironmentError(
        "cannot keep " + what + ": it is " +
        (S_ISLNK(status.st_mode) ? "a symbolic link" : "a socket, a pipe or a device"));
  }
  const auto content = is_tree ? file_tree::Content(path, nodes) : file_tree::Content(path);
  const std::vector<std::string> whole{output.at("whole").get<std::string>()};
  const auto urls = part_urls(output);
  const auto part = part_size(content.size(), urls.size());
  const bool stays = output.value("stays", false);
  if (hashed && hashed->bytes != content.size()) hashed = nullptr;
  const Send send = [&](const std::vector<std::string>& to, Parts parts) {
    if (!stays) return send_parts(what, content, to, parts, transfer);
    blobs::Crc64Nvme crc;
    std::optional<file_tree::FileDigests> files;
    if (is_tree && !hashed) files.emplace(content, nodes);
    auto received = send_parts(what, content, to, parts, transfer, [&](std::string_view bytes) {
      crc.update(bytes);
      if (files) files->update(bytes);
    });
    entry["crc64nvme"] = crc.base64();
    return received;
  };
  auto sent = hashed ? send_to_artifact(*hashed, send) : std::nullopt;
  const bool is_direct = sent.has_value();
  bool is_whole = !sent && content.size() <= min_part;
  if (!sent && !is_whole) try {
      sent = send(urls, {part, hashed ? &hashed->sums : nullptr});
    } catch (const TransferError& error) {
      // A restarted server may have forgotten the upload.
      is_whole = error.code() == "NoSuchUpload" && content.size() <= max_single_upload;
      if (!is_whole) throw;
    }
  if (is_whole) sent = send(whole, {max_single_upload});
  if (hashed)
    entry.update(hashed->described);
  else if (is_tree && stays)
    describe_folder(nodes, entry);
  entry["kind"] = is_tree ? "tree" : "file";
  entry["bytes"] = content.size();
  entry["digest"] = sent->digest.hex();
  entry["executable"] = !is_tree && (status.st_mode & S_IXUSR);
  entry["at_once"] = is_whole;
  entry["direct"] = is_direct;
  entry["tags"] = std::move(sent->tags);
  return entry;
}

/// Uploads an output of a failed step; an error is reported only.
json try_to_send(const json& output, Transfer& transfer) {
  try {
    return send_output(output, transfer, nullptr);
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
    document[key] =
        core::parse_json(receive_list("the list of " + key, url.get<std::string>(), transfer));
  }
}

void fetch(const json& document, Transfer& transfer, const SourceReader& sources,
           NodeCache* cache) {
  const auto& items = document.at("items");
  std::vector<std::optional<std::string>> reasons(items.size());
  Workers workers(items.size(), transfer.threads());
  workers.run([&](std::size_t i) {
    if (items[i].contains("source"))
      reasons[i] = fetch_from_source(items[i], transfer, sources);
    else
      fetch_stored(items[i], transfer, cache);
  });
  json wanted = json::object();
  std::vector<const json*> missing;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (!reasons[i]) continue;
    wanted[items[i].at("digest").get<std::string>()] = std::move(*reasons[i]);
    missing.push_back(&items[i]);
  }
  if (missing.empty()) return;
  transfer.send_text("the list of missing items", document.at("wanted"),
                     wanted.dump(-1, ' ', false, json::error_handler_t::replace));
  for (const auto* item : missing) fetch_once_uploaded(*item, transfer, cache);
}

bool collect(const json& document, int exit_code, Transfer& transfer) {
  json report{{"exit_code", exit_code}, {"outputs", json::array()}};
  bool is_complete = exit_code == 0;
  std::map<std::string, HashedOutput> hashed;
  if (is_complete) hashed = ask_driver(document, transfer);
  report["asked"] = !hashed.empty();
  for (const auto& output : document.at("outputs")) {
    const auto found = hashed.find(output.at("name").get<std::string>());
    auto entry = exit_code == 0 ? send_output(output, transfer,
                                              found == hashed.end() ? nullptr : &found->second)
                                : try_to_send(output, transfer);
    is_complete &= entry.at("kind") != "none";
    report["outputs"].push_back(std::move(entry));
  }
  if (exit_code != 0) report["failure"] = failure_text(document.at("failure").get<std::string>());
  const auto text = report.dump(-1, ' ', false, json::error_handler_t::replace);
  transfer.send_text("the report", document.at("report"), text);
  return is_complete;
}

}  // namespace pipeline::stager
