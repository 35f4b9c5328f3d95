package calibrate

import (
	"context"
	"fmt"
	"runtime"

	"tensile/device"
	"tensile/predictor"
)

// measuring is the share of a calibration's progress that measuring takes; training is the rest.
const measuring = 0.7

// Model measures a device and trains a model of it, which calls the device by this name. Every tenth network is held
// back: the model's note tells the error on those. effort is that of [predictor.Train]. progress is called with the
// share of the work that is done, up to 1, and what is being done. The samples are returned as well.
func Model(ctx context.Context, d device.Device, name string, o Options, effort float64,
	progress func(done float64, what string)) (*predictor.Model, []predictor.Sample, error) {
	o.Progress = func(done float64, networks int) {
		progress(measuring*done, fmt.Sprintf("calibrating %s: network %d", name, networks))
	}
	networks, err := measure(ctx, d, o)
	if err != nil {
		return nil, nil, err
	}
	facts := d.Facts()
	facts.Name = name
	const anyCache, anyClock = 1 << 20, 1e9 // of one device they are constants that nothing depends on
	machine := predictor.DeviceOf(facts, runtime.NumCPU(), anyClock, anyCache)
	machine.Launch = 0 // the samples tell
	var samples, train, test []predictor.Sample
	for n, some := range networks {
		if samples = append(samples, some...); n%10 == 2 {
			test = append(test, some...)
		} else {
			train = append(train, some...)
		}
	}
	m, err := predictor.Train(train, []predictor.Device{machine}, predictor.Options{Effort: effort,
		Progress: func(p predictor.Progress) {
			progress(measuring+(1-measuring)*p.Done, "training "+p.Group)
		}})
	if err != nil {
		return nil, nil, err
	}
	e := predictor.Evaluate(m, test)
	m.Note = fmt.Sprintf("%d ops of %d networks measured, mean error %.3f on networks held back", len(samples),
		len(networks), e.Devices[0].MAPE)
	return m, samples, nil
}
