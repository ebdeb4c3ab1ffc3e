#include "docker/build_reason.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/joined.hpp"
#include "docker/image_storage.hpp"
#include "docker/json_text.hpp"
#include "docker/package_layers.hpp"

namespace pipeline::docker {

namespace {

constexpr std::size_t max_named_items = 4;

/// Parts of an image below the layers of its packages.
const std::vector<std::string> below_packages{"apt_packages", "apt_snapshot",
                                              "dockerfile",   "environment",
                                              "parent_id",    "python_package_installer"};

/// Returns the parts in the label of an image; empty if it has no such label.
PlanParts parts_of(const nlohmann::json& image) {
  PlanParts parts;
  const auto labels = image.find("Labels");
  if (labels == image.end()) return parts;
  const auto json = core::parse_json(text_at(*labels, "pipe.parts"));
  if (!json.is_object()) return parts;
  for (auto& [name, items] : json.items())
    for (auto& item : items)
      if (item.is_string()) parts[name].push_back(item.get<std::string>());
  return parts;
}

/// Returns `VERB ITEM, ...` with the first items, and the number of the others.
std::string list(const char* verb, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  auto text = verb + (" " + core::joined(items | std::views::take(max_named_items), ", "));
  if (items.size() > max_named_items)
    text += " and " + std::to_string(items.size() - max_named_items) + " more";
  return text;
}

/// Returns the items that `others` lacks.
std::vector<std::string> only_in(const std::vector<std::string>& items,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> result;
  for (auto& item : items)
    if (std::ranges::find(others, item) == others.end()) result.push_back(item);
  return result;
}

std::vector<std::string> part_of(const PlanParts& parts, const std::string& name) {
  const auto found = parts.find(name);
  return found == parts.end() ? std::vector<std::string>() : found->second;
}

/// Returns the number of equal items less that of different ones.
int likeness(const PlanParts& parts, const PlanParts& other) {
  std::set<std::string> names;
  for (const auto& each : {parts, other})
    for (const auto& [name, items] : each) names.insert(name);
  int result = 0;
  for (const auto& name : names) {
    const auto now = part_of(parts, name), before = part_of(other, name);
    result += static_cast<int>(now.size()) - 2 * static_cast<int>(only_in(now, before).size()) -
              static_cast<int>(only_in(before, now).size());
  }
  return result;
}

/// The image that is compared with the plan.
struct SimilarImage {
  PlanParts parts;  ///< Empty: no image is similar.
  std::string name;
  std::string packages;  ///< Value of the label `pipe.packages`.
};

/// Returns the most similar image with the same parent image; of equally similar ones the youngest.
SimilarImage most_similar(const PlanParts& parts, const nlohmann::json& images) {
  SimilarImage similar;
  std::pair<int, std::uint64_t> best{0, 0};
  for (const auto& image : images) {
    auto other = parts_of(image);
    if (other.empty() || part_of(other, "parent_image") != part_of(parts, "parent_image")) continue;
    const std::pair score{likeness(parts, other), number_at(image, "Created")};
    // If more items differ than agree, the image is an unrelated one.
    if (score.first <= 0 || score <= best) continue;
    best = score;
    const auto references = names_of(image);
    similar = {std::move(other), references.empty() ? std::string() : references.front(),
               text_at(image.at("Labels"), "pipe.packages")};
  }
  return similar;
}

}  // namespace

std::string parts_to_label(const PlanParts& parts) {
  return nlohmann::json(parts).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string build_reason(const PlanParts& parts, const nlohmann::json& images,
                         const PackageLayers& layers) {
  const auto similar = most_similar(parts, images);
  if (similar.parts.empty()) return layers.empty() ? "new" : "new: " + describe_layers({}, layers);
  std::set<std::string> names;
  for (const auto& each : {parts, similar.parts})
    for (const auto& [name, items] : each) names.insert(name);
  std::string reason;
  const auto differs = [&](const std::string& name) {
    return part_of(parts, name) != part_of(similar.parts, name);
  };
  for (auto& name : names) {
    if (!differs(name)) continue;
    reason += reason.empty() ? "" : "; ";
    if (name == "parent_id") {
      reason += "parent image changed";
      continue;
    }
    if (name == "packages" && !layers.empty()) {
      reason += "packages changed (" +
                describe_layers(layers_of_label(similar.packages), layers,
                                std::ranges::any_of(below_packages, differs)) +
                ")";
      continue;
    }
    const auto now = part_of(parts, name), before = part_of(similar.parts, name);
    const auto added = list("added", only_in(now, before)),
               removed = list("removed", only_in(before, now));
    reason += name + " changed";
    if (!added.empty() || !removed.empty())
      reason += " (" + added + (added.empty() || removed.empty() ? "" : ", ") + removed + ")";
  }
  if (reason.empty()) reason = "files or templates changed";
  return reason + (similar.name.empty() ? "" : ", compared with " + similar.name);
}

}  // namespace pipeline::docker
