package fetch

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// trickle is a primary that sends a whole zone in one message, in so many parts with a pause between them. It counts
// those that it has sent.
func trickle(t *testing.T, parts int, pause time.Duration) (addr string, sent func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	n := 0
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				q, err := (&dns.Conn{Conn: c}).ReadMsg()
				if err != nil {
					return
				}
				m := new(dns.Msg).SetReply(q)
				m.Answer = records(t, "soa8", "example.org. 300 IN NS a.example.org.", "a", "b", "c", "d", "e", "soa8")
				p, _ := m.Pack()
				p = append(binary.BigEndian.AppendUint16(nil, uint16(len(p))), p...)
				for i := range parts {
					if _, err := c.Write(p[i*len(p)/parts : (i+1)*len(p)/parts]); err != nil {
						return
					}
					mu.Lock()
					n++
					mu.Unlock()
					time.Sleep(pause)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// TestSlowLink: a message may come slowly, as long as octets come. If they do not, or too few while others wait, it is
// given up before its end.
func TestSlowLink(t *testing.T) {
	for _, tc := range []struct {
		name   string
		parts  int
		pause  time.Duration
		limits Limits
		wanted bool
		want   error
	}{
		{"slow", 60, 50 * time.Millisecond, Limits{Idle: 2 * time.Second}, true, nil},
		{"slow, and others wait", 200, 50 * time.Millisecond, Limits{Idle: 5 * time.Second, Pace: 300 * time.Millisecond}, true, ErrSlow},
		{"slow, and nobody waits", 60, 50 * time.Millisecond, Limits{Idle: 2 * time.Second, Pace: 300 * time.Millisecond}, false, nil},
		{"stalls", 2, 3 * time.Second, Limits{Idle: 100 * time.Millisecond}, true, errTimeout},
	} {
		addr, sent := trickle(t, tc.parts, tc.pause)
		c := &Client{Primary: addr, Limits: tc.limits, Wanted: func() bool { return tc.wanted }}
		v, err := c.Zone(t.Context(), origin, nil, t.Logf)
		var e net.Error
		if tc.want == errTimeout && errors.As(err, &e) && e.Timeout() {
			err = errTimeout
		}
		switch {
		case !errors.Is(err, tc.want):
			t.Errorf("%s: %v", tc.name, err)
		case err == nil && (v.Serial() != 8 || v.Records() != 7):
			t.Errorf("%s: serial %d, %d records", tc.name, v.Serial(), v.Records())
		case err != nil && sent() == tc.parts:
			t.Errorf("%s: all of it was waited for", tc.name)
		}
	}
}

// errTimeout stands for any error by which it was waited in vain.
var errTimeout = errors.New("waited in vain")
