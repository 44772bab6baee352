package file

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// TestReplacedVersionIsLetGo: what answered a query keeps no version that was replaced, be it for one collection.
func TestReplacedVersionIsLetGo(t *testing.T) {
	z := NewZone("example.org.", "")
	v := func(serial string) *zone.Zone {
		other, err := Parse(strings.NewReader("@ 60 SOA ns host "+serial+" 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n"), "example.org.", "db", 0)
		if err != nil {
			t.Fatal(err)
		}
		return other.Current()
	}
	z.Replace(v("1"))
	f := File{Zones: Zones{Z: map[string]*Zone{"example.org.": z}, Names: []string{"example.org."}}}
	r := new(dns.Msg).SetQuestion("ns.example.org.", dns.TypeA)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := f.ServeDNS(context.Background(), rec, r); err != nil || rec.Msg == nil || len(rec.Msg.Answer) != 1 {
		t.Fatalf("%v %v", err, rec.Msg)
	}
	var q wire.Query
	var w wire.Reply
	q.SetMsg(r, wire.Peer{})
	w.Reset(make([]byte, 0, 512))
	if f.ServeWire(context.Background(), &w, &q) != wire.Done || len(w.Recs()) == 0 {
		t.Fatalf("%v", w.Recs())
	}
	old := weak.Make(z.Current())
	z.Replace(v("2"))
	runtime.GC()
	if old.Value() != nil {
		t.Error("the version before is still in memory")
	}
}
