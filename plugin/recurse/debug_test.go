package recurse

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
)

// With *debug* there is a line for each step on the way to an answer, without it none.
func TestDebug(t *testing.T) {
	for _, on := range []bool{true, false} {
		out := logtest.Capture(t)
		if on {
			log.D.Set()
			defer log.D.Clear()
		} else {
			log.D.Clear()
		}
		s, mute := startSlow(t, time.Millisecond), startSlow(t, 0)
		for _, server := range []*slow{s, mute} {
			r := server.resolver(t, func(c *settings) { c.minimise, c.timeout = iterate.Relaxed, 300*time.Millisecond })
			j, _ := r.beginFor(queryFrom(t, "192.0.2.1", "www.below.example.org."), nil, nil, unlooked)
			if err := j.wait(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		const silence = ", over udp for below.example.org. A: no reply for 400ms"
		if on {
			out.Await(t, silence)
		}
		for _, want := range []string{
			regexp.QuoteMeta(mute.at.String()) + ".*" + regexp.QuoteMeta(silence),
			`www\.below\.example\.org\. A: ` + regexp.QuoteMeta(s.at.String()) + `, a server of example\.org\., over udp for below\.example\.org\. A: NOERROR after \S+s, 1 answer, 0 authority and 0 additional RRsets`,
			`over udp for www\.below\.example\.org\. A: NOERROR`,
		} {
			if got := regexp.MustCompile(`\[DEBUG\] plugin/recurse: .*` + want).MatchString(out.String()); got != on {
				t.Errorf("debug %v: %s is in it: %v\n%s", on, want, got, out.String())
			}
		}
	}
}
