package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// conn is a connection to a primary, for one question and the messages that answer it.
type conn struct {
	ctx   context.Context
	conn  net.Conn
	limit Limits
	key   *Key
	stop  func() bool

	id     uint16
	mac    string // of the last message that was signed
	bare   []byte // messages since then, which are not signed
	gap    int    // how many
	read   int64  // octets
	pace   pace
	wanted func() bool // nil: nobody waits
	first  bool
	buf    []byte
	reader reader
}

// newConn is n, until close. The end of ctx closes n, which ends what waits for it.
func newConn(ctx context.Context, n net.Conn, c *Client) *conn {
	return &conn{ctx: ctx, conn: n, limit: c.Limits, key: c.Key, stop: context.AfterFunc(ctx, func() { n.Close() }),
		pace: pace{since: time.Now()}, wanted: c.Wanted, first: true}
}

// close closes the connection.
func (c *conn) close() {
	c.stop()
	c.conn.Close()
}

// ask sends the question: for IXFR with the SOA record of the version that we have.
func (c *conn) ask(origin []byte, qtype uint16, old *zone.Zone) error {
	m := new(dns.Msg)
	m.SetQuestion(wire.Text(origin), qtype)
	m.RecursionDesired = false
	if old != nil {
		// In the authority section (RFC 1995 §3).
		for rec := range old.RecordsOf(origin, old.Apex().Set(wire.TypeSOA)) {
			rr, err := rec.RR()
			if err != nil {
				return err
			}
			m.Ns = []dns.RR{rr}
		}
	}
	var p []byte
	var err error
	if c.key != nil {
		// Five minutes of difference between clocks, as RFC 8945 recommends.
		m.SetTsig(c.key.Name, c.key.Algorithm, 300, time.Now().Unix())
		p, c.mac, err = dns.TsigGenerate(m, c.key.Secret, "", false)
	} else {
		p, err = m.Pack()
	}
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	c.id = m.Id
	c.conn.SetDeadline(time.Now().Add(c.limit.idle()))
	if _, err := c.conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(p))), p...)); err != nil {
		return c.reason(err)
	}
	return nil
}

// reason is why reading or writing failed.
func (c *conn) reason(err error) error {
	if c.ctx.Err() != nil {
		return fmt.Errorf("the transfer took too long or was ended: %w", context.Cause(c.ctx))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the primary closed the connection")
	}
	return err
}

// pace is how fast octets came of late.
type pace struct {
	since time.Time
	read  int64 // until then
}

// slow reports whether fewer octets came than have to within some time, read being how many have come in all. It looks
// once in each such time.
func (p *pace) slow(read int64, now time.Time, within time.Duration) bool {
	if now.Sub(p.since) < within {
		return false
	}
	slow := read-p.read < leastPace
	p.since, p.read = now, read
	return slow
}

// full reads b, the last ones of c.read. wait is how long for the next octets: a long message takes its time on a slow
// link.
func (c *conn) full(b []byte, wait time.Duration) error {
	for len(b) > 0 {
		now := time.Now()
		if c.pace.slow(c.read-int64(len(b)), now, c.limit.pace()) && c.wanted != nil && c.wanted() {
			return ErrSlow
		}
		c.conn.SetDeadline(now.Add(wait))
		n, err := c.conn.Read(b)
		if b = b[n:]; err != nil && len(b) > 0 {
			return c.reason(err)
		}
	}
	return nil
}

// message is the next message that answers the question, if it comes in time; it holds until the next call.
func (c *conn) message(wait time.Duration) (*reader, error) {
	var head [2]byte
	c.read += int64(len(head))
	if err := c.full(head[:], wait); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	// Counted before it is read: a message costs memory only within the bound.
	if c.read += int64(n); c.read > c.limit.octets() {
		return nil, fmt.Errorf("more than %d octets", c.limit.octets())
	}
	// Most messages of a transfer are about as long as this.
	if cap(c.buf) < n {
		c.buf = make([]byte, 0, max(n, 16384))
	}
	c.buf = c.buf[:n]
	if err := c.full(c.buf, wait); err != nil {
		return nil, err
	}
	if err := c.reader.reset(c.buf, c.id); err != nil {
		return nil, err
	}
	// Nothing of a message is used before its signature is checked.
	if err := c.verify(); err != nil {
		return nil, err
	}
	c.first = false
	return &c.reader, nil
}

var errUnsigned = errors.New("a message is not signed")

// verify checks the signature of the message, if we have a key.
func (c *conn) verify() error {
	if c.key == nil {
		return nil
	}
	sig, err := c.reader.signature()
	if err != nil {
		return err
	}
	// Senders are to sign each message; some older ones leave some out (RFC 8945 §5.3.1).
	if sig == nil {
		return c.unsigned()
	}
	if sig.Error != dns.RcodeSuccess {
		return fmt.Errorf("the primary refuses the signature: %s", dns.RcodeToString[int(sig.Error)])
	}
	if dns.CanonicalName(sig.Hdr.Name) != c.key.Name || dns.CanonicalName(sig.Algorithm) != dns.CanonicalName(c.key.Algorithm) {
		return fmt.Errorf("a message is signed with another key: %s", sig.Hdr.Name)
	}
	if c.gap > 0 {
		return c.verifyGap(sig)
	}
	// A copy, which it changes. Messages behind the first are signed with a shorter form (RFC 8945 §5.3.1).
	if err := keyring.Verify(append([]byte(nil), c.buf...), c.key.Secret, c.mac, !c.first); err != nil {
		return fmt.Errorf("the signature of a message: %w", err)
	}
	c.mac = sig.MAC
	return nil
}
