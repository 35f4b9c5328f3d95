// Package bench measures the parts of Tensile against each other and under load, for tensile bench:
//
//   - [MeasurePlanner]: what planning, packing and proving cost, and what each part of the planner brings (ablation).
//   - [MeasurePool]: the methods of packing on published instances and on plans of networks.
//   - [MeasureCheckpoints]: what a checkpoint costs the job that it is taken of, while it trains and in Home.
//   - [MeasurePaper]: all policies on the work of the TENSILE paper, in virtual time.
//   - [MeasureReal]: all policies on a device with data, and whether bits stay the same.
//   - [superNeurons], [autoSwap]: the tables and figures of these papers, for tensile bench paper.
//   - [MeasureShare], [MeasureBatches]: jobs that share a simulated device's memory.
//   - [MeasureSharing]: the tables and figures of Zico and Waterwave.
//   - [MeasureRealSharing]: copies that share memory on a device with data, and whether bits stay the same.
//   - [MeasureController]: a controller with many executors and reports, on a server of its own.
//   - [MeasureObserve]: what viewers of the page and scrapes of the metrics cost a controller and its jobs.
//
// Nothing but that command imports it: what the product itself needs is in workload, planner and report.
package bench
