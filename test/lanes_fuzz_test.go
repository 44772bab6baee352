package test

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// FuzzLanes sends any packet to two servers, one with the wire lane and one without, which must reply the same: for long runs
// with go test -fuzz.
func FuzzLanes(f *testing.F) {
	for i, m := range corpus(42, 200) {
		m.Id = uint16(i)
		if b, err := m.Pack(); err == nil {
			f.Add(b)
		}
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db.example.org"), []byte(laneZone), 0o600); err != nil {
		f.Fatal(err)
	}
	var conns [2]net.Conn
	old := dnsserver.WireLane
	for i := range conns {
		dnsserver.WireLane = i == 0
		instance, err := CoreDNSServer(".:0 {\nbind 127.0.0.1\nlanespy\nrewrite name suffix .example.net .example.org answer auto\nacl example.org {\nblock type MX\nallow\n}\n" +
			"minimal\nbufsize 700\nfile " + filepath.Join(dir, "db.example.org") + " example.org\n}")
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup((&running{instance: instance}).end)
		udp, _ := CoreDNSServerPorts(instance, 0)
		if conns[i], err = net.Dial("udp", loopback.To(udp)); err != nil {
			f.Fatal(err)
		}
	}
	dnsserver.WireLane = old
	id := uint16(0)
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) > 4096 {
			return
		}
		packet = append([]byte{}, packet...)
		var bytes, messages []byte
		for try := time.Duration(0); try < 4 && (try == 0 || (bytes == nil) != (messages == nil)); try++ { // silence may be slowness
			if id = (id + 1) % sentinelID; len(packet) >= 2 {
				binary.BigEndian.PutUint16(packet, id)
			}
			bytes, messages = exchangeRaw(conns[0], packet, try), exchangeRaw(conns[1], packet, try)
		}
		if bytes == nil && messages == nil {
			return
		}
		var a, b dns.Msg
		if errA, errB := a.Unpack(bytes), b.Unpack(messages); errA != nil || errB != nil {
			t.Fatalf("%x: wire lane %x (%v), message lane %x (%v)", packet, bytes, errA, messages, errB)
		}
		if x, y := canonical(&a, true), canonical(&b, true); x != y {
			t.Errorf("%x: wire lane\n%s\nmessage lane\n%s", packet, x, y)
		}
	})
}

// sentinel is a query that is always answered.
var sentinel = func() []byte {
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	m.Id = sentinelID
	b, _ := m.Pack()
	return b
}()

const sentinelID = 0xFFFF

// exchangeRaw is the reply to a packet, nil if there is none by the time that a query which was sent after it is answered, and a while more.
func exchangeRaw(conn net.Conn, packet []byte, try time.Duration) (reply []byte) {
	more := 5 * time.Millisecond << (3 * try)
	conn.Write(packet)
	conn.Write(sentinel)
	conn.SetReadDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 65535)
	for answered := false; reply == nil || !answered; {
		n, err := conn.Read(buf)
		switch {
		case err != nil:
			return reply
		case n >= 2 && binary.BigEndian.Uint16(buf) == sentinelID:
			answered = true
			if reply == nil {
				conn.SetReadDeadline(time.Now().Add(more))
			}
		case n >= 2 && len(packet) >= 2 && string(buf[:2]) == string(packet[:2]):
			reply = append([]byte{}, buf[:n]...)
		}
	}
	return reply
}
