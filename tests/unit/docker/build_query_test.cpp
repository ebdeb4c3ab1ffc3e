#include "docker/build_query.hpp"

#include <gtest/gtest.h>

namespace pipeline::docker {
namespace {

struct OwnCaches : testing::Test {
  ImagePlan plan;
  ImageStatus status;
  BuilderOptions options;
  std::string dockerfile = "id=pipe-apt-of-these-writers id=pipe-python-of-these-writers";
  std::string caches() const { return with_own_caches(dockerfile, plan, status, options); }
  std::string apt() const { return caches().substr(0, caches().find(' ')); }
  void add(const std::string& path, const std::string& content) {
    plan.context.push_back({.path = path, .content = content});
  }
};

TEST_F(OwnCaches, depend_on_all_who_can_write_to_them) {
  status.parents = {"one"};
  const auto first = caches(), first_apt = apt();
  EXPECT_EQ(first.find("of-these"), first.npos);
  EXPECT_EQ(caches(), first);
  add("python/requirements.txt", "numpy");
  EXPECT_NE(caches(), first) << "an installed package can write to the caches";
  EXPECT_EQ(apt(), first_apt) << "the requirements install no packages of the system";
  const auto second = caches();
  options.root = "/home/ann/other";
  EXPECT_EQ(caches(), second) << "equal builds share";
  add("project/setup.py", "evil()");
  const auto third = caches();
  options.root = "/home/ann/third";
  EXPECT_NE(caches(), third) << "a project writes to the cache of its folder";
  plan.parts["environment"] = {"PERL5OPT=-Mevil"};
  EXPECT_NE(apt(), first_apt);
  plan.parts.clear();
  status.parents = {"two"};
  EXPECT_NE(apt(), first_apt);
}

}  // namespace
}  // namespace pipeline::docker
