#include "docker/package_layers.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "lockfile/lock_file.hpp"

namespace pipeline::docker {
namespace {

/// From this size in bytes, a package has a layer of its own; making a layer takes about a second.
/// Sizes are those of the compressed files; installed packages are two to four times as large.
constexpr std::uint64_t heavy = 25'000'000;
/// Packages below this size share the layer of light packages.
constexpr std::uint64_t light = 1'000'000;

/// An image has 127 layers at most, and its parent needs some of them.
constexpr std::size_t max_heavy_layers = 40;

constexpr std::size_t named_packages = 6;

std::string label_of(const lockfile::LockedPackage& package) {
  return package.name + "==" + package.version + " " + package.sha256;
}

bool are_equal(const std::vector<lockfile::LockedPackage>& one,
               const std::vector<lockfile::LockedPackage>& other) {
  return std::ranges::equal(one, other, {}, label_of, label_of);
}

lockfile::LockedEnvironment all_of(const PackageLayers& layers) {
  lockfile::LockedEnvironment environment;
  for (const auto& layer : layers)
    environment.packages.insert(environment.packages.end(), layer.begin(), layer.end());
  return environment;
}

/// Returns the bytes of the packages that `before` lacks. The builder's cache has the other files.
std::uint64_t bytes_of_new(const PackageLayers& before, const PackageLayers& after) {
  std::set<std::string> known;
  for (const auto& package : all_of(before).packages) known.insert(label_of(package));
  std::uint64_t bytes = 0;
  for (const auto& package : all_of(after).packages)
    if (!known.contains(label_of(package))) bytes += package.size;
  return bytes;
}

}  // namespace

PackageLayers package_layers(const lockfile::LockedEnvironment& environment) {
  auto packages = environment.packages;
  std::ranges::stable_sort(packages, std::greater<>(), &lockfile::LockedPackage::size);
  PackageLayers layers;
  std::vector<lockfile::LockedPackage> medium_ones, light_ones, without_hash;
  for (auto& package : packages) {
    if (package.sha256.empty())
      without_hash.push_back(std::move(package));
    else if (package.size >= heavy && layers.size() < max_heavy_layers)
      layers.push_back({std::move(package)});
    else
      (package.size >= light ? medium_ones : light_ones).push_back(std::move(package));
  }
  for (auto* group : {&medium_ones, &light_ones, &without_hash}) {
    std::ranges::sort(*group, {}, &lockfile::LockedPackage::name);
    if (!group->empty()) layers.push_back(std::move(*group));
  }
  return layers;
}

std::string layers_to_label(const PackageLayers& layers) {
  auto label = nlohmann::json::array();
  for (const auto& layer : layers) {
    auto& names = label.emplace_back(nlohmann::json::array());
    for (const auto& package : layer) names.push_back(label_of(package));
  }
  return label.dump();
}

PackageLayers layers_of_label(const std::string& label) {
  PackageLayers layers;
  const auto read = core::parse_json(label);
  if (!read.is_array()) return layers;
  for (const auto& layer : read) {
    auto& packages = layers.emplace_back();
    for (const auto& item : layer) {
      const auto text = item.is_string() ? item.get<std::string>() : std::string();
      const auto version = text.find("=="), hash = text.find(' ');
      if (version == text.npos || hash == text.npos || hash < version) continue;
      lockfile::LockedPackage package;
      package.name = text.substr(0, version);
      package.version = text.substr(version + 2, hash - version - 2);
      package.sha256 = text.substr(hash + 1);
      packages.push_back(std::move(package));
    }
  }
  return layers;
}

std::vector<LayerTitle> layer_titles(const PackageLayers& layers) {
  std::vector<LayerTitle> titles;
  for (const auto& layer : layers) {
    auto number =
        "layer " + std::to_string(titles.size() + 1) + " of " + std::to_string(layers.size()) + ":";
    auto title = number;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      bytes += layer[i].size;
      if (i < named_packages) title += (i ? ", " : " ") + layer[i].name + " " + layer[i].version;
    }
    if (layer.size() > named_packages)
      title += " and " + std::to_string(layer.size() - named_packages) + " more";
    if (bytes > 0) title += " (" + core::format_bytes(bytes) + ")";
    titles.push_back({std::move(title), std::move(number), bytes});
  }
  return titles;
}

std::string describe_packages(const lockfile::LockedEnvironment& before,
                              const lockfile::LockedEnvironment& after) {
  if (before.packages.empty()) return core::counted(after.packages.size(), "package");
  std::map<char, std::vector<std::string>> changes;
  for (const auto& line : lockfile::describe({before, after}))
    changes[line.front()].push_back(line.substr(2));
  std::string text;
  const auto add = [&](const char* verb, char kind) {
    const auto& names = changes[kind];
    if (names.empty()) return;
    text += (text.empty() ? "" : ", ") + std::string(verb);
    text += " " + core::joined(names | std::views::take(named_packages), ", ");
    if (names.size() > named_packages)
      text += " and " + std::to_string(names.size() - named_packages) + " more";
  };
  add("added", '+'), add("changed", '~'), add("removed", '-');
  return text;
}

std::string describe_layers(const PackageLayers& before, const PackageLayers& after,
                            bool all_again) {
  auto text = describe_packages(all_of(before), all_of(after));
  const auto same = all_again ? after.begin() : std::ranges::mismatch(after, before, are_equal).in1;
  const auto bytes = bytes_of_new(before, after);
  text += (text.empty() ? "" : "; ");
  if (bytes > 0) text += core::format_bytes(bytes) + " to download, ";
  return text + std::to_string(after.end() - same) + " of " + std::to_string(after.size()) +
         (after.size() == 1 ? " layer to make" : " layers to make");
}

}  // namespace pipeline::docker
