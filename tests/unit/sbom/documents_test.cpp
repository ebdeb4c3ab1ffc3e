// Documents about an image: identifiers, relations, and that equal images have equal ones. The
// formats' own validators read them in tests/e2e/sbom_test.py.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sbom/image_record.hpp"

namespace pipeline::sbom {
namespace {

ImageRecord image() {
  ImageRecord record;
  record.reference = "pipe:env-1";
  record.id = std::string(64, '1');
  record.created = "2026-11-23T05:16:14.117868962Z";
  record.base = "python:3.11-slim";
  record.layers = {"sha256:" + std::string(64, '2')};
  record.version = "0.1.0";
  add_contents(record,
               "os\tdebian\t12\n"
               "pypi\tTyping_Extensions\t4.12\t\tPSF-2.0\n"
               "noise\n\n"
               "deb\tlibstdc++6\t12.2.0-14+deb12u1\tamd64\n"
               "deb\tlibstdc++6\t12.2.0-14+deb12u1\tamd64\n"
               "deb\ttruncated\n");
  return record;
}

TEST(sbom, reads_packages_once_and_ignores_other_lines) {
  const auto record = image();
  ASSERT_EQ(record.packages.size(), 3U);
  EXPECT_EQ(record.distribution, "debian");
  EXPECT_EQ(package_url(record, record.packages[0]),
            "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64");
  EXPECT_EQ(package_url(record, record.packages[2]), "pkg:pypi/typing-extensions@4.12");
}

TEST(sbom, equal_images_have_equal_documents_and_others_another_number) {
  auto other = image();
  EXPECT_EQ(cyclonedx(image()), cyclonedx(other));
  EXPECT_EQ(spdx(image()), spdx(other));
  other.packages[2].version = "4.13";
  EXPECT_NE(cyclonedx(image())["serialNumber"], cyclonedx(other)["serialNumber"]);
  EXPECT_NE(spdx(image())["documentNamespace"], spdx(other)["documentNamespace"]);
}

TEST(sbom, provenance_names_the_image_its_base_and_the_locked_files) {
  auto record = image();
  record.packages[2].sha256 = std::string(64, '3');
  const auto statement = provenance(record, {{"apt_packages", {"tini"}}});
  EXPECT_EQ(statement["subject"][0]["digest"]["sha256"], record.id);
  const auto& build = statement["predicate"]["buildDefinition"];
  ASSERT_EQ(build["resolvedDependencies"].size(), 2U) << "only packages with a hash, and the base";
  EXPECT_EQ(build["resolvedDependencies"][0]["uri"], "pkg:docker/python:3.11-slim");
  EXPECT_EQ(build["resolvedDependencies"][1]["digest"]["sha256"], std::string(64, '3'));
  EXPECT_EQ(build["externalParameters"]["apt_packages"][0], "tini");
}

}  // namespace
}  // namespace pipeline::sbom
