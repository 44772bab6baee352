package conn

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// lines is a protocol of lines, each a word. "who" is answered with the client's address, "slow" when the gate opens,
// "long" with a long line, and whatever else ends the connection.
type lines struct {
	*Conn
	of *lineServer
	r  *bufio.Reader
}

// lineServer is what connections of lines have in common.
type lineServer struct {
	slow  chan struct{} // closed to have "slow" answered
	begun chan struct{} // gets one for each "slow"
	long  int           // octets of the answer to "long"
}

func newLineServer() *lineServer {
	return &lineServer{slow: make(chan struct{}), begun: make(chan struct{}, 100), long: 10000}
}

func (s *lineServer) New(c *Conn) Protocol {
	return &lines{Conn: c, of: s, r: bufio.NewReader(c.Upper)}
}

func (l *lines) Drain() { l.DrainRead() }

func (l *lines) BeforeWait() {
	l.Release()
	l.Out.Flush()
}

func (l *lines) Serve() {
	for {
		l.ReadIn(l.Service().Idle)
		line, err := l.r.ReadString('\n')
		if err != nil || !l.answer(strings.TrimSpace(line)) {
			return
		}
	}
}

func (l *lines) answer(word string) bool {
	s := l.Serving()
	l.Begin(s)
	switch word {
	case "who":
		l.Out.Add(nil, fmt.Appendf(nil, "%s %s\n", s.Label, wire.AddrOf(l.RemoteAddr())))
	case "slow":
		go func() {
			defer l.End(s)
			l.of.begun <- struct{}{}
			<-l.of.slow
			l.Out.Send(nil, fmt.Appendf(nil, "%s slow\n", s.Label))
		}()
		return true
	case "long":
		defer l.End(s)
		l.Out.Add(nil, append([]byte(strings.Repeat("x", l.of.long)), '\n'))
		return l.Out.Flush() == nil
	default:
		l.End(s)
		return false
	}
	l.End(s)
	return true
}

// lineService is a Service for lines. Its label is of no other.
func lineService(t *testing.T) *service.Service {
	return coretest.Service(t, coretest.Label(t))
}

// serveLines serves lines on loopback.
func serveLines(t *testing.T, s *service.Service, of *lineServer, config *tls.Config, p proxyproto.ConnPolicyFunc,
) (l *Listener, addr string, end func() error) {
	t.Helper()
	from := Proxied(coretest.ListenTCP(t), p, s.Label)
	l = NewListener(s, ClientAuthOf(config))
	l.ListenOn(from)
	end = coretest.Serving(t, l, func() error { return l.Serve(from, Handler{TLS: config, New: of.New}) })
	return l, from.Addr().String(), end
}

// told is the answer to a line on c, without the label, or "no answer".
func told(t *testing.T, c net.Conn, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "no answer"
	}
	return next(c)
}

// next is the next answer on c.
func next(c net.Conn) string {
	answer, err := bufio.NewReaderSize(c, 1<<16).ReadString('\n')
	if err != nil {
		return "no answer"
	}
	fields := strings.Fields(answer)
	return fields[len(fields)-1]
}

// closed reports whether the other end has closed c, or closes it soon.
func closed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, err := c.Read(make([]byte, 1))
	nerr, ok := err.(net.Error)
	return err != nil && !(ok && nerr.Timeout())
}
