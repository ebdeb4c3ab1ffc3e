// A real S3 server's bucket as a remote store: scripts/testbed/s3, where it runs; or the server of
// another environment file, which PIPE_S3_ENVIRONMENT names (scripts/testbed/s3 other).
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "support/blob_conformance.hpp"

namespace pipeline::test {
namespace {

constexpr const char* environment_file = "/var/lib/pipe-s3/environment";

std::map<std::string, std::string> server_environment() {
  std::map<std::string, std::string> values;
  const auto* other = std::getenv("PIPE_S3_ENVIRONMENT");
  std::ifstream file(other ? other : environment_file);
  for (std::string line; std::getline(file, line);)
    values[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  return values;
}

/// A new bucket, which is a folder in the server's data.
class NewBucket {
 public:
  explicit NewBucket(const std::filesystem::path& data)
      : name("blobs-" + std::to_string(std::random_device{}())), folder_(data / name) {
    core::make_folders(folder_);
  }
  NewBucket(const NewBucket&) = delete;
  NewBucket& operator=(const NewBucket&) = delete;
  ~NewBucket() { core::remove_tree(folder_); }
  const std::string name;

 private:
  const std::filesystem::path folder_;
};

/// Waits until the server knows the bucket: rclone keeps its list of them for some milliseconds.
void wait_for_bucket(asio::io_context& loop, const settings::RemoteStoreSettings& settings) {
  const auto store = blobs::open(loop, settings);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) try {
      run_task(loop, store->list(""));
      return;
    } catch (const blobs::BlobError&) {
      if (std::chrono::steady_clock::now() > end) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/// Returns the settings of a new folder in a bucket whose files this machine does not see.
settings::RemoteStoreSettings in_bucket(std::map<std::string, std::string>& server) {
  return {"s3://" + server["BUCKET"] + "/blobs-" + std::to_string(std::random_device{}()),
          {{"endpoint", server["ENDPOINT"]}}};
}

StoreUnderTest real_server() {
  return {.name = "S3 server",
          .make =
              [](asio::io_context& loop, std::shared_ptr<void>& keeps) {
                auto server = server_environment();
                if (server.empty())
                  throw core::EnvironmentError("there is no S3 server: scripts/testbed/s3 start");
                setenv("AWS_ACCESS_KEY_ID", server["ACCESS_KEY"].c_str(), 1);
                setenv("AWS_SECRET_ACCESS_KEY", server["SECRET_KEY"].c_str(), 1);
                if (server.contains("BUCKET")) return in_bucket(server);
                auto bucket = std::make_shared<NewBucket>(server["DATA"]);
                keeps = bucket;
                settings::RemoteStoreSettings settings{
                    "s3://" + bucket->name + "/team",
                    {{"endpoint", server["ENDPOINT"]}, {"certificate_authority", server["CA"]}}};
                wait_for_bucket(loop, settings);
                return settings;
              },
          .has_conditional_writes = server_environment().contains("CONDITIONAL_WRITES")};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(RealS3, BlobConformance, testing::Values(real_server()));

}  // namespace pipeline::test
