file(READ ${INPUT} content)
file(WRITE ${OUTPUT} "#include <string_view>
namespace kbh::embedded {
extern const std::string_view ${NAME};
const std::string_view ${NAME} = R\"kbh_embed(${content})kbh_embed\";
}
")
