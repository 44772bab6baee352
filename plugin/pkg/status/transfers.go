package status

import (
	"slices"
	"sync"
	"time"
)

// Transfers is a plugin that sends or gets zones.
type Transfers interface {
	// TransferStatus tells of the last transfers, the newest first.
	TransferStatus() []Transfer
}

// Transfer is one that is over.
type Transfer struct {
	Time      time.Time `json:"time"` // of its end
	Zone      string    `json:"zone"`
	Direction string    `json:"direction"` // out or in
	Peer      string    `json:"peer"`      // who got the zone, or whom it came from
	Serial    uint32    `json:"serial"`
	Records   int       `json:"records,omitempty"` // that were sent
	Error     string    `json:"error,omitempty"`
}

// keptTransfers is how many a TransferLog keeps.
const keptTransfers = 256

// TransferLog keeps the last transfers. Its zero value is empty; any goroutine may use it.
type TransferLog struct {
	mu   sync.Mutex
	last []Transfer // at most keptTransfers, the oldest first
}

// Add notes a transfer that has ended now.
func (l *TransferLog) Add(t Transfer) {
	t.Time = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == keptTransfers {
		l.last = slices.Delete(l.last, 0, 1)
	}
	l.last = append(l.last, t)
}

// List is what Add noted, the newest first.
func (l *TransferLog) List() []Transfer {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.last)
	slices.Reverse(all)
	return all
}
