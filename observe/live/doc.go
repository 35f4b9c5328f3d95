// Package live folds what a controller knows anyway (its list of jobs, reports of iterations, plans) into values that
// people look at: what a device's memory and link are used for over time, how each job gets on, and what its plan does.
// It decides nothing, and only computes: whoever owns a [History] tells it what has happened, with the time.
//
//	wire.Answer (jobs) --> History.Take  --+--> Overview: the device and its jobs, now
//	wire.Report        --> History.Heard --+--> Samples: memory and link over time
//	graph, wire.Layout --> History.Plan  --+--> Detail: losses, newest iteration and plans of a job
//
//	program.Program  --> PictureOf  --> memory over the steps, what the lanes do, what is done with each storage
//	timeline.Section --> MeasuredOf --> what the lanes did in an iteration
//
// A [Job] holds the very record that tensile jobs --json prints. What is kept is bounded: a [series] has some hundred
// points, the older the sparser; of jobs that the controller forgets nothing stays.
package live
