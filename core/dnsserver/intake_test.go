package dnsserver

import (
	"context"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/test/clients"
)

// Messages that are no proper queries are answered with their header, flags and all but Z, and the question if it
// could be read.
func TestTurnDown(t *testing.T) {
	_, udp, tcp := running(t, block1(".", handler{"none", func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 0, nil }}))
	const question = "0377777700 0001 0001"
	for _, tc := range []struct{ packet, want string }{
		{"1234 2FF0 0001 0000 0000 0000" + question, "1234 ABB4 0000 0000 0000 0000"},                     // UPDATE
		{"1234 0000 0002 0000 0000 0000" + question + question, "1234 8001 0000 0000 0000 0000"},          // two questions
		{"1234 07F3 0001 0002 0000 0000" + question, "1234 83B1 0000 0000 0000 0000"},                     // two answers
		{"1234 0100 0001 0000 0000 0001" + question + "0000", "1234 8101 0001 0000 0000 0000" + question}, // cut short behind the question
		{"1234 0100 0001 0000 0000 0000 0377", "1234 8101 0000 0000 0000 0000"},                           // and within
	} {
		packet, err := hex.DecodeString(strings.ReplaceAll(tc.packet, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			conn, err := net.Dial(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			c := &dns.Conn{Conn: conn, UDPSize: 1232}
			c.SetDeadline(time.Now().Add(clients.AskTime))
			if _, err := c.Write(packet); err != nil {
				t.Fatal(err)
			}
			b, err := c.ReadMsgHeader(nil)
			if got := hex.EncodeToString(b); err != nil || got != strings.ToLower(strings.ReplaceAll(tc.want, " ", "")) {
				t.Errorf("%s over %s: got %s, %v, want %s", tc.packet, network, got, err, tc.want)
			}
			c.Close()
		}
	}
}
