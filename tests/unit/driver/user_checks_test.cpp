#include "driver/user_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

namespace pipeline::driver {
namespace {

using testing::HasSubstr;

TEST(UserChecks, warn_of_a_number_that_another_account_has) {
  std::string name, number;
  ::setpwent();
  while (const auto* account = ::getpwent())
    if (account->pw_uid != 0 && account->pw_uid != ::getuid()) {
      name = account->pw_name;
      number = std::to_string(account->pw_uid);
    }
  ::endpwent();
  ASSERT_FALSE(name.empty()) << "every system has an account such as `nobody`";
  const auto step = [](const std::string& user) {
    StepSpec made;
    made.name = "train";
    made.settings->docker.user = user;
    made.environment["TOKEN"] = "x";
    return made;
  };
  for (const auto& user : {number, number + ":0"}) {
    const auto theirs = step(user);
    const auto found = check_users({&theirs});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].severity, core::Severity::warning);
    EXPECT_THAT(found[0].message, HasSubstr("'" + name + "' on this machine"));
    EXPECT_THAT(found[0].message, HasSubstr("train"));
  }
  auto harmless = step(number);
  harmless.environment.clear();
  const auto own = step(std::to_string(::getuid())), root = step("0"), named = step(name),
             none = step("1999999999"), other_form = step("12x");
  EXPECT_TRUE(check_users({&own, &root, &named, &none, &other_form, &harmless}).empty());
}

}  // namespace
}  // namespace pipeline::driver
