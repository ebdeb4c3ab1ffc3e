#include "kubernetes_api/credentials.hpp"

#include <fstream>
#include <list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "async/joinable_task.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "kubernetes_api/time.hpp"
#include "support/run_task.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::kubernetes_api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TheCredentials : public testing::Test {
 protected:
  std::vector<std::string> headers(Credentials& credentials) {
    net::Request request;
    test::run_task(loop, credentials.apply(request));
    return request.headers;
  }
  std::string failure(Credentials& credentials) {
    try {
      headers(credentials);
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "no failure";
  }
  /// A plugin that is a shell's line.
  void plug(const std::string& line, const std::string& version = "v1") {
    access.identity.exec = ExecPlugin{"client.authentication.k8s.io/" + version,
                                      {"sh", "-c", line},
                                      {"FROM=config"},
                                      "get it at example.org",
                                      true};
  }
  std::string answer(const std::string& status) {
    return R"(echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": )" +
           status + "}'";
  }
  asio::io_context loop;
  core::TemporaryFolder folder;
  ClusterAccess access;
};

TEST_F(TheCredentials, failed_plugin_is_reported_with_its_output_and_its_install_hint) {
  if (test::under_tsan) GTEST_SKIP() << test::vfork_is_fork;
  plug("echo no session >&2; exit 3");
  Credentials failing(access);
  EXPECT_EQ(failure(failing),
            "the program 'sh', which the kubeconfig names for credentials, failed with exit code "
            "3: no session");
  access.identity.exec->command = {"no-such-plugin"};
  Credentials missing(access);
  try {
    headers(missing);
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'no-such-plugin', which the kubeconfig names for "
                                        "credentials, cannot be asked: it is not on the PATH"));
    EXPECT_EQ(error.advice().front(), "get it at example.org");
  }
}

TEST_F(TheCredentials, plugin_with_an_invalid_answer_is_reported) {
  for (const auto& [line, words] :
       {std::pair<std::string, std::string>{"echo nonsense", "not an ExecCredential"},
        {"true", "not an ExecCredential"},
        {answer("{}"), "neither a token nor"},
        {answer(R"({"token": "x", "expirationTimestamp": "soon"})"), "not a time: soon"},
        {answer(R"({"clientCertificateData": "x"})"), "certificate without a key"}}) {
    plug(line);
    Credentials credentials(access);
    EXPECT_THAT(failure(credentials), HasSubstr(words));
  }
  plug(answer(R"({"token": "x"})"), "v1beta1");
  Credentials credentials(access);
  EXPECT_THAT(failure(credentials),
              HasSubstr("answers with apiVersion 'client.authentication.k8s.io/v1'"));
}

TEST_F(TheCredentials, plugin_is_asked_once_until_its_answer_expires) {
  const auto count = folder.path() / "count";
  plug("echo x >> " + count.string() + "; " +
       answer(R"({"token": "t", "expirationTimestamp": "9999-12-31T00:00:00Z"})"));
  Credentials lasting(access);
  EXPECT_THAT(headers(lasting), ElementsAre("Authorization: Bearer t"));
  headers(lasting);
  EXPECT_EQ(core::read_file(count), "x\n");
  EXPECT_TRUE(lasting.discard(lasting.version()));  // 401: once more
  headers(lasting);
  EXPECT_EQ(core::read_file(count), "x\nx\n");
  plug("echo x >> " + count.string() + "; " +
       answer(R"({"token": "t", "expirationTimestamp": "2001-01-01T00:00:00Z"})"));
  Credentials expired(access);
  headers(expired);
  headers(expired);
  EXPECT_EQ(core::read_file(count), "x\nx\nx\nx\n");
}

TEST_F(TheCredentials, plugin_is_asked_once_by_requests_that_begin_together) {
  const auto count = folder.path() / "count";
  plug("echo x >> " + count.string() + "; " + answer(R"({"token": "t"})"));
  Credentials credentials(access);
  std::vector<net::Request> requests(3);
  const auto all = [&]() -> async::Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::list<async::JoinableTask> calls;
    for (auto& request : requests) calls.emplace_back(executor, credentials.apply(request));
    for (auto& call : calls) co_await call.join();
  };
  test::run_task(loop, all());
  for (const auto& request : requests)
    EXPECT_THAT(request.headers, ElementsAre("Authorization: Bearer t"));
  EXPECT_EQ(core::read_file(count), "x\n");
}

TEST_F(TheCredentials, a_late_refusal_of_old_ones_leaves_those_that_are_new_already) {
  const auto count = folder.path() / "count";
  plug("echo x >> " + count.string() + "; " + answer(R"({"token": "t"})"));
  Credentials credentials(access);
  headers(credentials);
  const auto sent = credentials.version();
  for (int refusals = 0; refusals < 3; ++refusals) {
    EXPECT_TRUE(credentials.discard(sent));
    headers(credentials);
  }
  EXPECT_EQ(core::read_file(count), "x\nx\n");
}

TEST_F(TheCredentials, plugin_receives_the_cluster_and_may_give_a_certificate) {
  access.server = "https://there";
  access.tls.ca = "CA";
  plug("test \"$FROM\" = config && echo \"$KUBERNETES_EXEC_INFO\" > " +
       (folder.path() / "info").string() + "; " +
       answer(R"({"clientCertificateData": "C", "clientKeyData": "K"})"));
  Credentials credentials(access);
  net::Request request;
  test::run_task(loop, credentials.apply(request));
  EXPECT_EQ(request.tls.cert, "C");
  EXPECT_EQ(request.tls.key, "K");
  const auto info = nlohmann::json::parse(core::read_file(folder.path() / "info"));
  EXPECT_EQ(info["kind"], "ExecCredential");
  EXPECT_EQ(info["spec"]["cluster"]["server"], "https://there");
  EXPECT_EQ(info["spec"]["cluster"]["certificate-authority-data"], "Q0E=");
}

TEST_F(TheCredentials, token_file_is_read_again_after_a_refusal) {
  const auto file = folder.path() / "token";
  std::ofstream(file) << "one\n";
  access.identity.token_file = file;
  Credentials credentials(access);
  EXPECT_THAT(headers(credentials), ElementsAre("Authorization: Bearer one"));
  std::ofstream(file) << "two\n";
  EXPECT_THAT(headers(credentials),
              ElementsAre("Authorization: Bearer one"));  // not read for each request
  EXPECT_TRUE(credentials.discard(credentials.version()));
  EXPECT_THAT(headers(credentials), ElementsAre("Authorization: Bearer two"));
}

TEST_F(TheCredentials, missing_token_file_is_named_unless_there_is_also_a_token) {
  access.identity.token_file = "/nowhere/token";
  Credentials none(access);
  EXPECT_THAT(failure(none), HasSubstr("/nowhere/token"));
  access.identity.token = "spare";
  Credentials spare(access);
  EXPECT_THAT(headers(spare), ElementsAre("Authorization: Bearer spare"));
}

TEST_F(TheCredentials, fixed_credentials_are_not_renewed) {
  access.identity.username = "u";
  access.identity.password = "p";
  Credentials basic(access);
  EXPECT_THAT(headers(basic), ElementsAre("Authorization: Basic dTpw"));
  EXPECT_FALSE(basic.discard(basic.version()));
}

TEST(KubernetesTimes, are_read_or_refused) {
  using namespace std::chrono;
  EXPECT_EQ(parse_time("1970-01-01T00:00:01Z"), system_clock::time_point(1s));
  EXPECT_EQ(parse_time("1970-01-01T01:00:00.25+01:00"), system_clock::time_point(250ms));
  EXPECT_EQ(parse_time("2026-11-21T08:15:00.123456789Z"),
            sys_days(2026y / 11 / 21) + 8h + 15min + 123456789ns);
  EXPECT_EQ(format_time(sys_days(2026y / 11 / 21) + 8h + 15min + 900ms), "2026-11-21T08:15:00Z");
  EXPECT_LT(parse_time("0001-01-01T00:00:00Z"), system_clock::time_point());
  EXPECT_GT(parse_time("9999-12-31T23:59:59Z"), system_clock::now() + hours(1'000'000));
  for (const char* text : {"", "soon", "2026-11-21", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                           "2026-11-21T08:15:00", "2026-11-21T08:15:00Zx", "2026-11-21T25:00:00Z"})
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
}

}  // namespace
}  // namespace pipeline::kubernetes_api
