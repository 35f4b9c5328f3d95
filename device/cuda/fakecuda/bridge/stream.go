//go:build gpu

package bridge

// #include <cuda.h>
import "C"

import (
	"time"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
)

//export fakeStreamCreate
func fakeStreamCreate(s *C.CUstream, flags C.uint) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		if flags != C.CU_STREAM_NON_BLOCKING {
			return refuse(cuda.InvalidValue, "a stream of flags %d waits for the default stream", flags)
		}
		made, err := d.NewStream()
		*s = handle[C.CUstream](made)
		return err
	})
}

//export fakeStreamDestroy
func fakeStreamDestroy(s C.CUstream) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.DestroyStream(number[cuda.Stream](s)) })
}

//export fakeStreamWaitEvent
func fakeStreamWaitEvent(s C.CUstream, e C.CUevent, flags C.uint) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.Wait(number[cuda.Stream](s), number[cuda.Event](e)) })
}

//export fakeEventCreate
func fakeEventCreate(e *C.CUevent, flags C.uint) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		if flags != C.CU_EVENT_BLOCKING_SYNC {
			return refuse(cuda.InvalidValue, "an event of flags %d takes no time, or a thread spins for it", flags)
		}
		made, err := d.NewEvent()
		*e = handle[C.CUevent](made)
		return err
	})
}

//export fakeEventDestroy
func fakeEventDestroy(e C.CUevent) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.DestroyEvent(number[cuda.Event](e)) })
}

//export fakeEventRecord
func fakeEventRecord(e C.CUevent, s C.CUstream) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.Record(number[cuda.Stream](s), number[cuda.Event](e)) })
}

//export fakeEventQuery
func fakeEventQuery(e C.CUevent) C.CUresult {
	ended := false
	code := inContext(func(d *fakecuda.Driver) (err error) {
		ended, err = d.Ended(number[cuda.Event](e))
		return err
	})
	if code == C.CUDA_SUCCESS && !ended {
		return C.CUDA_ERROR_NOT_READY
	}
	return code
}

// fakeEventSynchronize comes to an end since each question moves virtual time on.
//
//export fakeEventSynchronize
func fakeEventSynchronize(e C.CUevent) C.CUresult {
	for {
		if code := fakeEventQuery(e); code != C.CUDA_ERROR_NOT_READY {
			return code
		}
	}
}

//export fakeEventElapsedTime
func fakeEventElapsedTime(milliseconds *C.float, a, b C.CUevent) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		t, err := d.Elapsed(number[cuda.Event](a), number[cuda.Event](b))
		*milliseconds = C.float(float64(t) / float64(time.Millisecond))
		return err
	})
}
