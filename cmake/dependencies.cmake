# Third-party libraries, all Debian packages (scripts/packages.txt lists them and says why).
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
if(KBH_PORTABLE)
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Threads REQUIRED)

# Libraries without a CMake package everywhere: found by header and file name, archive preferred when portable.
function(kbh_library target header)
  add_library(${target} INTERFACE)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  if(ARGN)
    find_library(${target}_LIBRARY NAMES ${ARGN} REQUIRED)
    target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
  endif()
endfunction()

if(KBH_PORTABLE)
  kbh_library(kbh_xxhash xxhash.h libxxhash.a)
  kbh_library(kbh_seccomp seccomp.h libseccomp.a)
else()
  kbh_library(kbh_xxhash xxhash.h xxhash)
  kbh_library(kbh_seccomp seccomp.h seccomp)
endif()
kbh_library(kbh_tomlplusplus toml++/toml.h)
kbh_library(kbh_random123 Random123/philox.h)
kbh_library(kbh_cli11 CLI/CLI.hpp)

# Debian has no archive of fmt. Its shared object would bring a second, shared libstdc++ into a process that links its own
# statically, so a portable build compiles fmt's headers instead.
add_library(kbh_fmt INTERFACE)
if(KBH_PORTABLE)
  target_link_libraries(kbh_fmt INTERFACE fmt::fmt-header-only)
else()
  target_link_libraries(kbh_fmt INTERFACE fmt::fmt)
endif()
