#include "engine/cache/cache_key.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::engine {
namespace {

TEST(CacheKey, has_the_users_version_of_a_step) {
  StepSpec step;
  step.name = "train";
  const auto before = key_parts("p", step, {}, {}, "image");
  step.version = "2024-01";
  const auto first = key_parts("p", step, {}, {}, "image");
  step.version = "2024-02";
  const auto second = key_parts("p", step, {}, {}, "image");
  EXPECT_NE(key_of(before), key_of(first));
  EXPECT_NE(key_of(first), key_of(second));
  EXPECT_EQ(differences(first, second), std::vector<std::string>{"version: 2024-01 -> 2024-02"});
}

TEST(CacheKey, has_images_and_commands_of_services_and_not_their_checks) {
  StepSpec step;
  step.services["db"] = {.image = "postgres:16", .ready = {.port = 5432}};
  const auto parts = [&] { return key_parts("p", step, {}, {}, "image"); };
  const auto before = parts();
  step.services["db"].ready = {.command = {"pg_isready"}, .timeout = std::chrono::minutes(5)};
  step.services["db"].resources.memory = 1024;
  EXPECT_EQ(key_of(parts()), key_of(before));
  step.services["db"].image = "postgres:17";
  EXPECT_EQ(differences(before, parts()),
            std::vector<std::string>{"service db: postgres:16 -> postgres:17"});
  step.services["db"].image = "postgres:16";
  step.services["db"].environment = {{"PGDATA", "/data"}};
  EXPECT_EQ(differences(before, parts()), std::vector<std::string>{"service db command changed"});
  step.services["db"].environment = {{"PGDATA", {}}};
  EXPECT_NE(key_of(parts()), key_of(before)) << "the variable has the step's value";
  step.services.clear();
  EXPECT_EQ(differences(before, parts()).size(), 2u);
}

TEST(CacheKey, has_the_numbers_of_nodes_and_processes_of_a_step_that_has_them) {
  StepSpec step;
  step.outputs.push_back({"shards", "shards"});
  const auto parts = [&] { return key_parts("p", step, {}, {}, "image"); };
  const auto before = parts();
  EXPECT_TRUE(std::ranges::none_of(before, [](const auto& part) {
    return part.name == "nodes" || part.name == "processes" || part.value.ends_with("nodes");
  }));
  step.nodes = {.count = 2};
  const auto two = parts();
  EXPECT_EQ(differences(before, two), (std::vector<std::string>{"new nodes", "new processes"}));
  step.nodes.done = NodesDone::first;
  step.nodes.visible = VisibleGpus::own;
  EXPECT_EQ(key_of(parts()), key_of(two))
      << "neither the end of the nodes nor the visible GPUs change the result";
  step.nodes.processes = per_gpu;
  EXPECT_EQ(differences(two, parts()), std::vector<std::string>{"processes: 1 -> gpus"});
  step.nodes = {.count = 3};
  EXPECT_EQ(differences(two, parts()), std::vector<std::string>{"nodes: 2 -> 3"});
  step.nodes.count = 2;
  step.outputs[0].from_all_nodes = true;
  EXPECT_EQ(differences(two, parts()),
            std::vector<std::string>{"output shards: shards -> shards of all nodes"});
}

TEST(CodeParts, of_code_that_cannot_be_read_are_an_error_for_every_step_that_has_it) {
  const core::TemporaryFolder folder;
  store::StatIndex stats(folder.path() / "index");
  core::write_file_atomically(folder.path() / "a.py", "");
  CodeParts parts(stats);
  const std::vector<store::TreeEntry> files{{"a.py", folder.path() / "a.py"},
                                            {"b.py", folder.path() / "b.py"}};
  for (int step = 0; step < 2; ++step)
    EXPECT_THROW(parts.of(files), core::EnvironmentError) << step;
  core::write_file_atomically(folder.path() / "b.py", "");
  EXPECT_EQ(parts.of(files).size(), 2u);
}

}  // namespace
}  // namespace pipeline::engine
