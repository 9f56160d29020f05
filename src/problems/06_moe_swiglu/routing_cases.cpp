#include <algorithm>
#include <array>

#include "problems/06_moe_swiglu/data.hpp"
#include "problems/06_moe_swiglu/draws.hpp"

// Every expert's rows have a scale of their own here, 2^-5 to 2^5 of the nominal one, so that no expert is like its
// neighbour and a row that is lost, late, or given to another expert is wrong by about its own size.

namespace kbh::moe {
namespace {

using Names = std::vector<std::string>;
using Route = std::function<Counts(const Sizes&, Random&)>;

/// The row's expert, for all rows.
std::vector<std::int64_t> experts_of_rows(const Counts& counts) {
  std::vector<std::int64_t> experts;
  for (std::size_t e = 0; e < counts.size(); ++e)
    experts.insert(experts.end(), index(counts[e]), static_cast<std::int64_t>(e));
  return experts;
}

void routed(const Inputs& in, const Route& route) {
  Random random = in.random("expert_offsets");
  const Counts counts = route(in.size, random);
  in.route(counts);
  std::vector<float> of_expert;
  for (std::int64_t e = 0; e < in.size.experts; ++e) of_expert.push_back(kHiddenScale * random.log_uniform(-5, 5));
  std::vector<float> scales;
  for (const std::int64_t e : experts_of_rows(counts)) scales.push_back(of_expert[index(e)]);
  in.draw(StretchedNormalBf16{scales.data(), static_cast<std::uint64_t>(in.size.width)});
}

bool several_experts(const Sizes& size) { return size.experts >= 2; }

Case routing(std::string name, std::string about, Names kills, Route route) {
  return applying(single(
                      std::move(name), std::move(about),
                      [route = std::move(route)](const Inputs& in) { routed(in, route); }, std::move(kills)),
                  several_experts);
}

Case empty_experts(std::string name, std::string about, std::vector<std::int64_t> (*owners)(const Sizes&, Random&),
                   Names kills) {
  return routing(std::move(name), std::move(about), std::move(kills), [owners](const Sizes& size, Random& random) {
    return ragged(size.rows(), size.experts, owners(size, random), random);
  });
}

/// A random run's length: at least one expert, at most half of them.
std::int64_t some(const Sizes& size, Random& random) {
  return random.between(1, std::max<std::int64_t>(1, size.experts / 2));
}

std::vector<std::int64_t> all_but_first(const Sizes& size, Random& random) {
  return all_but(size.experts, 0, some(size, random));
}

std::vector<std::int64_t> all_but_last(const Sizes& size, Random& random) {
  return all_but(size.experts, size.experts - some(size, random), size.experts);
}

std::vector<std::int64_t> all_but_middle(const Sizes& size, Random& random) {
  const std::int64_t length = std::min(some(size, random), size.experts - 2);
  const std::int64_t begin = random.between(1, size.experts - 1 - length);
  return all_but(size.experts, begin, begin + length);
}

std::vector<std::int64_t> scattered(const Sizes& size, Random& random) { return random_runs(size.experts, random); }

template <std::size_t Count>
Route sized_like(std::array<std::int64_t, Count> sizes) {
  return [sizes](const Sizes& size, Random& random) { return sized(size.rows(), size.experts, sizes, random); };
}

/// The public property case: some experts' rows go to one, and hidden is larger behind a prefix.
struct Property {
  std::int64_t receiver;
  std::int64_t donor;
  std::int64_t delta;
  std::int64_t prefix_rows;
  float suffix_scale;
};

void donate(const Inputs& in, const Property& property) {
  const Sizes& size = in.size;
  const std::int64_t receiver = property.receiver % size.experts;
  const std::int64_t wanted = property.donor % size.experts;
  const std::int64_t donor = wanted == receiver ? (wanted + 1) % size.experts : wanted;
  in.route(donated(size.rows(), size.experts, receiver, donor, property.delta));
  const auto prefix = std::max<std::int64_t>({64, (65536 + size.width - 1) / size.width, property.prefix_rows});
  in.draw(PrefixNormalBf16{static_cast<std::uint64_t>(std::min(prefix, size.rows() / 2) * size.width), kHiddenScale,
                           kHiddenScale * property.suffix_scale});
}

void random_property(const Inputs& in) {
  constexpr std::int64_t kDeltas[] = {1, 7, 63, 127, 129, 257};
  constexpr std::int64_t kPrefixes[] = {1, 16, 32, 64, 127};
  Random random = in.random("expert_offsets");
  Property property{};
  property.receiver = random.between(0, 127);
  property.donor = random.between(0, 127);
  property.delta = kDeltas[random.below(std::ssize(kDeltas))];
  property.prefix_rows = kPrefixes[random.below(std::ssize(kPrefixes))];
  property.suffix_scale = static_cast<float>(random.between(4, 12));
  donate(in, property);
}

/// With 129 rows more the receiver passes average + 128, the public property case's point.
bool many_rows(const Sizes& size) { return size.experts >= 2 && size.rows() >= 129 + 2 * size.experts; }

}  // namespace

std::vector<Case> routing_cases() {
  return {
      empty_experts("empty_first", "the first experts have no rows", all_but_first,
                    {"balanced_only", "first_owner_search"}),
      empty_experts("empty_last", "the last experts have no rows", all_but_last, {"balanced_only", "cached_routing"}),
      applying(empty_experts("empty_middle", "a run of experts in the middle has no rows", all_but_middle,
                             {"balanced_only", "cached_routing"}),
               [](const Sizes& size) { return size.experts >= 3; }),
      empty_experts("empty_runs", "runs of experts without rows", scattered, {"balanced_only"}),
      routing("one_owner", "a random expert has all rows, the others none", {"balanced_only", "capacity"},
              [](const Sizes& size, Random& random) {
                Counts counts(index(size.experts));
                counts[index(random.below(size.experts))] = size.rows();
                return counts;
              }),
      routing("ends_own", "the first and the last expert share all rows", {"balanced_only", "last_expert_dropped"},
              [](const Sizes& size, Random& random) {
                Counts counts(index(size.experts));
                counts.front() = size.rows() / 4 + random.below(size.rows() / 2 + 1);
                counts.back() = size.rows() - counts.front();
                return counts;
              }),
      routing("one_row_each", "one row each, a random expert has the others", {"balanced_only", "tile_by_first_row"},
              [](const Sizes& size, Random& random) { return one_row_each(size.rows(), size.experts, random); }),
      routing("tile_edges", "63 to 65, 127 to 129, 255 to 257 rows: around the edges of large tiles",
              {"balanced_only", "cached_routing"}, sized_like<9>({63, 64, 65, 127, 128, 129, 255, 256, 257})),
      routing("small_tile_edges", "1 to 33 rows: around the edges of small tiles",
              {"balanced_only", "tile_by_first_row", "row_tail_dropped"},
              sized_like<10>({1, 7, 8, 9, 15, 16, 17, 31, 32, 33})),
      routing("ragged", "random cuts: experts begin inside of tiles",
              {"balanced_only", "tile_by_first_row", "row_tail_dropped", "cached_routing"},
              [](const Sizes& size, Random& random) {
                return ragged(size.rows(), size.experts, all_experts(size.experts), random);
              }),
      routing("zipf", "a few hot experts and a long tail", {"balanced_only", "boundary_row", "neighbour_expert"},
              [](const Sizes& size, Random& random) { return zipf(size.rows(), size.experts, random); }),
      as_upstream(
          applying(single("donated_canonical", "129 rows of expert 1 and on go to expert 0 (public property case)",
                          [](const Inputs& in) {
                            donate(in, {0, 1, 129, 64, 8});
                          },
                          {"balanced_only", "capacity", "one_wrong"}),
                   many_rows),
          {0.1, 0.05}),
      applying(single("donated", "rows of some experts go to another (public property case, random)", random_property,
                      {"one_wrong"}),
               several_experts),
  };
}

}  // namespace kbh::moe
