#include "lockfile/lock_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "core/address.hpp"
#include "core/diagnostic.hpp"
#include "lockfile/conflict.hpp"
#include "lockfile/text.hpp"
#include "unit/lockfile/lock_fixture.hpp"

namespace pipeline::lockfile {
namespace {

TEST_F(Locks, an_environment_is_found_by_another_process) {
  EXPECT_FALSE(LockFile(file).find(of_image({"six"})));
  EXPECT_EQ(LockFile(file).put(of_image({"six"}), environment_of({package("six", "1")})), "");
  LockFile again(file);
  ASSERT_TRUE(again.find(of_image({"six"})));
  EXPECT_EQ(again.find(of_image({"six"}))->packages[0].version, "1");
  EXPECT_FALSE(again.find(of_image({"six", "idna"})));
  EXPECT_FALSE(again.find(of_image({"six"}, "another parent")));
}

TEST_F(Locks, have_the_same_text_in_whatever_order_they_were_made) {
  const auto one = environment_of({package("six", "1"), package("idna", "2")});
  const auto other = environment_of({package("attrs", "3")});
  LockFile first(file);
  first.put(of_image({"six"}), one);
  first.put(of_image({"attrs"}), other);
  const auto before = text();
  std::filesystem::remove(file);
  LockFile second(file);
  second.put(of_image({"attrs"}), other);
  second.put(of_image({"six"}), one);
  EXPECT_EQ(text(), before);
  EXPECT_EQ(lockfile::to_text(lockfile::parse(before, "f")), before);
}

TEST_F(Locks, every_member_is_read_as_it_was_written) {
  auto environment = environment_of({package("six", "1")});
  auto& made = environment.packages[0];
  made.size = 12;
  made.url = "git+https://host/a\"b@0123";
  made.origin = lockfile::PackageOrigin::repository;
  made.required_by = {"a", "b"};
  environment.apt_packages = {"curl=1"};
  environment.apt_snapshot = "20260131T000000Z";
  LockFile(file).put(of_image({"six ; python_version < '4'"}), environment);
  const auto read = *LockFile(file).find(of_image({"six ; python_version < '4'"}));
  const auto& same = read.packages.at(0);
  EXPECT_EQ(same.size, 12u);
  EXPECT_EQ(same.url, made.url);
  EXPECT_EQ(same.origin, made.origin);
  EXPECT_EQ(same.required_by, made.required_by);
  EXPECT_EQ(same.sha256, made.sha256);
  EXPECT_EQ(read.apt_packages, environment.apt_packages);
  EXPECT_EQ(read.apt_snapshot, environment.apt_snapshot);
  EXPECT_EQ(read.python, environment.python);
  EXPECT_EQ(digest(read), digest(environment));
}

TEST_F(Locks, changes_that_another_process_wrote_meanwhile_are_kept) {
  LockFile mine(file);
  mine.find(of_image({"six"}));
  LockFile(file).put(of_image({"idna"}), environment_of({package("idna", "2")}));
  mine.put(of_image({"six"}), environment_of({package("six", "1")}));
  LockFile both(file);
  EXPECT_TRUE(both.find(of_image({"six"})));
  EXPECT_TRUE(both.find(of_image({"idna"})));
}

TEST_F(Locks, of_environments_with_as_much_in_common_the_one_with_fewer_others_is_nearest) {
  LockFile(file).put(of_image({"six", "idna"}),
                     environment_of({package("idna", "2"), package("six", "1")}));
  LockFile(file).put(of_image({"six"}), environment_of({package("six", "1")}));
  LockFile edited(file);
  const auto more = of_image({"six", "tabulate"});
  edited.find(more);
  edited.put(more, environment_of({package("six", "1"), package("tabulate", "1")}));
  EXPECT_EQ(describe(edited.changes().at(0)), std::vector<std::string>{"+ tabulate 1"});
}

TEST_F(Locks, an_environment_that_other_steps_ask_for_is_not_the_one_that_changes) {
  LockFile lock(file);
  lock.find(of_image({"six"}));
  lock.find(of_image({"idna"}));
  lock.put(of_image({"six"}), environment_of({package("six", "1")}));
  lock.put(of_image({"idna"}), environment_of({package("idna", "2")}));
  EXPECT_EQ(describe(lock.changes().at(1)), std::vector<std::string>{"+ idna 2"})
      << "no package of the other environment is removed";
}

TEST_F(Locks, an_edit_prefers_the_versions_of_the_nearest_environment) {
  LockFile first(file);
  first.put(of_image({"six", "idna"}), environment_of({package("six", "1"), package("idna", "2")}));
  first.put(of_image({"attrs"}), environment_of({package("attrs", "3")}));
  EXPECT_EQ(LockFile(file).preferred(of_image({"six", "idna", "rich"})).packages.size(), 2u);
  EXPECT_EQ(LockFile(file).preferred(of_image({"attrs"}, "newer parent")).packages[0].name,
            "attrs");
  const auto upgraded =
      LockFile(file, {.upgrade = {"six"}}).preferred(of_image({"six", "idna", "rich"}));
  ASSERT_EQ(upgraded.packages.size(), 1u);
  EXPECT_EQ(upgraded.packages[0].name, "idna");
  EXPECT_TRUE(LockFile(file, {.upgrade_all = true}).preferred(of_image({"six"})).packages.empty());
}

/// A merge conflict: each side has added another package to the second of two environments.
constexpr auto conflicted = R"(version: 1
environments:
  - parent: "python:3.11"
    parent_digest: "aa"
    python: "3.11.2"
    tag: "cp311"
    platform: "manylinux_2_36_x86_64"
    installer: "uv"
    requirements:
      - "six"
    packages:
      - {name: "six", version: "1"}
  - parent: "python:3.11"
    parent_digest: "aa"
    installer: "uv"
    requirements:
      - "idna"
<<<<<<< HEAD
      - "attrs"
||||||| 1234567
=======
      - "click"
>>>>>>> other
    packages:
<<<<<<< HEAD
      - {name: "attrs", version: "3"}
      - {name: "idna", version: "2"}
||||||| 1234567
      - {name: "idna", version: "1"}
=======
      - {name: "click", version: "8"}
      - {name: "idna", version: "3"}
>>>>>>> other
)";

TEST_F(Locks, of_a_conflict_both_sides_are_preferred_and_what_is_equal_stays) {
  core::write_file_atomically(file, conflicted);
  EXPECT_THROW(LockFile(file).find(of_image({"six"})), core::InputError);
  LockFile merged(file);
  merged.accept_conflicts();
  const auto all = of_image({"idna", "attrs", "click"});
  EXPECT_FALSE(merged.find(all));
  EXPECT_TRUE(merged.had_conflict());
  const auto preferred = merged.preferred(all);
  EXPECT_EQ(preferred.requirements, (std::vector<std::string>{"idna", "attrs", "click"}));
  std::string packages;
  for (const auto& each : preferred.packages) packages += each.name + each.version + " ";
  EXPECT_EQ(packages, "attrs3 idna2 click8 ");
  EXPECT_FALSE(merged.find(of_image({"idna", "attrs"}))) << "git may have merged half of it";
  ASSERT_TRUE(merged.find(of_image({"six"})));
  merged.put(all, preferred);
  EXPECT_TRUE(LockFile(file).find(all));
  EXPECT_TRUE(LockFile(file).find(of_image({"six"})));
}

TEST_F(Locks, a_conflict_in_which_nothing_is_asked_for_is_removed_with_the_unused) {
  core::write_file_atomically(file, conflicted);
  LockFile merged(file);
  merged.accept_conflicts();
  ASSERT_TRUE(merged.find(of_image({"six"})));
  merged.remove_unused();
  EXPECT_EQ(lockfile::parse(text(), "f").environments.size(), 1u);
}

TEST_F(Locks, of_data_in_conflict_each_address_is_kept) {
  const auto line = [](const std::string& address, char digit) {
    return "  - {address: \"" + address + "\", sha256: \"" + std::string(64, digit) +
           "\", size: 1}\n";
  };
  core::write_file_atomically(file, "version: 1\ndata:\n<<<<<<< HEAD\n" + line("https://h/a", '1') +
                                        line("https://h/b", '1') + "=======\n" +
                                        line("https://h/b", '2') + line("https://h/c", '2') +
                                        ">>>>>>> other\n");
  LockFile merged(file);
  merged.accept_conflicts();
  ASSERT_TRUE(merged.find_data("https://h/a") && merged.find_data("https://h/c"));
  EXPECT_EQ(merged.find_data("https://h/b")->sha256, std::string(64, '1'));
}

TEST(LockConflict, markers_that_are_missing_or_out_of_order_give_no_sides) {
  for (const auto* text : {"a\n", "<<<<<<< a\nb\n", "=======\nb\n", ">>>>>>> a\n",
                           "<<<<<<< a\n>>>>>>> b\n", "<<<<<<< a\n<<<<<<< a\n=======\n>>>>>>> b\n"})
    EXPECT_FALSE(lockfile::conflict_sides(text)) << text;
  const auto sides = lockfile::conflict_sides("1\n<<<<<<< a\n2\n=======\r\n3\n>>>>>>> b\n4");
  ASSERT_TRUE(sides);
  EXPECT_EQ(sides->ours, "1\n2\n4");
  EXPECT_EQ(sides->theirs, "1\n3\n4");
}

TEST_F(Locks, an_upgrade_resolves_each_environment_once) {
  LockFile(file).put(of_image({"six"}), environment_of({package("six", "1")}));
  LockFile upgrade(file, {.upgrade_all = true});
  EXPECT_FALSE(upgrade.find(of_image({"six"})));
  upgrade.put(of_image({"six"}), environment_of({package("six", "2")}));
  EXPECT_EQ(upgrade.find(of_image({"six"}))->packages[0].version, "2");
  ASSERT_EQ(upgrade.changes().size(), 1u);
  EXPECT_EQ(describe(upgrade.changes()[0]), std::vector<std::string>{"~ six 1 -> 2"});
}

TEST_F(Locks, an_upgrade_of_a_name_that_nothing_has_is_an_error) {
  LockFile(file).put(of_image({"numpy"}), environment_of({package("numpy", "1")}));
  LockFile upgrade(file, {.upgrade = {"nmupy"}});
  EXPECT_FALSE(upgrade.find(of_image({"numpy"})));
  upgrade.put(of_image({"numpy"}), environment_of({package("numpy", "1")}));
  ASSERT_TRUE(upgrade.unknown_upgrade());
  EXPECT_EQ(upgrade.unknown_upgrade()->suggestion, "did you mean 'numpy'?");
  EXPECT_FALSE(upgrade.is_written()) << "the lock file is unchanged";

  LockFile known(file, {.upgrade = {"numpy"}});
  EXPECT_FALSE(known.find(of_image({"numpy"})));
  known.put(of_image({"numpy"}), environment_of({package("six", "1")}));
  EXPECT_FALSE(known.unknown_upgrade()) << "the lock file had the package before";
  EXPECT_TRUE(known.is_written());
}

TEST_F(Locks, a_machine_with_a_newer_c_library_uses_the_same_files) {
  LockFile(file).put(of_machine({"six"}, "manylinux_2_31_x86_64"), [] {
    auto environment = environment_of({package("six", "1")});
    environment.platform = "manylinux_2_31_x86_64";
    return environment;
  }());
  LockFile lock(file);
  EXPECT_TRUE(lock.find(of_machine({"six"}, "manylinux_2_31_x86_64")));
  EXPECT_TRUE(lock.find(of_machine({"six"}, "manylinux_2_40_x86_64")));
  EXPECT_FALSE(lock.find(of_machine({"six"}, "manylinux_2_17_x86_64")));
  EXPECT_FALSE(lock.find(of_machine({"six"}, "manylinux_2_31_aarch64")));
  EXPECT_FALSE(lock.find(of_machine({"six"}, "musllinux_1_2_x86_64")));
}

TEST_F(Locks, unused_environments_are_removed_and_those_of_other_machines_stay) {
  LockFile first(file);
  first.put(of_image({"six"}), environment_of({package("six", "1")}));
  first.put(of_image({"idna"}), environment_of({package("idna", "2")}));
  first.put(of_machine({"six"}, "manylinux_2_31_x86_64"), environment_of({package("six", "1")}));
  LockFile second(file);
  second.find(of_image({"six"}));
  second.remove_unused();
  LockFile third(file);
  EXPECT_TRUE(third.find(of_image({"six"})));
  EXPECT_FALSE(third.find(of_image({"idna"})));
  EXPECT_TRUE(third.find(of_machine({"six"}, "manylinux_2_36_x86_64")));
}

TEST_F(Locks, what_another_process_wrote_meanwhile_stays_when_the_unused_are_removed) {
  LockFile(file).put(of_image({"six"}), environment_of({package("six", "1")}));
  LockFile(file).put(of_image({"idna"}), environment_of({package("idna", "2")}));
  LockFile mine(file);
  EXPECT_TRUE(mine.find(of_image({"six"})));
  LockFile(file).put(of_image({"attrs"}), environment_of({package("attrs", "3")}));
  mine.remove_unused();
  LockFile after(file);
  EXPECT_TRUE(after.find(of_image({"six"})));
  EXPECT_FALSE(after.find(of_image({"idna"})));
  EXPECT_TRUE(after.find(of_image({"attrs"})));
}

TEST_F(Locks, what_is_unused_is_shown_by_a_dry_run_and_refused_by_a_frozen_file) {
  LockFile first(file);
  first.put(of_image({"six"}), environment_of({package("six", "1")}));
  first.put(of_image({"idna", "six"}), environment_of({package("idna", "2")}));
  const auto before = text();
  for (const auto& options : {LockOptions{.dry_run = true}, LockOptions{.frozen = true}}) {
    LockFile second(file, options);
    second.find(of_image({"six"}));
    second.remove_unused();
    EXPECT_EQ(second.unused(), std::vector<std::string>{"- python:3.11: idna, six"});
    EXPECT_FALSE(second.is_written());
    EXPECT_TRUE(second.is_current());
    if (options.frozen)
      EXPECT_THROW(second.refuse_unused(), core::InputError);
    else
      EXPECT_NO_THROW(second.refuse_unused());
  }
  EXPECT_EQ(text(), before);
}

TEST_F(Locks, nothing_is_unused_while_the_packages_of_a_step_are_not_known) {
  LockFile first(file);
  first.put(of_image({"six"}), environment_of({package("six", "1")}));
  first.put(of_image({"idna"}), environment_of({package("idna", "2")}));
  LockFile second(file, {.frozen = true});
  second.find(of_image({"six"}));
  second.keep_all_environments();
  second.remove_unused();
  EXPECT_TRUE(second.unused().empty());
}

TEST_F(Locks, an_upgrade_to_equal_versions_writes_nothing) {
  LockFile(file).put(of_image({"six"}), environment_of({package("six", "1")}));
  LockFile upgrade(file, {.upgrade_all = true});
  upgrade.put(of_image({"six"}), environment_of({package("six", "1")}));
  EXPECT_EQ(upgrade.changes().size(), 1u);
  EXPECT_FALSE(upgrade.is_written());
}

TEST_F(Locks, images_that_differ_by_their_system_have_an_environment_each) {
  const auto plain = of_image({"six"}, "aa"), with_git = of_image({"six"}, "bb");
  LockFile first(file);
  EXPECT_FALSE(first.find(plain));
  EXPECT_FALSE(first.find(with_git));
  first.put(plain, environment_of({package("six", "1")}));
  first.put(with_git, environment_of({package("six", "1")}));
  LockFile second(file, {.frozen = true});
  EXPECT_TRUE(second.find(plain));
  EXPECT_TRUE(second.find(with_git));
  const auto newer = of_image({"six"}, "cc");  // `plain` no longer exists.
  LockFile third(file);
  third.find(with_git);
  third.find(newer);
  third.put(newer, environment_of({package("six", "1")}));
  LockFile fourth(file);
  EXPECT_FALSE(fourth.find(plain)) << "packages of an image that no step uses any more are removed";
  EXPECT_TRUE(fourth.find(with_git));
  EXPECT_TRUE(fourth.find(newer));
}

TEST_F(Locks, a_run_that_locks_nothing_removes_nothing) {
  LockFile(file).put(of_image({"six"}), environment_of({package("six", "1")}));
  LockFile(file).remove_unused();
  EXPECT_TRUE(LockFile(file).find(of_image({"six"})));
}

TEST_F(Locks, an_error_with_frozen_names_the_difference) {
  LockFile(file).put(of_image({"six", "idna==1"}), environment_of({package("six", "1")}));
  LockFile frozen(file, {.frozen = true});
  EXPECT_TRUE(frozen.find(of_image({"six", "idna==1"})));
  try {
    frozen.find(of_image({"six", "idna==2"}));
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_EQ(error.diagnostics()[0].notes, (std::vector<std::string>{"+ idna==2", "- idna==1"}));
  }
  try {
    frozen.find(of_image({"six", "idna==1"}, "bb"));
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_NE(error.diagnostics()[0].notes[0].find("another image"), std::string::npos);
  }
}

TEST_F(Locks, a_dry_run_writes_nothing) {
  LockFile dry(file, {.dry_run = true});
  dry.put(of_image({"six"}), environment_of({package("six", "1")}));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(dry.find(of_image({"six"})));
}

TEST_F(Locks, a_folder_that_cannot_be_written_is_a_notice_and_the_run_goes_on) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  chmod(folder.path().c_str(), 0500);
  LockFile lock(file);
  const auto notice = lock.put(of_image({"six"}), environment_of({package("six", "1")}));
  chmod(folder.path().c_str(), 0700);
  EXPECT_NE(notice.find("this run only"), std::string::npos) << notice;
  EXPECT_TRUE(lock.find(of_image({"six"})));
}

TEST_F(Locks, a_change_by_another_program_is_noticed) {
  LockFile lock(file);
  lock.put(of_image({"six"}), environment_of({package("six", "1")}));
  EXPECT_TRUE(lock.is_current());
  core::write_file_atomically(file, text() + "# by hand\n");
  EXPECT_FALSE(lock.is_current());
}

TEST(LockText, wrong_files_are_refused_with_every_place) {
  const auto codes = [](const std::string& text) {
    std::vector<std::string> found;
    try {
      lockfile::parse(text, "pipeline.lock");
    } catch (const core::InputError& error) {
      for (const auto& each : error.diagnostics())
        found.push_back(each.code + " " + std::to_string(each.span.line));
    }
    return found;
  };
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes("version: 1\n<<<<<<< HEAD\n=======\n>>>>>>> b\n"), Codes{"lock-conflict 2"});
  EXPECT_EQ(codes("version: 2\n"), Codes{"lock-version 1"});
  EXPECT_EQ(codes("environments: []\n"), Codes{"missing-key 1"});
  EXPECT_EQ(codes("version: 1\nenvironments:\n  - {parent: a, installer: uv, packages: [\n"
                  "    {name: -r, version: 1},\n    {name: a, version: 1, url: \"a b\"}]}\n"),
            (Codes{"bad-lock 4", "bad-lock 5"}));
  EXPECT_EQ(codes("version: 1\nenvironments:\n  - {parent: a, installer: uv, packages: [\n"
                  "    {name: a, version: 1},\n    {name: a, version: 2}]}\n"),
            Codes{"bad-lock 3"});
  EXPECT_EQ(codes("version: 1\n"), Codes{});
}

TEST(Credentials, are_not_written_to_a_lock) {
  EXPECT_EQ(core::without_credentials("--index-url=https://user:secret@host/simple"),
            "--index-url=https://host/simple");
  EXPECT_EQ(core::without_credentials("a @ git+https://token@host/a.git@main"),
            "a @ git+https://host/a.git@main");
  EXPECT_EQ(core::without_credentials("six==1.16.0"), "six==1.16.0");
}

}  // namespace
}  // namespace pipeline::lockfile
