#include "stager/question.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "file_tree/content.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::chrono::milliseconds answer_poll_interval{500};

/// Hashes an output. Returns nothing for an output that the driver downloads, or that is missing,
/// small, or neither a file nor a folder.
std::optional<HashedOutput> hash_output(const json& output, std::uint64_t min_bytes,
                                        Transfer& transfer) {
  const fs::path path = output.at("path").get<std::string>();
  struct stat status {};
  if (!output.value("stays", false) || ::lstat(path.c_str(), &status) != 0) return std::nullopt;
  const bool is_tree = S_ISDIR(status.st_mode);
  if (!is_tree && !S_ISREG(status.st_mode)) return std::nullopt;
  std::vector<file_tree::TreeNode> nodes;
  if (is_tree) nodes = file_tree::scan_tree(path, {path});
  const auto content = is_tree ? file_tree::Content(path, nodes) : file_tree::Content(path);
  if (content.size() < min_bytes) return std::nullopt;
  std::optional<file_tree::FileDigests> files;
  if (is_tree) files.emplace(content, nodes);
  HashedOutput hashed;
  hashed.bytes = content.size();
  hashed.part = part_size(content.size(), output.at("signatures").size());
  hashed.sums = hash_parts(content, hashed.part, transfer.threads(), [&](std::string_view bytes) {
    if (files) files->update(bytes);
  });
  if (is_tree) describe_folder(nodes, hashed.described);
  return hashed;
}

/// Returns the output's entry in the question.
json row_of(const std::string& name, const HashedOutput& hashed) {
  auto row = hashed.described;
  row["name"] = name;
  row["kind"] = hashed.described.empty() ? "file" : "tree";
  row["bytes"] = hashed.bytes;
  row["digest"] = hashed.sums.digest.hex();
  row["tags"] = tags_of(hashed.sums);
  return row;
}

/// Returns an empty object if there is no answer in time.
json wait_for_answer(const json& question, Transfer& transfer) {
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::seconds(question.at("seconds").get<unsigned>());
  for (;;) {
    if (const auto text = transfer.find("the driver's answer", question.at("answer")))
      return core::parse_json(*text);
    if (std::chrono::steady_clock::now() >= until) return json::object();
    std::this_thread::sleep_for(answer_poll_interval);
  }
}

}  // namespace

void describe_folder(const std::vector<file_tree::TreeNode>& nodes, json& entry) {
  std::uint64_t bytes = 0;
  for (const auto& node : nodes) bytes += node.bytes;
  entry["artifact"] = file_tree::tree_digest(nodes).hex();
  entry["artifact_bytes"] = bytes;
}

json tags_of(const PartSums& sums) {
  auto tags = json::array();
  for (const auto& sum : sums.md5s) tags.push_back("\"" + core::hex_of(sum) + "\"");
  return tags;
}

std::map<std::string, HashedOutput> ask_driver(const json& document, Transfer& transfer) {
  std::map<std::string, HashedOutput> outputs;
  const auto found = document.find("question");
  if (found == document.end()) return outputs;
  const auto& question = *found;
  try {
    auto rows = json::array();
    for (const auto& output : document.at("outputs")) {
      auto hashed = hash_output(output, question.at("from").get<std::uint64_t>(), transfer);
      if (!hashed) continue;
      const auto name = output.at("name").get<std::string>();
      rows.push_back(row_of(name, *hashed));
      outputs.insert_or_assign(name, std::move(*hashed));
    }
    if (outputs.empty()) return outputs;
    json asked;
    asked["outputs"] = std::move(rows);
    transfer.send_text("the question about outputs", question.at("write"), asked.dump());
    const auto answers = wait_for_answer(question, transfer);
    const json::json_pointer place("/outputs");
    if (!answers.is_object() || !answers.contains(place)) return outputs;
    for (auto& [name, hashed] : outputs)
      if (const auto answer = answers.at(place).find(name); answer != answers.at(place).end())
        hashed.answer = *answer;
  } catch (const core::EnvironmentError& error) {
    std::fprintf(stderr, "pipe-stager: %s\n", error.what());
  }
  return outputs;
}

}  // namespace pipeline::stager
