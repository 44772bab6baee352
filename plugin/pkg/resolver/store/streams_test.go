package store

import (
	"net/netip"
	"testing"
	"time"
)

// A server that was silent over UDP and replies over TCP, as fast as was waited for over UDP, is asked over TCP for a
// minute. One that is slow is not.
func TestStreams(t *testing.T) {
	const wait = 400 * time.Millisecond
	for what, c := range map[string]struct {
		do   func(v *Server)
		past Time
		want bool
	}{
		"silent over UDP":     {func(v *Server) { v.Heard(true, wait/2, now) }, 59 * Second, true},
		"for long":            {func(v *Server) { v.Heard(true, wait/2, now) }, 60 * Second, false},
		"the clock goes back": {func(v *Server) { v.Heard(true, wait/2, now) }, -Second, false},
		"slow":                {func(v *Server) { v.Heard(true, wait, now) }, 0, false},
		"UDP, too":            {func(v *Server) { v.Heard(false, wait/2, now); v.Heard(true, wait/2, now) }, 0, false},
		"UDP again":           {func(v *Server) { v.Heard(true, wait/2, now); v.Heard(false, wait/2, now) }, 0, false},
		"one lost since": {func(v *Server) {
			v.Heard(false, wait/2, now)
			v.Lost(false, wait)
			v.Heard(true, wait/2, now)
		}, 0, false},
		"TCP is lost": {func(v *Server) { v.Heard(true, wait/2, now); v.Lost(true, wait) }, 0, false},
	} {
		s := New(1<<20, 1000)
		v := s.Servers.Get(netip.MustParseAddrPort("192.0.2.1:53"), func() any { return nil })
		v.Lost(false, wait)
		v.Lost(false, wait)
		if v.Streams(now) || s.Servers.Streamed(now) {
			t.Errorf("%s: over TCP before it has replied", what)
		}
		c.do(v)
		if got := v.Streams(now + c.past); got != c.want {
			t.Errorf("%s: over TCP: %v", what, got)
		}
		if c.want && !s.Servers.Streamed(now+c.past) {
			t.Errorf("%s: it is not known that there are such servers", what)
		}
		o := s.Servers.Get(netip.MustParseAddrPort("192.0.2.2:53"), func() any { return nil })
		o.Lost(false, wait)
		o.Heard(true, wait/2, now+c.past)
		if got := o.Streams(now + c.past); got != s.Servers.Streamed(now+c.past) {
			t.Errorf("%s: another one that has lost one query goes over TCP: %v", what, got)
		}
	}
}

// A server that is wholly silent is tried over TCP once in ten seconds, by all who ask the same in that moment.
func TestMayStream(t *testing.T) {
	s := New(1<<20, 1000)
	v := s.Servers.Get(netip.MustParseAddrPort("192.0.2.1:53"), func() any { return nil })
	if !v.MayStream("\x01a\x00", now) {
		t.Error("it may not be tried once")
	}
	v.TryStream("\x01a\x00", now)
	for _, c := range []struct {
		name string
		past Time
		want bool
	}{{"\x01a\x00", Second / 100, true}, {"\x01b\x00", Second / 100, false}, {"\x01a\x00", Second, false}, {"\x01b\x00", 9 * Second, false}, {"\x01b\x00", 10 * Second, true}, {"\x01b\x00", -Second, true}} {
		if got := v.MayStream(c.name, now+c.past); got != c.want {
			t.Errorf("%q after %v: %v", c.name, time.Duration(c.past), got)
		}
	}
}
