// Package proof proves plans and programs. It imports their types and nothing that makes them, so that a mistake of the
// compiler is no mistake of the proof.
//
// [Validate] proves a plan without any time: see package plan. [Check] proves a program: over Prologue Body Body
// Epilogue, and Prologue Epilogue, with a snapshot also over Prologue Body Body Snapshot Body Epilogue, and Prologue
// Snapshot Body Epilogue, any two uses of the same bytes are ordered, and every command finds the content that it
// should. [Prove] proves a plan, a layout and what a compiler makes of them, none of which it trusts. [CheckGroups]
// proves groups of a program: it carries the sections out byte by byte.
//
// What has passed is a [Proven], or with groups a [Divided]. Nothing else makes one, and hosts and devices take nothing
// else.
package proof
