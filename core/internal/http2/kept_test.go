package http2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// TestHeadersKept opens streams with long headers that are kept, as bodies do not end, or answers take their time. There
// is room for some of them, not for as many as there may be streams: all of a header may come from a few octets.
func TestHeadersKept(t *testing.T) {
	const long, streams = 10 << 10, 100
	for name, tc := range map[string]struct {
		open func(p *coretest.H2, id uint32)
		end  func(p *coretest.H2, s *served)
	}{
		"bodies that do not end": {
			func(p *coretest.H2, id uint32) {
				p.Open(id, false, append(posting("/"), "a", strings.Repeat("b", long))...)
			},
			func(p *coretest.H2, _ *served) { p.Framer.WriteRSTStream(1, http2.ErrCodeCancel) },
		},
		"answers that nobody waits for": {
			func(p *coretest.H2, id uint32) {
				p.Open(id, true, append(getting("/stubborn"), "a", strings.Repeat("b", long))...)
				p.Framer.WriteRSTStream(id, http2.ErrCodeCancel)
			},
			func(_ *coretest.H2, s *served) { close(s.later) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newSite(), nil)
			p := coretest.ConnectH2(t, s.addr)
			for id := uint32(1); id < 2*streams; id += 2 {
				tc.open(p, id)
			}
			p.Framer.WritePing(false, [8]byte{})
			refused := 0
			for {
				f := p.Until()
				if _, ok := f.(*http2.PingFrame); ok {
					break
				}
				if r, ok := f.(*http2.RSTStreamFrame); !ok || r.ErrCode != http2.ErrCodeRefusedStream {
					t.Fatalf("got %v", f)
				}
				refused++
			}
			if kept := streams - refused; kept < 4 || kept > 60 {
				t.Errorf("%d of %d headers were kept", kept, streams)
			}
			if n := coretest.Limited(s.Service, "header_bytes"); n != refused {
				t.Errorf("counted %d of %d", n, refused)
			}
			tc.end(p, s)
			id := uint32(2*streams + 1)
			eventually.Holds(t, "there is room again", func() bool {
				p.Open(id, true, append(getting("/1"), "a", strings.Repeat("b", long))...)
				id += 2
				_, refused := p.Until().(*http2.RSTStreamFrame)
				if !refused {
					p.Until() // the body
				}
				return !refused
			})
		})
	}
}
