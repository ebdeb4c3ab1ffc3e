#include "kubernetes_api/permissions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "kubernetes_api/json.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(KubernetesPermissions, role_is_bound_to_the_named_account) {
  EXPECT_THROW(role_manifests("ml", "ann"), core::InputError);
  EXPECT_THROW(role_manifests("ml", "User:"), core::InputError);
  EXPECT_THROW(role_manifests("ml", "Robot:x"), core::InputError);
  const auto user = role_manifests("ml", "User:ann"),
             account = role_manifests("ml", "ServiceAccount:runner");
  EXPECT_EQ(text_at(user, "/0/metadata/namespace"), "ml");
  EXPECT_EQ(at(user, "/1/subjects/0"),
            json({{"kind", "User"}, {"name", "ann"}, {"apiGroup", "rbac.authorization.k8s.io"}}));
  EXPECT_EQ(at(account, "/1/subjects/0"),
            json({{"kind", "ServiceAccount"}, {"name", "runner"}, {"namespace", "ml"}}));
  EXPECT_EQ(
      at(user, "/0/rules").size(),
      permissions().size() + driver_permissions().size() + 4);  // Those that are not required.
  EXPECT_EQ(user.size(), 2u);
  EXPECT_EQ(text_at(account, "/2/metadata/name"), "runner")
      << "the manifests also create the service account";
}

TEST(KubernetesPermissions, missing_permissions_are_named) {
  asio::io_context loop;
  test::HttpServer server(loop, [](test::HttpExchange& exchange) -> async::Task<> {
    const auto review = json::parse(exchange.body);
    const bool is_log = text_at(review, "/spec/resourceAttributes/subresource") == "log";
    const bool is_creation = text_at(review, "/spec/resourceAttributes/verb") == "create" &&
                             text_at(review, "/spec/resourceAttributes/resource") == "jobs";
    const json answer{{"status", {{"allowed", !is_log && !is_creation}}}};
    co_await exchange.answer(201, answer.dump());
  });
  ClusterAccess access;
  access.server = server.url();
  access.name_space = "ml";
  Client client(loop, access);
  auto missing = test::run_task(loop, missing_permissions(client));
  std::sort(missing.begin(), missing.end());
  EXPECT_THAT(missing, ElementsAre("create jobs.batch", "get pods/log"));
}

}  // namespace
}  // namespace pipeline::kubernetes_api
