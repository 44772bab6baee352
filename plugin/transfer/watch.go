package transfer

import (
	"context"
	"time"
)

// Changing is a Transferer that does not tell of changes itself: the serials of its zones are looked at now and then, and
// the secondaries of a zone are notified when its serial is another one.
type Changing interface {
	Transferer
	// TransferSerials is the serials of its zones, by their names, fully qualified and in lower case. A zone that has not been read yet
	// is not among them.
	TransferSerials() map[string]uint32
}

// lookEvery is how often serials are looked at.
const lookEvery = 2 * time.Second

// watch notifies of changes until ctx ends.
func (t *Transfer) watch(ctx context.Context, every time.Duration, notify func(zone string)) {
	var sources []Changing
	for _, from := range t.Transferers {
		if c, ok := from.(Changing); ok {
			sources = append(sources, c)
		}
	}
	if len(sources) == 0 {
		return
	}
	known := map[string]uint32{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range sources {
			for zone, serial := range s.TransferSerials() {
				if old, ok := known[zone]; !ok || old != serial {
					known[zone] = serial
					notify(zone)
				}
			}
		}
	}
}
