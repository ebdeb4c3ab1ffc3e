#include "lockfile/locked_data.hpp"

#include "core/diagnostic.hpp"
#include "lockfile/text.hpp"
#include "unit/lockfile/lock_fixture.hpp"

namespace pipeline::lockfile {
namespace {

LockedData data_at(const std::string& address, char digit, const std::string& etag = "\"1\"") {
  return {.address = address,
          .sha256 = std::string(64, digit),
          .size = 7,
          .files = 0,
          .etag = etag,
          .modified = {},
          .version = {}};
}

TEST_F(Locks, data_beside_environments_is_read_as_it_was_written) {
  auto folder_data = data_at("s3://team/a \"b\"/", 'b', "0a");
  folder_data.files = 3;
  folder_data.modified = "Tue, 24 Nov 2026 10:00:00 GMT";
  folder_data.version = "v1";
  LockFile first(file);
  first.put(of_image({"six"}), environment_of({package("six", "1")}));
  EXPECT_EQ(first.put_data({folder_data, data_at("https://host/x", 'a')}), "");
  LockFile again(file);
  ASSERT_TRUE(again.find_data("s3://team/a \"b\"/"));
  EXPECT_EQ(*again.find_data("s3://team/a \"b\"/"), folder_data);
  EXPECT_EQ(*again.find_data("https://host/x"), data_at("https://host/x", 'a'));
  EXPECT_TRUE(again.find(of_image({"six"})));
  EXPECT_FALSE(again.find_data("https://host/y"));
  EXPECT_EQ(lockfile::to_text(lockfile::parse(text(), "f")), text());
}

TEST_F(Locks, data_that_two_processes_lock_is_kept) {
  LockFile one(file), other(file);
  EXPECT_FALSE(one.find_data("https://host/x"));
  EXPECT_FALSE(other.find_data("https://host/x"));
  one.put_data({data_at("https://host/x", 'a')});
  other.put_data({data_at("https://host/y", 'b')});
  LockFile last(file);
  EXPECT_TRUE(last.find_data("https://host/x"));
  EXPECT_TRUE(last.find_data("https://host/y"));
}

TEST_F(Locks, only_data_that_no_step_uses_is_removed) {
  LockFile first(file);
  first.put(of_image({"six"}), environment_of({package("six", "1")}));
  first.put_data({data_at("https://host/x", 'a'), data_at("https://host/y", 'b')});
  LockFile run(file);
  run.use_data({{"https://host/y", {"data"}}});
  run.remove_unused();
  LockFile again(file);
  EXPECT_FALSE(again.find_data("https://host/x"));
  EXPECT_TRUE(again.find_data("https://host/y"));
  EXPECT_TRUE(again.find(of_image({"six"})))
      << "environments stay, because no step has asked for one";
  LockFile last(file);
  last.use_data({});
  EXPECT_FALSE(last.find(of_image({"attrs"})));
  last.remove_unused();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Locks, an_upgrade_of_data_does_not_upgrade_packages) {
  LockFile(file).put(of_image({"six"}), environment_of({package("six", "1")}));
  LockFile locks(file, {.upgrade = {"corpus", "attrs"}});
  locks.use_data({{"https://host/x", {"corpus"}}, {"https://host/z", {"other"}}});
  EXPECT_TRUE(locks.upgrades_data("https://host/x"));
  EXPECT_FALSE(locks.upgrades_data("https://host/z"));
  EXPECT_FALSE(locks.find(of_image({"six"}))) << "the other name may be a package";
  LockFile only_data(file, {.upgrade = {"corpus"}});
  only_data.use_data({{"https://host/x", {"corpus"}}});
  EXPECT_TRUE(only_data.find(of_image({"six"})));
}

TEST(LockedDataOf, an_address_holds_no_query) {
  EXPECT_EQ(lockfile::data_address("https://host/x?sig=secret#y", ""),
            lockfile::data_address("https://host/x?sig=secret", ""));
  const auto one = lockfile::data_address("https://host/x?sig=secret", "");
  EXPECT_EQ(one.find("secret"), one.npos);
  EXPECT_NE(one, lockfile::data_address("https://host/x?sig=other", ""));
  EXPECT_EQ(lockfile::data_address("s3://team/a?b", "v1"), "s3://team/a?b?version=v1");
}

TEST(LockedDataOf, a_servers_headers_say_whether_it_is_the_same) {
  const auto known = data_at("a", 'a', "\"1\"");
  EXPECT_TRUE(lockfile::is_same_content(known, data_at("a", '0', "\"1\"")));
  EXPECT_FALSE(lockfile::is_same_content(known, data_at("a", 'a', "\"2\"")));
  EXPECT_FALSE(lockfile::is_same_content(known, data_at("a", 'a', "")))
      << "the two records have no header in common";
  auto dated = data_at("a", 'a', "");
  dated.modified = "today";
  auto longer = dated;
  longer.size = 8;
  EXPECT_TRUE(lockfile::is_same_content(dated, dated));
  EXPECT_FALSE(lockfile::is_same_content(dated, longer));
}

TEST_F(Locks, damaged_data_is_reported_with_its_line) {
  const std::string digest(64, 'a');
  const std::pair<std::string, std::string> wrong[] = {
      {"{address: a, sha256: xyz, size: 1}", "a SHA-256 has 64 digits"},
      {"{address: a, size: 1}", "has no 'sha256'"},
      {"{addres: a, sha256: " + digest + "}", "did you mean 'address'?"},
      {"{address: \"a\\u0007\", sha256: " + digest + "}", "control characters"},
      {"{address: a, sha256: " + digest + "}\n  - {address: a, sha256: " + digest + "}",
       "'a' is in the list twice"}};
  for (const auto& [line, said] : wrong) {
    std::string found = "no error";
    try {
      lockfile::parse("version: 1\ndata:\n  - " + line + "\n", "pipeline.lock");
    } catch (const core::InputError& error) {
      found = error.what();
    }
    EXPECT_NE(found.find(said), found.npos) << found;
  }
}

}  // namespace
}  // namespace pipeline::lockfile
