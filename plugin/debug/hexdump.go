package debug

import (
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/miekg/dns"
)

// perLine is how many octets a line of a dump shows.
const perLine = 16

// Hexdump logs v, joined as by fmt.Sprint, and m as a dump that text2pcap reads, if debug lines are logged at all:
//
//	[DEBUG] text
//	debug: 000000 dc bd 01 20 ...
//	debug: 000010 ...
//	debug: 00001d
//
// A message that cannot be packed is left out.
func Hexdump(m *dns.Msg, v ...any) {
	if log.D.Value() {
		log.Debug(fmt.Sprint(v...) + dump(m))
	}
}

// Hexdumpf is Hexdump with a text that is formatted as by fmt.Sprintf.
func Hexdumpf(m *dns.Msg, format string, v ...any) {
	if log.D.Value() {
		log.Debug(fmt.Sprintf(format, v...) + dump(m))
	}
}

// dump is the lines that show m, the last of them with the length alone; "" if m cannot be packed.
func dump(m *dns.Msg) string {
	if m == nil {
		return ""
	}
	buf, err := m.Pack()
	if err != nil {
		return ""
	}
	var out []byte
	for i, c := range buf {
		if i%perLine == 0 {
			out = fmt.Appendf(out, "\ndebug: %06x", i)
		}
		out = fmt.Appendf(out, " %02x", c)
	}
	return string(fmt.Appendf(out, "\ndebug: %06x", len(buf)))
}
