package controller

import (
	"encoding/json"
	"time"

	"tensile/wire"
	"tensile/wire/recording"
)

// storeEvery is how often at most what was learnt is stored while jobs train.
const storeEvery = time.Minute

// storeLearnt has what was learnt stored, if there is news. Of a device that executors have registered the next
// controller learns it anew.
func (d *domain) storeLearnt() {
	if !d.learnt.HasNews() || d.registered != nil {
		return
	}
	d.learntStoredAt = d.m.now
	d.m.emit(Output{Learnt: &Learnt{d.learnt.Stored(d.config.Device)}})
}

// Learnt is what was learnt of a device, to be stored for later controllers.
type Learnt struct{ Wire wire.Learnt }

// MarshalJSON writes the digest of what is stored.
func (l *Learnt) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Ops    int    `json:"ops"`
		Digest string `json:"digest"`
	}{len(l.Wire.Ops), recording.Digest(l.Wire)})
}
