package grpcdns

import (
	"bytes"
	"io"
	"math/rand"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/test/clients"
)

// full is a client that has the only place of a listener, and has made a call; displace has another one take the place.
func full(t *testing.T, tls bool) (p *coretest.H2, displace func()) {
	t.Helper()
	of := serviceFor(t, coretest.Echo, nil, nil)
	creds := insecure.NewCredentials()
	if tls {
		of = serviceFor(t, coretest.Echo, tlsConfig(t), nil)
		creds = credentials.NewTLS(clients.Trusting)
	}
	of.Connections = 1
	s := serve(t, of)
	if tls {
		p = coretest.DialH2(t, s.addr)
	} else {
		p = coretest.NewH2(t, coretest.Dial(t, s.addr))
	}
	io.WriteString(p.Conn, http2.ClientPreface)
	p.Framer.WriteSettings()
	p.Framer.WriteSettingsAck()
	call(t, p, 1, "www.")
	replied(p, 1)
	return p, func() {
		t.Helper()
		c := clients.DialGRPC(t, s.addr, creds)
		if _, err := c.Ask(coretest.Query("other.")); err != nil {
			t.Errorf("the other client: %v", err)
		}
		c.Close()
	}
}

// replied reads until a call is answered.
func replied(p *coretest.H2, id uint32) {
	p.Helper()
	for {
		switch f := p.Until().(type) {
		case *http2.MetaHeadersFrame:
			if f.StreamEnded() {
				if f.StreamID != id {
					p.Fatalf("got %v", f)
				}
				return
			}
		case *http2.DataFrame, *http2.PingFrame:
		default:
			p.Fatalf("got %v", f)
		}
	}
}

// A connection that gives way to another tells its client, and what is on its way is answered.
func TestGivesWay(t *testing.T) {
	usual := lastCall
	lastCall = time.Hour
	t.Cleanup(func() { lastCall = usual })
	for _, tls := range []bool{false, true} {
		p, displace := full(t, tls)
		displace()
		for told := false; !told; {
			switch f := p.Until().(type) {
			case *http2.PingFrame:
			case *http2.GoAwayFrame:
				if told = true; f.LastStreamID != 1<<31-1 || f.ErrCode != http2.ErrCodeNo {
					t.Errorf("TLS %v: got %v", tls, f)
				}
			default:
				t.Fatalf("TLS %v: got %v", tls, f)
			}
		}
		call(t, p, 3, "www.") // was on its way
		replied(p, 3)
	}
}

// A client that stays though it was told to go is cut off.
func TestGivesWayInTheEnd(t *testing.T) {
	p, displace := full(t, true)
	displace()
	if got := p.Ended(); got != http2.ErrCodeNo.String() {
		t.Errorf("the end: %s", got)
	}
}

// written is a connection that keeps what is written to it.
type written struct {
	net.Conn
	bytes.Buffer
}

func (w *written) Read(b []byte) (int, error)  { return w.Buffer.Read(b) }
func (w *written) Write(b []byte) (int, error) { return w.Buffer.Write(b) }

// GOAWAY stands between frames, however they are written and whenever it is asked for, and not before the first one.
func TestFrames(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 1000 {
		var sent bytes.Buffer
		w := http2.NewFramer(&sent, nil)
		w.WriteSettings()
		const all = 6
		for i := range all - 1 {
			w.WriteData(uint32(2*i+1), false, make([]byte, []int{0, 1, 9, 300, 16384}[r.Intn(5)]))
		}
		out := new(written)
		f := &frames{Conn: out}
		asked := r.Intn(sent.Len())
		for b, at := sent.Bytes(), 0; len(b) > 0; {
			n := 1 + r.Intn(len(b))
			if at <= asked && asked < at+n {
				f.leave()
			}
			if k, err := f.Write(b[:n]); k != n || err != nil {
				t.Fatal(k, err)
			}
			b, at = b[n:], at+n
		}
		read, got, told := http2.NewFramer(nil, &out.Buffer), 0, 0
		for {
			frame, err := read.ReadFrame()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("frame %d: %v", got+told, err)
			}
			if _, ok := frame.(*http2.GoAwayFrame); !ok {
				got++
				continue
			}
			if told++; got == 0 {
				t.Error("it comes first")
			}
		}
		if got != all || told != 1 {
			t.Fatalf("%d frames, %d GOAWAY", got, told)
		}
	}
}
