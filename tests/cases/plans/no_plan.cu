// A kernel without a plan.
// expect verdict: rejected
// expect stage: plan
// expect says: there is no plan: define KBH_SEALED_PLAN
__global__ void nothing(float* y) { y[0] = 0; }
