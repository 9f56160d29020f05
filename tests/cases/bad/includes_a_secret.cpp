// The compiler runs in the sandbox too: files outside it do not exist for it.
// expect verdict: build_failed
// expect stage: build
// expect says: /etc/shadow
#include "/etc/shadow"
