// expect verdict: rejected
// expect stage: inspect
// expect says: does not export kbh_run
// expect says: include <kbh/host.h>
extern "C" __attribute__((visibility("default"))) int run() { return 0; }
