package wire

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// Options is the EDNS options of the reply, code, length and data one after the other: those of a message that was
// loaded, and those that plugins added. It is only to be read, and only until the next change.
func (w *Reply) Options() []byte { return w.options }

// MsgOPT is Msg with an OPT record that has w's options, if r has one and w has options or counts such a record: where
// plugins gave a reply one, the server repeats no options of the query. The server fits it to the client's.
func (w *Reply) MsgOPT(r *dns.Msg) (*dns.Msg, error) {
	m, err := w.Msg(r)
	if err == nil {
		w.AppendOPT(m, r)
	}
	return m, err
}

// AppendOPT gives m, a reply to r, the OPT record of MsgOPT. Options that are no options are left out, all together.
func (w *Reply) AppendOPT(m, r *dns.Msg) {
	asked := r.IsEdns0()
	if len(w.options)+w.opt == 0 || asked == nil {
		return
	}
	b := []byte{0, 0, byte(TypeOPT), byte(asked.UDPSize() >> 8), byte(asked.UDPSize()), 0, 0, byte(asked.Hdr.Ttl>>8) & (OPTFlagDO >> 8), 0}
	b = binary.BigEndian.AppendUint16(b, uint16(len(w.options)))
	if rr, _, err := dns.UnpackRR(append(b, w.options...), 0); err == nil {
		m.Extra = append(m.Extra, rr)
	}
}
