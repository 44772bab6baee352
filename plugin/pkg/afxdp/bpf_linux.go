package afxdp

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bpf is the system call bpf(2) with one of its attributes, and returns the descriptor that it
// makes, if any. what is for errors.
func bpf[T any](what string, command int, attr *T) (fd int, err error) {
	for {
		r, _, e := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
		if e == unix.EAGAIN { // the verifier was interrupted
			continue
		}
		if e != 0 {
			return -1, os.NewSyscallError(what, e)
		}
		return int(r), nil
	}
}

// bpfMap is a map of the kernel.
type bpfMap struct{ fd int }

// newMap makes a map for as many entries, with keys and values of so many octets.
func newMap(kind, key, value, entries uint32) (bpfMap, error) {
	attr := struct{ kind, key, value, entries, flags uint32 }{kind, key, value, entries, 0}
	fd, err := bpf("bpf map", unix.BPF_MAP_CREATE, &attr)
	return bpfMap{fd}, err
}

// mapAttr is the attribute of what is done to one entry. Numbers in it are pointers, which the
// kernel wants in eight octets everywhere.
type mapAttr struct {
	fd    uint32
	_     uint32
	key   uint64
	value uint64
	_     uint64 // flags
}

// put puts value under key; remove takes it out. Both are pointers to as many octets as the map was
// made for.
func (m bpfMap) put(key, value unsafe.Pointer) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	attr := mapAttr{fd: uint32(m.fd), key: address(&pins, key), value: address(&pins, value)}
	_, err := bpf("bpf map update", unix.BPF_MAP_UPDATE_ELEM, &attr)
	return err
}

func (m bpfMap) remove(key unsafe.Pointer) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	attr := mapAttr{fd: uint32(m.fd), key: address(&pins, key)}
	_, err := bpf("bpf map delete", unix.BPF_MAP_DELETE_ELEM, &attr)
	return err
}

// address is p as a number for the kernel, good as long as the pins last.
func address(pins *runtime.Pinner, p unsafe.Pointer) uint64 {
	pins.Pin(p)
	return uint64(uintptr(p))
}

// load gives a program for XDP to the kernel.
func load(program []instruction) (fd int, err error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	attr := struct {
		kind, count           uint32
		instructions, licence uint64
		logLevel, logSize     uint32
		log                   uint64
		version, flags        uint32
		name                  [16]byte
		ifindex, attachType   uint32
	}{
		kind: unix.BPF_PROG_TYPE_XDP, count: uint32(len(program)), attachType: unix.BPF_XDP,
		instructions: address(&pins, unsafe.Pointer(&program[0])),
		licence:      address(&pins, unsafe.Pointer(unsafe.SliceData([]byte("Apache-2.0\x00")))),
	}
	copy(attr.name[:], "dns")
	return bpf("bpf program", unix.BPF_PROG_LOAD, &attr)
}

// replace has a program take the place of the one that was attached.
func replace(link, program int) error {
	attr := struct{ link, program, flags, old uint32 }{link: uint32(link), program: uint32(program)}
	_, err := bpf("bpf link update", unix.BPF_LINK_UPDATE, &attr)
	return err
}

// attach has a program see what comes on an interface, until the descriptor is closed.
func attach(program, ifindex int, mode uint32) (fd int, err error) {
	attr := struct{ program, ifindex, kind, flags uint32 }{uint32(program), uint32(ifindex), unix.BPF_XDP, mode}
	return bpf("bpf link", unix.BPF_LINK_CREATE, &attr)
}
