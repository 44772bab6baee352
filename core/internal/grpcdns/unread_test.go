package grpcdns

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

// deaf is a client whose window for replies has no room.
func deaf(t *testing.T, addr string) *coretest.H2 {
	t.Helper()
	p := coretest.DialH2(t, addr)
	io.WriteString(p.Conn, http2.ClientPreface)
	p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.Framer.WriteSettingsAck()
	return p
}

// call has p make a call, which asks for name.
func call(t *testing.T, p *coretest.H2, id uint32, name string) {
	t.Helper()
	b, err := protobuf.Marshal(packet(t, name))
	if err != nil {
		t.Fatal(err)
	}
	p.Open(id, false, ":method", "POST", ":scheme", "https", ":authority", "localhost", ":path", "/coredns.dns.DnsService/Query",
		"content-type", "application/grpc", "te", "trailers")
	if err := p.Framer.WriteData(id, true, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)); err != nil {
		t.Error(err)
	}
}

// Replies that clients do not read are bounded for the process; who reads nothing for long loses his connection, and
// others have the room again.
func TestUnread(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane), tlsConfig(t), nil)
	of.Write = 300 * time.Millisecond
	s := serve(t, of)
	honest := clients.Connect(t, "grpc", s.addr)
	long, err := honest.Ask(coretest.Query("long."))
	if err != nil {
		t.Fatal(err)
	}
	size := len(coretest.Packed(t, long)) // of a reply that is not compressed, at least
	unsent.SetMax(4 * size)
	defer unsent.SetMax(memory.MaxUnsent)

	p := deaf(t, s.addr)
	for i := range 20 {
		call(t, p, uint32(1+2*i), "long.")
	}
	eventually.Holds(t, "there is no room", func() bool { return coretest.Limited(of, "in_flight_bytes") > 0 })
	if n := unsent.Octets(); n == 0 || n > int64(4*size) {
		t.Errorf("%d octets are held, of at most %d", n, 4*size)
	}
	eventually.Holds(t, "the connection is closed", func() bool { return coretest.Limited(of, "write_time") == 1 && unsent.Octets() == 0 })
	for range 20 { // one after the other: each is read before the next one
		if r, err := honest.Ask(coretest.Query("long.")); err != nil || len(r.Answer) != 200 {
			t.Fatal(r, err)
		}
	}
	if n := coretest.Limited(of, "write_time"); n != 1 || honest.Dials() != 1 {
		t.Errorf("counted %d, and the honest client has connected %d times", n, honest.Dials())
	}
	eventually.Holds(t, "nothing is left in the ledger", func() bool { return unsent.Octets() == 0 })
}

// Replies that the client would have compressed are counted as what they are.
func TestUncompressed(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane), tlsConfig(t), nil)
	of.Write = 100 * time.Millisecond
	s := serve(t, of)
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	if _, err := c.Query(t.Context(), packet(t, "long."), grpc.UseCompressor(gzip.Name)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the reply is sent", func() bool { return unsent.Octets() == 0 })
	if n := coretest.Limited(of, "write_time"); n != 0 {
		t.Error("the client was taken for one that does not read")
	}
}

// What there is no room for is an error that says to try again.
func TestNoRoom(t *testing.T) {
	s := serve(t, serviceFor(t, new(coretest.Lane), tlsConfig(t), nil))
	unsent.SetMax(20)
	defer unsent.SetMax(memory.MaxUnsent)
	c := clients.DialGRPC(t, s.addr, credentials.NewTLS(clients.Trusting))
	if _, err := c.Query(t.Context(), packet(t, "www.")); code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// A client that reads, slowly, keeps its connection.
func TestSlowReader(t *testing.T) {
	of := serviceFor(t, coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		rr, _ := dns.NewRR(r.Question[0].Name + " 60 IN TXT x")
		for range 3000 {
			m.Answer = append(m.Answer, rr)
		}
		return 0, w.WriteMsg(m)
	}), tlsConfig(t), nil)
	of.Write = 500 * time.Millisecond
	s := serve(t, of)
	p := deaf(t, s.addr)
	call(t, p, 1, "www.")
	got := 0
	for began := time.Now(); time.Since(began) < 4*of.Write; {
		if d, ok := p.Read().(*http2.DataFrame); ok {
			got += len(d.Data())
			time.Sleep(of.Write / 20)
		}
		p.Framer.WriteWindowUpdate(1, 100)
	}
	if n := coretest.Limited(of, "write_time"); n != 0 || got == 0 || unsent.Octets() == 0 {
		t.Errorf("counted %d after %d octets; %d are held", n, got, unsent.Octets())
	}
	p.Conn.Close()
	eventually.Holds(t, "nothing is left in the ledger", func() bool { return unsent.Octets() == 0 })
}

// When the server stops, a reply is sent to its end that is taken slowly, and one that nobody takes is given up.
func TestStopOfSlowReader(t *testing.T) {
	for name, takes := range map[string]bool{"slow": true, "deaf": false} {
		t.Run(name, func(t *testing.T) {
			of := serviceFor(t, new(coretest.Lane), tlsConfig(t), nil)
			of.Write = time.Hour
			s := serve(t, of)
			p := deaf(t, s.addr)
			call(t, p, 1, "long.")
			eventually.Holds(t, "the reply waits", func() bool { return unsent.Octets() > 0 })
			ended := coretest.Stopping(t, s.end)
			whole := false
			for i := 0; takes && !whole; {
				switch f := p.Read().(type) {
				case *http2.PingFrame:
					p.Framer.WritePing(true, f.Data)
					p.Framer.WriteWindowUpdate(1, 1000)
				case *http2.DataFrame:
					if i++; i <= 3 {
						time.Sleep(3 * service.DrainTime)
					}
					p.Framer.WriteWindowUpdate(1, 1000)
				case *http2.MetaHeadersFrame:
					whole = f.StreamEnded()
				}
			}
			ended()
			if whole != takes {
				t.Error("no reply came")
			}
		})
	}
}

// The ledger of one connection, without one.
func TestUnreadLedger(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane), nil, nil)
	of.Write = time.Hour
	var u unread
	held := func(when string, want int64) {
		t.Helper()
		if n := unsent.Octets(); n != want {
			t.Errorf("%s: %d octets are held, not %d", when, n, want)
		}
	}
	u.took(5000) // before the first reply
	hand := func(n int) {
		if !u.hand(of, n, func() { t.Error("stalled") }) {
			t.Error("no room")
		}
	}
	hand(100)
	held("handed", 100)
	u.took(30)
	held("in part", 70)
	hand(50)
	held("and another", 120)
	u.took(80)
	held("the first one", 40)
	u.took(1000)
	held("all", 0)
	hand(10)
	held("again", 10)
	u.end()
	held("ended", 0)
	hand(10)
	u.took(3)
	u.end()
	held("too late", 0)
}

// A reply takes no more memory than it has octets, or little more.
func TestExactMemory(t *testing.T) {
	for _, n := range []int{0, 100, 40000, dns.MaxMsgSize} {
		in := &pb.DnsPacket{Msg: bytes.Repeat([]byte{7}, n)}
		b, err := newExact().Marshal(in)
		if err != nil || len(b) != 1 {
			t.Fatal(b, err)
		}
		if raw := b[0].ReadOnlyData(); cap(raw) > 2*n+100 {
			t.Errorf("%d octets in memory of %d", n, cap(raw))
		}
		out := new(pb.DnsPacket)
		if err := newExact().Unmarshal(b, out); err != nil || !bytes.Equal(out.Msg, in.Msg) {
			t.Errorf("%d octets: got %d, %v", n, len(out.Msg), err)
		}
	}
	if _, err := newExact().Marshal(net.IP{}); err == nil {
		t.Error("what is no message was marshalled")
	}
}
