package fetch

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// gapped serves one transfer of so many messages, of which those are signed that signs says; change may change a message
// before it is sent.
func gapped(t *testing.T, messages int, signs func(i int) bool, change func(i int, b []byte)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	secret, _ := base64.StdEncoding.DecodeString("c2VjcmV0")
	go func() {
		n, err := l.Accept()
		if err != nil {
			return
		}
		defer n.Close()
		c := &dns.Conn{Conn: n}
		q, _ := c.ReadMsg() // whose signature it cannot check
		if q == nil {
			return
		}
		before := q.IsTsig().MAC
		var bare []byte
		for i := range messages {
			m := new(dns.Msg).SetReply(q)
			m.Extra = nil
			m.Answer = records(t, "a"+string(rune('a'+i%26))+string(rune('a'+i/26)))
			if i == 0 {
				m.Answer = append(records(t, "soa7"), m.Answer...)
			}
			if i == messages-1 {
				m.Answer = append(m.Answer, records(t, "soa7")...)
			}
			b, err := m.Pack()
			if err != nil {
				return
			}
			switch {
			case !signs(i):
				bare = append(bare, b...)
			default:
				// RFC 8945 §5.3.1: the MAC before, the messages since, and the variables, or later on the time alone.
				now := uint64(time.Now().Unix())
				mac, _ := hex.DecodeString(before)
				in := append(binary.BigEndian.AppendUint16(nil, uint16(len(mac))), mac...)
				in = append(append(in, bare...), b...)
				timers := append(binary.BigEndian.AppendUint64(nil, now)[2:], 1, 44)
				if i == 0 {
					name, algorithm := make([]byte, 64), make([]byte, 64)
					n, _ := dns.PackDomainName(keyName, name, 0, nil, false)
					a, _ := dns.PackDomainName("hmac-sha256.", algorithm, 0, nil, false)
					in = append(append(in, name[:n]...), 0, 255, 0, 0, 0, 0)
					in = append(append(append(in, algorithm[:a]...), timers...), 0, 0, 0, 0)
				} else {
					in = append(in, timers...)
				}
				h := hmac.New(sha256.New, secret)
				h.Write(in)
				before = hex.EncodeToString(h.Sum(nil))
				m.SetTsig(keyName, dns.HmacSHA256, 300, int64(now))
				sig := m.IsTsig()
				sig.MAC, sig.MACSize, sig.OrigId, sig.TimeSigned = before, 32, m.Id, now
				bare = nil
				if b, err = m.Pack(); err != nil {
					return
				}
			}
			change(i, b)
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}()
	return l.Addr().String()
}

// TestGap: transfers of which not all messages are signed (RFC 8945 §5.3.1).
func TestGap(t *testing.T) {
	nothing := func(int, []byte) {}
	for name, tc := range map[string]struct {
		messages int
		signs    func(i int) bool
		change   func(i int, b []byte)
		err      string
	}{
		"all":           {5, func(int) bool { return true }, nothing, ""},
		"each third":    {7, func(i int) bool { return i%3 == 0 }, nothing, ""},
		"99 between":    {101, func(i int) bool { return i%100 == 0 }, nothing, ""},
		"100 between":   {102, func(i int) bool { return i%101 == 0 }, nothing, errGap.Error()},
		"not the first": {3, func(i int) bool { return i > 0 }, nothing, errUnsigned.Error()},
		"not the last":  {3, func(i int) bool { return i < 2 }, nothing, errUnsigned.Error()},
		"changed between": {4, func(i int) bool { return i%3 == 0 }, func(i int, b []byte) {
			if i == 1 {
				b[len(b)-1]++
			}
		}, dns.ErrSig.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			addr := gapped(t, tc.messages, tc.signs, tc.change)
			c := Client{Primary: addr, Key: &Key{Name: keyName, Algorithm: dns.HmacSHA256, Secret: "c2VjcmV0"}}
			v, err := c.Zone(context.Background(), origin, nil, t.Logf)
			switch {
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("%v, want %s", err, tc.err)
			case tc.err == "" && (err != nil || v.Records() != tc.messages+1):
				t.Errorf("%v", err)
			}
		})
	}
}
