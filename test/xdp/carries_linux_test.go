package xdp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// What an interface can carry, and how, is not the same for all: none of these lose replies.

// Replies that are longer than an interface's packets go through the kernel, which takes them apart; also when it has
// come to be so while the interface is open.
func TestShortPackets(t *testing.T) {
	short := link(t, "p", "198.19.5.") + ":" + freePort(t)
	zone := zoneFile(t)
	mtu := func(octets string) {
		ip(t, "link set ps mtu "+octets)
		ip(t, "-n CLIENT link set pc mtu "+octets)
	}
	mtu("1000")
	_, port, _ := strings.Cut(short, ":")
	start(t, fmt.Sprintf("example:%s {\nxdp ps\nbind 198.19.5.1\nfile %s\n}\n", port, zone))
	c := dial(t, "udp", short)
	begin(t, c)
	for _, tc := range []struct {
		name string
		sent int // past the kernel
	}{{"www.example.", 1}, {"middle.example.", 0}} {
		_, sent := counted(t, func() { exchange(t, c, question(tc.name, dns.TypeTXT)) })
		if sent != tc.sent {
			t.Errorf("%s: %d sent past the kernel, want %d", tc.name, sent, tc.sent)
		}
	}
	sentPast := func() (sent int) {
		_, sent = counted(t, func() { exchange(t, c, question("middle.example.", dns.TypeTXT)) })
		return sent
	}
	mtu("1500")
	for end := time.Now().Add(5 * time.Second); sentPast() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("longer packets are not used")
		}
	}
}

// What comes on a queue that has no counterpart to send on is the kernel's.
func TestMoreQueuesIn(t *testing.T) {
	for _, line := range []string{
		"link add qs numtxqueues 1 numrxqueues 4 type veth peer name qc numtxqueues 4 numrxqueues 4 netns CLIENT",
		"link set qs addrgenmode none", "addr add 198.19.6.1/24 dev qs", "link set qs up",
		"-n CLIENT link set qc addrgenmode none", "-n CLIENT addr add 198.19.6.2/24 dev qc", "-n CLIENT link set qc up",
	} {
		ip(t, line)
	}
	t.Cleanup(func() { ip(t, "-n CLIENT link del qc") })
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nxdp qs\nbind 198.19.6.1\nfile %s\n}\n", port, zoneFile(t)))
	const clients = 64
	ask := func() (received int) {
		received, _ = counted(t, func() {
			for range clients { // each one's port decides on the queue
				exchange(t, dial(t, "udp", "198.19.6.1:"+port), question("www.example.", dns.TypeA))
			}
		})
		return received
	}
	ask() // the interface may be opened meanwhile
	received := ask()
	if received == 0 || received == clients {
		t.Errorf("%d of %d read past the kernel, want those of one queue in four", received, clients)
	}
}

// Where the kernel runs the program, it is shown several datagrams as one, if their sender is on this machine and has
// them taken apart by a card. All are answered.
func TestManyInOne(t *testing.T) {
	link(t, "b", "198.19.7.")
	for _, line := range []string{
		"link add bb type bridge", "link set bb addrgenmode none", "link set bb up", "addr flush dev bs", "link set bs master bb",
		"addr add 198.19.7.1/24 dev bb", "addr add 2001:2:7::1/64 dev bb nodad", "-n CLIENT addr add 2001:2:7::2/64 dev bc nodad",
	} {
		ip(t, line)
	}
	t.Cleanup(func() { ip(t, "link del bb") })
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nxdp bb\nfile %s\n}\n", port, zoneFile(t)))
	for _, server := range []string{"198.19.7.1:" + port, "[2001:2:7::1]:" + port} {
		c := dial(t, "udp", server)
		exchange(t, c, question("www.example.", dns.TypeA))
		const n = 8
		b, err := question("www.example.", dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.(*net.UDPConn).WriteMsgUDP(bytes.Repeat(b, n), segments(len(b)), nil); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if _, err := (&dns.Conn{Conn: c}).ReadMsg(); err != nil {
				t.Errorf("%s: %d of %d answered: %v", server, i, n, err)
				break
			}
		}
	}
	// A sender that makes checksums itself has no card that takes datagrams apart.
	if _, err := exec.LookPath("ethtool"); err != nil {
		t.Skip(err)
	}
	ip(t, "netns exec CLIENT ethtool -K bc tx off")
	begin(t, dial(t, "udp", "198.19.7.1:"+port))
	begin(t, dial(t, "udp", "[2001:2:7::1]:"+port))
}

// What comes in a VLAN of an interface is answered there: a link has the tag beside the frame, where it is not seen.
func TestVLAN(t *testing.T) {
	link(t, "v", "198.19.8.")
	if out, err := exec.Command("ip", "link", "add", "link", "vs", "name", "vs.9", "type", "vlan", "id", "9").CombinedOutput(); err != nil {
		t.Skipf("the kernel has no VLANs: %v: %s", err, out)
	}
	for _, line := range []string{
		"link set vs.9 addrgenmode none", "addr add 198.19.9.1/24 dev vs.9", "link set vs.9 up",
		"-n CLIENT link add link vc name vc.9 type vlan id 9", "-n CLIENT link set vc.9 addrgenmode none",
		"-n CLIENT addr add 198.19.9.2/24 dev vc.9", "-n CLIENT link set vc.9 up",
	} {
		ip(t, line)
	}
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nxdp vs\nfile %s\n}\n", port, zoneFile(t)))
	for _, server := range []string{"198.19.8.1", "198.19.9.1"} {
		soon(t, server, server+":"+port, true, false)
	}
	ip(t, "link del vs.9")
	soon(t, "without the VLAN", "198.19.8.1:"+port, true, true)
}

// A virtual machine hands over several datagrams as one, too, by a driver that runs the program. All are answered.
func TestManyInOneOfMachine(t *testing.T) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip(err)
	}
	request, err := unix.NewIfreq("tap0")
	if err != nil {
		t.Fatal(err)
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	const checksums, segments4, segments6 = 0x01, 0x20, 0x40 // TUN_F_CSUM, TUN_F_USO4, TUN_F_USO6
	err = errors.Join(unix.IoctlIfreq(fd, unix.TUNSETIFF, request), unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, checksums|segments4|segments6))
	tap := os.NewFile(uintptr(fd), "tap0") // it can be waited for now
	defer tap.Close()
	if err != nil {
		t.Skip(err)
	}
	const machine = "02:00:00:00:00:0a"
	for _, line := range []string{
		"link set tap0 addrgenmode none", "link set tap0 up", "addr add 198.19.10.1/24 dev tap0",
		"neigh add 198.19.10.2 lladdr " + machine + " dev tap0",
	} {
		ip(t, line)
	}
	port := freePort(t)
	start(t, fmt.Sprintf("example:%s {\nxdp tap0\nfile %s\n}\n", port, zoneFile(t)))
	i, err := net.InterfaceByName("tap0")
	if err != nil {
		t.Fatal(err)
	}
	src, _ := net.ParseMAC(machine)
	var number uint16
	fmt.Sscan(port, &number)
	const n, head = 8, 14 + 20 + 8
	length := 0
	f := frame(t, i.HardwareAddr, src, number, question("www.example.", dns.TypeA), func(f []byte) []byte {
		length = len(f) - head
		f = append(f[:head], bytes.Repeat(f[head:], n)...)
		copy(f[26:], "\xc6\x13\x0a\x02\xc6\x13\x0a\x01")
		binary.BigEndian.PutUint16(f[16:], uint16(len(f)-14))
		binary.BigEndian.PutUint16(f[38:], uint16(8+n*length))
		sum := uint32(0xc613+0x0a02+0xc613+0x0a01) + 17 + 8 + uint32(n*length) // of addresses, protocol and length
		binary.BigEndian.PutUint16(f[40:], uint16(sum>>16+sum))
		return f
	})
	// What the card of a machine is to do (VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_UDP_L4).
	work := make([]byte, 10)
	work[0], work[1] = 1, 5
	for at, v := range map[int]uint16{2: head, 4: uint16(length), 6: 34, 8: 6} {
		binary.NativeEndian.PutUint16(work[at:], v)
	}
	if _, err := tap.Write(append(work, f...)); err != nil {
		t.Fatal(err)
	}
	tap.SetReadDeadline(time.Now().Add(3 * time.Second))
	b := make([]byte, 2000)
	for got := 0; got < n; {
		read, err := tap.Read(b)
		if err != nil {
			t.Fatalf("%d of %d answered: %v", got, n, err)
		}
		if g := b[len(work):read]; len(g) > head && g[12] == 8 && g[13] == 0 && g[23] == 17 {
			got++
		}
	}
}

// segments is the control message that has what is sent taken apart into datagrams of a length.
func segments(length int) []byte {
	b := make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], uint16(length))
	return b
}
