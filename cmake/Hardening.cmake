# Flags that harden the shipped program (checked by tests/hardening_test on the built file), and
# the sanitizers, which exclude some of them.
add_library(nd7_hardening INTERFACE)
target_compile_options(nd7_hardening INTERFACE
  -fstack-protector-strong -fstack-clash-protection -fno-delete-null-pointer-checks
  -fno-strict-overflow -fvisibility=hidden -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.
  -fcf-protection=full)
target_compile_definitions(nd7_hardening INTERFACE _GLIBCXX_ASSERTIONS ND7_VERSION="${PROJECT_VERSION}")
target_link_options(nd7_hardening INTERFACE
  -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,--as-needed)
if(ND7_SANITIZE)
  # Auto-init and fortify hide what the sanitizers look for.
  add_compile_options(-fsanitize=${ND7_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ND7_SANITIZE})
else()
  target_compile_options(nd7_hardening INTERFACE -ftrivial-auto-var-init=zero)
  target_compile_options(nd7_hardening INTERFACE
    $<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>)
endif()
