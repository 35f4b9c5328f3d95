//go:build unix

package cpu

import (
	"fmt"
	"syscall"
	"unsafe"

	"tensile/device"
	"tensile/graph"
)

// memory is a mapping between two guard pages. Its end lies at the upper guard to the byte, that of an arena that is
// backed in part to the system's page: there it is the beginning that is aligned.
type memory struct {
	mapping []byte
	bytes   []byte
}

// reserve maps size bytes, zeroed. Their pages appear when they are first used.
func reserve(size graph.Bytes) (memory, error) {
	if size == 0 {
		return memory{}, nil
	}
	page := syscall.Getpagesize()
	inner := (int(size) + page - 1) / page * page
	mapping, err := syscall.Mmap(-1, 0, inner+2*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return memory{}, fmt.Errorf("map %s: %w; free memory or give a smaller budget", size, err)
	}
	for _, guard := range [][]byte{mapping[:page], mapping[page+inner:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			panic(fmt.Sprintf("cpu: guard page of %s: %v", size, err))
		}
	}
	end := page + inner
	return memory{mapping, mapping[end-int(size) : end : end]}, nil
}

// largePage is what the system has large pages of. To back 1 MiB by them takes a tenth of the time that it takes by
// pages of 4 KiB.
const largePage = 2 << 20

// reserveUnbacked takes size bytes of addresses, without memory, that begin where a large page can. They are backed a
// unit at a time: by large pages only if these are never given back in part.
func reserveUnbacked(size, unit graph.Bytes) (memory, error) {
	if size == 0 {
		return memory{}, nil
	}
	page := syscall.Getpagesize()
	inner := (int(size) + page - 1) / page * page
	mapping, err := syscall.Mmap(-1, 0, largePage+inner+page, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return memory{}, fmt.Errorf("map %s: %w; give a smaller budget", size, err)
	}
	begin := largePage - int(uintptr(unsafe.Pointer(unsafe.SliceData(mapping)))%largePage)
	if unit%largePage == 0 {
		adviseLarge(mapping[begin : begin+inner])
	}
	return memory{mapping, mapping[begin : begin+int(size) : begin+inner]}, nil
}

func (m *memory) free() {
	if m.mapping == nil {
		return
	}
	if err := syscall.Munmap(m.mapping); err != nil {
		panic(fmt.Sprintf("cpu: unmap %d bytes: %v", len(m.mapping), err))
	}
	*m = memory{}
}

// floats returns elements as float32, starting offset bytes from the start.
func (m *memory) floats(offset graph.Bytes, elements int) []float32 {
	if elements == 0 {
		return nil
	}
	return device.Memory(m.slice(offset, graph.Bytes(elements)*graph.ElementBytes)).Float32()
}

// slice returns size bytes, starting offset bytes from the start.
func (m *memory) slice(offset, size graph.Bytes) device.Memory {
	return device.Memory(m.bytes[offset : offset+size])
}
