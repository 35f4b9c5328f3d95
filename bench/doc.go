// Package bench runs workloads and measures them: several jobs on a device, planned and vanilla, with the metrics of
// DESIGN and their tables.
//
//	Workload --Plan--> Planned (schedule, validate, compile, check) --Train--> Run --Compare--> Report
//
// The vanilla run trains the same jobs together under the policy none-live: nothing moves, and memory is freed after
// the last use. MSR compares slot peaks: (V - E)/V, with V of the policy none-all or none-live and E of the plan; both
// include scratch. EOR compares the time from the first iteration's begin to the last one's end, changes of plan in
// between included: E/V. CBR is msr_live/eor.
package bench
