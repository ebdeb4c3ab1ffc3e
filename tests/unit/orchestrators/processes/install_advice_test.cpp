#include "orchestrators/processes/install_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::orchestrators::processes {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(InstallAdvice, is_found_in_a_line_of_any_length) {
  const std::string endless(1 << 20, 'a');
  EXPECT_THAT(advice_for_failed_install("No matching distribution found for " + endless, {}, "/"),
              Contains(HasSubstr("check the name and version")));
  EXPECT_THAT(
      advice_for_failed_install("No matching distribution found for sklearn\n" + endless, {}, "/"),
      Contains("did you mean `scikit-learn`?"));
}

TEST(InstallAdvice, names_the_package_that_debians_python_lacks) {
  const std::string printed =
      "The virtual environment was not created successfully because ensurepip is not\n"
      "available.  On Debian/Ubuntu systems, you need to install the python3-venv\n"
      "package using the following command.\n";
  EXPECT_THAT(advice_for_failed_install(printed, {}, "/"),
              Contains(HasSubstr("apt install python3-venv")));
}

}  // namespace
}  // namespace pipeline::orchestrators::processes
