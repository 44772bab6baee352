package transfer

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// live serves a Transfer and SOA queries on loopback, with TSIG.
type live struct {
	x    *Transfer
	from *source

	mu    sync.Mutex
	asked []string // types of transfers
}

func (l *live) serve(t testing.TB, port int, secrets map[string]string) {
	t.Helper()
	h := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		if r.IsTsig() != nil && w.TsigStatus() != nil {
			t.Logf("TSIG: %v", w.TsigStatus())
			return
		}
		l.mu.Lock()
		v := l.from.v
		l.mu.Unlock()
		m := new(dns.Msg).SetReply(r)
		m.Authoritative = true
		if typ := r.Question[0].Qtype; typ == dns.TypeSOA {
			w2 := v.Transfer()
			rec, _ := w2.Next()
			soa, err := rec.RR()
			if err != nil {
				t.Error(err)
			}
			m.Answer = []dns.RR{soa}
		} else {
			l.mu.Lock()
			l.asked = append(l.asked, dns.Type(typ).String()+" over "+w.RemoteAddr().Network())
			l.mu.Unlock()
			rcode, _ := l.x.ServeDNS(context.Background(), w, r)
			if plugin.ClientWrite(rcode) {
				return
			}
			m.Rcode = rcode
		}
		if k := r.IsTsig(); k != nil {
			m.SetTsig(k.Hdr.Name, k.Algorithm, 300, int64(k.TimeSigned))
		}
		w.WriteMsg(m)
	})
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{Listener: listener, Handler: h, TsigSecret: secrets}, {PacketConn: conn, Handler: h, TsigSecret: secrets}} {
		started, done := make(chan struct{}), make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) } // one that has not started cannot be shut down
		go func() {
			defer close(done)
			s.ActivateAndServe()
		}()
		<-started
		t.Cleanup(func() {
			s.Shutdown()
			<-done
		})
	}
}

// Version implements Source, while the version changes.
func (l *live) Version(name string) (v *zone.Zone, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from.Version(name)
}

func (l *live) Transfer(string, uint32) (<-chan []dns.RR, error) {
	panic("a Source is asked for Version")
}

// keysOf looks up keys by their names.
func keysOf(secrets map[string]string) func(string) (keyring.Key, bool) {
	return func(name string) (keyring.Key, bool) {
		secret, ok := secrets[name]
		return keyring.Key{Secret: secret}, ok
	}
}

// TestToPeers: other servers as secondaries: they fetch the zone, are notified, and fetch what changed.
func TestToPeers(t *testing.T) {
	for _, name := range zonetest.Servers {
		t.Run(name, func(t *testing.T) {
			out := logtest.Capture(t)
			port, ourPort := loopback.Port(), loopback.Port()
			secrets := map[string]string{zonetest.KeyName + ".": "c2VjcmV0LW9mLXRoZS1wZWVycw=="}
			var hosts []string
			for i := range 500 {
				hosts = append(hosts, fmt.Sprintf("host%d", i))
			}
			l := &live{x: setupOf(t, fmt.Sprintf("transfer example.org {\nto 127.0.0.1:%d\ntsig %s\n}", port, zonetest.KeyName)), from: &source{v: version(t, 1, hosts...)}}
			l.x.Transferers, l.x.findKey = []Transferer{l}, keysOf(secrets)
			l.serve(t, ourPort, secrets)
			addr, _ := zonetest.Serve(t, name, zonetest.Setup{
				Zone: "example.org", File: filepath.Join(t.TempDir(), "db"), Port: port, Primary: fmt.Sprint(ourPort),
				Algorithm: "hmac-sha256", Secret: secrets[zonetest.KeyName+"."],
			})
			zonetest.Await(t, addr, "example.org.", 1)

			for serial := 2; serial < 4; serial++ {
				hosts = append(hosts[1:], fmt.Sprintf("new%d", serial))
				now := version(t, serial, hosts...)
				l.x.Changed("example.org.", l.from.v, now)
				l.mu.Lock()
				l.from.v = now
				l.mu.Unlock()
				if err := l.x.Notify("example.org."); err != nil {
					t.Errorf("a notification: %v", err)
				}
				zonetest.Await(t, addr, "example.org.", uint32(serial))
			}
			if want := `Outgoing transfer of 6 records of zone "example.org."`; strings.Count(out.String(), want) != 2 {
				t.Errorf("logged %s\nwant two transfers of what changed", out)
			}
			l.mu.Lock()
			t.Logf("%s asked for %s", name, strings.Join(l.asked, ", "))
			if !slices.ContainsFunc(l.asked, func(s string) bool { return strings.HasPrefix(s, "IXFR") }) {
				t.Errorf("no increment was asked for: %v", l.asked)
			}
			l.mu.Unlock()

			// What the secondary has now is what we have; a process of it that is about to end may answer once more.
			var ours, theirs []string
			w := l.from.v.Transfer()
			for rec, ok := w.Next(); ok; rec, ok = w.Next() {
				rr, err := rec.RR()
				if err != nil {
					t.Fatal(err)
				}
				ours = append(ours, rr.String())
			}
			slices.Sort(ours)
			for try := 0; try < 100 && !slices.Equal(theirs, ours); try++ {
				time.Sleep(time.Duration(min(try, 1)) * 20 * time.Millisecond)
				theirs = fetched(t, addr, secrets)
			}
			if !slices.Equal(theirs, ours) {
				t.Errorf("%s has %d records, we have %d", name, len(theirs), len(ours))
			}
		})
	}
}

// fetched is the records of the zone at addr, in order.
func fetched(t *testing.T, addr string, secrets map[string]string) (all []string) {
	t.Helper()
	q := new(dns.Msg).SetAxfr("example.org.")
	q.SetTsig(zonetest.KeyName+".", dns.HmacSHA256, 300, time.Now().Unix())
	in, err := (&dns.Transfer{TsigSecret: secrets}).In(q, addr)
	if err != nil {
		t.Fatal(err)
	}
	for e := range in {
		if e.Error != nil {
			t.Fatal(e.Error)
		}
		for _, rr := range e.RR {
			all = append(all, rr.String())
		}
	}
	slices.Sort(all)
	return all
}
