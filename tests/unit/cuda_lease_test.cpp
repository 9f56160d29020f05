#ifdef KBH_WITH_CUDA
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "device/cuda/lease.hpp"

namespace kbh::cuda {
namespace {

using ::testing::HasSubstr;

TEST(Lease, HoldsOthersOffUntilItEnds) {
  const std::string uuid = fmt::format("test-{}", ::getpid());
  {
    std::optional<Lease> held(std::in_place, uuid);
    try {
      const Lease second(uuid);
      FAIL() << "two at once";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::machine);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("process {}", ::getpid())));
    }
    held.reset();
    EXPECT_NO_THROW(Lease{uuid});
  }
  std::filesystem::remove("/tmp/kbh-lease-" + uuid);
}

}  // namespace
}  // namespace kbh::cuda
#endif
