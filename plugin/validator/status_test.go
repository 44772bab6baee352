package validator

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/status"

	"github.com/miekg/dns"
)

// What is flushed is judged anew: names that were bogus, and with a zone its keys.
func TestFlush(t *testing.T) {
	for _, c := range []struct {
		m          status.Match
		keys, fail bool // stay
	}{
		{status.Match{Name: []byte("\x00"), Below: true}, false, false}, {status.Match{Name: []byte("\x07example\x00"), Below: true}, false, false},
		{status.Match{Name: []byte("\x07example\x00")}, false, true}, {status.Match{Name: []byte("\x03bad\x07example\x00")}, true, false},
		{status.Match{Name: []byte("\x03bad\x07example\x00"), Type: dns.TypeTXT}, true, true}, {status.Match{Name: []byte("\x03net\x00"), Below: true}, true, true},
	} {
		v, _ := lab(t, "")
		if m, _, err := ask(t, v, "bad.example.", do); err == nil {
			t.Fatalf("%v", m)
		}
		v.CacheFlush(c.m)
		if keys := v.memory.Node(rrset.MustName("example."), time.Now()) != nil; keys != c.keys {
			t.Errorf("%+v: keys are kept: %v", c.m, keys)
		}
		if _, fail := v.known(questionOf(t, "bad.example.")); fail != c.fail {
			t.Errorf("%+v: the failure is kept: %v", c.m, fail)
		}
	}
}

// A negative trust anchor can be added and taken away while the server runs.
func TestStatus(t *testing.T) {
	v, _ := lab(t, "")
	keys, negative := v.AnchorStatus()
	if len(keys) != 1 || keys[0].Zone != "example." || keys[0].State != "configured" || keys[0].Tag == 0 || len(negative) != 0 {
		t.Errorf("%+v %+v", keys, negative)
	}
	name := []byte(rrset.MustName("bad.example."))
	if m, _, err := ask(t, v, "bad.example.", do); err == nil {
		t.Errorf("before: %v", m)
	}
	for _, d := range []time.Duration{0, longestNTA + 1} {
		if err := v.AddNegative(name, d); err == nil {
			t.Errorf("%v is taken", d)
		}
	}
	if err := v.AddNegative(name, time.Hour); err != nil {
		t.Fatal(err)
	}
	if m, _, err := ask(t, v, "bad.example.", do); err != nil || !explains(m, 33) {
		t.Errorf("added: %v %v", m, err)
	}
	if _, negative = v.AnchorStatus(); len(negative) != 1 || negative[0].Name != "bad.example." {
		t.Errorf("%+v", negative)
	}
	for _, want := range []bool{true, false} {
		if ok, err := v.DropNegative(name); ok != want || err != nil {
			t.Errorf("dropped %v %v, want %v", ok, err, want)
		}
	}
	if m, _, err := ask(t, v, "bad.example.", do); err == nil {
		t.Errorf("dropped: %v", m)
	}
}
