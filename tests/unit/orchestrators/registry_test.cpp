#include "orchestrators/registry/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "support/error_text.hpp"

namespace pipeline::orchestrators {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

/// Returns the names of the orchestrators for which this holds.
std::vector<std::string> with(bool Traits::*trait) {
  std::vector<std::string> names;
  for (const auto& entry : catalog())
    if (entry.traits.*trait) names.push_back(entry.name);
  return names;
}

TEST(OrchestratorCatalog, has_each_orchestrator_with_its_factory) {
  EXPECT_THAT(orchestrator_names(), ElementsAre("docker", "local", "kubernetes", "slurm"));
  EXPECT_EQ(factories().size(), catalog().size());
  for (const auto& entry : catalog()) EXPECT_TRUE(factories().contains(entry.name)) << entry.name;
  EXPECT_EQ(describe_orchestrators(),
            "docker, in containers; local, as processes of this machine; kubernetes, as Jobs of a "
            "cluster; slurm, as jobs of a Slurm cluster that shares this machine's files");
}

TEST(OrchestratorCatalog, an_unknown_name_is_an_error_with_a_suggestion) {
  EXPECT_EQ(find_entry("kubernets"), nullptr);
  asio::io_context loop;
  for (const auto& text : {test::error_text([] { entry_of("kubernets"); }),
                           test::error_text([&] { make_orchestrator("kubernets", loop, {}); })}) {
    EXPECT_THAT(text, HasSubstr("there is no orchestrator 'kubernets'; known are: docker, local, "
                                "kubernetes, slurm"));
    EXPECT_THAT(text, HasSubstr("did you mean 'kubernetes'?"));
  }
  EXPECT_THROW(make_orchestrator("", loop, {}), core::InputError);
}

TEST(OrchestratorCatalog, has_the_traits_that_hold_on_every_machine) {
  EXPECT_THAT(with(&Traits::uses_images), ElementsAre("docker", "kubernetes"));
  EXPECT_THAT(with(&Traits::needs_engine), ElementsAre("docker", "kubernetes"));
  EXPECT_THAT(with(&Traits::runs_on_engine), ElementsAre("docker"));
  EXPECT_THAT(with(&Traits::evaluates_constraints), ElementsAre("kubernetes"));
  EXPECT_THAT(with(&Traits::renders_manifests), ElementsAre("kubernetes"));
  EXPECT_THAT(with(&Traits::can_detach), ElementsAre("kubernetes"));
}

TEST(OrchestratorCatalog, names_the_setting_by_which_a_step_reads_data_outside_its_key) {
  const auto settings_of = [](const StepSpec& step) {
    std::vector<std::string> found;
    for (const auto& entry : catalog())
      found.push_back(entry.setting_outside_key ? entry.setting_outside_key(step) : "never");
    return found;
  };
  StepSpec step;
  EXPECT_THAT(settings_of(step), ElementsAre("", "never", "", "never"));
  step.settings->docker.volumes = std::vector<std::string>{"/data:/data"};
  EXPECT_THAT(settings_of(step), ElementsAre("docker.volumes", "never", "", "never"));
  step.settings->kubernetes.volumes = nlohmann::json::array({"pvc/data:/data"});
  EXPECT_THAT(settings_of(step),
              ElementsAre("docker.volumes", "never", "kubernetes.volumes", "never"));
  step.settings->kubernetes.volumes = nlohmann::json::array({"/data:/data"});
  EXPECT_THAT(settings_of(step), ElementsAre("docker.volumes", "never", "", "never"));
}

TEST(OrchestratorCatalog, fields_of_connections_have_one_name_each) {
  std::set<std::string> names;
  for (const auto& entry : catalog())
    for (const auto& field : entry.connection)
      EXPECT_TRUE(names.insert(field.name).second) << field.name;
  const StringMap all{{"context", "lab"}, {"claim_path", "/mnt"}, {"partition", "gpu"}};
  EXPECT_THAT(connection_of(entry_of("kubernetes"), all),
              ElementsAre(Pair("claim_path", "/mnt"), Pair("context", "lab")));
  EXPECT_THAT(connection_of(entry_of("local"), all), IsEmpty());
}

TEST(OrchestratorRegistry, makes_an_orchestrator_by_its_name) {
  asio::io_context loop;
  const auto made = make_orchestrator("local", loop, {});
  EXPECT_EQ(made->capabilities().name, "local");
  EXPECT_FALSE(made->capabilities().traits.uses_images);
}

}  // namespace
}  // namespace pipeline::orchestrators
