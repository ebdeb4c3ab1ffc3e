#include "orchestrators/kubernetes/pod_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

json events(const std::vector<std::pair<std::string, std::string>>& warnings) {
  json items = json::array();
  for (const auto& [reason, message] : warnings)
    items.push_back({{"reason", reason}, {"message", message}});
  return {{"items", items}};
}

TEST(PodEvents, are_lines_each_once) {
  EXPECT_THAT(warnings_in(events({{"FailedMount", "no such claim"},
                                  {"FailedMount", "no such claim"},
                                  {"Failed", "Error: ErrImagePull"}}),
                          "the pod p could not start"),
              ElementsAre("FailedMount: no such claim", "Failed: Error: ErrImagePull"));
  EXPECT_THAT(warnings_in(json::object(), ""), IsEmpty());
}

TEST(PodEvents, that_repeat_the_pods_status_are_left_out) {
  const std::string said =
      "the pod p could not start: (debian, CreateContainerConfigError): couldn't find key token";
  EXPECT_THAT(warnings_in(events({{"Failed", "Error: couldn't find key token"},
                                  {"Failed", "couldn't find key token"},
                                  {"Failed", "Error: couldn't find key secret"}}),
                          said),
              ElementsAre("Failed: Error: couldn't find key secret"));
}

TEST(PodEvents, with_the_last_refusal_of_a_pod_are_used) {
  json all;
  const auto add = [&](const char* reason, const char* time, const char* message) {
    all["items"].push_back({{"reason", reason}, {"lastTimestamp", time}, {"message", message}});
  };
  EXPECT_EQ(refusal_in(all), "");
  add("FailedCreate", "2026-11-21T08:00:01Z", "first");
  add("FailedCreate", "2026-11-21T08:00:03Z", "last");
  add("FailedCreate", "2026-11-21T08:00:02Z", "second");
  add("Started", "2026-11-21T08:00:04Z", "other");
  EXPECT_EQ(refusal_in(all), "last");
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
