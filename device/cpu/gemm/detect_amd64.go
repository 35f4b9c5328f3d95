package gemm

import "golang.org/x/sys/cpu"

// wide says that the processor has the instructions of the assembly. Tests turn it off.
var wide = cpu.X86.HasAVX2 && cpu.X86.HasFMA
