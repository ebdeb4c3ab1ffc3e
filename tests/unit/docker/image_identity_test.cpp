#include "docker/image_identity.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pipeline::docker {
namespace {

using nlohmann::json;

json image() {
  return json::parse(R"({"Id": "sha256:1", "Os": "linux", "Architecture": "amd64",
    "RootFS": {"Type": "layers", "Layers": ["sha256:a", "sha256:b"]},
    "Config": {"Env": ["PATH=/bin"], "Cmd": ["sh"]}})");
}

TEST(image_identity, is_the_same_in_each_store) {
  auto other = image();
  other["Id"] = "sha256:2";  // An index instead of a configuration.
  auto& config = other["Config"];
  for (const auto* unset : {"Entrypoint", "OnBuild", "Labels"}) config[unset] = nullptr;
  config["User"] = "";
  config["Volumes"] = json::object();
  config["Hostname"] = "of-the-store";
  EXPECT_EQ(image_identity(image()), image_identity(other));
}

TEST(image_identity, changes_with_whatever_a_step_would_notice) {
  const auto before = image_identity(image());
  for (const auto& [path, value] :
       {std::pair("/RootFS/Layers/1", json("sha256:c")), std::pair("/Config/Env/0", json("PATH=/")),
        std::pair("/Config/User", json("1000")), std::pair("/Config/OnBuild", json({"RUN x"})),
        std::pair("/Architecture", json("arm64"))}) {
    auto other = image();
    other[json::json_pointer(path)] = value;
    EXPECT_NE(image_identity(other), before) << path;
  }
}

TEST(user_of, is_empty_for_root_and_for_what_is_not_a_name) {
  auto with_user = image();
  EXPECT_EQ(user_of(with_user), "");
  for (const auto& [user, expected] :
       {std::pair(json("1000:1000"), "1000:1000"), std::pair(json("root"), ""),
        std::pair(json("0"), ""), std::pair(json(), ""), std::pair(json(7), "")}) {
    with_user["Config"]["User"] = user;
    EXPECT_EQ(user_of(with_user), expected) << user;
  }
  EXPECT_EQ(user_of(json::object()), "");
}

TEST(image_identity, is_the_id_where_the_engine_names_no_layers) {
  auto first = image(), second = image();
  first.erase("RootFS");
  second.erase("RootFS");
  second["Id"] = "sha256:2";
  EXPECT_NE(image_identity(first), image_identity(second));
}

}  // namespace
}  // namespace pipeline::docker
