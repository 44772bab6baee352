package trace

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// path is a way to a collector. What is sent on connections that were there when it was broken goes nowhere.
type path struct {
	net.Listener
	to           string
	made, broken atomic.Int64
}

// pathTo is a path to the collector at an address.
func pathTo(t *testing.T, to string) *path {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &path{Listener: l, to: to}
	go p.serve(t)
	return p
}

func (p *path) serve(t *testing.T) {
	for {
		near, err := p.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { near.Close(); far.Close() })
		n := p.made.Add(1)
		go p.carry(n, near, far)
		go p.carry(n, far, near)
	}
}

func (p *path) carry(n int64, from, to net.Conn) {
	b := make([]byte, 4096)
	for {
		size, err := from.Read(b)
		if err != nil {
			return
		}
		if n > p.broken.Load() {
			to.Write(b[:size])
		}
	}
}

// A connection that leads nowhere any more, of which nobody is told, is given up soon, and the collector has spans again.
func TestVanishedConnection(t *testing.T) {
	for name, collects := range map[string]func(*testing.T) (*path, exporter){
		"HTTP/2": func(t *testing.T) (*path, exporter) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			s.EnableHTTP2 = true
			s.StartTLS()
			t.Cleanup(s.Close)
			p := pathTo(t, s.Listener.Addr().String())
			to := exporterOf(t, "otlp", "https://"+p.Addr().String())
			trust := s.Client().Transport.(*http.Transport).TLSClientConfig
			to.(*otlpHTTP).client.Transport.(*http.Transport).TLSClientConfig = trust.Clone()
			return p, to
		},
		"gRPC": func(t *testing.T) (*path, exporter) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := grpc.NewServer()
			collector.RegisterTraceServiceServer(s, &traces{got: make(chan *collector.ExportTraceServiceRequest, 100)})
			go s.Serve(l)
			t.Cleanup(s.Stop)
			p := pathTo(t, l.Addr().String())
			return p, exporterOf(t, "otlp", p.Addr().String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, to := collects(t)
			defer to.close()
			export := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return to.export(ctx, nil)
			}
			if err := export(); err != nil {
				t.Fatal(err)
			}
			p.broken.Store(p.made.Load())
			if err := export(); err == nil || !strings.Contains(strings.ToLower(err.Error()), "deadline") {
				t.Fatalf("it is not broken: %v", err)
			}
			eventually.Holds(t, "spans go out again", func() bool { return export() == nil })
			if n := p.made.Load(); n != 2 {
				t.Errorf("on connection %d", n)
			}
		})
	}
}
