#include "docker/ssh_connection.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "docker/engine_connection.hpp"
#include "docker/engine_info.hpp"
#include "support/run_task.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::docker {
namespace {

using testing::ElementsAre;

TEST(SshUrl, is_taken_apart) {
  const std::map<std::string, SshTarget> urls{
      {"ssh://host", {"", "host", "", ""}},
      {"ssh://me@host", {"me", "host", "", ""}},
      {"ssh://me@host:2222", {"me", "host", "2222", ""}},
      {"ssh://me@host/", {"me", "host", "", ""}},
      {"ssh://host/run/user/1000/docker.sock", {"", "host", "", "/run/user/1000/docker.sock"}},
      {"ssh://me@[::1]", {"me", "::1", "", ""}},
      {"ssh://me@[fe80::1%eth0]:22/x", {"me", "fe80::1%eth0", "22", "/x"}},
  };
  for (const auto& [url, target] : urls) EXPECT_EQ(parse_ssh_url(url), target) << url;
}

TEST(SshUrl, is_refused_if_a_shell_or_ssh_could_take_it_for_more_than_a_word) {
  for (const char* url : {"ssh://",
                          "ssh://me@",
                          "ssh:///path",
                          "ssh://-oProxyCommand=x",
                          "ssh://-l@host",
                          "ssh://me@-host",
                          "ssh://ho st",
                          "ssh://host;reboot",
                          "ssh://$(reboot)@host",
                          "ssh://`x`",
                          "ssh://host:0",
                          "ssh://host:65536",
                          "ssh://host:22x",
                          "ssh://host:",
                          "ssh://host:-1",
                          "ssh://[::1",
                          "ssh://[::1]22",
                          "ssh://::1",
                          "ssh://me:secret@host",
                          "ssh://me:secret@host/x y",
                          "ssh://host/x;y",
                          "ssh://host/x y",
                          "ssh://host/$x",
                          "ssh://host/'x'",
                          "ssh://host?x",
                          "ssh://ho\nst",
                          "ssh://h\xc3\xb6st",
                          "ssh://a@b@c"}) {
    try {
      parse_ssh_url(url);
      ADD_FAILURE() << url;
    } catch (const core::EnvironmentError& error) {
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos)
          << "a password is shown";
      EXPECT_FALSE(error.advice().empty());
    }
  }
}

TEST(SshUrl, becomes_the_command_of_dockers_client_and_ssh_asks_nothing) {
  EXPECT_THAT(ssh_command({"me", "host", "2222", "/run/x.sock"}),
              ElementsAre("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-l", "me",
                          "-p", "2222", "--", "host", "docker", "--host", "unix:///run/x.sock",
                          "system", "dial-stdio"));
  EXPECT_THAT(ssh_command({"", "host", "", ""}),
              ElementsAre("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "--",
                          "host", "docker", "system", "dial-stdio"));
}

/// A program called ssh, in front of all others on the PATH.
class SshProcess : public testing::Test {
 protected:
  void be(const std::string& script) {
    const auto file = folder_.path() / "ssh";
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    chmod(file.c_str(), 0755);
    setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~SshProcess() override { setenv("PATH", path_.c_str(), 1); }
  static int reach(const SshConnections& connections, int socket) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    connections.path().copy(name.sun_path, sizeof name.sun_path - 1);
    return connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  }
  /// Connects before the loop continues, as libcurl does.
  SshConnections::Connection open(SshConnections& connections) {
    auto connection = connections.offer(loop_.get_executor());
    EXPECT_EQ(reach(connections, connection.socket.get()), 0) << std::strerror(errno);
    loop_.restart();
    loop_.poll();
    return connection;
  }
  static std::string receive(const SshConnections::Connection& connection) {
    std::string text(100, '\0');
    const auto size = recv(connection.socket.get(), text.data(), text.size(), 0);
    return text.substr(0, size > 0 ? static_cast<std::size_t>(size) : 0);
  }
  core::TemporaryFolder folder_;
  const std::string path_ = std::getenv("PATH");
  asio::io_context loop_;
  SshConnections connections_{SshTarget{"me", "host", "", ""}};
};

TEST_F(SshProcess, both_directions_go_through_it) {
  be("read line; echo \"got $line of $*\"; cat");
  const auto connection = open(connections_);
  send(connection.socket.get(), "hello\n", 6, 0);
  EXPECT_EQ(receive(connection),
            "got hello of -T -o BatchMode=yes -o ConnectTimeout=20 -l me -- host docker system "
            "dial-stdio\n");
}

TEST_F(SshProcess, is_started_whenever_its_caller_connects) {
  be("echo runs; exec cat");
  const auto late = connections_.offer(loop_.get_executor());
  loop_.poll();
  const auto abandoned = connections_.offer(loop_.get_executor()).number;
  EXPECT_EQ(reach(connections_, late.socket.get()), 0) << std::strerror(errno);
  loop_.restart();
  loop_.poll();
  EXPECT_EQ(receive(late), "runs\n");
  EXPECT_EQ(test::run_task(loop_, connections_.failure_of(abandoned)), "");
  EXPECT_EQ(receive(open(connections_)), "runs\n");
}

TEST_F(SshProcess, of_two_that_connect_at_the_same_time_both_are_started) {
  be("exec cat");
  const auto first = connections_.offer(loop_.get_executor());
  const auto second = connections_.offer(loop_.get_executor());
  for (const auto* each : {&second, &first}) EXPECT_EQ(reach(connections_, each->socket.get()), 0);
  loop_.poll();
  for (const auto* each : {&first, &second}) {
    send(each->socket.get(), "x", 1, 0);
    EXPECT_EQ(receive(*each), "x");
  }
}

TEST_F(SshProcess, that_hangs_before_the_engine_has_answered_is_tried_again) {
  be("mkdir '" + (folder_.path() / "tried").string() + R"(' 2>/dev/null && exec sleep 1000
end=$(printf '\r')
while read -r line; do
  [ "$line" != "$end" ] || printf 'HTTP/1.1 200 OK\r\nContent-Length: 46\r\n\r\n%s' \
    '{"ApiVersion":"1.41","Version":"1","Os":"any"}'
done)");
  EngineLimits limits;
  limits.answer = std::chrono::seconds(3);
  Endpoint endpoint;
  endpoint.url = "ssh://host";
  EngineConnection engine(loop_, endpoint, limits);
  EXPECT_EQ(test::run_task(loop_, engine.info())->api_version, "1.41");
}

TEST_F(SshProcess, error_output_of_a_failed_one_is_known_and_that_of_no_other) {
  be("echo only once >&2; exit 255");
  const auto first = open(connections_);
  EXPECT_EQ(receive(first), "")
      << "the process has ended; until then, its shell may still read the script";
  be("exec cat");
  const auto second = open(connections_);
  EXPECT_EQ(test::run_task(loop_, connections_.failure_of(first.number)), "only once");
  EXPECT_EQ(test::run_task(loop_, connections_.failure_of(second.number)), "");
  send(second.socket.get(), "x", 1, 0);
  EXPECT_EQ(receive(second), "x");
}

TEST_F(SshProcess, a_failure_without_output_is_reported_with_its_status) {
  be("exit 7");
  const auto connection = open(connections_);
  EXPECT_EQ(test::run_task(loop_, connections_.failure_of(connection.number)),
            "ssh ended with status 7");
}

TEST_F(SshProcess, it_ends_with_its_connections_owner) {
  be("echo $$; exec sleep 1000");
  pid_t pid = 0;
  {
    SshConnections own(SshTarget{"", "host", "", ""});
    const auto connection = open(own);
    pid = std::stoi(receive(connection));
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(SshProcess, a_missing_ssh_is_reported) {
  if (test::under_tsan) GTEST_SKIP() << test::vfork_is_fork;
  setenv("PATH", folder_.path().c_str(), 1);
  const auto connection = open(connections_);
  try {
    test::run_task(loop_, connections_.failure_of(connection.number));
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("no `ssh`"), std::string::npos);
    EXPECT_NE(error.advice().at(0).find("openssh-client"), std::string::npos);
  }
  EXPECT_EQ(test::run_task(loop_, connections_.failure_of(connection.number)), "")
      << "the reason is reported once";
}

}  // namespace
}  // namespace pipeline::docker
