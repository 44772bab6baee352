package afxdp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"unsafe"
)

// Target is an address that is listened on.
type Target struct {
	Sockets []*Socket // one for each queue

	device  *Device
	address netip.AddrPort // without a zone
	only4   bool
	place   int  // its sockets have the numbers from place*queues on; -1 for none
	closed  bool // guarded by device.mu
}

// Listen opens a device and makes the datagrams that come there for a come to the sockets of a
// Target, until it leaves; those for all addresses of the host, if a has none. only4 says that
// those of IPv6 are not meant then. If there is another target for a, it gets nothing until this
// one has left.
func Listen(device string, a netip.AddrPort, only4 bool) (*Target, error) {
	d, err := Open(device)
	if err != nil {
		return nil, err
	}
	t := &Target{device: d, address: netip.AddrPortFrom(a.Addr().WithZone(""), a.Port()), only4: only4, place: -1}
	if err := t.open(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// open makes the sockets, and has them chosen when all are there.
func (t *Target) open() error {
	d := t.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.place = slices.Index(d.places[:], false); t.place < 0 {
		return fmt.Errorf("more than %d addresses", mostTargets)
	}
	d.places[t.place] = true
	for i, q := range d.queues {
		s, err := newSocketOn(q, d)
		if err != nil {
			return err
		}
		t.Sockets = append(t.Sockets, s)
		number, fd := t.first()+uint32(i), uint32(s.fd)
		if err := d.sockets.put(unsafe.Pointer(&number), unsafe.Pointer(&fd)); err != nil {
			return err
		}
	}
	d.targets[t.address] = append(d.targets[t.address], t)
	return d.choose()
}

// first is the number of the target's first socket.
func (t *Target) first() uint32 { return uint32(t.place * len(t.device.queues)) }

// Leave lets who listened before have what comes, or else the kernel. What has come already can
// still be received.
func (t *Target) Leave() {
	d := t.device
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.targets[t.address]
	i := slices.Index(all, t)
	if i < 0 {
		return
	}
	if all = slices.Delete(all, i, i+1); len(all) > 0 {
		d.targets[t.address] = all
	} else {
		delete(d.targets, t.address)
	}
	_ = d.choose() // it takes out, or puts over what is there
}

// addHost adds those of the host's addresses that a target for all means: not those that a socket has for itself.
func (t *Target) addHost(host []netip.Addr, add func(netip.Addr, *Target)) {
	others := bound(t.address.Port())
	for _, a := range host {
		if (a.Is4() || !t.only4) && !others[a] {
			add(a, t)
		}
	}
}

// breadth is more for a target that means more addresses.
func (t *Target) breadth() int {
	switch {
	case !t.address.Addr().IsUnspecified():
		return 0
	case t.only4:
		return 1
	}
	return 2
}

// Close closes the sockets. To call it again does no harm.
func (t *Target) Close() (err error) {
	t.Leave()
	d := t.device
	d.mu.Lock()
	for _, s := range t.Sockets {
		err = errors.Join(err, s.Close())
	}
	if t.place >= 0 {
		d.places[t.place] = false
	}
	closed := t.closed
	t.Sockets, t.place, t.closed = nil, -1, true
	d.mu.Unlock()
	if !closed {
		d.Close()
	}
	return err
}

// choose makes the program send what comes to the targets. d.mu is held.
func (d *Device) choose() error {
	want, err := d.wanted()
	if err != nil {
		return err
	}
	for k, first := range want {
		if old, ok := d.now[k]; ok && old == first {
			continue
		}
		if err := d.chosen.put(unsafe.Pointer(&k), unsafe.Pointer(&first)); err != nil {
			return err
		}
		d.now[k] = first
	}
	for k := range d.now {
		if _, ok := want[k]; !ok {
			if err := d.chosen.remove(unsafe.Pointer(&k)); err != nil {
				return err
			}
			delete(d.now, k)
		}
	}
	return nil
}

// wanted is where what comes is to go: for each address and port, the number of a target's first
// socket. A target for one address goes before those for all, and one for all of IPv4 before one
// for all. d.mu is held.
func (d *Device) wanted() (map[targetKey]uint32, error) {
	want := map[targetKey]uint32{}
	if !d.sees(classNet) {
		return want, nil
	}
	add := func(a netip.Addr, t *Target) {
		k := keyOf(netip.AddrPortFrom(a, t.address.Port()))
		if _, taken := want[k]; !taken {
			want[k] = t.first()
		}
	}
	host, err := hostAddrs()
	if err != nil {
		return nil, err
	}
	for breadth := range 3 {
		for _, all := range d.targets {
			t := all[len(all)-1]
			switch {
			case t.breadth() != breadth:
			case breadth > 0:
				t.addHost(host, add)
			// What was the host's when the target was made may be somebody else's now, whom the kernel sends it to.
			case slices.Contains(host, t.address.Addr()) || d.local(t.address.Addr()):
				add(t.address.Addr(), t)
			}
		}
	}
	return want, nil
}

// countLost counts what was lost on all sockets. d.mu is held.
func (d *Device) countLost() {
	for _, all := range d.targets {
		for _, t := range all {
			for _, s := range t.Sockets {
				s.countLost()
			}
		}
	}
}
