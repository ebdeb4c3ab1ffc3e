#include "remote_cache/remote_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::remote_cache {
namespace {

using test::run_task;
using testing::HasSubstr;

class NamesInABucket : public test::BucketTest {
 protected:
  settings::RemoteStoreSettings refusing_settings() const {
    auto all = settings();
    all.options["endpoint"] = refusing.url();
    return all;
  }

  bool refuses_lists = false;
  /// Refuses each conditional write.
  test::HttpServer refusing{loop, [this](test::HttpExchange& exchange) {
                              if (refuses_lists && exchange.method == "GET" &&
                                  exchange.target.find("list-type") != std::string::npos)
                                return exchange.answer(403,
                                                       "<Error><Code>AccessDenied</Code></Error>");
                              if (exchange.method == "PUT" && exchange.target.ends_with(".json"))
                                return exchange.answer(412, "<Error><Code>X</Code></Error>");
                              return answer(exchange);
                            }};
  core::TemporaryFolder folder;
  store::ArtifactStore artifacts{folder.path() / "artifacts"};
  blobs::RemoteArtifacts bucket{
      loop, refusing_settings(),
      async::RetryPolicy{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2}};
  RemoteNames names{bucket, artifacts, std::chrono::milliseconds(300)};
};

TEST_F(NamesInABucket, are_given_up_where_no_conditional_write_succeeds) {
  unsigned edits = 0;
  try {
    run_task(loop, names.change("prod", [&](store::PublishedName&) { return ++edits; }));
    ADD_FAILURE() << "changed";
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("could not be changed"));
  }
  EXPECT_GT(edits, 1u);
  EXPECT_TRUE(objects.empty()) << "no claim is left";
}

TEST_F(NamesInABucket, leave_no_claim_where_claims_cannot_be_listed) {
  refuses_lists = true;
  EXPECT_THROW(run_task(loop, names.change("prod", [](store::PublishedName&) { return 1U; })),
               core::EnvironmentError);
  EXPECT_TRUE(objects.empty()) << "a claim is left, for which other processes would wait";
}

}  // namespace
}  // namespace pipeline::remote_cache
