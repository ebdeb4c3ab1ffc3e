// The exact messages for engines that cannot be reached. PIPE_ACCEPT=1 writes
// tests/golden/unreachable.txt again.
#include "docker/unreachable.hpp"

#include <cstdlib>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::docker {
namespace {

struct UnreachableCase {
  std::string url;
  bool use_tls;
  std::string why;  ///< As curl, ssh and docker say it.
};

const std::string tcp = "tcp://build.example:2376", ssh = "ssh://me@build.example:2222";
const std::string get_ping = "GET https://build.example:2376/_ping: ";

const std::vector<UnreachableCase> unreachable_cases{
    {tcp, true, "cannot connect to https://build.example:2376/_ping: Connection refused"},
    {tcp, true, get_ping + "Could not resolve host: build.example"},
    {tcp, true,
     get_ping + "Failed to connect to build.example port 2376 after 10001 ms: Timeout was reached"},
    {tcp, true, get_ping + "SSL certificate problem: unable to get local issuer certificate"},
    {tcp, true, get_ping + "SSL certificate problem: self-signed certificate in certificate chain"},
    {tcp, true, get_ping + "SSL certificate problem: certificate has expired"},
    {tcp, true, get_ping + "SSL certificate problem: certificate is not yet valid"},
    {tcp, true,
     get_ping +
         "SSL: no alternative certificate subject name matches target host name 'build.example'"},
    {tcp, true,
     get_ping + "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, "
                "errno 0"},
    {tcp, true,
     get_ping +
         "OpenSSL SSL_read: error:0A000412:SSL routines::sslv3 alert bad certificate, errno 0"},
    {tcp, true,
     get_ping + "OpenSSL SSL_connect: error:0A000418:SSL routines::tlsv1 alert unknown ca"},
    {tcp, true,
     get_ping +
         "could not load PEM client certificate, OpenSSL error error:0480006C:PEM routines::no "
         "start line"},
    {tcp, true, get_ping + "error:0A00010B:SSL routines::wrong version number"},
    {tcp, false,
     "this is not a Docker Engine: GET /version returned status 400, Client sent an "
     "HTTP request to an HTTPS server."},
    {ssh, false, "me@build.example: Permission denied (publickey)."},
    {ssh, false,
     "No ED25519 host key is known for [build.example]:2222 and you have requested strict "
     "checking.\r\nHost key verification failed."},
    {ssh, false,
     "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nIT IS POSSIBLE THAT SOMEONE IS DOING "
     "SOMETHING NASTY!\r\nHost key verification "
     "failed."},
    {ssh, false, "ssh: Could not resolve hostname build.example: Name or service not known"},
    {ssh, false, "ssh: connect to host build.example port 2222: Connection refused"},
    {ssh, false, "ssh: connect to host build.example port 2222: Connection timed out"},
    {ssh, false,
     "kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by 10.0.0.1 "
     "port 2222"},
    {ssh, false, "bash: line 1: docker: command not found"},
    {ssh, false, "sh: 1: docker: not found"},
    {ssh, false,
     "Got permission denied while trying to connect to the Docker daemon socket at "
     "unix:///var/run/docker.sock: dial unix: permission denied"},
    {ssh, false,
     "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
     "running?"},
    {ssh, false, "dial unix /run/none.sock: connect: no such file or directory"},
    {ssh, false, "docker: 'system dial-stdio' is not a docker command."},
    {ssh, false, "something that nobody has heard of"},
    {"unix:///run/docker.sock", false, "cannot connect to /run/docker.sock: Permission denied"},
};

TEST(Unreachable, golden_each_cause_is_explained) {
  std::string text;
  for (const auto& each : unreachable_cases) {
    Endpoint endpoint;
    endpoint.url = each.url;
    endpoint.origin = "DOCKER_HOST";
    endpoint.use_tls = each.use_tls;
    endpoint.certificates = "/home/me/.docker";
    endpoint.tls.ca_file = "/home/me/.docker/ca.pem";
    const auto error = unreachable(endpoint, each.why);
    text += error.what() + std::string("\n");
    for (const auto& line : error.advice())
      if (line.find("--orchestrator local") == line.npos && line.find("comes from") == line.npos)
        text += "  hint: " + line + "\n";
    text += "\n";
  }
  const auto file = std::string(PIPELINE_SOURCE_DIR) + "/tests/golden/unreachable.txt";
  if (std::getenv("PIPE_ACCEPT")) std::ofstream(file) << text;
  EXPECT_EQ(text, core::read_file(file));
}

}  // namespace
}  // namespace pipeline::docker
