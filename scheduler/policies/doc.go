// Package policies is the table of all policies and the way to run one of them, [Schedule].
//
// A policy is a function of a draft.Session and a row of a [Table]. A policy of another package needs no change here:
// give Table.Schedule a table with its row.
//
// # Shares of the link
//
// Each direction of the link is divided between the jobs in whole parts that add up to at most the link: a step around
// every policy. A job demands the bytes that its plan copies over the time of its steps. Plans are made with even
// shares and, if demands are uneven, once more with shares by demand; the plans with less weighed slowdown by
// program.Time are kept. Then each job gets a floor, an eighth of an even share, and a part of the rest that goes by
// the square root of weight times demand, which minimises the weighed sum of demand/share, the time spent on copies.
// These shares stand in the Result, unless the slowdown is less with those planned with.
package policies
