// expect verdict: rejected
// expect stage: inspect
// expect says: a C++ name
__attribute__((visibility("default"))) int kbh_run(void*, const void*, int, const void*, int, void*) { return 0; }
