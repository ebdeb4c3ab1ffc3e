#include "settings/image_archive.hpp"

#include <gtest/gtest.h>

namespace pipeline::settings {
namespace {

TEST(ImageArchives, are_told_from_references) {
  for (const auto* text : {"debian", "oci-archive", "registry.example:5000/oci:1", "oci/x:1",
                           "docker-daemon:x", "my-oci-archive:x.tar"})
    EXPECT_FALSE(image_archive(text)) << text;
  EXPECT_FALSE(is_parent_image("oci-archive:"));
  EXPECT_FALSE(is_parent_image("oci-archive::tag"));
  EXPECT_FALSE(is_parent_image("docker-archive:x.tar:"));
  EXPECT_FALSE(is_parent_image("oci:x\n"));
  EXPECT_TRUE(is_parent_image("debian:12"));
  EXPECT_TRUE(is_parent_image("oci-archive:with blank/X.tar"));
}

TEST(ImageArchives, have_a_path_to_the_first_colon) {
  const auto archive = image_archive("docker-archive:../a/b.tar:registry.example:5000/x:1");
  ASSERT_TRUE(archive);
  EXPECT_EQ(archive->transport, "docker-archive");
  EXPECT_EQ(archive->path, "../a/b.tar");
  EXPECT_EQ(archive->image, "registry.example:5000/x:1");
  EXPECT_EQ(archive->text(), "docker-archive:../a/b.tar:registry.example:5000/x:1");
  EXPECT_FALSE(archive->is_folder());
  EXPECT_TRUE(image_archive("oci:layout")->is_folder());
  EXPECT_EQ(image_archive("oci:layout")->image, "");
}

}  // namespace
}  // namespace pipeline::settings
