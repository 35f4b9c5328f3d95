// Package metrics shows what a controller knows to Prometheus, in its text form:
//
//	controller.Views --Read--> controller.View --Collector--> client_golang --Handler--> GET /metrics
//	controller.Options.Waited, PlanTook, Events --> histograms, a counter
//
// A scrape asks the controller once; between scrapes nothing is computed. Names are tensile_job_... (labels job and
// owner), tensile_owner_... (label owner) and tensile_device_..., tensile_controller_...; all have the label device,
// which is that of a job, a device that an executor has brought, or the controller's own.
// Units are bytes and seconds. docs/observe.md lists them.
//
// Invariants: counters of owners never fall while a controller runs, whatever becomes of jobs. Series of a job end with
// it. No more than MaxJobs jobs have series; tensile_device_jobs_left_out says how many have none, as
// tensile_controller_devices_left_out does of devices, of which MaxDevices have.
package metrics
