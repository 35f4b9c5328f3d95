package vector

import "golang.org/x/sys/cpu"

// wide says that the processor has the instructions of the assembly. Tests turn it off.
var wide = cpu.X86.HasAVX2

// eights is how many of n elements the assembly takes that takes eight at once.
func eights(n int) int {
	if !wide {
		return 0
	}
	return n &^ 7
}

// sixteens is how many of n elements the assembly takes that takes sixteen at once.
func sixteens(n int) int {
	if !wide {
		return 0
	}
	return n &^ 15
}
