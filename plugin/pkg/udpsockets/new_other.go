//go:build !linux

package udpsockets

// New is the system's own way.
func New() (Set, error) { return NewPortable() }

// Datagrams is a batch to be sent. The zero value is empty.
type Datagrams struct {
	all  [][]byte
	sent int
}

// MaxRun is how many datagrams a batch has at most.
const MaxRun = 32

// Add adds a datagram.
func (d *Datagrams) Add(b []byte) { d.all = append(d.all, b) }

// SendTogether has the system cut the batch into datagrams where it can.
func (d *Datagrams) SendTogether(bool) {}

// Refused reports whether the system did not do so.
func (d *Datagrams) Refused() bool { return false }

// Next takes the next one that is not sent yet.
func (d *Datagrams) Next() (b []byte, ok bool) {
	if d.sent == len(d.all) {
		return nil, false
	}
	d.sent++
	return d.all[d.sent-1], true
}

// Number is which datagram, as Add counts them, was the i-th to be sent.
func (d *Datagrams) Number(i int) int { return i }

// Clear empties the batch.
func (d *Datagrams) Clear() {
	clear(d.all)
	d.all, d.sent = d.all[:0], 0
}
