// Each kind of remote store; S3 by a server with conditional writes. tests/s3 has a real one.
#include "support/blob_conformance.hpp"
#include "support/bucket.hpp"

namespace pipeline::test {

INSTANTIATE_TEST_SUITE_P(
    Folder, BlobConformance,
    testing::Values(StoreUnderTest{
        .name = "folder", .make = [](asio::io_context&, std::shared_ptr<void>& keeps) {
          auto folder = std::make_shared<core::TemporaryFolder>();
          keeps = folder;
          return settings::RemoteStoreSettings{"file://" + folder->path().string(), {}};
        }}));

INSTANTIATE_TEST_SUITE_P(S3, BlobConformance,
                         testing::Values(StoreUnderTest{
                             .name = "server",
                             .make = [](asio::io_context& loop, std::shared_ptr<void>& keeps) {
                               auto server = std::make_shared<BucketServer>(loop);
                               keeps = server;
                               return server->settings();
                             }}));

}  // namespace pipeline::test
