#include "docker/build_reason.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/joined.hpp"
#include "docker/image_storage.hpp"
#include "docker/json_text.hpp"
#include "docker/package_layers.hpp"

namespace pipeline::docker {

namespace {

constexpr std::size_t named_items = 4;

/// Parts of an image below the layers of its packages.
const std::vector<std::string> below_packages{"apt_packages", "apt_snapshot",
                                              "dockerfile",   "environment",
                                              "parent_id",    "python_package_installer"};

/// Returns the parts in the label of an image; empty if it has no such label.
PlanParts parts_of(const nlohmann::json& image) {
  PlanParts parts;
  auto labels = image.find("Labels");
  if (labels == image.end() || !labels->is_object() || !labels->contains("pipe.parts"))
    return parts;
  auto json = core::parse_json((*labels)["pipe.parts"].get<std::string>());
  if (!json.is_object()) return parts;
  for (auto& [name, items] : json.items())
    for (auto& item : items)
      if (item.is_string()) parts[name].push_back(item.get<std::string>());
  return parts;
}

/// Returns `VERB ITEM, ...` with the first items, and the number of the others.
std::string list(const char* verb, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  auto text = verb + (" " + core::joined(items | std::views::take(named_items), ", "));
  if (items.size() > named_items)
    text += " and " + std::to_string(items.size() - named_items) + " more";
  return text;
}

std::vector<std::string> only_in(const std::vector<std::string>& these,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> result;
  for (auto& item : these)
    if (std::ranges::find(others, item) == others.end()) result.push_back(item);
  return result;
}

}  // namespace

std::string parts_to_label(const PlanParts& parts) {
  return nlohmann::json(parts).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string build_reason(const PlanParts& parts, const nlohmann::json& images,
                         const PackageLayers& layers) {
  auto part = [](const PlanParts& of, const std::string& name) {
    auto found = of.find(name);
    return found == of.end() ? std::vector<std::string>{} : found->second;
  };
  std::set<std::string> names;
  for (auto& [name, items] : parts) names.insert(name);
  PlanParts nearest;
  std::string nearest_name, nearest_packages;
  std::pair<int, std::uint64_t> best{0, 0};
  for (auto& image : images) {
    auto other = parts_of(image);
    if (other.empty() || part(other, "parent_image") != part(parts, "parent_image")) continue;
    std::set<std::string> all = names;
    for (auto& [name, items] : other) all.insert(name);
    int likeness = 0;  // The number of equal items less that of different ones.
    for (auto& name : all) {
      auto now = part(parts, name), before = part(other, name);
      likeness += static_cast<int>(now.size()) - 2 * static_cast<int>(only_in(now, before).size()) -
                  static_cast<int>(only_in(before, now).size());
    }
    if (likeness <= 0) continue;  // More parts differ than agree, so it is an unrelated image.
    std::pair score{likeness, number_at(image, "Created")};
    if (score <= best) continue;
    best = score;
    nearest = other;
    nearest_packages = text_at(image.at("Labels"), "pipe.packages");
    const auto references = names_of(image);
    nearest_name = references.empty() ? std::string() : references.front();
  }
  if (nearest.empty()) return layers.empty() ? "new" : "new: " + describe_layers({}, layers, false);
  for (auto& [name, items] : nearest) names.insert(name);
  std::string reason;
  const auto differs = [&](const std::string& name) {
    return part(parts, name) != part(nearest, name);
  };
  for (auto& name : names) {
    auto now = part(parts, name), before = part(nearest, name);
    if (!differs(name)) continue;
    reason += reason.empty() ? "" : "; ";
    if (name == "parent_id") {
      reason += "parent image changed";
      continue;
    }
    if (name == "packages" && !layers.empty()) {
      reason += "packages changed (" +
                describe_layers(layers_of_label(nearest_packages), layers,
                                std::ranges::any_of(below_packages, differs)) +
                ")";
      continue;
    }
    auto added = list("added", only_in(now, before)),
         removed = list("removed", only_in(before, now));
    reason += name + " changed";
    if (!added.empty() || !removed.empty())
      reason += " (" + added + (added.empty() || removed.empty() ? "" : ", ") + removed + ")";
  }
  if (reason.empty()) reason = "files or templates changed";
  return reason + (nearest_name.empty() ? "" : ", compared with " + nearest_name);
}

}  // namespace pipeline::docker
