// The files of an image, which an engine gives out of a container.
#include "orchestrators/slurm/image_export.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "support/server_endpoint.hpp"

namespace pipeline::test {
namespace {

/// An engine with the container of a driver that was killed while it exported the image.
class ExportedBefore : public testing::Test {
 protected:
  async::Task<> answer(HttpExchange& call) {
    if (call.target == "/version") return call.answer(200, R"({"ApiVersion": "1.45"})");
    if (call.method == "DELETE") containers_ = 0;
    if (call.target.find("/containers/create?") == std::string::npos)
      return call.answer(200, call.method == "GET" ? "the files" : "");
    if (containers_ > 0)
      return call.answer(409, R"({"message": "Conflict. The container name is already in use"})");
    ++containers_;
    return call.answer(201, R"({"Id": "0123456789abcdef"})");
  }

  asio::io_context loop_;
  int containers_ = 1;
  HttpServer engine_{loop_, [this](HttpExchange& call) { return answer(call); }};
};

TEST_F(ExportedBefore, is_exported_again_by_the_driver_that_resumes_the_run) {
  const core::TemporaryFolder folder;
  const auto tar = folder.path() / "files.tar";
  docker::EngineApi api(loop_, endpoint_of(engine_));
  core::CancelSource cancel;
  const orchestrators::slurm::ExportedImage image{"sha256:0123456789abcdef", "", "r1", "me"};
  run_task(loop_, orchestrators::slurm::export_image(api, image, tar, cancel));
  EXPECT_EQ(core::read_file(tar), "the files");
  EXPECT_EQ(containers_, 0) << "the export has removed its container";
}

}  // namespace
}  // namespace pipeline::test
