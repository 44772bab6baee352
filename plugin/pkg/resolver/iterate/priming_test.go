package iterate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// That priming failed is told once a minute, however often the root's servers are asked for in between, and that does not
// put off when it is tried again.
func TestPrimingFailedIsToldOnceAMinute(t *testing.T) {
	told := 0
	s := &Shared{Unready: func(string) { told++ }}
	at := func(seconds int) store.Time { return 1000*store.Second + store.Time(seconds)*store.Second }
	for _, c := range []struct{ at, told int }{{0, 1}, {0, 1}, {30, 1}, {59, 1}, {60, 2}, {61, 2}, {-100, 3}} { // the last one by a clock that was set back
		if s.failed(at(c.at), "no reply"); told != c.told {
			t.Errorf("at %d it was told %d times, not %d", c.at, told, c.told)
		}
		if s.due(at(c.at)) {
			t.Errorf("at %d it is tried again", c.at)
		}
	}
	if !s.due(at(-40)) {
		t.Error("it is not tried again after a minute")
	}
}

// Root servers that say nothing within a client's time cannot be had: that is told, too, and other clients do not wait
// for them first. Of a root that was primed nothing is told.
func TestPrimingThatTakesTooLong(t *testing.T) {
	late := func(w *world, name string) (told []string) {
		w.conf.Shared.Unready = func(why string) { told = append(told, why) }
		r := New(w.conf, Question{rrset.MustName(name), dns.TypeA}, false)
		if r.Step(Event{Kind: Begun}, w.now); r.Late(w.now).Rcode != dns.RcodeServerFailure {
			t.Errorf("%s: no failure", name)
		}
		return told
	}
	w := newWorld(t)
	if told := late(w, "www.example.org."); len(told) != 1 || told[0] != "no reply in time" || w.conf.Shared.due(w.now) {
		t.Errorf("told %q", told)
	}
	if told := late(w, "www.example.net."); len(told) != 0 {
		t.Errorf("told again: %q", told)
	}
	w = newWorld(t)
	w.serve("10.0.0.1", rootZone)
	w.resolve("nowhere.", "A")
	if told := late(w, "www.example.org."); len(told) != 0 || w.conf.Shared.PrimedAt() == 0 {
		t.Errorf("told %q after priming", told)
	}
}

// Who leads to the addresses of the root's servers are these: while they are silent they are not asked for them.
func TestRootIsNotSoughtFromItself(t *testing.T) {
	w := small(t)
	for at := range w.servers {
		w.servers[at] = func(*dns.Msg, bool) *dns.Msg { return nil }
	}
	w.want("www.example.org.", "A", "SERVFAIL; EDE 22")
	for _, a := range w.asked {
		if a.q != ". NS" && a.q != "org. A" && a.q != "www.example.org. A" {
			t.Errorf("%s is asked for", a.q)
		}
	}
	if len(w.asked) == 0 {
		t.Error("nothing is asked for")
	}
}
