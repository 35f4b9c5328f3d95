package cuda

import (
	"errors"
	"fmt"
	"strings"

	"tensile/device/cuda/kernels"
)

// load loads the text of the kernels.
func (d *Device) load(texts []kernels.Text) error {
	d.identity, d.moduleOf = digest(texts), make(map[string]Module)
	for _, t := range texts {
		m, err := d.module(t.PTX)
		if err != nil {
			return fmt.Errorf("load the kernels of %s: %w", t.Name, err)
		}
		d.modules = append(d.modules, m)
		for _, kernel := range t.Kernels {
			d.moduleOf[kernel] = m
		}
	}
	return nil
}

// module loads a text, if the driver refuses it as it stands, as one for the device's own chip.
func (d *Device) module(text string) (Module, error) {
	m, err := d.driver.Load(text)
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != InvalidPTX && e.Code != UnsupportedPTX && e.Code != NoBinaryForGPU {
		return m, err
	}
	if own := retarget(text, d.properties.Major, d.properties.Minor); own != text {
		return d.driver.Load(own)
	}
	return m, err
}

// targets are the headers under which the text of the kernels assembles as well, the newest chips first.
var targets = []struct {
	chip            int // ten times the compute capability
	version, target string
}{
	{90, ".version 7.8", ".target sm_90"},
	{80, ".version 7.0", ".target sm_80"},
	{75, ".version 6.3", ".target sm_75"},
}

// retarget returns a text with the header for a chip; the text itself if there is no better one.
func retarget(text string, major, minor int) string {
	for _, t := range targets {
		if 10*major+minor < t.chip {
			continue
		}
		var b strings.Builder
		for line := range strings.Lines(text) {
			switch {
			case strings.HasPrefix(line, ".version "):
				line = t.version + "\n"
			case strings.HasPrefix(line, ".target "):
				line = t.target + "\n"
			}
			b.WriteString(line)
		}
		return b.String()
	}
	return text
}

// function returns a kernel.
func (d *Device) function(name string) (Function, error) {
	if f, ok := d.functions[name]; ok {
		return f, nil
	}
	m, ok := d.moduleOf[name]
	if !ok {
		panic(fmt.Sprintf("cuda: no text has kernel %s", name))
	}
	f, err := d.driver.Function(m, name)
	if err != nil {
		return 0, fmt.Errorf("find kernel %s: %w", name, err)
	}
	d.functions[name] = f
	return f, nil
}
