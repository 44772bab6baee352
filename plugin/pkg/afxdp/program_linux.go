package afxdp

// The program is written here, as instructions, since there is no compiler for it where the server runs. In words:
//
//	not longer than a frame, for our address on the link   else pass
//	IPv4: no options, no fragment, UDP                     else pass
//	IPv6: no extension, UDP                                else pass
//	unless they come one by one: one datagram              else pass
//	first, ok := targets[destination, port]                else pass
//	the interface's queue is one that we know of           else pass
//	redirect to sockets[first + queue], or pass
//
// TestFrames in test/xdp has, for each line, frames that obey it and frames that do not.

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// instruction is one of eBPF (RFC 9669 section 3).
type instruction struct {
	code      uint8
	registers uint8
	offset    int16
	immediate int32
}

// Registers.
const (
	r0, r1, r2, r3, r4, r5, r6 = 0, 1, 2, 3, 4, 5, 6
	fp                         = 10
)

// Operation codes (RFC 9669 sections 4 and 5).
const (
	loadWord    = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W
	loadHalf    = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_H
	loadByte    = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_B
	storeWord   = unix.BPF_STX | unix.BPF_MEM | unix.BPF_W
	storeHalf   = unix.BPF_STX | unix.BPF_MEM | unix.BPF_H
	setWord     = unix.BPF_ST | unix.BPF_MEM | unix.BPF_W
	move        = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_X
	set         = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K
	addTo       = unix.BPF_ALU64 | unix.BPF_ADD | unix.BPF_K
	add         = unix.BPF_ALU64 | unix.BPF_ADD | unix.BPF_X
	and         = unix.BPF_ALU64 | unix.BPF_AND | unix.BPF_K
	right       = unix.BPF_ALU64 | unix.BPF_RSH | unix.BPF_K
	jumpLonger  = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_X
	jumpOther   = unix.BPF_JMP32 | unix.BPF_JNE | unix.BPF_K
	jumpSame    = unix.BPF_JMP32 | unix.BPF_JEQ | unix.BPF_K
	jumpEqual   = unix.BPF_JMP32 | unix.BPF_JEQ | unix.BPF_X
	jumpNought  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K // a pointer
	jumpAtLeast = unix.BPF_JMP32 | unix.BPF_JGE | unix.BPF_K
	jump        = unix.BPF_JMP | unix.BPF_JA
	call        = unix.BPF_JMP | unix.BPF_CALL
	exit        = unix.BPF_JMP | unix.BPF_EXIT
	loadLong    = unix.BPF_LD | unix.BPF_IMM | unix.BPF_DW
)

// Numbers of the kernel's interface: helpers, what a program says of a packet, and where its
// context has what.
const (
	helperLookup   = 1
	helperRedirect = 51
	passOn         = 2 // XDP_PASS
	ctxData        = 0
	ctxEnd         = 4
	ctxQueue       = 16
)

// assembler makes programs. Jumps are to labels, which are known when all is there.
type assembler struct {
	program []instruction
	jumps   map[int]string
	labels  map[string]int
}

// add adds an instruction. The registers' places in it depend on the order of octets of the
// machine.
//
//go:noinline
func (a *assembler) add(code uint8, dst, src uint8, offset int16, immediate int32) {
	registers := dst | src<<4
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		registers = dst<<4 | src
	}
	a.program = append(a.program, instruction{code, registers, offset, immediate})
}

// jump adds one that goes on at a label, if its comparison says so.
func (a *assembler) jump(code uint8, dst, src uint8, immediate int32, to string) {
	a.jumps[len(a.program)] = to
	a.add(code, dst, src, 0, immediate)
}

func (a *assembler) label(name string) { a.labels[name] = len(a.program) }

// loadMap puts a map into a register. It is an instruction of two words.
func (a *assembler) loadMap(dst uint8, m bpfMap) {
	a.add(loadLong, dst, unix.BPF_PSEUDO_MAP_FD, 0, int32(m.fd))
	a.add(0, 0, 0, 0, 0)
}

// assemble is the program, with what jumps jump over.
func (a *assembler) assemble() []instruction {
	for i, to := range a.jumps {
		a.program[i].offset = int16(a.labels[to] - i - 1)
	}
	return a.program
}

// many passes on what may be several datagrams in one (UDP_SEGMENT): a card's driver is not given such, but the kernel
// is, and the driver of tun, by senders on this machine. The card was to take it apart, and to make the checksum, which
// is as yet the sum over the addresses, the protocol and the length. addresses and udp are where those lie, of so many
// words.
func (a *assembler) many(addresses, words, udp int16) {
	a.add(set, r0, 0, 0, half([]byte{0, protocolUDP}))
	for i := range words {
		a.add(loadWord, r5, r2, addresses+4*i, 0)
		a.add(add, r0, r5, 0, 0)
	}
	a.add(loadHalf, r5, r2, udp+4, 0)
	a.add(add, r0, r5, 0, 0)
	for range 3 { // nine words fill 36 bits, then 21, then 17
		a.add(move, r4, r0, 0, 0)
		a.add(and, r4, 0, 0, 0xffff)
		a.add(right, r0, 0, 0, 16)
		a.add(add, r0, r4, 0, 0)
	}
	a.add(loadHalf, r5, r2, udp+6, 0)
	a.jump(jumpEqual, r5, r0, 0, "pass")
}

// half and word are what a program finds where b lies in a packet.
func half(b []byte) int32 { return int32(binary.NativeEndian.Uint16(b)) }
func word(b []byte) int32 { return int32(binary.NativeEndian.Uint32(b)) }

// targetKey is an address and port as a program looks them up; IPv4 is mapped into IPv6.
type targetKey struct {
	addr [16]byte
	port [2]byte
	_    [2]byte
}

func keyOf(a netip.AddrPort) targetKey {
	k := targetKey{addr: a.Addr().As16()}
	binary.BigEndian.PutUint16(k.port[:], a.Port())
	return k
}

// longestFrame is what goes to a socket; longer ones go to the kernel, as many cards do not give
// them in one piece.
const longestFrame = 1518

// headerDNS is the least that a query has: what is shorter the kernel may have.
const headerDNS = 12

// chooser is the program that gives to sockets what comes for the addresses in targets: datagrams
// over IPv4 without options or IPv6 without extensions, in one piece and not in a VLAN, sent to the
// interface's own address on the link. All else it leaves to the kernel.
//
// targets leads from an address to the number in sockets of the one for the first queue; those of
// the other queues follow. Where there is no socket, as one was closed meanwhile, the kernel gets
// the packet, too.
//
// single says that it is shown datagrams one by one.
func chooser(mac [macLen]byte, queues int, single bool, targets, sockets bpfMap) []instruction {
	a := &assembler{jumps: map[int]string{}, labels: map[string]int{}}
	a.frame(mac)
	a.ip6(single)
	a.ip4(single)
	a.look(queues, targets, sockets)

	a.label("pass")
	a.add(set, r0, 0, 0, passOn)
	a.add(exit, 0, 0, 0, 0)
	return a.assemble()
}

// Where headers begin in a frame.
const (
	network = etherLen
	udp4    = network + ip4Len
	udp6    = network + ip6Len
)

// What is looked up is built on the stack, at key. Of UDP's header the port that was asked lies at destPort.
const (
	key      = -20
	destPort = 2
)

// atLeast passes on what has fewer octets. The verifier wants each read of the packet to lie before an end that was
// compared.
func (a *assembler) atLeast(octets int32) {
	a.add(move, r4, r2, 0, 0)
	a.add(addTo, r4, 0, 0, octets)
	a.jump(jumpLonger, r4, r3, 0, "pass")
}

// is passes on what has another value at a place of the packet.
func (a *assembler) is(load uint8, at int16, want int32) {
	a.add(load, r5, r2, at, 0)
	a.jump(jumpOther, r5, 0, want, "pass")
}

// frame looks at the Ethernet header. From here on r6 is the context, r2 where the packet begins, r3 where it ends.
func (a *assembler) frame(mac [macLen]byte) {
	a.add(move, r6, r1, 0, 0)
	a.add(loadWord, r2, r6, ctxData, 0)
	a.add(loadWord, r3, r6, ctxEnd, 0)
	a.add(move, r4, r2, 0, 0)
	a.add(addTo, r4, 0, 0, longestFrame)
	a.jump(jumpLonger, r3, r4, 0, "pass")
	a.atLeast(etherLen)
	a.is(loadWord, 0, word(mac[:4]))
	a.is(loadHalf, 4, half(mac[4:]))
	a.add(loadHalf, r5, r2, 2*macLen, 0)
	a.jump(jumpSame, r5, 0, half([]byte{0x08, 0x00}), "ip4")
	a.jump(jumpOther, r5, 0, half([]byte{0x86, 0xdd}), "pass")
}

// ip6 is IPv6 (RFC 8200 section 3). It and ip4 leave the address in the key and the port in r5.
func (a *assembler) ip6(single bool) {
	a.atLeast(udp6 + udpLen + headerDNS)
	a.add(loadByte, r5, r2, network, 0)
	a.add(and, r5, 0, 0, 0xf0) // the rest is of the traffic class
	a.jump(jumpOther, r5, 0, 0x60, "pass")
	a.is(loadByte, network+6, protocolUDP)
	if !single {
		a.many(network+8, 8, udp6)
	}
	for i := int16(0); i < 16; i += 4 {
		a.add(loadWord, r5, r2, network+24+i, 0)
		a.add(storeWord, fp, r5, key+i, 0)
	}
	a.add(loadHalf, r5, r2, udp6+destPort, 0)
	a.jump(jump, 0, 0, 0, "look")
}

// ip4 is IPv4 (RFC 791 section 3.1).
func (a *assembler) ip4(single bool) {
	a.label("ip4")
	a.atLeast(udp4 + udpLen + headerDNS)
	a.is(loadByte, network, 0x45)
	a.add(loadHalf, r5, r2, network+6, 0)
	a.add(and, r5, 0, 0, half([]byte{0x3f, 0xff})) // where a fragment lies, and whether there are more
	a.jump(jumpOther, r5, 0, 0, "pass")
	a.is(loadByte, network+9, protocolUDP)
	if !single {
		a.many(network+12, 2, udp4)
	}
	a.add(setWord, fp, 0, key, 0)
	a.add(setWord, fp, 0, key+4, 0)
	a.add(setWord, fp, 0, key+8, word([]byte{0, 0, 0xff, 0xff}))
	a.add(loadWord, r5, r2, network+16, 0)
	a.add(storeWord, fp, r5, key+12, 0)
	a.add(loadHalf, r5, r2, udp4+destPort, 0)
}

// look gives the packet to the socket of the key and the queue.
func (a *assembler) look(queues int, targets, sockets bpfMap) {
	a.label("look")
	// The port's two octets come first in memory, and two of nought behind them.
	a.add(setWord, fp, 0, key+16, 0)
	a.add(storeHalf, fp, r5, key+16, 0)
	a.loadMap(r1, targets)
	a.add(move, r2, fp, 0, 0)
	a.add(addTo, r2, 0, 0, key)
	a.add(call, 0, 0, 0, helperLookup)
	a.jump(jumpNought, r0, 0, 0, "pass")
	a.add(loadWord, r2, r0, 0, 0)
	a.add(loadWord, r5, r6, ctxQueue, 0)
	a.jump(jumpAtLeast, r5, 0, int32(queues), "pass")
	a.add(add, r2, r5, 0, 0)
	a.loadMap(r1, sockets)
	a.add(set, r3, 0, 0, passOn)
	a.add(call, 0, 0, 0, helperRedirect)
	a.add(exit, 0, 0, 0, 0)
}
