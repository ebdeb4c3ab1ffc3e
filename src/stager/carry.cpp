#include "stager/carry.hpp"

#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/content.hpp"
#include "archive/unpack.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "stager/parts.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Maximum size that servers accept in one request.
constexpr std::uint64_t largest_at_once = std::uint64_t{5} << 30;

void check(const std::string& what, const core::Digest& got, const std::string& wanted) {
  if (got.hex() != wanted)
    throw TransferError(what + " came damaged: its SHA-256 is " + got.hex() + ", not " + wanted,
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

void fetch_tree(const json& item, const fs::path& to, Transfer& transfer) {
  core::make_folders(to);
  archive::Unpacker unpacker(to);
  transfer.receive(to.string(), item.at("url"),
                   [&](std::string_view bytes) { unpacker.feed(bytes); });
  unpacker.finish();
  auto nodes = archive::scan_tree(to);
  archive::hash_tree(to, nodes);
  check(to.string(), archive::tree_digest(nodes), item.at("digest"));
}

json no_output(const json& output) {
  return {{"name", output.at("name")},
          {"key", output.at("key")},
          {"upload", output.at("upload")},
          {"kind", "none"}};
}

/// Uploads an output, in one request if it is small, else in parts; returns its entry in the
/// report.
json send_output(const json& output, Transfer& transfer) {
  const fs::path path = output.at("path").get<std::string>();
  const auto what = "the output '" + output.at("name").get<std::string>() + "'";
  auto entry = no_output(output);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return entry;
  std::vector<archive::TreeNode> nodes;
  const bool is_tree = S_ISDIR(status.st_mode);
  if (is_tree)
    nodes = archive::scan_tree(path);
  else if (!S_ISREG(status.st_mode))
    throw core::EnvironmentError(
        "cannot keep " + what + ": it is " +
        (S_ISLNK(status.st_mode) ? "a symbolic link" : "a socket, a pipe or a device"));
  const auto content = is_tree ? archive::Content(path, nodes) : archive::Content(path);
  const std::vector<std::string> whole{output.at("whole").get<std::string>()};
  const auto urls = part_urls(output);
  const auto part = part_size(content.size(), urls.size());
  bool at_once = content.size() <= smallest_part;
  core::Digest digest;
  json tags = json::array();
  if (!at_once) try {
      digest = send_parts(what, content, urls, part, transfer, tags);
    } catch (const TransferError& error) {
      // A restarted server may have forgotten the upload.
      at_once = error.code() == "NoSuchUpload" && content.size() <= largest_at_once;
      if (!at_once) throw;
    }
  if (at_once) {
    tags = json::array();
    digest = send_parts(what, content, whole, largest_at_once, transfer, tags);
  }
  entry["kind"] = is_tree ? "tree" : "file";
  entry["bytes"] = content.size();
  entry["digest"] = digest.hex();
  entry["executable"] = !is_tree && (status.st_mode & S_IXUSR);
  entry["at_once"] = at_once;
  entry["tags"] = std::move(tags);
  return entry;
}

/// Uploads an output of a failed step: what prevents it is no failure of its own.
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
  constexpr std::size_t most = 64 * 1024;
  return core::read_untrusted_file(file, most).value_or("");
}

}  // namespace

void fetch(const json& document, Transfer& transfer) {
  for (const auto& item : document.at("items")) {
    const fs::path to = item.at("to").get<std::string>();
    const std::string kind = item.at("kind");
    if (kind == "tree") {
      fetch_tree(item, to, transfer);
    } else if (kind == "text") {
      core::make_folders(to.parent_path());
      core::write_file_atomically(to, item.at("text").get<std::string>());
    } else {
      fetch_file(item, to, transfer);
    }
  }
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
  transfer.send("the report", document.at("report"), text.size(),
                [&](std::uint64_t offset, std::span<char> into) {
                  return text.copy(into.data(), into.size(), offset);
                });
  return is_complete;
}

}  // namespace pipeline::stager
