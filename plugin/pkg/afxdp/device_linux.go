package afxdp

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mostTargets is how many addresses of an interface there may be, those of a reload counted twice.
const mostTargets = 256

// addressCheck is how often a device looks whether the host has got other addresses, for targets
// that mean all.
const addressCheck = 2 * time.Second

// devices has those that are open, by the interface's number.
var devices struct {
	mu    sync.Mutex
	table map[int]*Device // guarded by mu
}

// Device is a network interface with our program. All who open it share it.
type Device struct {
	index   int
	name    atomic.Pointer[string]
	longest atomic.Int32 // payload of a reply
	// Native says that the card's driver runs the program; otherwise the kernel does, for more.
	Native bool
	single bool // datagrams come one by one; see many

	users           int    // guarded by devices.mu
	program, link   int    // descriptors; -1 for none. The program runs as long as link is open
	chosen, sockets bpfMap // from addresses to numbers of sockets, and from these to sockets
	queues          []*queue
	count           *counters

	mu      sync.Mutex
	mac     [macLen]byte                 // that the program looks for; guarded by mu
	lost    bool                         // the interface is no more; guarded by mu; see gone
	blind   bool                         // for VLANs; guarded by mu; see sees
	places  [mostTargets]bool            // guarded by mu: which are taken
	targets map[netip.AddrPort][]*Target // guarded by mu; of each, the last one gets what comes
	now     map[targetKey]uint32         // what chosen has; guarded by mu
	done    chan struct{}                // closed when the device is
}

// Open has our program see what comes on an interface, from its next packet on; as long as there is
// no Target all goes to the kernel. An error is *net.OpError for an interface that does not exist,
// and otherwise the system's: for a lack of rights (CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF are
// needed), or as it is Taken.
func Open(name string) (*Device, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	devices.mu.Lock()
	defer devices.mu.Unlock()
	// One that was lost may have i's number, or keep its place for a program.
	for index, d := range devices.table {
		if d.lostNow() {
			delete(devices.table, index) // who has it closes it
		}
	}
	d := devices.table[i.Index]
	if d == nil {
		d = &Device{index: i.Index, program: -1, link: -1, chosen: bpfMap{-1}, sockets: bpfMap{-1},
			targets: map[netip.AddrPort][]*Target{}, now: map[targetKey]uint32{}, done: make(chan struct{})}
		d.name.Store(&i.Name)
		d.fit(i.MTU)
		if err := d.open(i.HardwareAddr); err != nil {
			d.close()
			return nil, err
		}
		d.count = countersOf(name)
		go d.follow()
		if devices.table == nil {
			devices.table = map[int]*Device{}
		}
		devices.table[i.Index] = d
	}
	d.users++
	return d, nil
}

// lostNow is gone, for who does not hold mu.
func (d *Device) lostNow() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone()
}

// Close ends the use of a device. With the last one, all goes to the kernel again.
func (d *Device) Close() {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if d.users--; d.users == 0 {
		if devices.table[d.index] == d {
			delete(devices.table, d.index)
		}
		d.close()
	}
}

// Queues is the number of queues of the interface, and so of sockets of each target.
func (d *Device) Queues() int { return len(d.queues) }

// open makes the maps, which the program needs, the program, and the queues. What was made in vain
// close closes.
func (d *Device) open(mac net.HardwareAddr) (err error) {
	if len(mac) != macLen {
		return fmt.Errorf("not an Ethernet")
	}
	d.mac = [macLen]byte(mac)
	n, err := queuesOf(*d.name.Load())
	if err != nil {
		return err
	}
	if d.chosen, err = newMap(unix.BPF_MAP_TYPE_HASH, uint32(unsafe.Sizeof(targetKey{})), 4, mostAddresses); err != nil {
		return err
	}
	if d.sockets, err = newMap(unix.BPF_MAP_TYPE_XSKMAP, 4, 4, uint32(mostTargets*n)); err != nil {
		return err
	}
	// The program that the driver runs sees packets before anything is made of them; the kernel's
	// own place for it comes when it has made its structures, but goes with each driver.
	d.Native, d.single = true, !isTun(*d.name.Load())
	if err = d.run(n, unix.XDP_FLAGS_DRV_MODE); err != nil {
		d.Native, d.single = false, false
		if err = d.run(n, unix.XDP_FLAGS_SKB_MODE); err != nil {
			return err
		}
	}
	for i := range n {
		q, err := newQueue(d.index, i)
		if err != nil {
			return err
		}
		d.queues = append(d.queues, q)
	}
	return nil
}

// isTun reports whether an interface is one of a program, such as a virtual machine: its driver runs our program, too.
func isTun(name string) bool {
	_, err := os.Stat(filepath.Join(classNet, name, "tun_flags"))
	return err == nil
}

// run has a program for n queues see what comes.
func (d *Device) run(n int, mode uint32) error {
	program, err := load(chooser(d.mac, n, d.single, d.chosen, d.sockets))
	if err != nil {
		return err
	}
	if d.link, err = attach(program, d.index, mode); err != nil {
		unix.Close(program)
		return err
	}
	d.program = program
	return nil
}

// mostAddresses is how many addresses all targets may have together.
const mostAddresses = 4096

// queuesOf counts the queues that an interface receives and sends on. Where it receives on more, what comes on those is
// the kernel's: replies would be lost that are to go out by the queue that their queries came by.
func queuesOf(name string) (int, error) {
	least := math.MaxInt
	for _, kind := range []string{"rx-*", "tx-*"} {
		found, err := filepath.Glob(filepath.Join(classNet, name, "queues", kind))
		if err != nil {
			return 0, err
		}
		least = min(least, len(found))
	}
	if least == 0 {
		return 0, fmt.Errorf("%s/%s/queues does not tell of its queues", classNet, name)
	}
	return least, nil
}

// close closes what open has made. Without the link, what comes goes to the kernel from then on.
func (d *Device) close() {
	close(d.done)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, fd := range []int{d.link, d.program, d.chosen.fd, d.sockets.fd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	d.link = -1
	for _, q := range d.queues {
		q.close()
	}
}
