#include "driver/run_results.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"

namespace pipeline::driver {
namespace {

TEST(RunResults, a_summary_from_a_bucket_with_members_of_other_types_is_not_read) {
  const core::TemporaryFolder folder;
  Workspace workspace({}, [](std::string_view) {});
  auto& store = workspace.store(folder.path() / "state");
  const auto read = [&](const char* text) {
    return read_summary(nlohmann::json::parse(text), workspace, store);
  };
  const auto good = read(R"({"event": "summary", "run": "r1", "status": "failed", "failed": 2})");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->outcome.failed, 2u);
  EXPECT_FALSE(read(R"({"event": "summary", "run": 7})"));
  EXPECT_FALSE(read(R"({"event": "summary", "failed": "many"})"));
  EXPECT_FALSE(read(R"({"event": "summary", "results": [1]})"));
}

}  // namespace
}  // namespace pipeline::driver
