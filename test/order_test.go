package test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestUpdatesInOrder: UPDATEs of one connection take effect in the order in which they came, though the client waits for
// no answer between them.
func TestUpdatesInOrder(t *testing.T) {
	addr := dynamic(t, t.TempDir(), "", "")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const most = 200
	conn := &dns.Conn{Conn: c}
	var all []byte
	for i := range most {
		m := new(dns.Msg).SetUpdate("example.org.")
		old, _ := dns.NewRR("n.example.org. 60 IN TXT x")
		m.RemoveRRset([]dns.RR{old})
		rr, _ := dns.NewRR(fmt.Sprintf("n.example.org. 60 IN TXT %d", i))
		m.Insert([]dns.RR{rr})
		m.SetTsig(updateKey, dns.HmacSHA256, 300, time.Now().Unix())
		p, _, err := dns.TsigGenerate(m, updateSecret, "", false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, byte(len(p)>>8), byte(len(p))), p...)
	}
	go c.Write(all)
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for range most {
		p, err := conn.ReadMsgHeader(nil)
		m := new(dns.Msg)
		if err == nil {
			err = m.Unpack(p)
		}
		if err != nil || m.Rcode != dns.RcodeSuccess {
			t.Fatal(m, err)
		}
	}
	m, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion("n.example.org.", dns.TypeTXT), addr)
	if err != nil || len(m.Answer) != 1 {
		t.Fatal(m, err)
	}
	if got := m.Answer[0].(*dns.TXT).Txt[0]; got != fmt.Sprint(most-1) {
		t.Errorf("the last one is %s", got)
	}
}
