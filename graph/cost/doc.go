// Package cost holds what is known of devices before anything was measured: peak rates with their sources, and the
// roofline that turns an op's arithmetic and traffic into time, and how jobs that share a device slow one another down.
package cost
