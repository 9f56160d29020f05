#pragma once

/// One body of a hot loop, compiled for three vector widths and chosen at load time. Where every operation is correctly
/// rounded and none is fused (-ffp-contract=off), the bits are equal. Sanitizers do not get along with the choice.
#if defined(__x86_64__) && !defined(KBH_SANITIZED)
#define KBH_EVERY_WIDTH __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define KBH_EVERY_WIDTH
#endif
