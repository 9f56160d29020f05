#include "lane/sealed/plan.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"

namespace kbh::sealed {
namespace {

/// Reads fields of an untrusted object; every refusal names the place.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail(ErrorKind::usage, "plan: {} is no object", where_);
  }

  template <typename T>
  [[nodiscard]] T number(const char* name) const {
    const Json& value = at(name);
    if (!value.is_number_integer()) refuse(name, "an integer");
    if constexpr (std::is_unsigned_v<T>) {
      if (!value.is_number_unsigned()) refuse(name, "an integer of at least 0");
      const auto wide = value.get<std::uint64_t>();
      if (wide > std::numeric_limits<T>::max()) refuse(name, "a smaller integer");
      return static_cast<T>(wide);
    } else {
      if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
        refuse(name, "a smaller integer");
      const auto wide = value.get<std::int64_t>();
      if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max())
        refuse(name, "a smaller integer");
      return static_cast<T>(wide);
    }
  }

  template <typename Kind>
  [[nodiscard]] Kind kind(const char* name, Kind last) const {
    const auto value = number<std::int32_t>(name);
    if (value < 1 || value > static_cast<std::int32_t>(last)) refuse(name, "a known kind");
    return static_cast<Kind>(value);
  }

  [[nodiscard]] bool flag(const char* name) const {
    if (!at(name).is_boolean()) refuse(name, "true or false");
    return at(name).get<bool>();
  }

  [[nodiscard]] std::string text(const char* name, std::size_t longest) const {
    if (!at(name).is_string()) refuse(name, "text");
    auto value = at(name).get<std::string>();
    if (value.size() > longest) refuse(name, "a shorter text");
    return value;
  }

  template <typename T>
  [[nodiscard]] std::vector<T> numbers(const char* name, std::size_t most) const {
    const Json& list = at(name);
    if (!list.is_array() || list.size() > most) refuse(name, "a list of numbers, not too long");
    std::vector<T> values;
    for (std::size_t i = 0; i < list.size(); ++i)
      values.push_back(Reader({{"n", list[i]}}, fmt::format("{}.{}[{}]", where_, name, i)).template number<T>("n"));
    return values;
  }

  [[nodiscard]] std::array<std::int64_t, 3> extent(const char* name) const {
    const auto values = numbers<std::int64_t>(name, 3);
    if (values.size() != 3) refuse(name, "three numbers");
    return {values[0], values[1], values[2]};
  }

  /// Reads each element of a list of objects.
  template <typename T, typename Read>
  [[nodiscard]] std::vector<T> list(const char* name, std::size_t most, Read read) const {
    const Json& array = at(name);
    if (!array.is_array() || array.size() > most) refuse(name, "a list, not too long");
    std::vector<T> values;
    for (std::size_t i = 0; i < array.size(); ++i)
      values.push_back(read(Reader(array[i], fmt::format("{}.{}[{}]", where_, name, i))));
    return values;
  }

  [[nodiscard]] const Json& at(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) fail(ErrorKind::usage, "plan: {}.{} is missing", where_, name);
    return *found;
  }
  [[nodiscard]] bool has(const char* name) const { return json_.contains(name); }
  [[nodiscard]] Reader object(const char* name) const { return {at(name), where_ + "." + name}; }

  [[noreturn]] void refuse(const char* name, const char* expected) const {
    fail(ErrorKind::usage, "plan: {}.{} is {}, expected {}", where_, name, at(name).dump().substr(0, 80), expected);
  }

 private:
  Json json_;  // small: a copy spares lifetimes
  std::string where_;
};

// More than any plan can use; validate has the limits that mean something.
constexpr std::size_t kMost = 4096;
constexpr std::size_t kMostValueBytes = 4096;

Json to_json(const PlanBuffer& b) {
  return {{"kind", static_cast<int>(b.kind)}, {"index", b.index}, {"bytes", b.bytes}};
}

Json to_json(const PlanTensorMap& m) {
  return {{"buffer", m.buffer},
          {"offset", m.offset},
          {"type", m.type},
          {"dims", m.dims},
          {"strides", m.strides},
          {"box", m.box},
          {"element_strides", m.element_strides},
          {"interleave", m.interleave},
          {"swizzle", m.swizzle},
          {"promotion", m.promotion},
          {"fill", m.fill}};
}

Json to_json(const PlanArgument& a) {
  Json json{{"kind", static_cast<int>(a.kind)}, {"size", a.size}};
  if (a.kind == ArgumentKind::value)
    json["bytes"] = to_hex({reinterpret_cast<const std::uint8_t*>(a.bytes.data()), a.bytes.size()});
  else
    json["id"] = a.id;
  if (a.kind == ArgumentKind::pointer) {
    json["offset"] = a.offset;
    json["writable"] = a.writable;
  }
  return json;
}

Json to_json(const PlanStep& step) {
  Json json{{"phase", static_cast<int>(step.phase)}};
  if (step.zero) {
    json["zero"] = step.buffer;
    return json;
  }
  const PlanLaunch& l = step.launch;
  Json arguments = Json::array();
  for (const PlanArgument& a : l.arguments) arguments.push_back(to_json(a));
  json["launch"] = {{"kernel", l.kernel},   {"grid", l.grid},        {"block", l.block},
                    {"cluster", l.cluster}, {"shared", l.shared},    {"cooperative", l.cooperative},
                    {"overlap", l.overlap}, {"arguments", arguments}};
  return json;
}

std::string from_hex(const std::string& hex, const Reader& where) {
  std::string bytes;
  const auto digit = [&](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    where.refuse("bytes", "hexadecimal digits");
  };
  if (hex.size() % 2 != 0) where.refuse("bytes", "an even number of digits");
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return bytes;
}

PlanArgument argument_from(const Reader& r) {
  PlanArgument a;
  a.kind = r.kind("kind", ArgumentKind::tensor_map);
  a.size = r.number<std::uint32_t>("size");
  if (a.kind == ArgumentKind::value) {
    a.bytes = from_hex(r.text("bytes", 2 * kMostValueBytes), r);
    if (a.bytes.size() != a.size) r.refuse("size", "the number of bytes given");
    return a;
  }
  a.id = r.number<std::uint32_t>("id");
  if (a.kind == ArgumentKind::pointer) {
    a.offset = r.number<std::uint64_t>("offset");
    a.writable = r.flag("writable");
  }
  return a;
}

PlanTensorMap tensor_map_from(const Reader& r) {
  PlanTensorMap m;
  m.buffer = r.number<std::uint32_t>("buffer");
  m.offset = r.number<std::uint64_t>("offset");
  m.type = r.number<std::int32_t>("type");
  m.dims = r.numbers<std::uint64_t>("dims", 5);
  m.strides = r.numbers<std::uint64_t>("strides", 4);
  m.box = r.numbers<std::uint32_t>("box", 5);
  m.element_strides = r.numbers<std::uint32_t>("element_strides", 5);
  m.interleave = r.number<std::int32_t>("interleave");
  m.swizzle = r.number<std::int32_t>("swizzle");
  m.promotion = r.number<std::int32_t>("promotion");
  m.fill = r.number<std::int32_t>("fill");
  return m;
}

PlanStep step_from(const Reader& r) {
  PlanStep step;
  step.phase = r.kind("phase", Phase::run);
  if (r.has("zero")) {
    step.zero = true;
    step.buffer = r.number<std::uint32_t>("zero");
    return step;
  }
  const Reader l = r.object("launch");
  step.launch.kernel = l.text("kernel", 4096);
  step.launch.grid = l.extent("grid");
  step.launch.block = l.extent("block");
  step.launch.cluster = l.extent("cluster");
  step.launch.shared = l.number<std::int64_t>("shared");
  step.launch.cooperative = l.flag("cooperative");
  step.launch.overlap = l.flag("overlap");
  step.launch.arguments = l.list<PlanArgument>("arguments", kMost, argument_from);
  return step;
}

}  // namespace

Json to_json(const Plan& plan) {
  Json json{{"schema", "kbh.plan/1"}, {"refused", plan.refused}};
  for (const char* name : {"buffers", "tensor_maps", "steps"}) json[name] = Json::array();
  for (const PlanBuffer& b : plan.buffers) json["buffers"].push_back(to_json(b));
  for (const PlanTensorMap& m : plan.tensor_maps) json["tensor_maps"].push_back(to_json(m));
  for (const PlanStep& s : plan.steps) json["steps"].push_back(to_json(s));
  return json;
}

Plan plan_from_json(const Json& json) {
  const Reader r(json, "plan");
  Plan plan;
  plan.refused = r.text("refused", 4096);
  plan.buffers = r.list<PlanBuffer>("buffers", kMost, [](const Reader& b) {
    return PlanBuffer{b.kind("kind", BufferKind::prepared), b.number<std::uint32_t>("index"),
                      b.number<std::uint64_t>("bytes")};
  });
  plan.tensor_maps = r.list<PlanTensorMap>("tensor_maps", kMost, tensor_map_from);
  plan.steps = r.list<PlanStep>("steps", kMost, step_from);
  return plan;
}

}  // namespace kbh::sealed
