#include "orchestrators/kubernetes/node_contents.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace pipeline::orchestrators::kubernetes {
namespace {

constexpr std::uint64_t min_object = 1 << 20, min_held = 16 << 20;  ///< Bytes.
constexpr std::size_t max_objects = 1'000, max_nodes = 100;
/// A node with all ten tenths weighs 50. Nodes on which the step has not failed weigh 100
/// (affinity.cpp), so a node on which the step has failed stays avoided.
constexpr unsigned weight_of_tenth = 5;

struct Object {
  std::string digest;  ///< In hex.
  std::uint64_t bytes;
};

/// Returns the size of an artifact that pods download from the remote store; nothing if it is not
/// known without a walk over a folder.
std::optional<std::uint64_t> size_of(const AttemptInput& input) {
  if (input.elsewhere) return input.elsewhere->bytes;
  if (input.remote || !input.pieces.empty()) return std::nullopt;
  std::error_code error;
  const auto size = std::filesystem::file_size(input.path, error);
  return error ? std::nullopt : std::optional<std::uint64_t>(size);
}

/// Returns the large artifacts among the inputs.
std::vector<Object> objects_of(const AttemptSpec& attempt) {
  std::vector<Object> objects;
  const auto add = [&](const std::string& digest, std::optional<std::uint64_t> bytes) {
    if (bytes && *bytes >= min_object && objects.size() < max_objects)
      objects.push_back({digest, *bytes});
  };
  for (const auto& input : attempt.inputs) {
    add(input.digest, size_of(input));
    for (std::size_t i = 0; i < input.pieces.size(); ++i)
      if (const auto piece = input.pieces[i]; piece.bytes >= min_object)
        add(piece.digest.hex(), piece.bytes);
  }
  return objects;
}

}  // namespace

void NodeContents::note(const AttemptSpec& attempt, const std::string& node) {
  if (node.empty()) return;
  for (const auto& object : objects_of(attempt)) nodes_[object.digest].insert(node);
}

PreferredNodes NodeContents::holders(const AttemptSpec& attempt) const {
  std::map<std::string, std::uint64_t> held;
  std::uint64_t total = 0;
  for (const auto& object : objects_of(attempt)) {
    total += object.bytes;
    const auto found = nodes_.find(object.digest);
    if (found == nodes_.end()) continue;
    for (const auto& node : found->second) held[node] += object.bytes;
  }
  PreferredNodes preferred;
  if (held.size() > max_nodes) return preferred;
  for (const auto& [node, bytes] : held) {
    const auto tenths = static_cast<unsigned>(bytes * 10 / total);
    if (bytes >= min_held && tenths > 0) preferred[tenths * weight_of_tenth].push_back(node);
  }
  return preferred;
}

}  // namespace pipeline::orchestrators::kubernetes
