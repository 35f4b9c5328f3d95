// Package page is the page of a controller in a browser: it asks the controller for its jobs, folds what it hears with
// [live.History], and serves that with a few files that are embedded here. Nothing is loaded from elsewhere.
//
//	GET  /                    the page; its files lie beside it
//	GET  /events?job=NAME     server-sent events: hello, then now, job, log, measured as there is news
//	GET  /jobs/{name}/plan    a live.Picture of the plan of a job
//	POST /jobs/{name}/{verb}  stop, park, resume, priority, measure, for tokens that allow it
//	POST /budget              likewise
//
// It costs little: the controller is asked once a second while somebody looks, and each few seconds for the history
// when nobody does; what all viewers see is encoded once; a picture is drawn when it is asked for. Of a job whose page
// is open one iteration is traced after each change of its plan, as tensile job trace does.
package page
