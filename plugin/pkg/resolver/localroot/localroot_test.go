package localroot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// rootText is a root zone without digest.
func rootText(serial int) string {
	return fmt.Sprintf(`. 86400 IN SOA a.root. x. %d 1800 900 3600 300
. 86400 IN NS a.root.
a.root. 86400 IN A 192.0.2.1
org. 172800 IN NS a.nic.org.
org. 86400 IN DS 1 13 2 00
a.nic.org. 172800 IN A 192.0.2.2
`, serial)
}

// digested is a text with its digest.
func digested(t *testing.T, text string) string {
	t.Helper()
	z, err := read(context.Background(), strings.NewReader(text), "root", nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := z.Digest(zone.DigestSimple, zone.DigestSHA384)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s. 86400 IN ZONEMD %d 1 1 %x\n", text, z.Serial(), sum)
}

// told is what was logged last, and how often.
type told struct {
	last string
	n    int
}

func (l *told) Infof(format string, v ...any)    { l.last, l.n = fmt.Sprintf(format, v...), l.n+1 }
func (l *told) Warningf(format string, v ...any) { l.Infof(format, v...) }

// world is a Copy whose clock stands still.
type world struct {
	*Copy
	now    time.Time
	log    told
	serial []uint32
}

func newWorld(sources ...Source) *world {
	w := &world{now: time.Now()}
	w.Copy = &Copy{Sources: sources, Now: func() time.Time { return w.now }, Log: &w.log, Changed: func(n uint32) { w.serial = append(w.serial, n) }}
	return w
}

func (w *world) lookAgain() { w.look(context.Background()); w.expire() }

func put(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// A copy refers to the servers of domains, with what signs for them, and denies others. It is used until it expires.
func TestCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root")
	w := newWorld(&File{Path: path})
	if w.lookAgain(); w.Has() || w.Reply("\x03org\x00", wire.TypeA) != nil || !strings.Contains(w.log.last, "no such file") {
		t.Errorf("without a file: %v, %q", w.Has(), w.log.last)
	}
	if w.lookAgain(); w.log.n != 1 || w.wait(nil) != 20*time.Second {
		t.Errorf("the same failure is told %d times, and tried again in %s", w.log.n, w.wait(nil))
	}
	if two := newWorld(&File{Path: path}, &File{Path: path + "2"}); true {
		if two.lookAgain(); two.log.n != 1 || strings.Count(two.log.last, "no such file") != 2 || strings.Contains(two.log.last, "\n") {
			t.Errorf("without either file: %q", two.log.last)
		}
	}
	put(t, path, digested(t, rootText(1)), w.now)
	w.lookAgain()
	m := w.Reply("\x03www\x07example\x03org\x00", wire.TypeA)
	if m == nil || m.AA() || len(m.Section[rrset.Authority]) != 2 || len(m.Section[rrset.Additional]) != 1 {
		t.Fatalf("referral: %+v", m)
	}
	if m = w.Reply("\x03org\x00", rrset.TypeDS); m == nil || !m.AA() || len(m.Section[rrset.Answer]) != 1 {
		t.Errorf("DS: %+v", m)
	}
	if m = w.Reply("\x02no\x00", wire.TypeA); m == nil || m.Rcode != wire.NXDomain || len(m.Section[rrset.Authority]) != 1 {
		t.Errorf("denial: %+v", m)
	}
	put(t, path, digested(t, rootText(2)), w.now.Add(time.Second))
	w.now = w.now.Add(time.Second)
	w.lookAgain()
	w.lookAgain()
	w.now = w.now.Add(time.Hour)
	if w.Has() {
		t.Error("it is used after its end")
	}
	w.lookAgain()
	if fmt.Sprint(w.serial) != "[1 2 0]" {
		t.Errorf("serials %v, want 1, 2, none", w.serial)
	}
}

// examiner is a validator to whom all is secure but what it says.
type examiner struct {
	bad  string
	seen []string
}

func (e *examiner) Examine(reply func(string, uint16) *rrset.Message, all iter.Seq2[string, uint16]) error {
	for name, typ := range all {
		what := rrset.Text(name) + " " + dns.Type(typ).String()
		if e.seen = append(e.seen, what); what == e.bad || reply(name, typ) == nil {
			return errors.New(what)
		}
	}
	return nil
}

// What is looked at: the digest of a zone that has one and whether it is signed, else all delegations; of a version
// that is used already whether that still holds.
func TestExamined(t *testing.T) {
	wrong := strings.Replace(digested(t, rootText(1)), "192.0.2.2", "192.0.2.3", 1)
	for what, c := range map[string]struct {
		text, bad, seen string
		alone, used     bool
	}{
		"digest":                    {text: digested(t, rootText(1)), used: true, seen: "[. SOA . ZONEMD]"},
		"digest alone":              {text: digested(t, rootText(1)), alone: true, used: true, seen: "[]"},
		"wrong digest":              {text: wrong, seen: "[]"},
		"wrong digest alone":        {text: wrong, alone: true, seen: "[]"},
		"digest that is not signed": {text: digested(t, rootText(1)), bad: ". ZONEMD", seen: "[. SOA . ZONEMD]"},
		"no digest":                 {text: rootText(1), used: true, seen: "[. SOA . ZONEMD org. DS]"},
		"no digest alone":           {text: rootText(1), alone: true, seen: "[]"},
		"no digest, bad delegation": {text: rootText(1), bad: "org. DS", seen: "[. SOA . ZONEMD org. DS]"},
	} {
		path := filepath.Join(t.TempDir(), "root")
		w, e := newWorld(&File{Path: path}), &examiner{bad: c.bad}
		if !c.alone {
			w.SetExaminer(e)
		}
		put(t, path, c.text, w.now)
		if w.lookAgain(); w.Has() != c.used || fmt.Sprint(e.seen) != c.seen {
			t.Errorf("%s: used %v after %v: %s", what, w.Has(), e.seen, w.log.last)
		}
		if !c.used || c.alone {
			continue
		}
		e.bad, e.seen = ". SOA", nil
		if w.lookAgain(); w.Has() || fmt.Sprint(e.seen) != "[. SOA]" {
			t.Errorf("%s: used %v though its signatures are over, after %v", what, w.Has(), e.seen)
		}
	}
}

// The sources are asked in their order: by transfer, by URL, which is only read when it changes.
func TestSources(t *testing.T) {
	text, reads, fails := digested(t, rootText(7)), 0, false
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case fails:
			w.WriteHeader(http.StatusGone)
		case r.Header.Get("If-None-Match") == `"7"`:
			w.WriteHeader(http.StatusNotModified)
		default:
			reads++
			w.Header().Set("ETag", `"7"`)
			_, _ = w.Write([]byte(text))
		}
	}))
	defer s.Close()
	primary := transfers(t, digested(t, rootText(9)))
	w := newWorld(&URL{URL: s.URL, Client: s.Client()}, Transfer(primary))
	w.lookAgain()
	w.lookAgain()
	if !w.Has() || reads != 1 || fmt.Sprint(w.serial) != "[7]" {
		t.Errorf("by URL: read %d times, serials %v: %s", reads, w.serial, w.log.last)
	}
	fails = true
	w.lookAgain()
	if fmt.Sprint(w.serial) != "[7 9]" || !strings.Contains(w.log.last, "transfer from") {
		t.Errorf("by transfer: serials %v: %s", w.serial, w.log.last)
	}
	text, fails = digested(t, rootText(10))+"$INCLUDE /etc/passwd\n", false
	if w = newWorld(&URL{URL: s.URL, Client: s.Client()}); true {
		w.lookAgain()
	}
	if w.Has() || !strings.Contains(w.log.last, "included") {
		t.Errorf("a URL had a file included: %s", w.log.last)
	}
}

// transfers serves a zone to who asks for all of it.
func transfers(t *testing.T, text string) string {
	t.Helper()
	var rrs []dns.RR
	p := dns.NewZoneParser(strings.NewReader(text), ".", "")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		rrs = append(rrs, rr)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Authoritative, m.Answer = true, rrs[:1]
		if r.Question[0].Qtype != dns.TypeSOA {
			m.Answer = append(append([]dns.RR(nil), rrs...), rrs[0])
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = d.ActivateAndServe() }()
	t.Cleanup(func() { _ = d.Shutdown() })
	return l.Addr().String()
}
