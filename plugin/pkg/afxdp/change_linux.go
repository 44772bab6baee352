package afxdp

import (
	"net"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"

	"golang.org/x/sys/unix"
)

// What may become of an interface while it is open, and what is done then:
//
//	it goes, or into another namespace    the program is taken off; who opens it later opens it anew
//	it gets another address on the link   a program with that takes the place of the one before
//	it gets another name                  zones of clients have it
//	it takes shorter packets              longer replies go through the kernel, which takes them apart
//	it gets a VLAN, and hides its tags    all goes to the kernel; see vlan_linux.go
//	addresses come and go                 the program chooses those that there are

// follow looks every now and then what has become of the interface, until the device is closed. It counts losses, too.
func (d *Device) follow() {
	tick := time.NewTicker(addressCheck)
	defer tick.Stop()
	for {
		select {
		case <-d.done:
			return
		case <-tick.C:
			d.mu.Lock()
			if !d.gone() && d.link >= 0 {
				d.look()
				_ = d.choose() // tried again
				d.countLost()
			}
			d.mu.Unlock()
		}
	}
}

// gone reports whether the interface is no longer the one that was opened, though there may be one with its name and
// number: the kernel has taken the sockets off it. The program may be on it still, and have all that comes for targets
// dropped, since their sockets take nothing; so it is taken off. d.mu is held.
func (d *Device) gone() bool {
	for _, q := range d.queues {
		// The kernel tells it once.
		if e, err := unix.GetsockoptInt(q.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != int(unix.ENETDOWN) {
			continue
		}
		d.lost = true
		if d.link >= 0 {
			log.Warningf("Interface %s was taken away: one of its name goes through the kernel until the next reload", *d.name.Load())
			unix.Close(d.link)
			d.link = -1
		}
	}
	return d.lost
}

// fit has replies be no longer than packets of the interface: it takes none apart. Those that can be shorter than what
// MaxPayload makes are of IPv4.
func (d *Device) fit(mtu int) { d.longest.Store(int32(min(MaxPayload, mtu-ip4Len-udpLen))) }

// look has the program, the zones of clients, and what replies are made know what the interface is now. d.mu is held.
func (d *Device) look() {
	i, err := net.InterfaceByIndex(d.index)
	if err != nil || len(i.HardwareAddr) != macLen {
		return
	}
	d.name.Store(&i.Name)
	d.fit(i.MTU)
	mac := [macLen]byte(i.HardwareAddr)
	if mac == d.mac {
		return
	}
	// Until it is replaced the program lets all go to the kernel: what comes is for another address than its own.
	program, err := load(chooser(mac, len(d.queues), d.single, d.chosen, d.sockets))
	if err != nil {
		return // tried again
	}
	if err := replace(d.link, program); err != nil {
		unix.Close(program)
		return
	}
	unix.Close(d.program)
	d.program, d.mac = program, mac
}

// local reports whether the host has an address. It may have more than its interfaces have: those of a local route.
func (d *Device) local(a netip.Addr) bool {
	family, own := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: a.As16(), ZoneId: uint32(d.index)})
	if a.Is4() {
		family, own = unix.AF_INET, &unix.SockaddrInet4{Addr: a.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // as it was at first
	}
	defer unix.Close(fd)
	return unix.Bind(fd, own) == nil
}
