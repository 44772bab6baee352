//go:build !linux

package proxy

func newSockets(to receiver) (sockets, error) { return newPortableSockets(to) }

// datagrams is a batch to be sent.
type datagrams struct {
	all  [][]byte
	sent int
}

const maxRun = 32

func (d *datagrams) add(b []byte)  { d.all = append(d.all, b) }
func (d *datagrams) together(bool) {}
func (d *datagrams) refused() bool { return false }

func (d *datagrams) next() (b []byte, ok bool) {
	if d.sent == len(d.all) {
		return nil, false
	}
	d.sent++
	return d.all[d.sent-1], true
}

func (d *datagrams) number(i int) int { return i }

func (d *datagrams) clear() {
	clear(d.all)
	d.all, d.sent = d.all[:0], 0
}
