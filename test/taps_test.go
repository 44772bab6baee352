package test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"

	"github.com/coredns/coredns/core/dnsserver"
)

// Frames tell replies as their clients get them, and queries with all their bits, in both lanes.
func TestFramesTellWhatIsSent(t *testing.T) {
	dir := t.TempDir()
	zone := filepath.Join(dir, "db.example.org")
	if err := os.WriteFile(zone, []byte(laneZone), 0o600); err != nil {
		t.Fatal(err)
	}
	withOption := func(m *dns.Msg, o dns.EDNS0) *dns.Msg {
		m.SetEdns0(1232, true)
		m.IsEdns0().Option = append(m.IsEdns0().Option, o)
		return m
	}
	odd := question("www.example.org.", dns.TypeA).SetEdns0(4096, false)
	odd.Authoritative, odd.RecursionAvailable, odd.Zero, odd.AuthenticatedData = true, true, true, true
	queries := []*dns.Msg{
		question("www.example.org.", dns.TypeA),
		question("many.example.org.", dns.TypeTXT),
		question("many.example.org.", dns.TypeTXT).SetEdns0(700, true),
		withOption(question("WWW.example.org.", dns.TypeA), &dns.EDNS0_NSID{Code: dns.EDNS0NSID}),
		withOption(question("none.example.org.", dns.TypeA), &dns.EDNS0_EXPIRE{Code: dns.EDNS0EXPIRE, Empty: true}),
		withOption(question("web.example.org.", dns.TypeA), &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}),
		odd,
		question("example.net.", dns.TypeA), // forward reaches nobody
		question("example.net.", dns.TypeA).SetEdns0(1232, false),
		withOption(question("example.net.", dns.TypeA), &dns.EDNS0_NSID{Code: dns.EDNS0NSID}),
		withOption(question("example.com.", dns.TypeA), &dns.EDNS0_NSID{Code: dns.EDNS0NSID}), // no plugin has it
	}
	defer func(was bool) { dnsserver.WireLane = was }(dnsserver.WireLane)
	for _, onWire := range []bool{true, false} {
		dnsserver.WireLane = onWire
		frames, addr := tapped(t)
		_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nbufsize 1000\ndnstap tcp://"+addr+" full\nfile "+zone+" example.org\nforward example.net 127.0.0.1:1 {\nede\nmax_fails 0\n}\n}")
		conn, err := net.Dial("udp", udp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, m := range queries {
			packet, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			conn.Write(packet)
			buf := make([]byte, 4096)
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if opt := m.IsEdns0(); opt != nil && opt.UDPSize() > 1000 { // as bufsize has it
				lower := m.Copy()
				lower.IsEdns0().SetUDPSize(1000)
				packet, _ = lower.Pack()
			}
			asked, told := nextFrame(t, frames, tap.Message_CLIENT_QUERY), nextFrame(t, frames, tap.Message_CLIENT_RESPONSE)
			if string(asked.QueryMessage) != string(packet) {
				t.Errorf("wire %v: a frame tells the query\n%s\nof\n%s", onWire, unpacked(asked.QueryMessage), unpacked(packet))
			}
			if got, want := unpacked(told.ResponseMessage), unpacked(buf[:n]); got != want {
				t.Errorf("wire %v: a frame tells the reply\n%s\nof\n%s", onWire, got, want)
			}
		}
	}
}

func unpacked(b []byte) string {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return err.Error()
	}
	return m.String()
}

// tapped is the frames that a collector at addr gets.
func tapped(t *testing.T) (frames <-chan *tap.Message, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	all := make(chan *tap.Message, 1000)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in, err := tap.NewReader(conn, &tap.ReaderOptions{Bidirectional: true, Timeout: 10 * time.Second})
		if err != nil {
			return
		}
		buf := make([]byte, 1<<16)
		for {
			n, err := in.ReadFrame(buf)
			if err != nil {
				return
			}
			if frame := new(tap.Dnstap); proto.Unmarshal(buf[:n], frame) == nil {
				all <- frame.Message
			}
		}
	}()
	return all, l.Addr().String()
}

// nextFrame is the next frame of a kind. Others are passed over.
func nextFrame(t *testing.T, frames <-chan *tap.Message, kind tap.Message_Type) *tap.Message {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case m := <-frames:
			if m.GetType() == kind {
				return m
			}
		case <-deadline:
			t.Fatalf("no frame %v", kind)
		}
	}
}
