#include "docker/package_layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "docker/build_reason.hpp"

namespace pipeline::docker {
namespace {

using testing::HasSubstr;

lockfile::LockedPackage package(const std::string& name, const std::string& version,
                                std::uint64_t size) {
  lockfile::LockedPackage made;
  made.name = name;
  made.version = version;
  made.size = size;
  made.file = name + "-" + version + "-py3-none-any.whl";
  made.sha256 = std::string(60, '0') + version.substr(0, 1) + name.substr(0, 1);
  return made;
}

PackageLayers layers(std::vector<lockfile::LockedPackage> packages) {
  lockfile::LockedEnvironment environment;
  environment.packages = std::move(packages);
  return package_layers(environment);
}

const PackageLayers before =
    layers({package("torch", "2.4.0", 800 << 20), package("numpy", "1.26.4", 18 << 20),
            package("six", "1.16.0", 11 << 10)});

std::vector<std::string> titles_of(const PackageLayers& all) {
  std::vector<std::string> titles;
  for (auto& each : layer_titles(all)) titles.push_back(std::move(each.title));
  return titles;
}

TEST(PackageLayers, differences_are_reported_with_bytes_and_layers) {
  EXPECT_EQ(describe_layers({}, before, false),
            "3 packages; 818 MiB to download, 3 of 3 layers to make");
  EXPECT_EQ(describe_layers(before, before, false), "0 of 3 layers to make");
  EXPECT_EQ(describe_layers(before, before, true), "3 of 3 layers to make");
  EXPECT_EQ(describe_layers(
                before,
                layers({package("torch", "2.4.0", 800 << 20), package("numpy", "2.1.0", 16 << 20),
                        package("tabulate", "0.9.0", 35 << 10)}),
                false),
            "added tabulate 0.9.0, changed numpy 1.26.4 -> 2.1.0, removed six 1.16.0; 16 MiB to "
            "download, 2 of 3 layers to make");
}

TEST(PackageLayers, packages_that_are_built_from_source_are_reported) {
  auto source = package("fast", "1.0", 35 << 10);
  source.file = "fast-1.0.tar.gz";
  EXPECT_EQ(describe_layers(layers({package("six", "1.16.0", 11 << 10)}),
                            layers({package("six", "1.16.0", 11 << 10), source}), false),
            "added fast 1.0 (built from source); 35 KiB to download, 1 of 1 layer to make");
}

TEST(PackageLayers, packages_of_a_layer_are_reported_while_it_is_made) {
  auto packages = std::vector{package("torch", "2.4.0", 800 << 20)};
  for (const auto* name : {"a", "b", "c", "d", "e", "f", "g", "h"})
    packages.push_back(package(name, "1", 1 << 10));
  EXPECT_THAT(
      titles_of(layers(packages)),
      testing::ElementsAre("layer 1 of 2: torch 2.4.0 (800 MiB)",
                           "layer 2 of 2: a 1, b 1, c 1, d 1, e 1, f 1 and 2 more (8 KiB)"));
}

TEST(PackageLayers, the_label_of_an_image_has_the_packages_for_the_next_comparison) {
  EXPECT_EQ(describe_layers(layers_of_label(layers_to_label(before)), before, false),
            "0 of 3 layers to make");
  for (const auto* damaged : {"", "{", "{}", "[1]", "[[1, \"x\", \"a b==c\"]]"})
    EXPECT_THAT(describe_layers(layers_of_label(damaged), before, false),
                HasSubstr("3 of 3 layers"));

  const PlanParts parts{
      {"parent_image", {"p"}}, {"parent_id", {"1"}}, {"packages", {"a", "b", "c", "d"}}};
  auto other = parts;
  other["packages"].pop_back();
  const nlohmann::json images{{{"Labels",
                                {{"pipe.parts", parts_to_label(other)},
                                 {"pipe.packages", layers_to_label({before[0], before[1]})}}},
                               {"RepoTags", {"pipe:env-2"}}}};
  EXPECT_EQ(build_reason(parts, images, before),
            "packages changed (added six 1.16.0; 11 KiB to download, 1 of 3 layers to make), "
            "compared with pipe:env-2");
  EXPECT_EQ(build_reason(parts, nlohmann::json::array(), before),
            "new: 3 packages; 818 MiB to download, 3 of 3 layers to make");
}

}  // namespace
}  // namespace pipeline::docker
